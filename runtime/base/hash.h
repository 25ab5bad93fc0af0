/* A 64-bit checksum of bytes, for damage and difference, not for secrets. Whatever is changed within one aligned word of
 * eight bytes changes the result for certain: each step below is a bijection of the word and of the state before it. Any
 * other change goes unnoticed with probability 2^-64. */
#ifndef MTC_HASH_H
#define MTC_HASH_H

#include "base/common.h"

typedef struct MtcHash {
    uint64_t lane[4], length;
    uint8_t rest[32]; /* bytes that do not fill a block yet */
} MtcHash;

void mtc_hash_begin(MtcHash *hash);
void mtc_hash_add(MtcHash *hash, const void *bytes, size_t size);
uint64_t mtc_hash_end(MtcHash *hash);

#endif
