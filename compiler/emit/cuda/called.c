/* How functions of kernels are called in CUDA C++. */
#include "emit/cuda/called.h"

#include "emit/kernel/expr.h"

const char *own_constant(Emitter *e, const Function *f, const char *constant) {
    return arena_printf(e->arena, "%s::%s", f->name, constant);
}

const char *call_of(Emitter *e, const Function *f, const char *tile, const char *gate) {
    return arena_printf(e->arena, "%s::run(own, batch, %s, shared, %s)", f->name, tile, gate);
}

const char *team_name(Emitter *e, const Kernel *kernel) {
    static const char *const names[] = {[TEAM_THREAD] = "Thread", [TEAM_WARP] = "Warp", [TEAM_BLOCK] = "Whole"};
    if (kernel->team == TEAM_COLUMN)
        return arena_printf(e->arena, "Column<%d, %d>", kernel->lanes, kernel->depth);
    if (kernel->team == TEAM_LANES)
        return kernel->depth == LANES / 2 ? "Half" : arena_printf(e->arena, "Lanes<%d>", kernel->depth);
    if (kernel->at_once > 1)
        return arena_printf(e->arena, "Several<%s, %d>", names[kernel->team], kernel->at_once);
    return names[kernel->team];
}

const char *member_name(Emitter *e, const Function *f, int b) {
    const Function *written = f->sized >= 0 ? &e->functions.at[f->sized] : f;
    return tensor_name(e, &e->plan->buffers.at[written->buffers.at[b]]);
}

bool has_warps(const Kernel *kernel) {
    return kernel->team == TEAM_THREAD || kernel->team == TEAM_WARP || kernel->team == TEAM_LANES;
}

bool keeps_vectors(const Kernel *kernel) {
    for (int s = 0; s < kernel->stages.count; s++)
        if (kernel->stages.at[s].vectors.count)
            return true;
    return false;
}
