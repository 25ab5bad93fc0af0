/* Packs: neighbouring numbers that one thread moves with one instruction. Memory is fastest when each thread moves 16
 * bytes: four floats, eight numbers of 16 bits.
 *
 *     Pack<bfloat16, 8> x = load_pack<8>(t.x + i);     i is a multiple of 8
 *     Pack<float, 8> y;
 *     for (int v = 0; v < 8; v++)
 *         y[v] = relu(to_float(x[v]));
 *     store_pack(t.y + i, to_bf16(y));
 */
#ifndef MTC_CUDA_PACK_CUH
#define MTC_CUDA_PACK_CUH

#include "cuda/math.cuh"
#include "shared.h"

/* `bytes` of a pack as instructions move them. */
template <int BYTES> struct Word;
template <> struct Word<1> { using type = unsigned char; };
template <> struct Word<2> { using type = unsigned short; };
template <> struct Word<4> { using type = unsigned; };
template <> struct Word<8> { using type = uint2; };
template <> struct Word<16> { using type = uint4; };

template <class T, int N> struct Pack {
    static constexpr int bytes = N * (int)sizeof(T), words = bytes > PACK_BYTES ? bytes / PACK_BYTES : 1;
    using Word = typename ::Word<bytes / words>::type;

    alignas(bytes / words) T value[N];

    __device__ T &operator[](int v) {
        return value[v];
    }
    __device__ const T &operator[](int v) const {
        return value[v];
    }
};

/* N times the same. */
template <int N, class T> __device__ Pack<T, N> fill_pack(T value) {
    Pack<T, N> pack;
#pragma unroll
    for (int v = 0; v < N; v++)
        pack[v] = value;
    return pack;
}

/* Each number to the nearest, two with one instruction. */
template <int N> __device__ Pack<Narrow, N> to_narrow(const Pack<float, N> &pack) {
    static_assert(N % 2 == 0, "pairs");
    Pack<Narrow, N> result;
#pragma unroll
    for (int v = 0; v < N; v += 2)
        ((unsigned *)result.value)[v / 2] = to_narrow_pair(pack[v], pack[v + 1]);
    return result;
}

template <int N> __device__ Pack<e4m3, N> to_e4m3(const Pack<float, N> &pack) {
    static_assert(N % 2 == 0, "pairs");
    Pack<e4m3, N> result;
#pragma unroll
    for (int v = 0; v < N; v += 2)
        ((unsigned short *)result.value)[v / 2] = to_e4m3_pair(pack[v], pack[v + 1]);
    return result;
}

#ifdef MTC_FLOAT16
template <int N> __device__ Pack<float16, N> to_f16(const Pack<float, N> &pack) {
    return to_narrow(pack);
}
#else
template <int N> __device__ Pack<bfloat16, N> to_bf16(const Pack<float, N> &pack) {
    return to_narrow(pack);
}
#endif

/* From and to an address that is a multiple of the pack's size, or of 16 bytes. */
template <int N, class T> __device__ Pack<T, N> load_pack(const T *from) {
    Pack<T, N> pack;
#pragma unroll
    for (int word = 0; word < Pack<T, N>::words; word++)
        ((typename Pack<T, N>::Word *)pack.value)[word] = ((const typename Pack<T, N>::Word *)from)[word];
    return pack;
}
template <int N, class T> __device__ void store_pack(T *to, const Pack<T, N> &pack) {
#pragma unroll
    for (int word = 0; word < Pack<T, N>::words; word++)
        ((typename Pack<T, N>::Word *)to)[word] = ((const typename Pack<T, N>::Word *)pack.value)[word];
}

/* The sum with that of the products of so many integers: exact, four in an instruction. */
template <int N> __device__ int add_products(const Pack<Integer, N> &a, const Pack<Integer, N> &b, int sum) {
    static_assert(N % 4 == 0, "whole words");
#pragma unroll
    for (int v = 0; v < N; v += 4) {
        int four_of_a, four_of_b;
        memcpy(&four_of_a, a.value + v, 4);
        memcpy(&four_of_b, b.value + v, 4);
        sum = __dp4a(four_of_a, four_of_b, sum);
    }
    return sum;
}

#endif
