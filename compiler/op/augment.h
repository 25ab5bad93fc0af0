/* What all functions share that change images of the data by chance. */
#ifndef MTC_AUGMENT_H
#define MTC_AUGMENT_H

#include "op/compose.h"

enum { CHANNELS = 1, ROWS = 2, COLUMNS = 3 }; /* of [N, C, H, W] */

/* Argument 0, the image of the data that `function` is to change; NULL after a user error. */
Node *read_data(Call *call, const char *function);
/* Whether argument `arg`, x, is of the data and not of weights or of their statistics; else a user error. */
bool is_data(Call *call, int arg, const Node *x, const char *function);
/* Where the colours of what is made of bytes by constants alone go from and to; false: that is not known. */
typedef struct Colours {
    double low, high;
} Colours;
bool find_colours(const Node *n, Colours *colours);
/* Whether a pixel's index along the axis is from `first` to below `end`, numbers of each example. */
Node *is_between(Graph *g, const Type *image, int axis, Node *first, Node *end);
/* `x`, which lacks those axes of that shape, the same along them. */
Node *along(Graph *g, const Type *shape, unsigned axes, Node *x);
/* A number of each example of x, uniform from 0 to 1. */
Node *draw_for_example(Graph *g, const Type *x);

#endif
