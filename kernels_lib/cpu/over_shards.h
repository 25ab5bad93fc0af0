/* Sums over the shards of a batch: what the runtime has added up, for all that read it.
 *
 * All threads of a team call the function together, inside a parallel region. */
#ifndef MTC_CPU_OVER_SHARDS_H
#define MTC_CPU_OVER_SHARDS_H

#include "team.h"

typedef struct OverShards {
    int64_t count;
} OverShards;

static inline void over_shards(const OverShards *shape, const real *sum, real *out) {
#pragma omp for nowait
    for (int64_t i = 0; i < shape->count; i++)
        out[i] = sum[i];
}

#endif
