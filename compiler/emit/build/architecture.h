/* What GPUs have, and what a program needs of them: so that one is refused when it is compiled, not when it runs. */
#ifndef MTC_ARCHITECTURE_H
#define MTC_ARCHITECTURE_H

#include "pass/kernel.h"

typedef struct Architecture {
    int number;        /* 90 of sm_90 */
    const char *cards; /* some that people know */
    int block_shared;  /* bytes of shared memory that a block may have */
    bool tensor_cores; /* for bf16 and tf32 */
} Architecture;

/* What no kernel can do without. Tiles fit themselves to the device (kernels_lib/cuda/architecture.cuh). */
typedef struct Needs {
    const Kernel *multiplies; /* on tensor cores; NULL: none does */
    const Kernel *fills;      /* `block_shared` bytes of shared memory; NULL: none more than all GPUs have */
    int block_shared;
} Needs;

Needs programs_needs(const Programs *programs);

/* Of "sm_90", "sm_90a"; NULL: it is none of the table. */
const Architecture *architecture_find(const char *name);

/* What it has not that the program needs, "has no tensor cores for bf16"; NULL: it has all. */
const char *architecture_lacks(Arena *arena, const Architecture *architecture, const Needs *needs);

/* "sm_80, sm_86, sm_90": those of the table that the program can have, of which `known`, the answer of nvcc, has a line each. */
const char *architectures_for(Arena *arena, const Needs *needs, const char *known);

/* nvcc, whose answer to --list-gpu-arch is `known`, compiles for it. */
bool architecture_is_known(Arena *arena, const char *known, const char *name);

#endif
