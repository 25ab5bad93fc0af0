/* Vector code: a thread computes `lanes` neighbours at once, at the places variable + 0, variable + 1, ... of which the first
 * is a multiple of `lanes`. What becomes of an index then? */
#ifndef MTC_LANES_H
#define MTC_LANES_H

#include "ir/tree.h"

typedef struct Lanes {
    const char *variable; /* "i" */
    int count;
} Lanes;

typedef enum LaneStep {
    LANES_SAME,       /* all lanes have the same: i / CHANNELS */
    LANES_NEIGHBOURS, /* each lane has one more than the lane before, the first a multiple of `count`: i % CHANNELS */
    LANES_SCATTERED   /* anything else: i * CHANNELS */
} LaneStep;
LaneStep lane_step(const Lanes *lanes, const Tree *tree);

/* The expression in lane v: (i + v) * CHANNELS; of one that all lanes have, as it is. */
const Tree *tree_in_lane(Arena *arena, const Lanes *lanes, const Tree *tree);
/* It depends on the number of the lane. */
bool differs_by_lane(const Lanes *lanes, const Tree *tree);

/* i for i + v, NULL for what is no such sum: the first lane's of an expression in lane v. */
const Tree *first_lane(const Tree *in_lane);

#endif
