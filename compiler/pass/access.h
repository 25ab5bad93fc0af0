/* Which elements a node reads, symbolically: the index of an element of a node, as expressions, is carried through
 * maps, views, reductions and products to the elements of its inputs. Fusion asks it whether two nodes meet at the same
 * row. */
#ifndef MTC_ACCESS_H
#define MTC_ACCESS_H

#include "ir/op.h"

/* An index along an axis that is folded away: any value. */
extern const Tree *const ANY_INDEX;

typedef struct Access {
    const Tree *index[MAX_RANK];
} Access;

/* The elements of input k that element `at` of n reads. A view may also have a guard, which does not matter here. */
Access access_input(Arena *arena, const Node *n, int k, const Access *at);
/* "i0", "i1", ...: an element of a node of that rank. */
Access access_own(Arena *arena, int rank);
bool access_equal(const Access *a, const Access *b, int rank);

typedef enum Walk { WALK_DEEPER, WALK_STOP, WALK_FAIL } Walk;
typedef Walk (*WalkVisit)(void *context, Node *n, const Access *at);

/* Visits everything that computing n at `at` reads (not n itself), each (node, index) once; `visit` decides whether its
 * own inputs are read in turn. Returns false as soon as a visit fails. */
bool access_walk(Arena *arena, Node *n, const Access *at, WalkVisit visit, void *context);

/* By node id: the data field that the node reads element by element, through maps and contiguous reshapes, beside numbers
 * that are the same for every element; NULL: no field, or more than one, or at other places. A product can compute such a
 * node while loading it. */
Node **access_single_fields(const Graph *g);

#endif
