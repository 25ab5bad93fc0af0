/* bench: how fast a training step is. One line of JSON. */
#include "commands/bench.h"
#include "commands/members.h"
#include "commands/together.h"
#include "data/source.h"
#include "random.h"
#include "ranks/ranks.h"
#include "session/feed.h"
#include "session/library.h"
#include "session/run.h"
#include "session/session_data.h"
#include "session/train.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WARM_UP_STEPS = 50, BENCH_EXAMPLES_MOST = 1 << 16, BENCH_BYTES_MOST = 1 << 28 };

/* Random examples, where the data files are not at hand: zeros would flatter, since they cost less power. */
static void *random_field(const MtcField *field, int stream, int64_t count) {
    int64_t elements = count * field->elements;
    void *values = malloc((size_t)elements * mtc_type_size(field->type));
    for (int64_t i = 0; i < elements && values; i++) {
        uint32_t word = mtc_random(1, (uint32_t)stream, 0, (uint64_t)i);
        uint32_t small = word % (field->classes ? (uint32_t)field->classes : 256);
        if (field->type == MTC_F32)
            ((float *)values)[i] = mtc_unit(word);
        else if (field->classes)
            mtc_put_class(field, values, i, small);
        else if (field->type == MTC_I32)
            ((int32_t *)values)[i] = (int32_t)small;
        else
            ((uint8_t *)values)[i] = (uint8_t)small;
    }
    return values;
}

/* 64 batches, unless that is very much. */
static int64_t random_examples(const MtcModel *model) {
    const int64_t batch = mtc_step_examples(model), count = 64 * batch;
    int64_t bytes = 0;
    for (int i = 0; i < model->fields; i++)
        bytes += (int64_t)mtc_example_bytes(&model->field[i]);
    return count < BENCH_EXAMPLES_MOST && bytes * count < BENCH_BYTES_MOST ? count : batch;
}

static int set_random_data(MtcSession *session) {
    const MtcModel *model = session->model;
    MtcExamples examples;
    memset(&examples, 0, sizeof examples);
    examples.count = random_examples(model);
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
        if (mtc_find_source(&fault, model, origin, i, NULL, &found))
            return false;
        free(found);
    }
    return split != NULL;
}

int mtc_open_trial(MtcFault *fault, const MtcModel *model, const MtcOptions *options, MtcSession **session,
                   bool *real_data) {
    *real_data = !options->random_data && (options->data || data_at_hand(model));
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

/* `steps` forward passes over batches of the training data, one batch after the other. */
static int run_forward(MtcSession *session, int64_t rows, int64_t steps) {
    MtcRun run = mtc_run(session, &session->data[MTC_TRAIN], session->evaluation);
    int64_t batches = run.data.examples / rows, ready;
    const char *error = NULL;
    run.order = NULL;
    if (session->feed) { /* its first window again and again */
        error = mtc_feed_pass(session, 0, &ready, &run.data);
        const int64_t whole = ready * mtc_step_examples(session->model) / rows;
        batches = whole < 1 ? 1 : whole < batches ? whole : batches;
    }
    for (int64_t step = 0; step < steps && !error; step++)
        error = mtc_model_eval(session->model, &run, step % batches * rows, rows, 0);
    return mtc_device_fault(session, error ? error : mtc_synchronize(), "the forward pass");
}

/* Seconds of one run. */
static int time_run(MtcSession *session, const MtcOptions *options, int64_t steps, double *seconds) {
    double start = mtc_seconds();
    int code = options->forward ? run_forward(session, options->batch, steps) : mtc_train(session, steps, NULL);
    *seconds = mtc_seconds() - start;
    return code;
}

static const double WARM_UP_SECONDS = 1;

/* First one step twice, for a large model's may take seconds; then as many as take about half a second, unless they are given. Of several ranks,
 * rank 0's clock decides. */
static int steps_per_run(MtcSession *session, const MtcOptions *options, int64_t *steps) {
    double seconds = 0;
    int64_t some = 1;
    int code = 0;
    for (int i = 0; i < 4 && !code; i++) {
        mtc_meter_part(&session->meter, "warming up", i, 4);
        code = time_run(session, options, some, &seconds);
        seconds = fmax(seconds, 1e-6);
        if (i == 1)
            some = (int64_t)fmax(1, fmin(WARM_UP_STEPS, WARM_UP_SECONDS / seconds));
        code = code ? code : mtc_ranks_share(&session->fault, &some, sizeof some, true);
    }
    *steps = options->steps ? options->steps : 1 + (int64_t)(0.5 * (double)some / seconds);
    return code ? code : mtc_ranks_share(&session->fault, steps, sizeof *steps, true);
}

int mtc_time_steps(MtcSession *session, const MtcOptions *options, MtcStepTimes *times) {
    double *seconds = (double *)calloc((size_t)options->runs, sizeof *seconds);
    if (!seconds)
        return mtc_no_memory(&session->fault, sizeof *seconds, "times");
    times->runs = options->runs;
    int code = steps_per_run(session, options, &times->steps);
    for (int64_t i = 0; i < times->runs && !code; i++) {
        mtc_meter_part(&session->meter, "measuring runs", i, times->runs);
        code = time_run(session, options, times->steps, &seconds[i]);
    }
    mtc_meter_clear(&session->meter);
    times->median = mtc_median(seconds, times->runs) / (double)times->steps;
    times->best = seconds[0] / (double)times->steps;
    times->worst = seconds[times->runs - 1] / (double)times->steps;
    free(seconds);
    return code;
}

static void add_step_times(MtcText *text, const MtcModel *model, const MtcStepTimes *times) {
    mtc_add_number(text, "us_per_step", 1e6 * times->median);
    mtc_add_number(text, "us_per_step_best", 1e6 * times->best);
    mtc_add_number(text, "us_per_step_worst", 1e6 * times->worst);
    mtc_add_number(text, "steps_per_second", 1 / times->median);
    mtc_add_number(text, "examples_per_second", (double)mtc_step_examples(model) / times->median);
    mtc_add_number(text, "gflops", 1e-9 * model->flops_per_step / times->median);
}

static void add_forward_times(MtcText *text, int64_t batch, const MtcStepTimes *times) {
    mtc_add_number(text, "us_per_batch", 1e6 * times->median);
    mtc_add_number(text, "us_per_batch_best", 1e6 * times->best);
    mtc_add_number(text, "us_per_batch_worst", 1e6 * times->worst);
    mtc_add_number(text, "examples_per_second", (double)batch / times->median);
}

static void print_bench(const MtcSession *session, const MtcOptions *options, const MtcStepTimes *times,
                        bool real_data) {
    const MtcModel *model = session->model;
    MtcText text = {NULL, 0, 0};
    mtc_text_add(&text, "{\"event\":\"bench\"");
    mtc_add_field(&text, "model", model->name);
    mtc_add_field(&text, "target", model->target);
    mtc_add_field(&text, "schedule", model->schedule);
    mtc_add_field(&text, "device", session->device.name);
    mtc_add_field(&text, "data", real_data ? "train" : "random");
    mtc_add_field(&text, "pass", options->forward ? "forward" : "training");
    mtc_add_count(&text, "ranks", mtc_rank_count());
    mtc_add_count(&text, "batch", options->forward ? options->batch : mtc_step_examples(model));
    mtc_add_count(&text, "steps", times->steps);
    mtc_add_count(&text, "runs", times->runs);
    if (options->forward)
        add_forward_times(&text, options->batch, times);
    else
        add_step_times(&text, model, times);
    mtc_add_count(&text, "planned_bytes", (int64_t)model->arena_bytes);
    mtc_add_count(&text, "device_bytes", (int64_t)mtc_device_bytes(&session->device));
    mtc_add_start(&text, session);
    printf("%s}\n", text.at);
    free(text.at);
}

/* The model's prepared steps are for a fixed number of examples, of which a forward pass may have fewer. */
static int check_batch(MtcFault *fault, const MtcModel *model, MtcOptions *options) {
    if (options->batch && !options->forward)
        return mtc_fail(fault, MTC_USAGE, "--batch is of the forward pass: bench --forward --batch %lld",
                        (long long)options->batch);
    if (model->quantized && !options->forward)
        return mtc_fail(fault, MTC_USAGE, "this program computes in int8, and trains nothing: bench --forward");
    if (options->batch > model->batch)
        return mtc_fail(fault, MTC_USAGE, "--batch is at most %lld, which 'batch' of the model's train block says",
                        (long long)model->batch);
    options->batch = options->batch ? options->batch : model->batch;
    return 0;
}

static int check_examples(MtcFault *fault, const MtcSession *session, const MtcOptions *options) {
    const int64_t examples = session->data[MTC_TRAIN].examples;
    return !options->forward || examples >= options->batch
               ? 0
               : mtc_fail(fault, MTC_USAGE,
                          "there are %lld examples, fewer than the batch of %lld: --batch, or --random-data",
                          (long long)examples, (long long)options->batch);
}

static int measure_bench(MtcFault *fault, MtcSession *session, const MtcOptions *options, bool real_data) {
    MtcStepTimes times;
    int code = mtc_time_steps(session, options, &times);
    if (code)
        *fault = session->fault;
    else
        print_bench(session, options, &times, real_data);
    return code;
}

/* A forward pass has nothing to add up: each rank would measure the same. */
static int check_bench_ranks(MtcFault *fault, const MtcModel *model, const MtcOptions *options) {
    return options->forward && mtc_rank_count() > 1
               ? mtc_fail(fault, MTC_USAGE, "bench --forward is of one process, and this one is one of %d",
                          mtc_rank_count())
               : mtc_check_ranks(fault, model, options->program, mtc_rank_count());
}

int mtc_command_bench(MtcFault *fault, const MtcModel *model, const MtcOptions *given) {
    MtcSession *session = NULL;
    MtcOptions options = *given;
    bool real_data = false, waited;
    const int joined = mtc_join_others(fault, model, given, !given->forward, &waited);
    if (joined || waited)
        return joined;
    int code = mtc_quiet_other_ranks(fault, &options);
    if (!code)
        code = check_bench_ranks(fault, model, &options);
    if (!code)
        code = check_batch(fault, model, &options);
    if (!code)
        code = mtc_open_trial(fault, model, &options, &session, &real_data);
    if (!code)
        code = check_examples(fault, session, &options);
    code = mtc_ranks_ready(fault, code);
    if (!code)
        code = mtc_agree(fault, session, &options);
    if (!code)
        code = measure_bench(fault, session, &options, real_data);
    mtc_leave_together(session, code);
    return code;
}
