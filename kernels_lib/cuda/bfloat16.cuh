/* Numbers of 16 bits with the range of a float. */
#ifndef MTC_CUDA_BFLOAT16_CUH
#define MTC_CUDA_BFLOAT16_CUH

/* The upper half of a float: 8 bits of exponent, 7 of mantissa. */
struct bfloat16 {
    unsigned short bits;
};

/* Said so, it is one instruction for either half of a word that was loaded. */
static inline __device__ float to_float(bfloat16 x) {
    float result;
    asm("mov.b32 %0, {0, %1};" : "=f"(result) : "h"(x.bits));
    return result;
}

/* The bits of the nearest bf16 number, of two the even one, are the upper half of the word; the lower half is a remainder. */
static inline __device__ unsigned upper_bf16(float x) {
    unsigned bits = __float_as_uint(x);
    return x == x ? bits + 0x7fff + (bits >> 16 & 1) : 0x7fffffff;
}

/* Two numbers to the nearest, of two the even one, in the halves of a word: an instruction of the adders. That of one number
 * is a slow one. */
static inline __device__ unsigned to_bf16_pair(float low, float high) {
#if __CUDA_ARCH__ >= 800
    unsigned pair;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
    return pair;
#else
    return (upper_bf16(high) & 0xffff0000) | upper_bf16(low) >> 16;
#endif
}

static inline __device__ bfloat16 to_bf16(float x) {
    return {(unsigned short)(to_bf16_pair(0, x) >> 16)};
}

/* The nearest bf16 number as a float. */
static inline __device__ float round_bf16(float x) {
    return __uint_as_float(to_bf16_pair(0, x));
}

#endif
