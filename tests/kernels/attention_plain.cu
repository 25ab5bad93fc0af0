/* kernels_lib/cuda/attention_plain.cuh behind a C interface, for test_attention_plain.py: for each CASE(name, number, shape)
 * of CASES, functions of arrays of the host that return the device's error, 0 if there is none. */
#include "cuda/attention_plain.cuh"
#include "cuda/compiled.cuh"

template <class Shape> using NumberOf = typename Shape::Number;

template <class Shape>
__global__ void __launch_bounds__(THREADS)
    forward_kernel(const NumberOf<Shape> *qkv, NumberOf<Shape> *out, float *sums, float scale) {
    extern __shared__ __align__(16) char shared[];
    attend_plain<Shape>(qkv, out, sums, scale, blockIdx.x, shared);
}

template <class Shape>
__global__ void __launch_bounds__(THREADS)
    backward_kernel(const NumberOf<Shape> *qkv, const float *sums, const float *dots, const NumberOf<Shape> *d_out,
                    NumberOf<Shape> *d_qkv, float scale) {
    extern __shared__ __align__(16) char shared[];
    attend_plain_grad<Shape>(qkv, sums, dots, d_out, d_qkv, scale, blockIdx.x, shared);
}

/* An array of the host and its copy on the device. */
template <class T> struct Array {
    T *host, *device = nullptr;
    size_t bytes;

    Array(const T *host, int64_t count) : host((T *)host), bytes(count * sizeof(T)) {
        cudaMalloc(&device, bytes);
        cudaMemcpy(device, host, bytes, cudaMemcpyDefault);
    }
    ~Array() {
        cudaMemcpy(host, device, bytes, cudaMemcpyDefault);
        cudaFree(device);
    }
};

template <class Shape> struct Sizes {
    static constexpr int64_t rows = (int64_t)Shape::batch * Shape::length;
    static constexpr int64_t qkv = rows * Shape::row, out = rows * Shape::out_row, sums = rows * Shape::queries;
};

template <class Kernel, class... Of> int launch(Kernel kernel, int tiles, int shared, Of... of) {
    kernel<<<tiles, THREADS, allowed_shared((const void *)kernel, shared)>>>(of...);
    return cudaDeviceSynchronize();
}

template <class Shape, class Number = NumberOf<Shape>>
int forward(const Number *qkv, Number *out, float *sums, float scale) {
    Array<Number> of_qkv(qkv, Sizes<Shape>::qkv), of_out(out, Sizes<Shape>::out);
    Array<float> of_sums(sums, Sizes<Shape>::sums);
    return launch(forward_kernel<Shape>, attend_plain_tiles<Shape>(), attend_plain_shared<Shape>(), of_qkv.device,
                  of_out.device, of_sums.device, scale);
}

template <class Shape, class Number = NumberOf<Shape>>
int backward(const Number *qkv, const float *sums, const float *dots, const Number *d_out, Number *d_qkv, float scale) {
    Array<Number> of_qkv(qkv, Sizes<Shape>::qkv), of_out(d_out, Sizes<Shape>::out), of_d_qkv(d_qkv, Sizes<Shape>::qkv);
    Array<float> of_sums(sums, Sizes<Shape>::sums), of_dots(dots, Sizes<Shape>::sums);
    return launch(backward_kernel<Shape>, attend_plain_grad_tiles<Shape>(), attend_plain_grad_shared<Shape>(),
                  of_qkv.device, of_sums.device, of_dots.device, of_out.device, of_d_qkv.device, scale);
}

/* Rows of a tile and of a warp, rows that pass by at a time. */
template <class Form> void describe(int *of_form) {
    of_form[0] = Form::rows;
    of_form[1] = Form::warp_rows;
    of_form[2] = Form::columns;
}

#define CASE(name, number, ...)                                                                                        \
    extern "C" int forward_##name(const number *qkv, number *out, float *sums, float scale) {                          \
        return forward<Attention<number, __VA_ARGS__>>(qkv, out, sums, scale);                                         \
    }                                                                                                                  \
    extern "C" int backward_##name(const number *qkv, const float *sums, const float *dots, const number *d_out,       \
                                   number *d_qkv, float scale) {                                                       \
        return backward<Attention<number, __VA_ARGS__>>(qkv, sums, dots, d_out, d_qkv, scale);                         \
    }                                                                                                                  \
    extern "C" void forms_##name(int *forward_form, int *backward_form) {                                              \
        describe<PlainForm<Attention<number, __VA_ARGS__>, 1>>(forward_form);                                          \
        describe<PlainForm<Attention<number, __VA_ARGS__>, 2>>(backward_form);                                         \
    }
#include CASES
