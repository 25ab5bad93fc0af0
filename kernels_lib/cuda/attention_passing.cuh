/* Attention on CUDA cores: rows of heads that pass by, in blocks, through shared memory, for attention_plain.cuh and attention_row.cuh. A Form says
 * how rows lie there: `size` numbers of a head, `depth` with zeros behind them, `pitch` apart, and how many `buffers` there are. */
#ifndef MTC_CUDA_ATTENTION_PASSING_CUH
#define MTC_CUDA_ATTENTION_PASSING_CUH

#include "cuda/attention_form.cuh"
#include <cuda_pipeline.h>

/* ---- who meets whom ---- */

struct PlainSpan {
    int first, end;
};

/* The keys that queries `first` .. `first` + `count` see, the queries that see such keys; from a multiple of `step` on. */
template <class Shape> __device__ PlainSpan keys_seen(int first, int count, int step) {
    int begin = Shape::window > 0 ? max(first - Shape::window + 1, 0) : 0;
    return {begin / step * step, Shape::causal ? min(first + count, Shape::length) : Shape::length};
}
template <class Shape> __device__ PlainSpan queries_seeing(int first, int count, int step) {
    int end = Shape::window > 0 ? min(first + count - 1 + Shape::window, Shape::length) : Shape::length;
    return {Shape::causal ? first / step * step : 0, end};
}

/* Whether any of `queries` queries from `query` on sees any of `keys` keys from `key` on. */
template <class Shape> __device__ bool any_sees(int query, int queries, int key, int keys) {
    return (!Shape::causal || key < query + queries) &&
           (Shape::window == 0 || query - (key + keys - 1) < Shape::window);
}

/* A query that exists, a key that exists, seen; blocks that begin at a multiple of STEP. */
template <class Shape, int STEP> __device__ bool plain_sees(int query, int key) {
    bool exist = Shape::length % STEP == 0 || (query < Shape::length && key < Shape::length);
    return exist && Shape::sees(query, key);
}

/* ---- rows in shared memory ---- */

/* Begins to bring ROWS rows of a head, STRIDE numbers apart, from row `first` on; what does not exist is 0. */
template <class Form, int ROWS, int STRIDE, int LENGTH, class Number>
__device__ void fetch_rows(float *to, const Number *head, int first) {
    constexpr int size = Form::size, vector = size % 4 == 0 ? 4 : 1, per_row = Form::depth / vector;
    constexpr int pieces = ROWS * per_row;
#pragma unroll 4
    for (int begin = 0; begin < pieces; begin += THREADS) {
        int piece = begin + threadIdx.x;
        if (pieces % THREADS != 0 && piece >= pieces)
            break;
        int row = piece / per_row, c = piece % per_row * vector;
        bool inside = first + row < LENGTH && c < size;
        const Number *from = head + (inside ? (int64_t)(first + row) * STRIDE + c : 0);
        float *place = to + row * Form::pitch + c;
        if constexpr (sizeof(Number) == sizeof(float)) {
            constexpr size_t bytes = vector * sizeof(float);
            __pipeline_memcpy_async(place, from, bytes, inside ? 0 : bytes);
        } else {
            auto numbers = load_pack<vector>(from);
            Pack<float, vector> floats;
#pragma unroll
            for (int v = 0; v < vector; v++)
                floats[v] = inside ? to_float(numbers[v]) : 0;
            store_pack(place, floats);
        }
    }
}

/* The same of a key head and its value. */
template <class Shape, class Form, int ROWS>
__device__ void fetch_keys_of(const typename Shape::Number *rows, float *k, float *v, int head, int first) {
    fetch_rows<Form, ROWS, Shape::row, Shape::length>(k, rows + Shape::key_head(head), first);
    fetch_rows<Form, ROWS, Shape::row, Shape::length>(v, rows + Shape::value_head(head), first);
}

static inline __device__ float of_number(float x) {
    return x;
}
static inline __device__ float of_number(Narrow x) {
    return to_float(x);
}
static inline __device__ void to_number(float *to, float x) {
    *to = x;
}
static inline __device__ void to_number(Narrow *to, float x) {
    *to = to_narrow(x);
}

/* Calls fetch(step, buffer) and use(step, buffer) for every step, once what was fetched has arrived. */
template <class Form, class Fetch, class Use> __device__ void pass_by(int steps, Fetch fetch, Use use) {
    auto begin = [&](int step) {
        if (step < steps)
            fetch(step, step % Form::buffers);
        __pipeline_commit();
    };
    if (Form::buffers > 1)
        begin(0);
    for (int step = 0; step < steps; step++) {
        if (Form::buffers == 1) {
            __syncthreads(); // the block before has been used
            begin(step);
        }
        __pipeline_wait_prior(0);
        __syncthreads();
        if (Form::buffers > 1)
            begin(step + 1); // over the block that was used before the barrier
        use(step, step % Form::buffers);
    }
}

/* ---- of a gradient ---- */

/* Query and key heads of one example. */
template <class Shape> struct PlainExample {
    using Number = typename Shape::Number;
    const Number *rows, *d_rows; // of qkv and of d_out
    const float *sums, *dots;

    __device__ PlainExample(const Number *qkv, const float *sums, const float *dots, const Number *d_out, int example)
        : rows(qkv + (int64_t)example * Shape::length * Shape::row),
          d_rows(d_out + (int64_t)example * Shape::length * Shape::out_row),
          sums(sums + (int64_t)example * Shape::length * Shape::queries),
          dots(dots + (int64_t)example * Shape::length * Shape::queries) {
    }
    /* A block of rows of a query head and of its d_out; of a key head and its value. */
    template <class Form, int ROWS> __device__ void fetch_queries(float *q, float *d, int head, int first) const {
        fetch_rows<Form, ROWS, Shape::row, Shape::length>(q, rows + Shape::query_head(head), first);
        fetch_rows<Form, ROWS, Shape::out_row, Shape::length>(d, d_rows + Shape::query_head(head), first);
    }
    template <class Form, int ROWS> __device__ void fetch_keys(float *k, float *v, int head, int first) const {
        fetch_keys_of<Shape, Form, ROWS>(rows, k, v, head, first);
    }
    /* The sums of COUNT queries of a head, then their dots. */
    template <int COUNT> __device__ void fetch_numbers(float *to, int head, int first) const {
        for (int begin = 0; begin < 2 * COUNT; begin += THREADS) {
            int e = begin + threadIdx.x;
            if (2 * COUNT % THREADS != 0 && e >= 2 * COUNT)
                break;
            int query = first + e % COUNT;
            bool inside = query < Shape::length;
            const float *from = (e < COUNT ? sums : dots) + (inside ? query * Shape::queries + head : 0);
            __pipeline_memcpy_async(to + e, from, sizeof(float), inside ? 0 : sizeof(float));
        }
    }
};

/* The gradient of a score by way of its weight: scores become weights, and gradients of weights those of scores times scale,
 * both 0 where a query does not see. */
static inline __device__ void unweigh(bool sees, float scale, float sum, float dot, float &score, float &gradient) {
    float weight = sees ? __expf(fmaf(scale, score, -sum)) : 0;
    gradient = sees ? scale * weight * (gradient - dot) : 0;
    score = weight;
}

#endif
