/* What a launch does ahead of its gate: see ahead.c. */
#ifndef MTC_AHEAD_H
#define MTC_AHEAD_H

#include "emit/cuda/launch.h"

/* Weights come ahead of the launch's gate; the constants that say where they and the row lie, and the launch's bytes; the body
 * of its function. */
bool brings_weights(const Emitter *e, const Launch *launch);
void write_ahead_places(Emitter *e, const Launch *launch, Writer *out);
void write_function_ahead(Emitter *e, const Launch *launch, Writer *out);

#endif
