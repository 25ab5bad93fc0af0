/* bench: how fast a training step is. One line of JSON. */
#include "bench.h"
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
    const MtcOrigin *origin = split ? &model->origin[split->origin] : NULL;
    MtcFault fault;
    char *found;
    for (int i = 0; origin && i < origin->paths; i++) {
        if (mtc_find_data(&fault, model->source, NULL, origin->path[i], &found))
            return false;
        free(found);
    }
    return split != NULL;
}

int mtc_open_trial(MtcFault *fault, const MtcModel *model, const MtcOptions *options, MtcSession **session,
                   bool *real_data) {
    *real_data = options->data || data_at_hand(model);
    int code = mtc_open_session(fault, model, options, *real_data ? "train" : NULL, NULL, session);
    if (code)
        return code;
    code = *real_data ? 0 : set_random_data(*session);
    if (code)
        *fault = (*session)->fault;
    return code;
}

static int compare_numbers(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double mtc_median(double *values, int64_t count) {
    qsort(values, (size_t)count, sizeof *values, compare_numbers);
    return values[count / 2];
}

/* Seconds of one run. */
static int time_run(MtcSession *session, int64_t steps, double *seconds) {
    double start = mtc_seconds();
    int code = mtc_train(session, steps, NULL);
    *seconds = mtc_seconds() - start;
    return code;
}

/* As many steps as take about half a second, unless they are given. */
static int steps_per_run(MtcSession *session, const MtcOptions *options, int64_t *steps) {
    double seconds = 0;
    int code = time_run(session, WARM_UP_STEPS, &seconds);
    if (!code)
        code = time_run(session, WARM_UP_STEPS, &seconds);
    *steps = options->steps ? options->steps : 1 + (int64_t)(0.5 * WARM_UP_STEPS / (seconds > 1e-6 ? seconds : 1e-6));
    return code;
}

int mtc_time_steps(MtcSession *session, const MtcOptions *options, MtcStepTimes *times) {
    double *seconds = (double *)calloc((size_t)options->runs, sizeof *seconds);
    if (!seconds)
        return mtc_no_memory(&session->fault, sizeof *seconds, "times");
    times->runs = options->runs;
    int code = steps_per_run(session, options, &times->steps);
    for (int64_t i = 0; i < times->runs && !code; i++)
        code = time_run(session, times->steps, &seconds[i]);
    times->median = mtc_median(seconds, times->runs) / (double)times->steps;
    times->best = seconds[0] / (double)times->steps;
    times->worst = seconds[times->runs - 1] / (double)times->steps;
    free(seconds);
    return code;
}

static void print_bench(const MtcSession *session, const MtcStepTimes *times, bool real_data) {
    const MtcModel *model = session->model;
    MtcText text = {NULL, 0, 0};
    mtc_text_add(&text, "{\"event\":\"bench\"");
    mtc_add_field(&text, "model", model->name);
    mtc_add_field(&text, "target", model->target);
    mtc_add_field(&text, "schedule", model->schedule);
    mtc_add_field(&text, "device", session->device.name);
    mtc_add_field(&text, "data", real_data ? "train" : "random");
    mtc_add_count(&text, "batch", model->batch);
    mtc_add_count(&text, "steps", times->steps);
    mtc_add_count(&text, "runs", times->runs);
    mtc_add_number(&text, "us_per_step", 1e6 * times->median);
    mtc_add_number(&text, "us_per_step_best", 1e6 * times->best);
    mtc_add_number(&text, "us_per_step_worst", 1e6 * times->worst);
    mtc_add_number(&text, "steps_per_second", 1 / times->median);
    mtc_add_number(&text, "examples_per_second", (double)model->batch / times->median);
    mtc_add_number(&text, "gflops", 1e-9 * model->flops_per_step / times->median);
    mtc_add_start(&text, session);
    printf("%s}\n", text.at);
    free(text.at);
}

int mtc_command_bench(MtcFault *fault, const MtcModel *model, const MtcOptions *options) {
    MtcSession *session;
    MtcStepTimes times;
    bool real_data;
    int code = mtc_open_trial(fault, model, options, &session, &real_data);
    if (!code) {
        code = mtc_time_steps(session, options, &times);
        if (code)
            *fault = session->fault;
        else
            print_bench(session, &times, real_data);
    }
    mtc_destroy(session);
    return code;
}
