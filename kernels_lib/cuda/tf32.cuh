/* Floats with the 10 bits of fraction that tensor cores read of them. */
#ifndef MTC_CUDA_TF32_CUH
#define MTC_CUDA_TF32_CUH

/* The nearest such number, of two the larger one: tensor cores would cut x off. */
static inline __device__ float to_tf32(float x) {
    unsigned bits;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(x));
    return __uint_as_float(bits);
}

/* One of the nearest, by one instruction where there is one for it. */
static inline __device__ float near_tf32(float x) {
#if __CUDA_ARCH__ >= 900
    unsigned bits;
    asm("cvt.rn.tf32.f32 %0, %1;" : "=r"(bits) : "f"(x));
    return __uint_as_float(bits);
#else
    return to_tf32(x);
#endif
}

/* One that was rounded when it was stored. */
struct tf32 {
    float number;
};

static inline __device__ float to_float(tf32 x) {
    return x.number;
}

/* Of tiles: a float is multiplied as the sum of two such numbers. */
struct tf32x3 {
    float number;
};
template <class T> constexpr int terms_of = 1;
template <> constexpr int terms_of<tf32x3> = 2;

/* The first is the nearest, so that what is left is small and as often below zero as above. */
static inline __device__ void split_terms(unsigned &first, unsigned &second) {
    float x = __uint_as_float(first), nearest = near_tf32(x);
    first = __float_as_uint(nearest);
    second = __float_as_uint(x - nearest);
}

static inline __device__ const tf32 *rounded(const float *numbers) {
    return (const tf32 *)numbers;
}

#endif
