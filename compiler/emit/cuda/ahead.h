/* What a launch does ahead of its gate: see ahead.c. */
#ifndef MTC_AHEAD_H
#define MTC_AHEAD_H

#include "emit/cuda/launch.h"

/* Weights come ahead of the launch's gate. */
bool brings_weights(const Emitter *e, const Launch *launch);
/* All that it does, as if it were one kernel; `places`: the rows of its first places; NULL: they lie evenly. */
void write_launch_ahead(Emitter *e, const Launch *launch, const char *places, Writer *out);

#endif
