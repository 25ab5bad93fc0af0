/* Attention of one position p over the keys and values of those before it, which lie in a cache, a row for each position:
 *
 *     cache[p]  = keys and values of qkv
 *     scores[j] = scale * sum over c of q[c] * k[j, c]           j <= p; p - j < window if any
 *     out[c]    = sum over j of softmax(scores)[j] * v[j, c]
 *
 * qkv is of type real, the cache real or Narrow; then q is rounded too, as where all positions are computed, and out may be. A
 * thread computes a head of keys, and the queries that share it, in the order of the positions. */
#ifndef MTC_CPU_ATTENTION_STEP_H
#define MTC_CPU_ATTENTION_STEP_H

#include "math.h"
#include "operand.h"

typedef struct AttentionStep {
    int64_t length, queries, keys, size; /* size: at most STEP_WIDEST */
    int64_t window;                      /* 0: none */
    int64_t texts;                       /* at the position, each with a cache of its own */
} AttentionStep;

enum { STEP_WIDEST = 256 };

#define attend_step(shape, qkv, cache, position, out, scale)                                                           \
    attend_step_heads(shape, qkv, (Cached){cache, is_narrow(cache)}, position, (Cached){out, is_narrow(out)}, scale)

/* Numbers of a cache, or of a result, from one of them on. */
typedef struct Cached {
    void *at;
    bool narrow;
} Cached;

static inline Cached cached_from(Cached cache, int64_t first) {
    cache.at = (char *)cache.at + first * (int64_t)(cache.narrow ? sizeof(Narrow) : sizeof(real));
    return cache;
}

static inline real cached_number(Cached cache, int64_t c) {
    return cache.narrow ? to_float(((const Narrow *)cache.at)[c]) : ((const real *)cache.at)[c];
}

static inline void keep_numbers(Cached cache, const real *from, int64_t count) {
    for (int64_t c = 0; c < count; c++)
        if (cache.narrow)
            ((Narrow *)cache.at)[c] = to_narrow((float)from[c]);
        else
            ((real *)cache.at)[c] = from[c];
}

/* What one query has seen so far: its sums are of weights exp(score - top). */
typedef struct StepSums {
    real top, weights, values[STEP_WIDEST];
} StepSums;

static inline void add_position(StepSums *sums, real score, Cached value, int64_t size) {
    real top = score > sums->top ? score : sums->top;
    real before = exp(sums->top - top), weight = exp(score - top);
    sums->top = top;
    sums->weights = sums->weights * before + weight;
    for (int64_t c = 0; c < size; c++)
        sums->values[c] = sums->values[c] * before + weight * cached_number(value, c);
}

/* One query over the positions first .. last; `keys` and `values` are those of its head at position 0. */
static inline void attend_query(const AttentionStep *shape, const real *query, Cached keys, Cached values,
                                int64_t first, int64_t last, Cached out, real scale) {
    const int64_t row = 2 * shape->keys * shape->size;
    StepSums sums = {.top = -INFINITY};
    real q[STEP_WIDEST];
    for (int64_t c = 0; c < shape->size; c++)
        q[c] = keys.narrow ? to_float(to_narrow((float)query[c])) : query[c];
    for (int64_t j = first; j <= last; j++) {
        Cached key = cached_from(keys, j * row);
        real score = 0;
#pragma omp simd reduction(+ : score)
        for (int64_t c = 0; c < shape->size; c++)
            score += q[c] * cached_number(key, c);
        add_position(&sums, scale * score, cached_from(values, j * row), shape->size);
    }
    for (int64_t c = 0; c < shape->size; c++)
        sums.values[c] /= sums.weights;
    keep_numbers(out, sums.values, shape->size);
}

/* Head h of a text. */
static inline void attend_head(const AttentionStep *shape, const real *qkv, Cached cache, int position, Cached out,
                               real scale, int64_t h) {
    const int64_t size = shape->size, group = shape->queries / shape->keys, width = shape->keys * size;
    const int64_t first = shape->window && position >= shape->window ? position - shape->window + 1 : 0;
    Cached keys = cached_from(cache, h * size), values = cached_from(keys, width);
    const real *key = qkv + (shape->queries + h) * size;
    keep_numbers(cached_from(keys, position * 2 * width), key, size);
    keep_numbers(cached_from(values, position * 2 * width), key + width, size);
    for (int64_t q = h * group; q < (h + 1) * group; q++)
        attend_query(shape, qkv + q * size, keys, values, first, position, cached_from(out, q * size), scale);
}

static inline void attend_step_heads(const AttentionStep *shape, const real *qkv, Cached cache, int position,
                                     Cached out, real scale) {
    const int64_t width = shape->keys * shape->size, query = shape->queries * shape->size;
#pragma omp for collapse(2) nowait
    for (int64_t text = 0; text < shape->texts; text++)
        for (int64_t h = 0; h < shape->keys; h++)
            attend_head(shape, qkv + text * (query + 2 * width), cached_from(cache, text * shape->length * 2 * width),
                        position, cached_from(out, text * query), scale, h);
}

#endif
