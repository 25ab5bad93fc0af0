#include "commands/own_steps.h"

#include "ranks/ranks.h"
#include "session/run.h"
#include "session/shards.h"
#include "session/train.h"

#include <stdlib.h>

const char *mtc_begin_epoch(MtcSession *session) {
    const int64_t clock[3] = {session->at.step, 0, 0};
    const char *error = mtc_upload(session->clock, clock, sizeof clock);
    return error ? error : mtc_choose_first_shard(session);
}

static const char *run_own_steps(MtcSession *session, int64_t steps) {
    const MtcRun run = mtc_run(session, &session->data[MTC_TRAIN], session->trainer->reports);
    const char *error = NULL;
    for (int64_t i = 0; i < steps && !error; i++) {
        error = mtc_begin_epoch(session);
        error = error ? error : mtc_train_own_steps(session, &run, 1);
    }
    return error ? error : mtc_synchronize();
}

/* As many as take about so long, behind one that prepares. */
static const char *time_own_steps(MtcSession *session, const MtcStepTimes *step, double *seconds) {
    const double wanted = 0.05 / step->median;
    const int64_t steps = wanted < 1 ? 1 : wanted > 1000 ? 1000 : (int64_t)wanted;
    const char *error = run_own_steps(session, 1);
    for (int64_t i = 0; i < step->runs && !error; i++) {
        const double since = mtc_seconds();
        error = run_own_steps(session, steps);
        seconds[i] = (mtc_seconds() - since) / (double)steps;
    }
    return error;
}

int mtc_measure_own_steps(MtcSession *session, const MtcStepTimes *step, double **own) {
    double *seconds = (double *)mtc_zeroed((size_t)step->runs * sizeof *seconds);
    *own = NULL;
    if (!session->shards) {
        free(seconds);
        return 0;
    }
    *own = (double *)mtc_zeroed((size_t)mtc_rank_count() * sizeof **own);
    int code = mtc_device_fault(session, time_own_steps(session, step, seconds), "profiling");
    code = mtc_ranks_ready(&session->fault, code);
    const double median = mtc_median(seconds, step->runs);
    free(seconds);
    return code ? code : mtc_ranks_each(&session->fault, &median, sizeof median, *own);
}
