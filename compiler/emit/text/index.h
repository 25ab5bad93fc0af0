/* The index of an element, in C expressions. Neighbouring axes may share one row-major index, a group:
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
    const char *at;
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

/* All axes of the shape counted by one expression. */
Index index_linear(const Shape *shape, const char *at);
/* One axis. */
Index index_along(const char *at);
/* A further group of `axes` axes. */
void index_push(Index *index, int axes, const char *at);
/* The index along one axis. */
const char *index_axis(Arena *arena, const Index *index, const Shape *shape, int axis);
/* The groups of `count` axes from `first` on; a group that a boundary cuts is split. */
Index index_slice(Arena *arena, const Index *index, const Shape *shape, int first, int count);
void index_append(Index *index, const Index *more);
/* The same element of the same memory order in another shape. */
Index index_reshape(Arena *arena, const Index *index, const Shape *from, const Shape *to);
/* Of the element counted in row-major order: "i * H + j". */
const char *index_offset(Arena *arena, const Index *index, const Shape *shape);
/* What a view reads: its operand's index. `looked_up` is the value of a lookup's operand 1 there, else NULL; `*guard` is the
 * condition under which the view reads at all, or NULL. */
Index index_view(Arena *arena, const Node *view, const Index *index, const Shape *shape, const char *looked_up,
                 const char **guard);
/* Equal for equal indices. */
const char *index_key(Arena *arena, const Index *index);

/* ---- expressions as text ---- */

/* 1 where a parenthesis opens, -1 where one closes. */
int nesting(char c);
/* How strongly the weakest operator of the expression outside all parentheses binds (PREC_SUM ...). */
int precedence(const char *expression);
/* The strength of the operator that stands here, before a space; -1: none. */
int infix_at(const char *text);
/* The expression, in parentheses if it binds less strongly than `least`. */
const char *parenthesised(Arena *arena, const char *expression, int least);
/* The template with $0, $1, ... replaced, each in parentheses when its place in the template needs them. */
const char *substitute(Arena *arena, const char *pattern, const char *const *operands, int count);

#endif
