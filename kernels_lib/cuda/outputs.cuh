/* What becomes of the sums of a product: the callbacks `out` and `side` of matmul.cuh, what they read ahead, and how the
 * outputs of a tile are dealt to threads, neighbours to neighbouring j. */
#ifndef MTC_CUDA_OUTPUTS_CUH
#define MTC_CUDA_OUTPUTS_CUH

#include "cuda/tile.cuh"
#include <type_traits>
#include <utility>

template <bool EARLY, class Load, class Store> struct Preloaded {
    Load load;
    Store store;
};
template <class Load, class Store> __device__ Preloaded<false, Load, Store> preloaded(Load load, Store store) {
    return {load, store};
}
template <class Load, class Store> __device__ Preloaded<true, Load, Store> preloaded_early(Load load, Store store) {
    return {load, store};
}
template <class Out> constexpr bool is_early = false;
template <class Load, class Store> constexpr bool is_early<Preloaded<true, Load, Store>> = true;

struct Nothing {};
template <class Store, class... Index> __device__ Nothing load_ahead(const Store &, Index...) {
    return {};
}
template <bool EARLY, class Load, class Store, class... Index>
__device__ auto load_ahead(const Preloaded<EARLY, Load, Store> &out, Index... index) {
    return out.load(index...);
}
template <class Store, class... Index>
__device__ void store_sum(const Store &store, Nothing, float sum, Index... index) {
    store(index..., sum);
}
template <bool EARLY, class Load, class Store, class Ahead, class... Index>
__device__ void store_sum(const Preloaded<EARLY, Load, Store> &out, const Ahead &ahead, float sum, Index... index) {
    out.store(index..., sum, ahead);
}

struct NoSide {
    static constexpr bool of_a = false, of_b = false;
    Nothing out;
};
template <class Out> struct SumOfA {
    static constexpr bool of_a = true, of_b = false;
    Out out;
};
template <class Out> struct SumOfB {
    static constexpr bool of_a = false, of_b = true;
    Out out;
};
template <class Out> __device__ SumOfA<Out> sum_of_a(Out out) {
    return {out};
}
template <class Out> __device__ SumOfB<Out> sum_of_b(Out out) {
    return {out};
}

/* COUNT outputs, rows of n, handed to `out` in groups: first all that `out` reads ahead for a group, then its stores.
 * row_of(r) is the place in the tile of row r, total(e) the sum of output e. */
template <class Product, class Tile, int COUNT, class Out> struct Outputs {
    static constexpr int each = divide_up(COUNT, THREADS), group = each <= 8 ? each : each % 4 == 0 ? 4 : 1;
    using Ahead = decltype(load_ahead(std::declval<Out>(), 0, 0));
    int i0, j0;
    Ahead ahead[group];

    template <class RowOf, class Visit> __device__ void visit(int first, RowOf row_of, Visit visit) {
#pragma unroll
        for (int q = 0; q < group; q++) {
            int e = threadIdx.x + (first + q) * THREADS, i = i0 + row_of(e / Tile::n), j = j0 + e % Tile::n;
            if ((COUNT % THREADS == 0 || e < COUNT) && (Product::M % Tile::m == 0 || i < Product::M) &&
                (Product::N % Tile::n == 0 || j < Product::N))
                visit(ahead[q], e, i, j);
        }
    }
    template <class RowOf> __device__ void read(const Out &out, int first, RowOf row_of) {
        visit(first, row_of, [&](Ahead &value, int, int i, int j) { value = load_ahead(out, i, j); });
    }
    template <class RowOf, class Total> __device__ void write(const Out &out, int first, RowOf row_of, Total total) {
        visit(first, row_of, [&](Ahead &value, int e, int i, int j) { store_sum(out, value, total(e), i, j); });
    }
    template <class RowOf, class Total> __device__ void read_and_write(const Out &out, RowOf row_of, Total total) {
        for (int first = 0; first < each; first += group) {
            read(out, first, row_of);
            write(out, first, row_of, total);
        }
    }
};

/* Lays part `part` of the calling thread's sums into shared memory as [slice][row][column]. */
template <class Tile>
__device__ void lay_part(const Place<Tile> &place, int part, const float (&sum)[Tile::tm][Tile::tn], float *shared) {
    int row =
        place.row / (Tile::lanes_m * Tile::tm) * Tile::lanes_m * Tile::run_m + place.row % (Tile::lanes_m * Tile::tm);
    float *slice = shared + (place.slice * Tile::part_rows + row) * Tile::n;
#pragma unroll
    for (int i = 0; i < Tile::run_m; i++)
#pragma unroll
        for (int j = 0; j < Tile::tn; j++)
            slice[i * Tile::n + place.column + j / Tile::run_n * Tile::lanes_n * Tile::run_n + j % Tile::run_n] =
                sum[part * Tile::run_m + i][j];
}

/* The sum of COUNT numbers that lie STRIDE apart: in four chains, for an addition waits for the one before. */
template <int COUNT, int STRIDE> __device__ float sum_strided(const float *numbers) {
    float chain[4] = {};
#pragma unroll
    for (int n = 0; n < COUNT; n++)
        chain[n % 4] = n < 4 ? numbers[n * STRIDE] : chain[n % 4] + numbers[n * STRIDE];
    float sum = chain[0];
#pragma unroll
    for (int n = 1; n < 4 && n < COUNT; n++)
        sum += chain[n];
    return sum;
}

/* Everything that happens to the sums of a tile: `out` and `side`, and what they read ahead. A side's sums over k are
 * taken by the tiles of the first column, or row, of the product. */
template <class Product, class Tile, class Out, class Side> struct Results {
    static constexpr int count = Tile::part_rows * Tile::n, run = Tile::lanes_m * Tile::run_m;
    static constexpr int width = Side::of_a ? Tile::m : Tile::n, lines = Side::of_a ? Product::M : Product::N;
    static constexpr int first_of_line = THREADS - width; // the last threads, which have the fewest outputs
    static constexpr bool has_side = Side::of_a || Side::of_b;
    using TileOutputs = Outputs<Product, Tile, count, Out>;
    static constexpr bool reads_ahead = Tile::parts == 1 && TileOutputs::each == TileOutputs::group;

    const Out &out;
    const Side &side;
    TileOutputs outputs;
    int line0, line = (int)threadIdx.x - first_of_line;
    bool summing;
    decltype(load_ahead(std::declval<Side>().out, 0)) line_ahead;
    float line_sum = 0;

    __device__ Results(const Out &out, const Side &side, int i0, int j0)
        : out(out), side(side), outputs{i0, j0}, line0(Side::of_a ? i0 : j0),
          summing((Side::of_a && j0 == 0) || (Side::of_b && i0 == 0)) {
    }
    __device__ bool stores_line() const {
        return summing && line >= 0 && line0 + line < lines;
    }
    /* What may be read before the gate (EARLY), or what may not. */
    template <bool EARLY> __device__ void read_ahead() {
        if constexpr (reads_ahead && is_early<Out> == EARLY)
            outputs.read(out, 0, [](int row) { return row; });
        if constexpr (has_side && is_early<decltype(side.out)> == EARLY)
            if (stores_line())
                line_ahead = load_ahead(side.out, line0 + line);
    }
    template <class PanelA, class PanelB> __device__ void add_lines(const float *a, const float *b) {
        if constexpr (has_side)
            if (summing)
                line_sum = sum_lines<std::conditional_t<Side::of_a, PanelA, PanelB>, width, Tile::k>(Side::of_a ? a : b,
                                                                                                     line_sum);
    }
    __device__ void write(const Place<Tile> &place, const float (&sum)[Tile::tm][Tile::tn], float *shared) {
        float *line_sums = shared + Tile::slices * count; // THREADS / width of each line
#pragma unroll
        for (int part = 0; part < Tile::parts; part++) {
            auto row_of = [=](int row) { return row / run * run * Tile::parts + part * run + row % run; };
            auto total = [=](int e) { return sum_strided<Tile::slices, count>(shared + e); };
            __syncthreads();
            lay_part(place, part, sum, shared);
            if (has_side && part == 0)
                line_sums[threadIdx.x] = line_sum;
            __syncthreads();
            if constexpr (reads_ahead)
                outputs.write(out, 0, row_of, total);
            else
                outputs.read_and_write(out, row_of, total);
        }
        if constexpr (has_side)
            if (stores_line())
                store_sum(side.out, line_ahead, sum_strided<THREADS / width, width>(line_sums + line), line0 + line);
    }
};

#endif
