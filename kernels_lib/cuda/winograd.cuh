/* Windows of 3 x 3 taps that move by one pixel, by Winograd's F(2 x 2, 3 x 3): 16 multiplications for 2 x 2 outputs instead of 36.
 *
 * Two neighbouring outputs of three taps w see four pixels x:
 *
 *     y0 = p0 + (p1 + p2) / 2        p0 = (x0 - x2) w0        p1 = (x1 + x2) (w0 + w1 + w2)
 *     y1 = (p1 - p2) / 2 - p3        p3 = (x1 - x3) w2        p2 = (x2 - x1) (w0 - w1 + w2)
 *
 * and so do squares of 2 x 2, along both axes. Summed over channels, the 16 products of a square and a column are those of 16 pairs of
 * matrices, each with a row for each square and a step of k for each channel. A warp multiplies two pairs. Pixels and taps pass through
 * registers, where they are transformed, to shared memory; there the products of a square are joined in the end.
 *
 * A sum has no more rounding errors than one after the other, for it has a ninth of the steps. A pixel that is no number, or infinite, makes
 * no numbers of all four outputs of its squares. */
#ifndef MTC_CUDA_WINOGRAD_CUH
#define MTC_CUDA_WINOGRAD_CUH

#include "cuda/operand.cuh"
#include "cuda/outputs.cuh"
#include "cuda/window.cuh"

/* Panels, and parts of the squares that are written out one after the other, as there is shared memory. They lie as
 * [channel][product][line], channels PAD apart, so that what a warp stores meets different banks. */
struct SquarePanel {
    static constexpr bool as_planned = square_shared(SQUARE_DEPTH, SQUARE_PARTS) <= MOST_SHARED;
    static constexpr int depth = as_planned ? SQUARE_DEPTH : LEAST_SQUARE_DEPTH;
    static constexpr int parts = as_planned ? SQUARE_PARTS : MOST_SQUARE_PARTS;
    static constexpr int channel_a = square_lines(SQUARES), channel_b = square_lines(SQUARE_COLUMNS);
    static constexpr int taps = depth * channel_a, floats = taps + depth * channel_b; // where they begin
};

/* The squares of a window's outputs, which are counted through all images. */
template <class Window, class Tile> struct Squares;
template <class T, int H, int W, int C, class Rows, class Columns, class Tile>
struct Squares<Window<T, H, W, C, Rows, Columns>, Tile> {
    static constexpr int channels = C, line = W * C;
    static constexpr bool up = Rows::dilation < 0, left = Columns::dilation < 0; // the way of the taps
    static_assert(Rows::kernel == 3 && Rows::stride == 1 && Rows::spread == 1 && Rows::dilation * Rows::dilation == 1);
    static_assert(Columns::kernel == 3 && Columns::stride == 1 && Columns::spread == 1 &&
                  Columns::dilation * Columns::dilation == 1);

    static __device__ int image(int square) {
        return square / Tile::each;
    }
    static __device__ int output_row(int square) {
        return square % Tile::each / Tile::across * 2;
    }
    static __device__ int output_column(int square) {
        return square % Tile::across * 2;
    }
    /* The first line and column that a square sees; of which that many others lie to the right and below. */
    static __device__ int first_row(int square) {
        return Rows::of_output(output_row(square)) - (up ? 2 : 0);
    }
    static __device__ int first_column(int square) {
        return Columns::of_output(output_column(square)) - (left ? 2 : 0);
    }
    static __device__ bool inside(int row, int column) {
        return Rows::inside(row, H) && Columns::inside(column, W);
    }
    /* The tap through which its first output sees the pixel. */
    static __device__ constexpr int tap(int row, int column) {
        return (up ? 2 - row : row) * 3 + (left ? 2 - column : column);
    }
    /* Corner 0 .. 3 of a square as a row of the product; -1: it lies outside. */
    static __device__ int output(int square, int corner) {
        int row = output_row(square) + corner / 2, column = output_column(square) + corner % 2;
        bool exists = Tile::is_even || (row < Rows::out && column < Columns::out);
        return exists ? (image(square) * Rows::out + row) * Columns::out + column : -1;
    }
};

/* Four pixels, or three taps, STEP apart become what products are made of. */
template <int STEP> __device__ void transform_pixels(float *x) {
    float x0 = x[0], x1 = x[STEP], x2 = x[2 * STEP], x3 = x[3 * STEP];
    x[0] = x0 - x2;
    x[STEP] = x1 + x2;
    x[2 * STEP] = x2 - x1;
    x[3 * STEP] = x1 - x3;
}
template <int STEP> __device__ void transform_taps(float *w) {
    float w0 = w[0], w1 = w[STEP], w2 = w[2 * STEP];
    w[STEP] = w0 + w2 + w1;
    w[2 * STEP] = w0 + w2 - w1;
    w[3 * STEP] = w2;
}

/* What the squares of a tile see: of one square and channel a thread. */
template <class A, class Cut> struct SquarePixels {
    static constexpr int items = SQUARES * SquarePanel::depth;
    static_assert(items <= THREADS, "one a thread");
    const float *from;
    unsigned valid = 0; // bit q: pixel q lies in the image
    float raw[16];

    static __device__ int channel() {
        return threadIdx.x % SquarePanel::depth;
    }
    static __device__ int line() {
        return threadIdx.x / SquarePanel::depth;
    }
    /* Of `count` squares, from the first on. */
    __device__ SquarePixels(const A &a, int first, int count) {
        const int square = first + line(), row = Cut::first_row(square), column = Cut::first_column(square);
        const bool exists = threadIdx.x < items && square < count;
        from = a.stored.source.row(Cut::image(square)) + row * Cut::line + column * Cut::channels + channel();
#pragma unroll
        for (int q = 0; q < 16; q++)
            valid |= exists && Cut::inside(row + q / 4, column + q % 4) ? 1u << q : 0;
    }
    /* Line `row` of the next panel's. */
    __device__ void fetch(int row) {
#pragma unroll
        for (int q = 4 * row; q < 4 * row + 4; q++)
            raw[q] = valid >> q & 1 ? from[row * Cut::line + q % 4 * Cut::channels] : 0;
        if (row == 3)
            from += SquarePanel::depth;
    }
    __device__ void transform() {
#pragma unroll
        for (int row = 0; row < 4; row++)
            transform_pixels<1>(raw + 4 * row);
    }
    /* The products of columns 2 * half and the next. */
    __device__ void lay(int half, float *panel) {
        if (items < THREADS && threadIdx.x >= items)
            return;
        float *to = panel + channel() * SquarePanel::channel_a + line();
#pragma unroll
        for (int column = 2 * half; column < 2 * half + 2; column++) {
            transform_pixels<4>(raw + column);
#pragma unroll
            for (int p = column; p < 16; p += 4)
                to[p * SQUARES] = raw[p];
        }
    }
};

/* The taps of a tile's columns, as many columns of one channel a thread. */
template <class B, class Cut, int N> struct SquareTaps {
    static constexpr int loads = SQUARE_COLUMNS * SquarePanel::depth / THREADS;
    static constexpr bool whole = N % SQUARE_COLUMNS == 0; // no column lies beyond the operand
    static constexpr int places =
        whole || !B::along_k ? 1 : loads; // of the first load; the others' are as far from it everywhere
    const B &b;
    const float *from[places];
    float raw[loads][16];

    static __device__ int channel(int e) {
        return B::along_k ? e % SquarePanel::depth : e / SQUARE_COLUMNS;
    }
    static __device__ int line(int e) {
        return B::along_k ? e / SquarePanel::depth : e % SQUARE_COLUMNS;
    }
    __device__ SquareTaps(const B &b, int j0) : b(b) {
#pragma unroll
        for (int q = 0; q < places; q++) {
            const int e = threadIdx.x + q * THREADS, j = j0 + line(e);
            from[q] = b.at(b.line(whole || j < N ? j : 0), b.step(channel(e)));
        }
    }
    /* Elements to the number that is so many lines and steps of k further. */
    __device__ int further(int lines, int steps) const {
        return (int)(b.at(b.line(lines), b.step(steps)) - b.at(b.line(0), b.step(0)));
    }
    __device__ const float *place(int q) const {
        return places > 1 || q == 0 ? from[q]
                                    : from[0] + further(q * THREADS / SquarePanel::depth * B::along_k,
                                                        q * THREADS / SQUARE_COLUMNS * !B::along_k);
    }
    /* Line `row` of load q of the next panel's. */
    __device__ void fetch(int q, int row) {
#pragma unroll
        for (int column = 0; column < 3; column++)
            raw[q][4 * row + column] = place(q)[further(0, Cut::tap(row, column) * Cut::channels)];
        if (row == 2 && (places > 1 || q == loads - 1))
            from[places > 1 ? q : 0] += further(0, SquarePanel::depth);
    }
    __device__ void transform(int q) {
#pragma unroll
        for (int row = 0; row < 3; row++)
            transform_taps<1>(raw[q] + 4 * row);
    }
    /* The products of columns 2 * half and the next. */
    __device__ void lay(int q, int half, float *panel) {
        const int e = threadIdx.x + q * THREADS;
        float *to = panel + SquarePanel::taps + channel(e) * SquarePanel::channel_b + line(e);
#pragma unroll
        for (int column = 2 * half; column < 2 * half + 2; column++) {
            transform_taps<4>(raw[q] + column);
#pragma unroll
            for (int p = column; p < 16; p += 4)
                to[p * SQUARE_COLUMNS] = raw[q][p];
        }
    }
};

/* Where the calling thread stands: in two products of its warp at squares and columns from these on, four, and four that lie half of
 * the tile further. Lanes go as in Place, tile.cuh. */
struct SquarePlace {
    static constexpr int run = 4, sums = 8;
    int product = threadIdx.x / LANES * 2, square, column;

    __device__ SquarePlace() {
        const int lane = threadIdx.x % LANES;
        square = (lane / 16 * 2 + lane % 2) * run;
        column = lane / 2 % 8 * run;
    }
};
using SquareSums = float[2][SquarePlace::sums][SquarePlace::sums];

/* A channel of a panel, of one of the two products. */
static __device__ void multiply_squares(const SquarePlace &place, const float *panel, int k, int p, SquareSums &sum) {
    const float *a = panel + k * SquarePanel::channel_a + (place.product + p) * SQUARES + place.square;
    const float *b =
        panel + SquarePanel::taps + k * SquarePanel::channel_b + (place.product + p) * SQUARE_COLUMNS + place.column;
    alignas(16) float x[SquarePlace::sums], y[SquarePlace::sums];
    load_runs<8, 4, SQUARES / 2>(a, 0, 0, x);
    load_runs<8, 4, SQUARE_COLUMNS / 2>(b, 0, 0, y);
#pragma unroll
    for (int i = 0; i < SquarePlace::sums; i++)
#pragma unroll
        for (int j = 0; j < SquarePlace::sums; j++)
            sum[p][i][j] = fmaf(x[i], y[j], sum[p][i][j]);
}

/* Step `step` of 16 that bring the next panel, between multiplications: loads and stores are dealt out, for a warp that waits for its turn
 * at memory multiplies nothing; and few numbers are on their way at a time.
 *
 *     pixels         fetched at 0 to 3, transformed at 5, laid at 6 and 7
 *     taps, load q   fetched at 6 to 8, transformed at 10, laid at 11 and 12, each 3 q later                              */
template <class Pixels, class Taps> __device__ void bring_panel(int step, Pixels &pixels, Taps &taps, float *next) {
    if (step < 4)
        pixels.fetch(step);
    if (step == 5)
        pixels.transform();
    if (step == 6 || step == 7)
        pixels.lay(step - 6, next);
#pragma unroll
    for (int q = 0; q < Taps::loads; q++) {
        const int own = step - 3 * q;
        if (own >= 6 && own <= 8)
            taps.fetch(q, own - 6);
        if (own == 10)
            taps.transform(q);
        if (own == 11 || own == 12)
            taps.lay(q, own - 11, next);
    }
}

template <bool FOLLOWS, class Pixels, class Taps>
__device__ void multiply_panel(const SquarePlace &place, const float *panel, SquareSums &sum, Pixels &pixels,
                               Taps &taps, float *next) {
    constexpr int each = 16 / (2 * SquarePanel::depth); // steps beside a multiplication
#pragma unroll
    for (int at = 0; at < 2 * SquarePanel::depth; at++) {
        multiply_squares(place, panel, at / 2, at % 2, sum);
        __syncwarp();
        if (FOLLOWS)
#pragma unroll
            for (int step = at * each; step < (at + 1) * each; step++)
                bring_panel(step, pixels, taps, next);
    }
}

/* A part of the squares is as many of each thread's as lie there. */
struct SquarePart {
    static constexpr int squares = SQUARES / SquarePanel::parts, each = SquarePlace::sums / SquarePanel::parts;
    static constexpr int products = SQUARE_PRODUCTS * squares * SQUARE_COLUMNS; // floats
    int part;

    /* Which of the tile's squares is number `at` of the part. */
    __device__ int square(int at) const {
        const int own = part * each + at % each; // of a thread
        return own / SquarePlace::run * (SQUARES / 2) + at / each * SquarePlace::run + own % SquarePlace::run;
    }
    /* The calling thread's, to shared memory as [product][square][column]. */
    __device__ void lay(const SquarePlace &place, const SquareSums &sum, float *shared) const {
        const int first = place.square / SquarePlace::run * each;
#pragma unroll
        for (int p = 0; p < 2; p++)
#pragma unroll
            for (int i = 0; i < each; i++)
#pragma unroll
                for (int j = 0; j < SquarePlace::sums; j++)
                    shared[((place.product + p) * squares + first + i) * SQUARE_COLUMNS + place.column +
                           j / SquarePlace::run * (SQUARE_COLUMNS / 2) + j % SquarePlace::run] =
                        sum[p][part * each + i][j];
    }
};

/* y0 and y1 of p0 .. p3. */
template <int V> __device__ void join_products(const Pack<float, V> (&p)[4], Pack<float, V> (&y)[2]) {
#pragma unroll
    for (int v = 0; v < V; v++) {
        y[0][v] = fmaf(0.5f, p[1][v] + p[2][v], p[0][v]);
        y[1][v] = fmaf(0.5f, p[1][v] - p[2][v], -p[3][v]);
    }
}

/* Of a part in shared memory, to outputs as [square][corner][column]; four columns of a square a thread. */
static __device__ void join_squares(const float *products, float *outputs) {
    constexpr int row = SQUARE_COLUMNS / 4, items = SquarePart::squares * row;
    static_assert(items <= THREADS, "one a thread");
    const int square = threadIdx.x / row, column = threadIdx.x % row * 4;
    if (items < THREADS && threadIdx.x >= items)
        return;
    Pack<float, 4> across[4][2];
#pragma unroll
    for (int r = 0; r < 4; r++) {
        Pack<float, 4> p[4];
#pragma unroll
        for (int c = 0; c < 4; c++)
            p[c] = load_pack<4>(products + ((4 * r + c) * SquarePart::squares + square) * SQUARE_COLUMNS + column);
        join_products(p, across[r]);
    }
#pragma unroll
    for (int c = 0; c < 2; c++) {
        const Pack<float, 4> p[4] = {across[0][c], across[1][c], across[2][c], across[3][c]};
        Pack<float, 4> y[2];
        join_products(p, y);
        store_pack(outputs + (square * 4 + c) * SQUARE_COLUMNS + column, y[0]);
        store_pack(outputs + (square * 4 + 2 + c) * SQUARE_COLUMNS + column, y[1]);
    }
}

template <class Product, class Tile, class Cut, class Out>
__device__ void write_squares(int i0, int j0, const SquarePlace &place, const SquareSums &sum, float *shared,
                              const Out &out) {
    constexpr int count = Tile::squares(Product::M);
    constexpr bool all = Tile::is_even && count % SQUARES == 0;
    constexpr int rows = SQUARE_OUTPUTS * SquarePart::squares;
    Outputs<Product, Tile, rows, Out, all> outputs{i0, j0};
#pragma unroll
    for (int number = 0; number < SquarePanel::parts; number++) {
        const SquarePart part{number};
        float *joined = shared + SquarePart::products;
        int *places = (int *)(joined + rows * SQUARE_COLUMNS); // from i0 on; where there is none, beyond the product
        __syncthreads();
        part.lay(place, sum, shared);
        if (threadIdx.x < rows) { // once: found out by all that write, nvcc did so early, while sums hold the registers
            int square = i0 / SQUARE_OUTPUTS + part.square(threadIdx.x / SQUARE_OUTPUTS);
            int output = Cut::output(square, threadIdx.x % SQUARE_OUTPUTS);
            places[threadIdx.x] = all || (square < count && output >= 0) ? output - i0 : Product::M;
        }
        __syncthreads();
        join_squares(shared, joined);
        __syncthreads();
        auto row_of = [=](int row) { return places[row]; };
        outputs.read_and_write(out, row_of, TileSums{joined, SQUARE_COLUMNS});
    }
    outputs.fold(out, shared);
}

/* Outputs of the tile whose first square would be that of output i0, if all had four. */
template <class Product, class Tile, class A, class B, class Gate, class Out>
__device__ void matmul_squares(int i0, int j0, const A &a, const B &b, float *shared, Gate &gate, const Out &out) {
    using Cut = Squares<std::decay_t<decltype(a.stored)>, Tile>;
    constexpr int panels = Cut::channels / SquarePanel::depth;
    static_assert(A::along_k && A::floats && B::floats, "");
    static_assert(Cut::channels % SQUARE_DEPTH == 0 && Product::K == 9 * Cut::channels, "whole panels");
    SquarePlace place;
    SquarePixels<A, Cut> pixels(a, i0 / SQUARE_OUTPUTS, Tile::squares(Product::M));
    SquareTaps<B, Cut, Product::N> taps(b, j0);
    SquareSums sum = {};
    gate();
#pragma unroll
    for (int step = 0; step < 16; step++)
        bring_panel(step, pixels, taps, shared);
#pragma unroll 1
    for (int number = 0; number + 1 < panels; number++) {
        __syncthreads();
        multiply_panel<true>(place, shared + number % 2 * SquarePanel::floats, sum, pixels, taps,
                             shared + (number + 1) % 2 * SquarePanel::floats);
    }
    __syncthreads();
    multiply_panel<false>(place, shared + (panels - 1) % 2 * SquarePanel::floats, sum, pixels, taps, shared);
    write_squares<Product, Tile, Cut>(i0, j0, place, sum, shared, out);
}

#endif
