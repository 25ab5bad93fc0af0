/* SHA-256 (FIPS 180-4), for names that depend on content. */
#ifndef MTC_SHA256_H
#define MTC_SHA256_H

#include "support/arena.h"

#include <stdint.h>

typedef struct Sha256 {
    uint32_t state[8];
    uint64_t length; /* bytes so far */
    unsigned char block[64];
} Sha256;

void sha256_begin(Sha256 *hash);
void sha256_add(Sha256 *hash, const void *bytes, size_t length);
/* A string and its terminator, so that neighbours cannot be confused. */
void sha256_add_string(Sha256 *hash, const char *string);
const char *sha256_hex(Sha256 *hash, Arena *arena);

#endif
