/* Matrix product, any size, deterministic; of floats in strict fp32, or on tensor cores:
 *
 *     out(i, j) = sum over k of a(i, k) * b(k, j)             i < M, j < N, k < K
 *
 *     matmul<Product<M, N, K>, Tile<m, n, k, tm, tn>>(tile, a, b, shared, gate, out [, side])
 *     matmul<Product<M, N, K>, TensorTile<m, n, k, warps_m, warps_n, stages, Narrow or float>>(...)      see tensor.cuh
 *     matmul<Product<M, N, K>, FewTile<m, n, early>>(...)                                          see tensor_few.cuh
 *     matmul_turns<Product<M, N, K>, TurnTile<m, n, k, stages, T>>(tile, maps, ...)                   see tensor_turns.cuh
 *     matmul<Product<M, N, K>, SquareTile<ROWS, COLUMNS>>(...)     of windows of 3 x 3 taps in fp32, see winograd.cuh
 *     matmul... <Product<ROWS, N, K, SLICES>, TensorTile or TurnTile<...>>(...)   the outputs of all slices, see tile.cuh
 *
 * One call by the THREADS threads of a block computes tile `tile` of product_tiles<Product, Tile>(), m x n outputs,
 * counted along the rows; of TurnTiles, see there. a is M x K, b is K x N; see operand.cuh, and window.cuh for
 * convolutions. `out` is either
 *
 *     [&](int i, int j, float sum) { ... }                    called once per output, by neighbouring threads for
 *                                                             neighbouring j
 *     preloaded([&](int i, int j) { return Ahead{...}; },     the same, and what it reads from memory is read ahead,
 *               [&](int i, int j, float sum, Ahead ahead) {})  for many outputs at once; preloaded_early: before the gate
 *     of_columns([&](int j) { return Columns{...}; },         either, with a further argument, const Columns &column: what is
 *                either)                                      the same for all rows, which need not be read for each
 *     vectorized<V>(either)                                   called once for V neighbours from j on, a multiple of V, with
 *                                                             const Pack<float, V> &sum; V divides N and n
 *     folded<COUNT>(any of these,                             also gets a last argument, float (&term)[COUNT] (or of packs),
 *                   [&](int group, int j,                     and sets it; the sums of the terms over the rows of a tile,
 *                       const float (&total)[COUNT]) {})      which are row group i0 / m, are given to this, once a column
 *
 * `side`, sum_of_a(out) or sum_of_b(out), also gives the sum over k of a(i, k), or of b(k, j), with an `out` of (i, sum)
 * or (j, sum). `shared` has product_shared<Product, Tile>() bytes, product_shared<Product, Tile, V * COUNT>() where it folds,
 * aligned to 16, on tensor cores to 1024. `gate()` returns when the operands are complete, but for data sets, which
 * always are; see launches.cuh.
 *
 * In fp32, a thread holds tm x tn outputs. When m x n outputs leave threads over, they form SLICES of the block, and each
 * slice takes every SLICES-th step of k; the slices are added in a fixed order. There are six ways to feed them:
 *
 *     staged      panels of m (or n) lines by k pass through registers to shared memory
 *     pipelined   they are copied there: for floats in memory, in tiles of one slice or of threads with many outputs
 *     direct      few outputs and long k, along which both operands lie: from memory to the registers of the one thread
 *                 that uses them, four steps of k at a time
 *     deep        the same of any operands, a step of k at a time
 *     thin        a thread, or a few lanes, for each output: from memory, a number as often as it is used
 *     squares     windows and taps are transformed on their way to shared memory: winograd.cuh */
#ifndef MTC_CUDA_MATMUL_CUH
#define MTC_CUDA_MATMUL_CUH

#include "cuda/deep.cuh"
#include "cuda/direct.cuh"
#include "cuda/pipelined.cuh"
#include "cuda/staged.cuh"
#include "cuda/tensor.cuh"
#include "cuda/tensor_few.cuh"
#include "cuda/tensor_turns.cuh"
#include "cuda/thin.cuh"
#include "cuda/window.cuh"
#include "cuda/winograd.cuh"

/* For operands that are complete when the kernel starts. */
struct NoGate {
    __device__ void operator()() const {
    }
};

template <class Product, class Tile, class A, class B, class Gate, class Out, class Side>
__device__ void matmul_on_cores(int i0, int j0, const A &a, const B &b, char *shared, Gate &gate, const Out &out,
                                const Side &side) {
    auto lines_a = lines_of_a(a);
    auto lines_b = lines_of_b(b);
    constexpr bool floats = lines_a.floats && lines_b.floats;
    static_assert(Tile::slices < LANES || !(Side::of_a || Side::of_b) || Tile::tm * Tile::tn == 1, "no sums of lines");
    constexpr Feed feed = feed_of(Tile::tm * Tile::tn, Tile::slices, Product::K, Tile::k,
                                  lines_a.runs_along_k && lines_b.runs_along_k, floats);
    if constexpr (feed == FEED_THIN)
        matmul_thin<Product, Tile>(i0, j0, lines_a, lines_b, gate, out, side);
    else if constexpr (feed == FEED_DIRECT)
        matmul_direct<Product, Tile>(i0, j0, lines_a, lines_b, (float *)shared, gate, out);
    else if constexpr (feed == FEED_DEEP)
        matmul_deep<Product, Tile>(i0, j0, lines_a, lines_b, (float *)shared, gate, out);
    else if constexpr (feed == FEED_PIPELINED)
        matmul_pipelined<Product, PipelinedTile<Tile>>(i0, j0, lines_a, lines_b, (float *)shared, gate, out, side);
    else
        matmul_staged<Product, Fitted<Product, Tile>>(i0, j0, lines_a, lines_b, (float *)shared, gate, out, side);
}

/* On tensor cores; in slices, both operands lie with k first. */
template <class Product, class Tile, class A, class B, class Gate, class Out, class Side>
__device__ void matmul_alone(int i0, int j0, const A &a, const B &b, char *shared, Gate &gate, const Out &out,
                             const Side &side) {
    if constexpr (Product::slices > 1) {
        int slice = i0 / Product::rows;
        auto left = transposed(part_of(a.stored, slice * Product::K, -slice * Product::rows));
        auto right = part_of(b, slice * Product::K, 0);
        matmul_tensor<Product, Tile>(i0, j0, lines_of_a(left), lines_of_b(right), shared, gate, out, side);
    } else {
        matmul_tensor<Product, Tile>(i0, j0, lines_of_a(a), lines_of_b(b), shared, gate, out, side);
    }
}

/* In turns: also every gridDim.x-th tile after it. `maps` are those of a and b, which a call for tile MAPS_ONLY makes. */
template <class Product, class Tile, class A, class B, class Gate, class Out>
__device__ void matmul_turns(int tile, OperandMaps *maps, const A &a, const B &b, char *shared, Gate &&gate,
                             const Out &out) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    matmul_in_turns<Product, Tile>(tile, *maps, lines_of_a(a), lines_of_b(b), shared, gate, out);
#else
    constexpr int across = divide_up(Product::N, Tile::n);
    int i0 = tile / across * Tile::m, j0 = tile % across * Tile::n;
    matmul_alone<Product, typename Tile::Alone>(i0, j0, a, b, shared, gate, out, NoSide{});
#endif
}

template <class Product, class Tile, class A, class B, class Gate, class Out, class Side = NoSide>
__device__ void matmul(int tile, const A &a, const B &b, char *shared, Gate &&gate, const Out &out,
                       const Side &side = {}) {
    constexpr int across = divide_up(Product::N, Tile::n), splits = splits_of<Tile>();
    if (splits > 1 && tile % splits && blocks_of_cluster() != splits)
        return; // the first does it alone
    tile /= splits;
    int i0 = tile / across * Tile::m, j0 = tile % across * Tile::n;
    if constexpr (is_tensor<Tile>)
        matmul_alone<Product, Tile>(i0, j0, a, b, shared, gate, out, side);
    else if constexpr (has_few_rows<Tile>)
        matmul_few<Product, Tile>(i0, j0, lines_of_a(a), lines_of_b(b), shared, gate, out);
    else if constexpr (has_squares<Tile>)
        matmul_squares<Product, Tile>(i0, j0, lines_of_a(a), lines_of_b(b), (float *)shared, gate, out);
    else
        matmul_on_cores<Product, Tile>(i0, j0, a, b, shared, gate, out, side);
}

#endif
