/* info: what this program is, without touching a device. */
#include "checkpoint/inspect.h"
#include "commands/cli.h"
#include "session/memory.h"
#include "session/weights.h"

#include <stdio.h>
#include <string.h>

static void print_params(const MtcModel *model) {
    for (int i = 0; i < model->knobs; i++) {
        const MtcKnob *knob = &model->knob[i];
        printf("  --%-14s %-10.6g", knob->name, knob->value);
        if (knob->has_range)
            printf(" %g to %g ", knob->low, knob->high);
        printf("%s%s\n", knob->help ? " " : "", knob->help ? knob->help : "");
    }
    for (int i = 0; i < model->fixed; i++)
        printf("  %-16s %-10.6g fixed: mtc %s --set %s=...\n", model->fixed_param[i].name, model->fixed_param[i].value,
               model->source, model->fixed_param[i].name);
}

static void print_data(const MtcModel *model) {
    for (int i = 0; i < model->fields; i++) {
        const MtcField *field = &model->field[i];
        printf("  %-16s %s%s", field->name, mtc_type_name(field->type), mtc_shape(field->rank, field->dim));
        if (field->classes)
            printf(", %d classes", field->classes);
        printf("\n");
    }
    for (int i = 0; i < model->splits; i++) {
        const MtcSplit *split = &model->split[i];
        const MtcOrigin *origin = &model->origin[split->origin];
        printf("  %-16s %s:", split->name, origin->format);
        for (int p = 0; p < origin->paths; p++)
            printf(" %s", origin->path[p]);
        if (!origin->paths)
            printf(" %lld in the model file", (long long)origin->rows);
        if (origin->stride)
            printf(", a window every %lld", (long long)origin->stride);
        if (split->to - split->from < 1)
            printf(", %.4g%%%s", 100 * (split->to - split->from), split->in_order ? " in order" : "");
        printf("\n");
    }
}

static void print_tensors(const MtcModel *model) {
    static const char *const role[] = {"weight", "buffer", "state", "value"};
    for (int i = 0; i < model->tensors; i++) {
        const MtcTensor *tensor = &model->tensor[i];
        printf("  %-28s %-7s %-5s %-20s at %zu", tensor->name, role[tensor->role], mtc_type_name(tensor->type),
               mtc_tensor_shape(tensor), tensor->offset);
        if (tensor->role == MTC_VALUE)
            printf(", phase %d", tensor->phase + 1);
        printf("\n");
    }
}

static void print_need(const char *what, size_t bytes) {
    if (bytes)
        printf(", %s %s", what, mtc_bytes((double)bytes));
}

/* What is asked for, to the byte; CUDA's own memory, of its context and the code, was 0.57 to 0.61 GB with four models on an H100. */
static int print_needs(MtcFault *fault, const MtcModel *model) {
    MtcNeeds needs;
    int code = mtc_model_needs(fault, model, &needs);
    if (code)
        return code;
    printf("device      %s beside the data (%zu bytes): arena %s", mtc_bytes((double)mtc_needed(&needs)),
           mtc_needed(&needs), mtc_bytes((double)needs.arena));
    print_need("a batch", needs.batch);
    print_need("reports", needs.reports);
    print_need("snapshots", needs.snapshots);
    print_need("sums over shards", needs.sums);
    printf("%s\n", *model->architectures ? "; CUDA and the code take about 0.6 GB more" : "");
    const size_t states = (size_t)model->parted_states * model->flat_bytes;
    if (states)
        printf("            of the arena %s are states of the optimizer (%zu bytes): of N processes, each has 1/N of "
               "them\n",
               mtc_bytes((double)states), states);
    return 0;
}

int mtc_command_info(MtcFault *fault, const MtcModel *model, const MtcOptions *options) {
    if (options->file)
        return mtc_inspect(fault, model, options->file);
    printf("%s, compiled by mtc from %s\n\n", model->name, model->source);
    printf("target      %s%s%s\n", model->target, *model->architectures ? ", " : "", model->architectures);
    printf("schedule    %s: %d phases a training step, %d an evaluation\n", model->schedule, model->train_phases,
           model->eval_phases);
    printf("parameters  %lld\n", (long long)model->parameters);
    printf("work        %.4g MFLOP a step of %lld examples\n", 1e-6 * model->flops_per_step,
           (long long)mtc_step_examples(model));
    printf("memory      %s arena, %s without sharing\n", mtc_bytes((double)model->arena_bytes),
           mtc_bytes((double)model->unshared_bytes));
    int code = print_needs(fault, model);
    if (code)
        return code;
    printf("defaults    %d epochs, seed %llu\n", model->epochs, (unsigned long long)model->seed);
    printf("model hash  %s\n", model->model_hash);
    if (model->knobs + model->fixed)
        printf("\nparameters of the model file\n");
    print_params(model);
    printf("\ndata\n");
    print_data(model);
    printf("\ntensors\n");
    print_tensors(model);
    return 0;
}
