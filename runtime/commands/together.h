/* A training in several processes, before its first step. */
#ifndef MTC_TOGETHER_H
#define MTC_TOGETHER_H

#include "commands/cli.h"

/* Each of so many takes as many shards. What other numbers of them need is another program. */
int mtc_check_ranks(MtcFault *fault, const MtcModel *model, const MtcOptions *options, int count);
/* Of those that were started, or --gpus starts. *waited: as mtc_ranks_launch has it. */
int mtc_join_others(MtcFault *fault, const MtcModel *model, const MtcOptions *options, bool *waited);
/* Rank 0 shows, logs and saves for all. */
int mtc_quiet_other_ranks(MtcFault *fault, MtcOptions *options);
/* What must not differ; then how they add up, as --sums says. */
int mtc_agree(MtcFault *fault, MtcSession *session, const MtcOptions *options);

#endif
