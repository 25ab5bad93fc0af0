/* The gradient of attention on tensor cores, with the blocks and the products of attention_tensor.cuh. */
#ifndef MTC_CUDA_ATTENTION_TENSOR_GRAD_CUH
#define MTC_CUDA_ATTENTION_TENSOR_GRAD_CUH

#include "cuda/attention_tensor.cuh"

/* Own: keys and values, or queries and the gradients of their outputs. Passing: the others, and of queries also the sums and
 * the dots. */
template <class Shape, int LINES> struct GradTileOf {
    static constexpr int lines = LINES;
    static constexpr int ahead = blocks_ahead<Shape>, stages = ahead + 2;
    static constexpr int blocks = divide_up(Shape::length, OWN_ROWS);
    static constexpr int heads = Shape::batch * Shape::keys, ranks = blocks * (1 + Shape::group), tiles = heads * ranks;
    using Own = HeadBlock<OWN_ROWS, Shape::size>;
    using Passing = HeadBlock<lines, Shape::size>;
    static constexpr int numbers = 2 * lines * (int)sizeof(float); // the sums, and the dots, of a block of queries
    static constexpr int buffer = 2 * Passing::bytes, shared = 2 * Own::bytes + stages * (buffer + numbers);
};
template <class Shape, int ROOM = MOST_SHARED>
using GradTile = decltype(Roomy < GradTileOf, Shape, Shape::size <= 64 ? 64 : 32, ROOM > ::choose());

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

template <class Shape, class Products>
__device__ void grad_queries_tile(const GradOperands<Shape> &at, int head, int query0, char *memory) {
    using Tile = GradTile<Shape>;
    using OwnQueries = OwnRows<Shape::size, Products::template holds<Shape::size>>;
    constexpr int lines = Tile::lines, row = Shape::row, length = Shape::length, width = Tile::Own::width;
    const int query = query0 + Products::first_row();
    const unsigned own = shared_address(memory);
    const PassingKeys<Shape, Tile> passing(at.qkv, head / Shape::group, query0, own + 2 * Tile::Own::bytes);
    Tile::Own::template fetch<length, row>(own, at.qkv + Shape::query_head(head), query0);
    Tile::Own::template fetch<length, Shape::out_row>(own + Tile::Own::bytes, at.dout + Shape::query_head(head),
                                                      query0);
    passing.begin();
    float shift[2] = {}, dot[2] = {};
    visit_rows<Shape>(query0, [&](int r, int position) {
        shift[r] = at.sums[position * Shape::queries + head] * LOG2_E;
        dot[r] = at.dots[position * Shape::queries + head];
    });
    meet_copies<Tile::ahead>();
    const OwnQueries queries(own), douts(own + Tile::Own::bytes);
    const float unit = at.scale * LOG2_E;
    float sum[width / 2] = {}, score[lines / 2], d_weight[lines / 2];
    unsigned d_score[lines / 16][4] = {}; // of the keys that lie at `before`
    unsigned before = passing.keys_of(passing.seen.first);
    int block = passing.seen.first;
#pragma unroll 1
    do {
        passing.fetch(block + Tile::ahead);
        if (none_seen<Shape>(query, Products::rows, block * lines, lines)) {
            Products::template mix_rows<Shape::size>(d_score, before, sum);
            Products::template await<0>(sum, d_score);
            clear(d_score);
        } else {
            Products::template dot_rows<lines>(queries, passing.keys_of(block), score);
            Products::template dot_rows<lines>(douts, passing.values_of(block), d_weight);
            Products::template mix_rows<Shape::size>(d_score, before, sum);
            Products::template await<2>(score);
            if (!all_seen<Shape>(query, Products::rows, block * lines, lines))
                hide<Shape, false>(score, query0, block * lines);
#pragma unroll
            for (int i = 0; i < lines / 2; i++)
                score[i] = exp2_approximate(fmaf(score[i], unit, -shift[i % 4 / 2]));
            Products::template await<1>(d_weight);
#pragma unroll
            for (int i = 0; i < lines / 2; i++)
                score[i] *= d_weight[i] - dot[i % 4 / 2];
            Products::template await<0>(sum, d_score);
            to_weights(score, d_score);
        }
        before = passing.keys_of(block);
        meet_copies<Tile::ahead>();
    } while (++block < passing.seen.end);
    Products::template mix_rows<Shape::size>(d_score, before, sum);
    Products::template await<0>(sum, d_score);

    const float factor[2] = {at.scale, at.scale};
    store_rows<Shape::size, length, row>(sum, factor, memory, at.dqkv + Shape::query_head(head), query0);
}

/* The sums and the dots of the queries that pass by, one of each for a column. */
template <class Shape> __device__ void fetch_numbers(unsigned to, const float *sums, const float *dots, int first) {
    constexpr int lines = GradTile<Shape>::lines;
    int line = threadIdx.x % lines, query = first + line;
    if (threadIdx.x < 2 * lines)
        copy_piece<sizeof(float)>(to + threadIdx.x * sizeof(float),
                                  (threadIdx.x < lines ? sums : dots) + query * Shape::queries, query < Shape::length);
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

/* The queries that see the keys from `key0` on, with all that comes with them, as they pass by in a ring in shared memory: a
 * turn is a block of one of the query heads that share the key head. */
template <class Shape> class PassingQueries {
    using Tile = GradTile<Shape>;
    using Block = typename Tile::Passing;
    static constexpr int numbers = Tile::stages * Tile::buffer; // these come behind the rows
    const GradOperands<Shape> &at;
    int head;
    unsigned ring;
    BlockRange seeing;

public:
    int turns;

    __device__ PassingQueries(const GradOperands<Shape> &at, int head, int key0, unsigned ring)
        : at(at), head(head), ring(ring), seeing(queries_that_see<Shape, Tile::lines>(key0)),
          turns(Shape::group * (seeing.end - seeing.first)) {
    }
    __device__ int query(int turn) const {
        return (seeing.first + (Shape::group == 1 ? turn : turn % (seeing.end - seeing.first))) * Tile::lines;
    }
    __device__ unsigned queries_of(int turn) const {
        return ring + turn % Tile::stages * Tile::buffer;
    }
    __device__ unsigned douts_of(int turn) const {
        return queries_of(turn) + Block::bytes;
    }
    /* The sums, then the dots, counted from the beginning of the ring. */
    static __device__ int numbers_of(int turn) {
        return numbers + turn % Tile::stages * Tile::numbers;
    }
    __device__ void fetch(int turn) const {
        if (turn < turns) {
            int query_head = head * Shape::group + (Shape::group == 1 ? 0 : turn / (seeing.end - seeing.first));
            int column = Shape::query_head(query_head), first = query(turn);
            Block::template fetch<Shape::length, Shape::row>(queries_of(turn), at.qkv + column, first);
            Block::template fetch<Shape::length, Shape::out_row>(douts_of(turn), at.dout + column, first);
            fetch_numbers<Shape>(ring + numbers_of(turn), at.sums + query_head, at.dots + query_head, first);
        }
        end_copies();
    }
    __device__ void begin() const {
        for (int turn = 0; turn < Tile::ahead; turn++)
            fetch(turn);
    }
};

template <class Shape, class Products>
__device__ void grad_keys_tile(const GradOperands<Shape> &at, int head, int key0, char *memory) {
    using Tile = GradTile<Shape>;
    using OwnKeys = OwnRows<Shape::size, Products::template holds<Shape::size>>;
    constexpr int lines = Tile::lines, row = Shape::row, length = Shape::length, width = Tile::Own::width;
    const int key = key0 + Products::first_row();
    const unsigned own = shared_address(memory);
    const PassingQueries<Shape> passing(at, head, key0, own + 2 * Tile::Own::bytes);
    Tile::Own::template fetch<length, row>(own, at.qkv + Shape::key_head(head), key0);
    Tile::Own::template fetch<length, row>(own + Tile::Own::bytes, at.qkv + Shape::value_head(head), key0);
    passing.begin();
    meet_copies<Tile::ahead>();
    const OwnKeys keys(own), values(own + Tile::Own::bytes);
    const float unit = at.scale * LOG2_E;
    float d_keys[width / 2] = {}, d_values[width / 2] = {}, score[lines / 2], d_weight[lines / 2];
    unsigned weight[lines / 16][4] = {}, d_score[lines / 16][4] = {}; // of the queries that lie at `before`
    unsigned before = passing.queries_of(0);
    int turn = 0;
#pragma unroll 1
    do {
        const int query = passing.query(turn);
        passing.fetch(turn + Tile::ahead);
        if (none_seen<Shape>(query, lines, key, Products::rows)) {
            Products::template mix_rows<Shape::size>(weight, before + Tile::Passing::bytes, d_values);
            Products::template mix_rows<Shape::size>(d_score, before, d_keys);
            Products::template await<0>(d_keys, d_values, weight, d_score);
            clear(weight);
            clear(d_score);
        } else {
            Products::template dot_rows<lines>(keys, passing.queries_of(turn), score);
            Products::template dot_rows<lines>(values, passing.douts_of(turn), d_weight);
            Products::template mix_rows<Shape::size>(weight, before + Tile::Passing::bytes, d_values);
            Products::template mix_rows<Shape::size>(d_score, before, d_keys);
            const char *sums = memory + 2 * Tile::Own::bytes + passing.numbers_of(turn);
            const char *dots = sums + lines * sizeof(float);
            Products::template await<3>(score);
            if (!all_seen<Shape>(query, lines, key, Products::rows))
                hide<Shape, true>(score, key0, query);
            visit_columns<lines / 2>(
                sums, [&](int i, float sum) { score[i] = exp2_approximate(fmaf(score[i], unit, -sum * LOG2_E)); });
            Products::template await<2>(d_weight);
            visit_columns<lines / 2>(dots, [&](int i, float dot) { d_weight[i] = score[i] * (d_weight[i] - dot); });
            Products::template await<0>(d_keys, d_values, weight, d_score);
            to_weights(score, weight);
            to_weights(d_weight, d_score);
        }
        before = passing.queries_of(turn);
        meet_copies<Tile::ahead>();
    } while (++turn < passing.turns);
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
    using Tile = GradTile<Shape>;
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
