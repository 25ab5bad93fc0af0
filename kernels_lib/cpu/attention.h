/* Attention: every query takes a mean of the values, weighted by how well the keys fit it.
 *
 *     scores[i, j] = scale * sum over c of q[i, c] * k[j, c]          j seen by i: j <= i if causal, i - j < window if any
 *     sums[i]      = log(sum over j of exp(scores[i, j]))
 *     weights[i, j] = exp(scores[i, j] - sums[i])
 *     out[i, c]    = sum over j of weights[i, j] * v[j, c]
 *
 * and, of the gradient d_out of out, with dots[i] = sum over c of d_out[i, c] * out[i, c],
 *
 *     d_scores[i, j] = weights[i, j] * (sum over c of d_out[i, c] * v[j, c] - dots[i])
 *     d_q = scale * d_scores k,    d_k = scale * d_scores' q,    d_v = weights' d_out
 *
 * A row of qkv has the heads of a token: `queries` queries, then `keys` keys, then `keys` values, of `size` numbers each.
 * queries / keys neighbouring queries share a key and a value. qkv, out and their gradients are of type real or Narrow,
 * sums and dots [batch * length, queries] real; attend has no use for sums when they are NULL.
 *
 *                    keys -->                      A block of queries runs over the keys that it sees, block by block.
 *             +-------+-------+-------+            The largest score so far is subtracted from all, and what was added
 *     block   | s     | s     | s   \ |            up under a smaller one is scaled down: scores of a block are all that
 *     of      |       |       |       |            is ever stored. The gradient of a block of queries runs over keys in
 *     queries +-------+-------+-------+            the same way, that of a block of keys over the queries that see it.
 *
 * All threads of a team call the functions together, inside a parallel region; each output has one thread that computes
 * it, in the same order whatever their number. */
#ifndef MTC_CPU_ATTENTION_H
#define MTC_CPU_ATTENTION_H

#include "math.h"
#include "matmul.h"
#include "team.h"

typedef struct Attention {
    int64_t batch, length, queries, keys, size; /* size: at most ATTEND_WIDEST */
    bool causal;
    int64_t window; /* 0: none */
} Attention;

enum {
    ATTEND_WIDEST = 256,
    ATTEND_BLOCK = 64, /* queries or keys; a thread computes so many */
    ATTEND_SCORES = ATTEND_BLOCK * ATTEND_BLOCK,
    ATTEND_HELD =
        (1 << 17) / (int)sizeof(real) /* numbers of all keys of a head whose gradients one thread holds, in 128 KB */
};

/* Where results go, of type real or Narrow. */
typedef struct Numbers {
    void *at;
    bool narrow;
} Numbers;

#define attend(shape, qkv, out, sums, scale)                                                                           \
    attend_heads(shape, matrix(qkv, packed_width(shape)), (Numbers){out, is_narrow(out)}, sums, scale)
#define attend_grad(shape, qkv, sums, dots, d_out, d_qkv, scale)                                                       \
    attend_grad_heads(shape, matrix(qkv, packed_width(shape)), sums, dots, matrix(d_out, query_width(shape)),          \
                      (Numbers){d_qkv, is_narrow(d_qkv)}, scale)

static inline int query_width(const Attention *shape) {
    return (int)(shape->queries * shape->size);
}

static inline int packed_width(const Attention *shape) {
    return (int)((shape->queries + 2 * shape->keys) * shape->size);
}

/* Products write vectors of 16: what there is beyond the numbers asked for is of no use, but needs room. */
static inline int whole_vectors(int count) {
    return (count + 15) / 16 * 16;
}

/* Numbers of a row of a block of queries, keys or values. */
static inline int attention_stride(const Attention *shape) {
    return whole_vectors((int)shape->size);
}

/* ---- who sees whom ---- */

typedef struct Span {
    int first, end;
} Span;

static inline bool is_in(Span span, int at) {
    return (at >= span.first) & (at < span.end); /* no branch, for vector code */
}

/* The keys that any of `count` queries sees. */
static inline Span keys_seen(const Attention *shape, int query, int count) {
    int64_t first = shape->window > 0 ? query - shape->window + 1 : 0;
    int64_t end = shape->causal ? query + count : shape->length;
    return (Span){first > 0 ? (int)first : 0, (int)end};
}

/* The queries that see any of `count` keys. */
static inline Span queries_seeing(const Attention *shape, int key, int count) {
    int64_t end = shape->window > 0 ? key + count - 1 + shape->window : shape->length;
    return (Span){shape->causal ? key : 0, (int)(end < shape->length ? end : shape->length)};
}

/* The part of a block of `count` keys from `first` on that a query sees, as positions in the block; maybe none. */
static inline Span part_seen(const Attention *shape, int query, int first, int count) {
    Span seen = keys_seen(shape, query, 1);
    int end = least(seen.end - first, count);
    return (Span){seen.first > first ? seen.first - first : 0, end > 0 ? end : 0};
}

/* ---- one head ---- */

typedef struct Head {
    const Attention *shape;
    Matrix q, k, v, d_out;   /* row t is the token at t */
    const real *sums, *dots; /* of the first query */
    real scale;
} Head;

/* The columns of head `head`, the rows of an example. */
static inline Matrix head_matrix(const Attention *shape, Matrix all, int64_t example, int64_t head) {
    return columns_from(rows_from(all, (int)(example * shape->length)), (int)(head * shape->size));
}

/* Query `query` of an example, and the key and value that it goes with. */
static inline Head head_of(const Attention *shape, Matrix qkv, int64_t example, int64_t query, real scale) {
    int64_t key = shape->queries + query / (shape->queries / shape->keys);
    return (Head){.shape = shape,
                  .q = head_matrix(shape, qkv, example, query),
                  .k = head_matrix(shape, qkv, example, key),
                  .v = head_matrix(shape, qkv, example, key + shape->keys),
                  .scale = scale};
}

/* Rows of a stride of attention_stride to the columns of head `head` of rows of `width` numbers, from row `first` on. */
static inline void store_head(Numbers to, int width, int64_t first, int64_t head, const Attention *shape,
                              const real *from, int rows) {
    int size = (int)shape->size;
    for (int i = 0; i < rows; i++, from += attention_stride(shape)) {
        int64_t at = (first + i) * width + head * size;
        if (to.narrow)
            for (int c = 0; c < size; c++)
                ((Narrow *)to.at)[at + c] = to_narrow((float)from[c]);
        else
            memcpy((real *)to.at + at, from, sizeof(real) * (size_t)size);
    }
}

/* A block of `rows` rows of attention_stride. */
static inline void zero_block(real *block, int rows, const Attention *shape) {
    zero_numbers(block, (rows + 7) / 8 * 8 * attention_stride(shape));
}

/* ---- forward ---- */

/* What a query has seen so far. */
typedef struct Seen {
    real top, sum; /* the largest score, and the sum of exp(score - top) */
} Seen;

/* Scores become exp(score - top), or 0 where the key is not seen. Returns by what earlier sums are to be multiplied. */
static inline real weigh(real *score, int columns, Span part, real scale, Seen *seen) {
    int end = whole_vectors(part.end);
    real top = seen->top, sum = 0;
#pragma omp simd reduction(max : top)
    for (int j = 0; j < end; j++) {
        real s = is_in(part, j) ? scale * score[j] : -INFINITY;
        top = s > top ? s : top;
    }
#pragma omp simd reduction(+ : sum)
    for (int j = 0; j < end; j++) {
        real weight = exp(scale * score[j] - top);
        score[j] = weight = is_in(part, j) ? weight : 0;
        sum += weight;
    }
    zero_numbers(score + end, columns > end ? columns - end : 0);
    real factor = top > seen->top && seen->sum > 0 ? exp(seen->top - top) : 1;
    *seen = (Seen){top, seen->sum * factor + sum};
    return factor;
}

/* out of `rows` queries from `first` on, and their sums. */
static inline void attend_block(const Head *head, int first, int rows, real *out, real *sums) {
    const Attention *shape = head->shape;
    real score[ATTEND_SCORES] __attribute__((aligned(64)));
    Seen seen[ATTEND_BLOCK];
    Span keys = keys_seen(shape, first, rows);
    int stride = attention_stride(shape), size = (int)shape->size;
    for (int i = 0; i < rows; i++)
        seen[i] = (Seen){-INFINITY, 0};
    zero_block(out, rows, shape);
    for (int j = keys.first; j < keys.end; j += ATTEND_BLOCK) {
        int columns = least(keys.end - j, ATTEND_BLOCK);
        matmul(score, ATTEND_BLOCK, head->q, transposed(head->k), first, j, rows, columns, size);
        for (int i = 0; i < rows; i++) {
            Span part = part_seen(shape, first + i, j, columns);
            real factor = weigh(score + i * ATTEND_BLOCK, columns, part, head->scale, seen + i);
            for (int c = 0; c < stride; c++)
                out[i * stride + c] *= factor;
        }
        matmul_add(out, stride, matrix(score, ATTEND_BLOCK), rows_from(head->v, j), 0, 0, rows, size, columns);
    }
    for (int i = 0; i < rows; i++) {
        sums[i] = seen[i].top + log(seen[i].sum);
        for (int c = 0; c < stride; c++)
            out[i * stride + c] /= seen[i].sum;
    }
}

static inline void attend_heads(const Attention *shape, Matrix qkv, Numbers out, real *sums, real scale) {
    int length = (int)shape->length;
#pragma omp for collapse(3) nowait
    for (int64_t example = 0; example < shape->batch; example++)
        for (int64_t query = 0; query < shape->queries; query++)
            for (int first = 0; first < length; first += ATTEND_BLOCK) {
                real block[ATTEND_BLOCK * ATTEND_WIDEST] __attribute__((aligned(64))), block_sums[ATTEND_BLOCK];
                Head head = head_of(shape, qkv, example, query, scale);
                int rows = least(length - first, ATTEND_BLOCK);
                int64_t row = example * length + first;
                attend_block(&head, first, rows, block, block_sums);
                store_head(out, query_width(shape), row, query, shape, block, rows);
                for (int i = 0; i < rows && sums; i++)
                    sums[(row + i) * shape->queries + query] = block_sums[i];
            }
}

/* ---- gradient ---- */

/* Scores become weights, and gradients of weights those of scores, multiplied by scale. 0: of keys that are not seen. */
static inline void unweigh(real *weight, real *gradient, int columns, Span part, real scale, real sum, real dot) {
    int end = whole_vectors(part.end);
#pragma omp simd
    for (int j = 0; j < end; j++) {
        bool seen = is_in(part, j);
        real w = exp(scale * weight[j] - sum), g = w * (gradient[j] - dot) * scale;
        weight[j] = seen ? w : 0;
        gradient[j] = seen ? g : 0;
    }
    int rest = columns > end ? columns - end : 0;
    zero_numbers(weight + end, rest);
    zero_numbers(gradient + end, rest);
}

/* Of `rows` queries from i on and `columns` keys from j on: weights, and scale times the gradients of scores. */
static inline void attend_grad_scores(const Head *head, int i, int j, int rows, int columns, real *weight,
                                      real *gradient) {
    int size = (int)head->shape->size;
    matmul(weight, ATTEND_BLOCK, head->q, transposed(head->k), i, j, rows, columns, size);
    matmul(gradient, ATTEND_BLOCK, head->d_out, transposed(head->v), i, j, rows, columns, size);
    for (int r = 0; r < rows; r++) {
        int64_t at = (i + r) * head->shape->queries;
        unweigh(weight + r * ATTEND_BLOCK, gradient + r * ATTEND_BLOCK, columns,
                part_seen(head->shape, i + r, j, columns), head->scale, head->sums[at], head->dots[at]);
    }
}

/* Adds to d_k and d_v of a block of keys what weights and gradients of scores of queries from i on give. */
static inline void attend_grad_add_keys(const Head *head, int i, int rows, int columns, const real *weight,
                                        const real *gradient, real *d_k, real *d_v) {
    int stride = attention_stride(head->shape), size = (int)head->shape->size;
    matmul_add(d_k, stride, transposed(matrix(gradient, ATTEND_BLOCK)), rows_from(head->q, i), 0, 0, columns, size,
               rows);
    matmul_add(d_v, stride, transposed(matrix(weight, ATTEND_BLOCK)), rows_from(head->d_out, i), 0, 0, columns, size,
               rows);
}

/* d_q of `rows` queries from `first` on. Adds what they give to d_k and d_v, of all keys, unless these are NULL. */
static inline void attend_grad_queries(const Head *head, int first, int rows, real *d_q, real *d_k, real *d_v) {
    real weight[ATTEND_SCORES] __attribute__((aligned(64))), gradient[ATTEND_SCORES] __attribute__((aligned(64)));
    Span keys = keys_seen(head->shape, first, rows);
    int stride = attention_stride(head->shape), size = (int)head->shape->size;
    zero_block(d_q, rows, head->shape);
    /* Products write rows of whole vectors: a block ends where the next one begins, or with all keys. */
    for (int j = keys.first / ATTEND_BLOCK * ATTEND_BLOCK; j < keys.end; j += ATTEND_BLOCK) {
        int columns = least(keys.end - j, ATTEND_BLOCK);
        attend_grad_scores(head, first, j, rows, columns, weight, gradient);
        matmul_add(d_q, stride, matrix(gradient, ATTEND_BLOCK), rows_from(head->k, j), 0, 0, rows, size, columns);
        if (d_k)
            attend_grad_add_keys(head, first, rows, columns, weight, gradient, d_k + j * stride, d_v + j * stride);
    }
}

/* Adds to d_k and d_v of `columns` keys from `first` on what the queries of one head give. */
static inline void attend_grad_keys(const Head *head, int first, int columns, real *d_k, real *d_v) {
    real weight[ATTEND_SCORES] __attribute__((aligned(64))), gradient[ATTEND_SCORES] __attribute__((aligned(64)));
    Span queries = queries_seeing(head->shape, first, columns);
    for (int i = queries.first; i < queries.end; i += ATTEND_BLOCK) {
        int rows = least(queries.end - i, ATTEND_BLOCK);
        attend_grad_scores(head, i, first, rows, columns, weight, gradient);
        attend_grad_add_keys(head, i, rows, columns, weight, gradient, d_k, d_v);
    }
}

/* What is read and written by all heads. */
typedef struct AttentionGrad {
    const Attention *shape;
    Matrix qkv, d_out;
    const real *sums, *dots;
    Numbers d_qkv;
    real scale;
} AttentionGrad;

static inline Head grad_head_of(const AttentionGrad *grad, int64_t example, int64_t query) {
    int64_t first = example * grad->shape->length * grad->shape->queries + query;
    Head head = head_of(grad->shape, grad->qkv, example, query, grad->scale);
    head.d_out = head_matrix(grad->shape, grad->d_out, example, query);
    head.sums = grad->sums + first;
    head.dots = grad->dots + first;
    return head;
}

/* A block of queries: their gradients, and those that they give all keys unless d_k is NULL. */
static inline void attend_grad_query_block(const AttentionGrad *grad, int64_t example, int64_t query, int first,
                                           real *d_k, real *d_v) {
    const Attention *shape = grad->shape;
    real d_q[ATTEND_BLOCK * ATTEND_WIDEST] __attribute__((aligned(64)));
    Head head = grad_head_of(grad, example, query);
    int rows = least((int)shape->length - first, ATTEND_BLOCK);
    attend_grad_queries(&head, first, rows, d_q, d_k, d_v);
    store_head(grad->d_qkv, packed_width(shape), example * shape->length + first, query, shape, d_q, rows);
}

/* d_k and d_v of `rows` keys from `first` on. */
static inline void store_keys(const AttentionGrad *grad, int64_t example, int64_t key, int first, int rows,
                              const real *d_k, const real *d_v) {
    const Attention *shape = grad->shape;
    int64_t row = example * shape->length + first, place = shape->queries + key;
    store_head(grad->d_qkv, packed_width(shape), row, place, shape, d_k, rows);
    store_head(grad->d_qkv, packed_width(shape), row, place + shape->keys, shape, d_v, rows);
}

static inline void attend_grad_key_block(const AttentionGrad *grad, int64_t example, int64_t key, int first) {
    const Attention *shape = grad->shape;
    real d_k[ATTEND_BLOCK * ATTEND_WIDEST] __attribute__((aligned(64)));
    real d_v[ATTEND_BLOCK * ATTEND_WIDEST] __attribute__((aligned(64)));
    int rows = least((int)shape->length - first, ATTEND_BLOCK), group = (int)(shape->queries / shape->keys);
    zero_block(d_k, rows, shape);
    zero_block(d_v, rows, shape);
    for (int64_t query = key * group; query < (key + 1) * group; query++) {
        Head head = grad_head_of(grad, example, query);
        attend_grad_keys(&head, first, rows, d_k, d_v);
    }
    store_keys(grad, example, key, first, rows, d_k, d_v);
}

/* A key with its value and its queries, of all tokens. */
static inline void attend_grad_group(const AttentionGrad *grad, int64_t example, int64_t key) {
    const Attention *shape = grad->shape;
    real d_k[ATTEND_HELD] __attribute__((aligned(64))), d_v[ATTEND_HELD] __attribute__((aligned(64)));
    int length = (int)shape->length, group = (int)(shape->queries / shape->keys);
    zero_block(d_k, length, shape);
    zero_block(d_v, length, shape);
    for (int64_t query = key * group; query < (key + 1) * group; query++)
        for (int first = 0; first < length; first += ATTEND_BLOCK)
            attend_grad_query_block(grad, example, query, first, d_k, d_v);
    store_keys(grad, example, key, 0, length, d_k, d_v);
}

/* Whether a thread had better hold the gradients of all keys of a head, where each weight is computed once instead of twice:
 * where they fit, and there are heads enough for all threads. The bits are the same. */
static inline bool attend_grad_in_groups(const Attention *shape) {
    int64_t rows = (shape->length + 7) / 8 * 8;
    return rows * attention_stride(shape) <= ATTEND_HELD && shape->batch * shape->keys >= 4 * omp_get_num_threads();
}

static inline void attend_grad_heads(const Attention *shape, Matrix qkv, const real *sums, const real *dots,
                                     Matrix d_out, Numbers d_qkv, real scale) {
    AttentionGrad grad = {shape, qkv, d_out, sums, dots, d_qkv, scale};
    int length = (int)shape->length;
    if (attend_grad_in_groups(shape)) {
#pragma omp for collapse(2) nowait
        for (int64_t example = 0; example < shape->batch; example++)
            for (int64_t key = 0; key < shape->keys; key++)
                attend_grad_group(&grad, example, key);
        return;
    }
#pragma omp for collapse(3) nowait
    for (int64_t example = 0; example < shape->batch; example++)
        for (int64_t query = 0; query < shape->queries; query++)
            for (int first = 0; first < length; first += ATTEND_BLOCK)
                attend_grad_query_block(&grad, example, query, first, NULL, NULL);
#pragma omp for collapse(3) nowait
    for (int64_t example = 0; example < shape->batch; example++)
        for (int64_t key = 0; key < shape->keys; key++)
            for (int first = 0; first < length; first += ATTEND_BLOCK)
                attend_grad_key_block(&grad, example, key, first);
}

#endif
