#include "session/session.h"

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

int mtc_enter(MtcSession *session) {
    if (session->failed)
        return session->failed; /* and the fault says why */
    session->calls++;
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

int mtc_evaluated(const MtcModel *model) {
    return model->reports + model->set_metrics;
}

int mtc_report_columns(const MtcModel *model) {
    return model->reports + model->weighted;
}

void mtc_finish_row(const MtcModel *model, double *row) {
    for (int r = 0; r < model->reports && model->weighted && row[model->reports] != 0; r++)
        row[r] /= row[model->reports];
}

double mtc_row_weight(const MtcModel *model, const double *row, int64_t examples) {
    return model->weighted ? row[model->reports] : (double)examples;
}

int64_t mtc_batches(const MtcSession *session, const MtcData *data) {
    return (data->examples + session->model->batch - 1) / session->model->batch;
}

int64_t mtc_step_examples(const MtcModel *model) {
    return model->shards ? model->whole_batch : model->batch;
}

int64_t mtc_steps_per_epoch(const MtcSession *session) {
    const int64_t step = mtc_step_examples(session->model);
    return (session->data[MTC_TRAIN].examples + step - 1) / step;
}

int mtc_needs_device_data(MtcSession *session) {
    return !session->feed ? 0
                          : mtc_fail(&session->fault, MTC_UNAVAILABLE,
                                     "the training data do not fit on %s, where this needs them", session->device.name);
}

int64_t mtc_predicted_classes(const MtcModel *model) {
    return model->prediction_rank ? model->prediction_dim[model->prediction_rank - 1] : 1;
}

const MtcMeaning *mtc_class_words(const MtcSession *session, int64_t classes) {
    const MtcModel *model = session->model;
    for (int f = 0; f < model->fields; f++) {
        const MtcField *field = &model->field[f];
        if ((!field->predicts || field->windows) && field->classes == classes)
            return session->encoding.field[f].words ? &session->encoding.field[f] : NULL;
    }
    return NULL;
}

const MtcMeaning *mtc_predicted_words(const MtcSession *session) {
    const MtcModel *model = session->model;
    return model->prediction_is_classes ? mtc_class_words(session, mtc_predicted_classes(model)) : NULL;
}

int mtc_watched(const MtcSession *session) {
    return session->data[MTC_VALIDATION].examples ? MTC_VALIDATION : MTC_TEST;
}

const char *mtc_split_name(int which) {
    return which == MTC_TRAIN ? "train" : which == MTC_TEST ? "test" : "validation";
}

bool mtc_enough(MtcSession *session, const char *what, int64_t done, int64_t all) {
    mtc_meter_part(&session->meter, what, done, all);
    return session->stopped && session->stopped(session->stopped_by);
}
