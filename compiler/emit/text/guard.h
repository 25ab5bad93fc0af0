/* Conditions under which something is read, as text; NULL: always. */
#ifndef MTC_GUARD_H
#define MTC_GUARD_H

#include "emit/text/index.h"

/* Both hold; one of them does. Without what is said twice, or follows. */
const char *guard_and(Arena *arena, const char *a, const char *b);
const char *guard_or(Arena *arena, const char *a, const char *b);

#endif
