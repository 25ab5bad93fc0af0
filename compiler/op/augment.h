/* What all functions share that change images of the data by chance. */
#ifndef MTC_AUGMENT_H
#define MTC_AUGMENT_H

#include "op/compose.h"

enum { CHANNELS = 1, ROWS = 2, COLUMNS = 3 }; /* of [N, C, H, W] */

/* Argument 0, the image of the data that `function` is to change; NULL after a user error. */
Node *read_data(Call *call, const char *function);
/* `x`, which lacks those axes of that shape, the same along them. */
Node *along(Graph *g, const Type *shape, unsigned axes, Node *x);
/* A number of each example of x, uniform from 0 to 1. */
Node *draw_for_example(Graph *g, const Type *x);

#endif
