/* Attention of one position p over the keys and values of those before it, which lie in a cache, a row for each position; of several
 * texts at a position, each has its own:
 *
 *     cache[p]  = keys and values of qkv
 *     scores[j] = scale * sum over c of q[c] * k[j, c]           j <= p; p - j < window if any
 *     out[c]    = sum over j of softmax(scores)[j] * v[j, c]
 *
 *     a head of keys: some tiles, PARTS of its positions       a position: a few lanes, 16 bytes of its key and of its value each
 *
 *             position   0 1 2 3 .. 31 | 32 .. 63 | 64 .. 95 | ...    of 64 numbers in bf16: 8 lanes a position, 32 positions a
 *             part       0             | 1        | 0        | ...    block; then lanes, warps and parts are put together
 *
 * There is one row to compute, so that all depends on how fast the cache is read: by as many blocks as there is work for, whole lines
 * at a time; what is read serves all queries of the head, PASS of them at a time. Each adds up its own positions under the largest
 * score that it met. Parts are left in memory, and the block that comes last puts them together, in their order. If the cache is of
 * Narrow, q is rounded too, as where all positions are computed, and the result may be. */
#ifndef MTC_CUDA_ATTENTION_STEP_CUH
#define MTC_CUDA_ATTENTION_STEP_CUH

#include "cuda/pack.cuh"
#include "cuda/team.cuh"

template <class Number_, int LENGTH, int QUERIES, int KEYS, int SIZE, int WINDOW, int TEXTS> struct AttentionStep {
    using Number = Number_; // of the cache
    static constexpr int texts = TEXTS, queries = QUERIES, keys = KEYS, size = SIZE, window = WINDOW;
    static constexpr int group = QUERIES / KEYS, row = 2 * KEYS * SIZE;
    static constexpr int packed_row = (QUERIES + 2 * KEYS) * SIZE, out_row = QUERIES * SIZE; // of a text
    static constexpr int64_t cache = (int64_t)LENGTH * row;
    static constexpr int pass = group < 4 ? group : 4; // queries at a time
    static constexpr int passes = (group + pass - 1) / pass;
    static constexpr int parts = attention_step_parts(WINDOW && WINDOW < LENGTH ? WINDOW : LENGTH, TEXTS *KEYS);
    /* Lanes of a position, and numbers of a lane: a pack, where lanes divide the head so; else every 32nd number. */
    static constexpr int pack = PACK_BYTES / (int)sizeof(Number), packs = SIZE / pack;
    static constexpr bool packed = SIZE % pack == 0 && packs <= LANES && (packs & (packs - 1)) == 0;
    static constexpr int lanes = packed ? packs : LANES, each = packed ? pack : (SIZE + LANES - 1) / LANES;
    static constexpr int slots = THREADS / lanes;   // positions of a block at a time
    static constexpr int partial = SIZE + 2;        // of some positions and a query: largest score, weights, values
    static constexpr int partials = pass * partial; // of some positions
    static_assert(QUERIES % KEYS == 0, "query heads share key heads evenly");
};

/* What the parts of a head leave for each other, and how often one was done: PARTS is a power of two, so that the count may wrap. */
template <class Shape>
__device__ float step_partials[Shape::texts * Shape::keys][Shape::passes][Shape::parts][Shape::partials];
template <class Shape> __device__ unsigned step_arrivals[Shape::texts * Shape::keys];

template <class Shape> constexpr int attend_step_tiles() {
    return Shape::texts * Shape::keys * Shape::parts;
}

/* Partials of the warps. */
template <class Shape> constexpr int attend_step_shared() {
    return WARPS * Shape::partials * (int)sizeof(float);
}

static inline __device__ float cached_to_float(float x) {
    return x;
}
static inline __device__ float cached_to_float(Narrow x) {
    return to_float(x);
}
template <class Number> __device__ Number to_cached(float x) {
    if constexpr (sizeof(Number) == sizeof(float))
        return x;
    else
        return to_narrow(x);
}

/* A head's numbers, dealt to the lanes of a position. */
template <class Shape> struct StepHead {
    float at[Shape::each];

    static __device__ int number(int lane, int e) {
        return Shape::packed ? lane * Shape::each + e : e * LANES + lane;
    }
    static __device__ bool exists(int lane, int e) {
        return Shape::packed || number(lane, e) < Shape::size;
    }
};

template <class Shape, class Number> __device__ StepHead<Shape> load_step_head(const Number *head, int lane) {
    using Head = StepHead<Shape>;
    Head part;
    if constexpr (Shape::packed) {
        Pack<Number, Shape::each> pack = load_pack<Shape::each>(head + lane * Shape::each);
#pragma unroll
        for (int e = 0; e < Shape::each; e++)
            part.at[e] = cached_to_float(pack[e]);
    } else {
#pragma unroll
        for (int e = 0; e < Shape::each; e++)
            part.at[e] = Head::exists(lane, e) ? cached_to_float(head[Head::number(lane, e)]) : 0.0f;
    }
    return part;
}

/* As the cache has it. */
template <class Shape> __device__ StepHead<Shape> rounded(StepHead<Shape> part) {
#pragma unroll
    for (int e = 0; e < Shape::each; e++)
        part.at[e] = cached_to_float(to_cached<typename Shape::Number>(part.at[e]));
    return part;
}

template <class Shape>
__device__ void store_step_head(typename Shape::Number *head, const StepHead<Shape> &part, int lane) {
#pragma unroll
    for (int e = 0; e < Shape::each; e++)
        if (part.exists(lane, e))
            head[part.number(lane, e)] = to_cached<typename Shape::Number>(part.at[e]);
}

/* What was seen for one query: sums of weights exp(score - top). */
template <class Shape> struct StepSums {
    float top = -INFINITY, weights = 0;
    StepHead<Shape> values = {};

    /* The largest score becomes that one; minus infinity where nothing was seen. */
    __device__ void raise(float higher) {
        const float before = higher == top ? 1.0f : expf(top - higher);
        top = higher;
        weights *= before;
#pragma unroll
        for (int e = 0; e < Shape::each; e++)
            values.at[e] *= before;
    }
    /* A position whose score is no larger. */
    __device__ void add_below(float score, const StepHead<Shape> &value) {
        const float weight = score == -INFINITY ? 0.0f : expf(score - top);
        weights += weight;
#pragma unroll
        for (int e = 0; e < Shape::each; e++)
            values.at[e] = fmaf(weight, value.at[e], values.at[e]);
    }
    /* Positions whose weights, under the largest score `other`, have this sum, and whose values these. */
    __device__ void add(float other, float more, const StepHead<Shape> &value) {
        float higher = fmaxf(top, other);
        float before = top == higher ? 1.0f : expf(top - higher),
              weight = other == higher ? 1.0f : expf(other - higher);
        top = higher;
        weights = fmaf(weights, before, more * weight);
#pragma unroll
        for (int e = 0; e < Shape::each; e++)
            values.at[e] = fmaf(values.at[e], before, weight * value.at[e]);
    }
};

/* The cache of a head, and the calling lane's place: which of the positions that are seen at a time, which numbers of them. */
template <class Shape> struct StepPlace {
    const typename Shape::Number *keys, *values;
    int first, end;       // positions [first, end), which lie in the cache
    int parts;            // those that have any
    int lane, slot, step; // of a thread: its numbers; its first position, from `first`, and how far it is to its next

    __device__ StepPlace(const typename Shape::Number *keys, int part, int position)
        : keys(keys), values(keys + Shape::keys * Shape::size), lane(threadIdx.x % Shape::lanes), end(position) {
        first = Shape::window && position >= Shape::window ? position - Shape::window + 1 : 0;
        const int wanted = (end - first + Shape::slots - 1) / Shape::slots;
        parts = wanted < 1 ? 1 : wanted < Shape::parts ? wanted : Shape::parts;
        slot = part * Shape::slots + threadIdx.x / Shape::lanes;
        step = parts * Shape::slots;
    }
    /* The thread's first position, and that of its warp. */
    __device__ int begin() const {
        return first + slot;
    }
    __device__ int of_warp() const {
        return begin() - threadIdx.x % LANES / Shape::lanes;
    }
};

template <class Shape>
__device__ float step_score(const StepHead<Shape> &query, const StepHead<Shape> &key, float scale) {
    float sum = 0;
#pragma unroll
    for (int e = 0; e < Shape::each; e++)
        sum = fmaf(query.at[e], key.at[e], sum);
    return scale * lanes_reduce<Shape::lanes>(sum, [](float a, float b) { return a + b; });
}

/* Keys and values of positions at, at + step, ...: from the end on, of the last one again. */
template <class Shape> struct StepRows {
    static constexpr int count = 4;
    StepHead<Shape> key[count], value[count];

    __device__ void read(const StepPlace<Shape> &place, int at) {
#pragma unroll
        for (int u = 0; u < count; u++) {
            int64_t j = min(at + u * place.step, place.end - 1);
            key[u] = load_step_head<Shape>(place.keys + j * Shape::row, place.lane);
            value[u] = load_step_head<Shape>(place.values + j * Shape::row, place.lane);
        }
    }
};

/* Those of which some from the end on are not there; a warp's lanes stay together. All are weighed under the largest score of them and of
 * those before. */
template <class Shape>
__device__ void see_positions(const StepPlace<Shape> &place, int at, const StepRows<Shape> &rows,
                              const StepHead<Shape> *queries, float scale, StepSums<Shape> *seen) {
    constexpr int count = StepRows<Shape>::count;
#pragma unroll
    for (int g = 0; g < Shape::pass; g++) {
        float score[count], top = seen[g].top;
#pragma unroll
        for (int u = 0; u < count; u++) {
            score[u] = step_score(queries[g], rows.key[u], scale);
            score[u] = at + u * place.step < place.end ? score[u] : -INFINITY;
            top = fmaxf(top, score[u]);
        }
        seen[g].raise(top);
#pragma unroll
        for (int u = 0; u < count; u++)
            seen[g].add_below(score[u], rows.value[u]);
    }
}

template <class Shape> __device__ void store_partial(float *to, const StepSums<Shape> &sums, int lane) {
    if (lane == 0) {
        to[0] = sums.top;
        to[1] = sums.weights;
    }
#pragma unroll
    for (int e = 0; e < Shape::each; e++)
        if (sums.values.exists(lane, e))
            to[2 + sums.values.number(lane, e)] = sums.values.at[e];
}

/* The first `count` of at most MOST partials, in their order, under the largest score of all: number c of a head. Of memory, what other
 * blocks wrote is read behind the nearest cache. */
template <class Shape, int MOST> struct JoinedStep {
    float top = -INFINITY, weights = 0, sum = 0;

    template <class Read> __device__ JoinedStep(const float *partials, int count, int c, Read read) {
        float tops[MOST], all[MOST], value[MOST];
#pragma unroll
        for (int k = 0; k < MOST; k++) {
            const float *partial = partials + (k < count ? k : 0) * Shape::partials;
            tops[k] = k < count ? read(partial) : -INFINITY;
            all[k] = read(partial + 1);
            value[k] = read(partial + 2 + c);
            top = fmaxf(top, tops[k]);
        }
#pragma unroll
        for (int k = 0; k < MOST; k++) {
            float factor = tops[k] == -INFINITY ? 0.0f : expf(tops[k] - top);
            weights = fmaf(all[k], factor, weights);
            sum = fmaf(value[k], factor, sum);
        }
    }
};

/* The sums of the lanes that have the same numbers become those of the warp. */
template <class Shape> __device__ void join_slots(StepSums<Shape> &seen) {
#pragma unroll
    for (int distance = Shape::lanes; distance < LANES; distance *= 2) {
        StepHead<Shape> values;
        float top = __shfl_xor_sync(~0u, seen.top, distance), weights = __shfl_xor_sync(~0u, seen.weights, distance);
#pragma unroll
        for (int e = 0; e < Shape::each; e++)
            values.at[e] = __shfl_xor_sync(~0u, seen.values.at[e], distance);
        if (fmaxf(top, seen.top) > -INFINITY)
            seen.add(top, weights, values);
    }
}

/* The row that is not in the cache yet, by the lanes that have its first slot: it is written there, and seen. */
template <class Shape>
__device__ void see_own(const float *qkv, int head, const StepPlace<Shape> &place, const StepHead<Shape> *queries,
                        float scale, typename Shape::Number *own, StepSums<Shape> *seen) {
    constexpr int width = Shape::keys * Shape::size;
    const float *key = qkv + (Shape::queries + head) * Shape::size;
    StepHead<Shape> k = rounded(load_step_head<Shape>(key, place.lane));
    StepHead<Shape> v = rounded(load_step_head<Shape>(key + width, place.lane));
#pragma unroll
    for (int g = 0; g < Shape::pass; g++) {
        float score = step_score(queries[g], k, scale);
        if (place.slot == 0)
            seen[g].add(score, 1, v);
    }
    if (place.slot == 0) {
        store_step_head<Shape>(own, k, place.lane);
        store_step_head<Shape>(own + width, v, place.lane);
    }
}

/* A pass of queries over the part's positions, of which `rows` has the first ones: partials of the warps. */
template <class Shape>
__device__ void attend_part(const float *qkv, const StepPlace<Shape> &place, StepRows<Shape> &rows, int query, int last,
                            int head, float scale, typename Shape::Number *own, float *warps) {
    StepHead<Shape> queries[Shape::pass];
    StepSums<Shape> seen[Shape::pass];
#pragma unroll
    for (int g = 0; g < Shape::pass; g++)
        queries[g] = rounded(load_step_head<Shape>(qkv + min(query + g, last - 1) * Shape::size, place.lane));
    if (place.slot < LANES / Shape::lanes) // the first warp of the first part
        see_own<Shape>(qkv, head, place, queries, scale, own, seen);
    const int turn = StepRows<Shape>::count * place.step;
    for (int at = place.begin(), of_warp = place.of_warp(); of_warp < place.end;) {
        see_positions<Shape>(place, at, rows, queries, scale, seen);
        at += turn;
        of_warp += turn;
        if (of_warp < place.end)
            rows.read(place, at);
    }
    float *partials = warps + threadIdx.x / LANES * Shape::partials;
#pragma unroll
    for (int g = 0; g < Shape::pass; g++) {
        join_slots(seen[g]);
        if (threadIdx.x % LANES < Shape::lanes)
            store_partial(partials + g * Shape::partial, seen[g], place.lane);
    }
    __syncthreads();
}

/* What the block's warps have seen is left to who is last, if there are other parts, else it is the result. */
template <class Shape, class Out>
__device__ void join_warps(const float *warps, bool alone, int queries, float *partials, Out *out) {
    for (int i = threadIdx.x; i < queries * Shape::size; i += THREADS) {
        int g = i / Shape::size, c = i % Shape::size;
        const JoinedStep<Shape, WARPS> joined(warps + g * Shape::partial, WARPS, c, [](const float *p) { return *p; });
        if (alone) {
            out[i] = to_cached<Out>(joined.sum / joined.weights);
            continue;
        }
        float *partial = partials + g * Shape::partial;
        if (c == 0) {
            partial[0] = joined.top;
            partial[1] = joined.weights;
        }
        partial[2 + c] = joined.sum;
    }
    __syncthreads();
}

template <class Shape, class Out> __device__ void join_parts(const float *partials, int parts, int queries, Out *out) {
    for (int i = threadIdx.x; i < queries * Shape::size; i += THREADS) {
        int g = i / Shape::size, c = i % Shape::size;
        const JoinedStep<Shape, Shape::parts> joined(partials + g * Shape::partial, parts, c,
                                                     [](const float *p) { return __ldcg(p); });
        out[i] = to_cached<Out>(joined.sum / joined.weights);
    }
}

/* All other parts of the head are done: the calling block is the last of them. */
static inline __device__ bool comes_last(unsigned *arrivals, int parts) {
    __shared__ bool last;
    if (threadIdx.x == 0) {
        __threadfence(); // what the block wrote, before its barrier, comes before the count
        last = atomicAdd(arrivals, 1) % parts == parts - 1u;
        __threadfence();
    }
    __syncthreads();
    return last;
}

/* One part of a head of a text; what it leaves for the others is at `place_of_head`. Its first positions are on their way ahead of the
 * gate: no launch of this token writes there. */
template <class Shape, class Out, class Gate>
__device__ void attend_head(const float *qkv, typename Shape::Number *cache, int position, Out *out, float scale,
                            int head, int part, int place_of_head, char *shared, Gate &gate) {
    const int first = head * Shape::group, end = first + Shape::group;
    typename Shape::Number *keys = cache + head * Shape::size, *own = keys + (int64_t)position * Shape::row;
    const StepPlace<Shape> place(keys, part, position);
    StepRows<Shape> rows;
    if (place.of_warp() < place.end)
        rows.read(place, place.begin());
    gate();
    if (Shape::parts > 1)
        __syncthreads(); // a tile before has left the shared memory
    auto &partials = step_partials<Shape>[place_of_head];
    for (int pass = 0; pass < Shape::passes && part < place.parts; pass++) {
        const int query = first + pass * Shape::pass, queries = min(Shape::pass, end - query);
        if (pass > 0 && place.of_warp() < place.end)
            rows.read(place, place.begin());
        attend_part<Shape>(qkv, place, rows, query, end, head, scale, own, (float *)shared);
        join_warps<Shape>((float *)shared, place.parts == 1, queries, partials[pass][part], out + query * Shape::size);
    }
    if (place.parts == 1 || !comes_last(&step_arrivals<Shape>[place_of_head], Shape::parts))
        return;
    for (int pass = 0; pass < Shape::passes; pass++) {
        const int query = first + pass * Shape::pass;
        join_parts<Shape>(partials[pass][0], place.parts, min(Shape::pass, end - query), out + query * Shape::size);
    }
}

template <class Shape, class Out, class Gate>
__device__ void attend_step(const float *qkv, typename Shape::Number *cache, int position, Out *out, float scale,
                            int tile, char *shared, Gate &gate) {
    const int place = tile / Shape::parts, text = place / Shape::keys;
    attend_head<Shape>(qkv + text * Shape::packed_row, cache + text * Shape::cache, position,
                       out + text * Shape::out_row, scale, place % Shape::keys, tile % Shape::parts, place, shared,
                       gate);
}

#endif
