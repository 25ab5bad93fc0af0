/* The numbers of 16 bits that a program stores: bfloat16, or float16 where it was generated for fp16. */
#ifndef MTC_CUDA_NARROW_CUH
#define MTC_CUDA_NARROW_CUH

#ifdef MTC_FLOAT16
#include "cuda/float16.cuh"
using Narrow = float16;
#define NARROW_NAME "f16" // of instructions
#define NARROW_MAP 6      // of maps for the copies of bulk.cuh
#else
#include "cuda/bfloat16.cuh"
using Narrow = bfloat16;
#define NARROW_NAME "bf16"
#define NARROW_MAP 10
#endif

static inline __device__ Narrow to_narrow(float x) {
#ifdef MTC_FLOAT16
    return to_f16(x);
#else
    return to_bf16(x);
#endif
}

/* In the halves of a word. */
static inline __device__ unsigned to_narrow_pair(float low, float high) {
#ifdef MTC_FLOAT16
    return to_f16_pair(low, high);
#else
    return to_bf16_pair(low, high);
#endif
}

#endif
