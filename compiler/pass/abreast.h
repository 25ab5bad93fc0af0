/* Products of one value with several weights become one. */
#ifndef MTC_ABREAST_H
#define MTC_ABREAST_H

#include "ir/graph.h"

/* Before gradients are added. Nodes that are not needed any more stay until the next graph_compact. */
void products_abreast(Graph *g);

#endif
