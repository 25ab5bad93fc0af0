#include "embed/mtc_net.h"

#include "embed/weights.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

struct MtcNet {
    MtcNetWeights *weights;
    char *arena;
    atomic_flag busy;
    int inputs, field[MTC_MAX_FIELDS]; /* rows of the model's fields */
    MtcNetArray input[MTC_MAX_FIELDS], output;
    int output_field; /* whose classes the output scores; -1: none */
};

static _Thread_local MtcFault fault;
static const MtcNetModel *const library = &mtc_net_model;

/* ---- what goes in and comes out ---- */

static const char *type_name(MtcType type) {
    return type == MTC_I32 ? "i32" : type == MTC_U16 ? "u16" : type == MTC_U8 ? "u8" : "f32";
}

static MtcNetArray array_of(const char *name, MtcType type, int rank, const int64_t *dim) {
    MtcNetArray array = {.name = name, .type = type_name(type), .rank = rank, .elements = mtc_elements(rank, dim)};
    memcpy(array.dim, dim, (size_t)rank * sizeof *dim);
    return array;
}

/* The field that the prediction is of: as many classes, and no input. */
static int predicted_field(const MtcModel *model) {
    const int rank = model->prediction_rank;
    for (int i = 0; i < model->fields && model->prediction_is_classes && rank; i++)
        if (!model->field[i].predicts && model->field[i].classes == model->prediction_dim[rank - 1])
            return i;
    return -1;
}

static void describe(MtcNet *net) {
    const MtcModel *model = &library->model;
    for (int i = 0; i < model->fields; i++) {
        const MtcField *field = &model->field[i];
        if (!field->predicts)
            continue;
        net->field[net->inputs] = i;
        net->input[net->inputs] = array_of(field->name, field->type, field->rank, field->dim);
        net->input[net->inputs++].classes = field->classes;
    }
    net->output = array_of("prediction", MTC_F32, model->prediction_rank, model->prediction_dim);
    net->output_field = predicted_field(model);
    if (model->prediction_is_classes && model->prediction_rank)
        net->output.classes = (int32_t)model->prediction_dim[model->prediction_rank - 1];
}

/* ---- opening ---- */

/* Takes over one use of the weights. */
static int new_net(MtcNetWeights *weights, MtcNet **result) {
    char *arena = mtc_net_arena(weights);
    MtcNet *net = arena ? (MtcNet *)calloc(1, sizeof *net) : NULL;
    if (!net) {
        if (arena)
            munmap(arena, weights->bytes);
        return mtc_no_memory(&fault, weights->bytes, library->model.name);
    }
    net->weights = weights;
    net->arena = arena;
    atomic_flag_clear(&net->busy);
    describe(net);
    *result = net;
    return 0;
}

static void leave(MtcNetWeights *weights) {
    if (__atomic_sub_fetch(&weights->nets, 1, __ATOMIC_ACQ_REL) == 0)
        mtc_net_weights_free(weights);
}

typedef struct Opening {
    const char *path;
    MtcNetWeights *weights;
} Opening;

static int read_weights(void *context) {
    Opening *opening = (Opening *)context;
    return mtc_net_weights_read(&fault, library, opening->path, &opening->weights);
}

static int usage(const char *what) {
    return mtc_fail(&fault, MTC_USAGE, "%s", what);
}

int mtc_net_open(const char *weights, MtcNet **net) {
    Opening opening = {weights, NULL};
    fault = (MtcFault){0};
    if (!net)
        return usage("mtc_net_open: there is no place for the net: NULL");
    *net = NULL;
    int code = mtc_guard(&fault, read_weights, &opening);
    if (code)
        return code;
    code = new_net(opening.weights, net);
    if (code)
        leave(opening.weights);
    return code;
}

int mtc_net_share(MtcNet *net, MtcNet **other) {
    fault = (MtcFault){0};
    if (!net || !other)
        return usage("mtc_net_share: a net is NULL");
    *other = NULL;
    __atomic_add_fetch(&net->weights->nets, 1, __ATOMIC_RELAXED);
    int code = new_net(net->weights, other);
    if (code)
        leave(net->weights);
    return code;
}

void mtc_net_close(MtcNet *net) {
    if (!net)
        return;
    munmap(net->arena, net->weights->bytes);
    leave(net->weights);
    free(net);
}

const char *mtc_net_error(void) {
    return fault.text;
}

/* ---- asking ---- */

int mtc_net_inputs(const MtcNet *net) {
    return net ? net->inputs : 0;
}

const MtcNetArray *mtc_net_input(const MtcNet *net, int number) {
    return net && number >= 0 && number < net->inputs ? &net->input[number] : NULL;
}

const MtcNetArray *mtc_net_output(const MtcNet *net) {
    return net ? &net->output : NULL;
}

const char *mtc_net_class(const MtcNet *net, int input, int64_t number) {
    if (!net || !net->weights->words || number < 0 || input < -1 || input >= net->inputs)
        return NULL;
    const int field = input < 0 ? net->output_field : net->field[input];
    const MtcJson *root = mtc_json_root(net->weights->words);
    const MtcJson *meaning =
        field >= 0 && root->kind == MTC_JSON_OBJECT ? mtc_json_member(root, library->model.field[field].name) : NULL;
    const MtcJson *words = meaning && meaning->kind == MTC_JSON_OBJECT ? mtc_json_member(meaning, "words") : NULL;
    const MtcJson *word = words && words->kind == MTC_JSON_ARRAY ? words->first : NULL;
    while (word && number-- > 0)
        word = word->next;
    return word && word->kind == MTC_JSON_STRING ? word->string : NULL;
}

/* ---- running ---- */

static int64_t class_at(MtcType type, const void *elements, int64_t i) {
    return type == MTC_I32   ? ((const int32_t *)elements)[i]
           : type == MTC_U16 ? ((const uint16_t *)elements)[i]
                             : ((const uint8_t *)elements)[i];
}

/* Kernels look up rows of tables by classes: each must be one. */
static int check_classes(const MtcField *field, const MtcNetArray *array, const void *elements, int64_t examples) {
    for (int64_t i = 0; field->classes && field->type != MTC_F32 && i < examples * array->elements; i++) {
        const int64_t found = class_at(field->type, elements, i);
        if (found < 0 || found >= field->classes)
            return mtc_fail(&fault, MTC_BAD_DATA,
                            "mtc_net_run: input '%s', example %lld: %lld is none of the classes 0 to %d", array->name,
                            (long long)(i / array->elements), (long long)found, field->classes - 1);
    }
    return 0;
}

static int check_input(const MtcNet *net, int i, const void *elements, int64_t examples) {
    const MtcField *field = &library->model.field[net->field[i]];
    const MtcNetArray *array = &net->input[i];
    if (!elements)
        return mtc_fail(&fault, MTC_USAGE, "mtc_net_run: input '%s' is NULL", array->name);
    if ((uintptr_t)elements % mtc_type_size(field->type))
        return mtc_fail(&fault, MTC_USAGE, "mtc_net_run: input '%s' is at %p, which is no multiple of the size of %s",
                        array->name, elements, array->type);
    return check_classes(field, array, elements, examples);
}

static int check_call(const MtcNet *net, int64_t examples, const void *const *inputs, const float *outputs) {
    if (!inputs || !outputs)
        return usage(inputs ? "mtc_net_run: outputs is NULL" : "mtc_net_run: inputs is NULL");
    if ((uintptr_t)outputs % sizeof *outputs)
        return usage("mtc_net_run: outputs is no multiple of the size of f32");
    if (examples < 0)
        return mtc_fail(&fault, MTC_USAGE, "mtc_net_run: cannot run %lld examples", (long long)examples);
    for (int i = 0; i < net->inputs; i++) {
        int code = check_input(net, i, inputs[i], examples);
        if (code)
            return code;
    }
    return 0;
}

static int run_batches(MtcNet *net, MtcRun *run, float *outputs) {
    const MtcModel *model = &library->model;
    const int64_t examples = run->data.examples;
    for (int64_t first = 0; first < examples; first += model->batch) {
        const int64_t rows = examples - first < model->batch ? examples - first : model->batch;
        const char *error = model->eval(run, first, rows, 0);
        if (error)
            return mtc_fail(&fault, MTC_UNAVAILABLE, "mtc_net_run: %s", error);
        memcpy(outputs + first * net->output.elements, net->arena + model->prediction_offset,
               (size_t)(rows * net->output.elements) * sizeof *outputs);
    }
    return 0;
}

static int run_net(MtcNet *net, int64_t examples, const void *const *inputs, float *outputs) {
    int64_t clock[MTC_CLOCKS] = {0};
    double reports[1] = {0};
    MtcRun run = {.arena = net->arena, .clock = clock, .reports = reports, .steps_per_epoch = 1, .last_step = 1};
    int code = check_call(net, examples, inputs, outputs);
    if (code)
        return code;
    run.data.examples = examples;
    memcpy(run.knob, net->weights->knob, sizeof run.knob);
    for (int i = 0; i < net->inputs; i++) {
        run.data.field[net->field[i]] = inputs[i];
        run.data.stride[net->field[i]] = net->input[i].elements;
    }
    return run_batches(net, &run, outputs);
}

int mtc_net_run(MtcNet *net, int64_t examples, const void *const *inputs, float *outputs) {
    fault = (MtcFault){0};
    if (!net)
        return usage("mtc_net_run: the net is NULL");
    if (atomic_flag_test_and_set_explicit(&net->busy, memory_order_acquire))
        return usage("mtc_net_run: another thread is running this net; mtc_net_share makes one of the same weights for "
                     "each thread");
    int code = run_net(net, examples, inputs, outputs);
    atomic_flag_clear_explicit(&net->busy, memory_order_release);
    return code;
}
