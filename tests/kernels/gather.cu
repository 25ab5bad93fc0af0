// The gradient of a looked-up table, kernels_lib/cuda/gather.cuh, behind a C interface for test_gather.py, which writes
// shapes.inc: a SHAPE(number, element type, indices, rows, width) in each line.
#include <cuda_runtime.h>

#include "cuda/gather.cuh"

template <class Shape>
__global__ void __launch_bounds__(THREADS) run_tile(const int *index, const typename Shape::Number *dy, float *out) {
    extern __shared__ __align__(16) char shared[];
    gather_grad<Shape>(index, dy, out, blockIdx.x, shared, [] {});
}

template <class T> static T *on_device(const void *from, size_t count) {
    T *to = nullptr;
    cudaMalloc(&to, count * sizeof(T));
    if (from)
        cudaMemcpy(to, from, count * sizeof(T), cudaMemcpyHostToDevice);
    else
        cudaMemset(to, 0xff, count * sizeof(T)); // not a number
    return to;
}

template <class Shape> static int run(const int *host_index, const void *host_dy, float *host_out) {
    constexpr size_t in = (size_t)Shape::count * Shape::width, results = (size_t)Shape::rows * Shape::width;
    constexpr int tiles = gather_grad_tiles<Shape>(), shared = gather_grad_shared<Shape>();
    auto index = on_device<int>(host_index, Shape::count);
    auto dy = on_device<typename Shape::Number>(host_dy, in);
    auto out = on_device<float>(nullptr, results);
    run_tile<Shape><<<tiles, THREADS, shared>>>(index, dy, out);
    cudaMemcpy(host_out, out, results * sizeof(float), cudaMemcpyDeviceToHost);
    cudaFree(index);
    cudaFree(dy);
    cudaFree(out);
    return (int)cudaGetLastError();
}

extern "C" int gather_table(int shape, const int *index, const void *dy, float *out) {
    switch (shape) {
#define SHAPE(number, type, count, rows, width)                                                                        \
    case number: return run<GatherGrad<type, count, rows, width>>(index, dy, out);
#include "shapes.inc"
#undef SHAPE
    }
    return -1;
}
