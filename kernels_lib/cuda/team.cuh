/* Teams: the threads that work on one row, and how they fold numbers together.
 *
 * A block has THREADS threads, so that any kernels can share a launch. Its tile of rows is dealt to teams:
 *
 *     Thread    one thread a row            256 rows a tile, consecutive threads on consecutive rows
 *     Warp      32 threads a row            8 rows a tile
 *     Lanes<N>  N threads of a warp a row   256 / N rows a tile, all of which exist; Half: Lanes<16>
 *     Whole     the whole block a row       1 row a tile
 *     Column<V, DEPTH>   DEPTH threads for V rows   for reductions over a slow axis: rows are neighbours in memory
 *     Several<Team, COUNT>   such a team for COUNT rows at a time
 *
 * A team loops over its row's extent with `for (int k = team.first; k < N; k += team.stride)` and folds what its
 * threads found with team_sum, team_prod, team_max, team_min or team_reduce: every thread of the team gets the result, combined in
 * an order that depends on nothing but the shapes. All threads of the block must take part, whether their row exists or
 * not. A team is made from `scratch` bytes of the tile's shared memory, its alone. */
#ifndef MTC_CUDA_TEAM_CUH
#define MTC_CUDA_TEAM_CUH

#include "cuda/pack.cuh"
#include "shared.h"

struct Thread {
    static constexpr int rows = THREADS, size = 1, lanes = 1, scratch = 0;
    static constexpr int first = 0, stride = 1;
    int row = threadIdx.x; // of the tile

    __device__ explicit Thread(char *) {
    }
    __device__ void sync() const {
    }
    template <class T, class Combine> __device__ T reduce(T value, Combine) const {
        return value;
    }
};

/* Combined over the lanes of an aligned group of SIZE, all of which get the result. */
template <int SIZE = LANES, class T, class Combine> __device__ T lanes_reduce(T value, Combine combine) {
#pragma unroll
    for (int distance = SIZE / 2; distance; distance /= 2)
        value = combine(value, __shfl_xor_sync(~0u, value, distance));
    return value;
}

struct Warp {
    static constexpr int rows = WARPS, size = LANES, lanes = LANES, scratch = 0;
    static constexpr int stride = LANES;
    int first = threadIdx.x % LANES, row = threadIdx.x / LANES;

    __device__ explicit Warp(char *) {
    }
    __device__ void sync() const {
        __syncwarp();
    }
    template <class T, class Combine> __device__ T reduce(T value, Combine combine) const {
        return lanes_reduce(value, combine);
    }
};

template <int SIZE> struct Lanes {
    static constexpr int rows = THREADS / SIZE, size = SIZE, lanes = size, scratch = 0;
    static constexpr int stride = size;
    int first = threadIdx.x % size, row = threadIdx.x / size;

    __device__ explicit Lanes(char *) {
    }
    __device__ void sync() const {
        __syncwarp();
    }
    template <class T, class Combine> __device__ T reduce(T value, Combine combine) const {
        return lanes_reduce<size>(value, combine);
    }
};
using Half = Lanes<LANES / 2>;

struct Whole {
    static constexpr int rows = 1, size = THREADS, lanes = LANES, scratch = 2 * WARPS * sizeof(double);
    static constexpr int stride = THREADS, row = 0;
    int first = threadIdx.x;
    char *shared;
    mutable int turn = 0; // reductions take the two halves of the scratch by turns: one barrier each

    __device__ explicit Whole(char *shared) : shared(shared) {
    }
    __device__ void sync() const {
        __syncthreads();
    }
    template <class T, class Combine> __device__ T reduce(T value, Combine combine) const {
        T *partial = (T *)(shared + turn * WARPS * sizeof(double));
        turn = 1 - turn;
        value = lanes_reduce(value, combine);
        if (first % LANES == 0)
            partial[first / LANES] = value;
        __syncthreads();
        value = partial[0];
#pragma unroll
        for (int warp = 1; warp < WARPS; warp++)
            value = combine(value, partial[warp]);
        return value;
    }
};

/* Rows are columns of memory. ACROSS threads side by side have V of them each, and what is folded is dealt to DEPTH such
 * rows of threads; a warp reads whole lines:
 *
 *         V columns
 *     | thread 0  | thread 1  | ... | ACROSS - 1 |    element 0 of the columns, then DEPTH, 2 DEPTH ...
 *     | ACROSS    | ...                          |    element 1, ...
 *       ...
 */
template <int V, int DEPTH> struct Column {
    static constexpr int across = THREADS / DEPTH, rows = across * V, size = DEPTH, lanes = 1;
    static constexpr int parts = DEPTH < WARPS ? DEPTH : WARPS; // that shared memory puts together
    static constexpr int scratch = parts * rows * (int)sizeof(float);
    static constexpr int stride = DEPTH;
    int first = threadIdx.x / across, row = threadIdx.x % across * V;
    char *shared;

    __device__ explicit Column(char *shared) : shared(shared) {
    }
    __device__ void sync() const {
        __syncthreads();
    }
    template <class T, class Combine> __device__ Pack<T, V> reduce(Pack<T, V> value, Combine combine) const {
        if constexpr (DEPTH > 1) {
            static_assert(sizeof(T) <= sizeof(float), "scratch");
            T *partial = (T *)shared;
#pragma unroll
            for (int distance = LANES / 2; distance >= across; distance /= 2)
#pragma unroll
                for (int v = 0; v < V; v++)
                    value[v] = combine(value[v], __shfl_xor_sync(~0u, value[v], distance));
            __syncthreads();
            if (across >= LANES || threadIdx.x % LANES < across)
                store_pack(partial + first * parts / DEPTH * rows + row, value);
            __syncthreads();
            value = load_pack<V>(partial + row);
#pragma unroll
            for (int part = 1; part < parts; part++) {
                Pack<T, V> more = load_pack<V>(partial + part * rows + row);
#pragma unroll
                for (int v = 0; v < V; v++)
                    value[v] = combine(value[v], more[v]);
            }
        }
        return value;
    }
    template <class T, class Combine> __device__ T reduce(T value, Combine combine) const {
        return reduce(fill_pack<V>(value), combine)[0];
    }
};

/* Bytes of shared memory for a tile whose rows keep `floats` numbers each, and where a row keeps them. */
template <class Team> constexpr int team_shared(int floats) {
    return Team::scratch + Team::rows * floats * (int)sizeof(float);
}
template <class Team> __device__ float *row_memory(const Team &team, char *shared, int floats) {
    return (float *)(shared + Team::scratch) + team.row * floats;
}

/* One thread of the team, which does what happens once in a row. */
template <class Team> __device__ bool leads(const Team &team) {
    return team.first == 0;
}

template <class Team, class T, class Combine> __device__ T team_reduce(const Team &team, T value, Combine combine) {
    return team.reduce(value, combine);
}
template <class Team, class T> __device__ T team_sum(const Team &team, T value) {
    return team.reduce(value, [](auto a, auto b) { return a + b; });
}
template <class Team, class T> __device__ T team_prod(const Team &team, T value) {
    return team.reduce(value, [](auto a, auto b) { return a * b; });
}
template <class Team, class T> __device__ T team_max(const Team &team, T value) {
    return team.reduce(value, [](float a, float b) { return fmaxf(a, b); });
}
template <class Team, class T> __device__ T team_min(const Team &team, T value) {
    return team.reduce(value, [](float a, float b) { return fminf(a, b); });
}

/* Largest power of two that is at most n, at least 1. */
__host__ __device__ constexpr int floor_power(int n) {
    return n < 2 ? 1 : 2 * floor_power(n / 2);
}

/* COUNT rows at a time, neighbours, all of which exist: what they have in common is read once, and their sums wait for each other's
 * instructions instead of their own. The lanes of a warp are dealt to the rows in order, SHARE to each: they end up with the sum of the
 * team's row `own`, and the first of them does what happens once in that row; `row` is that one. Lanes that are left over go with the last row,
 * and lead none. */
template <class Team, int COUNT> struct Several : Team {
    static_assert(COUNT <= LANES, "a lane for each");
    static constexpr int rows = COUNT * Team::rows, scratch = COUNT * Team::scratch;
    static constexpr int held = COUNT > 1 ? 2 * floor_power(COUNT - 1) : 1,
                         share = LANES / held; // a power of two, and not below COUNT
    int lane = threadIdx.x % LANES, own = lane / share < COUNT ? lane / share : COUNT - 1;
    int row = COUNT * Team::row + own;

    __device__ explicit Several(char *shared) : Team(shared) {
    }
    __device__ bool leads_own() const {
        return lane % share == 0 && lane / share < COUNT;
    }
    /* Of what the lanes have of HELD rows, the lane's own. Two lanes keep half of the rows each, of which they give each other what they have;
     * then a quarter: with as many additions in each row, in the same order, as if all lanes had all rows. */
    template <class T, int HELD> __device__ T lanes_sum(const T (&sums)[HELD]) const {
        if constexpr (HELD == 1) {
            return lanes_reduce<share>(sums[0], [](T a, T b) { return a + b; });
        } else {
            constexpr int left = HELD / 2, distance = share * left;
            const bool upper = lane & distance;
            T kept[left];
#pragma unroll
            for (int r = 0; r < left; r++) {
                const T given = upper ? sums[r] : sums[r + left];
                kept[r] = (upper ? sums[r + left] : sums[r]) + __shfl_xor_sync(~0u, given, distance);
            }
            return lanes_sum(kept);
        }
    }
    /* The sum of the row `own`, of what the threads have of each row. */
    template <class T> __device__ T sum(const T (&parts)[COUNT]) const {
        T all[held] = {};
#pragma unroll
        for (int r = 0; r < COUNT; r++)
            all[r] = parts[r];
        T sum = lanes_sum(all);
        if constexpr (Team::size > LANES) {
            T *partial = (T *)Team::shared + own * WARPS;
            if (leads_own())
                partial[threadIdx.x / LANES] = sum;
            __syncthreads();
            sum = partial[0];
#pragma unroll
            for (int warp = 1; warp < WARPS; warp++)
                sum += partial[warp];
        }
        return sum;
    }
};

template <class Team, int COUNT> __device__ bool leads(const Several<Team, COUNT> &team) {
    return team.first < LANES && team.leads_own();
}

/* The sum of row i, the thread's own, where add(i, j, sum) adds the STEP terms from j on of any of the team's rows, of N. */
template <class T, int N, int STEP, class Team, int COUNT, class Add>
__device__ T rows_sum(const Several<Team, COUNT> &team, int i, const Add &add) {
    constexpr int turn = STEP * Team::stride, turns = N / turn;
    T sums[COUNT] = {};
    auto add_to_each = [&](int j) {
#pragma unroll
        for (int r = 0; r < COUNT; r++)
            add(i - team.own + r, j, sums[r]);
    };
    const int first = STEP * team.first;
#pragma unroll 8 // all loads of a short row are on their way at a time
    for (int n = 0; n < turns; n++)
        add_to_each(first + n * turn);
    if (N % turn && first < N % turn)
        add_to_each(first + turns * turn);
    return team.sum(sums);
}

/* Threads that share an output of a thin product: as many as keep the team busy; at least 8 where k is long, so that
 * neighbours read neighbouring numbers; never more than lie in one warp or have a k. */
template <class Team, int N, int K> __host__ __device__ constexpr int product_lanes() {
    int busy = floor_power(Team::size / N), coalesced = K > LANES ? 8 : 1;
    int wanted = busy > coalesced ? busy : coalesced, most = floor_power(K < Team::lanes ? K : Team::lanes);
    return wanted < most ? wanted : most;
}

/* A thin product: store(j, sum over k of term(j, k)) for j < N, k < K, each j once, by one thread of the team. Outputs
 * are dealt to groups of lanes, k to the lanes of a group. team.sync() before reading what `store` wrote. */
template <int N, int K, class Team, class Term, class Store>
__device__ void team_product(const Team &team, Term term, Store store) {
    constexpr int lanes = product_lanes<Team, N, K>(), groups = Team::size / lanes;
    int lane = team.first % lanes;
    for (int start = 0; start < N; start += groups) { // the same rounds for every lane: all shuffle
        int j = start + team.first / lanes;
        float sum = 0;
        if (j < N)
#pragma unroll(Team::size < LANES ? 32 : 8) // on few blocks, nothing else hides the time of a load
            for (int k = lane; k < K; k += lanes)
                sum += term(j, k);
        sum = lanes_reduce<lanes>(sum, [](float a, float b) { return a + b; });
        if (j < N && lane == 0)
            store(j, sum);
    }
}

#endif
