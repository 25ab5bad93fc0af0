/* The index of an element, in expressions. Neighbouring axes may share one row-major index, a group:
 *
 *     shape [BATCH, ROWS, COLUMNS], groups (1: "i") (2: "j")   is element [i][j / COLUMNS][j % COLUMNS]
 *                                                              and lies at i * ROWS * COLUMNS + j
 *
 * so that a kernel that counts the elements of a tensor reads its neighbours at the same count, with no division. */
#ifndef MTC_INDEX_H
#define MTC_INDEX_H

#include "emit/text/sizes.h"

typedef struct IndexGroup {
    int axes;
    const Tree *at;
    const struct Merged *merged; /* of which `at` was put together; or NULL */
} IndexGroup;

typedef struct Index {
    int groups;
    IndexGroup group[MAX_RANK];
} Index;

/* The same elements by several groups: a group that a reshape made of them need not be divided again by another. */
typedef struct Merged {
    Index index;
    Shape shape;
} Merged;

/* A variable that counts up to `count`: of 64 bits where an int does not; and its type. */
const Tree *index_counter(Arena *arena, const char *name, int64_t count);
const char *index_type(const Tree *at);

/* All axes of the shape counted by one expression. */
Index index_linear(const Shape *shape, const Tree *at);
/* One axis. */
Index index_along(const Tree *at);
/* A further group of `axes` axes. */
void index_push(Index *index, int axes, const Tree *at);
/* The index along one axis. */
const Tree *index_axis(Arena *arena, const Index *index, const Shape *shape, int axis);
/* The groups of `count` axes from `first` on; a group that a boundary cuts is split. */
Index index_slice(Arena *arena, const Index *index, const Shape *shape, int first, int count);
void index_append(Index *index, const Index *more);
/* The same element of the same memory order in another shape. */
Index index_reshape(Arena *arena, const Index *index, const Shape *from, const Shape *to);
/* Of the element counted in row-major order: "i * H + j". */
const Tree *index_offset(Arena *arena, const Index *index, const Shape *shape);
/* What a view reads: its operand's index. `looked_up` is the value of a lookup's operand 1 there, else NULL; `*guard` is the
 * condition under which the view reads at all, or NULL. */
Index index_view(Arena *arena, const Node *view, const Index *index, const Shape *shape, const Tree *looked_up,
                 const Tree **guard);
/* The same groups of axes, at the same places. */
bool index_same(const Index *a, const Index *b);

#endif
