/* What is filled before steps run: the order of the examples, and initial values where they lie. */
#ifndef MTC_CUDA_FILL_CUH
#define MTC_CUDA_FILL_CUH

#include "cuda/batch.cuh"
#include "cuda/compiled.cuh"

/* ---- the order of the examples ---- */

static __global__ void fill_orders(int *order, uint64_t seed, int64_t epoch, int64_t epochs, int64_t examples) {
    int64_t at = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (at < epochs * examples)
        order[at] = (int)mtc_permute(mtc_shuffle_key(seed, (uint64_t)(epoch + at / examples)), (uint32_t)examples,
                                     (uint32_t)(at % examples));
}

static inline const char *launch_shuffle(const MtcRun *run, int *order, int64_t epoch, int64_t epochs) {
    int64_t examples = run->data.examples, blocks = (epochs * examples + THREADS - 1) / THREADS;
    fill_orders<<<(unsigned)blocks, THREADS>>>(order, run->seed, epoch, epochs, examples);
    return Attempt().then([] { return cudaGetLastError(); }).text();
}

/* ---- initial values ---- */

template <typename T>
static __global__ void draw_values(T *values, int64_t count, bool normal, double base, double span, uint64_t seed,
                                   uint32_t stream, MtcPassing passing) {
    int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (i < count)
        values[i] = (uint64_t)i < passing.passed ? (T)mtc_passed(passing, (uint64_t)i)
                                                 : (T)mtc_initial(normal, base, span, seed, stream, (uint64_t)i);
}

/* A constant is a uniform number from a range of none. */
template <typename T> static const char *draw_as(T *values, const MtcTensor *tensor, uint64_t seed, uint32_t stream) {
    const bool normal = tensor->init == MTC_NORMAL, constant = tensor->init == MTC_CONSTANT;
    const double span = normal ? tensor->b : constant ? 0 : tensor->b - tensor->a;
    const MtcPassing none = {0, 1, 0};
    int64_t count = 1;
    for (int k = 0; k < tensor->rank; k++)
        count *= tensor->dim[k];
    draw_values<<<(unsigned)((count + THREADS - 1) / THREADS), THREADS>>>(
        values, count, normal, tensor->a, span, seed, stream,
        tensor->init == MTC_DIRAC ? mtc_passing(tensor->rank, tensor->dim) : none);
    return Attempt().then([] { return cudaGetLastError(); }).text();
}

static inline const char *launch_draw(char *arena, const MtcTensor *tensor, uint64_t seed, uint32_t stream) {
    char *values = arena + tensor->offset;
    switch (tensor->type) {
    case MTC_F32: return draw_as(reinterpret_cast<float *>(values), tensor, seed, stream);
    case MTC_I32: return draw_as(reinterpret_cast<int *>(values), tensor, seed, stream);
    default: return "a tensor of a type that is not drawn";
    }
}

#endif
