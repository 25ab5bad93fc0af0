/* Large products of matrices of 16-bit numbers, or of bytes, by two groups of warps in turns (sm_90a): while one group multiplies, the other
 * writes out what it has multiplied before, so that neither the tensor cores nor the memory wait for an epilogue. A block stays for
 * many tiles; a ninth warp lets the hardware copy panels for both groups, one stream of them through all tiles:
 *
 *     copies    | panels of tile 0 | of tile 1 | of tile 2 | of tile 3 |
 *     group 0     | multiplies 0 | writes 0 out | multiplies 2 | ...
 *     group 1                    | multiplies 1 | writes 1 out | ...
 *
 * Of floats of 8 bits, tensor cores keep 14 bits of a sum. Those of each panel are made apart, and a group waits for them and adds them to the
 * others. The other group multiplies meanwhile: each has a stream of panels, and goes its own way from its first turn on, which is when the
 * other group has multiplied one tile.
 *
 * Two blocks, a cluster, work on neighbouring tiles of the same columns: each brings half of the panel of b, for both. */
#ifndef MTC_CUDA_TENSOR_TURNS_CUH
#define MTC_CUDA_TENSOR_TURNS_CUH

#include "cuda/bulk.cuh"
#include "cuda/cluster.cuh"
#include "cuda/outputs.cuh"
#include "cuda/tensor_group.cuh"

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

/* The tiles in the order in which they are worked on: slice by slice, pairs, one below the other, in bands of BAND pairs, a
 * band column by column: what all blocks work on at a time is about square, and its operands stay in L2. */
template <class Product, class Tile> struct TurnOrder {
    static constexpr int BAND = 8, down = Product::rows / Tile::m / TURN_BLOCKS;
    static constexpr int across = divide_up(Product::N, Tile::n), pairs = Product::slices * down * across;
    static_assert(Product::rows % (Tile::m * TURN_BLOCKS) == 0, "pairs of whole tiles");

    int slice, line, j0; // of the calling block's tile: its first row in its slice, and its first column

    __device__ explicit TurnOrder(int pair) : slice(pair / (down * across)) {
        int own = pair % (down * across), band = own / (BAND * across), place = own % (BAND * across);
        int height = min(BAND, down - band * BAND);
        line = ((band * BAND + place % height) * TURN_BLOCKS + block_of_cluster()) * Tile::m;
        j0 = place / height * Tile::n;
    }
    __device__ int i0() const {
        return slice * Product::rows + line;
    }
};

/* Where a stream of panels stands, `first` being the first of its stages. */
template <class Tile> struct TurnPlace {
    static constexpr int stages = Tile::stages / Tile::streams;
    int first, stage, phase = 0;

    __device__ explicit TurnPlace(int stream) : first(stream * stages), stage(first) {
    }
    __device__ void advance() {
        if (++stage == first + stages)
            stage = first, phase ^= 1;
    }
    __device__ void advance(int panels) {
        int end = stage - first + panels;
        stage = first + end % stages;
        phase = (phase + end / stages) % 2;
    }
};

/* The only busy thread of a warp: all panels of a stream, of the tiles from `pair` on. */
template <class Product, class Tile, bool A_ALONG_K, bool B_ALONG_K>
__device__ void fetch_in_turns(int pair, int stride, int stream, const OperandMaps &maps, unsigned shared) {
    using Memory = TurnMemory<Tile>;
    using Order = TurnOrder<Product, Tile>;
    TurnPlace<Tile> place(stream);
    acquire_map(&maps.a);
    acquire_map(&maps.b);
    const int half = block_of_cluster() * BOX;
    for (; pair < Order::pairs; pair += stride) {
        Order order(pair);
        const int first = order.slice * Product::K;
        for (int k = first; k < first + Product::K; k += Tile::k, place.advance()) {
            unsigned full = shared + Memory::full + place.stage * 8, a = shared + place.stage * Memory::panel;
            await_phase(shared + Memory::empty + place.stage * 8, place.phase ^ 1);
            expect_bytes(full, Memory::panel);
            for (int line = 0; line < Tile::m; line += BOX)
                copy_box(a + line * PANEL_ROW, &maps.a, A_ALONG_K ? k : order.line + line,
                         A_ALONG_K ? order.line + line : k, full);
            copy_box_to_both(a + Memory::panel_a + half * PANEL_ROW, &maps.b, B_ALONG_K ? k : order.j0 + half,
                             B_ALONG_K ? order.j0 + half : k, full);
        }
    }
}

/* A group's tile: its sums, and what becomes of them. */
template <class Product, class Tile, bool A_ALONG_K, bool B_ALONG_K, class Out> class TurnSums {
    using T = typename Tile::Element;
    using Memory = TurnMemory<Tile>;
    static constexpr int width = width_of<Out>, folds = folds_of<Out>, row = Memory::columns / width;
    static constexpr int rows = LANES / row, halves = Tile::m / GROUP_LINES, parts = 2 * halves;
    static_assert(width > 1 && Product::N % width == 0, "a warp has whole rows, and no vector reaches over an edge");
    using Sum = Pack<float, width>;

public:
    using Ahead = decltype(load_rows(std::declval<Out>(), 0, 0));
    using Columns = decltype(load_columns(std::declval<Out>(), 0));

private:
    /* Of the passes that a part takes, as many as registers hold twice what is read ahead for. */
    static constexpr int all_passes = Memory::rows / rows, MOST_AHEAD = 96;

    static __host__ __device__ constexpr int passes_ahead(int passes) {
        return passes == 1 || passes * (int)sizeof(Ahead) <= MOST_AHEAD ? passes : passes_ahead(passes / 2);
    }

public:
    static constexpr int passes = passes_ahead(all_passes);

private:
    static constexpr int steps = all_passes / passes; // that a part is written in
    static constexpr int kept = width * row / LANES;  // totals of columns that each lane keeps
    static constexpr bool apart = is_float8<T>;       // sums of a panel are made so
    SumOf<T> sum[halves][Tile::n / 2] = {}, of_panel[apart ? Tile::n / 2 : 1];
    int last = 0; // the stage of the panel that is still being multiplied

    static __device__ constexpr int step_bytes(bool along_k) {
        return along_k ? GROUP_STEP : GROUP_STEP / (int)sizeof(T) * PANEL_ROW;
    }
    static __device__ int lane() {
        return threadIdx.x % LANES;
    }
    /* The calling thread's first row, and its column, in step `step`. */
    static __device__ int row_of(int i0, int step) {
        int part = step / steps;
        return i0 + part % halves * GROUP_LINES + warp() * Memory::rows + lane() / row + step % steps * passes * rows;
    }
    static __device__ int column_of(int j0, int step) {
        return j0 + step / (steps * halves) * Memory::columns + lane() % row * width;
    }
    static __device__ bool exists(int j) {
        return Product::N % Tile::n == 0 || j < Product::N;
    }
    static __device__ int warp() {
        return threadIdx.x % GROUP_THREADS / LANES;
    }
    /* By all warps of the group: both blocks may bring a new panel. */
    static __device__ void release(unsigned shared, int stage) {
        if (lane() < TURN_BLOCKS)
            arrive_in(lane(), shared + Memory::empty + stage * 8);
    }
    __device__ void multiply_panel(unsigned a) {
        uint64_t x = panel_descriptor(a, A_ALONG_K), y = panel_descriptor(a + Memory::panel_a, B_ALONG_K);
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
        for (int step = 0; step < PANEL_ROW / GROUP_STEP; step++)
#pragma unroll
            for (int half = 0; half < halves; half++)
                multiply_group<T, Tile::n, A_ALONG_K, B_ALONG_K>(
                    x + (half * GROUP_LINES * PANEL_ROW + step * step_bytes(A_ALONG_K)) / 16,
                    y + step * step_bytes(B_ALONG_K) / 16, sum[half]);
        asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    }
    /* A panel's sums of 64 lines, when they are there. */
    __device__ void multiply_apart(uint64_t x, uint64_t y) {
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
        multiply_group<T, Tile::n, true, true, false>(x, y, of_panel);
#pragma unroll
        for (int step = 1; step < PANEL_ROW / GROUP_STEP; step++)
            multiply_group<T, Tile::n, true, true>(x + step * GROUP_STEP / 16, y + step * GROUP_STEP / 16, of_panel);
        asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
        asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    }
    __device__ void add_panel(unsigned shared, int stage) {
        const unsigned a = shared + stage * Memory::panel;
        const uint64_t x = panel_descriptor(a, true), y = panel_descriptor(a + Memory::panel_a, true);
#pragma unroll
        for (int half = 0; half < halves; half++) {
            multiply_apart(x + half * GROUP_LINES * PANEL_ROW / 16, y);
            if (half == halves - 1)
                release(shared, stage);
#pragma unroll
            for (int e = 0; e < Tile::n / 2; e++)
                sum[half][e] += of_panel[e];
        }
    }
    static __device__ float *own_sums(char *shared) {
        return (float *)(shared + Memory::sums + threadIdx.x / LANES * Memory::warp_sums);
    }
    /* Where a warp's sums lie: eight neighbours change places with others, so that rows meet different banks, and the fours of every second
     * LANES columns with each other: lanes that take eight read a four at a time, of which a row's then meet different banks too. */
    static constexpr int four = width < 4 ? width : 4;
    static __device__ int place_of(int row, int column) {
        return row * Memory::columns + (column ^ row % 4 * 8 ^ column / LANES % 2 * 4);
    }
    static __device__ Sum load_sums(const float *sums, int row, int column) {
        Sum pack;
#pragma unroll
        for (int v = 0; v < width; v += four)
            *(Pack<float, four> *)(pack.value + v) = load_pack<four>(sums + place_of(row, column + v));
        return pack;
    }
    /* Part `part`, half of the columns of 16 rows, to the warp's shared memory. */
    __device__ void lay(int part, float *sums) const {
#pragma unroll
        for (int p = 0; p < parts; p++)
            if (p == part)
#pragma unroll
                for (int e = 0; e < Tile::n / 4; e += 2) {
                    const SumOf<T> *two = &sum[p % halves][p / halves * (Tile::n / 4) + e];
                    int place = place_of(lane() / 4 + e / 2 % 2 * 8, lane() % 4 * 2 + e / 4 * 8);
                    *(float2 *)(sums + place) = make_float2((float)two[0], (float)two[1]);
                }
    }
    static __device__ void write_step(const Out &out, int i, int j, int step, const float *sums, const Columns &columns,
                                      const Ahead (&ahead)[passes], Sum (&rest)[folds + 1]) {
#pragma unroll
        for (int pass = 0; pass < passes; pass++) {
            int line = lane() / row + (step % steps * passes + pass) * rows;
            Sum pack = load_sums(sums, line, lane() % row * width);
            if (!exists(j))
                continue;
            const auto both = both_ahead(columns, ahead[pass]);
            if constexpr (folds > 0) {
                Sum term[folds];
                store_sum(out, both, i + pass * rows, j, pack, term);
#pragma unroll
                for (int f = 0; f < folds; f++)
#pragma unroll
                    for (int v = 0; v < width; v++)
                        rest[f][v] += term[f][v];
            } else {
                store_sum(out, both, i + pass * rows, j, pack);
            }
        }
    }
    /* When the rows of half of the columns are written: the lanes' totals become those of the warp, and lanes that have the same columns
     * keep some each. Registers have no index, so that both halves are asked for. */
    static __device__ void keep_totals(float (&total)[2][folds + 1][kept], Sum (&rest)[folds + 1], int side) {
#pragma unroll
        for (int f = 0; f < folds; f++)
#pragma unroll
            for (int v = 0; v < width; v++) {
                float value = rest[f][v];
#pragma unroll
                for (int distance = row; distance < LANES; distance *= 2)
                    value += __shfl_xor_sync(~0u, value, distance);
                bool keeps = lane() / row == v / kept;
                if (keeps && side == 0)
                    total[0][f][v % kept] = value;
                if (keeps && side == 1)
                    total[1][f][v % kept] = value;
                rest[f][v] = 0;
            }
    }
    /* The threads' totals of all rows of the tile become those of columns. */
    static __device__ void fold(const Out &out, int i0, int j0, const float (&total)[2][folds + 1][kept],
                                char *shared) {
        constexpr int of_a_warp = Memory::rows * Memory::columns;
        float *own = own_sums(shared);
#pragma unroll
        for (int side = 0; side < 2; side++)
#pragma unroll
            for (int f = 0; f < folds; f++)
#pragma unroll
                for (int v = 0; v < kept; v++)
                    own[f * Tile::n + side * Memory::columns + lane() % row * width + lane() / row * kept + v] =
                        total[side][f][v];
        sync_group();
        float totals[folds + 1];
#pragma unroll
        for (int f = 0; f < folds; f++)
            totals[f] = sum_strided<4, of_a_warp>(own - warp() * of_a_warp + f * Tile::n + threadIdx.x % Tile::n);
        if (j0 + (int)threadIdx.x % Tile::n < Product::N)
            out.store(i0 / Tile::m, j0 + threadIdx.x % Tile::n, (const float(&)[folds])totals);
        sync_group();
    }
    static __device__ void sync_group() {
        asm volatile("bar.sync %0, %1;" ::"r"(1 + (int)threadIdx.x / GROUP_THREADS), "n"(GROUP_THREADS) : "memory");
    }

public:
    template <class Place> __device__ void multiply(unsigned shared, Place &place) {
        int panel = 0;
#pragma unroll 1
        do { // at least once, as in tensor.cuh
            await_phase(shared + Memory::full + place.stage * 8, place.phase);
            if constexpr (apart) {
                add_panel(shared, place.stage);
            } else {
                multiply_panel(shared + place.stage * Memory::panel);
                asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
                if (panel > 0)
                    release(shared, last);
                last = place.stage;
            }
            place.advance();
        } while (++panel < divide_up(Product::K, Tile::k));
    }
    __device__ void finish(unsigned shared) {
        if constexpr (!apart) {
            asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
            release(shared, last);
        }
    }
    /* What `out` reads for step `step` is read ahead, that of the first step while panels are still being multiplied. */
    __device__ void read_ahead(const Out &out, int i0, int j0, int step, Ahead (&ahead)[passes]) const {
        const int i = row_of(i0, step), j = column_of(j0, step);
#pragma unroll
        for (int pass = 0; pass < passes; pass++)
            if (exists(j))
                ahead[pass] = load_rows(out, i + pass * rows, j);
    }
    __device__ void write(const Out &out, int i0, int j0, char *shared, Ahead (&ahead)[passes]) const {
        constexpr int side_steps = steps * halves, all_steps = steps * parts;
        float total[2][folds + 1][kept] = {};
        Sum rest[folds + 1] = {};
        Columns columns;
#pragma unroll 1
        for (int step = 0; step < all_steps; step++) {
            const int j = column_of(j0, step);
            Ahead next[passes];
            if (step % side_steps == 0 && exists(j))
                columns = load_columns(out, j);
            if (step + 1 < all_steps)
                read_ahead(out, i0, j0, step + 1, next);
            if (step % steps == 0) {
                __syncwarp();
                lay(step / steps, own_sums(shared));
                __syncwarp();
            }
            write_step(out, row_of(i0, step), j, step, own_sums(shared), columns, ahead, rest);
#pragma unroll
            for (int pass = 0; pass < passes; pass++)
                ahead[pass] = next[pass];
            if (step % side_steps == side_steps - 1)
                keep_totals(total, rest, step / side_steps);
        }
        __syncwarp();
        if constexpr (folds > 0)
            fold(out, i0, j0, total, shared);
    }
};

/* A group multiplies when it is its turn: a barrier of panels tells two phases from each other, but not three. */
static inline __device__ void await_turn(int group) {
    asm volatile("bar.sync %0, %1;" ::"r"(3 + group), "n"(THREADS) : "memory");
}
static inline __device__ void give_turn(int group) {
    asm volatile("bar.arrive %0, %1;" ::"r"(3 + group), "n"(THREADS) : "memory");
}

template <class Product, class Tile, bool A_ALONG_K, bool B_ALONG_K, class Out>
__device__ void multiply_in_turns(int pair, int stride, char *shared, const Out &out) {
    using Order = TurnOrder<Product, Tile>;
    using Sums = TurnSums<Product, Tile, A_ALONG_K, B_ALONG_K, Out>;
    const int group = __shfl_sync(~0u, threadIdx.x / GROUP_THREADS, 0);
    constexpr bool together = Tile::streams == 1; // both groups take from one stream
    TurnPlace<Tile> place(together ? 0 : group);
    for (int turn = 0; pair < Order::pairs; pair += stride, turn++)
        if (turn % 2 == group) {
            Order order(pair);
            Sums sums;
            if (turn > 0 && (together || turn == 1))
                await_turn(group);
            sums.multiply(shared_address(shared), place);
            if (pair + stride < Order::pairs && (together || turn == 0))
                give_turn(1 - group);
            typename Sums::Ahead ahead[Sums::passes];
            sums.read_ahead(out, order.i0(), order.j0, 0, ahead);
            sums.finish(shared_address(shared));
            sums.write(out, order.i0(), order.j0, shared, ahead);
        } else if (together) {
            place.advance(divide_up(Product::K, Tile::k));
        }
}

template <class Tile> __device__ void make_barriers(unsigned shared) {
    using Memory = TurnMemory<Tile>;
    for (int stage = 0; stage < Tile::stages; stage++) {
        make_barrier(shared + Memory::full + stage * 8, 1);
        make_barrier(shared + Memory::empty + stage * 8, TURN_BLOCKS * GROUP_THREADS / LANES);
    }
    show_barriers();
}

/* By a warp: the maps of both operands; `own` is shared memory for them. */
template <class Product, class Tile, class A, class B>
__device__ void describe_operands(OperandMaps &maps, OperandMaps &own, const A &a, const B &b) {
    constexpr int M = Product::rows, N = Product::N, K = Product::slices * Product::K;
    static_assert(Product::slices == 1 || (Product::K % Tile::k == 0 && !A::along_k && !B::along_k),
                  "panels of one slice, k first");
    if (threadIdx.x % LANES == 0) {
        describe_matrix(&own.a, a.any(), A::along_k ? K : M, A::along_k ? M : K, A::pitch());
        describe_matrix(&own.b, b.any(), B::along_k ? K : N, B::along_k ? N : K, B::pitch());
    }
    publish_map(&maps.a, &own.a);
    publish_map(&maps.b, &own.b);
}

/* By the TURN_THREADS threads of a block that has its multiprocessor alone: tile `tile` and every gridDim.x-th after it.
 * a and b are Lines of Matrix of the tile's elements; tiles 2 p and 2 p + 1 go to the blocks of a cluster. */
template <class Product, class Tile, class A, class B, class Gate, class Out>
__device__ void matmul_in_turns(int tile, OperandMaps &maps, const A &a, const B &b, char *shared, Gate &gate,
                                const Out &out) {
    static_assert(Tile::m == 2 * GROUP_LINES && Tile::n == TURN_BLOCKS * BOX, "a box of b for each block");
    static_assert(Tile::k * sizeof(typename Tile::Element) == PANEL_ROW, "a panel is a box deep");
    static_assert(sizeof(typename Tile::Element) == 2 || (A::along_k && B::along_k),
                  "no instruction turns bytes round");
    const int pair = tile / TURN_BLOCKS, stride = gridDim.x / TURN_BLOCKS;
    const unsigned base = shared_address(shared);
    if (tile < 0) {
        if (tile == MAPS_ONLY && threadIdx.x < LANES)
            describe_operands<Product, Tile>(maps, *(OperandMaps *)shared, a, b);
        return;
    }
    if (threadIdx.x == 0)
        make_barriers<Tile>(base);
    __syncwarp();
    arrive_at_cluster();
    await_cluster();
    gate();
    if (threadIdx.x < THREADS) { // the registers that copying leaves over go to those who hold sums
        asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
        multiply_in_turns<Product, Tile, A::along_k, B::along_k>(pair, stride, shared, out);
    } else {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        const int stream = Tile::streams > 1 ? threadIdx.x / LANES - WARPS : 0;
        if (stream < Tile::streams && threadIdx.x == THREADS + stream * LANES)
            fetch_in_turns<Product, Tile, A::along_k, B::along_k>(pair + stream * stride, Tile::streams * stride,
                                                                  stream, maps, base);
    }
    __syncwarp();
    arrive_at_cluster(); // what the other block copies, or arrives at, must be here until then
    await_cluster();
}

#endif
#endif
