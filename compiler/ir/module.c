#include "ir/op.h"

Module *module_new(Arena *arena, Diag *diag) {
    Module *module = NEW(arena, Module);
    module->arena = arena;
    module->diag = diag;
    return module;
}

static int find_state(const Module *module, const char *name) {
    for (int i = 0; i < module->states.count; i++)
        if (!strcmp(module->states.at[i].name, name))
            return i;
    return -1;
}

int module_state(Module *module, int weight, const char *name) {
    const Weight *of = &module->weights.at[weight];
    const char *full_name = arena_printf(module->arena, "%s.%s", of->name, name);
    int existing = find_state(module, full_name);
    if (existing >= 0)
        return existing;
    Weight state = {.name = full_name, .type = of->type, .src = of->src, .of = weight};
    VEC_PUSH(module->arena, &module->states, state);
    return module->states.count - 1;
}
