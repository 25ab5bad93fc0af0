/* The mathematics of generated expressions that CUDA C++ does not have under the same name. A NaN stays a NaN. */
#ifndef MTC_CUDA_MATH_CUH
#define MTC_CUDA_MATH_CUH

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

/* To the nearest; of two as near, to the even one. */
static inline __device__ bfloat16 to_bf16(float x) {
    bfloat16 result;
#if __CUDA_ARCH__ >= 800
    unsigned upper; // the conversion of a pair is an instruction of the adders, that of one number a slow one
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(upper) : "f"(x), "f"(0.0f));
    result.bits = (unsigned short)(upper >> 16);
#else
    unsigned bits = __float_as_uint(x);
    unsigned rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    result.bits = (unsigned short)(x == x ? rounded : 0x7fff);
#endif
    return result;
}

static inline __device__ float relu(float x) {
    return x < 0 ? 0 : x;
}

/* 1 / (1 + exp(-x)), by the instructions for 2^x and 1 / x, without the branch of a division: within 2e-7, of small values
 * within (4 + 2 |x|) units in the last place. */
static inline __device__ float sigmoid(float x) {
    constexpr float log2_e = 1.44269504f;
    float power, result;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(-log2_e * x));
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(1 + power));
    return result;
}

/* log(1 + exp(x)) without overflow. */
static inline __device__ float softplus(float x) {
    return fmaxf(x, 0) + log1pf(expf(-fabsf(x)));
}

static inline __device__ float sign(float x) {
    return (float)(x > 0) - (float)(x < 0);
}

/* The whole number from 0 to size - 1 that is nearest to x. */
static inline __device__ int clamped(int x, int size) {
    return x < 0 ? 0 : x < size ? x : size - 1;
}

#endif
