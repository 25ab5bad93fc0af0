/* Sums over the shards of a batch: what the runtime has added up, for all that read it. */
#ifndef MTC_CUDA_OVER_SHARDS_CUH
#define MTC_CUDA_OVER_SHARDS_CUH

#include "cuda/team.cuh"

template <class Number_, long long COUNT> struct OverShards {
    using Number = Number_;
    static constexpr long long count = COUNT;
};

template <class Shape> constexpr int over_shards_tiles() {
    return (int)((Shape::count + SHARD_SUM_TILE - 1) / SHARD_SUM_TILE);
}
template <class Shape> constexpr int over_shards_shared() {
    return 0;
}

template <class Shape> __device__ void over_shards(const typename Shape::Number *sum, float *out, int tile, char *) {
    const long long i = (long long)tile * SHARD_SUM_TILE + threadIdx.x;
    if (threadIdx.x < SHARD_SUM_TILE && i < Shape::count)
        out[i] = sum[i];
}

#endif
