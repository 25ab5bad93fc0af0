/* Products of few outputs and very long k, whichever way their operands lie: a thread has steps of k of its own, at which it
 * multiplies all lines of the tile, or of its share of it. Nothing is laid into shared memory and nothing is waited for but
 * memory itself, all of whose loads are under way at a time; lanes are folded by shuffles, warps in shared memory. For the
 * gradients of the weights of convolutions with few channels, where k runs over the pixels of a batch. */
#ifndef MTC_CUDA_DEEP_CUH
#define MTC_CUDA_DEEP_CUH

#include "cuda/direct.cuh"

/* COUNT lines of an operand, of TOTAL cut into tiles of TILE, at STEPS steps of k: of lines that lie side by side, four
 * neighbours are fetched at a time. */
template <class Lines, int COUNT, int TOTAL, int TILE, int STEPS> struct Steps {
    static constexpr bool four = !Lines::along_k && Lines::aligned && COUNT % 4 == 0 && TOTAL % 4 == 0;
    static constexpr int width = four ? 4 : 1, fetches = COUNT / width;
    static_assert(fetches <= 32, "a bit of `valid` for each");
    using Raw = std::conditional_t<four, typename Lines::Four, typename Lines::One>;
    typename Lines::Line line[fetches];
    Raw raw[STEPS][fetches];
    unsigned valid[STEPS]; // bit i: raw[step][i] is an element, not beyond the edge of something

    __device__ Steps(const Lines &lines, int line0) {
#pragma unroll
        for (int i = 0; i < fetches; i++)
            line[i] = lines.line(TOTAL % TILE == 0 || line0 + i * width < TOTAL ? line0 + i * width : 0);
    }
    __device__ void fetch(const Lines &lines, int step, int k, bool exists) {
        typename Lines::Step at = lines.step(exists ? k : 0);
        valid[step] = 0;
#pragma unroll
        for (int i = 0; i < fetches; i++)
            if (exists && lines.inside(line[i], at)) {
                valid[step] |= 1u << i;
                raw[step][i] = *(const Raw *)lines.at(line[i], at);
            }
    }
    __device__ void numbers(const Lines &lines, int step, float (&v)[COUNT]) const {
#pragma unroll
        for (int i = 0; i < fetches; i++) {
            float one[width];
            unpack(lines, raw[step][i], one);
#pragma unroll
            for (int w = 0; w < width; w++)
                v[i * width + w] = valid[step] >> i & 1 ? one[w] : 0;
        }
    }
};

template <class Product, class Tile, class A, class B, class Out, class Gate>
__device__ void matmul_deep(int i0, int j0, const A &a, const B &b, float *shared, Gate &gate, const Out &out) {
    constexpr int tm = smaller(Tile::tm, Product::M), tn = smaller(Tile::tn, Product::N);
    constexpr int steps = divide_up(Product::K, Tile::slices), held = smaller(steps, DEEP_STEPS); // fetched at a time
    auto identity = [](int row) { return row; };

    int place = threadIdx.x / Tile::slices, slice = threadIdx.x % Tile::slices;
    Steps<A, tm, Product::M, Tile::m, held> steps_a(a, i0 + place / Tile::across * Tile::tm);
    Steps<B, tn, Product::N, Tile::n, held> steps_b(b, j0 + place % Tile::across * Tile::tn);
    Outputs<Product, Tile, Tile::m, Out> finished{i0, j0};
    if constexpr (is_early<Out>)
        finished.read(out, 0, identity);

    float sum[padded_outputs<tm * tn>()] = {};
    for (int start = 0; start < steps; start += held) {
        auto fetch = [&](auto &into, const auto &lines) {
#pragma unroll
            for (int q = 0; q < held; q++) {
                int k = (start + q) * Tile::slices + slice;
                into.fetch(lines, q, k, Product::K % (held * Tile::slices) == 0 || k < Product::K);
            }
        };
        if constexpr (A::data_set)
            fetch(steps_a, a);
        if constexpr (B::data_set)
            fetch(steps_b, b);
        if (start == 0)
            gate();
        if constexpr (!A::data_set)
            fetch(steps_a, a);
        if constexpr (!B::data_set)
            fetch(steps_b, b);
        if (!is_early<Out> && start == 0)
            finished.read(out, 0, identity);
#pragma unroll
        for (int q = 0; q < held; q++) {
            float x[tm], y[tn];
            steps_a.numbers(a, q, x);
            steps_b.numbers(b, q, y);
#pragma unroll
            for (int i = 0; i < tm; i++)
#pragma unroll
                for (int j = 0; j < tn; j++)
                    sum[i * tn + j] = fmaf(x[i], y[j], sum[i * tn + j]);
        }
    }
    finish_strips<Tile, tn>(finished, out, sum, shared);
}

#endif
