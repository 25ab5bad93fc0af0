#ifndef MTC_CUDA_PLACES_H
#define MTC_CUDA_PLACES_H

#include "emit/kernel/emitter.h"

/* Dialect.function: a struct, with the tensors of a place where it has several; of several sizes a template, and a struct for each. */
void write_kernel(Emitter *e, const Function *f, Writer *out);
/* What these tables are, once for all, if there are some; and what launches say of their rows. */
void explain_places(Emitter *e, bool launches_say_rows, Writer *out);
/* Dialect.long_sum: in a loop over a table of where its terms begin. */
void write_long_sum(Body *body, const char *name, const Buffer *const *terms, int count, const Tree *place);

#endif
