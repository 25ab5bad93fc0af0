/* Attention on CUDA cores: all sizes up to 256, floats or numbers of 16 bits, every product and sum in f32.
 *
 * A tile owns `rows` positions of one head, which lie in shared memory; those that they meet pass by in blocks of `columns`,
 * the next on its way while one is in use where there is room. Each warp has 4 x ROWS rows of its own, and a thread ROWS x
 * COLUMNS scores of theirs. Its lanes stand 4 down and 8 across:
 *
 *     row    0   lane 0  lane 1 ... lane 7 | lane 0 ...     a thread's rows are 4 apart, its columns 8: a load of four
 *            1   lane 8  lane 9 ...        |                neighbouring numbers of 4 rows, or 8 columns, meets every
 *            2                             |                bank of shared memory once
 *            3
 *            4   lane 0 ...
 *
 *                       s        g             weights                      results
 *     attend            q k'                   exp(scale s - max so far)    out += w v, divided by the sum of w at the end
 *     grad of queries   q k'     d_out v'      exp(scale s - sum)           d_q += h k            h = scale w (g - dot)
 *     grad of keys      k q'     v d_out'      exp(scale s - sum)           d_k += h q,  d_v += w d_out
 *
 * where ' transposes, `sum` is the logarithm that attend has kept, and dot = d_out . out of the query. The gradient computes
 * the weights twice, for tiles of queries and for tiles of keys: no tile adds to what another has written.
 *
 * Operands begin at multiples of 16 bytes, and so does the shared memory. `sums` may be null in attend. */
#ifndef MTC_CUDA_ATTENTION_PLAIN_CUH
#define MTC_CUDA_ATTENTION_PLAIN_CUH

#include "cuda/attention_row.cuh"

/* Where the calling thread stands in its tile. */
template <class Form> struct PlainPlace {
    int warp = threadIdx.x / LANES, down = threadIdx.x % LANES / Form::across, across = threadIdx.x % Form::across;

    __device__ int row(int i) const { // i < tm
        return warp * Form::warp_rows + down + i * Form::down;
    }
    __device__ int column(int j) const { // j < tn
        return across + j * Form::across;
    }
};

/* ---- products ---- */

/* score[i][j] = own row i . passing row j */
template <class Form>
__device__ void dot_plain(const PlainPlace<Form> &place, const float *own, const float *passing,
                          float (&score)[Form::tm][Form::tn]) {
    own += place.row(0) * Form::pitch;
    passing += place.column(0) * Form::pitch;
#pragma unroll
    for (int i = 0; i < Form::tm; i++)
#pragma unroll
        for (int j = 0; j < Form::tn; j++)
            score[i][j] = 0;
#pragma unroll 1
    for (int k = 0; k < Form::depth; k += 4) {
        Pack<float, 4> x[Form::tm];
#pragma unroll
        for (int i = 0; i < Form::tm; i++)
            x[i] = load_pack<4>(own + i * Form::down * Form::pitch + k);
#pragma unroll
        for (int j = 0; j < Form::tn; j++) {
            auto y = load_pack<4>(passing + j * Form::across * Form::pitch + k);
#pragma unroll
            for (int v = 0; v < 4; v++)
#pragma unroll
                for (int i = 0; i < Form::tm; i++)
                    score[i][j] = fmaf(x[i][v], y[v], score[i][j]);
        }
    }
}

/* Sums of passing rows, weighted, for each own row of a thread: of all columns where they are held, else of its share. */
template <class Form> struct PlainSums {
    static constexpr int columns = Form::held ? Form::width : Form::share;
    float sum[Form::tm][columns] = {};

    __device__ void scale(int i, float factor) {
#pragma unroll
        for (int c = 0; c < columns; c++)
            sum[i][c] *= factor;
    }

    /* sum += weight . passing. `turns` is the shared memory for weights. */
    __device__ void mix(const PlainPlace<Form> &place, const float (&weight)[Form::tm][Form::tn], const float *passing,
                        float *turns) {
        if constexpr (Form::held) {
            mix_own(place, weight, passing);
        } else {
            turns += place.warp * Form::warp_rows * Form::turn_pitch + place.down * Form::turn_pitch;
#pragma unroll
            for (int first = 0; first < Form::columns; first += Form::turn) {
                __syncwarp(); // those of the turn before have been read
#pragma unroll
                for (int i = 0; i < Form::tm; i++)
#pragma unroll
                    for (int j = 0; j < Form::turn / Form::across; j++)
                        turns[i * Form::down * Form::turn_pitch + place.column(j)] =
                            weight[i][first / Form::across + j];
                __syncwarp();
                mix_turn(place, turns, passing + first * Form::pitch);
            }
        }
    }

    /* What all lanes have found, added: of the share of the columns that the calling thread then has. */
    __device__ void finish(const PlainPlace<Form> &place) {
        if constexpr (Form::held)
            fold<columns / 2>(place);
    }

private:
    /* Two lanes halve their columns: one goes on with the first LEFT, the other with those after them. */
    template <int LEFT> __device__ void fold(const PlainPlace<Form> &place) {
        constexpr int distance = LEFT / Form::share;
        bool upper = place.across & distance;
#pragma unroll
        for (int i = 0; i < Form::tm; i++)
#pragma unroll
            for (int c = 0; c < LEFT; c++) {
                float kept = upper ? sum[i][c + LEFT] : sum[i][c], given = upper ? sum[i][c] : sum[i][c + LEFT];
                sum[i][c] = kept + __shfl_xor_sync(~0u, given, distance);
            }
        if constexpr (distance > 1)
            fold<LEFT / 2>(place);
    }
    __device__ void mix_own(const PlainPlace<Form> &place, const float (&weight)[Form::tm][Form::tn],
                            const float *passing) {
#pragma unroll
        for (int j = 0; j < Form::tn; j++)
#pragma unroll
            for (int c = 0; c < columns; c += 4) {
                auto y = load_pack<4>(passing + place.column(j) * Form::pitch + c);
#pragma unroll
                for (int i = 0; i < Form::tm; i++)
#pragma unroll
                    for (int v = 0; v < 4; v++)
                        sum[i][c + v] = fmaf(weight[i][j], y[v], sum[i][c + v]);
            }
    }
    __device__ void mix_turn(const PlainPlace<Form> &place, const float *turns, const float *passing) {
        passing += place.across * Form::run;
#pragma unroll 2
        for (int k = 0; k < Form::turn; k += 4) {
            Pack<float, 4> x[Form::tm];
#pragma unroll
            for (int i = 0; i < Form::tm; i++)
                x[i] = load_pack<4>(turns + i * Form::down * Form::turn_pitch + k);
#pragma unroll
            for (int v = 0; v < 4; v++)
#pragma unroll
                for (int r = 0; r < Form::runs; r++) {
                    auto y = load_pack<Form::run>(passing + (k + v) * Form::pitch + r * Form::across * Form::run);
#pragma unroll
                    for (int i = 0; i < Form::tm; i++)
#pragma unroll
                        for (int c = 0; c < Form::run; c++)
                            sum[i][r * Form::run + c] = fmaf(x[i][v], y[c], sum[i][r * Form::run + c]);
                }
        }
    }
};

/* The finished sums of a thread to rows of a head, STRIDE numbers apart. */
template <class Form, int STRIDE, int LENGTH, class Number>
__device__ void store_rows(const PlainPlace<Form> &place, const PlainSums<Form> &sums, Number *head, int first) {
#pragma unroll
    for (int i = 0; i < Form::tm; i++)
#pragma unroll
        for (int r = 0; r < Form::runs; r++) {
            int c = (r * Form::across + place.across) * Form::run;
            Number *to = head + (int64_t)(first + place.row(i)) * STRIDE + c;
            Pack<Number, Form::run> numbers;
#pragma unroll
            for (int v = 0; v < Form::run; v++)
                to_number(&numbers[v], sums.sum[i][r * Form::run + v]);
            if (first + place.row(i) >= LENGTH)
                continue;
            if constexpr (Form::size % Form::run == 0) {
                if (c < Form::size)
                    store_pack(to, numbers);
            } else {
#pragma unroll
                for (int v = 0; v < Form::run; v++)
                    if (c + v < Form::size)
                        to[v] = numbers[v];
            }
        }
}

/* Calls work(first) for the tile of ROWS rows from `begin` on, or for each part of it that the form has room for. */
template <class Form, int ROWS, int LENGTH, class Work> __device__ void in_parts(int begin, Work work) {
    if constexpr (Form::rows == ROWS)
        work(begin);
    else
#pragma unroll 1
        for (int first = begin; first < begin + ROWS && first < LENGTH; first += Form::rows) {
            __syncthreads(); // the part before has left the shared memory
            work(first);
        }
}

/* ---- attend ---- */

template <class Shape> __host__ __device__ constexpr int attend_plain_tiles() {
    return Shape::batch * Shape::queries * divide_up(Shape::length, plain_rows<Shape>());
}
template <class Shape> __host__ __device__ constexpr int attend_plain_shared() {
    return PlainForm<Shape, 1, PLAIN_SHARED>::shared;
}

/* The largest score so far and the sum of weights of each own row of a thread; the sum is of its own columns. */
template <class Form> struct PlainSeen {
    float top[Form::tm], total[Form::tm];

    __device__ PlainSeen() {
#pragma unroll
        for (int i = 0; i < Form::tm; i++)
            top[i] = -INFINITY, total[i] = 0;
    }
    /* Scores of row i become weights. Returns by what earlier sums are to be multiplied. */
    __device__ float weigh(int i, float (&score)[Form::tn]) {
        float before = top[i], largest = before;
#pragma unroll
        for (int j = 0; j < Form::tn; j++)
            largest = fmaxf(largest, score[j]);
        top[i] = lanes_reduce<Form::across>(largest, [](float a, float b) { return fmaxf(a, b); });
        float base = top[i] == -INFINITY ? 0 : top[i], factor = __expf(before - base);
        total[i] *= factor;
#pragma unroll
        for (int j = 0; j < Form::tn; j++) {
            score[j] = __expf(score[j] - base);
            total[i] += score[j];
        }
        return factor;
    }
};

template <class Shape>
__device__ void attend_plain_queries(const typename Shape::Number *qkv, typename Shape::Number *out, float *sums,
                                     float scale, int example, int head, int first, char *shared) {
    using Form = PlainForm<Shape, 1>;
    constexpr int length = Shape::length;
    const auto *rows = qkv + (int64_t)example * length * Shape::row;
    float *own = (float *)shared, *passing = own + Form::own_floats, *turns = passing + Form::buffers * Form::buffer;
    PlainPlace<Form> place;
    PlainSums<Form> mixed;
    PlainSeen<Form> seen;
    PlainSpan keys = keys_seen<Shape>(first, Form::rows, Form::columns);

    auto fetch = [&](int step, int buffer) {
        float *block = passing + buffer * Form::buffer;
        fetch_keys_of<Shape, Form, Form::columns>(rows, block, block + Form::passing_floats, head / Shape::group,
                                                  keys.first + step * Form::columns);
    };
    auto use = [&](int step, int buffer) {
        const float *block = passing + buffer * Form::buffer;
        int key = keys.first + step * Form::columns, query = first + place.row(0);
        if (!any_sees<Shape>(first + place.warp * Form::warp_rows, Form::warp_rows, key, Form::columns))
            return;
        float score[Form::tm][Form::tn];
        dot_plain(place, own, block, score);
#pragma unroll
        for (int i = 0; i < Form::tm; i++) {
#pragma unroll
            for (int j = 0; j < Form::tn; j++) {
                bool sees = plain_sees<Shape, Form::columns>(query + i * Form::down, key + place.column(j));
                score[i][j] = sees ? scale * score[i][j] : -INFINITY;
            }
            mixed.scale(i, seen.weigh(i, score[i]));
        }
        mixed.mix(place, score, block + Form::passing_floats, turns);
    };

    fetch_rows<Form, Form::rows, Shape::row, length>(own, rows + Shape::query_head(head), first);
    pass_by<Form>(divide_up(keys.end - keys.first, Form::columns), fetch, use);
    mixed.finish(place);
#pragma unroll
    for (int i = 0; i < Form::tm; i++) {
        float total = lanes_reduce<Form::across>(seen.total[i], [](float a, float b) { return a + b; });
        int query = first + place.row(i);
        mixed.scale(i, 1 / total);
        if (sums && place.across == 0 && query < length)
            sums[((int64_t)example * length + query) * Shape::queries + head] = seen.top[i] + logf(total);
    }
    store_rows<Form, Shape::out_row, length>(
        place, mixed, out + (int64_t)example * length * Shape::out_row + Shape::query_head(head), first);
}

template <class Shape>
__device__ void attend_plain(const typename Shape::Number *qkv, typename Shape::Number *out, float *sums, float scale,
                             int tile, char *shared) {
    constexpr int rows = plain_rows<Shape>(), blocks = divide_up(Shape::length, rows);
    int begin = (blocks - 1 - tile % blocks) * rows; // those that see the most keys begin
    int head = tile / blocks % Shape::queries, example = tile / blocks / Shape::queries;
    in_parts<PlainForm<Shape, 1>, rows, Shape::length>(begin, [&](int first) {
        if constexpr (attends_by_rows<Shape>)
            attend_row_queries<Shape>(qkv, out, sums, scale, example, head, first, shared);
        else
            attend_plain_queries<Shape>(qkv, out, sums, scale, example, head, first, shared);
    });
}

/* ---- gradient ---- */

template <class Shape> __host__ __device__ constexpr int attend_plain_grad_tiles() {
    return Shape::batch * (Shape::queries + Shape::keys) * divide_up(Shape::length, plain_rows<Shape>());
}
template <class Shape> __host__ __device__ constexpr int attend_plain_grad_shared() {
    if constexpr (Shape::size <= LARGEST_PLAIN_SMALL)
        static_assert(PlainForm<Shape, 2, PLAIN_SMALL>::shared <= PLAIN_SMALL, "the compiler asks devices for no more");
    return PlainForm<Shape, 2, PLAIN_SHARED>::shared;
}

template <class Shape>
__device__ void attend_plain_grad_queries(const PlainExample<Shape> &from, typename Shape::Number *d_rows, float scale,
                                          int head, int first, float *shared) {
    using Form = PlainForm<Shape, 2>;
    float *own = shared, *passing = own + 2 * Form::own_floats, *turns = passing + Form::buffers * Form::buffer;
    PlainPlace<Form> place;
    PlainSums<Form> d_q;
    PlainSpan keys = keys_seen<Shape>(first, Form::rows, Form::columns);
    float sum[Form::tm], dot[Form::tm];
#pragma unroll
    for (int i = 0; i < Form::tm; i++) {
        int query = first + place.row(i), at = query * Shape::queries + head;
        sum[i] = query < Shape::length ? from.sums[at] : 0;
        dot[i] = query < Shape::length ? from.dots[at] : 0;
    }

    auto fetch = [&](int step, int buffer) {
        float *block = passing + buffer * Form::buffer;
        from.template fetch_keys<Form, Form::columns>(block, block + Form::passing_floats, head / Shape::group,
                                                      keys.first + step * Form::columns);
    };
    auto use = [&](int step, int buffer) {
        const float *block = passing + buffer * Form::buffer;
        int key = keys.first + step * Form::columns, query = first + place.row(0);
        if (!any_sees<Shape>(first + place.warp * Form::warp_rows, Form::warp_rows, key, Form::columns))
            return;
        float score[Form::tm][Form::tn], gradient[Form::tm][Form::tn];
        dot_plain(place, own, block, score);
        dot_plain(place, own + Form::own_floats, block + Form::passing_floats, gradient);
#pragma unroll
        for (int i = 0; i < Form::tm; i++)
#pragma unroll
            for (int j = 0; j < Form::tn; j++)
                unweigh(plain_sees<Shape, Form::columns>(query + i * Form::down, key + place.column(j)), scale, sum[i],
                        dot[i], score[i][j], gradient[i][j]);
        d_q.mix(place, gradient, block, turns);
    };

    from.template fetch_queries<Form, Form::rows>(own, own + Form::own_floats, head, first);
    pass_by<Form>(divide_up(keys.end - keys.first, Form::columns), fetch, use);
    d_q.finish(place);
    store_rows<Form, Shape::row, Shape::length>(place, d_q, d_rows + Shape::query_head(head), first);
}

template <class Shape>
__device__ void attend_plain_grad_keys(const PlainExample<Shape> &from, typename Shape::Number *d_rows, float scale,
                                       int head, int first, float *shared) {
    using Form = PlainForm<Shape, 2>;
    float *own = shared, *passing = own + 2 * Form::own_floats, *turns = passing + Form::buffers * Form::buffer;
    PlainPlace<Form> place;
    PlainSums<Form> d_k, d_v;
    PlainSpan queries = queries_seeing<Shape>(first, Form::rows, Form::columns);
    int steps = divide_up(queries.end - queries.first, Form::columns); // of each head of the group

    auto fetch = [&](int step, int buffer) {
        float *block = passing + buffer * Form::buffer;
        int query = queries.first + step % steps * Form::columns, query_head = head * Shape::group + step / steps;
        from.template fetch_queries<Form, Form::columns>(block, block + Form::passing_floats, query_head, query);
        from.template fetch_numbers<Form::columns>(block + 2 * Form::passing_floats, query_head, query);
    };
    auto use = [&](int step, int buffer) {
        const float *block = passing + buffer * Form::buffer, *numbers = block + 2 * Form::passing_floats;
        int query = queries.first + step % steps * Form::columns, key = first + place.row(0);
        if (!any_sees<Shape>(query, Form::columns, first + place.warp * Form::warp_rows, Form::warp_rows))
            return;
        float score[Form::tm][Form::tn], gradient[Form::tm][Form::tn];
        dot_plain(place, own, block, score);
        dot_plain(place, own + Form::own_floats, block + Form::passing_floats, gradient);
#pragma unroll
        for (int j = 0; j < Form::tn; j++) {
            float sum = numbers[place.column(j)], dot = numbers[Form::columns + place.column(j)];
#pragma unroll
            for (int i = 0; i < Form::tm; i++)
                unweigh(plain_sees<Shape, Form::columns>(query + place.column(j), key + i * Form::down), scale, sum,
                        dot, score[i][j], gradient[i][j]);
        }
        d_v.mix(place, score, block + Form::passing_floats, turns);
        d_k.mix(place, gradient, block, turns);
    };

    from.template fetch_keys<Form, Form::rows>(own, own + Form::own_floats, head, first);
    pass_by<Form>(Shape::group * steps, fetch, use);
    d_k.finish(place);
    d_v.finish(place);
    store_rows<Form, Shape::row, Shape::length>(place, d_k, d_rows + Shape::key_head(head), first);
    store_rows<Form, Shape::row, Shape::length>(place, d_v, d_rows + Shape::value_head(head), first);
}

/* Tiles of an example: its key heads', which take longer, then its query heads'. */
template <class Shape>
__device__ void attend_plain_grad(const typename Shape::Number *qkv, const float *sums, const float *dots,
                                  const typename Shape::Number *d_out, typename Shape::Number *d_qkv, float scale,
                                  int tile, char *shared) {
    constexpr int rows = plain_rows<Shape>(), blocks = divide_up(Shape::length, rows);
    int head = tile / blocks % (Shape::queries + Shape::keys), example = tile / blocks / (Shape::queries + Shape::keys);
    PlainExample<Shape> from(qkv, sums, dots, d_out, example);
    auto *d_rows = d_qkv + (int64_t)example * Shape::length * Shape::row;
    if (head < Shape::keys)
        in_parts<PlainForm<Shape, 2>, rows, Shape::length>(tile % blocks * rows, [&](int first) {
            if constexpr (attends_by_rows<Shape>)
                attend_row_grad_keys(from, d_rows, scale, head, first, (float *)shared);
            else
                attend_plain_grad_keys(from, d_rows, scale, head, first, (float *)shared);
        });
    else
        in_parts<PlainForm<Shape, 2>, rows, Shape::length>((blocks - 1 - tile % blocks) * rows, [&](int first) {
            if constexpr (attends_by_rows<Shape>)
                attend_row_grad_queries(from, d_rows, scale, head - Shape::keys, first, (float *)shared);
            else
                attend_plain_grad_queries(from, d_rows, scale, head - Shape::keys, first, (float *)shared);
        });
}

#endif
