/* Of weights that lie one behind the other, and are updated element by element, each of several processes has a range. */
#ifndef MTC_CUDA_PART_CUH
#define MTC_CUDA_PART_CUH

#include "mtc.h"

/* Of `count` elements from `place` on, the first of the process's, and the first behind these: none where that is no larger. */
static __device__ int64_t own_first(int64_t part_begin, int64_t place) {
    return part_begin > place ? part_begin - place : 0;
}

static __device__ int64_t own_end(int64_t part_end, int64_t place, int64_t count) {
    return part_end - place < count ? part_end - place : count;
}

/* Where piece number `slot` of the states has byte `place` of the whole, though the memory begins with the process's own. */
static __device__ void *own_states(const MtcRun &run, int slot, int64_t place) {
    return (void *)(run.states + (uintptr_t)slot * run.state_bytes + (uintptr_t)place);
}

#endif
