/* For who launches kernels: calls that may fail, and what the code of a kernel can have of the device. */
#ifndef MTC_CUDA_COMPILED_CUH
#define MTC_CUDA_COMPILED_CUH

#include "cuda/architecture.cuh"

#include <algorithm>

/* The first error of a sequence of calls: nothing runs after it. */
struct Attempt {
    cudaError_t error = cudaSuccess;

    template <class Call> Attempt &then(Call call) {
        if (error == cudaSuccess)
            error = call();
        return *this;
    }
    const char *text() const {
        return error == cudaSuccess ? nullptr : cudaGetErrorString(error);
    }
};

/* Beyond 48 KB, its own arrays counted in, a kernel gets shared memory only when it has been asked for. */
template <class Kernel> cudaError_t allow_shared(Kernel kernel, int bytes) {
    return cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
}

/* What a kernel's code for this device was compiled for, 75 for sm_75. It may be older than the device: then it uses less
 * shared memory, and has no instructions that wait for another launch, or for a cluster. */
struct Compiled {
    int architecture = 0;
    bool in_clusters = false; // of larger blocks

    static Compiled of(const void *kernel, cudaError_t *error) {
        cudaFuncAttributes attributes = {};
        *error = cudaFuncGetAttributes(&attributes, kernel);
        return {attributes.ptxVersion, attributes.requiredClusterWidth > 0};
    }
    bool has_instructions_of_sm_90() const {
        return architecture >= 90;
    }
    /* Of `planned` bytes of shared memory. */
    int shared(int planned) const {
        return std::min(planned, most_shared(architecture));
    }
};

/* Bytes for a launch that was planned with so many, and that may now have them. What fails, makes the launch fail. */
static inline int allowed_shared(const void *kernel, int planned) {
    cudaError_t known;
    int bytes = Compiled::of(kernel, &known).shared(planned);
    return known == cudaSuccess && allow_shared(kernel, bytes) == cudaSuccess ? bytes : planned;
}

#endif
