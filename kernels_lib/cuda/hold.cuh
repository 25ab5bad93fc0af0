/* Rows that are read several times, and from memory once: a block copies its row to shared memory first.
 *
 *     auto stages = [&](const bfloat16 *logits_row) { ... logits_row[j] ... };
 *     hold_row<50304>(t.logits + i * 50304, shared, logits_wanted_bytes, stages);
 *
 * All of the row is on its way at a time, without passing through registers. Where a launch did not get the memory, the
 * stages read the row where it lies: the same numbers, in the same order. */
#ifndef MTC_CUDA_HOLD_CUH
#define MTC_CUDA_HOLD_CUH

#include "cuda/team.cuh"
#include <cuda_pipeline.h>

/* Bytes of shared memory: what a tile needs, and behind that a row. */
template <class T> __host__ __device__ constexpr int with_row(int needed, int numbers) {
    return (needed + PACK_BYTES - 1) / PACK_BYTES * PACK_BYTES + numbers * (int)sizeof(T);
}

/* Bytes of shared memory that the launch got, without its own arrays. */
static inline __device__ int dynamic_shared_bytes() {
    int bytes;
    asm("mov.u32 %0, %%dynamic_smem_size;" : "=r"(bytes));
    return bytes;
}

/* A row of N numbers, whose bytes and whose place are multiples of 16, to `to`; by all threads of the block. */
template <int N, class T> __device__ void copy_row(T *to, const T *from) {
    constexpr int each = PACK_BYTES / sizeof(T);
    static_assert(N % each == 0, "whole packs");
    for (int j = each * threadIdx.x; j < N; j += each * THREADS)
        __pipeline_memcpy_async(to + j, from + j, PACK_BYTES);
    __pipeline_commit();
    __pipeline_wait_prior(0);
    __syncthreads();
}

/* Calls stages(row) of the row that lies at `from`: held at the end of the first `wanted` bytes of `shared`, which is where the
 * launch's shared memory begins, or where it lies. Two calls, so that in each it is known which memory that is. */
template <int N, class T, class Stages>
__device__ void hold_row(const T *from, char *shared, int wanted, const Stages &stages) {
    if (dynamic_shared_bytes() < wanted)
        return stages(from);
    T *row = (T *)(shared + wanted - N * sizeof(T));
    copy_row<N>(row, from);
    stages((const T *)row);
}

/* ---- rows that come ahead of a gate ---- */

/* Bytes of those of a tile. */
template <class Team, class T> constexpr int rows_bytes(int columns) {
    return Team::rows * columns * (int)sizeof(T);
}

/* Weights are read once for a token, and fill the cache: what is small, and read for each token too, stays there if they leave first.
 * PLACE of shared memory. */
static inline __device__ void copy_read_once(unsigned place, const void *from) {
#if __CUDA_ARCH__ >= 800
    unsigned long long policy;
    asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
    asm volatile("cp.async.cg.shared.global.L2::cache_hint [%0], [%1], %3, %2;" ::"r"(place), "l"(from), "l"(policy),
                 "n"(PACK_BYTES)
                 : "memory");
#else
    __pipeline_memcpy_async(__cvta_shared_to_generic(place), from, PACK_BYTES);
#endif
}

/* The rows of a matrix that the tile's teams read, each its own, come to shared memory, a whole number of packs in each. Returns where the
 * matrix would begin if it lay there. */
template <class Team, class T> __device__ T *bring_rows(T *matrix, int tile, int rows, int columns, char *shared) {
    constexpr int each = PACK_BYTES / sizeof(T);
    const int first = tile * Team::rows, count = rows - first < Team::rows ? rows - first : Team::rows;
    const T *from = matrix + (long long)first * columns;
    // by way of the next lane: of a place with a part that all lanes have in common, even one that a lane was asked for, ptxas 13.0 made copies
    // with a policy that are no instructions
    const int begin = each * (threadIdx.x ^ 1);
    const unsigned place =
        __shfl_xor_sync(~0u, (unsigned)__cvta_generic_to_shared(shared) + PACK_BYTES * threadIdx.x, 1);
    for (int j = begin; j < count * columns; j += each * THREADS)
        copy_read_once(place + (j - begin) * (int)sizeof(T), from + j);
    __pipeline_commit();
    return (T *)shared - (long long)first * columns;
}

/* A row that the block has in shared memory, for launches behind this one. */
template <class T> __device__ void keep_row(T *to, const T *row, int numbers) {
    for (int j = threadIdx.x; j < numbers; j += THREADS)
        to[j] = row[j];
}

/* All that the block has brought is there. */
static inline __device__ void await_rows() {
    __pipeline_wait_prior(0);
    __syncthreads();
}

#endif
