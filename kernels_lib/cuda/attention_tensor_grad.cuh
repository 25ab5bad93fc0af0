/* The gradient of attention on tensor cores, with the blocks and the products of attention_tensor.cuh. */
#ifndef MTC_CUDA_ATTENTION_TENSOR_GRAD_CUH
#define MTC_CUDA_ATTENTION_TENSOR_GRAD_CUH

#include "cuda/attention_tensor.cuh"

/* Own: keys and values, or queries and the gradients of their outputs. Passing: the others, and of queries also the sums and
 * the dots. */
template <class Shape, int LINES> struct GradTileOf {
    static constexpr int lines = LINES, stages = RING_AHEAD + 2; // the turn before is in use too
    static constexpr int blocks = divide_up(Shape::length, OWN_ROWS);
    static constexpr int heads = Shape::batch * Shape::keys, ranks = blocks * (1 + Shape::group), tiles = heads * ranks;
    using Own = HeadBlock<OWN_ROWS, Shape::size>;
    using Passing = HeadBlock<lines, Shape::size>;
    static constexpr int of_numbers = 2 * lines * (int)sizeof(float); // the sums, and the dots, of a block of queries
    static constexpr int stage = 2 * Passing::bytes, ring = 2 * Own::bytes, numbers = ring + stages * stage;
    static constexpr int barriers = numbers + stages * of_numbers, shared = barriers + ring_bytes<stages>;
};
template <class Shape, class Products, int ROOM = MOST_SHARED>
using GradTile = RoomyTile<GradTileOf, Shape, Products::template grad_lines<Shape>, ROOM>;

/* The operands of the gradient as one example has them. */
template <class Shape> struct GradOperands {
    const Narrow *qkv, *dout;
    const float *sums, *dots;
    Narrow *dqkv;
    float scale;

    __device__ GradOperands of_example(int example) const {
        int64_t first = (int64_t)example * Shape::length;
        return {qkv + first * Shape::row,      dout + first * Shape::out_row, sums + first * Shape::queries,
                dots + first * Shape::queries, dqkv + first * Shape::row,     scale};
    }
};

/* The keys and values that the queries from `query0` on see, a block for each turn. */
template <class Shape, class Tile> class PassingPairs {
    using Block = typename Tile::Passing;
    const Narrow *keys, *values;
    unsigned ring;
    BlockRange seen;

public:
    int turns;

    __device__ PassingPairs(const Narrow *rows, int head, int query0, unsigned ring)
        : keys(rows + Shape::key_head(head)), values(rows + Shape::value_head(head)), ring(ring),
          seen(keys_seen_from<Shape, Tile::lines>(query0)), turns(seen.end - seen.first) {
    }
    __device__ int key(int turn) const {
        return (seen.first + turn) * Tile::lines;
    }
    __device__ unsigned keys_of(int turn) const {
        return ring + turn % Tile::stages * Tile::stage;
    }
    __device__ unsigned values_of(int turn) const {
        return keys_of(turn) + Block::bytes;
    }
    /* Begins to bring what a turn works on, if there is one. */
    __device__ void fetch(int turn) const {
        if (turn < turns) {
            Block::template fetch<Shape::length, Shape::row>(keys_of(turn), keys, key(turn));
            Block::template fetch<Shape::length, Shape::row>(values_of(turn), values, key(turn));
        }
        end_copies();
    }
};

/* Of the calling thread's rows: the sums as powers of 2, and the dots. */
template <class Shape>
__device__ void load_own_numbers(const GradOperands<Shape> &at, int head, int query0, float (&shift)[2],
                                 float (&dot)[2]) {
    visit_rows<Shape>(query0, [&](int r, int position) {
        shift[r] = at.sums[position * Shape::queries + head] * LOG2_E;
        dot[r] = at.dots[position * Shape::queries + head];
    });
}

template <class Shape, class Products>
__device__ void grad_queries_tile(const GradOperands<Shape> &at, int head, int query0, char *memory) {
    using Tile = GradTile<Shape, Products>;
    using OwnQueries = OwnRows<Shape::size, Products::template holds<Shape::size>>;
    constexpr int lines = Tile::lines, row = Shape::row, length = Shape::length, width = Tile::Own::width;
    const int query = query0 + Products::first_row();
    const unsigned own = shared_address(memory);
    const PassingPairs<Shape, Tile> passing(at.qkv, head / Shape::group, query0, own + Tile::ring);
    const typename Products::template Ring<Tile::stages> ring(own + Tile::barriers);
    const int column = Shape::query_head(head);
    Tile::Own::template fetch<length, row>(own, at.qkv + column, query0);
    Tile::Own::template fetch<length, Shape::out_row>(own + Tile::Own::bytes, at.dout + column, query0);
    float shift[2] = {}, dot[2] = {};
    load_own_numbers<Shape>(at, head, query0, shift, dot);
    begin(ring, passing);
    const OwnQueries queries(own), douts(own + Tile::Own::bytes);
    const float unit = at.scale * LOG2_E;
    float sum[width / 2] = {}, score[lines / 2], d_weight[lines / 2];
    unsigned d_score[lines / 16][4] = {}; // of the keys that lie at `before`
    unsigned before = passing.keys_of(0);
    int turn = 0;
#pragma unroll 1
    do {
        if (none_seen<Shape>(query, Products::rows, passing.key(turn), lines)) {
            Products::template mix_rows<Shape::size>(d_score, before, sum);
            ring.publish(turn + 1);
            go_on(ring, passing, turn + RING_AHEAD);
            Products::template await<0>(sum, d_score);
            clear(d_score);
        } else {
            Products::template dot_rows<lines>(queries, passing.keys_of(turn), score);
            Products::template dot_rows<lines>(douts, passing.values_of(turn), d_weight);
            Products::template mix_rows<Shape::size>(d_score, before, sum);
            Products::template await<2>(score);
            if (!all_seen<Shape>(query, Products::rows, passing.key(turn), lines))
                hide<Shape, false>(score, query0, passing.key(turn));
#pragma unroll
            for (int i = 0; i < lines / 2; i++)
                score[i] = exp2_approximate(fmaf(score[i], unit, -shift[i % 4 / 2]));
            Products::template await<1>(d_weight);
            ring.publish(turn + 1);
#pragma unroll
            for (int i = 0; i < lines / 2; i++)
                score[i] *= d_weight[i] - dot[i % 4 / 2];
            go_on(ring, passing, turn + RING_AHEAD);
            Products::template await<0>(sum, d_score);
            to_weights(score, d_score);
        }
        if (turn > 0)
            ring.release(turn - 1);
        before = passing.keys_of(turn);
        ring.await(++turn);
    } while (turn < passing.turns);
    Products::template mix_rows<Shape::size>(d_score, before, sum);
    Products::template await<0>(sum, d_score);

    const float factor[2] = {at.scale, at.scale};
    store_rows<Shape::size, length, row>(sum, factor, memory, at.dqkv + column, query0);
}

/* The sums and the dots of the queries that pass by, one of each for a column. */
template <class Shape, int LINES>
__device__ void fetch_numbers(unsigned to, const float *sums, const float *dots, int first) {
    int line = threadIdx.x % LINES, query = first + line;
    if (threadIdx.x < 2 * LINES)
        copy_piece<sizeof(float)>(to + threadIdx.x * sizeof(float),
                                  (threadIdx.x < LINES ? sums : dots) + query * Shape::queries, query < Shape::length);
}
/* visit(i, number of the column of sums[i]) for all i. */
template <int COUNT, class Visit> __device__ void visit_columns(const char *numbers, Visit visit) {
    const float2 *two = (const float2 *)numbers + threadIdx.x % 4;
#pragma unroll
    for (int i = 0; i < COUNT; i += 4) {
        float2 number = two[i];
        visit(i, number.x), visit(i + 1, number.y), visit(i + 2, number.x), visit(i + 3, number.y);
    }
}

/* Scores become weights, by the sums of their columns. */
template <int COUNT> __device__ void weigh_columns(float (&score)[COUNT], float unit, const char *sums) {
    visit_columns<COUNT>(sums,
                         [&](int i, float sum) { score[i] = exp2_approximate(fmaf(score[i], unit, -sum * LOG2_E)); });
}
/* Gradients of weights become those of scores, by the dots of their columns. */
template <int COUNT>
__device__ void differ_columns(float (&d_weight)[COUNT], const float (&weight)[COUNT], const char *dots) {
    visit_columns<COUNT>(dots, [&](int i, float dot) { d_weight[i] = weight[i] * (d_weight[i] - dot); });
}

/* The queries that see the keys from `key0` on, with all that comes with them, as they pass by: a turn is a block of one of
 * the query heads that share the key head. */
template <class Shape, class Tile> class PassingQueries {
    using Block = typename Tile::Passing;
    const GradOperands<Shape> &at;
    int head;
    unsigned memory;
    BlockRange seeing;

public:
    int turns;

    __device__ PassingQueries(const GradOperands<Shape> &at, int head, int key0, unsigned memory)
        : at(at), head(head), memory(memory), seeing(queries_that_see<Shape, Tile::lines>(key0)),
          turns(Shape::group * (seeing.end - seeing.first)) {
    }
    __device__ int query(int turn) const {
        return (seeing.first + (Shape::group == 1 ? turn : turn % (seeing.end - seeing.first))) * Tile::lines;
    }
    __device__ unsigned queries_of(int turn) const {
        return memory + Tile::ring + turn % Tile::stages * Tile::stage;
    }
    __device__ unsigned douts_of(int turn) const {
        return queries_of(turn) + Block::bytes;
    }
    /* The sums, then the dots. */
    static __device__ int numbers_of(int turn) {
        return Tile::numbers + turn % Tile::stages * Tile::of_numbers;
    }
    __device__ void fetch(int turn) const {
        if (turn < turns) {
            int query_head = head * Shape::group + (Shape::group == 1 ? 0 : turn / (seeing.end - seeing.first));
            int column = Shape::query_head(query_head), first = query(turn);
            Block::template fetch<Shape::length, Shape::row>(queries_of(turn), at.qkv + column, first);
            Block::template fetch<Shape::length, Shape::out_row>(douts_of(turn), at.dout + column, first);
            fetch_numbers<Shape, Tile::lines>(memory + numbers_of(turn), at.sums + query_head, at.dots + query_head,
                                              first);
        }
        end_copies();
    }
};

template <class Shape, class Products>
__device__ void grad_keys_tile(const GradOperands<Shape> &at, int head, int key0, char *memory) {
    using Tile = GradTile<Shape, Products>;
    using OwnKeys = OwnRows<Shape::size, Products::template holds<Shape::size>>;
    constexpr int lines = Tile::lines, row = Shape::row, length = Shape::length, width = Tile::Own::width;
    const int key = key0 + Products::first_row();
    const unsigned own = shared_address(memory);
    const PassingQueries<Shape, Tile> passing(at, head, key0, own);
    const typename Products::template Ring<Tile::stages> ring(own + Tile::barriers);
    Tile::Own::template fetch<length, row>(own, at.qkv + Shape::key_head(head), key0);
    Tile::Own::template fetch<length, row>(own + Tile::Own::bytes, at.qkv + Shape::value_head(head), key0);
    begin(ring, passing);
    const OwnKeys keys(own), values(own + Tile::Own::bytes);
    const float unit = at.scale * LOG2_E;
    float d_keys[width / 2] = {}, d_values[width / 2] = {}, score[lines / 2], d_weight[lines / 2];
    unsigned weight[lines / 16][4] = {}, d_score[lines / 16][4] = {}; // of the queries that lie at `before`
    unsigned before = passing.queries_of(0);
    int turn = 0;
#pragma unroll 1
    do {
        const int query = passing.query(turn);
        if (none_seen<Shape>(query, lines, key, Products::rows)) {
            Products::template mix_rows<Shape::size>(weight, before + Tile::Passing::bytes, d_values);
            Products::template mix_rows<Shape::size>(d_score, before, d_keys);
            ring.publish(turn + 1);
            go_on(ring, passing, turn + RING_AHEAD);
            Products::template await<0>(d_keys, d_values, weight, d_score);
            clear(weight);
            clear(d_score);
        } else {
            Products::template dot_rows<lines>(keys, passing.queries_of(turn), score);
            Products::template dot_rows<lines>(values, passing.douts_of(turn), d_weight);
            Products::template mix_rows<Shape::size>(weight, before + Tile::Passing::bytes, d_values);
            Products::template mix_rows<Shape::size>(d_score, before, d_keys);
            const char *sums = memory + passing.numbers_of(turn), *dots = sums + lines * sizeof(float);
            Products::template await<3>(score);
            if (!all_seen<Shape>(query, lines, key, Products::rows))
                hide<Shape, true>(score, key0, query);
            weigh_columns(score, unit, sums);
            Products::template await<2>(d_weight);
            ring.publish(turn + 1);
            differ_columns(d_weight, score, dots);
            go_on(ring, passing, turn + RING_AHEAD);
            Products::template await<0>(d_keys, d_values, weight, d_score);
            to_weights(score, weight);
            to_weights(d_weight, d_score);
        }
        if (turn > 0)
            ring.release(turn - 1);
        before = passing.queries_of(turn);
        ring.await(++turn);
    } while (turn < passing.turns);
    Products::template mix_rows<Shape::size>(weight, before + Tile::Passing::bytes, d_values);
    Products::template mix_rows<Shape::size>(d_score, before, d_keys);
    Products::template await<0>(d_keys, d_values, weight, d_score);

    const float factor[2] = {at.scale, at.scale}, one[2] = {1, 1};
    store_rows<Shape::size, length, row>(d_keys, factor, memory, at.dqkv + Shape::key_head(head), key0);
    store_rows<Shape::size, length, row>(d_values, one, memory + Tile::Own::bytes, at.dqkv + Shape::value_head(head),
                                         key0);
}

/* Of a key head: first the tiles of its keys, then those of the queries that meet it; where it is causal, the first keys
 * meet the most queries, and the last queries the most keys. */
template <class Shape, class Products>
__device__ void attend_grad_tensor_tile(const GradOperands<Shape> &all, int tile, char *memory) {
    using Tile = GradTile<Shape, Products>;
    TilePlace place = place_of_tile<Tile::heads, Tile::ranks, divide_up(HEADS_AT_A_TIME, Shape::group)>(tile);
    const GradOperands<Shape> at = all.of_example(place.head / Shape::keys);
    int head = place.head % Shape::keys, rank = place.rank - Tile::blocks;
    if (rank < 0)
        grad_keys_tile<Shape, Products>(at, head, place.rank * OWN_ROWS, memory);
    else
        grad_queries_tile<Shape, Products>(at, head * Shape::group + rank % Shape::group,
                                           (Tile::blocks - 1 - rank / Shape::group) * OWN_ROWS, memory);
}

#endif
