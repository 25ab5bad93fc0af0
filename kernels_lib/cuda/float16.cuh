/* Numbers of 16 bits as IEEE 754 has them: 5 bits of exponent, 10 of fraction; infinity from 65520 on. */
#ifndef MTC_CUDA_FLOAT16_CUH
#define MTC_CUDA_FLOAT16_CUH

struct float16 {
    unsigned short bits;
};

static inline __device__ float to_float(float16 x) {
    float result;
    asm("cvt.f32.f16 %0, %1;" : "=f"(result) : "h"(x.bits));
    return result;
}

/* The nearest, of two the even one. */
static inline __device__ float16 to_f16(float x) {
    float16 result;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(result.bits) : "f"(x));
    return result;
}

/* Two of them in the halves of a word. */
static inline __device__ unsigned to_f16_pair(float low, float high) {
#if __CUDA_ARCH__ >= 800
    unsigned pair;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
    return pair;
#else
    return (unsigned)to_f16(high).bits << 16 | to_f16(low).bits;
#endif
}

/* The nearest such number as a float. */
static inline __device__ float round_f16(float x) {
    return to_float(to_f16(x));
}

#endif
