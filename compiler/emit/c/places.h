/* The tensors of a C program: of functions at one place, and at each place of those that layers have in common. */
#ifndef MTC_C_PLACES_H
#define MTC_C_PLACES_H

#include "emit/kernel/expr.h"

/* The struct Tensors, and how it is made of a run. */
void write_tensors(Emitter *e, Writer *out);
/* Dialect.long_sum: in a loop over an array of tensors. */
void write_sum_of_array(Body *body, const char *name, const Buffer *const *terms, int count, const Tree *place);
/* Dialect.function: of several sizes, one that is told them, and one for each size. */
void write_c_function(Emitter *e, const Function *f, Writer *out);

#endif
