#include "emit/build/architecture.h"

#include "support/text.h"

#include <stdlib.h>

enum { KB = 1024 };

static const Architecture architectures[] = {
#define ARCHITECTURE(number_, cards_, block_, multiprocessor_, threads_, blocks_, tensor_cores_)                       \
    {.number = (number_), .cards = (cards_), .block_shared = (block_)*KB, .tensor_cores = (tensor_cores_)},
#include "pass/gpus.def"
#undef ARCHITECTURE
};

enum { COUNT = sizeof architectures / sizeof *architectures };

static void add_needs(Needs *needs, const Kernel *kernel) {
    const CallDef *call = kernel->cls == KERNEL_CALL ? kernel->call->op->call : NULL;
    int shared = call && call->least_shared ? call->least_shared(kernel->call) : 0;
    if (kernel->math != MATH_FP32)
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

const Architecture *architecture_find(const char *name) {
    long number = strtol(name + strlen("sm_"), NULL, 10);
    for (int i = 0; i < COUNT; i++)
        if (architectures[i].number == number)
            return &architectures[i];
    return NULL;
}

const char *architecture_lacks(Arena *arena, const Architecture *architecture, const Needs *needs) {
    if (needs->multiplies && !architecture->tensor_cores)
        return arena_printf(arena, "has no tensor cores for %s",
                            needs->multiplies->math == MATH_BF16 ? "bf16" : "tf32");
    if (needs->block_shared > architecture->block_shared)
        return arena_printf(arena, "has %d KB of shared memory for a block, of which '%s' needs %d",
                            architecture->block_shared / KB, needs->fills->name, needs->block_shared / KB);
    return NULL;
}

bool architecture_is_known(Arena *arena, const char *known, const char *name) {
    size_t digits = strspn(name + strlen("sm_"), "0123456789");
    const char *line = arena_printf(arena, "compute_%.*s\n", (int)digits, name + strlen("sm_"));
    return strstr(known, line) != NULL;
}

const char *architectures_for(Arena *arena, const Needs *needs, const char *known) {
    Text list = TEXT(arena);
    for (int i = 0; i < COUNT; i++) {
        const char *name = arena_printf(arena, "sm_%d", architectures[i].number);
        if (architecture_is_known(arena, known, name) && !architecture_lacks(arena, &architectures[i], needs))
            text_printf(&list, "%s%s", list.length ? ", " : "", name);
    }
    return text_string(&list);
}
