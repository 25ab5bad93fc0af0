/* Conditions under which something is read; NULL: always. */
#ifndef MTC_GUARD_H
#define MTC_GUARD_H

#include "ir/tree.h"

/* Both hold; one of them does. Without what is said twice, or follows. */
const Tree *guard_and(Arena *arena, const Tree *a, const Tree *b);
const Tree *guard_or(Arena *arena, const Tree *a, const Tree *b);
/* x < 3 and x >= 3, in either order. */
bool guards_are_opposite(const Tree *a, const Tree *b);

#endif
