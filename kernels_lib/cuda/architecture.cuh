/* What a block may ask of the device that it runs on. Programs are planned for devices with PLANNED_SHARED bytes of shared memory
 * a block, and are the same for all: where there is less, kernels make do with it, and a launch asks for no more than that.
 *
 * Code of an architecture, 75 for sm_75, may run on devices that have less than the one that gave it its name: that of sm_80
 * runs on sm_86 and sm_89. What counts is the least of them. The table of devices is compiler/pass/gpus.def. */
#ifndef MTC_CUDA_ARCHITECTURE_CUH
#define MTC_CUDA_ARCHITECTURE_CUH

#include "shared.h"

/* Bytes that code of the architecture may use in a block, its own arrays counted in. */
__host__ __device__ constexpr int most_shared(int architecture) {
    return architecture < 80 ? 64 << 10 : architecture < 90 || architecture >= 120 ? 99 << 10 : PLANNED_SHARED;
}

/* Threads of a multiprocessor. */
__host__ __device__ constexpr int most_threads(int architecture) {
    return architecture < 80 ? 1024 : architecture < 90 || architecture >= 110 ? 1536 : 2048;
}

/* Of what is being compiled. On the host, which launches code of any: for the body of a kernel only. */
#ifdef __CUDA_ARCH__
constexpr int MOST_SHARED = most_shared(__CUDA_ARCH__ / 10), MOST_RESIDENT = most_threads(__CUDA_ARCH__ / 10);
#else
constexpr int MOST_SHARED = PLANNED_SHARED, MOST_RESIDENT = most_threads(90);
#endif

/* Tensor cores for bf16 and tf32 came with sm_80; sm_75 has them for IEEE's halves. Asked of a type, so that only who needs them asks. */
#if defined __CUDA_ARCH__ && __CUDA_ARCH__ < 800 && !defined MTC_FLOAT16
template <class> constexpr bool HAS_TENSOR_CORES = false;
#else
template <class> constexpr bool HAS_TENSOR_CORES = true;
#endif

#endif
