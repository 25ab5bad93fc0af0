/* Attention on tensor cores: numbers of 16 bits, sums in f32; the scores live in registers and never reach memory.
 *
 * A tile owns 128 positions of one head, which lie in shared memory all the time; those that they meet pass by in blocks of
 * LINES rows, the next on its way while one is in use. A warp owns 16 rows:
 *
 *                                      keys that pass by
 *                              0..63     64..127   128..191
 *                            +---------+---------+---------+
 *     warp 0  queries 128..  | 16 x 64 |         | \  hidden
 *     warp 1          144..  |         |         |   \             from there on: a block that no row of
 *      ...                   |         |         |     \            a warp sees is skipped (causal, window)
 *     warp 7          240..  |         |         |       \
 *
 *                       s             p = weights           results
 *     attend            q k'          exp(scale s - max)    out += p v, divided by the sum of p at the end
 *     grad of queries   q k'          exp(scale s - sum)    ds = p (dout v' - dot),   dq += ds k
 *     grad of keys      k q'          exp(scale s - sum)'   ds' = p' (v dout' - dot), dk += ds' q,  dv += p' dout
 *
 * where ' transposes, sum is the logarithm that the forward pass has kept, and dot = dout . out of the query. The gradient
 * computes the weights twice, once for tiles of queries and once for tiles of keys: no tile ever waits for another, or adds to
 * what another has written.
 *
 * All of it is two kinds of product, by warps here and by groups of warps in attention_group.cuh:
 *
 *     dot_rows   sum = own rows . passing rows       both along `size`
 *     mix_rows   sum += weights . passing rows       the weights come straight from the registers of dot_rows: the fragments
 *                                                    that it leaves are those of an operand a, two blocks of 8 for 16 of k
 *
 * The tensor cores get the products of two blocks at once, so that they need not wait for the softmax: the scores of a block,
 * and what the weights of the block before add to the results.
 *
 *     products   s(0)         s(1) out += p(0) v(0)        s(2) out += p(1) v(1)   ...
 *     softmax         p(0)                           p(1)                     p(2) ...
 *
 * A thread's sums[i] of either belong to row lane / 4 + i % 4 / 2 * 8 of its warp, column i / 4 * 8 + lane % 4 * 2 + i % 2. */
#ifndef MTC_CUDA_ATTENTION_TENSOR_CUH
#define MTC_CUDA_ATTENTION_TENSOR_CUH

#include "cuda/attention_ring.cuh"
#include "cuda/attention_shape.cuh"
#include "cuda/tensor_group.cuh"
#include "cuda/tensor_warp.cuh"

constexpr int OWN_ROWS = 128, WARP_ROWS = 16;
constexpr float LOG2_E = 1.44269504088896341f, LN_2 = 0.69314718055994531f;

/* ---- blocks of rows in shared memory ---- */

/* ROWS positions of a head: panels of 64 numbers of each (tensor_panel.cuh). A head whose size is no multiple of 16 ends in
 * a chunk of zeros. */
template <int ROWS, int SIZE> struct HeadBlock {
    static constexpr int steps = divide_up(SIZE, 16), width = steps * 16; // of 16 numbers; numbers of a row
    static constexpr int chunks = steps * STEP_CHUNKS, panel = ROWS * PANEL_ROW;
    static constexpr int bytes = divide_up(chunks, CHUNKS) * panel;

    static __device__ unsigned offset(int row, int chunk) {
        return chunk / CHUNKS * panel + chunk_offset(row, chunk % CHUNKS);
    }
    /* Begins to bring rows `first`, `first` + 1 ..., STRIDE numbers apart; those from COUNT on are zeros. `first` is a multiple
     * of ROWS. */
    template <int COUNT, int STRIDE> static __device__ void fetch(unsigned block, const Narrow *head, int first) {
        if constexpr (even)
            fetch_evenly<COUNT, STRIDE>(block, head, first);
        else
            fetch_pieces<COUNT, STRIDE>(block, head, first);
    }

private:
    static constexpr int pieces = ROWS * chunks, per_chunk = CHUNK / (int)sizeof(Narrow), step = THREADS / chunks;
    static constexpr bool even = SIZE % 16 == 0 && THREADS % chunks == 0 && step % CHUNKS == 0 && ROWS % step == 0;

    /* A thread's pieces lie `step` rows apart, and so evenly on both sides: one address, and offsets known to the compiler. */
    template <int COUNT, int STRIDE>
    static __device__ void fetch_evenly(unsigned block, const Narrow *head, int first) {
        const int row = threadIdx.x / chunks, chunk = threadIdx.x % chunks;
        const unsigned to = block + offset(row, chunk);
        const Narrow *from = head + (int64_t)(first + row) * STRIDE + chunk * per_chunk;
#pragma unroll
        for (int r = 0; r < ROWS; r += step)
            copy_piece<CHUNK>(to + r * PANEL_ROW, from + r * STRIDE, COUNT % ROWS == 0 || first + row + r < COUNT);
    }
    template <int COUNT, int STRIDE>
    static __device__ void fetch_pieces(unsigned block, const Narrow *head, int first) {
#pragma unroll
        for (int q = 0; q < divide_up(pieces, THREADS); q++) {
            int piece = threadIdx.x + q * THREADS, row = piece / chunks, chunk = piece % chunks;
            bool inside = (COUNT % ROWS == 0 || first + row < COUNT) && (chunk + 1) * per_chunk <= SIZE;
            if (pieces % THREADS == 0 || piece < pieces)
                copy_piece<CHUNK>(block + offset(row, chunk),
                                  head + (int64_t)(first + row) * STRIDE + chunk * per_chunk, inside);
        }
    }
};

/* Operand a of dot_rows: the calling warp's rows of a block that stays. HELD: their fragments stay in registers. */
template <int SIZE, bool HELD> class OwnRows {
    using Block = HeadBlock<OWN_ROWS, SIZE>;
    unsigned block;
    unsigned held[HELD ? Block::steps : 1][4];

    __device__ void load(int step, unsigned (&v)[4]) const {
        int first = threadIdx.x / LANES * WARP_ROWS;
        load_lines<Narrow, true, true>(block + step / STEPS * Block::panel, first, step % STEPS, v);
    }

public:
    static constexpr int steps = Block::steps;

    __device__ explicit OwnRows(unsigned block) : block(block) {
        if constexpr (HELD)
#pragma unroll
            for (int step = 0; step < steps; step++)
                load(step, held[step]);
    }
    __device__ void fragment(int step, unsigned (&v)[4]) const {
        if constexpr (HELD)
#pragma unroll
            for (int e = 0; e < 4; e++)
                v[e] = held[step][e];
        else
            load(step, v);
    }
    __device__ unsigned address(int row) const {
        return block + row * PANEL_ROW;
    }
};

/* ---- the two products, by warps ---- */

struct WarpProducts {
    static constexpr int rows = WARP_ROWS; // that decide together what they skip
    template <int SIZE> static constexpr bool holds = SIZE <= 64;
    template <class Shape> static constexpr int lines = 64; // of a block that passes by
    /* Of small heads as few as leave registers for a second block, of large ones as there is shared memory for. */
    template <class Shape> static constexpr int grad_lines = Shape::size <= 16 || Shape::size > 64 ? 32 : 64;
    template <int STAGES> using Ring = StepRing<STAGES>;

    static __device__ int first_row() {
        return threadIdx.x / LANES * WARP_ROWS;
    }
    template <int LINES, int SIZE, bool HELD>
    static __device__ void dot_rows(const OwnRows<SIZE, HELD> &own, unsigned block, float (&sum)[LINES / 2]) {
#pragma unroll
        for (int i = 0; i < LINES / 2; i++)
            sum[i] = 0;
#pragma unroll
        for (int step = 0; step < own.steps; step++) {
            unsigned x[4], y[4];
            own.fragment(step, x);
#pragma unroll
            for (int line = 0; line < LINES; line += 16) {
                unsigned panel = block + step / STEPS * HeadBlock<LINES, SIZE>::panel;
                load_lines<Narrow, true, false>(panel, line, step % STEPS, y);
                multiply_fragments<Narrow>(x, y[0], y[1], (float(&)[4])sum[line / 2]);
                multiply_fragments<Narrow>(x, y[2], y[3], (float(&)[4])sum[line / 2 + 4]);
            }
        }
    }
    template <int SIZE, int STEPS_, int WIDTH>
    static __device__ void mix_rows(const unsigned (&weight)[STEPS_][4], unsigned block, float (&sum)[WIDTH]) {
        constexpr int depth = PANEL_ROW / sizeof(Narrow), width = HeadBlock<1, SIZE>::width;
#pragma unroll
        for (int step = 0; step < STEPS_; step++)
#pragma unroll
            for (int column = 0; column < width; column += 16) {
                unsigned y[4], panel = block + column / depth * HeadBlock<STEPS_ * 16, SIZE>::panel;
                load_lines<Narrow, false, false>(panel, column % depth, step, y);
                multiply_fragments<Narrow>(weight[step], y[0], y[1], (float(&)[4])sum[column / 2]);
                multiply_fragments<Narrow>(weight[step], y[2], y[3], (float(&)[4])sum[column / 2 + 4]);
            }
    }
    /* Until all products but the last PENDING are done, those that gave `settled` among them. */
    template <int PENDING, class... Settled> static __device__ void await(Settled &...settled) {
    }
};

/* ---- scores and weights ---- */

/* Do all of `rows` queries from `query` on see all of `lines` keys from `key` on? */
template <class Shape> __device__ bool all_seen(int query, int rows, int key, int lines) {
    return (Shape::length % lines == 0 || key + lines <= Shape::length) &&
           (!Shape::causal || key + lines - 1 <= query) &&
           (Shape::window == 0 || query + rows - 1 - key < Shape::window);
}
/* Does none of them see any? */
template <class Shape> __device__ bool none_seen(int query, int rows, int key, int lines) {
    return (Shape::causal && key > query + rows - 1) ||
           (Shape::window > 0 && query - (key + lines - 1) >= Shape::window);
}

/* Scores of keys that the query does not see become -infinity. BY_KEYS: own rows, from `own` on, are keys, and queries pass by. */
template <class Shape, bool BY_KEYS, int COUNT> __device__ void hide(float (&score)[COUNT], int own, int passing) {
    int lane = threadIdx.x % LANES, column = passing + lane % 4 * 2;
    int row = own + threadIdx.x / LANES * WARP_ROWS + lane / 4;
#pragma unroll
    for (int i = 0; i < COUNT; i++) {
        int r = row + i % 4 / 2 * 8, c = column + i / 4 * 8 + i % 2, query = BY_KEYS ? c : r, key = BY_KEYS ? r : c;
        if (!Shape::sees(query, key) || key >= Shape::length)
            score[i] = -INFINITY;
    }
}

/* Fragments of operand a, rounded. */
template <int COUNT> __device__ void to_weights(const float (&value)[COUNT], unsigned (&weight)[COUNT / 8][4]) {
#pragma unroll
    for (int i = 0; i < COUNT; i += 2)
        weight[i / 8][i % 8 / 2] = to_narrow_pair(value[i], value[i + 1]);
}

template <int COUNT> __device__ void clear(unsigned (&weight)[COUNT][4]) {
#pragma unroll
    for (int i = 0; i < COUNT * 4; i++)
        weight[i / 4][i % 4] = 0;
}

template <int COUNT> __device__ void scale_rows(float (&sum)[COUNT], const float (&factor)[2]) {
#pragma unroll
    for (int i = 0; i < COUNT; i++)
        sum[i] *= factor[i % 4 / 2];
}

/* The softmax over keys of which ever more become known: weights are relative to the largest score so far, and what has
 * been summed shrinks when that grows. Four neighbouring lanes share a row. */
class RunningSoftmax {
    static constexpr float LEAST_GROWTH = 8; // of an exponent of 2
    float most[2] = {-INFINITY, -INFINITY};  // about the largest raw score of each row
    float sum[4] = {}; // of this thread's weights, two sums a row: an addition waits for the one before

    static __device__ float most_of_row(float x) {
        x = fmaxf(x, __shfl_xor_sync(~0u, x, 1));
        return fmaxf(x, __shfl_xor_sync(~0u, x, 2));
    }
    template <int COUNT> __device__ float most_with(int row, const float (&score)[COUNT]) const {
        float even = most[row], odd = most[row];
#pragma unroll
        for (int i = row * 2; i < COUNT; i += 4) {
            even = fmaxf(even, score[i]);
            odd = fmaxf(odd, score[i + 1]);
        }
        return most_of_row(fmaxf(even, odd));
    }

    /* Nothing seen as yet: all weights are 0. */
    __device__ float shift_of(int row, float unit) const {
        return most[row] == -INFINITY ? 0 : most[row] * unit;
    }
    __device__ void grow(const float (&higher)[2], float unit, float (&factor)[2]) {
#pragma unroll
        for (int r = 0; r < 2; r++) {
            const float before = most[r];
            most[r] = higher[r];
            factor[r] = exp2_approximate(fmaf(before, unit, -shift_of(r, unit)));
            sum[r * 2] *= factor[r];
            sum[r * 2 + 1] *= factor[r];
        }
    }

public:
    /* score = 2^(unit (score - most)). True: `most` has grown, and all sums shrink by `factor`. It grows by no less than
     * LEAST_GROWTH, so that this is seldom, and weights are up to 2^LEAST_GROWTH. unit > 0. By fmaf, for programs are compiled
     * without contraction: one instruction less for each score. */
    template <int COUNT> __device__ bool weigh(float (&score)[COUNT], float unit, float (&factor)[2]) {
        const float higher[2] = {most_with(0, score), most_with(1, score)};
        const bool grows =
            __any_sync(~0u, (higher[0] - most[0]) * unit > LEAST_GROWTH || (higher[1] - most[1]) * unit > LEAST_GROWTH);
        if (grows)
            grow(higher, unit, factor);
        const float shift[2] = {shift_of(0, unit), shift_of(1, unit)};
#pragma unroll
        for (int i = 0; i < COUNT; i++) {
            score[i] = exp2_approximate(fmaf(score[i], unit, -shift[i % 4 / 2]));
            sum[i % 4] += score[i];
        }
        return grows;
    }
    /* The sum of all weights of a row, and the logarithm of the sum of exp(scale score). */
    __device__ void finish(float unit, float (&total)[2], float (&logarithm)[2]) const {
#pragma unroll
        for (int r = 0; r < 2; r++) {
            float own = sum[r * 2] + sum[r * 2 + 1], two = own + __shfl_xor_sync(~0u, own, 1);
            total[r] = two + __shfl_xor_sync(~0u, two, 2);
            logarithm[r] = (most[r] * unit + __log2f(total[r])) * LN_2;
        }
    }
};

/* ---- tiles ---- */

/* Where tile `tile` works. Heads that run side by side are few, so that what they read stays in L2; among these, the longest
 * work comes first: `rank` counts it. */
struct TilePlace {
    int head, rank;
};
template <int HEADS, int RANKS, int SECTION> __device__ TilePlace place_of_tile(int tile) {
    int first = tile / (SECTION * RANKS) * SECTION, inside = tile % (SECTION * RANKS);
    int heads = HEADS - first < SECTION ? HEADS - first : SECTION;
    return {first + inside % heads, inside / heads};
}

/* Blocks of LINES positions that a tile meets: [first, end). */
struct BlockRange {
    int first, end;
};
template <class Shape, int LINES> __device__ BlockRange keys_seen_from(int query) {
    int first = Shape::window > 0 ? max(query - Shape::window + 1, 0) : 0;
    int end = Shape::causal ? min(query + OWN_ROWS, Shape::length) : Shape::length;
    return {first / LINES, divide_up(end, LINES)};
}
template <class Shape, int LINES> __device__ BlockRange queries_that_see(int key) {
    int first = Shape::causal ? key : 0;
    int end = Shape::window > 0 ? min(key + OWN_ROWS - 1 + Shape::window, Shape::length) : Shape::length;
    return {first / LINES, divide_up(end, LINES)};
}

/* What a block copies has arrived, for all its threads and the tensor cores; and what they have read may be overwritten. */
template <int AHEAD> __device__ void meet_copies() {
    await_copies<AHEAD - 1>();
    show_to_tensor_cores();
    __syncthreads();
}

/* Writes factor * sum, the calling warp's rows, to rows `first` + ... of a head, by way of the warp's rows of a block of shared
 * memory: so that 16 bytes leave at a time. */
template <int SIZE, int COUNT, int STRIDE, int SUMS>
__device__ void store_rows(float (&sum)[SUMS], const float (&factor)[2], char *block, Narrow *head, int first) {
    using Block = HeadBlock<OWN_ROWS, SIZE>;
    constexpr int chunks = SIZE / 8, pieces = WARP_ROWS * chunks;
    int lane = threadIdx.x % LANES, warp_row = threadIdx.x / LANES * WARP_ROWS;
    scale_rows(sum, factor);
#pragma unroll
    for (int i = 0; i < SUMS; i += 2)
        *(unsigned *)(block + Block::offset(warp_row + lane / 4 + i % 4 / 2 * 8, i / 4) + lane % 4 * 4) =
            to_narrow_pair(sum[i], sum[i + 1]);
    __syncwarp();
#pragma unroll
    for (int piece = lane; piece < pieces; piece += LANES) {
        int row = warp_row + piece / chunks, chunk = piece % chunks;
        if (first + row < COUNT)
            *(uint4 *)(head + (int64_t)(first + row) * STRIDE + chunk * 8) =
                *(const uint4 *)(block + Block::offset(row, chunk));
    }
}

/* The calling thread's two rows: visit(r, position) for those that exist. */
template <class Shape, class Visit> __device__ void visit_rows(int first, Visit visit) {
#pragma unroll
    for (int r = 0; r < 2; r++) {
        int position = first + threadIdx.x / LANES * WARP_ROWS + threadIdx.x % LANES / 4 + r * 8;
        if (position < Shape::length)
            visit(r, position);
    }
}

constexpr int HEADS_AT_A_TIME = 32;

/* Turn t works on the keys of block t and on the values of the block before, which a stage of the ring holds. */
template <class Shape, int LINES> struct ForwardTileOf {
    static constexpr int lines = LINES, stages = RING_AHEAD + (Shape::size <= 64 ? 2 : 1);
    static constexpr int blocks = divide_up(Shape::length, OWN_ROWS), heads = Shape::batch * Shape::queries;
    static constexpr int tiles = heads * blocks;
    using Own = HeadBlock<OWN_ROWS, Shape::size>;
    using Passing = HeadBlock<lines, Shape::size>;
    static constexpr int stage = 2 * Passing::bytes, ring = Own::bytes, barriers = ring + stages * stage;
    static constexpr int shared = barriers + ring_bytes<stages>;
};

/* Of<Shape, LINES> with blocks of up to LINES rows, as many as a block of threads has ROOM bytes for. */
template <template <class, int> class Of, class Shape, int LINES, int ROOM> struct Roomy {
    static __host__ __device__ constexpr auto choose() {
        if constexpr (Of<Shape, LINES>::shared <= ROOM)
            return Of<Shape, LINES>();
        else
            return Roomy<Of, Shape, LINES / 2, ROOM>::choose();
    }
    static_assert(LINES >= 16, "a product has 16 lines");
};
template <template <class, int> class Of, class Shape, int LINES, int ROOM>
using RoomyTile = decltype(Roomy<Of, Shape, LINES, ROOM>::choose());

template <class Shape, class Products, int ROOM = MOST_SHARED>
using ForwardTile = RoomyTile<ForwardTileOf, Shape, Products::template lines<Shape>, ROOM>;

/* The keys and values that the queries from `query0` on see, as they pass by. */
template <class Shape, class Tile> class PassingKeys {
    using Block = typename Tile::Passing;
    const Narrow *keys, *values;
    unsigned ring;
    BlockRange seen;

public:
    int turns; // the last one has no keys

    __device__ PassingKeys(const Narrow *rows, int head, int query0, unsigned ring)
        : keys(rows + Shape::key_head(head)), values(rows + Shape::value_head(head)), ring(ring),
          seen(keys_seen_from<Shape, Tile::lines>(query0)), turns(seen.end - seen.first + 1) {
    }
    __device__ int key(int turn) const {
        return (seen.first + turn) * Tile::lines;
    }
    __device__ unsigned keys_of(int turn) const {
        return ring + turn % Tile::stages * Tile::stage;
    }
    /* Turn 0 has none: then it is the keys, which weights of 0 are multiplied by. */
    __device__ unsigned values_of(int turn) const {
        return keys_of(turn) + (turn == 0 ? 0 : Block::bytes);
    }
    /* Begins to bring what a turn works on, if there is one. */
    __device__ void fetch(int turn) const {
        if (turn + 1 < turns)
            Block::template fetch<Shape::length, Shape::row>(keys_of(turn), keys, key(turn));
        if (turn > 0 && turn < turns)
            Block::template fetch<Shape::length, Shape::row>(values_of(turn), values, key(turn - 1));
        end_copies();
    }
};

/* Begins to bring what the first turns work on; the first is there, and what was begun before. */
template <class Ring, class Passing> __device__ void begin(const Ring &ring, const Passing &passing) {
    for (int turn = 0; turn < RING_AHEAD; turn++)
        passing.fetch(turn);
    ring.begin();
    ring.await(0);
}
/* Begins to bring what a turn works on to where an earlier one has been. */
template <class Ring, class Passing> __device__ void go_on(const Ring &ring, const Passing &passing, int turn) {
    ring.reuse(turn);
    passing.fetch(turn);
}

/* The results of a tile's rows, which have seen all; without `sums` where it is null. */
template <class Shape, int SUMS>
__device__ void store_results(float (&sum)[SUMS], const RunningSoftmax &softmax, float unit, char *memory, Narrow *out,
                              float *sums, int query0) {
    float total[2], logarithm[2];
    softmax.finish(unit, total, logarithm);
    const float factor[2] = {1 / total[0], 1 / total[1]};
    visit_rows<Shape>(query0, [&](int r, int position) {
        if (sums && threadIdx.x % 4 == 0)
            sums[(int64_t)position * Shape::queries] = logarithm[r];
    });
    store_rows<Shape::size, Shape::length, Shape::out_row>(sum, factor, memory, out, query0);
}

template <class Shape, class Products>
__device__ void attend_tensor_tile(const Narrow *qkv, Narrow *out, float *sums, float scale, int tile, char *memory) {
    using Tile = ForwardTile<Shape, Products>;
    constexpr int lines = Tile::lines, row = Shape::row, length = Shape::length, width = Tile::Own::width;
    TilePlace place = place_of_tile<Tile::heads, Tile::blocks, HEADS_AT_A_TIME>(tile);
    const int head = place.head % Shape::queries;
    const int64_t first = (int64_t)(place.head / Shape::queries) * length;
    int query0 = (Tile::blocks - 1 - place.rank) * OWN_ROWS, query = query0 + Products::first_row(); // longest first
    const Narrow *rows = qkv + first * row;
    const unsigned own = shared_address(memory);
    const PassingKeys<Shape, Tile> passing(rows, head / Shape::group, query0, own + Tile::ring);
    const typename Products::template Ring<Tile::stages> ring(own + Tile::barriers);
    Tile::Own::template fetch<length, row>(own, rows + Shape::query_head(head), query0);
    begin(ring, passing);
    ring.open_turns();
    const OwnRows<Shape::size, Products::template holds<Shape::size>> queries(own);
    const float unit = scale * LOG2_E;
    RunningSoftmax softmax;
    float sum[width / 2] = {}, score[lines / 2], factor[2];
    unsigned weight[lines / 16][4] = {}; // of the values that come with the turn
    int turn = 0;
#pragma unroll 1
    do { // at least once, which the compiler must know: else it lets every product wait for the one before
        const bool another = turn + 2 < passing.turns;
        ring.take_turn();
        if (none_seen<Shape>(query, Products::rows, passing.key(turn), lines)) {
            Products::template mix_rows<Shape::size>(weight, passing.values_of(turn), sum);
            ring.give_turn(another);
            ring.publish(turn + 1);
            go_on(ring, passing, turn + RING_AHEAD);
            Products::template await<0>(sum, weight);
            clear(weight);
        } else {
            Products::template dot_rows<lines>(queries, passing.keys_of(turn), score);
            Products::template mix_rows<Shape::size>(weight, passing.values_of(turn), sum);
            ring.give_turn(another);
            Products::template await<1>(score);
            ring.publish(turn + 1);
            if (!all_seen<Shape>(query, Products::rows, passing.key(turn), lines))
                hide<Shape, false>(score, query0, passing.key(turn));
            const bool grows = softmax.weigh(score, unit, factor);
            go_on(ring, passing, turn + RING_AHEAD);
            Products::template await<0>(sum, weight);
            if (grows)
                scale_rows(sum, factor);
            to_weights(score, weight);
        }
        ring.release(turn);
        ring.await(++turn);
    } while (turn + 1 < passing.turns);
    Products::template mix_rows<Shape::size>(weight, passing.values_of(turn), sum);
    Products::template await<0>(sum, weight);
    store_results<Shape>(sum, softmax, unit, memory, out + first * Shape::out_row + Shape::query_head(head),
                         sums ? sums + first * Shape::queries + head : nullptr, query0);
}

#endif
