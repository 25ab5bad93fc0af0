/* How functions of kernels are called in CUDA C++. */
#ifndef MTC_CALLED_H
#define MTC_CALLED_H

#include "emit/kernel/repeat.h"

/* Of those given, the ones that the function takes. */
const char *arguments_of(Emitter *e, const Function *f, const char *const given[PARAMETERS]);
/* "h", or of several sizes "h::run". */
const char *function_name(Emitter *e, const Function *f);
/* The type of what it is given as its tensors: "Tensors", "h_tensors", "h::Own". */
const char *places_type(Emitter *e, const Function *f);
/* "h(h_tensors(t, 3), batch, tile, shared, gate)", with these instead of t and tile. */
const char *call_with(Emitter *e, const Function *f, const char *tensors, const char *tile);
const char *call_behind(Emitter *e, const Function *f, const char *tensors, const char *tile, const char *gate);
/* "Warp". */
const char *team_name(Emitter *e, const Kernel *kernel);
/* What the text of the function calls tensor `b` of those that it mentions. */
const char *member_name(Emitter *e, const Function *f, int b);
bool keeps_vectors(const Kernel *kernel);

#endif
