/* What a launch has, and what it is called. */
#ifndef MTC_LAUNCH_H
#define MTC_LAUNCH_H

#include "emit/kernel/repeat.h"

/* A launch. Those that have the same kernels, with other tensors, are one function: `like` is the first of them. */
struct Launch {
    const Program *program;
    int phase, beside; /* 0: the first of its phase */
    Phase kernels;
    Groups groups;
    Groups before;  /* what each block computes for itself first; none, or one of one place */
    Kernel *row;    /* whose that is; NULL: nobody's */
    Groups behind;  /* rows that blocks compute behind the tiles of a group, .. */
    VEC(int) leads; /* .. for each of them that one; both are of one place */
    bool ahead;     /* there is such a row, or weights come ahead of the gate: ahead.c */
    const char *name;
    int like, again, times; /* the first one: how many there are; any: where it stands among them */
};
int all_groups(const Launch *launch);
/* "h::tiles", "12 * h::tiles" */
const char *group_tiles(Emitter *e, const Group *group);
/* Behind the groups that have tiles, what each block computes first, and what some do behind their tiles. */
const Group *group_at(const Launch *launch, int group);
/* The place of the group's tile: "3", "batch.again + tile / h::tiles". */
const char *place_of(Emitter *e, const Launch *launch, int group);
/* The shared memory that that one takes that takes most. */
const char *most_bytes(Emitter *e, const Launch *launch);

/* Where the group's first place lies each time that the launch is made: from `first` on, `step` further each time. */
typedef struct Walk {
    int first, step;
    bool even; /* it does so */
} Walk;

Walk walk_of(const Emitter *e, const Launch *launch, int group);
/* The kernel's tiles take shared memory. */
bool takes_shared(const Kernel *kernel);

#endif
