/* Where in the arena the values of one program lie. */
#ifndef MTC_PLACE_H
#define MTC_PLACE_H

#include "plan/liveness.h"

/* Values that take over each other's bytes in place, one after the other. */
typedef struct Slot {
    int64_t bytes, offset; /* from the start of the values */
    int first, last;       /* phases, inclusive */
    int rank;              /* in the order in which values are written: breaks ties */
    bool fixed;            /* where another program has it */
} Slot;

typedef struct Slots {
    VEC(Slot) all;
    int *of_value; /* by row of Liveness.values */
    int64_t bytes; /* that all of them need */
} Slots;

Slots place_values(Arena *arena, const Liveness *live, int real_bytes);
int64_t busiest_phase(const Slots *slots, int phases); /* the largest sum of bytes that live in one phase */

int64_t aligned_bytes(int64_t bytes);
int64_t stored_bytes(const Type *type, int real_bytes); /* `real_bytes`: of an f32 */

#endif
