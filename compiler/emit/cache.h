/* Programs that were compiled before, in $XDG_CACHE_HOME/mtc or ~/.cache/mtc, by the hash of all that went into them. */
#ifndef MTC_CACHE_H
#define MTC_CACHE_H

#include "support/arena.h"

#include <stdbool.h>

/* Copies the program of that key to `output`; false when there is none or it cannot be copied. */
bool cache_get(Arena *arena, const char *key, const char *output);
/* Keeps a copy. A cache that cannot be written is none. */
void cache_put(Arena *arena, const char *key, const char *program);

#endif
