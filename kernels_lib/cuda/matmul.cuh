/* Matrix product, strict fp32, any size, deterministic:
 *
 *     out(i, j) = sum over k of a(i, k) * b(k, j)             i < M, j < N, k < K
 *
 *     matmul<Product<M, N, K>, Tile<m, n, k, tm, tn>>(tile, a, b, shared, out [, side])
 *
 * One call by the THREADS threads of a block computes tile `tile` of product_tiles<Product, Tile>(), m x n outputs,
 * counted along the rows. a is M x K, b is K x N; see operand.cuh. `out` is either
 *
 *     [&](int i, int j, float sum) { ... }                    called once per output, by neighbouring threads for
 *                                                             neighbouring j
 *     preloaded([&](int i, int j) { return Old{...}; },       the same, and what it reads from memory is read ahead,
 *               [&](int i, int j, float sum, Old old) {...})  for many outputs at once; preloaded_early: before the gate
 *
 * `side`, sum_of_a(out) or sum_of_b(out), also gives the sum over k of a(i, k), or of b(k, j), with an `out` of (i, sum)
 * or (j, sum). `shared` has product_shared<Product, Tile>() bytes, aligned to 16.
 *
 * A thread holds tm x tn outputs. When m x n outputs leave threads over, they form SLICES of the block, and each slice
 * takes every SLICES-th step of k; the slices are added in order. There are two ways to feed them:
 *
 *     staged   Panels of m (or n) lines by k are fetched to registers while the previous pair is multiplied, then laid
 *              into shared memory with neighbouring lines together: two pairs of buffers, one barrier a panel.
 *              A panel that spans all of K has no loop: every load is issued up front.
 *     direct   Few outputs and long k: a slice is at least a warp, both operands lie along k. Numbers go from memory to
 *              the registers of the one thread that uses them; lanes are folded by shuffles, warps in shared memory. */
#ifndef MTC_CUDA_MATMUL_CUH
#define MTC_CUDA_MATMUL_CUH

#include <stdint.h>
#include <type_traits>
#include "cuda/operand.cuh"
#include "cuda/team.cuh"

template <int M_, int N_, int K_> struct Product {
    static constexpr int M = M_, N = N_, K = K_;
};

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
template <int m_, int n_, int k_, int tm_, int tn_> struct Tile {
    static constexpr int m = m_, n = n_, k = k_, tm = tm_, tn = tn_;
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

template <class Product, class Tile> __host__ __device__ constexpr int product_shared() {
    constexpr int buffers = Product::K <= Tile::k ? 1 : 2;
    constexpr int panels = buffers * (Tile::m + Tile::n) * Tile::k, slices = Tile::slices * Tile::part_rows * Tile::n;
    constexpr int most = panels > slices ? panels : slices;
    return (most > THREADS ? most : THREADS) * (int)sizeof(float);
}

/* ---- what becomes of a sum ---- */

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

/* When a product waits for the work that its operands come from: called once, after everything that is read ahead and
 * the data set have been asked for. */
struct NoGate {
    __device__ void operator()() const {
    }
};

struct Nothing {};
template <class Store, class... Index> __device__ Nothing load_old(const Store &, Index...) {
    return {};
}
template <bool EARLY, class Load, class Store, class... Index>
__device__ auto load_old(const Preloaded<EARLY, Load, Store> &out, Index... index) {
    return out.load(index...);
}
template <class Store, class... Index>
__device__ void store_sum(const Store &store, Nothing, float sum, Index... index) {
    store(index..., sum);
}
template <bool EARLY, class Load, class Store, class Old, class... Index>
__device__ void store_sum(const Preloaded<EARLY, Load, Store> &out, const Old &old, float sum, Index... index) {
    out.store(index..., sum, old);
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

/* ---- staged: panels ---- */

/* A panel: WIDTH lines of an operand by DEPTH steps of k, on its way from memory to shared memory, where it lies as
 * [k][line]. An operand that lies along k is transposed on the way: its lanes then store to different k, and the lines
 * of each group of k are rotated (exclusive or) so that the stores meet different banks. */
template <class Lines, int COUNT, int K, int WIDTH, int DEPTH> struct Panel {
    static constexpr bool four = Lines::aligned && (Lines::along_k ? K % 4 == 0 && DEPTH % 4 == 0
                                                                   : COUNT % 4 == 0 && WIDTH % 4 == 0);
    static constexpr int width = four ? 4 : 1, vectors = WIDTH * DEPTH / width, loads = divide_up(vectors, THREADS);
    static constexpr int groups = DEPTH / width < 8 ? floor_power(DEPTH / width) : 8;
    static constexpr bool rotated = Lines::along_k && WIDTH % LANES == 0;
    using Raw = std::conditional_t<four, typename Lines::Four, typename Lines::One>;
    Raw raw[loads];

    static __device__ int rotation(int k) {
        return rotated ? k / width % groups * (LANES / groups) : 0;
    }
    static __device__ int line_of(int e) {
        return Lines::along_k ? e / (DEPTH / width) : e % (WIDTH / width) * width;
    }
    static __device__ int k_of(int e) {
        return Lines::along_k ? e % (DEPTH / width) * width : e / (WIDTH / width);
    }
    static __device__ bool inside(int e, int line0, int k0) {
        return (vectors % THREADS == 0 || e < vectors) && (COUNT % WIDTH == 0 || line0 + line_of(e) < COUNT) &&
               (K % DEPTH == 0 || k0 + k_of(e) < K);
    }

    __device__ void fetch(const Lines &lines, int line0, int k0) {
        const typename Lines::One *from[loads];
#pragma unroll
        for (int q = 0, e = threadIdx.x; q < loads; q++, e += THREADS)
            if (inside(e, line0, k0))
                from[q] = lines.at(line0 + line_of(e), k0 + k_of(e));
#pragma unroll
        for (int q = 0, e = threadIdx.x; q < loads; q++, e += THREADS)
            if (inside(e, line0, k0))
                raw[q] = *(const Raw *)from[q];
    }
    __device__ void lay(const Lines &lines, int line0, int k0, float *shared) const {
#pragma unroll
        for (int q = 0; q < loads; q++) {
            int e = threadIdx.x + q * THREADS, line = line_of(e), k = k_of(e);
            if (vectors % THREADS != 0 && e >= vectors)
                continue;
            bool valid = inside(e, line0, k0);
            if constexpr (!four)
                shared[k * WIDTH + (line ^ rotation(k))] = valid ? lines.value(raw[q]) : 0;
            else {
                float4 v = valid ? lines.value(raw[q]) : make_float4(0, 0, 0, 0);
                if constexpr (!Lines::along_k)
                    *(float4 *)(shared + k * WIDTH + line) = v;
                else {
                    float *column = shared + k * WIDTH + (line ^ rotation(k));
                    column[0] = v.x;
                    column[WIDTH] = v.y;
                    column[2 * WIDTH] = v.z;
                    column[3 * WIDTH] = v.w;
                }
            }
        }
    }
};

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
template <int COUNT, int RUN, int STEP> __device__ void load_runs(const float *line, int first, int rotation, float *v) {
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

/* sum += panel of a times panel of b, the calling thread's outputs and steps of k. */
template <class Tile, class PanelA, class PanelB>
__device__ void multiply(const Place<Tile> &place, const float *a, const float *b, float (&sum)[Tile::tm][Tile::tn]) {
#pragma unroll 16
    for (int step = 0; step < Tile::k / Tile::slices; step++) {
        int k = step * Tile::slices + place.slice;
        alignas(16) float x[Tile::tm], y[Tile::tn];
        load_runs<Tile::tm, Tile::run_m, Tile::lanes_m * Tile::run_m>(a + k * Tile::m, place.row,
                                                                      PanelA::rotation(k), x);
        load_runs<Tile::tn, Tile::run_n, Tile::lanes_n * Tile::run_n>(b + k * Tile::n, place.column,
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
        sum += panel[k * WIDTH + (line ^ Panel::rotation(k))];
    return sum;
}

/* Adds what the threads of a line found, and hands it to `out`, once a line. */
template <int WIDTH, int COUNT, class Out, class Old>
__device__ void store_line(int line0, float sum, float *shared, const Out &out, const Old &old) {
    int line = threadIdx.x;
    __syncthreads();
    shared[threadIdx.x] = sum;
    __syncthreads();
    if (line >= WIDTH || line0 + line >= COUNT)
        return;
    for (int other = line + WIDTH; other < THREADS; other += WIDTH)
        sum += shared[other];
    store_sum(out, old, sum, line0 + line);
}

/* ---- the outputs of a tile, dealt to threads so that neighbours have neighbouring j ---- */

/* COUNT outputs, rows of n, handed to `out` in groups: first all that `out` reads ahead for a group, then its stores.
 * row_of(r) is the place in the tile of row r, total(e) the sum of output e. */
template <class Product, class Tile, int COUNT, class Out> struct Outputs {
    static constexpr int each = divide_up(COUNT, THREADS), group = each <= 8 ? each : each % 4 == 0 ? 4 : 1;
    using Old = decltype(load_old(std::declval<Out>(), 0, 0));
    int i0, j0;
    Old old[group];

    template <class RowOf, class Visit> __device__ void visit(int first, RowOf row_of, Visit visit) {
#pragma unroll
        for (int q = 0; q < group; q++) {
            int e = threadIdx.x + (first + q) * THREADS, i = i0 + row_of(e / Tile::n), j = j0 + e % Tile::n;
            if ((COUNT % THREADS == 0 || e < COUNT) && (Product::M % Tile::m == 0 || i < Product::M) &&
                (Product::N % Tile::n == 0 || j < Product::N))
                visit(old[q], e, i, j);
        }
    }
    template <class RowOf> __device__ void read(const Out &out, int first, RowOf row_of) {
        visit(first, row_of, [&](Old &ahead, int, int i, int j) { ahead = load_old(out, i, j); });
    }
    template <class RowOf, class Total>
    __device__ void write(const Out &out, int first, RowOf row_of, Total total) {
        visit(first, row_of, [&](Old &ahead, int e, int i, int j) { store_sum(out, ahead, total(e), i, j); });
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
    int row = place.row / (Tile::lanes_m * Tile::tm) * Tile::lanes_m * Tile::run_m +
              place.row % (Tile::lanes_m * Tile::tm);
    float *slice = shared + (place.slice * Tile::part_rows + row) * Tile::n;
#pragma unroll
    for (int i = 0; i < Tile::run_m; i++)
#pragma unroll
        for (int j = 0; j < Tile::tn; j++)
            slice[i * Tile::n + place.column + j / Tile::run_n * Tile::lanes_n * Tile::run_n + j % Tile::run_n] =
                sum[part * Tile::run_m + i][j];
}

template <class Product, class Tile, class A, class B, class Out, class Side, class Gate>
__device__ void matmul_staged(int i0, int j0, const A &a, const B &b, float *shared, const Out &out, const Side &side,
                              Gate &gate) {
    constexpr int chunks = divide_up(Product::K, Tile::k), buffer = (Tile::m + Tile::n) * Tile::k;
    constexpr int count = Tile::part_rows * Tile::n, run = Tile::lanes_m * Tile::run_m;
    using PanelA = Panel<A, Product::M, Product::K, Tile::m, Tile::k>;
    using PanelB = Panel<B, Product::N, Product::K, Tile::n, Tile::k>;
    using TileOutputs = Outputs<Product, Tile, count, Out>;
    constexpr bool ahead = Tile::parts == 1 && TileOutputs::each == TileOutputs::group;
    constexpr int width = Side::of_a ? Tile::m : Tile::n, lines = Side::of_a ? Product::M : Product::N;
    static_assert(Tile::k % Tile::slices == 0, "slices must share a panel");

    TileOutputs outputs{i0, j0};
    auto row_of = [](int row) { return row; };
    int line0 = Side::of_a ? i0 : j0;
    bool summing = (Side::of_a && j0 == 0) || (Side::of_b && i0 == 0);
    decltype(load_old(side.out, 0)) old_line;
    auto read_ahead = [&](auto early) {
        if constexpr (ahead && is_early<Out> == decltype(early)::value)
            outputs.read(out, 0, row_of);
        if constexpr (is_early<decltype(side.out)> == decltype(early)::value)
            if (summing && threadIdx.x < width && line0 + threadIdx.x < lines)
                old_line = load_old(side.out, line0 + threadIdx.x);
    };

    Place<Tile> place;
    PanelA panel_a;
    PanelB panel_b;
    float sum[Tile::tm][Tile::tn] = {}, line_sum = 0;
    read_ahead(std::true_type());
    if constexpr (A::data_set)
        panel_a.fetch(a, i0, 0);
    if constexpr (B::data_set)
        panel_b.fetch(b, j0, 0);
    gate();
    if constexpr (!A::data_set)
        panel_a.fetch(a, i0, 0);
    if constexpr (!B::data_set)
        panel_b.fetch(b, j0, 0);
    read_ahead(std::false_type());
    for (int chunk = 0; chunk < chunks; chunk++) {
        float *laid_a = shared + chunk % 2 * buffer, *laid_b = laid_a + Tile::m * Tile::k;
        panel_a.lay(a, i0, chunk * Tile::k, laid_a);
        panel_b.lay(b, j0, chunk * Tile::k, laid_b);
        __syncthreads();
        if (chunk + 1 < chunks) {
            panel_a.fetch(a, i0, (chunk + 1) * Tile::k);
            panel_b.fetch(b, j0, (chunk + 1) * Tile::k);
        }
        multiply<Tile, PanelA, PanelB>(place, laid_a, laid_b, sum);
        if constexpr (Side::of_a || Side::of_b)
            if (summing)
                line_sum = sum_lines<std::conditional_t<Side::of_a, PanelA, PanelB>, width, Tile::k>(
                    Side::of_a ? laid_a : laid_b, line_sum);
    }

#pragma unroll
    for (int part = 0; part < Tile::parts; part++) {
        auto row_of = [=](int row) { return row / run * run * Tile::parts + part * run + row % run; };
        auto total = [=](int e) {
            float total = shared[e];
            for (int slice = 1; slice < Tile::slices; slice++)
                total += shared[slice * count + e];
            return total;
        };
        __syncthreads();
        lay_part(place, part, sum, shared);
        __syncthreads();
        if constexpr (ahead)
            outputs.write(out, 0, row_of, total);
        else
            outputs.read_and_write(out, row_of, total);
    }
    if constexpr (Side::of_a || Side::of_b)
        if (summing)
            store_line<width, lines>(line0, line_sum, shared, side.out, old_line);
}

/* ---- direct ---- */

/* Folds v[0 .. COUNT) over the lanes of a warp. Each lane ends with the totals of COUNT / LANES elements, from
 * lane * COUNT / LANES on; of fewer than LANES elements, each is with LANES / COUNT neighbouring lanes. At every
 * exchange a lane gives half of what it holds and keeps the other half. */
template <int COUNT> __device__ void fold_lanes(float (&v)[COUNT], int lane) {
#pragma unroll
    for (int distance = LANES / 2, held = COUNT; distance; distance /= 2) {
        if (held == 1) {
            v[0] += __shfl_xor_sync(~0u, v[0], distance);
            continue;
        }
        held /= 2;
#pragma unroll
        for (int e = 0; e < COUNT / 2; e++) {
            if (e >= held)
                break;
            bool upper = lane & distance;
            float kept = upper ? v[e + held] : v[e], given = upper ? v[e] : v[e + held];
            v[e] = kept + __shfl_xor_sync(~0u, given, distance);
        }
    }
}

/* One line's numbers of one step of k, as floats. */
template <class Lines, class Raw> __device__ void unpack(const Lines &lines, Raw raw, float (&v)[4]) {
    float4 four = lines.value(raw);
    v[0] = four.x, v[1] = four.y, v[2] = four.z, v[3] = four.w;
}
template <class Lines, class Raw> __device__ void unpack(const Lines &lines, Raw raw, float (&v)[1]) {
    v[0] = lines.value(raw);
}

/* COUNT lines of an operand, of TOTAL cut into tiles of TILE: where they lie, and their numbers at STEPS steps of k. */
template <class Lines, int COUNT, int TOTAL, int TILE, int WIDTH, int STEPS> struct Strip {
    using Raw = std::conditional_t<WIDTH == 4, typename Lines::Four, typename Lines::One>;
    const typename Lines::One *from[COUNT];
    Raw raw[STEPS][COUNT];

    __device__ Strip(const Lines &lines, int line0) {
#pragma unroll
        for (int i = 0; i < COUNT; i++)
            from[i] = lines.at(TOTAL % TILE == 0 || line0 + i < TOTAL ? line0 + i : 0, 0);
    }
    __device__ void fetch(int step, int k) {
#pragma unroll
        for (int i = 0; i < COUNT; i++)
            raw[step][i] = *(const Raw *)(from[i] + k);
    }
};

/* sum[i * TN + j] += products of line i of a and line j of b at one fetched step. */
template <int WIDTH, class A, class B, class RawA, class RawB, int TM, int TN>
__device__ void multiply_strips(const A &a, const B &b, const RawA (&raw_a)[TM], const RawB (&raw_b)[TN],
                                float (&sum)[TM * TN]) {
    float y[TN][WIDTH];
#pragma unroll
    for (int j = 0; j < TN; j++)
        unpack(b, raw_b[j], y[j]);
#pragma unroll
    for (int i = 0; i < TM; i++) {
        float x[WIDTH];
        unpack(a, raw_a[i], x);
#pragma unroll
        for (int j = 0; j < TN; j++)
#pragma unroll
            for (int k = 0; k < WIDTH; k++)
                sum[i * TN + j] = fmaf(x[k], y[j][k], sum[i * TN + j]);
    }
}

template <class Product, class Tile, class A, class B, class Out, class Gate>
__device__ void matmul_direct(int i0, int j0, const A &a, const B &b, float *shared, const Out &out, Gate &gate) {
    constexpr int width = A::aligned && B::aligned && Product::K % 4 == 0 ? 4 : 1, stride = width * Tile::slices;
    constexpr int steps = divide_up(Product::K, stride);
    constexpr int bytes = width * (Tile::tm * sizeof(typename A::One) + Tile::tn * sizeof(typename B::One));
    constexpr int room = 384 / bytes, held = room < 1 ? 1 : room < steps ? room : steps; // steps fetched at a time
    constexpr int outputs = Tile::tm * Tile::tn, warps = Tile::slices / LANES, each = divide_up(outputs, LANES);
    auto identity = [](int row) { return row; };

    int place = threadIdx.x / Tile::slices, slice = threadIdx.x % Tile::slices, lane = threadIdx.x % LANES;
    Strip<A, Tile::tm, Product::M, Tile::m, width, held> strip_a(a, i0 + place / Tile::across * Tile::tm);
    Strip<B, Tile::tn, Product::N, Tile::n, width, held> strip_b(b, j0 + place % Tile::across * Tile::tn);
    Outputs<Product, Tile, Tile::m * Tile::n, Out> finished{i0, j0};
    if constexpr (is_early<Out>)
        finished.read(out, 0, identity);

    float sum[outputs] = {};
    for (int start = 0; start < steps; start += held) {
        int first = (start * Tile::slices + slice) * width;
        auto fetch = [&](auto &strip) {
#pragma unroll
            for (int q = 0; q < held; q++) {
                int k = first + q * stride;
                strip.fetch(q, Product::K % (stride * held) == 0 || k < Product::K ? k : 0);
            }
        };
        if constexpr (A::data_set)
            fetch(strip_a);
        if constexpr (B::data_set)
            fetch(strip_b);
        if (start == 0)
            gate();
        if constexpr (!A::data_set)
            fetch(strip_a);
        if constexpr (!B::data_set)
            fetch(strip_b);
        if (!is_early<Out> && start == 0)
            finished.read(out, 0, identity);
#pragma unroll
        for (int q = 0; q < held; q++)
            if (Product::K % (stride * held) == 0 || first + q * stride < Product::K)
                multiply_strips<width>(a, b, strip_a.raw[q], strip_b.raw[q], sum);
    }

    fold_lanes(sum, lane);
    constexpr int copies = outputs < LANES ? LANES / outputs : 1; // lanes that hold the same total
    float *partial = shared + threadIdx.x / LANES * outputs;
    if (lane % copies == 0)
#pragma unroll
        for (int e = 0; e < each; e++)
            partial[lane / copies * each + e] = sum[e];
    __syncthreads();
    finished.write(out, 0, identity, [=](int e) {
        int i = e / Tile::n, j = e % Tile::n, place = i / Tile::tm * Tile::across + j / Tile::tn;
        const float *first = shared + place * warps * outputs + i % Tile::tm * Tile::tn + j % Tile::tn;
        float total = first[0];
        for (int warp = 1; warp < warps; warp++)
            total += first[warp * outputs];
        return total;
    });
}

/* ---- the product ---- */

template <class Product, class Tile, class A, class B, class Out, class Side = NoSide, class Gate = NoGate>
__device__ void matmul(int tile, const A &a, const B &b, char *shared, const Out &out, const Side &side = {},
                       Gate &&gate = {}) {
    auto lines_a = lines_of_a(a);
    auto lines_b = lines_of_b(b);
    constexpr int across = divide_up(Product::N, Tile::n);
    constexpr bool direct = Tile::slices >= LANES && lines_a.along_k && lines_b.along_k && !Side::of_a && !Side::of_b;
    int i0 = tile / across * Tile::m, j0 = tile % across * Tile::n;
    if constexpr (direct)
        matmul_direct<Product, Tile>(i0, j0, lines_a, lines_b, (float *)shared, out, gate);
    else
        matmul_staged<Product, Tile>(i0, j0, lines_a, lines_b, (float *)shared, out, side, gate);
}

#endif
