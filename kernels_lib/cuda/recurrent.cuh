/* All steps of a recurrent layer, and their gradient. Of an example, with x the gates' part of the inputs,
 *
 *     RNN_TANH    h[t] = tanh(x[t] + h[t - 1] u + b)              RNN_RELU    relu of it
 *     GRU         r, z = sigmoid(x[t] + h[t - 1] u + b)           n = tanh(x[t] + r * (h[t - 1] u + b))
 *                 h[t] = (1 - z) * n + z * h[t - 1]
 *     LSTM        i, f, o = sigmoid(x[t] + h[t - 1] u + b)        g = tanh(x[t] + h[t - 1] u + b)
 *                 c[t] = f * c[t - 1] + i * g                     h[t] = o * tanh(c[t])
 *
 * for t = 0, 1 .., REVERSED the other way; at t >= length the state stays what it was. x and its gradient are
 * [examples, steps, gates * units], gates in the order above; u is [units, gates * units], its transpose `ut`; start is
 * [examples, units], of an LSTM h and then c. `kept`, which is all that the gradient reads of a step, has the gates, behind them
 * the h of an RNN itself, c of an LSTM and h[t - 1] u + b of a GRU's n; null where nobody reads it.
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

#include "cuda/team.cuh"

template <class Number_, int EXAMPLES, int STEPS, int UNITS, RecurrentCell CELL, bool REVERSED> struct Recurrence {
    using Number = Number_;
    static constexpr int examples = EXAMPLES, steps = STEPS, units = UNITS;
    static constexpr RecurrentCell cell = CELL;
    static constexpr int gates = recurrent_gates(CELL), states = recurrent_states(CELL), kept = recurrent_kept(CELL);
    static constexpr int rows = recurrent_examples(EXAMPLES, UNITS), tiles = (EXAMPLES + rows - 1) / rows;
    static constexpr int items = (rows * UNITS + THREADS - 1) / THREADS; // units of a thread, of any of the examples

    /* The step that is taken as number `turn`. */
    static __device__ int step(int turn) {
        return REVERSED ? STEPS - 1 - turn : turn;
    }
};

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

template <class Shape> constexpr int recur_tiles() {
    return Shape::tiles;
}
template <class Shape> constexpr int recur_grad_tiles() {
    return Shape::tiles;
}
template <class Product> constexpr int recur_bytes() {
    return (Product::state_floats + Product::sum_floats) * (int)sizeof(float);
}
template <class Shape> constexpr int recur_shared() {
    return recur_bytes<RecurProduct<Shape>>();
}
template <class Shape> constexpr int recur_grad_shared() {
    return recur_bytes<RecurBackProduct<Shape>>();
}

__device__ inline void recur_zero(float *at, int count) {
    for (int k = threadIdx.x; k < count; k += THREADS)
        at[k] = 0;
}

/* Unit `unit` of the tile's example `row`, which is example `example` of all. */
template <class Shape> struct RecurItem {
    int row, unit;
    long long example;
    bool exists;

    __device__ RecurItem(int item, int tile) {
        int at = item * THREADS + threadIdx.x;
        row = at / Shape::units;
        unit = at % Shape::units;
        example = (long long)tile * Shape::rows + row;
        exists = row < Shape::rows && example < Shape::examples;
    }
    /* Where part `part` of `parts` is at a step; at the start. */
    __device__ long long place(int step, int parts, int part) const {
        return ((example * Shape::steps + step) * parts + part) * Shape::units + unit;
    }
    __device__ long long start(int part) const {
        return (example * Shape::states + part) * Shape::units + unit;
    }
};

/* ---- forward ---- */

/* What a unit is at a step, and what of it is kept. */
template <class Shape> struct RecurUnit {
    float h = 0, c = 0, kept[Shape::kept];

    /* x: the gates' part of the inputs; s: h[t - 1] u + b. */
    __device__ void run(const float (&x)[Shape::gates], const float (&s)[Shape::gates]) {
        if constexpr (Shape::cell == LSTM) {
            float in = sigmoid(x[0] + s[0]), forget = sigmoid(x[1] + s[1]), fresh = tanhf(x[2] + s[2]);
            float out = sigmoid(x[3] + s[3]);
            c = forget * c + in * fresh;
            h = out * tanhf(c);
            kept[0] = in, kept[1] = forget, kept[2] = fresh, kept[3] = out, kept[4] = c;
        } else if constexpr (Shape::cell == GRU) {
            float reset = sigmoid(x[0] + s[0]), update = sigmoid(x[1] + s[1]), fresh = tanhf(x[2] + reset * s[2]);
            h = (1 - update) * fresh + update * h;
            kept[0] = reset, kept[1] = update, kept[2] = fresh, kept[3] = s[2];
        } else {
            h = kept[0] = Shape::cell == RNN_RELU ? relu(x[0] + s[0]) : tanhf(x[0] + s[0]);
        }
    }
    /* Behind the end of an example. What the gradient multiplies by 0 there is 0. */
    __device__ void hold() {
#pragma unroll
        for (int k = 0; k < Shape::kept; k++)
            kept[k] = k == 4 ? c : 0;
    }
};

template <class Shape>
__device__ void recur(const typename Shape::Number *x, const float *u, const float *bias, const float *start,
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

/* What a unit's gradient reads at a step. */
template <class Shape> struct RecurRead {
    float kept[Shape::kept], dy = 0, before = 0; // before: h[t - 1] of a GRU, c[t - 1] of an LSTM

    __device__ RecurRead() {
    }
    __device__ RecurRead(const RecurItem<Shape> &at, int turn, const float *all_kept, const float *out,
                         const float *start, const float *all_dy) {
        int t = Shape::step(turn), t_before = turn ? Shape::step(turn - 1) : 0;
#pragma unroll
        for (int k = 0; k < Shape::kept; k++)
            kept[k] = all_kept[at.place(t, Shape::kept, k)];
        dy = all_dy[at.place(t, 1, 0)];
        if (Shape::cell == LSTM)
            before = turn ? all_kept[at.place(t_before, Shape::kept, 4)] : start[at.start(1)];
        if (Shape::cell == GRU)
            before = turn ? out[at.place(t_before, 1, 0)] : start[at.start(0)];
    }
};

/* The gradients of a unit's gates at a step, and of its state: of h[t], then of h[t - 1] but for what comes through the gates. */
template <class Shape> struct RecurBack {
    float h = 0, c = 0, gates[Shape::gates], hidden; // hidden: of h[t - 1] u + b of a GRU's n

    __device__ void run(const RecurRead<Shape> &read) {
        const float(&kept)[Shape::kept] = read.kept;
        float d = read.dy + h;
        if constexpr (Shape::cell == LSTM) {
            float in = kept[0], forget = kept[1], fresh = kept[2], out = kept[3], bent = tanhf(kept[4]);
            float d_c = c + d * out * (1 - bent * bent);
            gates[0] = d_c * fresh * in * (1 - in);
            gates[1] = d_c * read.before * forget * (1 - forget);
            gates[2] = d_c * in * (1 - fresh * fresh);
            gates[3] = d * bent * out * (1 - out);
            c = d_c * forget;
            h = 0;
        } else if constexpr (Shape::cell == GRU) {
            float reset = kept[0], update = kept[1], fresh = kept[2];
            float d_fresh = d * (1 - update) * (1 - fresh * fresh);
            gates[0] = d_fresh * kept[3] * reset * (1 - reset);
            gates[1] = d * (read.before - fresh) * update * (1 - update);
            gates[2] = d_fresh;
            hidden = d_fresh * reset;
            h = d * update;
        } else {
            gates[0] = Shape::cell == RNN_RELU ? (kept[0] > 0 ? d : 0) : d * (1 - kept[0] * kept[0]);
            h = 0;
        }
    }
    __device__ void hold(const RecurRead<Shape> &read) {
#pragma unroll
        for (int gate = 0; gate < Shape::gates; gate++)
            gates[gate] = 0;
        hidden = 0;
        h += read.dy;
    }
    /* What goes back through the product. */
    __device__ float through(int gate) const {
        return Shape::cell == GRU && gate == 2 ? hidden : gates[gate];
    }
};

template <class Shape>
__device__ void recur_grad(const typename Shape::Number *kept, const float *ut, const float *out, const float *start,
                           const float *length, const float *dy, float *gates, float *d_start, int tile, char *shared) {
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

#endif
