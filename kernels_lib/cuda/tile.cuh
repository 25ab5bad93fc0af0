/* Products, the tiles they are cut into, and how a block works on a tile. */
#ifndef MTC_CUDA_TILE_CUH
#define MTC_CUDA_TILE_CUH

#include "cuda/team.cuh"

template <int M_, int N_, int K_> struct Product { static constexpr int M = M_, N = N_, K = K_; };

__host__ __device__ constexpr int divide_up(int a, int b) {
    return (a + b - 1) / b;
}

/* The largest vector, 4, 2 or 1, that divides n. */
__host__ __device__ constexpr int vector_width(int n) {
    return n % 4 == 0 ? 4 : n % 2 == 0 ? 2 : 1;
}

/* How a tile is dealt to threads. In a slice, `down` x `across` threads; a warp's share of them is lanes_m x lanes_n, so
 * that it reads few distinct numbers. A thread's rows are `parts` runs of `run_m`, and neighbouring threads' runs lie
 * side by side; columns likewise:
 *
 *     lane:    0000 1111 2222 3333 | 0000 1111 2222 3333      run_m = 4, lanes_m = 4, parts = 2          */
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

template <class Product, class Tile> __host__ __device__ constexpr int product_tiles() {
    return divide_up(Product::M, Tile::m) * divide_up(Product::N, Tile::n);
}

/* Panels of a pipelined product: so many are on their way or in use, and lines that were transposed lie apart by PAD. */
constexpr int STAGES = 4, PAD = 4;

template <class Product, class Tile> __host__ __device__ constexpr int product_shared() {
    constexpr bool pipelined = Tile::slices == 1 && Product::K > Tile::k;
    constexpr int buffers = Product::K <= Tile::k ? 1 : pipelined ? STAGES : 2;
    constexpr int panels = buffers * (Tile::m + Tile::n + 2 * PAD) * Tile::k;
    constexpr int sums = Tile::slices * Tile::part_rows * Tile::n + THREADS; // and those of a side
    return (panels > sums ? panels : sums) * (int)sizeof(float);
}

/* Where the calling thread stands in its tile. */
template <class Tile> struct Place {
    int slice, row, column; // first row and column; further ones by row_of, column_of

    __device__ Place() {
        constexpr int warp = Tile::lanes_m * Tile::lanes_n, warps_across = Tile::across / Tile::lanes_n;
        int thread = threadIdx.x % (Tile::down * Tile::across), lane = thread % warp, group = thread / warp;
        slice = threadIdx.x / (Tile::down * Tile::across);
        row = group / warps_across * Tile::lanes_m * Tile::tm + lane / Tile::lanes_n * Tile::run_m;
        column = group % warps_across * Tile::lanes_n * Tile::tn + lane % Tile::lanes_n * Tile::run_n;
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

/* Panels lie in shared memory as [k][line]: line l of step k at k * pitch + (l ^ rotation(k)).
 *
 * sum += panel of a times panel of b, the calling thread's outputs and steps of k. */
template <class Tile, class PanelA, class PanelB>
__device__ void multiply(const Place<Tile> &place, const float *a, const float *b, float (&sum)[Tile::tm][Tile::tn]) {
#pragma unroll 16
    for (int step = 0; step < Tile::k / Tile::slices; step++) {
        int k = step * Tile::slices + place.slice;
        alignas(16) float x[Tile::tm], y[Tile::tn];
        load_runs<Tile::tm, Tile::run_m, Tile::lanes_m * Tile::run_m>(a + k * PanelA::pitch, place.row,
                                                                      PanelA::rotation(k), x);
        load_runs<Tile::tn, Tile::run_n, Tile::lanes_n * Tile::run_n>(b + k * PanelB::pitch, place.column,
                                                                      PanelB::rotation(k), y);
#pragma unroll
        for (int i = 0; i < Tile::tm; i++)
#pragma unroll
            for (int j = 0; j < Tile::tn; j++)
                sum[i][j] = fmaf(x[i], y[j], sum[i][j]);
    }
}

/* The sum over k of the lines of a panel, as it stands in shared memory: THREADS / WIDTH threads a line. */
template <class Panel, int WIDTH, int DEPTH> __device__ float sum_lines(const float *panel, float sum) {
    static_assert(THREADS % WIDTH == 0, "a line's sum takes whole threads");
    int line = threadIdx.x % WIDTH;
    for (int k = threadIdx.x / WIDTH; k < DEPTH; k += THREADS / WIDTH)
        sum += panel[k * Panel::pitch + (line ^ Panel::rotation(k))];
    return sum;
}

#endif
