/* Weights that tokens are decoded with, in 16 bits: see copies.c. */
#ifndef MTC_COPIES_H
#define MTC_COPIES_H

#include "ir/graph.h"
#include "pass/machine.h"

/* Of a graph that decodes a token, of one text or of several, NULL if there is none; changes nothing but on GPUs, where the module's precision stores operands in 16 bits. */
void copy_weights(Graph *g, const Machine *machine);

#endif
