/* Images lie channels last. */
#ifndef MTC_LAYOUT_H
#define MTC_LAYOUT_H

#include "ir/graph.h"

/* Takes out the transposes between the language's images, channels first, and those of the operators, channels last. Nodes that
 * are not needed any more stay until the next graph_compact. */
void layout(Graph *g);
/* What stands for the value since then; NULL for NULL. */
Node *after_layout(Node *value);

#endif
