#include "emit/build/architecture.h"

#include "pass/cost.h"
#include "support/text.h"

enum { KB = 1024 };

/* Of a tile on tensor cores whose columns are computed in parts, as few at a time as its warps have: kernels_lib/cuda/tile.cuh. */
static int least_tile_shared(const Kernel *kernel) {
    enum { WARP_COLUMNS = 16, LEAST_STAGES = 2 };
    const Tile *tile = &kernel->tile;
    int least = tile->few ? tile_least_few(tile) : 0;
    for (int parts = 1; tile->warps_n && !tile->few && tile->n / parts >= WARP_COLUMNS * tile->warps_n; parts *= 2)
        least = tensor_tile_shared(tile->m, tile->n / parts, LEAST_STAGES, math_info[kernel->math].terms);
    return least;
}

static int least_shared(const Kernel *kernel) {
    const CallDef *call = kernel->cls == KERNEL_CALL ? kernel->call->op->call : NULL;
    if (kernel->cls == KERNEL_CONTRACT)
        return least_tile_shared(kernel);
    return call && call->least_shared ? call->least_shared(kernel->call) : 0;
}

/* Of the architecture whose tensor cores have it, and those of all later ones; 0: every card that mtc knows. */
static int first_with(Math math) {
    return math == MATH_FP8 ? 89 : math == MATH_FP32 || math == MATH_FP16 || math == MATH_INT8 ? 0 : 80;
}

static void add_needs(Needs *needs, const Kernel *kernel) {
    const int shared = least_shared(kernel);
    const int known = needs->multiplies ? first_with(needs->multiplies->math) : 0;
    if (kernel->math != MATH_FP32 && (!needs->multiplies || first_with(kernel->math) > known))
        needs->multiplies = kernel;
    if (shared > needs->block_shared) {
        needs->block_shared = shared;
        needs->fills = kernel;
    }
}

Needs programs_needs(const Programs *programs) {
    Needs needs = {0};
    for (int p = 0; p < programs->count; p++)
        for (int k = 0; k < programs->at[p]->kernels.count; k++)
            add_needs(&needs, programs->at[p]->kernels.at[k]);
    return needs;
}

const char *gpu_lacks(Arena *arena, const Machine *gpu, const Needs *needs) {
    if (needs->multiplies && gpu->number < first_with(needs->multiplies->math))
        return arena_printf(arena, "has no tensor cores for %s", math_info[needs->multiplies->math].name);
    if (needs->block_shared > gpu->block_memory)
        return arena_printf(arena, "has %d KB of shared memory for a block, of which '%s' needs %d",
                            gpu->block_memory / KB, needs->fills->name, needs->block_shared / KB);
    return NULL;
}

const char *precision_instead(const Machine *gpu, const Needs *needs) {
    const bool rounds_more = needs->multiplies && needs->multiplies->math == MATH_FP8;
    return math_info[rounds_more && gpu->number >= first_with(MATH_BF16) ? MATH_BF16 : MATH_FP32].name;
}

bool architecture_is_known(Arena *arena, const char *known, const char *name) {
    size_t digits = strspn(name + strlen("sm_"), "0123456789");
    const char *line = arena_printf(arena, "compute_%.*s\n", (int)digits, name + strlen("sm_"));
    return strstr(known, line) != NULL;
}

const char *architectures_for(Arena *arena, const Needs *needs, const char *known) {
    Text list = TEXT(arena);
    const Machine *gpu;
    for (int i = 0; (gpu = machine_gpu(i)); i++) {
        const char *name = arena_printf(arena, "sm_%d", gpu->number);
        if ((!known || architecture_is_known(arena, known, name)) && !gpu_lacks(arena, gpu, needs))
            text_printf(&list, "%s%s", list.length ? ", " : "", name);
    }
    return text_string(&list);
}
