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
 * the h of an RNN itself, c of an LSTM and h[t - 1] u + b of a GRU's n; null where nobody reads it. */
#ifndef MTC_CUDA_RECURRENT_CELL_CUH
#define MTC_CUDA_RECURRENT_CELL_CUH

#include "cuda/team.cuh"

template <class Number_, int EXAMPLES, int STEPS, int UNITS, RecurrentCell CELL, bool REVERSED, int BLOCKS = 1,
          bool APART = false>
struct Recurrence {
    using Number = Number_;
    static constexpr int examples = EXAMPLES, steps = STEPS, units = UNITS;
    static constexpr RecurrentCell cell = CELL;
    static constexpr int gates = recurrent_gates(CELL), states = recurrent_states(CELL), kept = recurrent_kept(CELL);
    static constexpr int rows = recurrent_examples(EXAMPLES, UNITS), tiles = (EXAMPLES + rows - 1) / rows;
    static constexpr int items = (rows * UNITS + THREADS - 1) / THREADS; // units of a thread, of any of the examples

    /* BLOCKS share the units out among them, as a cluster; apart, each works like all. */
    static constexpr int blocks = BLOCKS;
    static constexpr bool apart = APART;
    using Apart = Recurrence<Number, EXAMPLES, STEPS, UNITS, CELL, REVERSED, BLOCKS, true>;

    /* The step that is taken as number `turn`. */
    static __device__ int step(int turn) {
        return REVERSED ? STEPS - 1 - turn : turn;
    }
};

__device__ inline void recur_zero(float *at, int count) {
    for (int k = threadIdx.x; k < count; k += THREADS)
        at[k] = 0;
}

/* Unit `unit` of example `example` of all. */
template <class Shape> struct RecurPlace {
    int unit;
    long long example;
    bool exists;

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

/* ---- gradient ---- */

/* What a unit's gradient reads at a step. */
template <class Shape> struct RecurRead {
    float kept[Shape::kept], dy = 0, before = 0; // before: h[t - 1] of a GRU, c[t - 1] of an LSTM

    __device__ RecurRead() {
    }
    __device__ RecurRead(const RecurPlace<Shape> &at, int turn, const float *all_kept, const float *out,
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

#endif
