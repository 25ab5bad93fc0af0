#include "session/watch.h"

#include "session/library.h"
#include "session/memory.h"
#include "session/weights.h"

#include <math.h>
#include <stdlib.h>

static double watched_number(const MtcModel *model, const void *values, int64_t i) {
    return mtc_computes_in_double(model) ? ((const double *)values)[i] : (double)((const float *)values)[i];
}

/* The mean first, then the squares of what differs from it: large means cost no digits. */
static MtcPrinted printed_statistics(const MtcModel *model, const void *values, int64_t count) {
    MtcPrinted s = {0, 0, INFINITY, -INFINITY, count, 0, 0};
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < count; i++) {
        const double value = watched_number(model, values, i);
        s.nan += isnan(value);
        s.infinite += isinf(value) != 0;
        s.smallest = fmin(s.smallest, value);
        s.largest = fmax(s.largest, value);
        sum += isfinite(value) ? value : 0;
    }
    const double finite = (double)(count - s.nan - s.infinite);
    s.mean = sum / finite;
    for (int64_t i = 0; i < count; i++) {
        const double value = watched_number(model, values, i);
        squares += isfinite(value) ? (value - s.mean) * (value - s.mean) : 0;
    }
    s.deviation = sqrt(squares / finite);
    if (s.nan == count)
        s.smallest = s.largest = NAN;
    return s;
}

static int show_value(MtcSession *session, const MtcPrint *print, int64_t rows, MtcShowPrinted *show, void *user) {
    const MtcModel *model = session->model;
    const int64_t count = print->batched ? rows * print->elements : print->elements;
    const size_t bytes = (size_t)count * (mtc_computes_in_double(model) ? sizeof(double) : sizeof(float));
    void *values = malloc(bytes);
    if (!values)
        return mtc_no_memory(&session->fault, bytes, "what print shows");
    const char *error = mtc_download(values, session->arena + print->offset, bytes);
    error = error ? error : mtc_synchronize();
    if (!error) {
        const MtcPrinted printed = printed_statistics(model, values, count);
        show(user, session->at.step, print, &printed);
    }
    free(values);
    return mtc_device_fault(session, error, "printing");
}

int mtc_show_printed(MtcSession *session, const MtcRun *run, int64_t rows, MtcShowPrinted *show, void *user) {
    int code = mtc_device_fault(session, mtc_model_watch(session->model, run), "printing");
    for (int i = 0; i < session->model->prints && !code; i++)
        code = show_value(session, &session->model->print[i], rows, show, user);
    return code;
}
