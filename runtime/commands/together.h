/* A training, or an evaluation, in several processes, before its first step. */
#ifndef MTC_TOGETHER_H
#define MTC_TOGETHER_H

#include "commands/cli.h"

/* Each of so many takes as many shards. What other numbers of them need is another program. */
int mtc_check_ranks(MtcFault *fault, const MtcModel *model, const char *program, int count);
/* Of those that were started, or --gpus starts: as many as `trains` allows. *waited: as mtc_ranks_launch has it. */
int mtc_join_others(MtcFault *fault, const MtcModel *model, const MtcOptions *options, bool trains, bool *waited);
/* Rank 0 shows, logs and saves for all. */
int mtc_quiet_other_ranks(MtcFault *fault, MtcOptions *options);
/* The program and the data sets must not differ. */
int mtc_agree_on_data(MtcFault *fault, MtcSession *session);
/* How they add up: "peers", "nccl" or "host"; NULL: as the session says, or they can. */
int mtc_choose_sums(MtcFault *fault, MtcSession *session, const char *how);
/* Nor what a training begins with and how long it is; then how they add up, as --sums says. */
int mtc_agree(MtcFault *fault, MtcSession *session, const MtcOptions *options);
/* Likewise before an evaluation, of MTC_TEST, whatever data set that is. */
int mtc_agree_on_evaluation(MtcFault *fault, MtcSession *session, const MtcOptions *options);
/* At a fault, before anything is given back that the device may still wait for. */
void mtc_give_up_together(void);
/* The end, with the code of what was done together: session and ranks give back what they hold, but where the device waits for a rank that was lost. */
void mtc_leave_together(MtcSession *session, int code);
/* Behind a training. Rank 0 decides whether there is time for the test data, and may have other weights than all by then (`restored`), those
 * of its best file: all get them. */
int mtc_agree_on_test(MtcSession *session, bool *evaluates, bool restored);

#endif
