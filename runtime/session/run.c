/* What the model's functions are given, MtcRun of mtc.h: a session's arena, data, order, numbers and clock as they stand. */
#include "session/run.h"

#include "session/feed.h"
#include "session/weights.h"

#include <string.h>

MtcRun mtc_run(const MtcSession *session, const MtcData *data, double *reports) {
    MtcRun run;
    memset(&run, 0, sizeof run);
    run.arena = session->arena;
    run.data = *data;
    if (data == &session->data[MTC_TRAIN]) {
        run.order = session->order;
        if (session->feed)
            run.data = mtc_feed_data(session);
    }
    run.clock = session->clock;
    run.reports = reports;
    run.steps_per_epoch = mtc_steps_per_epoch(session);
    int64_t epochs = session->record.epochs ? session->record.epochs : session->model->epochs;
    run.last_step = session->last_step ? session->last_step : epochs * run.steps_per_epoch;
    run.seed = session->seed;
    for (int i = 0; i < session->model->knobs; i++)
        run.knob[i] = (float)session->knob[i];
    for (int i = 0; i < session->model->plateaus; i++)
        run.falls[i] = (int)session->record.plateau[i].falls;
    run.exact_knob = mtc_computes_in_double(session->model) ? session->knob : NULL;
    return run;
}
