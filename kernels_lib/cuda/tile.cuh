/* Products, the tiles they are cut into, and how a block works on a tile. */
#ifndef MTC_CUDA_TILE_CUH
#define MTC_CUDA_TILE_CUH

#include "cuda/architecture.cuh"
#include "cuda/float8.cuh"
#include "cuda/team.cuh"
#include "cuda/tf32.cuh"
#include <type_traits>

/* ROWS x K times K x N. In SLICES, as many of them: k goes on from one to the next in both operands, and their outputs lie
 * below each other, M rows in all. */
template <int ROWS, int N_, int K_, int SLICES = 1> struct Product {
    static constexpr int M = SLICES * ROWS, N = N_, K = K_, rows = ROWS, slices = SLICES;
};

__host__ __device__ constexpr int divide_up(int a, int b) {
    return (a + b - 1) / b;
}
__host__ __device__ constexpr int divide_up(int64_t a, int b) {
    return (int)((a + b - 1) / b);
}

__host__ __device__ constexpr int smaller(int a, int b) {
    return a < b ? a : b;
}

/* How a tile is dealt to threads. In a slice, `down` x `across` threads; a warp's share of them is lanes_m x lanes_n, so
 * that it reads few distinct numbers. A thread's rows are `parts` runs of `run_m`, and neighbouring threads' runs lie
 * side by side; columns likewise:
 *
 *     down:    0000 1111 2222 3333 | 0000 1111 2222 3333      run_m = 4, lanes_m = 4, parts = 2          */
template <int m_, int n_, int k_, int tm_, int tn_, int first_warp_ = 0> struct Tile {
    static constexpr int m = m_, n = n_, k = k_, tm = tm_, tn = tn_;
    static constexpr int first_warp =
        first_warp_; // of a thin tile: it begins there, and leaves others the warps before
    static constexpr int down = m / tm, across = n / tn, slices = THREADS / (down * across);
    static constexpr int lanes_n = across < 8 ? across : 8;
    static constexpr int lanes_m = down < LANES / lanes_n ? down : LANES / lanes_n;
    static constexpr int run_m = vector_width(tm), run_n = vector_width(tn);
    static constexpr int parts = tm / run_m, part_rows = m / parts;
    static_assert(m % tm == 0 && n % tn == 0 && slices * down * across == THREADS, "threads must cover the tile");
    static_assert(down % lanes_m == 0 && across % lanes_n == 0, "warps must cover a slice");
};

/* Of a product on tensor cores: 8 warps share the tile, and `stages` panels of k numbers are on their way or in use. k is 128
 * bytes of Element: Narrow, Integer, float, which is multiplied as tf32, or tf32x3, a float as two terms of tf32. Sums lie in shared memory with a pitch that lets the
 * eight rows of a fragment meet different banks. */
template <int m_, int n_, int k_, int warps_m_, int warps_n_, int stages_, class Element_, int splits_ = 1>
struct TensorTile {
    using Element = Element_;
    static constexpr int m = m_, n = n_, k = k_, warps_m = warps_m_, warps_n = warps_n_, stages = stages_;
    static constexpr int splits = splits_; // of k, each the work of a block of a cluster
    static constexpr int pitch = tensor_pitch(n), terms = terms_of<Element>;
    static_assert(k * sizeof(Element) == 128, "a panel is 128 bytes deep");
};

/* A number of a panel. */
template <class Tile> using Stored = std::conditional_t<Tile::terms == 2, float, typename Tile::Element>;

template <class Tile> constexpr bool is_tensor = false;
template <int m, int n, int k, int warps_m, int warps_n, int stages, class Element, int splits>
constexpr bool is_tensor<TensorTile<m, n, k, warps_m, warps_n, stages, Element, splits>> = true;
template <class Tile> __host__ __device__ constexpr int splits_of() {
    if constexpr (is_tensor<Tile>)
        return Tile::splits;
    return 1;
}

/* Of a large product of matrices of 16-bit numbers, or of bytes: one of two groups of four warps multiplies it while the other writes out its
 * own, see tensor_turns.cuh. `stages` panels are on their way or in use. Where there are no instructions for that, it is worked on
 * Alone. */
template <int m_, int n_, int k_, int stages_, class Element_> struct TurnTile {
    using Element = Element_;
    using Alone = TensorTile<m_, n_, k_, 2, 4, 3, Element>;
    static constexpr int m = m_, n = n_, k = k_, stages = stages_;
    static constexpr int streams = is_float8<Element> ? 2 : 1; // that share the stages
};
template <class Tile> constexpr bool takes_turns = false;
template <int m, int n, int k, int stages, class Element>
constexpr bool takes_turns<TurnTile<m, n, k, stages, Element>> = true;

/* Of a product of few rows with a weight, all rows and n columns, see tensor_few.cuh: 16 columns a warp, and other steps of k by the other
 * warps. EARLY: the weight is there ahead of the gate. */
template <int m_, int n_, bool EARLY> struct FewTile {
    using Element = Narrow;
    static constexpr int m = m_, n = n_, k = FEW_STEP, warps_m = 1, warps_n = n / 16, slices = WARPS / warps_n,
                         stages = FEW_STAGES, terms = 1;
    static constexpr bool early = EARLY;
    static_assert(m % 8 == 0 && n % 16 == 0 && slices * warps_n == WARPS, "warps must cover the tile");
};
template <class Tile> constexpr bool has_few_rows = false;
template <int m, int n, bool EARLY> constexpr bool has_few_rows<FewTile<m, n, EARLY>> = true;

template <class Product, class Tile> __host__ __device__ constexpr int few_shared() {
    constexpr int steps = divide_up(Product::K, Tile::slices * Tile::k);
    constexpr int ahead = smaller(steps, few_ahead(Tile::m, MOST_SHARED));
    return few_tile_shared(Tile::m, Tile::n, Tile::slices, ahead, smaller(steps, few_stages(Tile::m, MOST_SHARED)));
}

/* Of windows of 3 x 3 taps, over images of ROWS x COLUMNS outputs: squares of 2 x 2 of them, see winograd.cuh. */
template <int ROWS, int COLUMNS> struct SquareTile {
    static constexpr int m = SQUARES * SQUARE_OUTPUTS, n = SQUARE_COLUMNS;
    static constexpr int down = divide_up(ROWS, 2), across = divide_up(COLUMNS, 2), each = down * across;
    static constexpr bool is_even = ROWS % 2 == 0 && COLUMNS % 2 == 0;

    /* Squares of so many outputs. */
    static __host__ __device__ constexpr int squares(int outputs) {
        return outputs / (ROWS * COLUMNS) * each;
    }
};
template <class Tile> constexpr bool has_squares = false;
template <int ROWS, int COLUMNS> constexpr bool has_squares<SquareTile<ROWS, COLUMNS>> = true;

/* Of a block that works on TurnTiles, two groups and one that copies; and of a cluster, whose tiles lie below each other. */
constexpr int TURN_THREADS = THREADS + THREADS / 2;

/* The shared memory of such a block, as offsets: panels, each of a and then of b; what a warp is writing out, 16 rows of half of
 * the columns; a barrier for each panel that is full, and that is empty. */
template <class Tile> struct TurnMemory {
    static constexpr int panel_a = Tile::m * 128, panel = panel_a + Tile::n * 128;
    static constexpr int rows = 16, columns = Tile::n / 2;
    static constexpr int sums = Tile::stages * panel, warp_sums = rows * columns * (int)sizeof(float);
    static constexpr int full = sums + WARPS * warp_sums, empty = full + Tile::stages * 8;
    static constexpr int bytes = empty + Tile::stages * 8;
};

template <class Product, class Tile> __host__ __device__ constexpr int product_tiles() {
    int down = divide_up(Product::M, Tile::m);
    if constexpr (has_squares<Tile>)
        down = divide_up(Tile::squares(Product::M), SQUARES);
    return down * divide_up(Product::N, Tile::n) * splits_of<Tile>();
}

template <class Tile> __host__ __device__ constexpr int pipelined_panel() {
    return (padded_panel(Tile::m, Tile::k) + padded_panel(Tile::n, Tile::k)) * (int)sizeof(float);
}

/* The tile with panels so deep that MOST_SHARED has room for two: slices have the same steps of k, however deep panels are. */
template <class Of> __host__ __device__ constexpr auto pipelined_tile() {
    using Half = Tile<Of::m, Of::n, Of::k / 2, Of::tm, Of::tn, Of::first_warp>;
    if constexpr (2 * pipelined_panel<Of>() <= MOST_SHARED)
        return Of();
    else
        return pipelined_tile<Half>();
}
template <class Of> using PipelinedTile = decltype(pipelined_tile<Of>());

/* Of the tile's panels, as many as MOST_SHARED has room for. */
template <class Tile> __device__ constexpr int pipelined_stages() {
    return smaller(STAGES, MOST_SHARED / pipelined_panel<Tile>());
}

template <class Tile> __host__ __device__ constexpr int tensor_shared() {
    return tensor_tile_shared(Tile::m, Tile::n, Tile::stages, Tile::terms);
}

/* How a tile on tensor cores is worked on within MOST_SHARED: as it is, with fewer panels under way, or its columns in PARTS,
 * one after the other, as few as will do. */
template <class Tile, int PARTS = 1> struct TensorParts {
    static constexpr int count = PARTS, n = Tile::n / PARTS, panel = tensor_panel(Tile::m, n),
                         room = (MOST_SHARED - tensor_second_terms(n, Tile::terms)) / panel;
    static constexpr int stages = room < Tile::stages ? room : Tile::stages;
    using Part =
        TensorTile<Tile::m, n, Tile::k, Tile::warps_m, Tile::warps_n, stages, typename Tile::Element, Tile::splits>;
    static constexpr bool covers = Tile::n % PARTS == 0 && n % (16 * Tile::warps_n) == 0;
    static constexpr bool fits = covers && stages > 1 && tensor_shared<Part>() <= MOST_SHARED;

    static __host__ __device__ constexpr auto choose() {
        if constexpr (fits)
            return TensorParts();
        else
            return TensorParts<Tile, PARTS + 1>::choose();
    }
};
template <class Tile> using PartsOf = decltype(TensorParts<Tile>::choose());

/* Of any TurnTile alone, its sums over rows among it. */
constexpr int TURN_SHARED_ALONE = tensor_shared<TurnTile<128, 128, 64, 6, Narrow>::Alone>();

template <class Product, class Tile> __host__ __device__ constexpr int block_shared() {
    return tile_shared(Tile::m, Tile::n, Tile::k, Tile::tm, Tile::tn, Tile::slices, Product::K, STAGES);
}

/* FOLDED: numbers that a call of `out` gives to sums over rows. */
template <class Product, class Tile, int FOLDED = 0> __host__ __device__ constexpr int product_shared() {
    constexpr int totals = THREADS * FOLDED * (int)sizeof(float);
    int bytes = 0;
    if constexpr (is_tensor<Tile>)
        bytes = tensor_shared<Tile>();
    else if constexpr (takes_turns<Tile>)
        bytes = TurnMemory<Tile>::bytes;
    else if constexpr (has_few_rows<Tile>)
        bytes = few_shared<Product, Tile>();
    else if constexpr (has_squares<Tile>)
        bytes = square_shared(SQUARE_DEPTH, SQUARE_PARTS);
    else
        bytes = block_shared<Product, Tile>();
    return bytes > totals ? bytes : totals;
}

/* The tile with panels no deeper than the product; in steps of k that its slices share, and that keep vectors whole. */
template <class Product, class Tile> constexpr int fitted_depth() {
    return panel_depth(Product::K, Tile::slices, Tile::k);
}
template <class Product, class Of>
using Fitted = Tile<Of::m, Of::n, fitted_depth<Product, Of>(), Of::tm, Of::tn, Of::first_warp>;

/* Where the calling thread stands in its tile. Its rows (columns) lie in runs, as above; or APART: those of neighbouring
 * lanes lie side by side, and a thread's own as many rows apart as there are lanes. Lanes go down in pairs before they go
 * across: shared memory serves a load of 16 bytes a lane in half the time where neighbouring lanes read the same. */
template <class Tile, bool ROWS_APART = false, bool COLUMNS_APART = false> struct Place {
    static constexpr int run_m = ROWS_APART ? 1 : Tile::run_m, run_n = COLUMNS_APART ? 1 : Tile::run_n;
    int slice, row, column; // the first row and column

    __device__ Place() {
        constexpr int warp = Tile::lanes_m * Tile::lanes_n, warps_across = Tile::across / Tile::lanes_n;
        constexpr int together = Tile::lanes_m % 2 == 0 ? 2 : 1;
        int thread = threadIdx.x % (Tile::down * Tile::across), lane = thread % warp, group = thread / warp;
        slice = threadIdx.x / (Tile::down * Tile::across);
        int down = lane / (together * Tile::lanes_n) * together + lane % together;
        row = group / warps_across * Tile::lanes_m * Tile::tm + down * run_m;
        column = group % warps_across * Tile::lanes_n * Tile::tn + lane / together % Tile::lanes_n * run_n;
    }
    /* How far the thread's further rows and columns are from its first. */
    static __device__ constexpr int to_row(int r) {
        return r / run_m * Tile::lanes_m * run_m + r % run_m;
    }
    static __device__ constexpr int to_column(int c) {
        return c / run_n * Tile::lanes_n * run_n + c % run_n;
    }
};

/* v[0 .. COUNT) in runs of RUN, a run every STEP, from shared memory. `rotation` as the panel was laid. */
template <int COUNT, int RUN, int STEP>
__device__ void load_runs(const float *line, int first, int rotation, float *v) {
#pragma unroll
    for (int r = 0; r < COUNT; r += RUN) {
        const float *run = line + ((first + r / RUN * STEP) ^ rotation);
        if constexpr (RUN == 4)
            *(float4 *)(v + r) = *(const float4 *)run;
        else if constexpr (RUN == 2)
            *(float2 *)(v + r) = *(const float2 *)run;
        else
            v[r] = *run;
    }
}

/* What a thread multiplies at a step of k. Panels lie in shared memory as [k][line]: line l of step k at
 * k * pitch + (l ^ rotation(k)). */
template <class Tile, class PanelA, class PanelB> struct Operands {
    alignas(16) float x[Tile::tm], y[Tile::tn];

    /* Of step `step` of those of the thread's slice. */
    __device__ Operands(const Place<Tile> &place, const float *a, const float *b, int step) {
        int k = step * Tile::slices + place.slice;
        load_runs<Tile::tm, Tile::run_m, Tile::lanes_m * Tile::run_m>(a + k * PanelA::pitch, place.row,
                                                                      PanelA::rotation(k), x);
        load_runs<Tile::tn, Tile::run_n, Tile::lanes_n * Tile::run_n>(b + k * PanelB::pitch, place.column,
                                                                      PanelB::rotation(k), y);
    }
    __device__ void multiply(float (&sum)[Tile::tm][Tile::tn]) const {
#pragma unroll
        for (int i = 0; i < Tile::tm; i++)
#pragma unroll
            for (int j = 0; j < Tile::tn; j++)
                sum[i][j] = fmaf(x[i], y[j], sum[i][j]);
    }
};

/* sum += panel of a times panel of b, the calling thread's outputs and steps of k. */
template <class Tile, class PanelA, class PanelB>
__device__ void multiply(const Place<Tile> &place, const float *a, const float *b, float (&sum)[Tile::tm][Tile::tn]) {
#pragma unroll 16
    for (int step = 0; step < Tile::k / Tile::slices; step++)
        Operands<Tile, PanelA, PanelB>(place, a, b, step).multiply(sum);
}

/* v[step][r]: numbers of a thread's lines at four steps of k from `k` on. Line r is the first and STEP times r more, of a
 * panel that lies as [line][k]; or else in runs as above. */
template <class Panel, int COUNT, int RUN, int STEP>
__device__ void load_steps(const float *panel, int first, int k, float (&v)[4][COUNT]) {
    if constexpr (Panel::line_major) {
#pragma unroll
        for (int r = 0; r < COUNT; r++) {
            float4 four = *(const float4 *)(panel + (first + r * STEP) * Panel::pitch + k);
            v[0][r] = four.x, v[1][r] = four.y, v[2][r] = four.z, v[3][r] = four.w;
        }
    } else {
#pragma unroll
        for (int step = 0; step < 4; step++)
            load_runs<COUNT, RUN, STEP * RUN>(panel + (k + step) * Panel::pitch, first, 0, v[step]);
    }
}

/* What a thread multiplies at four steps of k, where a panel lies as [line][k]. */
template <class Tile, class PanelA, class PanelB> struct FourOperands {
    alignas(16) float x[4][Tile::tm], y[4][Tile::tn];

    template <class Place> __device__ FourOperands(const Place &place, const float *a, const float *b, int four) {
        int k = 4 * (four * Tile::slices + place.slice);
        load_steps<PanelA, Tile::tm, Tile::run_m, Tile::lanes_m>(a, place.row, k, x);
        load_steps<PanelB, Tile::tn, Tile::run_n, Tile::lanes_n>(b, place.column, k, y);
    }
    __device__ void multiply(float (&sum)[Tile::tm][Tile::tn]) const {
#pragma unroll
        for (int q = 0; q < 4; q++)
#pragma unroll
            for (int i = 0; i < Tile::tm; i++)
#pragma unroll
                for (int j = 0; j < Tile::tn; j++)
                    sum[i][j] = fmaf(x[q][i], y[q][j], sum[i][j]);
    }
};

/* The sum over k of the lines of a panel, as it stands in shared memory: THREADS / WIDTH threads a line. */
template <class Panel, int WIDTH, int DEPTH> __device__ float sum_lines(const float *panel, float sum) {
    static_assert(THREADS % WIDTH == 0, "a line's sum takes whole threads");
    int line = threadIdx.x % WIDTH;
    for (int k = threadIdx.x / WIDTH; k < DEPTH; k += THREADS / WIDTH)
        sum += panel[Panel::place(line, k)];
    return sum;
}

#endif
