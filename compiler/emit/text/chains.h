/* Names for the divisions by which a thread finds its place. */
#ifndef MTC_CHAINS_H
#define MTC_CHAINS_H

#include "emit/kernel/expr.h"

/* The lines of a row, i counting rows of that shape, begin with "int channel = i % CHANNELS;" where they say that often. */
void name_chains(Body *row, const Shape *rows, Writer *lines);

#endif
