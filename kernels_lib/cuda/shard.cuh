/* A batch in shards: what each adds to its sums, and what becomes of these. */
#ifndef MTC_CUDA_SHARD_CUH
#define MTC_CUDA_SHARD_CUH

#include "cuda/recorded.cuh"

/* The gradients of the shard that the clock shows. */
template <class Step> const char *replay_shard(Recorded &launches, const MtcRun *run) {
    return launches.replay<Step>(run, {true});
}

/* Of a step whose sums are those of all shards: the clock advances. */
template <class Step> const char *replay_update(Recorded &launches, const MtcRun *run) {
    const char *error = launches.replay<Step>(run, {true});
    if (error)
        return error;
    advance_clock<<<1, 3>>>(1);
    return Attempt().then([] { return cudaGetLastError(); }).text();
}

/* Sums begin where tensors do: at a multiple of 16 bytes. */
static __global__ void add_fours(float *to, const float *from, int64_t count) {
    const int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x, at = 4 * i;
    if (at + 4 <= count) {
        float4 sum = ((const float4 *)to)[i];
        const float4 more = ((const float4 *)from)[i];
        sum.x += more.x;
        sum.y += more.y;
        sum.z += more.z;
        sum.w += more.w;
        ((float4 *)to)[i] = sum;
    } else
        for (int64_t k = at; k < count; k++)
            to[k] += from[k];
}

static inline const char *add_reals(void *to, const void *from, int64_t count) {
    const int64_t each = 4 * THREADS, blocks = (count + each - 1) / each;
    add_fours<<<(unsigned)blocks, THREADS>>>((float *)to, (const float *)from, count);
    return Attempt().then([] { return cudaGetLastError(); }).text();
}

#endif
