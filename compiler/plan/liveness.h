/* Which values of a program need memory, and during which phases. */
#ifndef MTC_LIVENESS_H
#define MTC_LIVENESS_H

#include "plan/plan.h"

typedef struct LiveValue {
    Node *node;
    int first, last; /* phases, inclusive */
    int over;        /* the value whose bytes it takes over in place, or -1 */
    int64_t at;      /* where it lies, from the start of the values, if another program has it; else -1 */
} LiveValue;

typedef struct Liveness {
    VEC(LiveValue) values; /* in the order in which they are written */
    int *of_node;          /* by node id: row of values, or -1 */
} Liveness;

/* A program keeps it from run to run, and others that have the same leaf find it there. */
bool is_kept(const Node *n);

Liveness liveness(Arena *arena, const Program *program, int real_bytes);

#endif
