#include "ir/op.h"

const char *const precision_names[PRECISIONS] = {"fp32", "tf32", "tf32x3", "bf16", "fp16", "fp8", "int8"};
DType precision_dtype(Precision precision) {
    static const DType stored[PRECISIONS] = {DT_F32, DT_F32, DT_F32, DT_BF16, DT_F16, DT_BF16, DT_F32};
    return stored[precision];
}

Module *module_new(Arena *arena, Diag *diag, const Operators *operators) {
    Module *module = NEW(arena, Module);
    module->arena = arena;
    module->diag = diag;
    module->operators = operators;
    return module;
}

void module_doubt(Module *module, Doubt doubt) {
    for (int i = 0; i < module->doubts.count; i++) {
        const Doubt *known = &module->doubts.at[i];
        if (memcmp(&known->at, &doubt.at, sizeof doubt.at) == 0 && strcmp(known->text, doubt.text) == 0)
            return;
    }
    VEC_PUSH(module->arena, &module->doubts, doubt);
}

int module_graphs(const Module *module, Graph **graphs) {
    Graph *const all[MAX_GRAPHS] = {module->train, module->eval,    module->measure, module->decode,
                                    module->texts, module->prefill, module->update,  module->watch};
    int count = 0;
    for (int i = 0; i < MAX_GRAPHS; i++)
        if (all[i])
            graphs[count++] = all[i];
    return count;
}

Type weight_type_in_files(const Weight *weight) {
    Type type = weight->type;
    for (int k = 0; weight->file_order && k < type.rank; k++)
        type.dim[k] = weight->type.dim[weight->file_order[k]];
    return type;
}

int64_t module_examples(const Module *module) {
    return module->shards ? module->whole_batch : module->batch;
}

int64_t module_parameters(const Module *module) {
    int64_t count = 0;
    for (int i = 0; i < module->weights.count; i++)
        if (module->weights.at[i].kind != WEIGHT_BUFFER && !module->weights.at[i].replaced &&
            !module->weights.at[i].flat)
            count += type_elements(&module->weights.at[i].type);
    return count;
}

static int find_state(const Module *module, const char *name) {
    for (int i = 0; i < module->states.count; i++)
        if (!strcmp(module->states.at[i].name, name))
            return i;
    return -1;
}

static bool is_weight(const Module *module, const char *name) {
    for (int i = 0; i < module->weights.count; i++)
        if (!strcmp(module->weights.at[i].name, name))
            return true;
    return false;
}

/* A file has both: `h = f(x)` may have weights `h` and `h.m`, which is the name of h's mean of gradients too. */
static const char *apart_from_weights(const Module *module, const char *name) {
    while (is_weight(module, name))
        name = arena_printf(module->arena, "%s.state", name);
    return name;
}

int module_state_named(Module *module, int weight, const char *wanted, const Type *type) {
    const char *name = apart_from_weights(module, wanted);
    int existing = find_state(module, name);
    if (existing >= 0)
        return existing;
    Weight state = {.name = name, .type = *type, .src = module->weights.at[weight].src, .of = weight};
    VEC_PUSH(module->arena, &module->states, state);
    return module->states.count - 1;
}

int module_state_like(Module *module, int weight, const char *name, const Type *type) {
    const Weight *of = &module->weights.at[weight];
    return module_state_named(module, weight, arena_printf(module->arena, "%s.%s", of->name, name), type);
}

int module_state(Module *module, int weight, const char *name) {
    const Weight *of = &module->weights.at[weight];
    int row = module_state_like(module, weight, name, &of->type);
    module->states.at[row].file_order = of->file_order;
    return row;
}

int module_report_columns(const Module *module) {
    return module->means + (module->weight.name != NULL);
}

const Report *module_report(const Module *module, int index) {
    return index < module->means ? &module->reports.at[index] : &module->weight;
}
