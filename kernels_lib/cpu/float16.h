/* Numbers of 16 bits as IEEE 754 has them: 5 bits of exponent, 10 of fraction. Values are stored so; arithmetic is done with what
 * to_float makes of them. Without branches, for vector code, and without subnormal floats, which programs take for 0. */
#ifndef MTC_CPU_FLOAT16_H
#define MTC_CPU_FLOAT16_H

#include <stdint.h>
#include <string.h>

typedef struct float16 {
    uint16_t bits;
} float16;

static inline float float_of_bits(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline uint32_t bits_of_float(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

enum {
    FLOAT16_SHIFT = 13,              /* of its bits in a float's */
    FLOAT16_BIAS = (127 - 15) << 23, /* what a float's exponent has more */
    FLOAT16_LEAST = 113 << 23        /* 2^-14, the smallest normal one, as a float */
};

/* A subnormal number is its fraction in units of 2^-24, the last place of 2^-14 .. 2^-13: 2^-14 with that fraction, less 2^-14. */
static inline float to_float(float16 x) {
    const uint32_t magnitude = (uint32_t)(x.bits & 0x7fff) << FLOAT16_SHIFT, sign = (uint32_t)(x.bits & 0x8000) << 16;
    const uint32_t normal = magnitude + FLOAT16_BIAS, endless = normal + FLOAT16_BIAS; /* infinity, no number */
    const uint32_t small = bits_of_float(float_of_bits(magnitude + FLOAT16_LEAST) - float_of_bits(FLOAT16_LEAST));
    const uint32_t bits = magnitude < 0x400 << FLOAT16_SHIFT    ? small
                          : magnitude < 0x7c00 << FLOAT16_SHIFT ? normal
                                                                : endless;
    return float_of_bits(bits | sign);
}

/* Rounded to the nearest, of two to the even one; from 65520 on to infinity. Adding 0.5, whose last place is 2^-24, rounds what
 * becomes subnormal. */
static inline float16 to_f16(float x) {
    const uint32_t all = bits_of_float(x), sign = all >> 16 & 0x8000, magnitude = all & 0x7fffffff;
    const uint32_t small = bits_of_float(float_of_bits(magnitude) + 0.5f) - bits_of_float(0.5f);
    const uint32_t even = magnitude >> FLOAT16_SHIFT & 1;
    const uint32_t normal = (magnitude - FLOAT16_BIAS + 0xfff + even) >> FLOAT16_SHIFT;
    const uint32_t bits = x != x                      ? 0x7e00
                          : magnitude < FLOAT16_LEAST ? small
                          : magnitude < (143u << 23)  ? normal
                                                      : 0x7c00;
    return (float16){(uint16_t)(bits | sign)};
}

#endif
