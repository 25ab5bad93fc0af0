/* Products whose panels are copied from memory to shared memory without passing through registers: of up to STAGES panels
 * one is multiplied while the others are on their way. For floats in memory.
 *
 *     panel            0   1   2   3   4   5
 *     copies begin     |---|---|---|
 *     multiplied                   | 0 | 1 | 2 ...          one barrier a panel; then panel 3 takes the place of ... */
#ifndef MTC_CUDA_PIPELINED_CUH
#define MTC_CUDA_PIPELINED_CUH

#include "cuda/operand.cuh"
#include "cuda/outputs.cuh"
#include <cuda_pipeline.h>

/* Of the panel at line0 and k0, nothing lies beyond the operand. */
template <int COUNT, int K, int WIDTH, int DEPTH> __device__ bool is_whole(int line0, int k0) {
    return (COUNT % WIDTH == 0 || line0 + WIDTH <= COUNT) && (K % DEPTH == 0 || k0 + DEPTH <= K);
}

/* WIDTH lines of an operand by DEPTH steps of k, in one of three ways:
 *
 *     lines lie side by side in memory    so do they in shared memory, [k][line]; copied four at a time
 *     they lie along k, aligned           so do they in shared memory, [line][k]: as LINE_MAJOR; copied four at a time
 *     they lie along k                    transposed on the way, [k][line], a number at a time: neighbouring lanes copy
 *                                         GROUP neighbours of a line, and steps of k lie PAD apart so that they meet
 *                                         other banks. Of windows, a lane copies for a line of its own */
template <class Lines, int COUNT, int K, int WIDTH, int DEPTH, bool LINE_MAJOR> struct Stream {
    static constexpr bool along_k = Lines::along_k, line_major = LINE_MAJOR && along_k && Lines::aligned && K % 4 == 0;
    static constexpr bool by_k = line_major || (along_k && Lines::runs_along_k);
    static constexpr bool four = line_major || (!along_k && Lines::aligned && COUNT % 4 == 0);
    static constexpr int width = four ? 4 : 1, GROUP = line_major ? DEPTH / 4 : DEPTH % 16 == 0 ? 16 : 8;
    static constexpr int pitch = line_major ? DEPTH + PAD : WIDTH + (by_k ? PAD : 0);
    static constexpr int floats = pitch * (line_major ? WIDTH : DEPTH);

    static __device__ constexpr int rotation(int) {
        return 0;
    }
    static __device__ constexpr int place(int line, int k) {
        return line_major ? line * pitch + k : k * pitch + line;
    }
    /* The threads copy a block of `lines` lines by `steps` steps at a time. Copy q of the calling thread: line and k of
     * its first copy, and how far copy q lies from that. */
    static constexpr int line_width = by_k ? 1 : width, k_width = by_k ? width : 1;
    static constexpr int all = WIDTH / line_width, most = by_k ? THREADS / GROUP : THREADS;
    static constexpr int lines = smaller(all & -all, most), steps = THREADS / lines * k_width;
    static constexpr int copies = all / lines * divide_up(DEPTH, steps);
    static_assert(THREADS % lines == 0 && DEPTH % (by_k ? GROUP * k_width : 1) == 0, "all threads copy the same way");
    static __device__ int first_line() {
        return by_k ? threadIdx.x / GROUP % lines : threadIdx.x % lines * line_width;
    }
    static __device__ int first_k() {
        return by_k ? (threadIdx.x % GROUP + threadIdx.x / GROUP / lines * GROUP) * k_width : threadIdx.x / lines;
    }
    static __device__ constexpr int further_lines(int q) {
        return q % (all / lines) * lines * line_width;
    }
    static __device__ constexpr int further_k(int q) {
        return q / (all / lines) * steps;
    }

    static constexpr int own_lines = Lines::linear ? 1 : all / lines;
    typename Lines::Line line[own_lines]; // the first copy's, and further ones' where they cannot be told from that
    const Lines &from;
    float *to; // the first copy's, in panel 0

    __device__ Stream(const Lines &from, int line0, float *shared)
        : from(from), to(shared + place(first_line(), first_k())) {
#pragma unroll
        for (int q = 0; q < own_lines; q++)
            line[q] = from.line(line0 + first_line() + further_lines(q));
    }
    /* WHOLE: nothing of it lies beyond the operand. */
    template <bool WHOLE> __device__ void copy_panel(int line0, int k0, int panel) const {
        const float *first = from.at(line[0], from.step(k0 + first_k()));
#pragma unroll
        for (int q = 0; q < copies; q++) {
            int k = first_k() + further_k(q);
            if (DEPTH % steps != 0 && k >= DEPTH)
                continue;
            bool inside = WHOLE || ((COUNT % WIDTH == 0 || line0 + first_line() + further_lines(q) < COUNT) &&
                                    (K % DEPTH == 0 || k0 + k < K));
            const float *number;
            if constexpr (Lines::linear) {
                number = first + further_lines(q) * Lines::to_next_line() + further_k(q) * Lines::to_next_step();
            } else {
                typename Lines::Step step = from.step(k0 + k);
                number = from.at(line[q % own_lines], step);
                inside = inside && from.inside(line[q % own_lines], step);
            }
            constexpr size_t bytes = width * sizeof(float);
            __pipeline_memcpy_async(to + panel + place(further_lines(q), further_k(q)), inside ? number : from.any(),
                                    bytes, inside ? 0 : bytes);
        }
    }
    /* Begins to copy the panel at step k0 of k to `panel`, an offset in shared memory. */
    __device__ void copy(int line0, int k0, int panel) const {
        if (Lines::linear && is_whole<COUNT, K, WIDTH, DEPTH>(line0, k0))
            copy_panel<true>(line0, k0, panel);
        else
            copy_panel<false>(line0, k0, panel);
    }
};

template <class Product, class Tile, class A, class B, class Out, class Side, class Gate>
__device__ void matmul_pipelined(int i0, int j0, const A &a, const B &b, float *shared, Gate &gate, const Out &out,
                                 const Side &side) {
    // four steps of k at a time take registers, which larger tiles have not; but to copy windows otherwise is worse
    constexpr bool small = Tile::tm * Tile::tn < LARGE_OUTPUTS, windows = !A::linear || !B::linear;
    constexpr bool lines = Tile::k % 16 == 0 && (small || windows);
    using StreamA = Stream<A, Product::M, Product::K, Tile::m, Tile::k, lines>;
    using StreamB = Stream<B, Product::N, Product::K, Tile::n, Tile::k, lines>;
    constexpr int chunks = divide_up(Product::K, Tile::k), panel_a = StreamA::floats;
    constexpr int buffer = panel_a + StreamB::floats, stages = pipelined_stages<Tile>();
    Place<Tile, StreamA::line_major, StreamB::line_major> place;
    Results<Product, Tile, Out, Side> results(out, side, i0, j0);
    StreamA stream_a(a, i0, shared);
    StreamB stream_b(b, j0, shared + panel_a);
    float sum[Tile::tm][Tile::tn] = {};
    auto begin_copy = [&](int chunk) {
        if (chunk < chunks) {
            stream_a.copy(i0, chunk * Tile::k, chunk % stages * buffer);
            stream_b.copy(j0, chunk * Tile::k, chunk % stages * buffer);
        }
        __pipeline_commit();
    };

    results.template read_ahead<true>();
    gate();
    for (int chunk = 0; chunk < stages - 1; chunk++)
        begin_copy(chunk);
    results.template read_ahead<false>();
    for (int chunk = 0; chunk < chunks; chunk++) {
        const float *laid = shared + chunk % stages * buffer;
        __pipeline_wait_prior(stages - 2);
        __syncthreads();
        begin_copy(chunk + stages - 1); // over the panel that was multiplied before the barrier
        if constexpr (StreamA::line_major || StreamB::line_major)
            multiply_lines<Tile, StreamA, StreamB>(place, laid, laid + panel_a, sum);
        else
            multiply<Tile, StreamA, StreamB>(place, laid, laid + panel_a, sum);
        results.template add_lines<StreamA, StreamB>(laid, laid + panel_a);
    }
    results.write(place, sum, shared);
}

#endif
