/* All steps of a recurrent layer, and their gradient: cuda/recurrent_cell.cuh says what that is. Here by blocks that work each by
 * itself; cuda/recurrent_together.cuh has those that work together.
 *
 * A tile is a few examples and all of their steps. A step is a vector times a matrix for each, in two halves:
 *
 *         state, DEPTH of it for each slice           each thread has COLUMNS columns of the matrix, in one of SLICES slices of
 *     +-----------+-----------+                       its depth: HELD rows of them stay in registers for all steps, the others
 *     |  slice 0  |  slice 1  |                       are read again, from caches. The state is in shared memory, and so are
 *     +-----------+-----------+                       the sums of each slice; behind a barrier each thread adds up those of
 *                                                     its units, makes of them what the cell does, and writes their state.
 *
 * Sums have the same order in every run. What a step needs of memory besides is read before its product, which hides the time. */
#ifndef MTC_CUDA_RECURRENT_CUH
#define MTC_CUDA_RECURRENT_CUH

#include "cuda/recurrent_cell.cuh"
#include "cuda/recurrent_together.cuh"

#include <algorithm>

/* Vectors of ROWS examples times a matrix [DEEP, WIDE]. */
template <int ROWS, int DEEP, int WIDE> struct StepProduct {
    static constexpr int across = WIDE >= THREADS ? THREADS : 2 * floor_power(WIDE - 1 > 0 ? WIDE - 1 : 1);
    static constexpr int slices = THREADS / across, columns = (WIDE + across - 1) / across;
    static constexpr int depth = ((DEEP + slices - 1) / slices + 3) / 4 * 4, length = slices * depth;
    static constexpr int registers = 96 / columns / 4 * 4, held = registers < depth ? registers : depth;
    static constexpr int ahead = columns < 8 ? 32 / columns / 4 * 4 : 4; // rows that are on their way at a time
    static constexpr bool exact = DEEP == length && WIDE == across * columns;
    static constexpr bool several = ROWS * columns > 1;
    static constexpr int state_floats = ROWS * length, sum_floats = slices * ROWS * WIDE;

    const float *matrix;
    int column = threadIdx.x % across, slice = threadIdx.x / across;
    float rows[held > 0 ? held : 1][columns];

    __device__ float element(int k, int c) const {
        int row = slice * depth + k, at = column + c * across;
        return exact || (row < DEEP && at < WIDE) ? matrix[row * WIDE + at] : 0;
    }
    __device__ explicit StepProduct(const float *matrix) : matrix(matrix) {
#pragma unroll
        for (int k = 0; k < held; k++)
#pragma unroll
            for (int c = 0; c < columns; c++)
                rows[k][c] = element(k, c);
    }

    /* Adds what four rows from k on give, by multiply-adds, which have to be asked for. A sum waits for the one before: a thread that has
     * one alone puts the four together beside it. */
    __device__ void add(float (&sum)[ROWS][columns], const float *state, int k, const float (*weight)[columns]) const {
#pragma unroll
        for (int e = 0; e < ROWS; e++) {
            float4 s = *(const float4 *)(state + e * length + slice * depth + k);
#pragma unroll
            for (int c = 0; c < columns; c++) {
                float first = several ? fmaf(s.x, weight[0][c], sum[e][c]) : s.x * weight[0][c];
                float four = fmaf(s.w, weight[3][c], fmaf(s.z, weight[2][c], fmaf(s.y, weight[1][c], first)));
                sum[e][c] = several ? four : sum[e][c] + four;
            }
        }
    }
    /* The same of COUNT rows that are read: all of them, then their products. */
    template <int COUNT> __device__ void add_read(float (&sum)[ROWS][columns], const float *state, int k) const {
        float read[COUNT][columns];
#pragma unroll
        for (int i = 0; i < COUNT; i++)
#pragma unroll
            for (int c = 0; c < columns; c++)
                read[i][c] = element(k + i, c);
#pragma unroll
        for (int i = 0; i < COUNT; i += 4)
            add(sum, state, k + i, read + i);
    }

    /* sums[slice, e, j], for whole(sums, e, j) behind a barrier. */
    __device__ void multiply(const float *state, float *sums) const {
        constexpr int whole_end = held + (depth - held) / ahead * ahead;
        float sum[ROWS][columns] = {};
#pragma unroll 1
        for (int k = held; k < whole_end; k += ahead)
            add_read<ahead>(sum, state, k);
        if constexpr (whole_end < depth)
            add_read<depth - whole_end>(sum, state, whole_end);
#pragma unroll
        for (int k = 0; k < held; k += 4)
            add(sum, state, k, rows + k);
#pragma unroll
        for (int e = 0; e < ROWS; e++)
#pragma unroll
            for (int c = 0; c < columns; c++)
                if (column + c * across < WIDE)
                    sums[(slice * ROWS + e) * WIDE + column + c * across] = sum[e][c];
    }
    static __device__ float whole(const float *sums, int e, int j) {
        float sum = 0;
#pragma unroll
        for (int slice = 0; slice < slices; slice++)
            sum += sums[(slice * ROWS + e) * WIDE + j];
        return sum;
    }
};

template <class Shape> using RecurProduct = StepProduct<Shape::rows, Shape::units, Shape::gates * Shape::units>;
template <class Shape> using RecurBackProduct = StepProduct<Shape::rows, Shape::gates * Shape::units, Shape::units>;

template <class Product> constexpr int recur_bytes() {
    return (Product::state_floats + Product::sum_floats) * (int)sizeof(float);
}
/* Unit `unit` of the tile's example `row`. */
template <class Shape> struct RecurItem : RecurPlace<Shape> {
    int row;

    __device__ RecurItem(int item, int tile) {
        int at = item * THREADS + threadIdx.x;
        row = at / Shape::units;
        this->unit = at % Shape::units;
        this->example = (long long)tile * Shape::rows + row;
        this->exists = row < Shape::rows && this->example < Shape::examples;
    }
};

/* ---- forward ---- */

template <class Shape>
__device__ void recur_alone(const typename Shape::Number *x, const float *u, const float *bias, const float *start,
                            const float *length, float *out, float *kept, int tile, char *shared) {
    using Product = RecurProduct<Shape>;
    float *state = (float *)shared, *sums = state + Product::state_floats;
    RecurUnit<Shape> units[Shape::items];
    __syncthreads();
    recur_zero(state, Product::state_floats);
    __syncthreads();
#pragma unroll
    for (int item = 0; item < Shape::items; item++) {
        RecurItem<Shape> at(item, tile);
        if (!at.exists)
            continue;
        state[at.row * Product::length + at.unit] = units[item].h = start[at.start(0)];
        if (Shape::cell == LSTM)
            units[item].c = start[at.start(1)];
    }
    Product product(u);
    for (int turn = 0; turn < Shape::steps; turn++) {
        int t = Shape::step(turn);
        float inputs[Shape::items][Shape::gates];
#pragma unroll
        for (int item = 0; item < Shape::items; item++) {
            RecurItem<Shape> at(item, tile);
#pragma unroll
            for (int gate = 0; gate < Shape::gates; gate++)
                inputs[item][gate] = at.exists ? x[at.place(t, Shape::gates, gate)] : 0;
        }
        __syncthreads();
        product.multiply(state, sums);
        __syncthreads();
#pragma unroll
        for (int item = 0; item < Shape::items; item++) {
            RecurItem<Shape> at(item, tile);
            RecurUnit<Shape> &unit = units[item];
            if (!at.exists)
                continue;
            float sum[Shape::gates];
#pragma unroll
            for (int gate = 0; gate < Shape::gates; gate++)
                sum[gate] =
                    Product::whole(sums, at.row, gate * Shape::units + at.unit) + bias[gate * Shape::units + at.unit];
            if (t < length[at.example])
                unit.run(inputs[item], sum);
            else
                unit.hold();
            state[at.row * Product::length + at.unit] = out[at.place(t, 1, 0)] = unit.h;
            if (kept)
#pragma unroll
                for (int k = 0; k < Shape::kept; k++)
                    kept[at.place(t, Shape::kept, k)] = unit.kept[k];
        }
    }
}

/* ---- gradient ---- */

template <class Shape>
__device__ void recur_grad_alone(const typename Shape::Number *kept, const float *ut, const float *out,
                                 const float *start, const float *length, const float *dy, float *gates, float *d_start,
                                 int tile, char *shared) {
    using Product = RecurBackProduct<Shape>;
    float *state = (float *)shared, *sums = state + Product::state_floats;
    RecurBack<Shape> units[Shape::items];
    RecurRead<Shape> reads[Shape::items];
    __syncthreads();
    recur_zero(state, Product::state_floats);
    recur_zero(sums, Product::sum_floats);
    Product product(ut);
#pragma unroll
    for (int item = 0; item < Shape::items; item++) {
        RecurItem<Shape> at(item, tile);
        if (at.exists)
            reads[item] = RecurRead<Shape>(at, Shape::steps - 1, kept, out, start, dy);
    }
    __syncthreads();
    for (int turn = Shape::steps - 1; turn >= 0; turn--) {
        int t = Shape::step(turn);
#pragma unroll
        for (int item = 0; item < Shape::items; item++) {
            RecurItem<Shape> at(item, tile);
            RecurBack<Shape> &unit = units[item];
            if (!at.exists)
                continue;
            unit.h += Product::whole(sums, at.row, at.unit);
            if (t < length[at.example])
                unit.run(reads[item]);
            else
                unit.hold(reads[item]);
#pragma unroll
            for (int gate = 0; gate < Shape::gates; gate++) {
                state[at.row * Product::length + gate * Shape::units + at.unit] = unit.through(gate);
                gates[at.place(t, Shape::gates, gate)] = unit.gates[gate];
            }
            if (turn)
                reads[item] = RecurRead<Shape>(at, turn - 1, kept, out, start, dy);
        }
        __syncthreads();
        product.multiply(state, sums);
        __syncthreads();
    }
#pragma unroll
    for (int item = 0; item < Shape::items; item++) {
        RecurItem<Shape> at(item, tile);
        if (!at.exists || !d_start)
            continue;
        d_start[at.start(0)] = units[item].h + Product::whole(sums, at.row, at.unit);
        if (Shape::cell == LSTM)
            d_start[at.start(1)] = units[item].c;
    }
}

/* ---- by one block, or by several together ---- */

template <class Shape> constexpr int recur_tiles() {
    return Shape::blocks > 1 ? crew_tiles<Shape>() : Shape::tiles;
}
template <class Shape> constexpr int recur_grad_tiles() {
    return recur_tiles<Shape>();
}
template <class Shape> constexpr int recur_shared() {
    if constexpr (Shape::blocks > 1)
        return std::max(CrewStep<Shape, RecurCrew<Shape, true>>::bytes,
                        CrewStep<Shape, RecurCrew<Shape, false>>::bytes);
    else
        return recur_bytes<RecurProduct<Shape>>();
}
template <class Shape> constexpr int recur_grad_shared() {
    if constexpr (Shape::blocks > 1)
        return std::max(CrewBackStep<Shape, RecurCrew<Shape, true>>::bytes,
                        CrewBackStep<Shape, RecurCrew<Shape, false>>::bytes);
    else
        return recur_bytes<RecurBackProduct<Shape>>();
}

template <class Shape>
__device__ void recur(const typename Shape::Number *x, const float *u, const float *bias, const float *start,
                      const float *length, float *out, float *kept, int tile, char *shared) {
    if constexpr (Shape::blocks == 1)
        recur_alone<Shape>(x, u, bias, start, length, out, kept, tile, shared);
    else if (in_crew<Shape>())
        CrewForward<Shape, RecurCrew<Shape, true>>{x, u, bias, start, length, out, kept, tile, (float *)shared}.run();
    else
        CrewForward<Shape, RecurCrew<Shape, false>>{x, u, bias, start, length, out, kept, tile, (float *)shared}.run();
}

template <class Shape>
__device__ void recur_grad(const typename Shape::Number *kept, const float *ut, const float *out, const float *start,
                           const float *length, const float *dy, float *gates, float *d_start, int tile, char *shared) {
    if constexpr (Shape::blocks == 1)
        recur_grad_alone<Shape>(kept, ut, out, start, length, dy, gates, d_start, tile, shared);
    else if (in_crew<Shape>())
        CrewBackward<Shape, RecurCrew<Shape, true>>{kept, ut,    out,     start, length,
                                                    dy,   gates, d_start, tile,  (float *)shared}
            .run();
    else
        CrewBackward<Shape, RecurCrew<Shape, false>>{kept, ut,    out,     start, length,
                                                     dy,   gates, d_start, tile,  (float *)shared}
            .run();
}

#endif
