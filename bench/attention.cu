// Attention (kernels_lib/cuda/attention.cuh) for bench/attention.py, which has PyTorch beside it: forward, the dots, gradient.
//
//     nvcc -std=c++17 -O3 -gencode=arch=compute_90a,code=sm_90a -DCASES='"attention_speed.inc"' -shared -Xcompiler -fPIC
//         -Ikernels_lib -Iruntime -Ibench bench/attention.cu -o build/bench_attention.so
//
// attention_check.inc has small cases of all kinds, attention_speed.inc those of language models.
#include <cstdio>

#include "cuda/attention.cuh"
#include "cuda/compiled.cuh"

template <class Shape, class T>
__global__ void __launch_bounds__(THREADS) attend_kernel(const T *qkv, T *out, float *sums, float scale) {
    extern __shared__ __align__(1024) char shared[];
    attend<Shape>(qkv, out, sums, scale, blockIdx.x, shared);
}

/* dots[q, h] = dout[q, h] . out[q, h]: eight lanes a head. */
template <class Shape, class T>
__global__ void __launch_bounds__(THREADS) dots_kernel(const T *out, const T *dout, float *dots) {
    constexpr int heads = Shape::batch * Shape::length * Shape::queries, lanes = 8;
    constexpr int width = neighbours_of(Shape::size);
    int head = (blockIdx.x * THREADS + threadIdx.x) / lanes;
    float sum = 0;
    for (int i = threadIdx.x % lanes * width; head < heads && i < Shape::size; i += lanes * width) {
        Pack<T, width> x = load_pack<width>(out + (int64_t)head * Shape::size + i);
        Pack<T, width> y = load_pack<width>(dout + (int64_t)head * Shape::size + i);
        for (int v = 0; v < width; v++)
            sum += to_float(x[v]) * to_float(y[v]);
    }
    for (int apart = lanes / 2; apart > 0; apart /= 2)
        sum += __shfl_xor_sync(~0u, sum, apart);
    if (head < heads && threadIdx.x % lanes == 0)
        dots[head] = sum;
}

template <class Shape, class T>
__global__ void __launch_bounds__(THREADS)
    attend_grad_kernel(const T *qkv, const float *sums, const float *dots, const T *dout, T *dqkv, float scale) {
    extern __shared__ __align__(1024) char shared[];
    attend_grad<Shape>(qkv, sums, dots, dout, dqkv, scale, blockIdx.x, shared);
}

template <class Shape, class T = typename Shape::Number>
static int launch_forward(const void *qkv, void *out, float *sums, float scale, cudaStream_t stream) {
    auto kernel = attend_kernel<Shape, T>;
    const int shared = allowed_shared((const void *)kernel, attend_shared<Shape>());
    kernel<<<attend_tiles<Shape>(), THREADS, shared, stream>>>((const T *)qkv, (T *)out, sums, scale);
    return cudaGetLastError();
}

template <class Shape, class T = typename Shape::Number>
static int launch_dots(const void *out, const void *dout, float *dots, cudaStream_t stream) {
    constexpr int heads = Shape::batch * Shape::length * Shape::queries;
    dots_kernel<Shape, T><<<divide_up(heads, THREADS / 8), THREADS, 0, stream>>>((const T *)out, (const T *)dout, dots);
    return cudaGetLastError();
}

template <class Shape, class T = typename Shape::Number>
static int launch_gradient(const void *qkv, const float *sums, const float *dots, const void *dout, void *dqkv,
                           float scale, cudaStream_t stream) {
    auto kernel = attend_grad_kernel<Shape, T>;
    const int shared = allowed_shared((const void *)kernel, attend_grad_shared<Shape>());
    kernel<<<attend_grad_tiles<Shape>(), THREADS, shared, stream>>>((const T *)qkv, sums, dots, (const T *)dout,
                                                                    (T *)dqkv, scale);
    return cudaGetLastError();
}

struct Case {
    int batch, length, queries, keys, size, causal, window, bytes;
    int (*forward)(const void *, void *, float *, float, cudaStream_t);
    int (*dots)(const void *, const void *, float *, cudaStream_t);
    int (*gradient)(const void *, const float *, const float *, const void *, void *, float, cudaStream_t);
};

template <class T, int BATCH, int LENGTH, int QUERIES, int KEYS, int SIZE, bool CAUSAL, int WINDOW = 0>
static constexpr Case make() {
    using Shape = Attention<T, BATCH, LENGTH, QUERIES, KEYS, SIZE, CAUSAL, WINDOW>;
    return {BATCH,
            LENGTH,
            QUERIES,
            KEYS,
            SIZE,
            CAUSAL,
            WINDOW,
            sizeof(T),
            launch_forward<Shape>,
            launch_dots<Shape>,
            launch_gradient<Shape>};
}

static const Case cases[] = {
#include CASES
};

extern "C" int case_count() {
    return sizeof cases / sizeof *cases;
}
extern "C" const Case *case_at(int i) {
    return &cases[i];
}
