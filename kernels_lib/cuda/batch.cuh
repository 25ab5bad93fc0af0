/* A batch: the examples of one step, what each counts, and the numbers that every kernel of the step shares. */
#ifndef MTC_CUDA_BATCH_CUH
#define MTC_CUDA_BATCH_CUH

#include "mtc.h"
#include "random.h"

struct OperandMaps;

struct Batch {
    const MtcRun *run;
    const int *order;            // of the epoch's examples; NULL: as they lie
    int64_t first;               // position of row 0 in that order
    int rows;                    // real examples; the rows after them are filler
    int ordered;                 // rows that `order` has: the real ones, or all
    int64_t step;                // 1 for the first update
    double *reports;             // where this step's means go
    int others = 0;              // of a shard: real examples of the batch that other shards have
    int64_t before = 0;          // of them, those in the shards before this one
    bool follows = false;        // of a shard: it adds to what the one before has left
    int again = 0;               // of a launch that a step makes several times, with other tensors: how often before
    OperandMaps *maps = nullptr; // of a product in turns (cuda/bulk.cuh)
};

/* The batch of the training step `ahead` steps after the one that the clock shows. */
static inline __device__ Batch batch_of_step(const MtcRun &run, const int64_t (&clock)[3], int64_t ahead, int size,
                                             int reports) {
    // few enough for 32 bits: there is an order on the device for each epoch, where a division of 64 is slow
    unsigned at = (unsigned)(clock[1] + ahead), epoch = 0;
    const unsigned steps = (unsigned)run.steps_per_epoch;
    // goes round once at most: of a condition nvcc makes a division by each block, wanted or not
    for (unsigned more; at >= steps; at -= more * steps) {
        more = at / steps;
        epoch += more;
    }
    int64_t first = (int64_t)at * size, left = run.data.examples - first;
    int rows = (int)(left < size ? left : size);
    const int *order = run.order + epoch * run.data.examples;
    return {&run, order, first, rows, rows, clock[0] + ahead + 1, run.reports + (clock[2] + ahead) * reports};
}

/* The batch of the step after: no division. */
static inline __device__ Batch batch_after(const Batch &batch, int size, int reports) {
    const MtcData &data = batch.run->data;
    int64_t first = batch.first + size;
    const int *order = batch.order;
    if (first >= data.examples) {
        first = 0;
        order += data.examples;
    }
    int rows = (int)(data.examples - first < size ? data.examples - first : size);
    return {batch.run, order, first, rows, rows, batch.step + 1, batch.reports + reports};
}

/* Examples first .. first + rows of the data set, for evaluation. */
static inline __device__ Batch batch_of_examples(const MtcRun &run, int64_t first, int64_t rows, int64_t slot,
                                                 int reports) {
    return {&run, nullptr, first, (int)rows, (int)rows, run.clock[0] + 1, run.reports + slot * reports};
}

/* The shard so many `behind` the one that the clock shows, of `size` examples where there are as many, in the batch of `whole` of its step,
 * which is so many steps ahead of the clock. */
static inline __device__ Batch batch_of_shard(const MtcRun &run, const int64_t (&clock)[3], int64_t ahead, int behind,
                                              int size, int whole, int reports) {
    Batch batch = batch_of_step(run, clock, ahead, whole, reports);
    const int shard = (int)run.clock[MTC_SHARD] + behind, row = shard - (int)run.clock[MTC_FIRST_SHARD];
    const int before = shard * size, left = batch.rows - before, rows = left < 0 ? 0 : left < size ? left : size;
    batch.others = batch.rows - rows;
    batch.rows = batch.ordered = rows;
    batch.before = batch.rows ? before : 0;
    batch.follows = row & 1;
    batch.first += batch.before;
    batch.reports = run.reports + ((clock[2] + ahead) * run.clock[MTC_SHARDS] + row) * reports;
    return batch;
}

/* The example in row i of the batch; filler rows, and any behind them, repeat the first. */
static inline __device__ int64_t row(const Batch &batch, int i) {
    int64_t at = batch.first + (i < batch.ordered ? i : 0);
    return batch.order ? batch.order[at] : at;
}

/* Its place in the whole set, of which some may be on the device at a time. */
static inline __device__ int64_t example_number(const Batch &batch, int i) {
    const int *number = batch.run->data.number;
    return number ? number[row(batch, i)] : row(batch, i);
}

/* The row of the example behind that in row i; behind the last one comes the first. */
static inline __device__ int next_row(const Batch &batch, int i) {
    return i + 1 < batch.rows ? i + 1 : 0;
}

/* Index i of an axis of `size` elements; beyond an end that of the element that a mirror there shows. */
static inline __device__ int reflected(int i, int size) {
    const int up = i < 0 ? -i : i;
    return up < size ? up : 2 * (size - 1) - up;
}

/* The weight of row i in a mean over the batch. */
static inline __device__ float share(const Batch &batch, int i) {
    return i < batch.rows ? 1.0f / (float)(batch.rows + batch.others) : 0.0f;
}

/* Where a batch of fewer examples has none for a shard, all of it is filler. */
static inline __device__ float shard_share(const Batch &batch, int i) {
    return i < batch.rows ? 1.0f / (float)batch.rows : 0.0f;
}

/* Of two shards that are computed one after the other, it is the second. */
static inline __device__ bool follows_a_shard(const Batch &batch) {
    return batch.follows;
}

static inline __device__ int64_t examples_of_shards_before(const Batch &batch) {
    return batch.before;
}

static inline __device__ float examples(const Batch &batch) {
    return (float)batch.rows;
}

/* Of which this may be a shard. */
static inline __device__ float examples_of_batch(const Batch &batch) {
    return (float)(batch.rows + batch.others);
}

static inline __device__ float examples_before(const Batch &batch) {
    return (float)batch.first;
}

static inline __device__ float step(const Batch &batch) {
    return (float)batch.step;
}

/* This step is one of each n. */
static inline __device__ bool every(const Batch &batch, int n) {
    return batch.step % n == 0;
}

/* Where this step stands in a turn of n. */
static inline __device__ int turn(const Batch &batch, int n) {
    return (int)(batch.step % n);
}

static inline __device__ float steps_per_epoch(const Batch &batch) {
    return (float)batch.run->steps_per_epoch;
}

/* Of the whole training. */
static inline __device__ float total_steps(const Batch &batch) {
    return (float)batch.run->last_step;
}

/* How often a learning rate has waited for a better evaluation in vain. */
static inline __device__ float falls(const Batch &batch, int plateau) {
    return (float)batch.run->falls[plateau];
}

static inline __device__ float knob(const Batch &batch, int index) {
    return batch.run->knob[index];
}

/* Of the token that is generated from: its position, and itself. */
static inline __device__ int position(const Batch &batch) {
    return (int)batch.run->clock[MTC_POSITION];
}

static inline __device__ int token(const Batch &batch) {
    return (int)batch.run->clock[MTC_TOKEN];
}

/* Uniform in [0, 1), a function of seed, stream, step and element alone. */
static inline __device__ float uniform(const Batch &batch, int stream, int64_t element) {
    return mtc_uniform(batch.run->seed, (uint32_t)stream, (uint64_t)batch.step, (uint64_t)element);
}

/* Normally distributed, with mean 0 and deviation 1, likewise. */
static inline __device__ float gaussian(const Batch &batch, int stream, int64_t element) {
    return mtc_normal(batch.run->seed, (uint32_t)stream, (uint64_t)batch.step, (uint64_t)element);
}

/* The same in evaluation, by where the batch is in its set in place of the step: the same in each evaluation. */
static inline __device__ uint64_t mtc_place_in_set(const Batch &batch) {
    return (uint64_t)(batch.run->before + batch.first);
}

static inline __device__ float uniform_in_set(const Batch &batch, int stream, int64_t element) {
    return mtc_uniform(batch.run->seed, MTC_SET_STREAM + (uint32_t)stream, mtc_place_in_set(batch), (uint64_t)element);
}

static inline __device__ float gaussian_in_set(const Batch &batch, int stream, int64_t element) {
    return mtc_normal(batch.run->seed, MTC_SET_STREAM + (uint32_t)stream, mtc_place_in_set(batch), (uint64_t)element);
}

/* A whole number from -reach to reach, two for an example: by the shard's rows, as are the elements of the next. */
static inline __device__ int random_shift(const Batch &batch, int stream, int64_t element, int reach) {
    return (int)(uniform(batch, stream, 2 * batch.before + element) * (float)(2 * reach + 1)) - reach;
}

/* The index, or in half of all cases that counted from the other end. */
static inline __device__ int random_mirror(const Batch &batch, int stream, int64_t element, int index, int size) {
    return uniform(batch, stream, batch.before + element) < 0.5f ? size - 1 - index : index;
}

/* The index; or that counted from the other end, where a bit drawn for the example in row i, of no step, and the epoch's number
 * have an odd sum. */
static inline __device__ int alternating_mirror(const Batch &batch, int stream, int i, int index, int size) {
    const uint32_t drawn = mtc_random(batch.run->seed, (uint32_t)stream, 0, (uint64_t)example_number(batch, i)) >> 31;
    const int64_t epoch = (batch.step - 1) / batch.run->steps_per_epoch;
    return (drawn + (uint32_t)epoch) & 1 ? size - 1 - index : index;
}

#endif
