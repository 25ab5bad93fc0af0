/* A training in several processes, before its first step. */
#ifndef MTC_TOGETHER_H
#define MTC_TOGETHER_H

#include "commands/cli.h"

/* Each takes as many shards. What other numbers of them need is another program. */
int mtc_check_ranks(MtcFault *fault, const MtcModel *model, const MtcOptions *options);
/* Told by one of a machine's, where there are more of them than devices. */
void mtc_note_sharing(const MtcOptions *options);
/* Rank 0 shows, logs and saves for all. */
int mtc_quiet_other_ranks(MtcFault *fault, MtcOptions *options);
/* What must not differ. */
int mtc_agree(MtcFault *fault, MtcSession *session, const MtcOptions *options);

#endif
