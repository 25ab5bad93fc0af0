/* Products on tensor cores: of numbers of 16 bits, of floats rounded to tf32, or of floats as two terms of that, whose sums are floats, or of
 * integers of 8 bits, which are added up in 32 bits and are floats then. Panels are copied to shared memory while others are multiplied, as in
 * pipelined.cuh; the sums of the whole tile pass through shared memory on their way to `out`, so that neighbouring threads have
 * neighbouring j. */
#ifndef MTC_CUDA_TENSOR_CUH
#define MTC_CUDA_TENSOR_CUH

#include "cuda/outputs.cuh"
#include "cuda/tensor_resident.cuh"
#include "cuda/tensor_taps.cuh"
#include "cuda/tensor_terms.cuh"
#include "cuda/tensor_turned.cuh"
#include "cuda/tensor_walk.cuh"
#include "cuda/tensor_warp.cuh"

/* A side: sums over k of the lines of one operand, by the tiles of the first column, or row, of the product. */
template <class Product, class Tile, class Side, class Panel> class TensorSide {
    static constexpr int width = Side::of_a ? Tile::m : Tile::n, lines = Side::of_a ? Product::M : Product::N;
    static constexpr int shares = width < THREADS ? THREADS / width : 1; // threads of a line
    static constexpr int rounds = divide_up(width, THREADS);
    const Side &side;
    int line0;
    bool summing;
    float sum[rounds] = {};

public:
    __device__ TensorSide(const Side &side, int i0, int j0)
        : side(side), line0(Side::of_a ? i0 : j0), summing((Side::of_a ? j0 : i0) == 0) {
    }
    __device__ void add(const char *panel) {
        if (summing)
#pragma unroll
            for (int r = 0; r < rounds; r++)
                for (int k = threadIdx.x / width; k < Panel::depth; k += shares)
                    sum[r] += Panel::at(panel, threadIdx.x % width + r * THREADS, k);
    }
    __device__ void lay(float *sums) const {
#pragma unroll
        for (int r = 0; r < rounds; r++)
            sums[threadIdx.x + r * THREADS] = sum[r];
    }
    __device__ void write(const float *sums) const {
        for (int line = threadIdx.x; summing && line < width && line0 + line < lines; line += THREADS)
            store_line(side.out, load_ahead(side.out, line0 + line), line0 + line,
                       sum_strided<shares, width>(sums + line));
    }
};
template <class Product, class Tile, class Panel> struct TensorSide<Product, Tile, NoSide, Panel> {
    __device__ TensorSide(const NoSide &, int, int) {
    }
    __device__ void add(const char *) {
    }
    __device__ void lay(float *) const {
    }
    __device__ void write(const float *) const {
    }
};

/* Who multiplies: groups of warps where the device has instructions for them, and panels as these read them. */
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
template <class Lines, int COUNT, int K, int WIDTH, class T, int TERMS>
using PanelOf = std::conditional_t<std::is_same_v<T, float> && TurnedPanel<Lines, COUNT, K, WIDTH, TERMS>::is_possible,
                                   TurnedPanel<Lines, COUNT, K, WIDTH, TERMS>, TensorPanel<Lines, COUNT, K, WIDTH, T>>;
template <class Tile, bool A_ALONG_K, bool B_ALONG_K>
using TensorSums =
    std::conditional_t<sizeof(typename Tile::Element) == 2 || (Tile::terms == 1 && A_ALONG_K && B_ALONG_K),
                       GroupSums<Tile, A_ALONG_K, B_ALONG_K>, WarpSums<Tile, A_ALONG_K, B_ALONG_K>>;
template <class Product, class Tile, class A, class Side>
constexpr bool is_resident = Resident<Product, Tile, A>::is_possible() && std::is_same_v<Side, NoSide> &&Tile::splits ==
                                                                              1;
template <class Product, class Tile, class A, class B, class Side>
constexpr bool takes_taps = has_taps<Product, Tile, A, B>() && std::is_same_v<Side, NoSide>;
template <class Product, class Tile, class A, class B>
constexpr bool is_in_terms =
    Tile::terms == 2 && PanelOf<A, Product::M, Product::K, Tile::m, Stored<Tile>, 2>::along_k
                            &&PanelOf<B, Product::N, Product::K, Tile::n, Stored<Tile>, 2>::along_k;
#else
template <class Lines, int COUNT, int K, int WIDTH, class T, int>
using PanelOf = TensorPanel<Lines, COUNT, K, WIDTH, T>;
template <class Product, class Tile, class A, class B> constexpr bool is_in_terms = false;
template <class Product, class Tile, class A, class Side> constexpr bool is_resident = false;
template <class Product, class Tile, class A, class B, class Side> constexpr bool takes_taps = false;
template <class Tile, bool A_ALONG_K, bool B_ALONG_K> using TensorSums = WarpSums<Tile, A_ALONG_K, B_ALONG_K>;
#endif

/* The sums of a tile whose k the blocks of a cluster have in parts: each adds up and writes some of the rows. */
template <class Product, class Tile, class Walk, class Sums, class Out>
__device__ void write_together(int i0, int j0, char *shared, Sums &sums, const Out &out) {
    constexpr int rows = Tile::m / Tile::splits;
    static_assert(folds_of<Out> == 0 && Tile::m % Tile::splits == 0, "sums over rows are of whole tiles");
    const int first = block_of_cluster() * rows;
    __syncthreads();
    sums.lay((float *)shared);
    arrive_at_cluster();
    await_cluster();
    Outputs<Product, Tile, rows, Out>{i0, j0}.read_and_write(
        out, [=](int row) { return Walk::line(i0 + first + row) - i0; },
        ClusterSums<Tile::splits>{(float *)shared + first * Tile::pitch, Tile::pitch});
    arrive_at_cluster(); // the others have read what lies here
    await_cluster();
}

/* The sums go through shared memory, where the panels have been, so that neighbouring outputs are written together. */
template <class Product, class Tile, class Walk, class Sums, class LineSums, class Out>
__device__ void write_streamed(int i0, int j0, char *shared, Sums &sums, LineSums &line_sums, const Out &out) {
    if constexpr (Tile::splits > 1)
        if (blocks_of_cluster() == Tile::splits)
            return write_together<Product, Tile, Walk>(i0, j0, shared, sums, out);
    float *tile_sums = (float *)shared, *side_sums = tile_sums + Tile::m * Tile::pitch;
    __syncthreads();
    sums.lay(tile_sums);
    line_sums.lay(side_sums);
    __syncthreads();
    Outputs<Product, Tile, Tile::m, Out> outputs{i0, j0};
    outputs.read_and_write(
        out, [=](int row) { return Walk::line(i0 + row) - i0; }, TileSums{tile_sums, Tile::pitch});
    outputs.fold(out, tile_sums);
    line_sums.write(side_sums);
}

/* Panels that the calling block multiplies; all, where there is no such cluster. */
struct PanelRange {
    int first, end;

    template <class Tile> static __device__ PanelRange of(int panels) {
        if (Tile::splits == 1 || blocks_of_cluster() != Tile::splits)
            return {0, panels};
        return {block_of_cluster() * panels / Tile::splits, (block_of_cluster() + 1) * panels / Tile::splits};
    }
};

/* Both operands' panels in turns of shared memory: those that are copied on their way to it, those that pass through registers in these until
 * they are laid. */
template <class Tile, class PanelA, class PanelB, class Walk> struct StreamedPanels {
    static constexpr int buffer = PanelA::bytes + PanelB::bytes;
    PanelA &a;
    PanelB &b;
    const Walk &walk;
    const PanelRange range;
    char *shared;

    static __device__ int place(int panel) {
        return panel % Tile::stages * buffer;
    }
    template <bool PASSING> __device__ void fetch(int panel) {
        if constexpr (PanelA::passes == PASSING)
            a.fetch(walk.step(panel), place(panel));
        if constexpr (PanelB::passes == PASSING)
            b.fetch(walk.step(panel), place(panel));
    }
    __device__ void copy(int panel) {
        if (panel < range.end)
            fetch<false>(panel);
        end_copies();
    }
    __device__ void read(int panel) {
        if (panel < range.end)
            fetch<true>(panel);
    }
    __device__ void lay(int panel) const {
        if (panel < range.end) {
            a.lay(shared + place(panel));
            b.lay(shared + place(panel) + PanelA::bytes);
        }
    }
    __device__ void round(int panel) const {
        if constexpr (Tile::terms == 1) {
            a.round(shared + place(panel));
            b.round(shared + place(panel) + PanelA::bytes);
        }
    }
};

template <class Product, class Tile, class A, class B, class Out, class Side, class Gate>
__device__ void matmul_streamed(int i0, int j0, const A &a, const B &b, char *shared, Gate &gate, const Out &out,
                                const Side &side) {
    using PanelA = PanelOf<A, Product::M, Product::K, Tile::m, Stored<Tile>, Tile::terms>;
    using PanelB = PanelOf<B, Product::N, Product::K, Tile::n, Stored<Tile>, Tile::terms>;
    using Sums = TensorSums<Tile, PanelA::along_k, PanelB::along_k>;
    static_assert(Tile::k == PanelA::depth, "a line of a panel is 128 bytes");
    using Walk = typename WalkOf<Product, Tile, A>::Type;
    constexpr int ahead = Tile::stages - 1 - Sums::behind; // panels on their way
    static_assert(ahead > 0, "a panel must be on its way while another is multiplied");

    unsigned base = shared_address(shared);
    const Walk walk(i0);
    const PanelRange range = PanelRange::of<Tile>(walk.panels);
    PanelA panel_a(a, i0, base, [](int i) { return Walk::line(i); });
    PanelB panel_b(b, j0, base + PanelA::bytes, [](int j) { return j; });
    TensorSide<Product, Tile, Side, std::conditional_t<Side::of_a, PanelA, PanelB>> line_sums(side, i0, j0);
    StreamedPanels<Tile, PanelA, PanelB, Walk> panels{panel_a, panel_b, walk, range, shared};
    Sums sums;

    gate();
    for (int panel = range.first; panel < range.first + ahead; panel++) {
        panels.copy(panel);
        panels.read(panel);
        panels.lay(panel);
    }
    panels.read(range.first + ahead);
    int panel = range.first;
#pragma unroll 1
    do { // at least once, which the compiler must know: otherwise it lets every multiplication wait for the one before
        int laid = panels.place(panel);
        await_copies<ahead - 1>();
        panels.round(panel);
        show_to_tensor_cores();
        __syncthreads();
        panels.copy(panel + ahead); // over a panel that was multiplied before the barrier
        sums.multiply(base + laid, base + laid + PanelA::bytes);
        line_sums.add(shared + laid + (Side::of_a ? 0 : PanelA::bytes));
        panels.lay(panel + ahead); // what was read while the panel before was multiplied
        panels.read(panel + ahead + 1);
    } while (++panel < range.end);
    sums.finish();

    write_streamed<Product, Tile, Walk>(i0, j0, shared, sums, line_sums, out);
}

template <class Product, class Tile, class A, class B, class Out, class Side, class Gate>
__device__ void matmul_in_terms(int i0, int j0, const A &a, const B &b, char *shared, Gate &gate, const Out &out,
                                const Side &side) {
    using PanelA = PanelOf<A, Product::M, Product::K, Tile::m, float, 2>;
    using PanelB = PanelOf<B, Product::N, Product::K, Tile::n, float, 2>;
    using Walk = typename WalkOf<Product, Tile, A>::Type;
    unsigned base = shared_address(shared);
    const Walk walk(i0);
    PanelA panel_a(a, i0, base, [](int i) { return Walk::line(i); });
    PanelB panel_b(b, j0, base + PanelA::bytes, [](int j) { return j; });
    TensorSide<Product, Tile, Side, std::conditional_t<Side::of_a, PanelA, PanelB>> line_sums(side, i0, j0);
    TermPanels<Tile, PanelA, PanelB, Walk> panels{panel_a, panel_b, walk, shared, base};
    TermSums<Tile> sums;

    gate();
    panels.begin();
    sums.multiply(panels, [&](int panel) {
        line_sums.add(Side::of_a ? panels.at(panel) : panels.b_at(panel));
        if constexpr (!Side::of_a)
            line_sums.add(panels.second_at(panel));
    });
    write_streamed<Product, Tile, Walk>(i0, j0, shared, sums, line_sums, out);
}

template <class Product, class Tile, class A, class B, class Out, class Side, class Gate>
__device__ void matmul_tensor(int i0, int j0, const A &a, const B &b, char *shared, Gate &gate, const Out &out,
                              const Side &side) {
    static_assert(is_integer<typename Tile::Element> || HAS_TENSOR_CORES<Tile>,
                  "sm_75 has no tensor cores for bf16 or tf32: compile it with --precision fp32");
    using Parts = PartsOf<Tile>;
    using Part = typename Parts::Part;
    if constexpr (is_resident<Product, Tile, A, Side>)
        matmul_resident<Product, Tile>(i0, j0, a, b, shared, gate, out);
    else if constexpr (takes_taps<Product, Tile, A, B, Side>)
        matmul_taps<Product, Tile>(i0, j0, a, b, shared, gate, out);
    else if constexpr (is_in_terms<Product, Tile, A, B>)
        matmul_in_terms<Product, Tile>(i0, j0, a, b, shared, gate, out, side);
    else if constexpr (Parts::count == 1)
        matmul_streamed<Product, Part>(i0, j0, a, b, shared, gate, out, side);
    else
#pragma unroll 1
        for (int j = j0; j < j0 + Tile::n && j < Product::N; j += Part::n) {
            __syncthreads(); // the part before has left the shared memory
            matmul_streamed<Product, Part>(i0, j, a, b, shared, gate, out, side);
        }
}

#endif
