/* Of weights that lie one behind the other, and are updated element by element, each of several processes has a range. */
#ifndef MTC_CPU_PART_H
#define MTC_CPU_PART_H

#include "mtc.h"

/* Of `count` elements from `place` on, the first of the process's, and the first behind these: none where that is no larger. */
static inline int own_first(int64_t part_begin, int64_t place) {
    return part_begin > place ? (int)(part_begin - place < INT32_MAX ? part_begin - place : INT32_MAX) : 0;
}

static inline int own_end(int64_t part_end, int64_t place, int count) {
    return part_end - place < 0 ? 0 : part_end - place < count ? (int)(part_end - place) : count;
}

/* Where piece number `slot` of the states has byte `place` of the whole, though the memory begins with the process's own. */
static inline void *own_states(const MtcRun *run, int slot, int64_t place) {
    return (void *)(run->states + (uintptr_t)slot * run->state_bytes + (uintptr_t)place);
}

#endif
