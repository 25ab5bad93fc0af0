/* What the device has added up, over all ranks. */
#ifndef MTC_RANK_SUMS_H
#define MTC_RANK_SUMS_H

#include "session/session.h"

typedef struct MtcRankSums MtcRankSums;

/* GPUs that all ranks have together; of processors, 0. */
int mtc_rank_devices(MtcSession *session, int *devices);
int mtc_rank_sums_new(MtcSession *session, MtcRankSums **ranks);
void mtc_rank_sums_free(MtcSession *session, MtcRankSums *ranks); /* also of NULL */
/* The model's sums in the device's memory become those of all ranks, at once or enqueued: then the next call, or await, waits for it,
 * as long as a rank waits for another. */
const char *mtc_sum_over_ranks(MtcSession *session, MtcRankSums *ranks, char *sums);
/* Likewise so many bytes at an offset of the arena, no more than the model's sums have. */
const char *mtc_sum_range_over_ranks(MtcSession *session, MtcRankSums *ranks, size_t offset, size_t bytes);
/* Weights that this rank has updated, and their averages, go to all. */
const char *mtc_share_updates(MtcSession *session, MtcRankSums *ranks);
const char *mtc_await_rank_sums(MtcSession *session, MtcRankSums *ranks);
/* Steps of ranks with one shard each, the one that the clock shows, where devices do all of it: true, and enqueued, or *error. */
bool mtc_train_among_ranks(MtcSession *session, MtcRankSums *ranks, const MtcRun *run, int64_t steps,
                           const char **error);
/* Behind work that has ended: a fault where a rank was waited for in vain. */
int mtc_check_rank_sums(MtcSession *session, const MtcRankSums *ranks);

#endif
