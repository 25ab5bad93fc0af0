/* What the model's functions are given, MtcRun of mtc.h: a session's arena, data, order, numbers and clock as they stand. */
#include "session/run.h"

#include "session/feed.h"
#include "session/parts.h"
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
    const MtcOwnPart part = mtc_own_part(session->model);
    run.part[0] = (int64_t)(part.begin / mtc_real_bytes(session->model));
    run.part[1] = (int64_t)(part.end / mtc_real_bytes(session->model));
    run.states = (uintptr_t)session->arena + session->model->parted_offset - part.begin;
    run.state_bytes = part.end - part.begin;
    run.exact_knob = mtc_computes_in_double(session->model) ? session->knob : NULL;
    return run;
}
