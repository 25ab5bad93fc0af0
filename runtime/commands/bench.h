/* What bench, profile and gradcheck share: a session with examples to step on, and how long its steps take. */
#ifndef MTC_BENCH_H
#define MTC_BENCH_H

#include "commands/cli.h"

/* A session with the training data; with random examples where the files are not at hand and no folder is named.
 * *session may be set after a fault too: destroy it in any case. */
int mtc_open_trial(MtcFault *fault, const MtcModel *model, const MtcOptions *options, MtcSession **session,
                   bool *real_data);

/* Seconds a step takes, of runs of `steps` steps each. */
typedef struct MtcStepTimes {
    int64_t steps, runs;
    double best, median, worst;
} MtcStepTimes;

/* Trains options->runs times options->steps steps, or as many as take half a second, after some to warm up. */
int mtc_time_steps(MtcSession *session, const MtcOptions *options, MtcStepTimes *times);

double mtc_median(double *values, int64_t count); /* sorts them; of an even count the upper of the two */

#endif
