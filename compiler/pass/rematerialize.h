/* Memory for time: values of the forward pass that the backward pass computes again (`recompute = true`). */
#ifndef MTC_REMATERIALIZE_H
#define MTC_REMATERIALIZE_H

#include "pass/kernel.h"

/* `kept`: the graph's kernels and phases as they are while everything is kept. Changes the graph, to the same formulas. */
void rematerialize(Graph *g, const Program *kept);

#endif
