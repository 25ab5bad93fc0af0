/* Images lie channels last. */
#ifndef MTC_LAYOUT_H
#define MTC_LAYOUT_H

#include "ir/graph.h"

/* Takes out the transposes between the language's images, channels first, and those of the operators, channels last. Returns
 * what now stands for `value`. Nodes that are not needed any more stay until the next graph_compact. */
Node *layout(Graph *g, Node *value);

#endif
