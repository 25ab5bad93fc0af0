/* The mathematics of generated expressions that CUDA C++ does not have under the same name. A NaN stays a NaN. */
#ifndef MTC_CUDA_MATH_CUH
#define MTC_CUDA_MATH_CUH

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

#endif
