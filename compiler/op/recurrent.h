/* One direction of a recurrent layer, all its steps: the node `recur`. */
#ifndef MTC_RECURRENT_H
#define MTC_RECURRENT_H

#include "op/compose.h"

#include "kernels_lib/shared.h"

typedef struct Recurrence {
    RecurrentCell cell;
    bool reversed;       /* from the last step to the first */
    Node *gates;         /* [B, T, gates * units]: what the inputs give, with their bias */
    Node *weight, *bias; /* [units, gates * units], [gates * units] */
    Node *start;         /* [B, states * units] */
    Node *length;        /* [B] */
} Recurrence;

/* h of all steps, [B, T, units]. */
Node *build_recurrence(Graph *g, const Recurrence *r);

#endif
