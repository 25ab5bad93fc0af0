/* bench: how fast a training step is. One line of JSON. */
#include "cli.h"
#include "random.h"
#include "train.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WARM_UP_STEPS = 50, BENCH_EXAMPLES_MOST = 1 << 16 };

/* Random examples, where the data files are not at hand: zeros would flatter, since they cost less power. */
static void *random_field(const MtcField *field, int stream, int64_t count) {
    int64_t elements = count * field->elements;
    void *values = malloc((size_t)elements * mtc_type_size(field->type));
    for (int64_t i = 0; i < elements && values; i++) {
        uint32_t word = mtc_random(1, (uint32_t)stream, 0, (uint64_t)i);
        uint32_t small = word % (field->classes ? (uint32_t)field->classes : 256);
        if (field->type == MTC_F32)
            ((float *)values)[i] = mtc_unit(word);
        else if (field->type == MTC_I32)
            ((int32_t *)values)[i] = (int32_t)small;
        else
            ((uint8_t *)values)[i] = (uint8_t)small;
    }
    return values;
}

static int set_random_data(MtcSession *session) {
    const MtcModel *model = session->model;
    MtcExamples examples;
    memset(&examples, 0, sizeof examples);
    examples.count = 64 * model->batch < BENCH_EXAMPLES_MOST ? 64 * model->batch : model->batch;
    int code = 0;
    for (int i = 0; i < model->fields && !code; i++)
        if (!(examples.field[i] = random_field(&model->field[i], i, examples.count)))
            code = mtc_no_memory(&session->fault, 0, "random examples");
    if (!code)
        code = mtc_session_set_data(session, MTC_TRAIN, &examples);
    mtc_examples_free(&examples);
    return code;
}

static bool data_at_hand(const MtcModel *model) {
    const MtcSplit *split = mtc_split(model, "train");
    MtcFault fault;
    char *found;
    for (int i = 0; split && i < split->paths; i++) {
        if (mtc_find_data(&fault, model->source, NULL, split->path[i], &found))
            return false;
        free(found);
    }
    return split != NULL;
}

static int compare_seconds(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Seconds of each run, sorted. */
static int measure(MtcSession *session, int64_t steps, int64_t runs, double *seconds) {
    int code = mtc_train(session, WARM_UP_STEPS, NULL);
    for (int64_t i = 0; i < runs && !code; i++) {
        double start = mtc_seconds();
        code = mtc_train(session, steps, NULL);
        seconds[i] = mtc_seconds() - start;
    }
    qsort(seconds, (size_t)runs, sizeof *seconds, compare_seconds);
    return code;
}

/* As many steps as take about half a second, unless they are given. */
static int steps_per_run(MtcSession *session, const MtcOptions *options, int64_t *steps) {
    *steps = options->steps;
    if (*steps)
        return 0;
    double seconds = 0;
    int code = measure(session, WARM_UP_STEPS, 1, &seconds);
    *steps = 1 + (int64_t)(0.5 * WARM_UP_STEPS / (seconds > 1e-6 ? seconds : 1e-6));
    return code;
}

static void print_bench(const MtcSession *session, int64_t steps, int64_t runs, const double *seconds, bool real_data) {
    const MtcModel *model = session->model;
    MtcText text = {NULL, 0, 0};
    double median = seconds[runs / 2] / (double)steps;
    mtc_text_add(&text, "{\"event\":\"bench\"");
    mtc_add_field(&text, "model", model->name);
    mtc_add_field(&text, "target", model->target);
    mtc_add_field(&text, "schedule", model->schedule);
    mtc_add_field(&text, "device", session->device.name);
    mtc_add_field(&text, "data", real_data ? "train" : "random");
    mtc_add_count(&text, "batch", model->batch);
    mtc_add_count(&text, "steps", steps);
    mtc_add_count(&text, "runs", runs);
    mtc_add_number(&text, "us_per_step", 1e6 * median);
    mtc_add_number(&text, "us_per_step_best", 1e6 * seconds[0] / (double)steps);
    mtc_add_number(&text, "us_per_step_worst", 1e6 * seconds[runs - 1] / (double)steps);
    mtc_add_number(&text, "steps_per_second", 1 / median);
    mtc_add_number(&text, "examples_per_second", (double)model->batch / median);
    mtc_add_number(&text, "gflops", 1e-9 * model->flops_per_step / median);
    mtc_add_start(&text, session);
    printf("%s}\n", text.at);
    free(text.at);
}

static int bench_session(MtcSession *session, const MtcOptions *options, bool real_data) {
    int64_t steps;
    double *seconds = (double *)calloc((size_t)options->runs, sizeof *seconds);
    if (!seconds)
        return mtc_no_memory(&session->fault, sizeof *seconds, "times");
    int code = steps_per_run(session, options, &steps);
    if (!code)
        code = measure(session, steps, options->runs, seconds);
    if (!code)
        print_bench(session, steps, options->runs, seconds, real_data);
    free(seconds);
    return code;
}

int mtc_command_bench(MtcFault *fault, const MtcModel *model, const MtcOptions *options) {
    MtcSession *session;
    bool real_data = options->data || data_at_hand(model);
    int code = mtc_open_session(fault, model, options, real_data ? "train" : NULL, NULL, &session);
    if (code) {
        mtc_destroy(session);
        return code;
    }
    code = real_data ? 0 : set_random_data(session);
    if (!code)
        code = bench_session(session, options, real_data);
    if (code)
        *fault = session->fault;
    mtc_destroy(session);
    return code;
}
