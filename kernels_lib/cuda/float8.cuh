/* Numbers of 8 bits: a sign, 4 bits of exponent and 3 of fraction, from 2^-9 to 448; no infinity. */
#ifndef MTC_CUDA_FLOAT8_CUH
#define MTC_CUDA_FLOAT8_CUH

#include <type_traits>

struct e4m3 {
    unsigned char bits;
};

/* What tensor cores add up with 14 bits of fraction. */
template <class T> constexpr bool is_float8 = std::is_same_v<T, e4m3>;

#if defined __CUDA_ARCH__ && __CUDA_ARCH__ >= 890

/* Of the device that is compiled for: asked of a type, so that only who needs it asks. */
template <class> constexpr bool HAS_FLOAT8 = true;

/* The nearest, of two the even one, the largest for what is beyond it; two with one instruction, in the halves of a word's half. */
static inline __device__ unsigned short to_e4m3_pair(float low, float high) {
    unsigned short pair;
    asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(high), "f"(low));
    return pair;
}
static inline __device__ e4m3 to_e4m3(float x) {
    return {(unsigned char)to_e4m3_pair(x, 0)};
}
static inline __device__ float to_float(e4m3 x) {
    unsigned pair;
    asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(pair) : "h"((unsigned short)x.bits));
    float result;
    asm("cvt.f32.f16 %0, %1;" : "=f"(result) : "h"((unsigned short)pair));
    return result;
}

#else

template <class> constexpr bool HAS_FLOAT8 = false;

/* The same in other instructions. Beside 2^14, whose last place is 2^-9, a float is rounded as what becomes subnormal. */
static inline __device__ e4m3 to_e4m3(float x) {
    constexpr int shift = 20, bias = (127 - 7) << 23, normal = 121 << 23, largest = 0x7e;
    int all = __float_as_int(x), sign = all >> 24 & 0x80, magnitude = all & 0x7fffffff;
    int small = __float_as_int(__int_as_float(magnitude) + 16384.0f) - __float_as_int(16384.0f);
    int large = (magnitude - bias + 0x7ffff + (magnitude >> shift & 1)) >> shift;
    int bits = x != x ? 0x7f : magnitude < normal ? small : large < largest ? large : largest;
    return {(unsigned char)(bits | sign)};
}
static inline __device__ unsigned short to_e4m3_pair(float low, float high) {
    return (unsigned short)(to_e4m3(high).bits << 8 | to_e4m3(low).bits);
}
static inline __device__ float to_float(e4m3 x) {
    constexpr int shift = 20, bias = (127 - 7) << 23;
    int magnitude = x.bits & 0x7f, sign = (x.bits & 0x80) << 24;
    float value = magnitude == 0x7f ? __int_as_float(0x7fc00000)
                  : magnitude < 8   ? magnitude * 0x1p-9f
                                    : __int_as_float((magnitude << shift) + bias);
    return __int_as_float(__float_as_int(value) | sign);
}

#endif
#endif
