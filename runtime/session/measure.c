/* What the buffers of a model describe: mean and standard deviation of the fields that it normalises, over the training
 * examples, in the order of the file, which the device computes, of some batches at a time; and filters made of sums over them (whiten.c). */
#include "session/measure.h"

#include "ranks/ranks.h"
#include "session/feed.h"
#include "session/finite.h"
#include "session/library.h"
#include "session/run.h"
#include "session/weights.h"
#include "session/whiten.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- groups of batches ---- */

/* The device takes batch after batch into mean and deviation, and rounds each time: of thousands of batches, as many as shards or a small batch make,
 * that cost a digit. It begins anew with each group of so many, and the host takes what a group gave into numbers in double. */
enum { GROUP = 4 };

/* Of a field. `mean`, `std` NULL: it is not normalised. */
typedef struct Moments {
    const MtcTensor *mean, *std;
    double *centre, *squares; /* of each element: its mean; the sum of the squares of its differences from that */
    int64_t examples;         /* so far */
} Moments;

static const MtcTensor *find_statistic(const MtcSession *session, const MtcField *field, const char *statistic) {
    char name[256];
    snprintf(name, sizeof name, "%s.%s", field->name, statistic);
    const MtcTensor *tensor = mtc_find_tensor(session->model, name);
    return tensor && tensor->role == MTC_BUFFER ? tensor : NULL;
}

static double number_at(const MtcTensor *tensor, const void *values, int64_t i) {
    return tensor->type == MTC_F64 ? ((const double *)values)[i] : (double)((const float *)values)[i];
}

static void put_statistic(const MtcTensor *tensor, void *values, int64_t i, double number) {
    if (tensor->type == MTC_F64)
        ((double *)values)[i] = number;
    else
        ((float *)values)[i] = (float)number;
}

static int64_t numbers_of(const MtcTensor *tensor) {
    return (int64_t)(mtc_tensor_bytes(tensor) / mtc_type_size(tensor->type));
}

/* n examples of mean m and variance v beside N of mean M (Chan, Golub and LeVeque):
 *
 *     M' = M + n / (N + n) (m - M),  S' = S + n v + n N / (N + n) (m - M)^2 */
static void take_moments(Moments *all, const void *mean, const void *std, int64_t examples) {
    const double n = (double)examples, before = (double)all->examples;
    for (int64_t i = 0; i < numbers_of(all->mean); i++) {
        const double shift = number_at(all->mean, mean, i) - all->centre[i], deviation = number_at(all->std, std, i);
        all->centre[i] += n / (before + n) * shift;
        all->squares[i] += n * deviation * deviation + n * before / (before + n) * shift * shift;
    }
    all->examples += examples;
}

static int take_group(MtcSession *session, Moments *moments, int64_t examples) {
    int code = 0;
    for (int i = 0; i < session->model->fields && !code; i++) {
        Moments *all = &moments[i];
        if (!all->std)
            continue;
        const size_t bytes = mtc_tensor_bytes(all->mean);
        char *values = (char *)mtc_memory(NULL, 2 * bytes);
        code = mtc_read_tensor(session, all->mean, values);
        code = code ? code : mtc_read_tensor(session, all->std, values + bytes);
        if (!code)
            take_moments(all, values, values + bytes, examples);
        free(values);
    }
    return code;
}

static int give_moments(MtcSession *session, const Moments *all) {
    void *values = mtc_memory(NULL, mtc_tensor_bytes(all->mean));
    for (int64_t i = 0; i < numbers_of(all->mean); i++)
        put_statistic(all->mean, values, i, all->centre[i]);
    int code = mtc_write_tensor(session, all->mean, values);
    for (int64_t i = 0; i < numbers_of(all->std); i++)
        put_statistic(all->std, values, i, sqrt(all->squares[i] / (double)all->examples));
    code = code ? code : mtc_write_tensor(session, all->std, values);
    free(values);
    return code;
}

static Moments *moments_of(const MtcSession *session) {
    const MtcModel *model = session->model;
    Moments *moments = (Moments *)mtc_zeroed((size_t)model->fields * sizeof *moments);
    for (int i = 0; i < model->fields; i++) {
        Moments *all = &moments[i];
        all->mean = find_statistic(session, &model->field[i], "mean");
        all->std = all->mean ? find_statistic(session, &model->field[i], "std") : NULL;
        const size_t numbers = all->std ? (size_t)numbers_of(all->mean) : 0;
        all->centre = (double *)mtc_zeroed((2 * numbers + 1) * sizeof *all->centre);
        all->squares = all->centre + numbers;
    }
    return moments;
}

static void free_moments(const MtcSession *session, Moments *moments) {
    for (int i = 0; i < session->model->fields; i++)
        free(moments[i].centre);
    free(moments);
}

/* ---- the training data ---- */

/* As if example `begin` were the first. */
static MtcRun run_from(const MtcSession *session, const MtcRun *run, int64_t begin) {
    MtcRun shifted = *run;
    for (int i = 0; i < session->model->fields; i++) {
        const size_t from = (size_t)(begin * run->data.stride[i]) * mtc_type_size(session->model->field[i].type);
        shifted.data.field[i] = (const void *)((uintptr_t)run->data.field[i] + from);
    }
    return shifted;
}

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

/* Those that a feed has on the device end at `ready`. */
static const char *feed_more(MtcSession *session, MtcRun *run, int64_t first, int64_t *ready) {
    const int64_t step = mtc_step_examples(session->model), examples = session->data[MTC_TRAIN].examples;
    int64_t steps = 0;
    const char *error = mtc_feed_pass(session, first / step, &steps, &run->data);
    *ready = first + steps * step < examples ? first + steps * step : examples;
    return error;
}

/* The examples from `begin` on, of a group; a batch of a shard ends with that of its step, as windows of a feed do. */
static const char *enqueue_group(MtcSession *session, MtcRun *run, MtcWhitening *whitening, int64_t begin, int64_t end,
                                 int64_t *ready) {
    const int64_t batch = session->model->batch, step = mtc_step_examples(session->model);
    const char *error = NULL;
    for (int64_t first = begin; first < end && !error;) {
        const int64_t whole = (first / step + 1) * step, left = (whole < end ? whole : end) - first;
        const int64_t rows = left < batch ? left : batch;
        mtc_meter_part(&session->meter, "measuring", first, session->data[MTC_TRAIN].examples);
        if (session->feed && first == *ready)
            error = feed_more(session, run, first, ready);
        const MtcRun shifted = run_from(session, run, begin);
        error = error ? error : measure_batch(session, &shifted, whitening, first - begin, first - begin + rows);
        first += rows;
        if (session->feed && first == *ready && !error)
            error = mtc_feed_ahead(session);
    }
    return error;
}

static int measure_groups(MtcSession *session, MtcWhitening *whitening, Moments *moments) {
    const MtcData *data = &session->data[MTC_TRAIN];
    const int64_t group = GROUP * mtc_step_examples(session->model);
    MtcRun run = mtc_run(session, data, session->evaluation);
    int64_t ready = 0;
    int code = 0;
    run.order = NULL;
    session->writes++;
    for (int64_t begin = 0; begin < data->examples && !code; begin += group) {
        const int64_t end = begin + group < data->examples ? begin + group : data->examples;
        code = mtc_device_fault(session, enqueue_group(session, &run, whitening, begin, end, &ready),
                                "measuring the training data");
        if (!code && data->examples > group)
            code = take_group(session, moments, end - begin);
    }
    for (int i = 0; i < session->model->fields && !code; i++)
        if (moments[i].examples)
            code = give_moments(session, &moments[i]);
    return code;
}

static int measure_data(MtcSession *session, MtcWhitening *whitening) {
    Moments *moments = moments_of(session);
    const int code = measure_groups(session, whitening, moments);
    free_moments(session, moments);
    return code;
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
        MtcBadNumber bad;
        const MtcTensor *tensor = find_statistic(session, field, statistics[i]);
        if (!tensor)
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
    code = model->measure && !code ? measure_data(session, &whitening) : code;
    code = code ? code : mtc_make_filters(session, &whitening);
    mtc_end_whitening(&whitening);
    for (int i = 0; i < model->fields && model->measure && !code; i++)
        code = check_field(session, &model->field[i]);
    return code;
}
