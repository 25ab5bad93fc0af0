/* What becomes of the sums of a product: the callbacks `out` and `side` of matmul.cuh, what they read ahead, what they fold
 * over the rows of a tile, and how the outputs of a tile are dealt to threads, neighbours to neighbouring j. */
#ifndef MTC_CUDA_OUTPUTS_CUH
#define MTC_CUDA_OUTPUTS_CUH

#include "cuda/cluster.cuh"
#include "cuda/pack.cuh"
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

/* `columns` reads what is the same for all rows. */
template <class Columns, class Out> struct OfColumns {
    Columns columns;
    Out out;
};
template <class Columns, class Out> __device__ OfColumns<Columns, Out> of_columns(Columns columns, Out out) {
    return {columns, out};
}

template <int WIDTH, class Out> struct Vectorized { Out out; };
template <int WIDTH, class Out> __device__ Vectorized<WIDTH, Out> vectorized(Out out) {
    return {out};
}

template <int COUNT, class Out, class Store> struct Folded {
    Out out;
    Store store;
};
template <int COUNT, class Out, class Store> __device__ Folded<COUNT, Out, Store> folded(Out out, Store store) {
    return {out, store};
}

template <class Out> constexpr bool is_early = false;
template <class Load, class Store> constexpr bool is_early<Preloaded<true, Load, Store>> = true;
template <class Columns, class Out> constexpr bool is_early<OfColumns<Columns, Out>> = is_early<Out>;
template <int WIDTH, class Out> constexpr bool is_early<Vectorized<WIDTH, Out>> = is_early<Out>;
template <int COUNT, class Out, class Store> constexpr bool is_early<Folded<COUNT, Out, Store>> = is_early<Out>;

/* Neighbours in j that it takes at a time. */
template <class Out> constexpr int width_of = 1;
template <int WIDTH, class Out> constexpr int width_of<Vectorized<WIDTH, Out>> = WIDTH;
template <int COUNT, class Out, class Store> constexpr int width_of<Folded<COUNT, Out, Store>> = width_of<Out>;

/* Sums over the rows of a tile that it has terms of. */
template <class Out> constexpr int folds_of = 0;
template <int COUNT, class Out, class Store> constexpr int folds_of<Folded<COUNT, Out, Store>> = COUNT;

struct Nothing {};
template <class Store, class... Index> __device__ Nothing load_ahead(const Store &, Index...) {
    return {};
}
template <bool EARLY, class Load, class Store, class... Index>
__device__ auto load_ahead(const Preloaded<EARLY, Load, Store> &out, Index... index) {
    return out.load(index...);
}
/* Of rows, and of columns. */
template <class Columns, class Rows> struct AheadOfBoth {
    Columns columns;
    Rows rows;
};
template <class Columns, class Out> __device__ auto load_ahead(const OfColumns<Columns, Out> &out, int i, int j) {
    using Ahead = AheadOfBoth<decltype(out.columns(j)), decltype(load_ahead(out.out, i, j))>;
    return Ahead{out.columns(j), load_ahead(out.out, i, j)};
}
template <int WIDTH, class Out> __device__ auto load_ahead(const Vectorized<WIDTH, Out> &out, int i, int j) {
    return load_ahead(out.out, i, j);
}
template <int COUNT, class Out, class Store>
__device__ auto load_ahead(const Folded<COUNT, Out, Store> &out, int i, int j) {
    return load_ahead(out.out, i, j);
}

/* The same in two: what is read for output (i, j) but for what is of column j, that, and both together. */
template <class Out> __device__ auto load_rows(const Out &out, int i, int j) {
    return load_ahead(out, i, j);
}
template <class Columns, class Out> __device__ auto load_rows(const OfColumns<Columns, Out> &out, int i, int j) {
    return load_ahead(out.out, i, j);
}
template <int WIDTH, class Out> __device__ auto load_rows(const Vectorized<WIDTH, Out> &out, int i, int j) {
    return load_rows(out.out, i, j);
}
template <int COUNT, class Out, class Store>
__device__ auto load_rows(const Folded<COUNT, Out, Store> &out, int i, int j) {
    return load_rows(out.out, i, j);
}
template <class Out> __device__ Nothing load_columns(const Out &, int) {
    return {};
}
template <class Columns, class Out> __device__ auto load_columns(const OfColumns<Columns, Out> &out, int j) {
    return out.columns(j);
}
template <int WIDTH, class Out> __device__ auto load_columns(const Vectorized<WIDTH, Out> &out, int j) {
    return load_columns(out.out, j);
}
template <int COUNT, class Out, class Store> __device__ auto load_columns(const Folded<COUNT, Out, Store> &out, int j) {
    return load_columns(out.out, j);
}
template <class Rows> __device__ Rows both_ahead(Nothing, const Rows &rows) {
    return rows;
}
template <class Columns, class Rows> __device__ auto both_ahead(const Columns &columns, const Rows &rows) {
    return AheadOfBoth<Columns, Rows>{columns, rows};
}

/* One output, or WIDTH of them; `term`: of the sums over rows, if there are any. */
template <class Store, class Sum, class... Term>
__device__ auto store_sum(const Store &store, Nothing, int i, int j, const Sum &sum, Term &...term)
    -> decltype(store(i, j, sum, term...)) {
    store(i, j, sum, term...);
}
template <bool EARLY, class Load, class Store, class Ahead, class Sum, class... Term>
__device__ void store_sum(const Preloaded<EARLY, Load, Store> &out, const Ahead &ahead, int i, int j, const Sum &sum,
                          Term &...term) {
    out.store(i, j, sum, ahead, term...);
}
template <class Columns, class Out, class Ahead, class Sum, class... Term>
__device__ void store_sum(const OfColumns<Columns, Out> &out, const Ahead &ahead, int i, int j, const Sum &sum,
                          Term &...term) {
    store_sum(out.out, ahead.rows, i, j, sum, ahead.columns, term...);
}
template <int WIDTH, class Out, class Ahead, class Sum, class... Term>
__device__ void store_sum(const Vectorized<WIDTH, Out> &out, const Ahead &ahead, int i, int j, const Sum &sum,
                          Term &...term) {
    store_sum(out.out, ahead, i, j, sum, term...);
}
template <int COUNT, class Out, class Store, class Ahead, class Sum, class Term>
__device__ void store_sum(const Folded<COUNT, Out, Store> &out, const Ahead &ahead, int i, int j, const Sum &sum,
                          Term &term) {
    store_sum(out.out, ahead, i, j, sum, term);
}

template <class Store> __device__ void store_line(const Store &store, Nothing, int line, float sum) {
    store(line, sum);
}
template <bool EARLY, class Load, class Store, class Ahead>
__device__ void store_line(const Preloaded<EARLY, Load, Store> &out, const Ahead &ahead, int line, float sum) {
    out.store(line, sum, ahead);
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

/* The sums of a tile in shared memory. */
struct TileSums {
    const float *sums;
    int pitch; // from row to row

    template <int WIDTH> __device__ Pack<float, WIDTH> at(int row, int column) const {
        return load_pack<WIDTH>(sums + row * pitch + column);
    }
};

/* The sums of a tile of which each block of a cluster of BLOCKS has those over a part of k, at the same place. */
template <int BLOCKS> struct ClusterSums {
    const float *sums;
    int pitch;

    template <int WIDTH> static __device__ Pack<float, WIDTH> of_block(const float *place, int block) {
        Pack<float, WIDTH> sum;
        if constexpr (WIDTH % 4 == 0)
#pragma unroll
            for (int v = 0; v < WIDTH; v += 4)
                *(float4 *)&sum[v] = load_from(place + v, block);
        else
#pragma unroll
            for (int v = 0; v < WIDTH; v++)
                sum[v] = load_one_from(place + v, block);
        return sum;
    }
    template <int WIDTH> __device__ Pack<float, WIDTH> at(int row, int column) const {
        const float *place = sums + row * pitch + column;
        Pack<float, WIDTH> total = of_block<WIDTH>(place, 0);
#pragma unroll
        for (int block = 1; block < BLOCKS; block++) {
            Pack<float, WIDTH> more = of_block<WIDTH>(place, block);
#pragma unroll
            for (int v = 0; v < WIDTH; v++)
                total[v] += more[v];
        }
        return total;
    }
};

/* ROWS rows of a tile's outputs, handed to `out` in groups: first all that `out` reads ahead for a group, then its
 * stores. row_of(r) is the place in the tile of row r, sums.at<WIDTH>(r, column) gives the sums. A thread has outputs of
 * the same columns in all rows, so that it can add up terms of them. Rows from Product::M on are none; ALL_ROWS: there are
 * no such rows. */
template <class Product, class Tile, int ROWS, class Out, bool ALL_ROWS = Product::M % Tile::m == 0> struct Outputs {
    static constexpr int width = width_of<Out>, row = Tile::n / width, count = ROWS * row, folds = folds_of<Out>;
    static constexpr int each = divide_up(count, THREADS), most = width == 1 ? 8 : 4;
    static constexpr int group = each <= most ? each : each % 4 == 0 ? 4 : 1;
    static_assert(Tile::n % width == 0 && Product::N % width == 0, "no vector reaches over an edge");
    static constexpr bool steady = THREADS % row == 0; // a thread's outputs have the same columns
    static_assert(folds == 0 || steady, "terms of a column are added up by the thread");
    using OfRows = decltype(load_rows(std::declval<Out>(), 0, 0));
    using Columns = decltype(load_columns(std::declval<Out>(), 0));
    using Ahead = std::conditional_t<steady, OfRows, decltype(load_ahead(std::declval<Out>(), 0, 0))>;
    using Sum = std::conditional_t<width == 1, float, Pack<float, width>>;
    int i0, j0;
    int thread = threadIdx.x;
    Ahead ahead[group];
    Columns columns;
    Sum total[folds + 1] = {}; // of the terms of the thread's outputs

    template <class RowOf, class Visit> __device__ void visit(int first, RowOf row_of, Visit visit) {
#pragma unroll
        for (int q = 0; q < group; q++) {
            int e = thread + (first + q) * THREADS, column = e % row * width;
            int i = i0 + row_of(e / row), j = j0 + column;
            if ((count % THREADS == 0 || e < count) && (ALL_ROWS || i < Product::M) &&
                (Product::N % Tile::n == 0 || j < Product::N))
                visit(ahead[q], e / row, column, i, j);
        }
    }
    template <class RowOf> __device__ void read(const Out &out, int first, RowOf row_of) {
        if constexpr (steady) {
            int j = j0 + threadIdx.x % row * width;
            if (first == 0 && (Product::N % Tile::n == 0 || j < Product::N))
                columns = load_columns(out, j);
            visit(first, row_of, [&](Ahead &value, int, int, int i, int j) { value = load_rows(out, i, j); });
        } else {
            visit(first, row_of, [&](Ahead &value, int, int, int i, int j) { value = load_ahead(out, i, j); });
        }
    }
    __device__ auto all_ahead(const Ahead &value) const {
        if constexpr (steady)
            return both_ahead(columns, value);
        else
            return value;
    }
    template <class RowOf, class Sums>
    __device__ void write(const Out &out, int first, RowOf row_of, const Sums &sums) {
        visit(first, row_of, [&](Ahead &rows, int r, int column, int i, int j) {
            const auto value = all_ahead(rows);
            Pack<float, width> pack = sums.template at<width>(r, column);
            const Sum &sum = (const Sum &)pack;
            if constexpr (folds > 0) {
                Sum term[folds];
                store_sum(out, value, i, j, sum, term);
                add_terms(term);
            } else {
                store_sum(out, value, i, j, sum);
            }
        });
    }
    template <class RowOf, class Sums> __device__ void read_and_write(const Out &out, RowOf row_of, const Sums &sums) {
        for (int first = 0; first < each; first += group) {
            read(out, first, row_of);
            write(out, first, row_of, sums);
        }
    }

    __device__ void add_terms(const Sum (&term)[folds + (folds == 0)]) {
#pragma unroll
        for (int f = 0; f < folds; f++)
#pragma unroll
            for (int v = 0; v < width; v++)
                ((float *)&total[f])[v] += ((const float *)&term[f])[v];
    }
    /* When all outputs are written: the threads' totals become those of columns. `shared`: THREADS * width * folds floats. */
    __device__ void fold(const Out &out, float *shared) const {
        if constexpr (folds > 0) {
            __syncthreads();
#pragma unroll
            for (int f = 0; f < folds; f++)
#pragma unroll
                for (int v = 0; v < width; v++)
                    shared[(f * width + v) * THREADS + thread] = ((const float *)&total[f])[v];
            __syncthreads();
            int column = thread, j = j0 + column;
            if (column >= Tile::n || j >= Product::N)
                return;
            float sums[folds];
#pragma unroll
            for (int f = 0; f < folds; f++)
                sums[f] =
                    sum_strided<THREADS / row, row>(shared + (f * width + column % width) * THREADS + column / width);
            out.store(i0 / Tile::m, j, sums);
        }
    }
};

/* Lays part `part` of the calling thread's sums into shared memory as [slice][row][column]. */
template <class Tile, class Place>
__device__ void lay_part(const Place &place, int part, const float (&sum)[Tile::tm][Tile::tn], float *shared) {
    constexpr int rows = Tile::lanes_m * Tile::tm, run = Tile::run_m; // of a warp; of a thread in this part
    int row = place.row / rows * (Tile::lanes_m * run) + place.row % rows;
    float *slice = shared + (place.slice * Tile::part_rows + row) * Tile::n + place.column;
#pragma unroll
    for (int i = 0; i < run; i++)
#pragma unroll
        for (int j = 0; j < Tile::tn; j++)
            slice[Place::to_row(i) * Tile::n + Place::to_column(j)] = sum[part * run + i][j];
}

/* The sums of a part of a tile, as lay_part laid them: those of its slices are added. */
template <class Tile> struct PartSums {
    const float *sums;

    template <int WIDTH> __device__ Pack<float, WIDTH> at(int row, int column) const {
        constexpr int slice = Tile::part_rows * Tile::n;
        const float *first = sums + row * Tile::n + column;
        Pack<float, WIDTH> total = load_pack<WIDTH>(first);
        if constexpr (Tile::slices > 1)
#pragma unroll
            for (int v = 0; v < WIDTH; v++)
                total[v] = sum_strided<Tile::slices, slice>(first + v);
        return total;
    }
};

/* Everything that happens to the sums of a tile: `out` and `side`, and what they read ahead. A side's sums over k are
 * taken by the tiles of the first column, or row, of the product. */
template <class Product, class Tile, class Out, class Side> struct Results {
    static constexpr int count = Tile::part_rows * Tile::n, run = Tile::lanes_m * Tile::run_m;
    static constexpr int width = Side::of_a ? Tile::m : Tile::n, lines = Side::of_a ? Product::M : Product::N;
    static constexpr int first_of_line = THREADS - width; // the last threads, which have the fewest outputs
    static constexpr bool has_side = Side::of_a || Side::of_b;
    using TileOutputs = Outputs<Product, Tile, Tile::part_rows, Out>;
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
    template <class Place>
    __device__ void write(const Place &place, const float (&sum)[Tile::tm][Tile::tn], float *shared) {
        float *line_sums = shared + Tile::slices * count; // THREADS / width of each line
#pragma unroll
        for (int part = 0; part < Tile::parts; part++) {
            auto row_of = [=](int row) { return row / run * run * Tile::parts + part * run + row % run; };
            PartSums<Tile> sums{shared};
            __syncthreads();
            lay_part<Tile>(place, part, sum, shared);
            if (has_side && part == 0)
                line_sums[threadIdx.x] = line_sum;
            __syncthreads();
            if constexpr (reads_ahead)
                outputs.write(out, 0, row_of, sums);
            else
                outputs.read_and_write(out, row_of, sums);
        }
        if constexpr (has_side)
            if (stores_line())
                store_line(side.out, line_ahead, line0 + line, sum_strided<THREADS / width, width>(line_sums + line));
        outputs.fold(out, shared);
    }
};

#endif
