/* Attention of small heads of short texts on CUDA cores: a thread has a row of its own in registers, and all lanes of a warp meet the same passing row, which
 * shared memory reads once for all of them:
 *
 *                          own             passing        sums
 *     attend               q               k, v           out, and of weights
 *     grad of queries      q, d_out        k, v           d_q
 *     grad of keys         k, v            q, d_out       d_k, d_v
 *
 * So no lane needs what another one has, and its registers leave room for further blocks on a multiprocessor. Where a tile has fewer rows than
 * threads, several warps, the `parts`, have the same rows: they take turns at runs of those that pass by, and what each has found is added up at
 * the end, in order. attention_plain.cuh says what weights and gradients are. */
#ifndef MTC_CUDA_ATTENTION_ROW_CUH
#define MTC_CUDA_ATTENTION_ROW_CUH

#include "cuda/attention_passing.cuh"

/* ---- a thread's row ---- */

template <class Form> struct RowPlace {
    int warp = threadIdx.x / LANES, part = warp / Form::groups;
    int first = warp % Form::groups * LANES, row = first + threadIdx.x % LANES; // of a warp, of a thread
};

/* Row `at` of a head, STRIDE numbers apart, or the last one, where there is no such row. */
template <class Form, int STRIDE, int LENGTH, class Number>
__device__ void own_row(float (&row)[Form::depth], const Number *head, int at) {
    const Number *from = head + (int64_t)min(at, LENGTH - 1) * STRIDE;
#pragma unroll
    for (int c = 0; c < Form::depth; c += Form::vector) {
        auto numbers = c < Form::size ? load_pack<Form::vector>(from + c) : Pack<Number, Form::vector>();
#pragma unroll
        for (int v = 0; v < Form::vector; v++)
            row[c + v] = c < Form::size ? of_number(numbers[v]) : 0;
    }
}

template <class Form, int STRIDE, int LENGTH, class Number>
__device__ void store_row(const float (&row)[Form::depth], Number *head, int at) {
    Number *to = head + (int64_t)at * STRIDE;
    if (at >= LENGTH)
        return;
#pragma unroll
    for (int c = 0; c < Form::size; c += Form::vector) {
        Pack<Number, Form::vector> numbers;
#pragma unroll
        for (int v = 0; v < Form::vector; v++)
            to_number(&numbers[v], row[c + v]);
        store_pack(to + c, numbers);
    }
}

template <int DEPTH> __device__ void passing_row(float (&row)[DEPTH], const float *from) {
#pragma unroll
    for (int c = 0; c < DEPTH; c += 4) {
        auto numbers = load_pack<4>(from + c);
#pragma unroll
        for (int v = 0; v < 4; v++)
            row[c + v] = numbers[v];
    }
}

template <int DEPTH> __device__ float dot_rows(const float (&x)[DEPTH], const float (&y)[DEPTH]) {
    float sum = 0;
#pragma unroll
    for (int c = 0; c < DEPTH; c++)
        sum = fmaf(x[c], y[c], sum);
    return sum;
}

template <int DEPTH> __device__ void scale_row(float (&row)[DEPTH], float factor) {
#pragma unroll
    for (int c = 0; c < DEPTH; c++)
        row[c] *= factor;
}

template <int DEPTH> __device__ void add_row(float (&sum)[DEPTH], float weight, const float (&row)[DEPTH]) {
#pragma unroll
    for (int c = 0; c < DEPTH; c++)
        sum[c] = fmaf(weight, row[c], sum[c]);
}

/* ---- parts ---- */

/* Calls use(at) for each run of a block that is the calling warp's part. */
template <class Form, class Use> __device__ void runs_of(const RowPlace<Form> &place, Use use) {
#pragma unroll 1
    for (int at = place.part * Form::run; at < Form::columns; at += Form::parts * Form::run)
        use(at);
}

/* Calls add(sums) in the threads of the first part with the sums of each other one for their row. */
template <class Form, int COUNT, class Add>
__device__ void join_parts(const RowPlace<Form> &place, const float (&own)[COUNT], float *shared, Add add) {
    if constexpr (Form::parts > 1) {
        shared += place.row;
        __syncthreads(); // nobody needs what lay there
#pragma unroll
        for (int c = 0; c < COUNT; c++)
            if (place.part > 0)
                shared[((place.part - 1) * COUNT + c) * Form::rows] = own[c];
        __syncthreads();
        for (int part = 0; part < Form::parts - 1 && place.part == 0; part++) {
            float sums[COUNT];
#pragma unroll
            for (int c = 0; c < COUNT; c++)
                sums[c] = shared[(part * COUNT + c) * Form::rows];
            add(sums);
        }
    }
}

template <class Form> __device__ void add_parts(const RowPlace<Form> &place, float (&sum)[Form::depth], float *shared) {
    join_parts(place, sum, shared, [&](const float(&other)[Form::depth]) { add_row(sum, 1, other); });
}

/* ---- attend ---- */

/* Of the keys that a query has met: their largest score, the sum of weights, and of weighted values. */
template <class Form> struct RowSeen {
    float top = -INFINITY, total = 0, out[Form::depth] = {};

    /* With a new largest score, earlier weights are smaller. Returns what is to be subtracted from scores. */
    __device__ float raise(float largest) {
        float base = largest == -INFINITY ? 0 : largest, factor = __expf(top - base);
        top = largest;
        total *= factor;
        scale_row(out, factor);
        return base;
    }
    __device__ void weigh(const float (&score)[Form::run], const float *values) {
        float largest = top;
#pragma unroll
        for (int j = 0; j < Form::run; j++)
            largest = fmaxf(largest, score[j]);
        float base = raise(largest);
#pragma unroll
        for (int j = 0; j < Form::run; j++) {
            float v[Form::depth], weight = __expf(score[j] - base);
            passing_row(v, values + j * Form::pitch);
            total += weight;
            add_row(out, weight, v);
        }
    }
    __device__ void join(const RowPlace<Form> &place, float *shared) {
        float own[Form::depth + 2] = {top, total};
#pragma unroll
        for (int c = 0; c < Form::depth; c++)
            own[2 + c] = out[c];
        join_parts(place, own, shared, [&](const float(&other)[Form::depth + 2]) {
            float base = raise(fmaxf(top, other[0])), factor = __expf(other[0] - base);
            total = fmaf(factor, other[1], total);
#pragma unroll
            for (int c = 0; c < Form::depth; c++)
                out[c] = fmaf(factor, other[2 + c], out[c]);
        });
    }
};

template <class Shape>
__device__ void attend_row_queries(const typename Shape::Number *qkv, typename Shape::Number *out, float *sums,
                                   float scale, int example, int head, int first, char *shared) {
    using Form = RowForm<Shape, 1>;
    constexpr int length = Shape::length;
    const auto *rows = qkv + (int64_t)example * length * Shape::row;
    const RowPlace<Form> place;
    const PlainSpan keys = keys_seen<Shape>(first, Form::rows, Form::columns);
    const int query = first + place.row;
    float *passing = (float *)shared, q[Form::depth];
    RowSeen<Form> seen;

    auto fetch = [&](int step, int buffer) {
        float *block = passing + buffer * Form::buffer;
        fetch_keys_of<Shape, Form, Form::columns>(rows, block, block + Form::passing_floats, head / Shape::group,
                                                  keys.first + step * Form::columns);
    };
    auto use = [&](int step, int buffer) {
        runs_of(place, [&](int at) {
            const float *block = passing + buffer * Form::buffer + at * Form::pitch;
            int key = keys.first + step * Form::columns + at;
            if (key >= length || !any_sees<Shape>(first + place.first, LANES, key, Form::run))
                return;
            float score[Form::run];
#pragma unroll
            for (int j = 0; j < Form::run; j++) {
                float k[Form::depth];
                passing_row(k, block + j * Form::pitch);
                bool sees = plain_sees<Shape, Form::columns>(query, key + j);
                score[j] = sees ? scale * dot_rows(q, k) : -INFINITY;
            }
            seen.weigh(score, block + Form::passing_floats);
        });
    };

    own_row<Form, Shape::row, length>(q, rows + Shape::query_head(head), query);
    pass_by<Form>(divide_up(keys.end - keys.first, Form::columns), fetch, use);
    seen.join(place, passing);
    if (place.part > 0)
        return;
    scale_row(seen.out, 1 / seen.total);
    if (sums && query < length)
        sums[((int64_t)example * length + query) * Shape::queries + head] = seen.top + logf(seen.total);
    store_row<Form, Shape::out_row, length>(
        seen.out, out + (int64_t)example * length * Shape::out_row + Shape::query_head(head), query);
}

/* ---- gradient ---- */

template <class Shape>
__device__ void attend_row_grad_queries(const PlainExample<Shape> &from, typename Shape::Number *d_rows, float scale,
                                        int head, int first, float *shared) {
    using Form = RowForm<Shape, 2>;
    constexpr int length = Shape::length;
    const RowPlace<Form> place;
    const PlainSpan keys = keys_seen<Shape>(first, Form::rows, Form::columns);
    const int query = first + place.row, number = min(query, length - 1) * Shape::queries + head;
    const float sum = from.sums[number], dot = from.dots[number];
    float q[Form::depth], d[Form::depth], d_q[Form::depth] = {};

    auto fetch = [&](int step, int buffer) {
        float *block = shared + buffer * Form::buffer;
        from.template fetch_keys<Form, Form::columns>(block, block + Form::passing_floats, head / Shape::group,
                                                      keys.first + step * Form::columns);
    };
    auto use = [&](int step, int buffer) {
        runs_of(place, [&](int at) {
            const float *block = shared + buffer * Form::buffer + at * Form::pitch;
            int key = keys.first + step * Form::columns + at;
            if (key >= length || !any_sees<Shape>(first + place.first, LANES, key, Form::run))
                return;
#pragma unroll 2
            for (int j = 0; j < Form::run; j++) {
                float k[Form::depth], v[Form::depth];
                passing_row(k, block + j * Form::pitch);
                passing_row(v, block + Form::passing_floats + j * Form::pitch);
                float score = dot_rows(q, k), gradient = dot_rows(d, v);
                unweigh(plain_sees<Shape, Form::columns>(query, key + j), scale, sum, dot, score, gradient);
                add_row(d_q, gradient, k);
            }
        });
    };

    own_row<Form, Shape::row, length>(q, from.rows + Shape::query_head(head), query);
    own_row<Form, Shape::out_row, length>(d, from.d_rows + Shape::query_head(head), query);
    pass_by<Form>(divide_up(keys.end - keys.first, Form::columns), fetch, use);
    add_parts(place, d_q, shared);
    if (place.part == 0)
        store_row<Form, Shape::row, length>(d_q, d_rows + Shape::query_head(head), query);
}

template <class Shape>
__device__ void attend_row_grad_keys(const PlainExample<Shape> &from, typename Shape::Number *d_rows, float scale,
                                     int head, int first, float *shared) {
    using Form = RowForm<Shape, 2>;
    constexpr int length = Shape::length;
    const RowPlace<Form> place;
    const PlainSpan queries = queries_seeing<Shape>(first, Form::rows, Form::columns);
    const int steps = divide_up(queries.end - queries.first, Form::columns); // of each head of the group
    const int key = first + place.row;
    float k[Form::depth], v[Form::depth], d_k[Form::depth] = {}, d_v[Form::depth] = {};

    auto fetch = [&](int step, int buffer) {
        float *block = shared + buffer * Form::buffer;
        int query = queries.first + step % steps * Form::columns, query_head = head * Shape::group + step / steps;
        from.template fetch_queries<Form, Form::columns>(block, block + Form::passing_floats, query_head, query);
        from.template fetch_numbers<Form::columns>(block + 2 * Form::passing_floats, query_head, query);
    };
    auto use = [&](int step, int buffer) {
        runs_of(place, [&](int at) {
            const float *block = shared + buffer * Form::buffer, *numbers = block + 2 * Form::passing_floats + at;
            int query = queries.first + step % steps * Form::columns + at;
            if (query >= length || !any_sees<Shape>(query, Form::run, first + place.first, LANES))
                return;
            block += at * Form::pitch;
#pragma unroll 2
            for (int j = 0; j < Form::run; j++) {
                float q[Form::depth], d[Form::depth];
                passing_row(q, block + j * Form::pitch);
                passing_row(d, block + Form::passing_floats + j * Form::pitch);
                float score = dot_rows(k, q), gradient = dot_rows(v, d);
                unweigh(plain_sees<Shape, Form::columns>(query + j, key), scale, numbers[j], numbers[Form::columns + j],
                        score, gradient);
                add_row(d_v, score, d);
                add_row(d_k, gradient, q);
            }
        });
    };

    own_row<Form, Shape::row, length>(k, from.rows + Shape::key_head(head), key);
    own_row<Form, Shape::row, length>(v, from.rows + Shape::value_head(head), key);
    pass_by<Form>(Shape::group * steps, fetch, use);
    add_parts(place, d_k, shared);
    add_parts(place, d_v, shared);
    if (place.part > 0)
        return;
    store_row<Form, Shape::row, length>(d_k, d_rows + Shape::key_head(head), key);
    store_row<Form, Shape::row, length>(d_v, d_rows + Shape::value_head(head), key);
}

#endif
