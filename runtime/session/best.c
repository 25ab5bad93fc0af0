#include "session/best.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int mtc_find_monitor(MtcFault *fault, const MtcModel *model, const char *name, int *monitor) {
    *monitor = model->monitor;
    if (!name)
        return 0;
    for (*monitor = 0; *monitor < mtc_evaluated(model); ++*monitor)
        if (strcmp(model->report[*monitor], name) == 0)
            return 0;
    const char *nearest = mtc_nearest(name, model->report, mtc_evaluated(model));
    MtcText all = {NULL, 0, 0};
    for (int r = 0; r < mtc_evaluated(model); r++)
        mtc_text_add(&all, "%s%s", r ? ", " : "", model->report[r]);
    mtc_fail(fault, MTC_USAGE, "the model has no metric '%s'%s%s%s", name, nearest ? "; did you mean '" : "",
             nearest ? nearest : "", nearest ? "'?" : "");
    mtc_note(fault, "it has %s", all.at);
    free(all.at);
    return fault->code;
}

/* The record has the beginning of a long name. */
bool mtc_knows_best(const MtcSession *session, int monitor) {
    const MtcRecord *record = &session->record;
    return strncmp(record->monitor, session->model->report[monitor], sizeof record->monitor - 1) == 0;
}

/* One that has waited for long enough falls, and begins to wait again. */
static void wait_longer(MtcPlateau *plateau, int patience, bool better) {
    plateau->waited = better ? 0 : plateau->waited + 1;
    if (plateau->waited < patience)
        return;
    plateau->waited = 0;
    plateau->falls++;
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
    for (int i = 0; i < session->model->plateaus; i++)
        wait_longer(&record->plateau[i], session->model->plateau[i], better);
    return better;
}

int64_t mtc_falls(const MtcSession *session) {
    int64_t all = 0;
    for (int i = 0; i < session->model->plateaus; i++)
        all += session->record.plateau[i].falls;
    return all;
}
