/* Whether bytes are text: UTF-8 without 0. A character at a time finds where they are not; AVX2 passes what is text first, 64
 * bytes at a time, by Keiser and Lemire's tables ("Validating UTF-8 in less than one instruction per byte", 2021). */
#include "data/table.h"

#include <string.h>

/* ---- a character at a time ---- */

/* How many bytes the character at `at` has; 0: it is none. The ranges of the second byte keep out what could be written
 * shorter, surrogates, and what lies beyond U+10FFFF. */
static int character_length(const unsigned char *at, const unsigned char *end) {
    unsigned char first = at[0], low = 0x80, high = 0xBF;
    int length = first < 0x80 ? 1 : first < 0xC2 ? 0 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : first < 0xF5 ? 4 : 0;
    if (first == 0 || length > end - at)
        return 0;
    low = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : low;
    high = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : high;
    for (int i = 1; i < length; i++, low = 0x80, high = 0xBF)
        if (at[i] < low || at[i] > high)
            return 0;
    return length;
}

/* How many characters that are ASCII and not 0 come next, as far as whole words of memory show. */
static size_t plain_bytes(const unsigned char *at, const unsigned char *end) {
    const unsigned char *begin = at;
    for (uint64_t word; end - at >= 8; at += 8) {
        memcpy(&word, at, 8);
        if (((word - 0x0101010101010101u) | word) & 0x8080808080808080u)
            break;
    }
    return (size_t)(at - begin);
}

static const unsigned char *first_bad(const unsigned char *at, const unsigned char *end) {
    while (at < end) {
        at += plain_bytes(at, end);
        for (bool more = at < end; more; more = at < end && *at >= 0x80) {
            int length = character_length(at, end);
            if (length == 0)
                return at;
            at += length;
        }
    }
    return NULL;
}

/* ---- 64 bytes at a time ---- */

#ifdef MTC_AVX2

/* What can be wrong with a byte and the one before it, a bit each; two of them share one. */
enum {
    UTF8_SHORT = 1,       /* a lead, then no continuation */
    UTF8_LONG = 2,        /* ASCII, then a continuation */
    UTF8_OVERLONG_3 = 4,  /* E0, then below A0 */
    UTF8_LARGE_90 = 8,    /* F4 or above, then 90 or above */
    UTF8_SURROGATE = 16,  /* ED, then A0 or above */
    UTF8_OVERLONG_2 = 32, /* C0 or C1 */
    UTF8_OVERLONG_4 = 64, /* F0, then below 90 */
    UTF8_LARGE_80 = 64,   /* F5 or above, then below 90 */
    UTF8_TWO = -128,      /* two continuations: wrong unless a lead of three or four bytes comes before them */
    UTF8_ANY_LOW = UTF8_SHORT | UTF8_LONG | UTF8_TWO,
    UTF8_LARGE = UTF8_ANY_LOW | UTF8_LARGE_90 | UTF8_LARGE_80
};

MTC_AVX2 static inline __m256i load_bytes(const unsigned char *at) {
    return _mm256_loadu_si256((const __m256i *)(const void *)at);
}

MTC_AVX2 static inline __m256i high_nibbles(__m256i bytes) {
    return _mm256_and_si256(_mm256_srli_epi16(bytes, 4), _mm256_set1_epi8(15));
}

/* The bits of each pair that ends in one of 32 bytes: what its three nibbles agree on. */
MTC_AVX2 static inline __m256i pair_faults(__m256i before, __m256i bytes) {
    const __m256i by_high = _mm256_broadcastsi128_si256(
        _mm_setr_epi8(UTF8_LONG, UTF8_LONG, UTF8_LONG, UTF8_LONG, UTF8_LONG, UTF8_LONG, UTF8_LONG, UTF8_LONG, UTF8_TWO,
                      UTF8_TWO, UTF8_TWO, UTF8_TWO, UTF8_SHORT | UTF8_OVERLONG_2, UTF8_SHORT,
                      UTF8_SHORT | UTF8_OVERLONG_3 | UTF8_SURROGATE, UTF8_SHORT | UTF8_LARGE_90 | UTF8_LARGE_80));
    const __m256i by_low = _mm256_broadcastsi128_si256(_mm_setr_epi8(
        UTF8_ANY_LOW | UTF8_OVERLONG_2 | UTF8_OVERLONG_3 | UTF8_OVERLONG_4, UTF8_ANY_LOW | UTF8_OVERLONG_2,
        UTF8_ANY_LOW, UTF8_ANY_LOW, UTF8_ANY_LOW | UTF8_LARGE_90, UTF8_LARGE, UTF8_LARGE, UTF8_LARGE, UTF8_LARGE,
        UTF8_LARGE, UTF8_LARGE, UTF8_LARGE, UTF8_LARGE, UTF8_LARGE | UTF8_SURROGATE, UTF8_LARGE, UTF8_LARGE));
    const __m256i by_second = _mm256_broadcastsi128_si256(
        _mm_setr_epi8(UTF8_SHORT, UTF8_SHORT, UTF8_SHORT, UTF8_SHORT, UTF8_SHORT, UTF8_SHORT, UTF8_SHORT, UTF8_SHORT,
                      UTF8_TWO | UTF8_LONG | UTF8_OVERLONG_2 | UTF8_OVERLONG_3 | UTF8_OVERLONG_4,
                      UTF8_TWO | UTF8_LONG | UTF8_OVERLONG_2 | UTF8_OVERLONG_3 | UTF8_LARGE_90,
                      UTF8_TWO | UTF8_LONG | UTF8_OVERLONG_2 | UTF8_SURROGATE | UTF8_LARGE_90,
                      UTF8_TWO | UTF8_LONG | UTF8_OVERLONG_2 | UTF8_SURROGATE | UTF8_LARGE_90, UTF8_SHORT, UTF8_SHORT,
                      UTF8_SHORT, UTF8_SHORT));
    __m256i high = _mm256_shuffle_epi8(by_high, high_nibbles(before));
    __m256i low = _mm256_shuffle_epi8(by_low, _mm256_and_si256(before, _mm256_set1_epi8(15)));
    return _mm256_and_si256(_mm256_and_si256(high, low), _mm256_shuffle_epi8(by_second, high_nibbles(bytes)));
}

/* Not 0 where one of 32 bytes is not text after the three before it. */
MTC_AVX2 static inline __m256i byte_faults(const unsigned char *at) {
    const __m256i top = _mm256_set1_epi8(-128);
    __m256i bytes = load_bytes(at), zero = _mm256_cmpeq_epi8(bytes, _mm256_setzero_si256());
    __m256i third = _mm256_subs_epu8(load_bytes(at - 2), _mm256_set1_epi8(0xE0 - 0x80));
    __m256i fourth = _mm256_subs_epu8(load_bytes(at - 3), _mm256_set1_epi8(0xF0 - 0x80));
    __m256i due = _mm256_and_si256(_mm256_or_si256(third, fourth), top);
    return _mm256_or_si256(zero, _mm256_xor_si256(pair_faults(load_bytes(at - 1), bytes), due));
}

/* Whether 64 bytes, and the three before them, are ASCII, and none is 0: the faults of such bytes are known. */
MTC_AVX2 static inline bool is_ascii(const unsigned char *at) {
    __m256i low = load_bytes(at), high = load_bytes(at + 32),
            any = _mm256_or_si256(_mm256_or_si256(low, high), load_bytes(at - 3));
    __m256i zeros = _mm256_cmpeq_epi8(_mm256_min_epu8(low, high), _mm256_setzero_si256());
    return _mm256_movemask_epi8(_mm256_or_si256(any, zeros)) == 0;
}

/* Passes text, from where a character begins, three bytes or more behind the text's beginning: where one of its last
 * characters begins. */
MTC_AVX2 static const unsigned char *pass_text(const unsigned char *at, const unsigned char *end) {
    for (; end - at >= 64; at += 64) {
        if (is_ascii(at))
            continue;
        __m256i faults = _mm256_or_si256(byte_faults(at), byte_faults(at + 32));
        if (!_mm256_testz_si256(faults, faults))
            break;
    }
    do
        at--;
    while ((*at & 0xC0) == 0x80);
    return at;
}

#endif

const char *mtc_text_bad(const char *begin, const char *end) {
    const unsigned char *at = (const unsigned char *)begin, *stop = (const unsigned char *)end;
#ifdef MTC_AVX2
    if (end - begin >= 128 && mtc_has_avx2()) {
        for (int length = 1; at < (const unsigned char *)begin + 3; at += length)
            if ((length = character_length(at, stop)) == 0)
                return (const char *)at;
        at = pass_text(at, stop);
    }
#endif
    return (const char *)first_bad(at, stop);
}
