/* Weights that tokens are decoded with, in 16 bits: see copies.c. */
#ifndef MTC_COPIES_H
#define MTC_COPIES_H

#include "ir/graph.h"

/* Of the graph that decodes a token; changes nothing unless the module's precision stores operands in 16 bits. */
void copy_weights(Graph *g);

#endif
