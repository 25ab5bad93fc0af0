#include "session/evaluate.h"

#include "ranks/ranks.h"
#include "session/lent.h"
#include "session/library.h"
#include "session/memory.h"
#include "session/run.h"
#include "session/set_values.h"
#include "session/weights.h"

#include <stdlib.h>
#include <string.h>

/* ---- evaluation ---- */

static int no_data(MtcSession *session, const char *what) {
    return mtc_fail(&session->fault, MTC_USAGE, "there are no data to %s: set or load them first", what);
}

/* What is enqueued cannot be taken back: so that whoever says "enough" need not wait for much, batches come in pieces of some
 * PIECE_SECONDS, of which two are in flight. */
static const double PIECE_SECONDS = 0.1;
typedef struct Pace {
    MtcEvent *end[2];             /* of pieces, in turn */
    int64_t pieces, size, in_one; /* pieces enqueued, batches of each, and of the one that has begun */
    double waited;                /* when the piece before the last had ended */
} Pace;

static const char *end_piece(Pace *pace) {
    MtcEvent **end = &pace->end[pace->pieces % 2], *before = pace->end[(pace->pieces + 1) % 2];
    const char *error = *end ? NULL : mtc_event_new(end);
    error = error ? error : mtc_event_record(*end);
    error = error || !before ? error : mtc_event_wait(before);
    const double now = mtc_seconds(), seconds = now - pace->waited;
    if (pace->pieces > 1) /* before that, other work was waited for too */
        pace->size = seconds > PIECE_SECONDS       ? (pace->size + 1) / 2
                     : seconds < PIECE_SECONDS / 2 ? pace->size * 2
                                                   : pace->size;
    pace->waited = now;
    pace->pieces++;
    pace->in_one = 0;
    return error;
}

static const char *enqueue_batches(MtcSession *session, const MtcRun *run, const MtcData *data, Pace *pace,
                                   bool *whole) {
    const int64_t batch = session->model->batch, batches = mtc_batches(session, data);
    const int64_t begin = mtc_ranks_first(batches, mtc_rank()), end = mtc_ranks_first(batches, mtc_rank() + 1);
    const char *error = NULL;
    for (int64_t b = begin; b < end && *whole && !error; b++) {
        const int64_t first = b * batch, left = data->examples - first, rows = left < batch ? left : batch;
        error = mtc_model_eval(session->model, run, first, rows, b);
        error = error ? error : mtc_keep_set_values(session, data, first, rows);
        if (!error && ++pace->in_one == pace->size)
            error = end_piece(pace);
        *whole = b + 1 == end || !mtc_enough(session, "evaluation", b + 1 - begin, end - begin);
    }
    return error;
}

int mtc_enqueue_evaluation(MtcSession *session, const MtcData *data, bool *whole) {
    enum { FIRST_PIECE = 16 };
    MtcRun run = mtc_run(session, data, session->evaluation);
    Pace pace = {{NULL, NULL}, 0, FIRST_PIECE, 0, 0};
    run.order = NULL;
    *whole = true;
    mtc_range_begin("enqueue evaluation");
    const char *error = enqueue_batches(session, &run, data, &pace, whole);
    mtc_range_end();
    for (int i = 0; i < 2; i++)
        if (pace.end[i])
            mtc_event_free(pace.end[i]);
    int code = mtc_device_fault(session, error, "evaluation");
    return code ? code : mtc_ranks_share(&session->fault, whole, sizeof *whole, false); /* only rank 0 ends any */
}

/* What others have evaluated, beside what this rank has. */
static int gather_evaluation(MtcSession *session, const MtcData *data, double *rows, void *kept) {
    const int count = mtc_rank_count();
    if (count == 1)
        return 0;
    int64_t *begin = mtc_ranks_deal(mtc_batches(session, data));
    int code =
        mtc_ranks_gather(&session->fault, rows, (size_t)mtc_report_columns(session->model) * sizeof *rows, begin);
    for (int rank = 0; rank <= count; rank++) {
        const int64_t first = begin[rank] * session->model->batch;
        begin[rank] = first < data->examples ? first : data->examples;
    }
    code = code ? code : mtc_gather_set_values(session, data, kept, begin);
    free(begin);
    return code;
}

static void mean_reports(const MtcSession *session, const MtcData *data, const double *rows, double *reports) {
    int count = session->model->reports;
    int64_t batch = session->model->batch, batches = mtc_batches(session, data);
    for (int r = 0; r < count; r++) {
        double sum = 0;
        for (int64_t b = 0; b < batches; b++) {
            int64_t left = data->examples - b * batch;
            sum += rows[b * count + r] * (double)(left < batch ? left : batch);
        }
        reports[r] = sum / (double)data->examples;
    }
}

/* Rows of sums, and what each sum is divided by behind them. */
static int weighted_reports(MtcSession *session, const MtcData *data, const double *rows, double *reports) {
    const int count = session->model->reports;
    const int64_t batches = mtc_batches(session, data);
    double sum[MTC_MAX_REPORTS + 1] = {0};
    for (int64_t b = 0; b < batches; b++)
        for (int r = 0; r <= count; r++)
            sum[r] += rows[b * (count + 1) + r];
    if (sum[count] == 0)
        return mtc_fail(&session->fault, MTC_BAD_DATA, "all %lld examples to evaluate have the weight 0",
                        (long long)data->examples);
    for (int r = 0; r < count; r++)
        reports[r] = sum[r] / sum[count];
    return 0;
}

int mtc_reports_of(MtcSession *session, const MtcData *data, double *rows, void *kept, double *reports) {
    int code = gather_evaluation(session, data, rows, kept);
    if (code)
        return code;
    if (session->model->weighted)
        code = weighted_reports(session, data, rows, reports);
    else
        mean_reports(session, data, rows, reports);
    return code ? code : mtc_set_metrics(session, data, kept, reports + session->model->reports);
}

int mtc_evaluate(MtcSession *session, int which, double *reports) {
    bool whole;
    return mtc_evaluate_whole(session, which, reports, &whole);
}

static int evaluate_set(MtcSession *session, const MtcData *data, double *reports, bool *whole) {
    const size_t bytes = (size_t)(mtc_batches(session, data) * mtc_report_columns(session->model)) * sizeof(double);
    const size_t kept_bytes = mtc_set_values_bytes(session, data);
    double *rows = (double *)malloc(bytes + kept_bytes);
    char *kept = (char *)rows + bytes;
    if (!rows)
        return mtc_no_memory(&session->fault, bytes + kept_bytes, "reports");
    int code = mtc_enqueue_evaluation(session, data, whole);
    if (!code)
        code = mtc_device_fault(session, mtc_download(rows, session->evaluation, bytes), "reading the reports");
    if (!code && kept_bytes)
        code = mtc_device_fault(session, mtc_download(kept, session->set_values, kept_bytes), "reading the reports");
    if (!code)
        code = mtc_device_fault(session, mtc_synchronize(), "evaluation");
    if (!code && *whole)
        code = mtc_reports_of(session, data, rows, kept, reports);
    free(rows);
    return code;
}

int mtc_evaluate_whole(MtcSession *session, int which, double *reports, bool *whole) {
    int code = mtc_enter(session);
    if (code)
        return code;
    if (which < 0 || which >= MTC_SPLITS || session->data[which].examples == 0)
        return no_data(session, "evaluate");
    if (which == MTC_TRAIN && mtc_needs_device_data(session))
        return session->fault.code;
    const MtcData *data = &session->data[which];
    code = mtc_reserve_set_values(session, data);
    return code ? code : evaluate_set(session, data, reports, whole);
}

/* ---- prediction ---- */

int64_t mtc_prediction_elements(const MtcModel *model) {
    return mtc_elements(model->prediction_rank, model->prediction_dim);
}

/* Where predictions go: to the host's memory, or to the device's. */
typedef struct Predictions {
    float *to;
    bool lent;
} Predictions;

static const char *give_floats(const Predictions *out, int64_t at, const float *from, int64_t count) {
    const size_t bytes = (size_t)count * sizeof *from;
    if (out->lent)
        return mtc_upload(out->to + at, from, bytes);
    memcpy(out->to + at, from, bytes);
    return NULL;
}

static const char *give_doubles(const Predictions *out, int64_t at, const void *from, int64_t count) {
    double *wide = (double *)malloc((size_t)count * (sizeof *wide + sizeof(float)));
    float *narrow = (float *)(void *)(wide + count);
    const char *error = wide ? mtc_download(wide, from, (size_t)count * sizeof *wide) : "out of memory";
    error = error ? error : mtc_synchronize();
    for (int64_t i = 0; i < count && !error; i++)
        narrow[i] = (float)wide[i];
    error = error ? error : give_floats(out, at, narrow, count);
    free(wide);
    return error;
}

/* `count` numbers of the batch that was predicted become those from `at` on. */
static const char *give(MtcSession *session, const Predictions *out, int64_t at, int64_t count) {
    const char *from = session->arena + session->model->prediction_offset;
    if (mtc_computes_in_double(session->model))
        return give_doubles(out, at, from, count);
    return out->lent ? mtc_copy(out->to + at, from, (size_t)count * sizeof *out->to)
                     : mtc_download(out->to + at, from, (size_t)count * sizeof *out->to);
}

static int predict_rows(MtcSession *session, const MtcRun *run, int64_t first, int64_t rows, const Predictions *out,
                        int64_t at) {
    const int64_t elements = mtc_prediction_elements(session->model);
    const char *error = mtc_model_eval(session->model, run, first, rows, 0);
    error = error ? error : give(session, out, at * elements, rows * elements);
    return mtc_device_fault(session, error, "prediction");
}

/* The numbers are there when it returns. */
static int end_prediction(MtcSession *session, int code) {
    return code ? code : mtc_device_fault(session, mtc_synchronize(), "prediction");
}

int mtc_predict_data(MtcSession *session, const MtcData *data, float *to) {
    const Predictions out = {to, false};
    const int64_t batch = session->model->batch;
    MtcRun run = mtc_run(session, data, session->evaluation);
    int code = 0;
    run.order = NULL;
    for (int64_t first = 0; first < data->examples && !code; first += batch) {
        int64_t left = data->examples - first;
        mtc_meter_part(&session->meter, "prediction", first, data->examples);
        code = predict_rows(session, &run, first, left < batch ? left : batch, &out, first);
    }
    return end_prediction(session, code);
}

/* Of the examples to predict, a batch; its memory is the session's, and aligned wherever theirs begins. */
static int gather_batch(MtcSession *session, int64_t first, int64_t rows, const void *const *fields, const bool *lent) {
    const char *error = NULL;
    for (int i = 0; i < session->model->fields && !error; i++) {
        const size_t size = mtc_example_bytes(&session->model->field[i]);
        void *to = (void *)session->batch.field[i];
        const char *from = fields && fields[i] ? (const char *)fields[i] + (size_t)first * size : NULL;
        if (!from)
            error = mtc_zero(to, (size_t)rows * size);
        else if (lent && lent[i])
            error = mtc_copy(to, from, (size_t)rows * size);
        else
            error = mtc_upload(to, from, (size_t)rows * size);
    }
    return mtc_device_fault(session, error, "copying the examples");
}

static int check_prediction(MtcSession *session, int64_t examples, const void *const *fields, const bool *lent,
                            const Predictions *out) {
    int code = mtc_enter(session);
    if (code)
        return code;
    if (examples < 0)
        return mtc_fail(&session->fault, MTC_USAGE, "cannot predict %lld examples", (long long)examples);
    const char *wrong = out->lent && examples ? mtc_device_reaches(out->to, session->device_index) : NULL;
    if (wrong)
        return mtc_fail(&session->fault, MTC_USAGE, "the memory for predictions is not on %s: %s", session->device.name,
                        wrong);
    code = mtc_check_lent(session, fields, lent);
    return code ? code : mtc_check_classes(session, examples, fields, lent);
}

int mtc_predict_lent(MtcSession *session, int64_t examples, const void *const *fields, const bool *lent, float *to,
                     bool out_lent) {
    const Predictions out = {to, out_lent};
    const int64_t batch = session->model->batch;
    int code = check_prediction(session, examples, fields, lent, &out);
    if (code)
        return code;
    MtcRun run = mtc_run(session, &session->batch, session->evaluation);
    for (int64_t first = 0; first < examples && !code; first += batch) {
        int64_t rows = examples - first < batch ? examples - first : batch;
        mtc_meter_part(&session->meter, "prediction", first, examples);
        code = gather_batch(session, first, rows, fields, lent);
        run.before = first;
        if (!code)
            code = predict_rows(session, &run, 0, rows, &out, first);
    }
    return end_prediction(session, code);
}

int mtc_predict(MtcSession *session, int64_t examples, const void *const *fields, float *out) {
    return mtc_predict_lent(session, examples, fields, NULL, out, false);
}
