/* The evaluation of a language model at one position of one example: what `generate` runs for each token. */
#ifndef MTC_DECODE_H
#define MTC_DECODE_H

#include "ir/graph.h"

/* NULL: the model cannot generate text. module->no_decode says why, unless its data are no tokens at all. */
Graph *decode_graph(Module *module);

#endif
