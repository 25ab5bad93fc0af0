/* The calls of a program's kernels, in C: by their numbers, and phase by phase. */
#ifndef MTC_C_PHASES_H
#define MTC_C_PHASES_H

#include "emit/kernel/emitter.h"

void write_c_phases(Emitter *e, const Program *program, Writer *out);

/* dialect.c: those of the two that the function has; `none` where it has neither. */
const char *c_arguments(Emitter *e, const Function *f, const char *tensors, const char *batch, const char *none);
/* Their declarations, the first one's with tensors of this type. */
const char *c_parameters(Emitter *e, const Function *f, const char *type, const char *none);

#endif
