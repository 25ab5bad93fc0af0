/* Products so small that an output is the work of one thread, or of a few neighbouring lanes, each with its share of k:
 * what they multiply comes straight from memory. For operands in shared memory, or in few cache lines. */
#ifndef MTC_CUDA_THIN_CUH
#define MTC_CUDA_THIN_CUH

#include "cuda/operand.cuh"
#include "cuda/outputs.cuh"

template <class Lines> __device__ float number_at(const Lines &lines, const typename Lines::Line &line, int k) {
    typename Lines::Step step = lines.step(k);
    return lines.inside(line, step) ? lines.value(*lines.at(line, step)) : 0;
}

template <class Product, class Tile, class A, class B, class Out, class Side, class Gate>
__device__ void matmul_thin(int i0, int j0, const A &a, const B &b, Gate &gate, const Out &out, const Side &side) {
    constexpr bool has_side = Side::of_a || Side::of_b;
    auto add = [](float x, float y) { return x + y; };
    int thread = (threadIdx.x + THREADS - Tile::first_warp * LANES) % THREADS;
    int output = thread / Tile::slices, slice = thread % Tile::slices;
    int i = i0 + output / Tile::n, j = j0 + output % Tile::n, line = Side::of_a ? i : j;
    bool exists = i < Product::M && j < Product::N, stores = exists && slice == 0;
    bool stores_line = has_side && stores && (Side::of_a ? j : i) == 0;
    decltype(load_ahead(out, 0, 0)) ahead;
    decltype(load_ahead(side.out, 0)) line_ahead;

    if (is_early<Out> && stores)
        ahead = load_ahead(out, i, j);
    if (is_early<decltype(side.out)> && stores_line)
        line_ahead = load_ahead(side.out, line);
    gate();
    if (!is_early<Out> && stores)
        ahead = load_ahead(out, i, j);
    if (!is_early<decltype(side.out)> && stores_line)
        line_ahead = load_ahead(side.out, line);

    typename A::Line line_a = a.line(i);
    typename B::Line line_b = b.line(j);
    float sum = 0, line_sum = 0;
#pragma unroll 8
    for (int k = slice; exists && k < Product::K; k += Tile::slices) {
        float x = number_at(a, line_a, k), y = number_at(b, line_b, k);
        sum = fmaf(x, y, sum);
        line_sum += Side::of_a ? x : y;
    }
    sum = lanes_reduce<Tile::slices>(sum, add);
    if (stores)
        store_sum(out, ahead, i, j, sum);
    if constexpr (has_side) {
        line_sum = lanes_reduce<Tile::slices>(line_sum, add);
        if (stores_line)
            store_line(side.out, line_ahead, line, line_sum);
    }
}

#endif
