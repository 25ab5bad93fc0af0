/* The functions of a program's kernels, and the programs that they are of. */
#ifndef MTC_FUNCTION_H
#define MTC_FUNCTION_H

#include "emit/kernel/emitter.h"

/* The kernel's own; the one that is written for it may be another: repeat.h. */
const Function *function_of(const Emitter *e, const Kernel *kernel);

const Program *program_of(const Emitter *e, const Kernel *kernel);
/* It decodes one token: a launch does little, and memory's latency is what takes the time. */
bool is_of_token(const Emitter *e, const Kernel *kernel);
/* One launch runs all phases, and has all tensors at hand. */
bool program_is_persistent(const Emitter *e, const Program *program);
double program_flops(const Program *program); /* per step: sums of the kernels' */
double program_bytes(const Program *program);

const char *tile_text(Arena *arena, int64_t tiles); /* "1 tile", "1,024 tiles" */

#endif
