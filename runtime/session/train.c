#include "session/train.h"

#include "ranks/nccl.h"
#include "ranks/ranks.h"
#include "session/evaluate.h"
#include "session/feed.h"
#include "session/finite.h"
#include "session/library.h"
#include "session/memory.h"
#include "session/order.h"
#include "session/parts.h"
#include "session/run.h"
#include "session/set_values.h"
#include "session/shards.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double CHUNK_SECONDS = 0.05;
enum { FIRST_CHUNK = 1 }; /* of steps that may take seconds each */

/* ---- the trainer ---- */

/* `bytes` of the host memory at *at, which moves on; a first pass with *at == NULL measures. */
static void *carve(char **at, size_t *total, size_t bytes) {
    void *piece = *at ? *at : NULL;
    bytes = (bytes + 63) / 64 * 64;
    *total += bytes;
    if (*at)
        *at += bytes;
    return piece;
}

static size_t carve_chunks(const MtcSession *session, MtcTrainer *trainer, char *at) {
    size_t total = 0, row = (size_t)mtc_report_columns(session->model) * sizeof(double);
    size_t rows = MTC_CHUNK_STEPS * (size_t)mtc_report_rows(session->model);
    int64_t orders = session->model->shuffle ? 0 : trainer->most_orders; /* the device writes them */
    size_t order = (size_t)(orders * session->data[MTC_TRAIN].examples) * sizeof(int);
    for (int i = 0; i < MTC_SLOTS; i++) {
        MtcChunk *chunk = &trainer->chunk[i];
        chunk->order = (int *)carve(&at, &total, order);
        chunk->clock = (int64_t *)carve(&at, &total, 3 * MTC_SEGMENTS * sizeof *chunk->clock);
        chunk->reports = (double *)carve(&at, &total, rows * row);
        chunk->evaluation = (double *)carve(&at, &total, (size_t)session->evaluation_rows * row);
        chunk->kept = carve(&at, &total, mtc_set_values_bytes(session, &session->data[mtc_watched(session)]));
    }
    return total;
}

static size_t report_bytes(const MtcSession *session) {
    return mtc_report_bytes((size_t)mtc_report_rows(session->model), (size_t)mtc_report_columns(session->model));
}

static int trainer_memory(MtcSession *session, MtcTrainer *trainer) {
    trainer->most_orders = mtc_most_orders(session->data[MTC_TRAIN].examples);
    size_t bytes = carve_chunks(session, trainer, NULL);
    int code = mtc_device_fault(session, mtc_host_alloc(&trainer->host, bytes), "host memory for training");
    if (code)
        return code;
    carve_chunks(session, trainer, (char *)trainer->host);
    return mtc_session_alloc(session, (void **)&trainer->reports, report_bytes(session), "reports");
}

static int trainer_events(MtcSession *session, MtcTrainer *trainer) {
    const char *error = NULL;
    for (int i = 0; i < MTC_SLOTS; i++) {
        error = error ? error : mtc_event_new(&trainer->chunk[i].begun);
        error = error ? error : mtc_event_new(&trainer->chunk[i].trained);
        error = error ? error : mtc_event_new(&trainer->chunk[i].done);
    }
    return mtc_device_fault(session, error, "events");
}

static int trainer_new(MtcSession *session) {
    MtcTrainer *trainer = (MtcTrainer *)calloc(1, sizeof *trainer);
    session->trainer = trainer;
    if (!trainer)
        return mtc_no_memory(&session->fault, sizeof *trainer, "training");
    trainer->steps_per_epoch = mtc_steps_per_epoch(session);
    int code = trainer_memory(session, trainer);
    if (!code)
        code = trainer_events(session, trainer);
    if (!code)
        code = mtc_shards_new(session);
    if (!code)
        code = mtc_snapshots_new(session, &trainer->snapshots);
    if (code)
        mtc_trainer_free(session);
    return code;
}

void mtc_trainer_free(MtcSession *session) {
    MtcTrainer *trainer = session->trainer;
    if (!trainer)
        return;
    for (int i = 0; i < MTC_SLOTS; i++) {
        mtc_event_free(trainer->chunk[i].begun);
        mtc_event_free(trainer->chunk[i].trained);
        mtc_event_free(trainer->chunk[i].done);
    }
    mtc_snapshots_free(session, &trainer->snapshots);
    mtc_shards_free(session);
    mtc_session_free(session, trainer->reports, report_bytes(session));
    mtc_host_free(trainer->host);
    free(trainer);
    session->trainer = NULL;
}

int mtc_check_resumed(MtcSession *session, bool partial, MtcText *notes) {
    const int64_t examples = session->data[MTC_TRAIN].examples, before = session->resumed_examples;
    bool same = !before || (before == examples && session->resumed_hash == session->train_hash);
    if (!session->resumed || (same && session->at.epoch_step < mtc_steps_per_epoch(session)))
        return 0;
    if (!partial) {
        mtc_fail(&session->fault, MTC_BAD_DATA,
                 "the training data are not those of the checkpoint: it has seen %lld examples, and there are %lld%s",
                 (long long)before, (long long)examples, before == examples ? " others" : "");
        mtc_note_ways(session, "--partial goes on with them; --init-from begins anew with the weights");
        return session->fault.code;
    }
    mtc_text_add(notes, "  other training data: %lld examples, there were %lld; an epoch begins\n", (long long)examples,
                 (long long)before);
    session->at.epoch_step = 0;
    session->resumed = false;
    return 0;
}

/* Everything that the first step needs. */
static int ready(MtcSession *session) {
    if (session->data[MTC_TRAIN].examples == 0)
        return mtc_fail(&session->fault, MTC_USAGE, "there are no data to train on: set or load them first");
    mtc_start_end_part(&session->start, MTC_START_PLAN);
    int code = mtc_check_resumed(session, false, NULL);
    if (!code && !session->trainer)
        code = trainer_new(session);
    if (code || session->prepared)
        return code;
    MtcRun run = mtc_run(session, &session->data[MTC_TRAIN], session->trainer->reports);
    code = mtc_device_fault(session, mtc_model_prepare(session->model, &run), "preparing the step");
    session->prepared = !code;
    mtc_start_end_part(&session->start, MTC_START_KERNELS);
    return code;
}

/* ---- a chunk on its way to the device ---- */

static int64_t chunk_goal(const MtcTrainer *trainer) {
    if (trainer->step_seconds <= 0)
        return FIRST_CHUNK;
    double steps = CHUNK_SECONDS / trainer->step_seconds;
    return steps < 1 ? 1 : (int64_t)fmin(steps, MTC_CHUNK_STEPS);
}

/* The order of the next step's epoch is on the device. */
static bool has_order(const MtcSession *session) {
    int64_t ahead = session->at.epoch - session->order_epoch;
    return ahead >= 0 && ahead < session->orders;
}

/* From the chunk's next host buffers. */
static const char *upload_orders(MtcSession *session, MtcChunk *chunk, int64_t epochs) {
    int64_t examples = session->data[MTC_TRAIN].examples;
    int *order = chunk->order + chunk->orders * examples;
    chunk->orders += epochs;
    for (int64_t i = 0; i < epochs; i++)
        mtc_fill_order(session, session->at.epoch + i, order + i * examples);
    return mtc_upload(session->order, order, (size_t)(epochs * examples) * sizeof *order);
}

/* The orders of the epochs that the next `steps` steps belong to, or of as many as there is room for. That of an epoch that
 * has begun is missing only where a resumed training is in the midst of one. */
static const char *renew_orders(MtcSession *session, MtcChunk *chunk, int64_t steps) {
    MtcTrainer *trainer = session->trainer;
    MtcRun run = mtc_run(session, &session->data[MTC_TRAIN], trainer->reports);
    int64_t needed = (session->at.epoch_step + steps - 1) / trainer->steps_per_epoch + 1;
    int64_t room = trainer->most_orders - chunk->orders, epochs = needed < room ? needed : room;
    session->order_epoch = session->at.epoch;
    session->orders = session->feed ? 1 : epochs;
    if (session->feed) /* that of a window, whatever the epoch */
        return NULL;
    if (session->model->shuffle)
        return mtc_model_shuffle(session->model, &run, session->order, session->at.epoch, epochs);
    return upload_orders(session, chunk, epochs);
}

/* The summary is due when an epoch ends whose number is a multiple of `every`, and when training ends. */
static bool summary_due(const MtcSession *session, const MtcTraining *training) {
    const MtcPosition *at = &session->at;
    bool epoch_ended = at->epoch_step == 0 && training->every && at->epoch % training->every == 0;
    return epoch_ended || (training->every && at->step == training->until);
}

/* Steps until the end of the last epoch whose order is on the device, or of the next after which a summary is due. */
static int64_t steps_ahead(const MtcSession *session, const MtcTraining *training) {
    const MtcPosition *at = &session->at;
    int64_t epochs = session->order_epoch + session->orders - at->epoch;
    if (training->every && training->every - at->epoch % training->every < epochs)
        epochs = training->every - at->epoch % training->every;
    return epochs * session->trainer->steps_per_epoch - at->epoch_step;
}

static bool prints(const MtcSession *session, const MtcTraining *training) {
    return training->print && session->model->prints;
}

/* Steps until the next before which values are shown, at most `left`. */
static int64_t until_print(const MtcSession *session, const MtcTraining *training, int64_t left) {
    const int64_t steps = prints(session, training) ? training->print - session->at.step % training->print : left;
    return steps < left ? steps : left;
}

/* The forward pass writes where values of a step lie, which none before needs any more, and nothing else. */
static const char *print_values(MtcSession *session, const MtcTraining *training, const MtcRun *run) {
    if (!prints(session, training) || session->at.step % training->print)
        return NULL;
    const int64_t left = session->data[MTC_TRAIN].examples - session->at.epoch_step * session->model->batch;
    const int64_t rows = left < session->model->batch ? left : session->model->batch;
    return mtc_show_printed(session, run, rows, training->printed, training->user) ? session->fault.text : NULL;
}

/* Up to `most` steps. */
static const char *enqueue_segment(MtcSession *session, const MtcTraining *training, MtcChunk *chunk, int64_t most) {
    MtcPosition *at = &session->at;
    MtcTrainer *trainer = session->trainer;
    const char *error = has_order(session) ? NULL : renew_orders(session, chunk, most);
    int64_t *clock = chunk->clock + 3 * chunk->segments++, left = steps_ahead(session, training), ready = left;
    if (session->feed && !error)
        error = mtc_feed_ready(session, at->epoch, at->epoch_step, &ready);
    MtcRun run = mtc_run(session, &session->data[MTC_TRAIN], trainer->reports);
    left = ready < left ? ready : left;
    left = until_print(session, training, left);
    int64_t steps = most < left ? most : left;
    clock[0] = at->step;
    clock[1] = (at->epoch - session->order_epoch) * trainer->steps_per_epoch + at->epoch_step;
    clock[2] = chunk->steps;
    error = error ? error : mtc_upload(session->clock, clock, 3 * sizeof *clock);
    error = error ? error : print_values(session, training, &run);
    error = error ? error : mtc_train_steps(session, &run, steps);
    if (session->feed && !error)
        error = mtc_feed_ahead(session);
    chunk->steps += steps;
    at->step += steps;
    at->epoch_step += steps;
    at->epoch += at->epoch_step / trainer->steps_per_epoch;
    at->epoch_step %= trainer->steps_per_epoch;
    return error;
}

static int64_t steps_of_chunk(const MtcSession *session, const MtcTraining *training) {
    int64_t goal = chunk_goal(session->trainer), left = training->until - session->at.step;
    goal = goal < left ? goal : left;
    if (training->cut && goal > training->cut - session->at.step % training->cut)
        goal = training->cut - session->at.step % training->cut;
    return goal;
}

static const char *enqueue_steps(MtcSession *session, const MtcTraining *training, MtcChunk *chunk) {
    const MtcTrainer *trainer = session->trainer;
    const int64_t goal = trainer->goal;
    const char *error = NULL;
    while (chunk->steps < goal && !chunk->summary && chunk->segments < MTC_SEGMENTS && !error) {
        if (!has_order(session) && chunk->orders == trainer->most_orders)
            break;
        error = enqueue_segment(session, training, chunk, goal - chunk->steps);
        chunk->summary = summary_due(session, training);
    }
    return error;
}

static int enqueue_evaluation(MtcSession *session, MtcChunk *chunk) {
    const MtcData *test = &session->data[mtc_watched(session)];
    if (!chunk->summary || test->examples == 0)
        return 0;
    int code = mtc_enqueue_evaluation(session, test, &chunk->evaluated);
    size_t bytes =
        (size_t)(mtc_batches(session, test) * mtc_report_columns(session->model)) * sizeof *chunk->evaluation;
    size_t kept = mtc_set_values_bytes(session, test);
    if (code || !chunk->evaluated)
        return code;
    const char *error = mtc_download(chunk->evaluation, session->evaluation, bytes);
    error = error || !kept ? error : mtc_download(chunk->kept, session->set_values, kept);
    return mtc_device_fault(session, error, "evaluation");
}

/* Shall the chunk be looked at before anything else is enqueued? */
static bool pause_due(const MtcTraining *training, const MtcChunk *chunk) {
    return training->paused &&
           ((training->pauses && chunk->summary) || (training->cut && chunk->to.step % training->cut == 0) ||
            (training->pause && training->pause(training->user)));
}

/* A training whose last evaluation was ended goes on with that, as if it had not been. */
static bool owes_summary(const MtcSession *session, const MtcTraining *training) {
    return session->record.summary_due && training->summary;
}

static int enqueue_chunk(MtcSession *session, const MtcTraining *training) {
    MtcTrainer *trainer = session->trainer;
    MtcChunk *chunk = &trainer->chunk[trainer->enqueued % MTC_SLOTS];
    chunk->from = session->at;
    chunk->steps = chunk->segments = chunk->orders = 0;
    chunk->summary = chunk->evaluated = false;
    const char *error = mtc_event_record(chunk->begun);
    int code = error ? mtc_device_fault(session, error, "training") : mtc_snapshot_enqueue(session);
    if (code)
        return code;
    if (owes_summary(session, training))
        chunk->summary = summary_due(session, training);
    else
        error = error ? error : enqueue_steps(session, training, chunk);
    session->record.summary_due = false;
    size_t bytes = (size_t)(chunk->steps * mtc_report_rows(session->model) * mtc_report_columns(session->model)) *
                   sizeof *chunk->reports;
    error = error ? error : mtc_download(chunk->reports, trainer->reports, bytes);
    error = error ? error : mtc_event_record(chunk->trained);
    chunk->to = session->at;
    code = mtc_device_fault(session, error, "training");
    if (!code)
        code = enqueue_evaluation(session, chunk);
    trainer->enqueued++;
    trainer->held = pause_due(training, chunk);
    session->resumed = false;
    if (!code)
        code = mtc_ranks_share(&session->fault, &trainer->held, sizeof trainer->held, false);
    return code ? code : mtc_device_fault(session, mtc_event_record(chunk->done), "training");
}

/* ---- a chunk that is done ---- */

static int summarise(MtcSession *session, const MtcTraining *training, const MtcChunk *chunk) {
    const int which = mtc_watched(session);
    const MtcData *test = &session->data[which];
    double means[MTC_MAX_REPORTS];
    int code = 0;
    session->record.summary_due = chunk->summary && test->examples && !chunk->evaluated;
    if (!chunk->summary || !training->summary || session->record.summary_due)
        return 0;
    if (test->examples)
        code = mtc_reports_of(session, test, chunk->evaluation, chunk->kept, means);
    if (code)
        return code;
    training->summary(training->user, &chunk->to, test->examples ? means : NULL);
    return test->examples ? mtc_check_means(session, which, mtc_split_name(which), chunk->to.step, means) : 0;
}

/* What tells later whether training diverges, as far as there is a number. */
static void record_losses(MtcSession *session, const MtcChunk *chunk) {
    MtcRecord *record = &session->record;
    if (chunk->steps == 0)
        return;
    if (!record->losses)
        record->first_loss = chunk->reports[0];
    record->losses = true;
    record->loss = chunk->reports[(chunk->steps - 1) * mtc_report_columns(session->model)];
}

/* The start ends with the first of them, before an evaluation that follows. */
static const char *wait_for_steps(MtcSession *session, const MtcChunk *chunk) {
    const char *error = chunk->steps ? mtc_event_wait(chunk->trained) : NULL;
    if (chunk->steps)
        mtc_start_end_part(&session->start, MTC_START_FIRST_STEP);
    return error;
}

static int finish_chunk(MtcSession *session, MtcTraining *training) {
    MtcTrainer *trainer = session->trainer;
    const MtcChunk *chunk = &trainer->chunk[trainer->finished++ % MTC_SLOTS];
    const int columns = mtc_report_columns(session->model);
    const char *error = wait_for_steps(session, chunk);
    int code = mtc_device_fault(session, error ? error : mtc_event_wait(chunk->done), "training");
    code = code ? code : mtc_check_shards(session);
    if (code)
        return code;
    code = mtc_add_reports(session, chunk->reports, chunk->steps);
    if (code)
        return code;
    mtc_ranks_at(chunk->to.step);
    double seconds = mtc_event_seconds(chunk->begun, chunk->trained);
    training->train_seconds += seconds;
    training->evaluate_seconds += mtc_event_seconds(chunk->trained, chunk->done);
    if (chunk->steps)
        trainer->step_seconds = seconds / (double)chunk->steps;
    for (int64_t i = 0; i < chunk->steps; i++)
        mtc_finish_row(session->model, chunk->reports + i * columns);
    for (int64_t i = 0; i < chunk->steps; i++)
        if (!isfinite(chunk->reports[i * columns]))
            return mtc_diagnose(session, chunk, i);
    record_losses(session, chunk);
    if (training->steps && chunk->steps)
        training->steps(training->user, chunk->from.step, chunk->steps, chunk->reports);
    return summarise(session, training, chunk);
}

static int leave_pause(MtcSession *session, MtcTraining *training, bool saves) {
    session->trainer->held = false;
    session->trainer->rested = true;
    const int code = saves ? mtc_collect_states(session) : 0;
    return code ? code : training->paused(training->user, &session->at);
}

/* What comes next. Clocks, signals and files differ from rank to rank, and may the data that are evaluated: rank 0 decides. */
typedef struct Turn {
    bool stopped, snapshot, saves;
    int64_t goal;
    MtcPlateau plateau[MTC_MAX_PLATEAUS];
} Turn;

static bool steps_left(const MtcSession *session, const MtcTraining *training) {
    return session->at.step < training->until || owes_summary(session, training);
}

static int next_turn(MtcSession *session, const MtcTraining *training, Turn *turn) {
    MtcTrainer *trainer = session->trainer;
    memset(turn, 0, sizeof *turn);
    turn->stopped = training->stopped && training->stopped(training->user);
    turn->snapshot = mtc_snapshot_due(session);
    turn->saves = training->saves && training->saves(training->user, turn->stopped || !steps_left(session, training));
    turn->goal = steps_of_chunk(session, training);
    memcpy(turn->plateau, session->record.plateau, sizeof turn->plateau);
    int code = mtc_ranks_share(&session->fault, turn, sizeof *turn, trainer->rested);
    memcpy(session->record.plateau, turn->plateau, sizeof turn->plateau);
    trainer->goal = turn->goal;
    trainer->rested = false;
    return code;
}

int mtc_train_run(MtcSession *session, MtcTraining *training) {
    if (session->model->quantized)
        return mtc_fail(&session->fault, MTC_USAGE,
                        "a model of --precision int8 trains nothing: its weights are integers");
    int code = ready(session);
    MtcTrainer *trainer = session->trainer;
    if (!code)
        mtc_snapshots_begin(session);
    while (!code) {
        Turn turn;
        code = next_turn(session, training, &turn);
        if (code)
            break;
        bool more = steps_left(session, training) && !turn.stopped;
        bool due = more && turn.snapshot;
        if (more && !due && !trainer->held && trainer->enqueued - trainer->finished < MTC_SLOTS) {
            mtc_range_begin("enqueue steps");
            code = enqueue_chunk(session, training);
            mtc_range_end();
        } else if (trainer->finished < trainer->enqueued) {
            mtc_range_begin("finish steps");
            code = finish_chunk(session, training);
            mtc_range_end();
        } else if (trainer->held)
            code = leave_pause(session, training, turn.saves);
        else if (due)
            code = mtc_snapshot_renew(session);
        else {
            code = turn.saves ? mtc_collect_states(session) : 0;
            break;
        }
    }
    if (code && trainer) {
        if (!mtc_nccl_lost())
            mtc_synchronize();
        trainer->finished = trainer->enqueued;
        trainer->held = false;
    }
    training->ended = session->at.step;
    return code;
}

int64_t mtc_last_step(const MtcSession *session, int64_t epochs) {
    const MtcPosition *at = &session->at;
    return at->step - at->epoch_step + (epochs - at->epoch) * mtc_steps_per_epoch(session);
}

/* ---- the C ABI ---- */

typedef struct ReportCopy {
    int count, columns;
    int64_t first;
    double *to;
} ReportCopy;

static void copy_reports(void *user, int64_t first, int64_t count, const double *reports) {
    ReportCopy *copy = (ReportCopy *)user;
    for (int64_t i = 0; i < count; i++)
        memcpy(copy->to + (first + i - copy->first) * copy->count, reports + i * copy->columns,
               (size_t)copy->count * sizeof *reports);
}

int mtc_train(MtcSession *session, int64_t steps, double *reports) {
    ReportCopy copy = {session->model->reports, mtc_report_columns(session->model), session->at.step, reports};
    MtcTraining training;
    int code = mtc_enter_idle(session);
    if (code)
        return code;
    if (steps < 0 || steps > INT64_MAX - session->at.step)
        return mtc_fail(&session->fault, MTC_USAGE, "cannot train %lld steps", (long long)steps);
    memset(&training, 0, sizeof training);
    training.until = session->at.step + steps;
    training.user = &copy;
    training.steps = reports ? copy_reports : NULL;
    memset(&session->record.epoch, 0, sizeof session->record.epoch); /* nobody adds these steps to the sums */
    memset(&session->record.interval, 0, sizeof session->record.interval);
    return mtc_train_run(session, &training);
}
