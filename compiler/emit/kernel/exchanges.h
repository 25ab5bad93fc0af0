/* Sums over the shards of a batch that a step reads in its midst. */
#ifndef MTC_EXCHANGES_H
#define MTC_EXCHANGES_H

#include "emit/kernel/emitter.h"

/* The table of them, by phases; nothing where there are none. */
void write_exchanges(Emitter *e, Writer *out);
/* That of the buckets, likewise. */
void write_buckets(Emitter *e, Writer *out);

#endif
