/* What reading gave, kept for the next time: `.sales.tsv.mtc-cache` beside the file or folder; where that place cannot be
 * written, in the user's cache. Nothing here can fail: what cannot be read or written is not used. */
#ifndef MTC_CACHE_H
#define MTC_CACHE_H

#include "base/common.h"

typedef struct MtcDigest {
    uint64_t at[2];
} MtcDigest;
MtcDigest mtc_digest(const void *bytes, size_t size);

/* Where what was made of `path` is kept: 0 beside it; 1 in the user's cache. NULL: there is no such place. Free it. */
enum { MTC_CACHE_PLACES = 2 };
char *mtc_cache_path(const char *path, int place);
/* In the first place that can be written. The bytes are in two pieces. */
void mtc_cache_keep(const char *path, const void *header, size_t header_size, const void *rest, size_t rest_size);

#endif
