/* What operands of products are made of, on the host: packs, and the types and conversions of the CUDA headers. Before headers of
 * kernels_lib/cuda. */
#ifndef OPERANDS_ON_HOST_H
#define OPERANDS_ON_HOST_H

#define MTC_CUDA_PACK_CUH
#define MTC_CUDA_BATCH_CUH
#define MTC_CUDA_TEAM_CUH
#include "block_on_host.h"

#include <cstdint>

struct alignas(16) float4 {
    float x, y, z, w;
};
struct alignas(16) int4 {
    int x, y, z, w;
};
struct alignas(8) float2 {
    float x, y;
};
static float4 make_float4(float x, float y, float z, float w) {
    return {x, y, z, w};
}
static float __uint_as_float(unsigned bits) {
    float number;
    memcpy(&number, &bits, sizeof number);
    return number;
}
static unsigned __float_as_uint(float number) {
    unsigned bits;
    memcpy(&bits, &number, sizeof bits);
    return bits;
}
static int __float_as_int(float number) {
    return (int)__float_as_uint(number);
}
static float __int_as_float(int bits) {
    return __uint_as_float((unsigned)bits);
}
static unsigned __byte_perm(unsigned, unsigned, unsigned) {
    abort();
}
struct Narrow {
    unsigned short bits;
};
static float to_float(Narrow) {
    abort();
}
struct Batch {};
static int64_t row(const Batch &, int i) {
    return i;
}

template <class T, int N> struct Pack {
    alignas(N * sizeof(T)) T value[N];
    T &operator[](int v) {
        return value[v];
    }
    const T &operator[](int v) const {
        return value[v];
    }
};
template <int N, class T> Pack<T, N> load_pack(const T *from) {
    return *(const Pack<T, N> *)from;
}
template <int N, class T> void store_pack(T *to, const Pack<T, N> &pack) {
    *(Pack<T, N> *)to = pack;
}

#endif
