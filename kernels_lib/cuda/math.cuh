/* The mathematics of generated expressions that CUDA C++ does not have under the same name. A NaN stays a NaN. */
#ifndef MTC_CUDA_MATH_CUH
#define MTC_CUDA_MATH_CUH

#include "cuda/float8.cuh"
#include "cuda/integer.cuh"
#include "cuda/narrow.cuh"
#include "cuda/tf32.cuh"

static inline __device__ float relu(float x) {
    return x < 0 ? 0 : x;
}

/* The root as sqrt(x) has it. Of 1 / sqrt(x) nvcc makes another instruction, whose bits differ from those of the reciprocal of a root that was
 * stored: what is computed again behind a norm would not equal the largest of what was computed before, and a gradient would be lost. */
static inline __device__ float root(float x) {
    float result;
    asm("sqrt.approx.f32 %0, %1;" : "=f"(result) : "f"(x));
    return result;
}

/* 2^x in one instruction: within 2^-22 of the value; 0 where that is below 2^-126. */
static inline __device__ float exp2_approximate(float x) {
    float result;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
    return result;
}

/* exp(x) in two instructions: within 2^-22 + 1.25 |x| 2^-24 of the value; 0 where that is below 2^-126. */
static inline __device__ float near_exp(float x) {
    constexpr float log2_e = 1.44269504f;
    return exp2_approximate(log2_e * x);
}

/* 1 / (1 + exp(-x)), by the instructions for 2^x and 1 / x, without the branch of a division: within 2e-7, of small values
 * within (4 + 2 |x|) units in the last place. */
static inline __device__ float sigmoid(float x) {
    float result;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(1 + near_exp(-x)));
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
