#include "emit/kernel/function.h"

const Function *function_of(const Emitter *e, const Kernel *kernel) {
    for (int k = 0; k < e->functions.count; k++)
        if (e->functions.at[k].kernel == kernel)
            return &e->functions.at[k];
    ICE("kernel %s has no function", kernel->name);
}

const Program *program_of(const Emitter *e, const Kernel *kernel) {
    for (int p = 0; p < e->plan->program_count; p++)
        if (kernel->id < e->programs[p]->kernels.count && e->programs[p]->kernels.at[kernel->id] == kernel)
            return e->programs[p];
    ICE("kernel %s is of no program", kernel->name);
}

bool is_of_token(const Emitter *e, const Kernel *kernel) {
    return program_of(e, kernel)->graph == e->module->decode;
}

bool program_is_persistent(const Emitter *e, const Program *program) {
    return program == e->programs[PROGRAM_TRAIN] && program->schedule == SCHEDULE_PERSISTENT;
}

double program_flops(const Program *program) {
    double flops = 0;
    for (int k = 0; k < program->kernels.count; k++)
        flops += program->kernels.at[k]->flops;
    return flops;
}

double program_bytes(const Program *program) {
    double bytes = 0;
    for (int k = 0; k < program->kernels.count; k++)
        bytes += program->kernels.at[k]->bytes;
    return bytes;
}

const char *tile_text(Arena *arena, int64_t tiles) {
    return arena_printf(arena, "%s tile%s", text_grouped(arena, tiles), tiles == 1 ? "" : "s");
}
