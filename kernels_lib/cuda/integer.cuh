/* Integers of 8 bits from -I8_LARGEST to I8_LARGEST, whose products tensor cores add up exactly, in 32 bits. */
#ifndef MTC_CUDA_INTEGER_CUH
#define MTC_CUDA_INTEGER_CUH

#include "shared.h"
#include <type_traits>

using Integer = signed char;

/* The nearest integer, halves to even; the largest ones for what is beyond them, the lowest for what is no number. Beside 1.5 * 2^23,
 * where a float has no fraction, its lowest byte is the integer: an addition in place of a conversion. */
static inline __device__ Integer to_i8(float x) {
    constexpr float whole = 12582912.0f;
    float inside = fminf(fmaxf(x, -I8_LARGEST), I8_LARGEST);
    return (Integer)(__float_as_int(inside + whole) & 0xff);
}

static inline __device__ float to_float(Integer x) {
    return (float)x;
}

/* What products of T are added up in. */
template <class T> constexpr bool is_integer = std::is_same_v<T, Integer>;
template <class T> using SumOf = std::conditional_t<is_integer<T>, int, float>;

#endif
