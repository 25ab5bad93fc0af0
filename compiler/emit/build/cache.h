/* Programs that were compiled before, in $XDG_CACHE_HOME/mtc/programs or ~/.cache/mtc/programs, by the hash of all that went
 * into them. What lies there will be run: it is believed only where nobody but the user may write, and only with its digest. */
#ifndef MTC_CACHE_H
#define MTC_CACHE_H

#include "support/diag.h"

/* The program of that key, *size bytes; NULL when there is none that can be trusted: an entry that is damaged is dropped,
 * and either is said. */
const char *cache_find(Diag *diag, const char *key, size_t *size);
/* Keeps a copy. A cache that cannot be written is none. */
void cache_put(Arena *arena, const char *key, const char *program, size_t size);

#endif
