/* Fewer and simpler nodes with the same values. */
#ifndef MTC_SIMPLIFY_H
#define MTC_SIMPLIFY_H

#include "ir/graph.h"

/* Requires that differentiation is done: stop_gradient is dropped here. */
void simplify(Graph *g);

#endif
