/* The mathematics of generated expressions that CUDA C++ does not have under the same name. A NaN stays a NaN. */
#ifndef MTC_CUDA_MATH_CUH
#define MTC_CUDA_MATH_CUH

/* The upper half of a float: 8 bits of exponent, 7 of mantissa. */
struct bfloat16 {
    unsigned short bits;
};

static inline __device__ float to_float(bfloat16 x) {
    return __uint_as_float((unsigned)x.bits << 16);
}

/* To the nearest; of two as near, to the even one. */
static inline __device__ bfloat16 to_bf16(float x) {
    bfloat16 result;
#if __CUDA_ARCH__ >= 800
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(result.bits) : "f"(x));
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

static inline __device__ float sigmoid(float x) {
    return 1 / (1 + expf(-x));
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
