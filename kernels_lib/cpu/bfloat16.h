/* Numbers of 16 bits: the upper half of a float. Values are stored so; arithmetic is done with what to_float makes of them. */
#ifndef MTC_CPU_BFLOAT16_H
#define MTC_CPU_BFLOAT16_H

#include <stdint.h>
#include <string.h>

typedef struct bfloat16 {
    uint16_t bits;
} bfloat16;

static inline float to_float(bfloat16 x) {
    uint32_t bits = (uint32_t)x.bits << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Rounded to the nearest, of two to the even one; what is not a number stays that, whatever its lower half was. */
static inline bfloat16 to_bf16(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    return (bfloat16){(uint16_t)(x != x ? bits >> 16 | 0x40 : rounded)};
}

#endif
