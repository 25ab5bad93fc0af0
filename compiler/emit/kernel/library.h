/* Kernels of kernels_lib. */
#ifndef MTC_EMIT_LIBRARY_H
#define MTC_EMIT_LIBRARY_H

#include "emit/kernel/emitter.h"

/* "BATCH, POSITIONS, 4, 4, 16, true, 0": what Shape is made of; `named`: ".batch = BATCH, .length = POSITIONS, ...". */
const char *library_shape(Emitter *e, const Kernel *kernel, bool named);
/* "t.qkv, t.y, t.y_sums, 0.25f" */
const char *library_arguments(Emitter *e, const Kernel *kernel);
void write_library_equations(Emitter *e, const Kernel *kernel, Writer *out);
/* Lines for these headers and those of the functions that kernels call, by name. */
typedef struct Include {
    const char *file, *note; /* "cuda/batch.cuh" */
    bool wanted;             /* else it is left out */
} Include;
void write_includes(Emitter *e, const Include *includes, int count, Writer *out);

#endif
