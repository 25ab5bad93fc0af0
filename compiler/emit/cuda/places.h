#ifndef MTC_CUDA_PLACES_H
#define MTC_CUDA_PLACES_H

#include "emit/kernel/emitter.h"

/* Before a function with several places: the table of them, and the struct of the tensors of one. */
void write_places(Emitter *e, const Function *f, Writer *out);
/* A function of several sizes: a template, and a struct for each size. */
void write_template(Emitter *e, const Function *f, Writer *out);
/* What these tables are, once for all, if there are some. */
void explain_places(Emitter *e, Writer *out);
/* Dialect.long_sum: in a loop over a table of where its terms begin. */
void write_long_sum(Body *body, const char *name, const Buffer *const *terms, int count, const Tree *place);

#endif
