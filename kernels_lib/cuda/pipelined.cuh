/* Products whose panels are copied from memory to shared memory without passing through registers: STAGES - 1 panels are
 * on their way while one is multiplied. For matrices of floats and tiles that need the whole block.
 *
 *     panel            0   1   2   3   4   5
 *     copies begin     |---|---|---|
 *     multiplied                   | 0 | 1 | 2 ...          one barrier a panel; then panel 3 takes the place of ... */
#ifndef MTC_CUDA_PIPELINED_CUH
#define MTC_CUDA_PIPELINED_CUH

#include "cuda/operand.cuh"
#include "cuda/outputs.cuh"
#include <cuda_pipeline.h>

/* WIDTH lines of an operand by DEPTH steps of k. Lines that lie along k are transposed on the way, a number at a time:
 * neighbouring lanes copy GROUP neighbours of a line, and steps of k lie PAD apart so that they meet other banks. Longer
 * groups would meet fewer banks, shorter ones would take more requests to memory for the same numbers. */
template <class Lines, int COUNT, int K, int WIDTH, int DEPTH> struct Stream {
    static constexpr int GROUP = DEPTH % 16 == 0 ? 16 : 8;
    static constexpr bool along_k = Lines::along_k, four = !along_k && Lines::aligned && COUNT % 4 == 0;
    static constexpr int width = four ? 4 : 1, pitch = WIDTH + (along_k ? PAD : 0);
    static constexpr int vectors = WIDTH * DEPTH / width, copies = divide_up(vectors, THREADS);
    static_assert((along_k ? WIDTH % (THREADS / GROUP) : THREADS % (WIDTH / width)) == 0 && DEPTH % GROUP == 0,
                  "all threads copy the same way");

    static __device__ int rotation(int) {
        return 0;
    }
    /* Copy q of the calling thread: line and k of its first copy, and how far copy q lies from that. */
    static constexpr int row = along_k ? GROUP : WIDTH / width, rows = THREADS / row; // rows of a copy of all threads
    static __device__ int first_line() {
        return along_k ? threadIdx.x / GROUP : threadIdx.x % row * width;
    }
    static __device__ int first_k() {
        return along_k ? threadIdx.x % GROUP : threadIdx.x / row;
    }
    static __device__ constexpr int further_lines(int q) {
        return along_k ? q * rows % WIDTH : 0;
    }
    static __device__ constexpr int further_k(int q) {
        return along_k ? q * rows / WIDTH * GROUP : q * rows;
    }

    const float *from; // the first copy's
    float *to;         // in panel 0

    __device__ Stream(const Lines &lines, int line0, float *shared)
        : from(lines.at(line0 + first_line(), first_k())), to(shared + first_k() * pitch + first_line()) {
    }
    /* Begins to copy the panel at step k0 of k to `panel`, an offset in shared memory. */
    __device__ void copy(int line0, int k0, int panel) const {
#pragma unroll
        for (int q = 0; q < copies; q++) {
            int line = first_line() + further_lines(q), k = first_k() + further_k(q);
            if (vectors % THREADS != 0 && k >= DEPTH)
                continue;
            bool inside = (COUNT % WIDTH == 0 || line0 + line < COUNT) && (K % DEPTH == 0 || k0 + k < K);
            constexpr size_t bytes = width * sizeof(float);
            int64_t at = k0 * Lines::k_stride + further_lines(q) * Lines::line_stride + further_k(q) * Lines::k_stride;
            __pipeline_memcpy_async(to + panel + further_k(q) * pitch + further_lines(q), inside ? from + at : from,
                                    bytes, inside ? 0 : bytes);
        }
    }
};

template <class Product, class Tile, class A, class B, class Out, class Side, class Gate>
__device__ void matmul_pipelined(int i0, int j0, const A &a, const B &b, float *shared, Gate &gate, const Out &out,
                                 const Side &side) {
    using StreamA = Stream<A, Product::M, Product::K, Tile::m, Tile::k>;
    using StreamB = Stream<B, Product::N, Product::K, Tile::n, Tile::k>;
    constexpr int chunks = divide_up(Product::K, Tile::k), panel_a = StreamA::pitch * Tile::k;
    constexpr int buffer = panel_a + StreamB::pitch * Tile::k;
    Place<Tile> place;
    Results<Product, Tile, Out, Side> results(out, side, i0, j0);
    StreamA stream_a(a, i0, shared);
    StreamB stream_b(b, j0, shared + panel_a);
    float sum[Tile::tm][Tile::tn] = {};
    auto begin_copy = [&](int chunk) {
        if (chunk < chunks) {
            stream_a.copy(i0, chunk * Tile::k, chunk % STAGES * buffer);
            stream_b.copy(j0, chunk * Tile::k, chunk % STAGES * buffer);
        }
        __pipeline_commit();
    };

    results.template read_ahead<true>();
    gate();
    for (int chunk = 0; chunk < STAGES - 1; chunk++)
        begin_copy(chunk);
    results.template read_ahead<false>();
    for (int chunk = 0; chunk < chunks; chunk++) {
        const float *laid = shared + chunk % STAGES * buffer;
        __pipeline_wait_prior(STAGES - 2);
        __syncthreads();
        begin_copy(chunk + STAGES - 1); // over the panel that was multiplied before the barrier
        multiply<Tile, StreamA, StreamB>(place, laid, laid + panel_a, sum);
        results.template add_lines<StreamA, StreamB>(laid, laid + panel_a);
    }
    results.write(place, sum, shared);
}

#endif
