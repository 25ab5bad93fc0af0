/* Attention of one position p over the keys and values of those before it, which lie in a cache, a row for each position:
 *
 *     cache[p]  = keys and values of qkv
 *     scores[j] = scale * sum over c of q[c] * k[j, c]           j <= p; p - j < window if any
 *     out[c]    = sum over j of softmax(scores)[j] * v[j, c]
 *
 *     tile: a head of keys         warps: positions p0, p0 + 8, ...        lanes: numbers of a head
 *
 *             position   0 1 2 3 4 5 6 7 8 9 ...       each warp adds up its own positions under the largest score that
 *             warp       0 1 2 3 4 5 6 7 0 1 ...       it met, four at a time; then the block puts the warps together
 *
 * There is one row to compute, so that all depends on how fast the cache is read: what is read of it serves all queries of
 * the head, PASS of them at a time. If the cache is of Narrow, q is rounded too, as where all positions are computed. */
#ifndef MTC_CUDA_ATTENTION_STEP_CUH
#define MTC_CUDA_ATTENTION_STEP_CUH

#include "cuda/team.cuh"

template <class Number_, int LENGTH, int QUERIES, int KEYS, int SIZE, int WINDOW> struct AttentionStep {
    using Number = Number_; // of the cache
    static constexpr int queries = QUERIES, keys = KEYS, size = SIZE, window = WINDOW;
    static constexpr int group = QUERIES / KEYS, row = 2 * KEYS * SIZE;
    static constexpr int pass = group < 4 ? group : 4;      // queries at a time
    static constexpr int each = (SIZE + LANES - 1) / LANES; // numbers of a head that a lane holds
    static constexpr int partial = SIZE + 2;                // of a warp and a query: largest score, weights, values
    static_assert(QUERIES % KEYS == 0, "query heads share key heads evenly");
};

template <class Shape> constexpr int attend_step_tiles() {
    return Shape::keys;
}

template <class Shape> constexpr int attend_step_shared() {
    return WARPS * Shape::pass * Shape::partial * (int)sizeof(float);
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

/* A head's numbers, dealt to the lanes: lane l has l, l + 32, ... */
template <class Shape> struct StepHead { float at[Shape::each]; };

template <class Shape, class Number> __device__ StepHead<Shape> load_step_head(const Number *head, int lane) {
    StepHead<Shape> part;
#pragma unroll
    for (int e = 0; e < Shape::each; e++) {
        int c = e * LANES + lane;
        part.at[e] = c < Shape::size ? cached_to_float(head[c]) : 0.0f;
    }
    return part;
}

/* What a warp has seen for one query: sums of weights exp(score - top). */
template <class Shape> struct StepSums {
    float top = -INFINITY, weights = 0;
    StepHead<Shape> values = {};

    __device__ void add(float score, const StepHead<Shape> &value) {
        float higher = fmaxf(top, score);
        float before = expf(top - higher), weight = expf(score - higher);
        top = higher;
        weights = fmaf(weights, before, weight);
#pragma unroll
        for (int e = 0; e < Shape::each; e++)
            values.at[e] = fmaf(values.at[e], before, weight * value.at[e]);
    }
};

/* Positions at, at + WARPS, ... of which those from `end` on are not there. */
template <class Shape>
__device__ void see_positions(const typename Shape::Number *keys, const typename Shape::Number *values, int at, int end,
                              const StepHead<Shape> *queries, float scale, int lane, StepSums<Shape> *seen) {
    constexpr int AT_ONCE = 4;
    StepHead<Shape> key[AT_ONCE], value[AT_ONCE];
#pragma unroll
    for (int u = 0; u < AT_ONCE; u++) {
        int64_t j = min(at + u * WARPS, end - 1);
        key[u] = load_step_head<Shape>(keys + j * Shape::row, lane);
        value[u] = load_step_head<Shape>(values + j * Shape::row, lane);
    }
#pragma unroll
    for (int u = 0; u < AT_ONCE; u++)
#pragma unroll
        for (int g = 0; g < Shape::pass; g++) {
            float sum = 0;
#pragma unroll
            for (int e = 0; e < Shape::each; e++)
                sum = fmaf(queries[g].at[e], key[u].at[e], sum);
            sum = lanes_reduce(sum, [](float a, float b) { return a + b; });
            if (at + u * WARPS < end)
                seen[g].add(scale * sum, value[u]);
        }
}

/* The sums of the warps, in their order, under the largest score of all. */
template <class Shape> __device__ void join_warps(const float *partials, int query, float *out) {
    for (int c = threadIdx.x; c < Shape::size; c += THREADS) {
        float top = -INFINITY, weights = 0, sum = 0;
        for (int warp = 0; warp < WARPS; warp++)
            top = fmaxf(top, partials[(warp * Shape::pass + query) * Shape::partial]);
        for (int warp = 0; warp < WARPS; warp++) {
            const float *partial = partials + (warp * Shape::pass + query) * Shape::partial;
            float factor = expf(partial[0] - top);
            weights = fmaf(partial[1], factor, weights);
            sum = fmaf(partial[2 + c], factor, sum);
        }
        out[c] = sum / weights;
    }
}

/* Some queries of a head of keys, from `query` on; of them those from `last` on do not exist. */
template <class Shape>
__device__ void attend_queries(const float *qkv, const typename Shape::Number *keys, int position, float *out,
                               float scale, int query, int last, float *partials) {
    using Number = typename Shape::Number;
    int warp = threadIdx.x / LANES, lane = threadIdx.x % LANES;
    int first = Shape::window && position >= Shape::window ? position - Shape::window + 1 : 0;
    StepHead<Shape> queries[Shape::pass];
    StepSums<Shape> seen[Shape::pass];
#pragma unroll
    for (int g = 0; g < Shape::pass; g++) {
        queries[g] = load_step_head<Shape>(qkv + min(query + g, last - 1) * Shape::size, lane);
#pragma unroll
        for (int e = 0; e < Shape::each; e++)
            queries[g].at[e] = cached_to_float(to_cached<Number>(queries[g].at[e]));
    }
    for (int at = first + warp; at <= position; at += 4 * WARPS)
        see_positions<Shape>(keys, keys + Shape::keys * Shape::size, at, position + 1, queries, scale, lane, seen);
#pragma unroll
    for (int g = 0; g < Shape::pass; g++) {
        float *partial = partials + (warp * Shape::pass + g) * Shape::partial;
        if (lane == 0) {
            partial[0] = seen[g].top;
            partial[1] = seen[g].weights;
        }
#pragma unroll
        for (int e = 0; e < Shape::each; e++)
            if (e * LANES + lane < Shape::size)
                partial[2 + e * LANES + lane] = seen[g].values.at[e];
    }
    __syncthreads();
    for (int g = 0; g < Shape::pass && query + g < last; g++)
        join_warps<Shape>(partials, g, out + (query + g) * Shape::size);
    __syncthreads();
}

template <class Shape>
__device__ void attend_step(const float *qkv, typename Shape::Number *cache, int position, float *out, float scale,
                            int tile, char *shared) {
    using Number = typename Shape::Number;
    constexpr int width = Shape::keys * Shape::size;
    Number *keys = cache + tile * Shape::size, *own = keys + (int64_t)position * Shape::row;
    const float *key = qkv + (Shape::queries + tile) * Shape::size;
    for (int c = threadIdx.x; c < Shape::size; c += THREADS) {
        own[c] = to_cached<Number>(key[c]);
        own[width + c] = to_cached<Number>(key[width + c]);
    }
    __syncthreads(); // the block reads the row that it wrote
    int last = (tile + 1) * Shape::group;
    for (int query = tile * Shape::group; query < last; query += Shape::pass)
        attend_queries<Shape>(qkv, keys, position, out, scale, query, last, (float *)shared);
}

#endif
