/* What a session asks its device for, and has whatever its data are, in bytes: the compiler tells of it, the runtime asks for it. */
#ifndef MTC_NEEDS_H
#define MTC_NEEDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Copies of weights and states from which the step of a bad number is found; steps whose reports wait on the device; bytes of the
 * clock, which says where a training stands. */
enum { MTC_SNAPSHOTS = 3, MTC_CHUNK_STEPS = 4096, MTC_CLOCK_BYTES = 64 };

typedef struct MtcNeeds {
    size_t arena;
    size_t batch;     /* the examples of a prediction */
    size_t reports;   /* of steps and of an evaluation's batch, and the clock */
    size_t snapshots; /* 0: weights and states are large, and copied to the host, once */
    size_t sums;      /* of a batch in shards */
} MtcNeeds;

/* Of the three copies on the device, of `kept` bytes each: little beside what a program has on a device that has any; else 0. */
static inline size_t mtc_snapshot_bytes(size_t kept) {
    const size_t most = (size_t)64 << 20;
    return MTC_SNAPSHOTS * kept <= most ? MTC_SNAPSHOTS * kept : 0;
}

/* Of what steps report until it is read: `rows` for each. */
static inline size_t mtc_report_bytes(size_t rows, size_t reports) {
    return MTC_CHUNK_STEPS * rows * reports * sizeof(double);
}

/* Weights and states that are neighbours are copied together, with the gap between them that alignment leaves. */
static inline bool mtc_copied_together(size_t end, size_t begin) {
    return begin <= end + 256;
}

/* Of how many shards, of so many in a process, sums wait for those of the next at a time. */
static inline int mtc_shard_levels(int64_t shards) {
    int levels = 0;
    while ((int64_t)1 << levels < shards)
        levels++;
    return levels;
}

/* Those on which sums wait for others: two neighbours come together as they are computed, unless shards stop for sums of all. */
static inline int mtc_waiting_levels(int64_t shards, bool stop) {
    const int levels = mtc_shard_levels(shards);
    return levels && !stop ? levels - 1 : levels;
}

static inline size_t mtc_needed(const MtcNeeds *needs) {
    return needs->arena + needs->batch + needs->reports + needs->snapshots + needs->sums;
}

#endif
