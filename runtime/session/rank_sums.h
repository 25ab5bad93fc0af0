/* What the device has added up, over all ranks. */
#ifndef MTC_RANK_SUMS_H
#define MTC_RANK_SUMS_H

#include "session/session.h"

typedef struct MtcRankSums MtcRankSums;

int mtc_rank_sums_new(MtcSession *session, MtcRankSums **ranks);
void mtc_rank_sums_free(MtcSession *session, MtcRankSums *ranks); /* also of NULL */
/* The model's sums in the device's memory become those of all ranks, at once or enqueued: then the next call, or await, waits for it,
 * as long as a rank waits for another. */
const char *mtc_sum_over_ranks(MtcSession *session, MtcRankSums *ranks, char *sums);
const char *mtc_await_rank_sums(MtcSession *session, MtcRankSums *ranks);

#endif
