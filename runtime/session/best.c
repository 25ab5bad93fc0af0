#include "session/best.h"

#include <stdio.h>
#include <string.h>

/* The record has the beginning of a long name. */
bool mtc_knows_best(const MtcSession *session, int monitor) {
    const MtcRecord *record = &session->record;
    return strncmp(record->monitor, session->model->report[monitor], sizeof record->monitor - 1) == 0;
}

bool mtc_judge(MtcSession *session, int monitor, const MtcPosition *at, double value) {
    MtcRecord *record = &session->record;
    const bool rises = session->model->report_rises[monitor];
    const bool better = !mtc_knows_best(session, monitor) || (rises ? value > record->best : value < record->best);
    record->since_best++;
    if (better) {
        snprintf(record->monitor, sizeof record->monitor, "%s", session->model->report[monitor]);
        record->best = value;
        record->best_step = at->step;
        record->since_best = 0;
    }
    return better;
}
