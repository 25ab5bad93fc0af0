/* Reverse-mode differentiation: gradients are further nodes of the same graph. */
#ifndef MTC_AUTODIFF_H
#define MTC_AUTODIFF_H

#include "ir/graph.h"

/* gradients[i] = d loss / d (row i of module->weights), or NULL when the loss does not depend on it. */
void autodiff(Graph *g, Node *loss, Node **gradients);
/* d y / d x for each example: y is a number of each, x a value of each that y is made of. NULL after a user error. */
Node *graph_gradient(Graph *g, Node *y, Node *x);

#endif
