/* The statistics of the fields that a model normalises. */
#ifndef MTC_NORMALIZE_H
#define MTC_NORMALIZE_H

#include "ir/graph.h"

/* The graph that takes the examples of a batch into mean and standard deviation of those fields, after the examples
 * before it, and sums what filters are made of; NULL when there is nothing to measure. Made when all other graphs of the module
 * are. */
Graph *measure_graph(Module *module);

#endif
