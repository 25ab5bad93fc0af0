/* What a rank's own work takes of a step, where a batch is in shards: for profile. */
#ifndef MTC_OWN_STEPS_H
#define MTC_OWN_STEPS_H

#include "commands/bench.h"

/* The clock at the first step of an epoch, whose order is on the device: a whole batch, or its first shard here, wherever training stands. */
const char *mtc_begin_epoch(MtcSession *session);
/* Seconds of a step of its shards and the update, without the others: of each rank, in memory for free, which all have then. NULL: the batch has no
 * shards. */
int mtc_measure_own_steps(MtcSession *session, const MtcStepTimes *step, double **own);

#endif
