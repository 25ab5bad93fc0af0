#include "base/hash.h"

#include <string.h>

enum { HASH_BLOCK = 32 };
static const uint64_t HASH_ODD = UINT64_C(0x9E3779B97F4A7C15); /* 2^64 / golden ratio */

static uint64_t hash_step(uint64_t state, uint64_t word) {
    return ((state << 29 | state >> 35) ^ word) * HASH_ODD;
}

static void hash_blocks(MtcHash *hash, const uint8_t *bytes, size_t blocks) {
    uint64_t a = hash->lane[0], b = hash->lane[1], c = hash->lane[2], d = hash->lane[3], word[4];
    for (size_t i = 0; i < blocks; i++, bytes += HASH_BLOCK) {
        memcpy(word, bytes, sizeof word);
        a = hash_step(a, word[0]);
        b = hash_step(b, word[1]);
        c = hash_step(c, word[2]);
        d = hash_step(d, word[3]);
    }
    hash->lane[0] = a;
    hash->lane[1] = b;
    hash->lane[2] = c;
    hash->lane[3] = d;
}

void mtc_hash_begin(MtcHash *hash) {
    memset(hash, 0, sizeof *hash);
    for (uint64_t i = 0; i < 4; i++)
        hash->lane[i] = (i + 1) * HASH_ODD;
}

void mtc_hash_add(MtcHash *hash, const void *bytes, size_t size) {
    const uint8_t *at = (const uint8_t *)bytes;
    size_t held = (size_t)(hash->length % HASH_BLOCK), missing = HASH_BLOCK - held;
    hash->length += size;
    if (held && size >= missing) {
        memcpy(hash->rest + held, at, missing);
        hash_blocks(hash, hash->rest, 1);
        at += missing;
        size -= missing;
        held = 0;
    }
    if (!held) {
        hash_blocks(hash, at, size / HASH_BLOCK);
        at += size / HASH_BLOCK * HASH_BLOCK;
        size %= HASH_BLOCK;
    }
    if (size)
        memcpy(hash->rest + held, at, size);
}

uint64_t mtc_hash_end(MtcHash *hash) {
    size_t held = (size_t)(hash->length % HASH_BLOCK);
    uint64_t result = hash->length;
    memset(hash->rest + held, 0, HASH_BLOCK - held);
    hash_blocks(hash, hash->rest, 1);
    for (int i = 0; i < 4; i++)
        result = hash_step(result, hash->lane[i]);
    result = (result ^ result >> 32) * HASH_ODD;
    return result ^ result >> 29;
}
