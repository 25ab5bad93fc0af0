/* Sums of all elements so far, along the middle axis of [OUTER, LENGTH, INNER]:
 *
 *     out[o, i, c] = sum over k <= i of in[o, k, c]         REVERSED: over k >= i
 *
 * A line is what is summed. Where neighbours in memory are of one line, INNER = 1, a warp has a line: its lanes add up LANES
 * elements by shuffles, to which comes the sum of all before. Else a thread has a line, and its neighbours the lines beside it.
 * Either way the order of additions depends on the shape alone. */
#ifndef MTC_CUDA_CUMSUM_CUH
#define MTC_CUDA_CUMSUM_CUH

#include "cuda/team.cuh"

template <class Number_, long long OUTER, int LENGTH, long long INNER, bool REVERSED> struct CumSum {
    using Number = Number_;
    static constexpr int length = LENGTH;
    static constexpr long long inner = INNER, lines = OUTER * INNER;
    static constexpr bool reversed = REVERSED;
    static constexpr int lines_of_tile = cumsum_lines(INNER);

    /* Where element i of a line is, counted in the order of summation. */
    static __device__ long long place(long long line, int i) {
        return (line / INNER * LENGTH + (REVERSED ? LENGTH - 1 - i : i)) * INNER + line % INNER;
    }
};

template <class Shape> constexpr int cumsum_tiles() {
    return (int)((Shape::lines + Shape::lines_of_tile - 1) / Shape::lines_of_tile);
}
template <class Shape> constexpr int cumsum_shared() {
    return 0;
}

/* Of the lanes up to this one. */
__device__ inline float cumsum_of_lanes(float value) {
    int lane = threadIdx.x % LANES;
#pragma unroll
    for (int distance = 1; distance < LANES; distance *= 2) {
        float other = __shfl_up_sync(~0u, value, distance);
        value += lane >= distance ? other : 0;
    }
    return value;
}

template <class Shape> __device__ void cumsum_of_warp(const typename Shape::Number *in, float *out, long long line) {
    int lane = threadIdx.x % LANES;
    float before = 0;
    for (int first = 0; first < Shape::length; first += LANES) {
        int i = first + lane;
        bool exists = line < Shape::lines && i < Shape::length;
        float sum = before + cumsum_of_lanes(exists ? in[Shape::place(line, i)] : 0);
        if (exists)
            out[Shape::place(line, i)] = sum;
        before = __shfl_sync(~0u, sum, LANES - 1);
    }
}

template <class Shape> __device__ void cumsum(const typename Shape::Number *in, float *out, int tile, char *) {
    long long first = (long long)tile * Shape::lines_of_tile;
    if (Shape::inner == 1) {
        cumsum_of_warp<Shape>(in, out, first + threadIdx.x / LANES);
    } else if (first + threadIdx.x < Shape::lines) {
        float sum = 0;
        for (int i = 0; i < Shape::length; i++)
            out[Shape::place(first + threadIdx.x, i)] = sum += in[Shape::place(first + threadIdx.x, i)];
    }
}

#endif
