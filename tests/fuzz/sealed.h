/* Bytes made into a file of tensors as far as their beginning and their checksum go. */
#ifndef MTC_FUZZ_SEALED_H
#define MTC_FUZZ_SEALED_H

#include "base/hash.h"
#include "base/safetensors.h"

#include <stdio.h>
#include <string.h>

/* The checksum that the bytes have now, so that mutations get past it. */
static void seal(uint8_t *bytes, size_t size) {
    static const char key[] = "\"" MTC_CHECKSUM "\":\"", none[] = MTC_NO_CHECKSUM;
    char digits[sizeof none];
    MtcHash hash;
    for (size_t i = 8; i + sizeof key - 1 + sizeof none - 1 <= size; i++)
        if (memcmp(bytes + i, key, sizeof key - 1) == 0) {
            uint8_t *at = bytes + i + sizeof key - 1, *after = at + sizeof none - 1;
            mtc_hash_begin(&hash);
            mtc_hash_add(&hash, bytes, (size_t)(at - bytes));
            mtc_hash_add(&hash, none, sizeof none - 1);
            mtc_hash_add(&hash, after, (size_t)(bytes + size - after));
            snprintf(digits, sizeof digits, "%016llx", (unsigned long long)mtc_hash_end(&hash));
            memcpy(at, digits, sizeof none - 1);
            return;
        }
}

/* At least 8 bytes: a header length that fits, and their own checksum, so that mutations reach the JSON. */
static void make_fit(uint8_t *bytes, size_t size) {
    size_t length = (bytes[0] | (size_t)bytes[1] << 8) % (size - 7);
    memset(bytes, 0, 8);
    bytes[0] = (uint8_t)length;
    bytes[1] = (uint8_t)(length >> 8);
    seal(bytes, size);
}

#endif
