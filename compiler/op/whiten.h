/* Filters made of the training data. */
#ifndef MTC_WHITEN_H
#define MTC_WHITEN_H

#include "ir/graph.h"

/* In the graph that measures: the filters and the shift become the sums over a batch that they are to be made of, as
 * session/whiten.c reads them. */
void measure_whitening(Graph *g, const Whitening *whitening);

#endif
