/* Floats with the 10 bits of fraction that tensor cores read of them. */
#ifndef MTC_CUDA_TF32_CUH
#define MTC_CUDA_TF32_CUH

/* The nearest such number, of two the larger one: tensor cores would cut x off. */
static inline __device__ float to_tf32(float x) {
    unsigned bits;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(x));
    return __uint_as_float(bits);
}

/* One that was rounded when it was stored. */
struct tf32 {
    float number;
};

static inline __device__ float to_float(tf32 x) {
    return x.number;
}

static inline __device__ const tf32 *rounded(const float *numbers) {
    return (const tf32 *)numbers;
}

#endif
