/* Products whose panels are copied from memory to shared memory without passing through registers: of up to STAGES panels
 * one is multiplied while the others are on their way. For floats in memory.
 *
 *     panel            0   1   2   3   4   5
 *     copies begin     |---|---|- - - - -            those of panel 3 between the steps of k of panel 0, a share at a time
 *     multiplied                   | 0 | 1 | 2 ...   one barrier a panel; then panel 4 takes the place of 0
 *
 * Copies and loads of shared memory wait in one queue: were all copies of a panel begun at once, all warps would wait behind
 * them for what they multiply first. */
#ifndef MTC_CUDA_PIPELINED_CUH
#define MTC_CUDA_PIPELINED_CUH

#include "cuda/operand.cuh"
#include "cuda/outputs.cuh"
#include <cuda_pipeline.h>

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
    static constexpr int width = four ? 4 : 1, GROUP = line_major ? DEPTH / 4 : 8;
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
    const float *next;          // where the first copy of the next panel is from, of lines that are linear
    float *to;                  // and where it goes, in panel 0
    int lines_left, steps_left; // from the first copy's on; none are left where there is no next panel

    __device__ Stream(const Lines &from, int line0, float *shared)
        : from(from), to(shared + place(first_line(), first_k())), lines_left(COUNT - line0 - first_line()),
          steps_left(K - first_k()) {
#pragma unroll
        for (int q = 0; q < own_lines; q++)
            line[q] = from.line(line0 + first_line() + further_lines(q));
        next = from.at(line[0], from.step(first_k()));
    }
    __device__ void advance() {
        steps_left -= DEPTH;
        if constexpr (Lines::linear)
            next += DEPTH * Lines::to_next_step();
    }
    /* Begins share `share` of SHARES of the copies of the next panel, if it is `there`, to `panel`, an offset in shared memory: zeros
     * from beyond the operand, where all lies if it is not. */
    template <int SHARES> __device__ void copy(int panel, int share, bool there) const {
        constexpr bool whole = Lines::linear && COUNT % WIDTH == 0 && K % DEPTH == 0;
#pragma unroll
        for (int q = 0; q < copies; q++) {
            if (q * SHARES / copies != share || (DEPTH % steps != 0 && first_k() + further_k(q) >= DEPTH))
                continue;
            const float *number = next;
            bool inside = further_k(q) < steps_left && (COUNT % WIDTH == 0 || further_lines(q) < lines_left);
            if constexpr (Lines::linear) {
                number += further_lines(q) * Lines::to_next_line() + further_k(q) * Lines::to_next_step();
            } else {
                typename Lines::Step step = from.step(K - steps_left + further_k(q));
                number = from.at(line[q % own_lines], step);
                inside = inside && from.inside(line[q % own_lines], step);
            }
            constexpr size_t bytes = width * sizeof(float);
            float *laid = to + panel + place(further_lines(q), further_k(q));
            if constexpr (!whole) // nothing is read where there is no number
                __pipeline_memcpy_async(laid, number, bytes, inside ? 0 : bytes);
            else if (there)
                __pipeline_memcpy_async(laid, number, bytes);
        }
    }
};

/* COUNT panels of both operands; STAGES of them have a place in shared memory. */
template <class StreamA, class StreamB, int COUNT, int STAGES> struct Panels {
    static constexpr int panel_a = StreamA::floats, buffer = panel_a + StreamB::floats;
    StreamA stream_a;
    StreamB stream_b;
    const float *shared;
    int next = 0; // to be copied

    template <class A, class B>
    __device__ Panels(const A &a, int i0, const B &b, int j0, float *shared)
        : stream_a(a, i0, shared), stream_b(b, j0, shared + panel_a), shared(shared) {
    }
    __device__ const float *of_a(int panel) const {
        return shared + panel % STAGES * buffer;
    }
    __device__ const float *of_b(int panel) const {
        return of_a(panel) + panel_a;
    }
    template <int SHARES> __device__ void copy(int share) const {
        stream_a.template copy<SHARES>(next % STAGES * buffer, share, next < COUNT);
        stream_b.template copy<SHARES>(next % STAGES * buffer, share, next < COUNT);
    }
    /* All copies of the next panel have begun. */
    __device__ void advance() {
        __pipeline_commit();
        stream_a.advance();
        stream_b.advance();
        next++;
    }
    __device__ void begin() {
        while (next < STAGES - 1) {
            if (next < COUNT)
                copy<1>(0);
            advance();
        }
    }
    /* For the first panel that is on its way; all warps have multiplied the one before. */
    __device__ void wait() const {
        __pipeline_wait_prior(STAGES - 2);
        __syncthreads();
    }
};

/* sum += panel `panel` of a times that of b, while the next one is copied. `first` is what its first step multiplies, and then that of
 * the panel behind it: no warp waits for what it multiplies behind the barrier. */
template <class Tile, class Panels, class Operands>
__device__ void multiply_panel(const Place<Tile> &place, Panels &panels, int panel, Operands &first,
                               float (&sum)[Tile::tm][Tile::tn]) {
    constexpr int steps = Tile::k / Tile::slices;
    static_assert(steps > 1, "the last step copies nothing");
#pragma unroll
    for (int step = 0; step < steps; step++) {
        const Operands now = first;
        bool last = step == steps - 1;
        if (last) {
            panels.advance();
            panels.wait();
        }
        first = Operands(place, panels.of_a(panel + last), panels.of_b(panel + last), last ? 0 : step + 1);
        if (!last)
            panels.template copy<steps - 1>(step);
        now.multiply(sum);
    }
}

/* The same four steps at a time, where a panel lies as [line][k]: beside these there are no registers for what comes next. */
template <class Tile, class StreamA, class StreamB, class Place, class Panels>
__device__ void multiply_fours(const Place &place, Panels &panels, int panel, float (&sum)[Tile::tm][Tile::tn]) {
    constexpr int fours = Tile::k / (4 * Tile::slices);
#pragma unroll
    for (int four = 0; four < fours; four++) {
        const FourOperands<Tile, StreamA, StreamB> now(place, panels.of_a(panel), panels.of_b(panel), four);
        panels.template copy<fours>(four);
        now.multiply(sum);
    }
    panels.advance();
}

template <class Product, class Tile, class A, class B, class Out, class Side, class Gate>
__device__ void matmul_pipelined(int i0, int j0, const A &a, const B &b, float *shared, Gate &gate, const Out &out,
                                 const Side &side) {
    // four steps of k at a time take registers, which larger tiles have not; but to copy windows otherwise is worse
    constexpr bool small = Tile::tm * Tile::tn < LARGE_OUTPUTS, windows = !A::linear || !B::linear;
    constexpr bool lines = Tile::k % 16 == 0 && (small || windows);
    using StreamA = Stream<A, Product::M, Product::K, Tile::m, Tile::k, lines>;
    using StreamB = Stream<B, Product::N, Product::K, Tile::n, Tile::k, lines>;
    constexpr int count = divide_up(Product::K, Tile::k);
    Place<Tile, StreamA::line_major, StreamB::line_major> place;
    Results<Product, Tile, Out, Side> results(out, side, i0, j0);
    Panels<StreamA, StreamB, count, pipelined_stages<Tile>()> panels(a, i0, b, j0, shared);
    float sum[Tile::tm][Tile::tn] = {};

    results.template read_ahead<true>();
    gate();
    panels.begin();
    results.template read_ahead<false>();
    if constexpr (StreamA::line_major || StreamB::line_major) {
        for (int panel = 0; panel < count; panel++) {
            panels.wait();
            multiply_fours<Tile, StreamA, StreamB>(place, panels, panel, sum);
            results.template add_lines<StreamA, StreamB>(panels.of_a(panel), panels.of_b(panel));
        }
    } else {
        panels.wait();
        Operands<Tile, StreamA, StreamB> first(place, panels.of_a(0), panels.of_b(0), 0);
        for (int panel = 0; panel < count; panel++) {
            results.template add_lines<StreamA, StreamB>(panels.of_a(panel), panels.of_b(panel));
            multiply_panel(place, panels, panel, first, sum);
        }
    }
    __pipeline_wait_prior(0); // zeros of panels that are none
    results.write(place, sum, shared);
}

#endif
