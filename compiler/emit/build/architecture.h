/* What a program needs of a GPU: so that one is refused when it is compiled, not when it runs. */
#ifndef MTC_ARCHITECTURE_H
#define MTC_ARCHITECTURE_H

#include "pass/kernel.h"

/* What no kernel can do without. Tiles fit themselves to the device (kernels_lib/cuda/architecture.cuh). */
typedef struct Needs {
    const Kernel *multiplies; /* on tensor cores; NULL: none does */
    const Kernel *fills;      /* `block_shared` bytes of shared memory; NULL: none more than all GPUs have */
    int block_shared;
} Needs;

Needs programs_needs(const Programs *programs);

/* What the GPU has not that the program needs, "has no tensor cores for bf16"; NULL: it has all. */
const char *gpu_lacks(Arena *arena, const Machine *gpu, const Needs *needs);

/* The precision nearest to the program's that has no need of the tensor cores that the GPU lacks. */
const char *precision_instead(const Machine *gpu, const Needs *needs);

/* "sm_80, sm_86, sm_90": those that the program can have, of which `known`, the answer of nvcc, has a line each; NULL: nvcc
 * was not asked. */
const char *architectures_for(Arena *arena, const Needs *needs, const char *known);

/* nvcc, whose answer to --list-gpu-arch is `known`, compiles for it. */
bool architecture_is_known(Arena *arena, const char *known, const char *name);

#endif
