/* How functions of kernels are called in CUDA C++. */
#ifndef MTC_CALLED_H
#define MTC_CALLED_H

#include "emit/kernel/repeat.h"

/* "h::tiles" */
const char *own_constant(Emitter *e, const Function *f, const char *constant);
/* "h::run(own, batch, tile, shared, gate)", with these instead of tile and gate. */
const char *call_of(Emitter *e, const Function *f, const char *tile, const char *gate);
/* "Warp". */
const char *team_name(Emitter *e, const Kernel *kernel);
/* What the text of the function calls tensor `b` of those that it mentions. */
const char *member_name(Emitter *e, const Function *f, int b);
bool keeps_vectors(const Kernel *kernel);
/* A row is of a warp or less, which needs no memory to put its threads' numbers together. */
bool has_warps(const Kernel *kernel);

#endif
