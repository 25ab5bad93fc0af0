/* The examples of one step: which they are, what each counts, and their random numbers. */
#ifndef MTC_CPU_BATCH_H
#define MTC_CPU_BATCH_H

#include "mtc.h"
#include "random.h"

#include <string.h>

typedef struct Batch {
    const MtcRun *run;
    const int *order; /* of the epoch's examples; NULL: as they lie */
    int64_t first;    /* position of row 0 in that order */
    int rows;         /* real examples; the rows after them are filler */
    int whole;        /* real examples of the batch, of which this may be a shard */
    int64_t before;   /* of them, those in the shards before this one */
    int64_t step;     /* 1 for the first update */
    double *reports;  /* where this step's means go */
    bool follows;     /* of a shard: it adds to what the one before has left */
} Batch;

/* Where tensors begin in the arena, for the pointers to them that a struct begins with. */
static inline void mtc_set_pointers(void *pointers, char *arena, const int64_t *bytes, size_t count) {
    for (size_t k = 0; k < count; k++) {
        void *tensor = arena + bytes[k];
        memcpy((char *)pointers + k * sizeof tensor, &tensor, sizeof tensor);
    }
}

#define begin_at(run, place, ...)                                                                                      \
    mtc_set_pointers(&(place), (run)->arena, (const int64_t[]){__VA_ARGS__},                                           \
                     sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t))

/* The batch of the training step that comes `ahead` steps after the one that the clock shows. */
static inline Batch batch_of_step(const MtcRun *run, int64_t ahead, int size, int reports) {
    int64_t at = run->clock[1] + ahead, epoch = at / run->steps_per_epoch;
    int64_t first = at % run->steps_per_epoch * size, left = run->data.examples - first;
    int rows = (int)(left < size ? left : size);
    double *means = run->reports + (run->clock[2] + ahead) * reports;
    const int *order = run->order + epoch * run->data.examples;
    return (Batch){run, order, first, rows, rows, 0, run->clock[0] + ahead + 1, means, false};
}

/* Examples first .. first + rows of the data set, for evaluation. */
static inline Batch batch_of_examples(const MtcRun *run, int64_t first, int64_t rows, int64_t slot, int reports) {
    return (Batch){run, NULL, first, (int)rows, (int)rows, 0, run->clock[0] + 1, run->reports + slot * reports, false};
}

/* The example in row i of the batch; filler rows repeat the first. */
static inline int64_t row(const Batch *batch, int i) {
    int64_t at = batch->first + (i < batch->rows ? i : 0);
    return batch->order ? batch->order[at] : at;
}

/* Its place in the whole set, of which some may be in memory at a time. */
static inline int64_t example_number(const Batch *batch, int i) {
    const int *number = batch->run->data.number;
    return number ? number[row(batch, i)] : row(batch, i);
}

/* The row of the example behind that in row i; behind the last one comes the first. */
static inline int next_row(const Batch *batch, int i) {
    return i + 1 < batch->rows ? i + 1 : 0;
}

/* Index i of an axis of `size` elements; beyond an end that of the element that a mirror there shows. */
static inline int reflected(int i, int size) {
    const int up = i < 0 ? -i : i;
    return up < size ? up : 2 * (size - 1) - up;
}

/* The weight of row i in a mean over the batch. */
static inline real share(const Batch *batch, int i) {
    return i < batch->rows ? (real)1 / (real)batch->whole : 0;
}

static inline real examples(const Batch *batch) {
    return (real)batch->rows;
}

/* Of which this may be a shard. */
static inline real examples_of_batch(const Batch *batch) {
    return (real)batch->whole;
}

static inline real examples_before(const Batch *batch) {
    return (real)batch->first;
}

static inline real step(const Batch *batch) {
    return (real)batch->step;
}

/* This step is one of each n. */
static inline bool every(const Batch *batch, int n) {
    return batch->step % n == 0;
}

/* Where this step stands in a turn of n. */
static inline int turn(const Batch *batch, int n) {
    return (int)(batch->step % n);
}

static inline real steps_per_epoch(const Batch *batch) {
    return (real)batch->run->steps_per_epoch;
}

/* Of the whole training. */
static inline real total_steps(const Batch *batch) {
    return (real)batch->run->last_step;
}

/* How often a learning rate has waited for a better evaluation in vain. */
static inline real falls(const Batch *batch, int plateau) {
    return (real)batch->run->falls[plateau];
}

static inline real knob(const Batch *batch, int index) {
    return sizeof(real) == sizeof(double) ? (real)batch->run->exact_knob[index] : (real)batch->run->knob[index];
}

/* Of the token that is generated from: its position, and itself. */
static inline int position(const Batch *batch) {
    return (int)batch->run->clock[MTC_POSITION];
}

static inline int token(const Batch *batch) {
    return (int)batch->run->clock[MTC_TOKEN];
}

/* Uniform in [0, 1), a function of seed, stream, step and element alone. */
static inline real uniform(const Batch *batch, int stream, int64_t element) {
    return mtc_uniform(batch->run->seed, (uint32_t)stream, (uint64_t)batch->step, (uint64_t)element);
}

/* Normally distributed, with mean 0 and deviation 1, likewise. */
static inline real gaussian(const Batch *batch, int stream, int64_t element) {
    return mtc_normal(batch->run->seed, (uint32_t)stream, (uint64_t)batch->step, (uint64_t)element);
}

/* The same in evaluation, by where the batch is in its set in place of the step: the same in each evaluation. */
static inline uint64_t mtc_place_in_set(const Batch *batch) {
    return (uint64_t)(batch->run->before + batch->first);
}

static inline real uniform_in_set(const Batch *batch, int stream, int64_t element) {
    return mtc_uniform(batch->run->seed, MTC_SET_STREAM + (uint32_t)stream, mtc_place_in_set(batch), (uint64_t)element);
}

static inline real gaussian_in_set(const Batch *batch, int stream, int64_t element) {
    return mtc_normal(batch->run->seed, MTC_SET_STREAM + (uint32_t)stream, mtc_place_in_set(batch), (uint64_t)element);
}

/* A whole number from -reach to reach, two for an example: by the shard's rows, as are the elements of the next. */
static inline int random_shift(const Batch *batch, int stream, int64_t element, int reach) {
    return (int)(uniform(batch, stream, 2 * batch->before + element) * (real)(2 * reach + 1)) - reach;
}

/* The index, or in half of all cases that counted from the other end. */
static inline int random_mirror(const Batch *batch, int stream, int64_t element, int index, int size) {
    return uniform(batch, stream, batch->before + element) < 0.5f ? size - 1 - index : index;
}

/* The index; or that counted from the other end, where a bit drawn for the example in row i, of no step, and the epoch's number
 * have an odd sum. */
static inline int alternating_mirror(const Batch *batch, int stream, int i, int index, int size) {
    const uint32_t drawn = mtc_random(batch->run->seed, (uint32_t)stream, 0, (uint64_t)example_number(batch, i)) >> 31;
    const int64_t epoch = (batch->step - 1) / batch->run->steps_per_epoch;
    return (drawn + (uint32_t)epoch) & 1 ? size - 1 - index : index;
}

#endif
