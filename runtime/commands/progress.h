/* What a training shows: a line per epoch on stdout, a bar on a terminal's stderr, a log of JSON lines. */
#ifndef MTC_PROGRESS_H
#define MTC_PROGRESS_H

#include "commands/cli.h"
#include "commands/tensorboard.h"
#include "session/sums.h"
#include "session/train.h"

#include <stdio.h>

typedef struct MtcProgress {
    const MtcModel *model;
    const MtcOptions *options;
    const char *test; /* name of the evaluated split */
    int64_t last_step, log_every;
    MtcCourse course;
    const MtcSession *session;
    MtcMeter *meter; /* the session's */
    int unheard;     /* the errno with which a line on stdout failed; 0: none did */
    FILE *log;
    int log_error;     /* the first errno of writing it; 0: none */
    MtcEvents *events; /* the same for TensorBoard */
    double began;      /* time of training */
    MtcSums epoch, interval;
} MtcProgress;

/* What the data that are evaluated meanwhile are called. */
const char *mtc_watched_name(const MtcSession *session, const MtcOptions *options);
int mtc_progress_open(MtcFault *fault, MtcProgress *progress, MtcSession *session, const MtcOptions *options,
                      int64_t last_step);
void mtc_progress_steps(void *progress, int64_t first, int64_t count, const double *reports);
void mtc_progress_summary(void *progress, const MtcPosition *at, const double *reports);
/* The test data, evaluated after a training that validation data steered: with the "best" or the "last" weights. */
void mtc_progress_test(MtcProgress *progress, const MtcPosition *at, const char *weights, const double *reports);
/* After the last step: what it took. A fault: the log could not be written whole. */
int mtc_progress_close(MtcFault *fault, MtcProgress *progress, const MtcSession *session, const MtcTraining *training);
/* A line of what print(x) shows. */
void mtc_progress_print(MtcProgress *progress, int64_t step, const MtcPrint *print, const MtcPrinted *printed);
void mtc_progress_warn(void *progress, const char *text); /* of a training: MtcAdvice.warn */
void mtc_progress_abandon(MtcProgress *progress, const MtcFault *fault);

#endif
