/* GPUs of one host that add up where the sums lie: each rank gives the others a way to its memory, MtcPeers of mtc.h. */
#ifndef MTC_PEERS_H
#define MTC_PEERS_H

#include "session/session.h"

typedef struct MtcPeerSums MtcPeerSums;

/* Together with all ranks. *result: NULL where one of them cannot, and *why says what stands against it. */
int mtc_peers_new(MtcSession *session, MtcPeerSums **result, const char **why);
void mtc_peers_free(MtcSession *session, MtcPeerSums *peers); /* also of NULL */

/* Enqueued: so many bytes at an offset of the arena become the sums of all; or whole steps of ranks that have one shard each. */
const char *mtc_peers_sum(MtcPeerSums *peers, const MtcModel *model, size_t offset, size_t bytes);
const char *mtc_peers_train(MtcPeerSums *peers, const MtcModel *model, const MtcRun *run, int64_t steps);
/* Behind work that has ended: a fault where another rank was waited for in vain. What was computed since then is worth nothing. */
int mtc_peers_check(MtcSession *session, const MtcPeerSums *peers);

#endif
