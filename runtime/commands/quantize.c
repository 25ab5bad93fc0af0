/* quantize: weights of floats become those of a program that computes in int8, with the scales of what they are multiplied with, which
 * some training examples show. */
#include "checkpoint/checkpoint.h"
#include "commands/cli.h"
#include "ranks/ranks.h"
#include "session/finite.h"
#include "session/run.h"
#include "session/scales.h"
#include "session/watch.h"
#include "session/weights.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

typedef struct Calibration {
    MtcSession *session;
    MtcSizes *sizes; /* one for each weight of integers */
} Calibration;

static int add_input(void *user, int row, const void *values, int64_t count) {
    const Calibration *calibration = (const Calibration *)user;
    const MtcModel *model = calibration->session->model;
    for (int i = 0; i < model->quantized; i++) {
        const MtcQuantized *quantized = &model->quantized_weight[i];
        if (row < quantized->first_input || row >= quantized->first_input + quantized->inputs)
            continue;
        const int64_t bad = mtc_add_sizes(&calibration->sizes[i], (const float *)values, count);
        if (bad >= 0) {
            mtc_fail(&calibration->session->fault, MTC_BAD_DATA,
                     "what '%s' is multiplied with is %s for some training example",
                     model->tensor[quantized->weight].name, mtc_number((double)((const float *)values)[bad]));
            mtc_note(&calibration->session->fault, "%s  %s", model->print[row].at, model->print[row].text);
            return calibration->session->fault.code;
        }
    }
    return 0;
}

/* The examples lie in the order that chose them. */
static int lay_out(MtcSession *session) {
    const int64_t examples = session->data[MTC_TRAIN].examples;
    int *order = (int *)mtc_memory(NULL, (size_t)examples * sizeof *order);
    for (int64_t i = 0; i < examples; i++)
        order[i] = (int)i;
    const char *error = mtc_upload(session->order, order, (size_t)examples * sizeof *order);
    free(order);
    return mtc_device_fault(session, error, "the order");
}

static int look_at_examples(Calibration *calibration) {
    MtcSession *session = calibration->session;
    const int64_t examples = session->data[MTC_TRAIN].examples, batch = session->model->batch;
    int code = lay_out(session);
    for (int64_t step = 0; step * batch < examples && !code; step++) {
        const int64_t clock[3] = {step, step, 0}, left = examples - step * batch;
        mtc_meter_part(&session->meter, "calibrating", step, (examples + batch - 1) / batch);
        code = mtc_device_fault(session, mtc_upload(session->clock, clock, sizeof clock), "the clock");
        const MtcRun run = mtc_run(session, &session->data[MTC_TRAIN], session->evaluation);
        if (!code)
            code = mtc_visit_printed(session, &run, left < batch ? left : batch, add_input, calibration);
    }
    mtc_meter_clear(&session->meter);
    return code;
}

static int calibrate(MtcSession *session) {
    const MtcModel *model = session->model;
    Calibration calibration = {session, (MtcSizes *)mtc_zeroed((size_t)model->quantized * sizeof(MtcSizes))};
    int code = look_at_examples(&calibration);
    for (int i = 0; i < model->quantized && !code; i++) {
        const float scale = mtc_scale_of_sizes(&calibration.sizes[i]);
        code = mtc_write_tensor(session, &model->tensor[model->quantized_weight[i].input_scale], &scale);
    }
    free(calibration.sizes);
    return code;
}

static void report(const MtcSession *session, const MtcOptions *options) {
    const MtcModel *model = session->model;
    int64_t integers = 0;
    struct stat before, after;
    for (int i = 0; i < model->quantized; i++) {
        const MtcTensor *tensor = &model->tensor[model->quantized_weight[i].weight];
        integers += mtc_elements(tensor->rank, tensor->dim);
    }
    printf("%d weight%s, %lld of %lld parameters, in int8; what they are multiplied with by %lld examples\n",
           model->quantized, model->quantized == 1 ? "" : "s", (long long)integers, (long long)model->parameters,
           (long long)session->data[MTC_TRAIN].examples);
    if (stat(options->load, &before) == 0 && stat(options->save, &after) == 0)
        printf("saved: %s, %s; %s has %s\n", mtc_harmless(options->save), mtc_bytes((double)after.st_size),
               mtc_harmless(options->load), mtc_bytes((double)before.st_size));
}

/* The floats cannot be made of the integers again. */
static int check_files(MtcFault *fault, const MtcOptions *options) {
    struct stat before, after;
    if (!options->save)
        return mtc_fail(fault, MTC_USAGE, "quantize needs a file to write: --save FILE");
    if (stat(options->load, &before) != 0 || stat(options->save, &after) != 0 || before.st_ino != after.st_ino ||
        before.st_dev != after.st_dev)
        return 0;
    return mtc_fail(fault, MTC_CANT_CREATE, "--load %s and --save %s are the same file: it would be overwritten",
                    options->load, options->save);
}

int mtc_command_quantize(MtcFault *fault, const MtcModel *model, const MtcOptions *given) {
    MtcSession *session = NULL;
    MtcOptions options = *given;
    options.of_floats = true;
    int code = check_files(fault, &options);
    if (!code)
        code = mtc_open_session(fault, model, &options, "train", NULL, &session);
    if (!code) {
        code = mtc_needs_device_data(session);
        if (!code)
            code = calibrate(session);
        if (!code)
            code = mtc_save(session, options.save);
        if (code)
            *fault = session->fault;
        else
            report(session, &options);
    }
    mtc_destroy(session);
    return code;
}
