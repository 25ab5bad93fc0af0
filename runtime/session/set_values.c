#include "session/set_values.h"

#include "ranks/ranks.h"
#include "session/memory.h"
#include "session/weights.h"

#include <stdlib.h>
#include <string.h>

static size_t number_bytes(const MtcSession *session) {
    return mtc_computes_in_double(session->model) ? sizeof(double) : sizeof(float);
}

size_t mtc_set_values_bytes(const MtcSession *session, const MtcData *data) {
    int64_t elements = 0;
    for (int i = 0; i < session->model->set_inputs; i++)
        elements += session->model->set_input[i].elements;
    return (size_t)(elements * data->examples) * number_bytes(session);
}

int mtc_reserve_set_values(MtcSession *session, const MtcData *data) {
    const size_t bytes = mtc_set_values_bytes(session, data);
    char *larger = NULL; /* other data sets are evaluated with the one that is there */
    if (bytes <= session->set_values_bytes)
        return 0;
    int code = mtc_session_alloc(session, (void **)&larger, bytes, "what metrics over a set keep of each example");
    if (code)
        return code;
    mtc_session_free(session, session->set_values, session->set_values_bytes);
    session->set_values = larger;
    session->set_values_bytes = bytes;
    return 0;
}

const char *mtc_keep_set_values(MtcSession *session, const MtcData *data, int64_t first, int64_t rows) {
    const MtcModel *model = session->model;
    const size_t size = number_bytes(session);
    char *to = session->set_values;
    const char *error = NULL;
    for (int i = 0; i < model->set_inputs && !error; i++) {
        const size_t row = (size_t)model->set_input[i].elements * size;
        error = mtc_copy(to + (size_t)first * row, session->arena + model->set_input[i].offset, (size_t)rows * row);
        to += (size_t)data->examples * row;
    }
    return error;
}

int mtc_gather_set_values(MtcSession *session, const MtcData *data, void *kept, const int64_t *begin) {
    char *values = (char *)kept;
    int code = 0;
    for (int i = 0; i < session->model->set_inputs && !code; i++) {
        const size_t row = (size_t)session->model->set_input[i].elements * number_bytes(session);
        code = mtc_ranks_gather(&session->fault, values, row, begin);
        values += (size_t)data->examples * row;
    }
    return code;
}

/* ---- when all are there ---- */

static void widen_values(const MtcSession *session, const void *kept, int64_t count, double *to) {
    if (mtc_computes_in_double(session->model))
        memcpy(to, kept, (size_t)count * sizeof *to);
    else
        for (int64_t i = 0; i < count; i++)
            to[i] = ((const float *)kept)[i];
}

/* Values of all examples, one row of set_input after the other, each with room for `room` of them. */
typedef struct Widened {
    double *at;
    int64_t examples, room;
} Widened;

static double *input_of(const MtcModel *model, const Widened *values, int input) {
    int64_t before = 0;
    for (int i = 0; i < input; i++)
        before += model->set_input[i].elements;
    return values->at + before * values->room;
}

/* What weighs nothing is not there, whatever its numbers are. */
static void drop_weightless(const MtcModel *model, Widened *values) {
    int64_t kept = 0;
    for (int64_t i = 0; i < values->examples; i++) {
        if (!(input_of(model, values, model->set_weight)[i] > 0))
            continue;
        for (int input = 0; input < model->set_inputs; input++) {
            const int64_t n = model->set_input[input].elements;
            double *row = input_of(model, values, input);
            memmove(row + kept * n, row + i * n, (size_t)n * sizeof *row);
        }
        kept++;
    }
    values->examples = kept;
}

static MtcSetValues values_of(const MtcModel *model, const MtcSetMetric *metric, const Widened *values) {
    MtcSetValues given = {values->examples, {0}, {NULL}, NULL};
    for (int k = 0; k < metric->inputs; k++) {
        given.elements[k] = model->set_input[metric->input[k]].elements;
        given.value[k] = input_of(model, values, metric->input[k]);
    }
    if (model->weighted)
        given.weight = input_of(model, values, model->set_weight);
    return given;
}

static int count_confusion(MtcSession *session, const MtcSetValues *values) {
    const int64_t classes = session->model->confusion->classes;
    const size_t bytes = (size_t)(classes * classes) * sizeof *session->confusion;
    if (!session->confusion)
        session->confusion = (double *)malloc(bytes);
    if (!session->confusion)
        return mtc_no_memory(&session->fault, bytes, "the confusion matrix");
    mtc_count_confusion(session->model->confusion, values, session->confusion);
    return 0;
}

int mtc_confusion(MtcSession *session, double *counts) {
    const MtcSetMetric *confusion = session->model->confusion;
    int code = mtc_enter(session);
    if (code)
        return code;
    if (!session->confusion)
        return mtc_fail(&session->fault, MTC_USAGE,
                        confusion ? "nothing was evaluated yet" : "the model has no confusion(...) among its metrics");
    memcpy(counts, session->confusion, (size_t)confusion->classes * (size_t)confusion->classes * sizeof *counts);
    return 0;
}

int mtc_set_metrics(MtcSession *session, const MtcData *data, const void *kept, double *metrics) {
    const MtcModel *model = session->model;
    const int64_t count = (int64_t)(mtc_set_values_bytes(session, data) / number_bytes(session));
    Widened values = {count ? (double *)malloc((size_t)count * sizeof *values.at) : NULL, data->examples,
                      data->examples};
    if (count && !values.at)
        return mtc_no_memory(&session->fault, (size_t)count * sizeof *values.at, "metrics over a set");
    widen_values(session, kept, count, values.at);
    if (count && model->weighted)
        drop_weightless(model, &values);
    for (int m = 0; m < model->set_metrics; m++) {
        const MtcSetValues given = values_of(model, &model->set_metric[m], &values);
        metrics[m] = model->set_metric[m].compute(&model->set_metric[m], &given);
    }
    int code = 0;
    if (model->confusion) {
        const MtcSetValues given = values_of(model, model->confusion, &values);
        code = count_confusion(session, &given);
    }
    free(values.at);
    return code;
}
