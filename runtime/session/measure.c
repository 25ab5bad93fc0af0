/* What the buffers of a model describe: mean and standard deviation of the fields that it normalises, over the training
 * examples, in the order of the file, which the device computes; and filters made of sums over them (whiten.c). */
#include "session/measure.h"

#include "ranks/ranks.h"
#include "session/feed.h"
#include "session/finite.h"
#include "session/library.h"
#include "session/run.h"
#include "session/weights.h"
#include "session/whiten.h"

#include <stdio.h>
#include <stdlib.h>

/* The examples [first, end) of a batch, as many at a time as the sums hold that are read after each time. */
static const char *measure_batch(MtcSession *session, const MtcRun *run, MtcWhitening *whitening, int64_t first,
                                 int64_t end) {
    const int64_t batch = session->model->batch;
    const int64_t most = whitening->most && whitening->most < batch ? whitening->most : batch;
    const char *error = NULL;
    for (int64_t rows; first < end && !error; first += rows) {
        rows = end - first < most ? end - first : most;
        error = mtc_model_measure(session->model, run, first, rows);
        error = error ? error : mtc_add_sums(whitening, session, rows);
    }
    return error;
}

static int enqueue(MtcSession *session, MtcWhitening *whitening) {
    const MtcData *data = &session->data[MTC_TRAIN];
    int64_t batch = session->model->batch;
    MtcRun run = mtc_run(session, data, session->evaluation);
    const char *error = NULL;
    int64_t ready = 0; /* of a feed: batches that are on the device */
    run.order = NULL;
    session->writes++;
    for (int64_t first = 0; first < data->examples && !error; first += batch) {
        int64_t left = data->examples - first;
        mtc_meter_part(&session->meter, "measuring", first, data->examples);
        if (session->feed && ready-- == 0) {
            error = mtc_feed_pass(session, first / batch, &ready, &run.data);
            ready--;
        }
        error = error ? error : measure_batch(session, &run, whitening, first, first + (left < batch ? left : batch));
        if (session->feed && ready == 0 && !error)
            error = mtc_feed_ahead(session);
    }
    return mtc_device_fault(session, error, "measuring the training data");
}

/* ---- what came out ---- */

static int not_finite(MtcSession *session, const MtcTensor *tensor, const MtcBadNumber *bad) {
    const MtcData *data = &session->data[MTC_TRAIN];
    bool found;
    mtc_fail(&session->fault, MTC_BAD_DATA, "'%s' of the training data: %s", tensor->name,
             mtc_bad_element_text(bad, tensor));
    mtc_note_statement(&session->fault, session->model, tensor->statement);
    int code = mtc_note_bad_data(session, data, "train", NULL, data->examples, &found);
    if (!code && !found)
        mtc_note(&session->fault, "the data are finite: their squares are too large for this type of number");
    return code ? code : session->fault.code;
}

/* A field that is the same in all examples is useless to the model, and most often a mistake. */
static void warn_constant(MtcSession *session, const MtcField *field, int64_t constant, int64_t first) {
    long long examples = (long long)session->data[MTC_TRAIN].examples;
    mtc_meter_clear(&session->meter);
    fprintf(stderr, "%s: warning: ", session->program);
    if (field->elements == 1)
        fprintf(stderr, "field '%s' is", field->name);
    else if (constant == 1)
        fprintf(stderr, "element %s of field '%s' is", mtc_index(first, field->rank, field->dim), field->name);
    else
        fprintf(stderr, "%lld of the %lld elements of field '%s', the first of them %s, are", (long long)constant,
                (long long)field->elements, field->name, mtc_index(first, field->rank, field->dim));
    fprintf(stderr, " the same in all %lld training examples: normalized, %s 0\n", examples,
            constant == 1 ? "it is" : "they are");
}

static double number_at(const MtcTensor *tensor, const void *values, int64_t i) {
    return tensor->type == MTC_F64 ? ((const double *)values)[i] : (double)((const float *)values)[i];
}

static int check_deviation(MtcSession *session, const MtcField *field, const MtcTensor *std) {
    size_t bytes = mtc_tensor_bytes(std);
    int64_t constant = 0, first = 0;
    void *values = malloc(bytes);
    if (!values)
        return mtc_no_memory(&session->fault, bytes, std->name);
    int code = mtc_read_tensor(session, std, values);
    for (int64_t i = field->elements - 1; i >= 0 && !code; i--)
        if (number_at(std, values, i) == 0) {
            constant++;
            first = i;
        }
    free(values);
    if (constant && session->program && !mtc_rank())
        warn_constant(session, field, constant, first);
    return code;
}

/* `<field>.mean` and `<field>.std`, of a field that is normalised. */
static int check_field(MtcSession *session, const MtcField *field) {
    static const char *const statistics[] = {"mean", "std"};
    int code = 0;
    for (int i = 0; i < 2 && !code; i++) {
        char name[256];
        MtcBadNumber bad;
        snprintf(name, sizeof name, "%s.%s", field->name, statistics[i]);
        const MtcTensor *tensor = mtc_find_tensor(session->model, name);
        if (!tensor || tensor->role != MTC_BUFFER)
            return 0;
        code = mtc_examine_tensor(session, tensor, &bad);
        if (!code && bad.found)
            code = not_finite(session, tensor, &bad);
        else if (!code && i == 1)
            code = check_deviation(session, field, tensor);
    }
    return code;
}

int mtc_measure(MtcSession *session) {
    const MtcModel *model = session->model;
    MtcWhitening whitening;
    int code = mtc_begin_whitening(session, &whitening);
    code = model->measure && !code ? enqueue(session, &whitening) : code;
    code = code ? code : mtc_make_filters(session, &whitening);
    mtc_end_whitening(&whitening);
    for (int i = 0; i < model->fields && model->measure && !code; i++)
        code = check_field(session, &model->field[i]);
    return code;
}
