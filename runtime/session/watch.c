#include "session/watch.h"

#include "session/library.h"
#include "session/memory.h"
#include "session/weights.h"

#include <math.h>
#include <stdlib.h>

static size_t printed_size(const MtcModel *model) {
    return mtc_computes_in_double(model) ? sizeof(double) : sizeof(float);
}

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

static int64_t printed_elements(const MtcPrint *print, int64_t rows) {
    return print->batched ? rows * print->elements : print->elements;
}

static int visit_value(MtcSession *session, int row, int64_t count, void *values, MtcVisitPrinted *visit, void *user) {
    const size_t bytes = (size_t)count * printed_size(session->model);
    const char *error = mtc_download(values, session->arena + session->model->print[row].offset, bytes);
    const int code = mtc_device_fault(session, error ? error : mtc_synchronize(), "printing");
    return code ? code : visit(user, row, values, count);
}

/* One piece of memory for all: a new one has new pages, which cost more than to copy what comes into them. */
int mtc_visit_printed(MtcSession *session, const MtcRun *run, int64_t rows, MtcVisitPrinted *visit, void *user) {
    const MtcModel *model = session->model;
    int64_t most = 0;
    int code = mtc_device_fault(session, mtc_model_watch(model, run), "printing");
    for (int i = 0; i < model->prints; i++)
        most = printed_elements(&model->print[i], rows) > most ? printed_elements(&model->print[i], rows) : most;
    void *values = malloc((size_t)most * printed_size(model) + 1);
    if (!values)
        code = mtc_no_memory(&session->fault, (size_t)most * printed_size(model), "what print shows");
    for (int i = 0; i < model->prints && !code; i++)
        code = visit_value(session, i, printed_elements(&model->print[i], rows), values, visit, user);
    free(values);
    return code;
}

typedef struct Showing {
    const MtcSession *session;
    MtcShowPrinted *show;
    void *user;
} Showing;

static int show_value(void *context, int row, const void *values, int64_t count) {
    const Showing *showing = (const Showing *)context;
    const MtcModel *model = showing->session->model;
    const MtcPrinted printed = printed_statistics(model, values, count);
    showing->show(showing->user, showing->session->at.step, &model->print[row], &printed);
    return 0;
}

int mtc_show_printed(MtcSession *session, const MtcRun *run, int64_t rows, MtcShowPrinted *show, void *user) {
    Showing showing = {session, show, user};
    return mtc_visit_printed(session, run, rows, show_value, &showing);
}
