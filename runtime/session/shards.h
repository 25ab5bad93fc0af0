/* The steps of a training: of whole batches, or of batches in shards, one after the other. What shards add up is added along a
 * tree that their number decides: of four, (0 + 1) + (2 + 3). */
#ifndef MTC_SHARDS_H
#define MTC_SHARDS_H

#include "session/session.h"

/* Before the first step, where the batch has shards. */
int mtc_shards_new(MtcSession *session);
void mtc_shards_free(MtcSession *session);

/* Enqueues so many steps, of the data of `run`. */
const char *mtc_train_steps(MtcSession *session, const MtcRun *run, int64_t steps);
/* The same without the others' sums: what this rank's work takes. */
const char *mtc_train_own_steps(MtcSession *session, const MtcRun *run, int64_t steps);
const char *mtc_choose_first_shard(MtcSession *session); /* where the batch has shards */
/* Behind steps that have ended: a fault where a rank was waited for in vain. */
int mtc_check_shards(MtcSession *session);
/* One step without its update, and of each shard the phases 0 .. phase: for the NaN diagnosis. `look` is called behind each shard;
 * true ends it. */
const char *mtc_train_phases(MtcSession *session, const MtcRun *run, int phase, bool (*look)(void *user), void *user);

/* Rows of reports that a step writes here; and of so many steps, one of each, made of those of all ranks. */
int64_t mtc_report_rows(const MtcModel *model);
/* Bytes of the device for sums that wait for others of the tree, and for what shards that stop for sums of all have of their own. */
size_t mtc_shard_bytes(const MtcModel *model);
int mtc_add_reports(MtcSession *session, double *reports, int64_t steps);

#endif
