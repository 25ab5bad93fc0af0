#include "session/session.h"

#include "session/feed.h"

#include <string.h>

int mtc_device_fault(MtcSession *session, const char *error, const char *what) {
    if (!error)
        return 0;
    if (error == session->fault.text) /* no error of the device: a feed's examples cannot be had */
        return session->fault.code;
    return mtc_fail(&session->fault, MTC_UNAVAILABLE, "%s: %s: %s", session->device.name, what, error);
}

void mtc_note_ways(MtcSession *session, const char *flags) {
    mtc_note(&session->fault, "%s",
             session->program ? flags : "its weights alone can be loaded, to begin a training anew with them");
}

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
    run.steps_per_epoch = mtc_batches(session, &session->data[MTC_TRAIN]);
    int64_t epochs = session->record.epochs ? session->record.epochs : session->model->epochs;
    run.last_step = session->last_step ? session->last_step : epochs * run.steps_per_epoch;
    run.seed = session->seed;
    for (int i = 0; i < session->model->knobs; i++)
        run.knob[i] = (float)session->knob[i];
    run.exact_knob = mtc_computes_in_double(session->model) ? session->knob : NULL;
    return run;
}

int mtc_enter(MtcSession *session) {
    if (session->failed)
        return session->failed; /* and the fault says why */
    return mtc_device_fault(session, mtc_device_choose(session->device_index), "choosing the device");
}

int mtc_enter_idle(MtcSession *session) {
    if (session->busy)
        return mtc_fail(&session->fault, MTC_USAGE,
                        "training is running: its functions may evaluate, predict, read and save, and nothing else");
    return mtc_enter(session);
}

const char *mtc_error(const MtcSession *session) {
    return session ? session->fault.text : "out of memory";
}
