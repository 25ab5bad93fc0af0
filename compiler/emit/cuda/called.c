/* How functions of kernels are called in CUDA C++. */
#include "emit/cuda/called.h"

#include "emit/kernel/expr.h"

const char *arguments_of(Emitter *e, const Function *f, const char *const given[PARAMETERS]) {
    Text result = TEXT(e->arena);
    for (int k = 0; k < PARAMETERS; k++)
        if (f->has[k] || f->launched)
            text_printf(&result, "%s%s", result.length ? ", " : "", given[k]);
    return text_string(&result);
}

const char *function_name(Emitter *e, const Function *f) {
    return f->sized < 0 ? f->name : arena_printf(e->arena, "%s::run", f->name);
}

const char *places_type(Emitter *e, const Function *f) {
    return f->sized >= 0 ? arena_printf(e->arena, "%s::Own", f->name) : f->type ? f->type : "Tensors";
}

const char *call_behind(Emitter *e, const Function *f, const char *tensors, const char *tile, const char *gate) {
    const char *const given[PARAMETERS] = {tensors, "batch", tile, "shared", gate};
    return arena_printf(e->arena, "%s(%s)", function_name(e, f), arguments_of(e, f, given));
}

const char *call_with(Emitter *e, const Function *f, const char *tensors, const char *tile) {
    return call_behind(e, f, tensors, tile, "gate");
}

const char *team_name(Emitter *e, const Kernel *kernel) {
    static const char *const names[] = {
        [TEAM_THREAD] = "Thread", [TEAM_WARP] = "Warp", [TEAM_HALF] = "Half", [TEAM_BLOCK] = "Whole"};
    if (kernel->team == TEAM_COLUMN)
        return arena_printf(e->arena, "Column<%d, %d>", kernel->lanes, kernel->depth);
    return names[kernel->team];
}

const char *member_name(Emitter *e, const Function *f, int b) {
    const Function *written = f->sized >= 0 ? &e->functions.at[f->sized] : f;
    return tensor_name(e, &e->plan->buffers.at[written->buffers.at[b]]);
}

bool keeps_vectors(const Kernel *kernel) {
    for (int s = 0; s < kernel->stages.count; s++)
        if (kernel->stages.at[s].vectors.count)
            return true;
    return false;
}
