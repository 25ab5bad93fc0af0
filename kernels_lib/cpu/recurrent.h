/* All steps of a recurrent layer, and their gradient. Of an example, with x the gates' part of the inputs,
 *
 *     RNN_TANH    h[t] = tanh(x[t] + h[t - 1] u + b)              RNN_RELU    relu of it
 *     GRU         r, z = sigmoid(x[t] + h[t - 1] u + b)           n = tanh(x[t] + r * (h[t - 1] u + b))
 *                 h[t] = (1 - z) * n + z * h[t - 1]
 *     LSTM        i, f, o = sigmoid(x[t] + h[t - 1] u + b)        g = tanh(x[t] + h[t - 1] u + b)
 *                 c[t] = f * c[t - 1] + i * g                     h[t] = o * tanh(c[t])
 *
 * for t = 0, 1 .., `reversed` the other way; at t >= length the state stays what it was. x and its gradient are
 * [examples, steps, gates * units], gates in the order above; u is [units, gates * units], its transpose `ut`; start is
 * [examples, units], of an LSTM h and then c. `kept`, which is all that the gradient reads of a step, has the gates, behind them
 * the h of an RNN itself, c of an LSTM and h[t - 1] u + b of a GRU's n; NULL where nobody reads it.
 *
 * A block of examples goes through all steps together: a step is a product of their states with u, some units at a time, and
 * what the cell makes of it. Each sum runs over h upwards, whatever the block and the number of threads.
 *
 * All threads of a team call the functions together, inside a parallel region. */
#ifndef MTC_CPU_RECURRENT_H
#define MTC_CPU_RECURRENT_H

#include "math.h"
#include "matmul.h"
#include "shared.h"

typedef struct Recurrence {
    int64_t examples, steps, units;
    RecurrentCell cell;
    bool reversed;
} Recurrence;

enum {
    RECUR_ROWS = 16,  /* examples of a block */
    RECUR_UNITS = 48, /* of a product */
    RECUR_SUMS = RECUR_ROWS * RECUR_UNITS,
    RECUR_STATE = RECUR_ROWS * LARGEST_STATE
};

/* The step that is taken as number `turn`. */
static inline int64_t recur_step(const Recurrence *shape, int64_t turn) {
    return shape->reversed ? shape->steps - 1 - turn : turn;
}

/* Some neighbouring units of an example at one step: gate k of unit j is at [k * stride + j]. */
typedef struct RecurUnits {
    int count, stride;
    const real *x, *sum, *bias, *before; /* before: h[t - 1] */
    int sum_stride;
    real *c, *h, *kept;
} RecurUnits;

static inline void recur_rnn(const RecurUnits *at, bool rectified) {
#pragma omp simd
    for (int j = 0; j < at->count; j++) {
        real sum = at->x[j] + (at->sum[j] + at->bias[j]), bent = rectified ? relu(sum) : tanh(sum);
        at->h[j] = at->kept[j] = bent;
    }
}

static inline void recur_gru(const RecurUnits *at) {
    const int n = at->stride, s = at->sum_stride;
#pragma omp simd
    for (int j = 0; j < at->count; j++) {
        real reset = sigmoid(at->x[j] + (at->sum[j] + at->bias[j]));
        real update = sigmoid(at->x[n + j] + (at->sum[s + j] + at->bias[n + j]));
        real hidden = at->sum[2 * s + j] + at->bias[2 * n + j], fresh = tanh(at->x[2 * n + j] + reset * hidden);
        at->kept[j] = reset;
        at->kept[n + j] = update;
        at->kept[2 * n + j] = fresh;
        at->kept[3 * n + j] = hidden;
        at->h[j] = (1 - update) * fresh + update * at->before[j];
    }
}

static inline void recur_lstm(const RecurUnits *at) {
    const int n = at->stride, s = at->sum_stride;
#pragma omp simd
    for (int j = 0; j < at->count; j++) {
        real in = sigmoid(at->x[j] + (at->sum[j] + at->bias[j]));
        real forget = sigmoid(at->x[n + j] + (at->sum[s + j] + at->bias[n + j]));
        real fresh = tanh(at->x[2 * n + j] + (at->sum[2 * s + j] + at->bias[2 * n + j]));
        real out = sigmoid(at->x[3 * n + j] + (at->sum[3 * s + j] + at->bias[3 * n + j]));
        real c = forget * at->c[j] + in * fresh;
        at->kept[j] = in;
        at->kept[n + j] = forget;
        at->kept[2 * n + j] = fresh;
        at->kept[3 * n + j] = out;
        at->kept[4 * n + j] = at->c[j] = c;
        at->h[j] = out * tanh(c);
    }
}

/* Behind the end of an example: the state stays. What the gradient multiplies by 0 there is 0. */
static inline void recur_hold(const RecurUnits *at, RecurrentCell cell) {
    for (int k = 0; k < recurrent_kept(cell); k++)
        for (int j = 0; j < at->count; j++)
            at->kept[k * at->stride + j] = k == 4 ? at->c[j] : 0;
    for (int j = 0; j < at->count; j++)
        at->h[j] = at->before[j];
}

static inline void recur_units(const RecurUnits *at, RecurrentCell cell, bool holds) {
    if (holds)
        recur_hold(at, cell);
    else if (cell == LSTM)
        recur_lstm(at);
    else if (cell == GRU)
        recur_gru(at);
    else
        recur_rnn(at, cell == RNN_RELU);
}

/* What all steps of a block of examples read and write: pointers to the first of these. */
typedef struct Recurring {
    const real *x, *u, *bias, *start, *length;
    real *out, *kept;
    int rows;
} Recurring;

/* `count` units from `first` on, at the step taken as number `turn`. */
static inline void recur_turn(const Recurrence *shape, const Recurring *b, int64_t turn, int first, int count,
                              real *c) {
    const int units = (int)shape->units, gates = recurrent_gates(shape->cell), kept = recurrent_kept(shape->cell);
    const int64_t t = recur_step(shape, turn), line = shape->steps * units;
    const real *before = turn ? b->out + recur_step(shape, turn - 1) * units : b->start;
    const int64_t apart = turn ? line : recurrent_states(shape->cell) * units;
    real sum[4 * RECUR_SUMS] __attribute__((aligned(64))), unread[5 * LARGEST_STATE];
    for (int k = 0; k < gates; k++)
        matmul(sum + k * RECUR_SUMS, RECUR_UNITS, matrix(before, (int)apart), matrix(b->u, gates * units), 0,
               k * units + first, b->rows, count, units);
    for (int e = 0; e < b->rows; e++) {
        const int64_t place = e * shape->steps + t;
        RecurUnits at = {.count = count,
                         .stride = units,
                         .x = b->x + place * gates * units + first,
                         .sum = sum + e * RECUR_UNITS,
                         .bias = b->bias + first,
                         .before = before + e * apart + first,
                         .sum_stride = RECUR_SUMS,
                         .c = c + e * units + first,
                         .h = b->out + place * units + first,
                         .kept = b->kept ? b->kept + place * kept * units + first : unread};
        recur_units(&at, shape->cell, (real)t >= b->length[e]);
    }
}

static inline void recur_block(const Recurrence *shape, const Recurring *b) {
    const int units = (int)shape->units;
    real c[RECUR_STATE];
    for (int e = 0; e < b->rows && shape->cell == LSTM; e++)
        memcpy(c + e * units, b->start + (2 * e + 1) * units, sizeof(real) * (size_t)units);
    for (int64_t turn = 0; turn < shape->steps; turn++)
        for (int first = 0; first < units; first += RECUR_UNITS)
            recur_turn(shape, b, turn, first, least(units - first, RECUR_UNITS), c);
}

static inline void recur(const Recurrence *shape, const real *x, const real *u, const real *bias, const real *start,
                         const real *length, real *out, real *kept) {
    const int64_t line = shape->steps * shape->units;
#pragma omp for nowait
    for (int64_t first = 0; first < shape->examples; first += RECUR_ROWS) {
        const int64_t left = shape->examples - first;
        Recurring block = {.x = x + first * line * recurrent_gates(shape->cell),
                           .u = u,
                           .bias = bias,
                           .start = start + first * recurrent_states(shape->cell) * shape->units,
                           .length = length + first,
                           .out = out + first * line,
                           .kept = kept ? kept + first * line * recurrent_kept(shape->cell) : NULL,
                           .rows = left < RECUR_ROWS ? (int)left : RECUR_ROWS};
        recur_block(shape, &block);
    }
}

/* ---- gradient ---- */

/* All units of an example at one step, and its state's gradient on the way back: of h[t] in `state`, then of h[t - 1] but for
 * what comes through the gates; of c in `cell`. */
typedef struct RecurBack {
    int units;
    const real *kept, *h, *before, *c_before, *dy;
    real *gates, *hidden, *state, *cell; /* hidden: of h[t - 1] u + b of a GRU's n */
} RecurBack;

static inline void recur_back_rnn(const RecurBack *at, bool rectified) {
#pragma omp simd
    for (int j = 0; j < at->units; j++) {
        real h = at->h[j], d = at->dy[j] + at->state[j];
        at->gates[j] = rectified ? (h > 0 ? d : 0) : d * (1 - h * h);
        at->state[j] = 0;
    }
}

static inline void recur_back_gru(const RecurBack *at) {
    const int n = at->units;
#pragma omp simd
    for (int j = 0; j < n; j++) {
        real reset = at->kept[j], update = at->kept[n + j], fresh = at->kept[2 * n + j], hidden = at->kept[3 * n + j];
        real d = at->dy[j] + at->state[j], d_fresh = d * (1 - update) * (1 - fresh * fresh);
        at->gates[j] = d_fresh * hidden * reset * (1 - reset);
        at->gates[n + j] = d * (at->before[j] - fresh) * update * (1 - update);
        at->gates[2 * n + j] = d_fresh;
        at->hidden[j] = d_fresh * reset;
        at->state[j] = d * update;
    }
}

static inline void recur_back_lstm(const RecurBack *at) {
    const int n = at->units;
#pragma omp simd
    for (int j = 0; j < n; j++) {
        real in = at->kept[j], forget = at->kept[n + j], fresh = at->kept[2 * n + j], out = at->kept[3 * n + j];
        real bent = tanh(at->kept[4 * n + j]), d = at->dy[j] + at->state[j];
        real d_c = at->cell[j] + d * out * (1 - bent * bent);
        at->gates[j] = d_c * fresh * in * (1 - in);
        at->gates[n + j] = d_c * at->c_before[j] * forget * (1 - forget);
        at->gates[2 * n + j] = d_c * in * (1 - fresh * fresh);
        at->gates[3 * n + j] = d * bent * out * (1 - out);
        at->cell[j] = d_c * forget;
        at->state[j] = 0;
    }
}

static inline void recur_back_hold(const RecurBack *at, int gates) {
    zero_numbers(at->gates, gates * at->units);
    zero_numbers(at->hidden, at->units);
    for (int j = 0; j < at->units; j++)
        at->state[j] += at->dy[j];
}

static inline void recur_back(const RecurBack *at, RecurrentCell cell, bool holds) {
    if (holds)
        recur_back_hold(at, recurrent_gates(cell));
    else if (cell == LSTM)
        recur_back_lstm(at);
    else if (cell == GRU)
        recur_back_gru(at);
    else
        recur_back_rnn(at, cell == RNN_RELU);
}

typedef struct RecurringBack {
    const real *kept, *ut, *out, *start, *length, *dy;
    real *gates, *d_start;
    int rows;
} RecurringBack;

/* Gradients of a block's states, in rows of `stride`: a product adds to them. */
typedef struct RecurState {
    int stride;
    real *h, *c, *hidden;
} RecurState;

static inline void recur_back_turn(const Recurrence *shape, const RecurringBack *b, int64_t turn, RecurState state) {
    const int units = (int)shape->units, gates = recurrent_gates(shape->cell), kept = recurrent_kept(shape->cell);
    const int64_t t = recur_step(shape, turn), t_before = turn ? recur_step(shape, turn - 1) : 0;
    for (int e = 0; e < b->rows; e++) {
        const int64_t place = e * shape->steps + t, place_before = e * shape->steps + t_before;
        const real *start = b->start + e * recurrent_states(shape->cell) * units;
        RecurBack at = {.units = units,
                        .kept = b->kept + place * kept * units,
                        .h = b->out + place * units,
                        .before = turn ? b->out + place_before * units : start,
                        .c_before = turn ? b->kept + (place_before * kept + 4) * units : start + units,
                        .dy = b->dy + place * units,
                        .gates = b->gates + place * gates * units,
                        .hidden = state.hidden + e * units,
                        .state = state.h + e * state.stride,
                        .cell = state.c + e * units};
        recur_back(&at, shape->cell, (real)t >= b->length[e]);
    }
}

/* What goes to h[t - 1] through the gates. */
static inline void recur_back_product(const Recurrence *shape, const RecurringBack *b, int64_t turn, RecurState state) {
    const int units = (int)shape->units, width = recurrent_gates(shape->cell) * units;
    const bool apart = shape->cell == GRU;
    Matrix gates = matrix(b->gates + recur_step(shape, turn) * width, (int)shape->steps * width);
    Matrix ut = matrix(b->ut, units);
    matmul_add(state.h, state.stride, gates, ut, 0, 0, b->rows, units, apart ? 2 * units : width);
    if (apart)
        matmul_add(state.h, state.stride, matrix(state.hidden, units), rows_from(ut, 2 * units), 0, 0, b->rows, units,
                   units);
}

static inline void recur_back_block(const Recurrence *shape, const RecurringBack *b) {
    const int units = (int)shape->units;
    real h[RECUR_STATE] __attribute__((aligned(64))), c[RECUR_STATE], hidden[RECUR_STATE];
    RecurState state = {(units + 15) / 16 * 16, h, c, hidden};
    zero_numbers(h, RECUR_ROWS * state.stride);
    zero_numbers(c, RECUR_ROWS * units);
    for (int64_t turn = shape->steps - 1; turn >= 0; turn--) {
        recur_back_turn(shape, b, turn, state);
        recur_back_product(shape, b, turn, state);
    }
    for (int e = 0; e < b->rows && b->d_start; e++) {
        real *to = b->d_start + e * recurrent_states(shape->cell) * units;
        memcpy(to, h + e * state.stride, sizeof(real) * (size_t)units);
        if (shape->cell == LSTM)
            memcpy(to + units, c + e * units, sizeof(real) * (size_t)units);
    }
}

static inline void recur_grad(const Recurrence *shape, const real *kept, const real *ut, const real *out,
                              const real *start, const real *length, const real *dy, real *gates, real *d_start) {
    const int64_t line = shape->steps * shape->units, states = recurrent_states(shape->cell) * shape->units;
#pragma omp for nowait
    for (int64_t first = 0; first < shape->examples; first += RECUR_ROWS) {
        const int64_t left = shape->examples - first;
        RecurringBack block = {.kept = kept + first * line * recurrent_kept(shape->cell),
                               .ut = ut,
                               .out = out + first * line,
                               .start = start + first * states,
                               .length = length + first,
                               .dy = dy + first * line,
                               .gates = gates + first * line * recurrent_gates(shape->cell),
                               .d_start = d_start ? d_start + first * states : NULL,
                               .rows = left < RECUR_ROWS ? (int)left : RECUR_ROWS};
        recur_back_block(shape, &block);
    }
}

#endif
