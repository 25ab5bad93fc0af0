/* A training in several processes, before its first step. */
#ifndef MTC_TOGETHER_H
#define MTC_TOGETHER_H

#include "commands/cli.h"

/* Each of so many takes as many shards. What other numbers of them need is another program. */
int mtc_check_ranks(MtcFault *fault, const MtcModel *model, const MtcOptions *options, int count);
/* --gpus: becomes so many processes. *waited: as mtc_ranks_launch has it. */
int mtc_start_gpus(MtcFault *fault, const MtcModel *model, const MtcOptions *options, bool *waited);
/* Where several have one device, which may be meant. */
int mtc_note_sharing(MtcFault *fault, const MtcSession *session, const MtcOptions *options);
/* Rank 0 shows, logs and saves for all. */
int mtc_quiet_other_ranks(MtcFault *fault, MtcOptions *options);
/* --sums, once the device is chosen. */
int mtc_join_sums(MtcFault *fault, const MtcModel *model, const MtcOptions *options);
/* What must not differ. */
int mtc_agree(MtcFault *fault, MtcSession *session, const MtcOptions *options);

#endif
