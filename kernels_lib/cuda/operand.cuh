/* Operands of a product: matrices as they lie in memory.
 *
 *     matrix<LD>(p)                 p: f32 [rows, LD], row-major
 *     gathered<LD>(p, batch, f)     p: u8, i32 or f32 [examples, LD]; row i is f(p[row(batch, i), ...]), f as it is loaded
 *     transposed(m)                 the transpose of either
 *
 * A product sees operand a as lines i and operand b as lines j, each line a sequence over k. Numbers are fetched raw,
 * one or four neighbours at a time, and become floats when they are used: a fetch never waits for its own memory. It does
 * wait for where a row lies: places are found for all fetches first. */
#ifndef MTC_CUDA_OPERAND_CUH
#define MTC_CUDA_OPERAND_CUH

#include "cuda/batch.cuh"

static inline __device__ float4 to_float(float4 v) {
    return v;
}
static inline __device__ float4 to_float(int4 v) {
    return make_float4(v.x, v.y, v.z, v.w);
}
/* Exact: a byte below the exponent of 2^23, less 2^23. Cheaper than a conversion. */
template <int BYTE> __device__ float byte_to_float(unsigned four) {
    return __uint_as_float(__byte_perm(four, 0x4b000000, 0x7440 | BYTE)) - 8388608.0f;
}
static inline __device__ float4 to_float(unsigned four) { // four bytes
    return make_float4(byte_to_float<0>(four), byte_to_float<1>(four), byte_to_float<2>(four), byte_to_float<3>(four));
}

template <class T> struct FourOf;
template <> struct FourOf<float> { using Type = float4; };
template <> struct FourOf<int> { using Type = int4; };
template <> struct FourOf<unsigned char> { using Type = unsigned; };

template <int LD> struct Matrix {
    using One = float;
    using Four = float4;
    static constexpr bool aligned = LD % 4 == 0, data_set = false;
    static constexpr int pitch = LD;
    const float *numbers; // [rows, LD]

    __device__ const float *at(int row, int column) const {
        return numbers + (int64_t)row * LD + column;
    }
    __device__ float value(float raw) const {
        return raw;
    }
    __device__ float4 value(float4 raw) const {
        return raw;
    }
};

template <int LD, class T, class F> struct Gathered {
    using One = T;
    using Four = typename FourOf<T>::Type;
    static constexpr bool aligned = LD % 4 == 0, data_set = true;
    static constexpr int pitch = LD;
    const T *numbers; // [examples, LD]
    const Batch &batch;
    F f;

    __device__ const T *at(int row, int column) const {
        return numbers + ::row(batch, row) * LD + column;
    }
    __device__ float value(T raw) const {
        return f((float)raw);
    }
    __device__ float4 value(Four raw) const {
        float4 v = to_float(raw);
        return make_float4(f(v.x), f(v.y), f(v.z), f(v.w));
    }
};

template <class Stored> struct Transposed { Stored stored; };

template <int LD> __device__ Matrix<LD> matrix(const float *numbers) {
    return {numbers};
}
template <int LD, class T, class F> __device__ Gathered<LD, T, F> gathered(const T *numbers, const Batch &batch, F f) {
    return {numbers, batch, f};
}
template <class Stored> __device__ Transposed<Stored> transposed(const Stored &stored) {
    return {stored};
}

/* Lines over k. ALONG_K: neighbours in memory are neighbours in k; otherwise they are neighbouring lines. */
template <class Stored, bool ALONG_K> struct Lines {
    using One = typename Stored::One;
    using Four = typename Stored::Four;
    static constexpr bool along_k = ALONG_K, aligned = Stored::aligned, data_set = Stored::data_set;
    static constexpr int64_t line_stride = ALONG_K ? Stored::pitch : 1, k_stride = ALONG_K ? 1 : Stored::pitch;
    const Stored &stored;

    __device__ const One *at(int line, int k) const {
        return ALONG_K ? stored.at(line, k) : stored.at(k, line);
    }
    __device__ float value(One raw) const {
        return stored.value(raw);
    }
    __device__ float4 value(Four raw) const {
        return stored.value(raw);
    }
};

template <class Stored> __device__ Lines<Stored, true> lines_of_a(const Stored &a) {
    return {a};
}
template <class Stored> __device__ Lines<Stored, false> lines_of_a(const Transposed<Stored> &a) {
    return {a.stored};
}
template <class Stored> __device__ Lines<Stored, false> lines_of_b(const Stored &b) {
    return {b};
}
template <class Stored> __device__ Lines<Stored, true> lines_of_b(const Transposed<Stored> &b) {
    return {b.stored};
}

#endif
