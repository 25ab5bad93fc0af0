/* The gradient of a table whose rows were looked up:
 *
 *     out[v, c] = sum over k with index[k] = v of dy[k, c]         0 where no index is v
 *
 * index[COUNT] lies within the rows; dy[COUNT, WIDTH] is float or Narrow, out[ROWS, WIDTH] float. A sum runs in the order of the
 * indices, or, of a row that many indices name, over fixed shares of them: no float is added by atomics, the bits are always
 * the same.
 *
 *               columns           A tile has every slices-th row of the table: rows that are named often tend to be
 *             +---------+         neighbours. Of them it has some columns.
 *     row v   | tile 0  | 1
 *             +---------+         It looks through all indices and lists the places k of those that name a row of its
 *     v + 1   | tile 2  | 3       own, in shared memory; sorts the list by rows, the places of a row in their order; and
 *             +---------+         adds up the rows of dy that it says. When the list is full, that is done with it, and
 *     ...                         what comes later is added to what is in memory then.
 *
 * Groups of neighbouring threads, the lanes, read rows of dy, a pack of up to four numbers each. A row that few indices name is
 * one group's work, which has several such rows under way. A row that many name is shared by all groups: group g takes
 * places g, g + groups ... of the list, and the groups' sums are added in order. */
#ifndef MTC_CUDA_GATHER_CUH
#define MTC_CUDA_GATHER_CUH

#include "cuda/team.cuh"

template <class Number_, int COUNT, int ROWS, int WIDTH> struct GatherGrad {
    using Number = Number_;
    static constexpr int count = COUNT, rows = ROWS, width = WIDTH;
    static constexpr int pack = WIDTH % 4 ? 1 : 4, packs = WIDTH / pack;
    static constexpr int lanes = gather_lanes(ROWS, packs), groups = THREADS / lanes, columns = lanes * pack;
    static constexpr int across = (packs + lanes - 1) / lanes; // tiles side by side
    static constexpr int slices = gather_slices(ROWS, across), slice_rows = (ROWS + slices - 1) / slices;
    using Sum = Pack<float, pack>;
};

/* The list of a tile. A batch of indices is added to it as long as that is sure to fit. */
constexpr int GATHER_LIST = GATHER_BATCH + 1024;
constexpr int GATHER_MANY = 32; // places of a row that all groups share

template <class Shape> struct GatherList {
    int place[GATHER_LIST], sorted[GATHER_LIST]; // first in the order of the indices, then by rows
    unsigned short row[GATHER_LIST];             // of the tile's
    unsigned short many[GATHER_LIST / GATHER_MANY + 1];
    int end[Shape::slice_rows]; // of a row's places in `sorted`
    int of_warp[WARPS];
    int many_count;
    alignas(16) typename Shape::Sum sum[THREADS]; // of the groups

    __device__ int begin(int row) const {
        return row ? end[row - 1] : 0;
    }
};

template <class Shape> constexpr int gather_grad_tiles() {
    return Shape::slices * Shape::across;
}
template <class Shape> constexpr int gather_grad_shared() {
    return (int)sizeof(GatherList<Shape>);
}

/* The sum of what the threads before this one have, and in `total` of all. */
__device__ inline int gather_before(int own, int *of_warp, int &total) {
    int lane = threadIdx.x % LANES, warp = threadIdx.x / LANES, sum = own, before = 0;
#pragma unroll
    for (int distance = 1; distance < LANES; distance *= 2) {
        int other = __shfl_up_sync(~0u, sum, distance);
        sum += lane >= distance ? other : 0;
    }
    __syncthreads(); // of_warp may still be read
    if (lane == LANES - 1)
        of_warp[warp] = sum;
    __syncthreads();
    total = 0;
#pragma unroll
    for (int w = 0; w < WARPS; w++) {
        before += w < warp ? of_warp[w] : 0;
        total += of_warp[w];
    }
    return before + sum - own;
}

/* A thread's indices of a batch. A warp has neighbours, 32 at a time. */
struct GatherBatch {
    int row[GATHER_STEPS];
};

__device__ inline int gather_start(int first) {
    return first + threadIdx.x / LANES * (GATHER_STEPS * LANES) + threadIdx.x % LANES;
}

template <class Shape> __device__ GatherBatch gather_batch(const int *index, int first) {
    GatherBatch batch;
#pragma unroll
    for (int step = 0; step < GATHER_STEPS; step++) {
        int k = gather_start(first) + step * LANES;
        batch.row[step] = k < Shape::count ? index[k] : -1;
    }
    return batch;
}

/* Appends what of the batch from index `first` on names a row of the slice. Returns the length of the list. */
template <class Shape>
__device__ int gather_append(const GatherBatch &batch, int first, int slice, GatherList<Shape> &list, int length) {
    int lane = threadIdx.x % LANES, found = 0, total;
    const int(&row)[GATHER_STEPS] = batch.row;
    unsigned named[GATHER_STEPS];
#pragma unroll
    for (int step = 0; step < GATHER_STEPS; step++) {
        bool own = row[step] >= 0 && row[step] % Shape::slices == slice;
        named[step] = __ballot_sync(~0u, own);
        found += __popc(named[step]);
    }
    int at = length + gather_before(lane == 0 ? found : 0, list.of_warp, total);
    at = __shfl_sync(~0u, at, 0);
#pragma unroll
    for (int step = 0; step < GATHER_STEPS; step++) {
        int to = at + __popc(named[step] & ((1u << lane) - 1));
        if (named[step] >> lane & 1) {
            list.place[to] = gather_start(first) + step * LANES;
            list.row[to] = (unsigned short)(row[step] / Shape::slices);
            atomicAdd(&list.end[row[step] / Shape::slices], 1);
        }
        at += __popc(named[step]);
    }
    return length + total;
}

/* From how many places each row has to where they begin. */
template <class Shape> __device__ void gather_begins(GatherList<Shape> &list) {
    constexpr int each = (Shape::slice_rows + THREADS - 1) / THREADS;
    int first = threadIdx.x * each, own = 0, total;
    __syncthreads();
    for (int row = first; row < first + each && row < Shape::slice_rows; row++)
        own += list.end[row];
    int begin = gather_before(own, list.of_warp, total);
    for (int row = first; row < first + each && row < Shape::slice_rows; row++) {
        int count = list.end[row];
        list.end[row] = begin;
        begin += count;
    }
    __syncthreads();
}

/* One warp goes through the list, 32 places at a time; lanes with the same row find their order among themselves. */
template <class Shape> __device__ void gather_sort(GatherList<Shape> &list, int length) {
    int lane = threadIdx.x % LANES;
    gather_begins(list);
    for (int first = 0; threadIdx.x < LANES && first < length; first += LANES) {
        bool is_there = first + lane < length;
        int row = is_there ? list.row[first + lane] : Shape::slice_rows + lane;
        unsigned alike = __match_any_sync(~0u, row), before = alike & ((1u << lane) - 1);
        int at = is_there ? list.end[row] + __popc(before) : 0;
        __syncwarp();
        if (is_there) {
            list.sorted[at] = list.place[first + lane];
            if (alike >> lane == 1) // the last of them
                list.end[row] = at + 1;
        }
        __syncwarp();
    }
    if (threadIdx.x == 0)
        list.many_count = 0;
    __syncthreads();
}

template <class Shape> __device__ void gather_add(typename Shape::Sum &sum, const typename Shape::Sum &more) {
#pragma unroll
    for (int v = 0; v < Shape::pack; v++)
        sum[v] += more[v];
}

__device__ inline float gather_float(float x) {
    return x;
}
__device__ inline float gather_float(Narrow x) {
    return to_float(x);
}

template <class Shape>
__device__ typename Shape::Sum gather_load(const typename Shape::Number *__restrict__ dy, int place, int column) {
    auto numbers = load_pack<Shape::pack>(dy + (long long)place * Shape::width + column);
    typename Shape::Sum result;
#pragma unroll
    for (int v = 0; v < Shape::pack; v++)
        result[v] = gather_float(numbers[v]);
    return result;
}

/* Adds up every stride-th place of the list in [begin, end), in order, AHEAD of them under way at a time. */
template <int AHEAD, class Shape>
__device__ void gather_places(const typename Shape::Number *__restrict__ dy, const GatherList<Shape> &list, int begin,
                              int end, int stride, int column, typename Shape::Sum &sum) {
    for (int first = begin; first < end; first += AHEAD * stride) {
        typename Shape::Sum part[AHEAD];
#pragma unroll
        for (int a = 0; a < AHEAD; a++)
            if (first + a * stride < end)
                part[a] = gather_load<Shape>(dy, list.sorted[first + a * stride], column);
#pragma unroll
        for (int a = 0; a < AHEAD; a++)
            if (first + a * stride < end)
                gather_add<Shape>(sum, part[a]);
    }
}

/* Where a row of the slice lies; NULL: the last slices have one row less. */
template <class Shape> __device__ float *gather_row(float *out, int slice, int row, int column) {
    int v = row * Shape::slices + slice;
    return row < Shape::slice_rows && v < Shape::rows ? out + (long long)v * Shape::width + column : nullptr;
}

template <class Shape> __device__ void gather_store(float *to, const typename Shape::Sum &sum, bool is_first) {
    typename Shape::Sum value = sum;
    if (!is_first) {
        value = load_pack<Shape::pack>(to);
        gather_add<Shape>(value, sum);
    }
    store_pack(to, value);
}

/* Rows with few places, each by one group, and those with none, which are written the first time. Others are noted. */
template <class Shape>
__device__ void gather_few(const typename Shape::Number *__restrict__ dy, float *out, GatherList<Shape> &list,
                           int slice, int column, bool is_first) {
    constexpr int AHEAD = 4;
    int group = threadIdx.x / Shape::lanes;
    for (int first = group; first < Shape::slice_rows; first += AHEAD * Shape::groups) {
        typename Shape::Sum sum[AHEAD];
        int begin[AHEAD], end[AHEAD];
#pragma unroll
        for (int a = 0; a < AHEAD; a++) {
            int row = first + a * Shape::groups;
            bool exists = row < Shape::slice_rows;
            begin[a] = exists ? list.begin(row) : 0;
            end[a] = exists ? list.end[row] : 0;
            sum[a] = fill_pack<Shape::pack>(0.0f);
            if (begin[a] < end[a] && end[a] - begin[a] < GATHER_MANY && column < Shape::width)
                sum[a] = gather_load<Shape>(dy, list.sorted[begin[a]], column);
        }
#pragma unroll
        for (int a = 0; a < AHEAD; a++) {
            int row = first + a * Shape::groups, count = end[a] - begin[a];
            float *to = gather_row<Shape>(out, slice, row, column);
            if (count >= GATHER_MANY) {
                if (threadIdx.x % Shape::lanes == 0)
                    list.many[atomicAdd(&list.many_count, 1)] = (unsigned short)row;
            } else if (to && column < Shape::width && (count || is_first)) {
                gather_places<AHEAD>(dy, list, begin[a] + 1, end[a], 1, column, sum[a]);
                gather_store<Shape>(to, sum[a], is_first);
            }
        }
    }
    __syncthreads();
}

/* Rows with many places, one after the other, each by all groups. */
template <class Shape>
__device__ void gather_many(const typename Shape::Number *__restrict__ dy, float *out, GatherList<Shape> &list,
                            int slice, int column, bool is_first) {
    constexpr int AHEAD =
        Shape::slices * Shape::across < 256 ? 8 : 4; // where blocks are few, a thread may have more registers
    int group = threadIdx.x / Shape::lanes, lane = threadIdx.x % Shape::lanes;
    for (int m = 0; m < list.many_count; m++) {
        int row = list.many[m];
        auto sum = fill_pack<Shape::pack>(0.0f);
        if (column < Shape::width)
            gather_places<AHEAD>(dy, list, list.begin(row) + group, list.end[row], Shape::groups, column, sum);
        list.sum[threadIdx.x] = sum;
        __syncthreads();
        if (group == 0 && column < Shape::width) {
            for (int other = 1; other < Shape::groups; other++)
                gather_add<Shape>(sum, list.sum[other * Shape::lanes + lane]);
            gather_store<Shape>(gather_row<Shape>(out, slice, row, column), sum, is_first);
        }
        __syncthreads();
    }
}

/* The first list is made ahead of the gate, behind which dy is complete. */
template <class Shape, class Gate>
__device__ void gather_grad(const int *index, const typename Shape::Number *dy, float *out, int tile, char *shared,
                            Gate &&gate) {
    auto &list = *(GatherList<Shape> *)shared;
    int slice = tile / Shape::across;
    int column = tile % Shape::across * Shape::columns + threadIdx.x % Shape::lanes * Shape::pack;
    auto next = gather_batch<Shape>(index, 0);
    for (int first = 0; first < Shape::count;) {
        bool is_first = first == 0;
        int length = 0;
        for (int row = threadIdx.x; row < Shape::slice_rows; row += THREADS)
            list.end[row] = 0; // counted up behind the barriers of gather_before
        for (; first < Shape::count && length + GATHER_BATCH <= GATHER_LIST; first += GATHER_BATCH) {
            auto batch = next;
            next = gather_batch<Shape>(index, first + GATHER_BATCH); // on its way while this one is listed
            length = gather_append<Shape>(batch, first, slice, list, length);
        }
        gather_sort(list, length);
        if (is_first)
            gate();
        gather_few<Shape>(dy, out, list, slice, column, is_first);
        gather_many<Shape>(dy, out, list, slice, column, is_first);
    }
}

#endif
