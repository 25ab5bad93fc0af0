/* Numbers of 8 bits: a sign, 4 bits of exponent and 3 of fraction, from 2^-9 to 448; no infinity. As cuda/float8.cuh, to the same
 * bits; in instructions without branches, for vector code, and without subnormal floats, which programs take for 0. */
#ifndef MTC_CPU_FLOAT8_H
#define MTC_CPU_FLOAT8_H

#include <stdint.h>
#include <string.h>

typedef struct e4m3 {
    uint8_t bits;
} e4m3;

static inline uint32_t e4m3_bits_of(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline float e4m3_float_of(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

enum { E4M3_SHIFT = 20, E4M3_BIAS = (127 - 7) << 23, E4M3_NORMAL = 121 << 23, E4M3_LARGEST = 0x7e, E4M3_NAN = 0x7f };

/* The nearest, of two the even one, the largest for what is beyond it. Beside 2^14, whose last place is 2^-9, a float is rounded as
 * what becomes subnormal. */
static inline e4m3 to_e4m3(float x) {
    const uint32_t all = e4m3_bits_of(x), sign = all >> 24 & 0x80, magnitude = all & 0x7fffffff;
    const float beside = 16384;
    const uint32_t small = e4m3_bits_of(e4m3_float_of(magnitude) + beside) - e4m3_bits_of(beside);
    const uint32_t large = (magnitude - E4M3_BIAS + 0x7ffff + (magnitude >> E4M3_SHIFT & 1)) >> E4M3_SHIFT;
    const uint32_t held = large < E4M3_LARGEST ? large : E4M3_LARGEST;
    const uint32_t rounded = magnitude < E4M3_NORMAL ? small : held;
    return (e4m3){(uint8_t)((x != x ? E4M3_NAN : rounded) | sign)};
}

static inline float e4m3_to_float(e4m3 x) {
    const uint32_t magnitude = x.bits & 0x7f, sign = (uint32_t)(x.bits & 0x80) << 24;
    const float small = (float)(int)magnitude * 0x1p-9f;
    const uint32_t normal = (magnitude << E4M3_SHIFT) + E4M3_BIAS;
    const uint32_t value = magnitude == E4M3_NAN ? 0x7fc00000 : magnitude < 8 ? e4m3_bits_of(small) : normal;
    return e4m3_float_of(value | sign);
}

#endif
