#include "session/sums.h"

MtcCourse mtc_course(const MtcSession *session) {
    const MtcData *data = &session->data[MTC_TRAIN];
    MtcCourse course = {session->at, data->examples, mtc_step_examples(session->model), mtc_steps_per_epoch(session)};
    return course;
}

MtcPosition mtc_place_of_step(const MtcCourse *course, int64_t step) {
    const MtcPosition *first = &course->first;
    int64_t steps = first->epoch_step + step - first->step;
    MtcPosition at = {step, first->epoch + steps / course->steps_per_epoch, steps % course->steps_per_epoch};
    return at;
}

int64_t mtc_rows_of_step(const MtcCourse *course, int64_t epoch_step) {
    int64_t left = course->examples - epoch_step * course->batch;
    return left < course->batch ? left : course->batch;
}

void mtc_sums_add(const MtcModel *model, MtcSums *sums, const double *row, int64_t examples) {
    const double counts = mtc_row_weight(model, row, examples);
    for (int r = 0; r < model->reports; r++)
        sums->report[r] += row[r] * counts;
    sums->examples += counts;
}

/* Sums of examples that weigh nothing are 0. */
double mtc_sums_mean(const MtcSums *sums, int report) {
    return sums->examples != 0 ? sums->report[report] / sums->examples : 0;
}
