/* Event files that TensorBoard reads: numbers over the steps of a training. */
#ifndef MTC_TENSORBOARD_H
#define MTC_TENSORBOARD_H

#include "base/common.h"

/* A file that is being written; NULL: none is wanted, and the functions below do nothing. */
typedef struct MtcEvents MtcEvents;

/* Begins the file events.out.tfevents.<seconds>.<host>.<process> in `folder`, which is made with its parents. `program`:
 * what the warning calls it that stderr gets when writing first fails. */
int mtc_events_open(MtcFault *fault, const char *program, const char *folder, MtcEvents **events);
/* One event, of the step that was done last: its values are added, then it is written, at once. */
void mtc_events_begin(MtcEvents *events, int64_t step);
void mtc_events_add(MtcEvents *events, const char *group, const char *name, double value); /* tag "group/name" */
void mtc_events_end(MtcEvents *events);
/* A fault: the file could not be written whole. Frees in any case. */
int mtc_events_close(MtcFault *fault, MtcEvents *events);

#endif
