/* The shards of a batch. */
#ifndef MTC_CPU_SHARD_H
#define MTC_CPU_SHARD_H

#include "cpu/batch.h"

/* The shard that the clock shows, of `size` examples where there are as many, in the batch of `whole` of its step. */
static inline Batch batch_of_shard(const MtcRun *run, int size, int whole, int reports) {
    Batch batch = batch_of_step(run, 0, whole, reports);
    int64_t before = run->clock[MTC_SHARD] * size, left = batch.whole - before;
    batch.rows = (int)(left < 0 ? 0 : left < size ? left : size);
    batch.before = batch.rows ? before : 0;
    batch.first += batch.before;
    const int64_t row = run->clock[MTC_SHARD] - run->clock[MTC_FIRST_SHARD];
    batch.follows = row & 1;
    batch.reports = run->reports + (run->clock[2] * run->clock[MTC_SHARDS] + row) * reports;
    return batch;
}

/* Of two shards that are computed one after the other, it is the second. */
static inline bool follows_a_shard(const Batch *batch) {
    return batch->follows;
}

/* Where a batch of fewer examples has none for a shard, all of it is filler. */
static inline real shard_share(const Batch *batch, int i) {
    return i < batch->rows ? (real)1 / (real)batch->rows : 0;
}

static inline int64_t examples_of_shards_before(const Batch *batch) {
    return batch->before;
}

static inline void add_reals(void *to, const void *from, int64_t count) {
    real *sum = (real *)to;
    const real *more = (const real *)from;
#pragma omp parallel for simd
    for (int64_t i = 0; i < count; i++)
        sum[i] += more[i];
}

#endif
