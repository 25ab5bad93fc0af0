/* The tensors of a C program: of functions at one place, and at each place of those that layers have in common. */
#ifndef MTC_C_PLACES_H
#define MTC_C_PLACES_H

#include "emit/kernel/emitter.h"

/* The struct Tensors, and how it is made of a run. */
void write_tensors(Emitter *e, Writer *out);
/* Before a function with several places. */
void write_place_remark(Emitter *e, const Function *f, Writer *out);

#endif
