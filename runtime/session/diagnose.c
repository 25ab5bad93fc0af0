/* A loss that is NaN or infinite: which tensor was the first to hold such a number, and at which line of the model?
 *
 * The steps until then are replayed from a snapshot; training is deterministic, so it happens again. The
 * step that spoils a weight and the step whose loss shows it may be neighbours:
 *
 *     step n      forward, loss fine, gradient overflows, update writes NaN into h.weight
 *     step n + 1  loss NaN
 *
 * so the step before the bad loss is examined first, then the step itself, phase by phase. */
#include "ranks/ranks.h"
#include "session/feed.h"
#include "session/finite.h"
#include "session/order.h"
#include "session/run.h"
#include "session/shards.h"
#include "session/train.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { OTHERS = 4 };

typedef struct Culprit {
    const MtcTensor *tensor; /* NULL: none of the stored tensors */
    MtcBadNumber bad;
    int others, other[OTHERS]; /* statements of tensors that the same phase wrote and that are bad too */
    bool ended;                /* the search was, before it found one */
} Culprit;

static void add_culprit(Culprit *culprit, const MtcTensor *tensor, const MtcBadNumber *bad) {
    if (!culprit->tensor) {
        culprit->tensor = tensor;
        culprit->bad = *bad;
        return;
    }
    bool known = culprit->others == OTHERS || tensor->statement == culprit->tensor->statement;
    for (int i = 0; i < culprit->others; i++)
        known |= culprit->other[i] == tensor->statement;
    if (!known)
        culprit->other[culprit->others++] = tensor->statement;
}

static int examine_tensor(MtcSession *session, const MtcTensor *tensor, Culprit *culprit) {
    MtcBadNumber bad = {false, 0, 0};
    int code = mtc_is_real(tensor->type) ? mtc_examine_tensor(session, tensor, &bad) : 0;
    if (bad.found)
        add_culprit(culprit, tensor, &bad);
    return code;
}

/* The values that `phase` writes; -1: weights, then states. */
static int examine_phase(MtcSession *session, int phase, Culprit *culprit) {
    int code = 0;
    for (int i = 0; i < session->model->tensors && !code; i++) {
        const MtcTensor *tensor = &session->model->tensor[i];
        if (phase < 0 ? tensor->role != MTC_VALUE : tensor->role == MTC_VALUE && tensor->phase == phase)
            code = examine_tensor(session, tensor, culprit);
    }
    return code;
}

/* ---- replaying ---- */

static int set_order(MtcSession *session, const MtcPosition *at) {
    int64_t examples = session->data[MTC_TRAIN].examples;
    int *order = (int *)malloc((size_t)examples * sizeof *order);
    if (!order)
        return mtc_no_memory(&session->fault, (size_t)examples * sizeof *order, "the order");
    mtc_fill_order(session, at->epoch, order);
    const char *error = mtc_upload(session->order, order, (size_t)examples * sizeof *order);
    error = error ? error : mtc_synchronize();
    free(order);
    return mtc_device_fault(session, error, "replaying");
}

static bool has_order_of(const MtcSession *session, const MtcPosition *at) {
    return session->orders > 0 && session->order_epoch == at->epoch;
}

/* *steps: so many of that epoch can be enqueued from there on. */
static int set_data(MtcSession *session, const MtcPosition *at, int64_t *steps) {
    *steps = session->trainer->steps_per_epoch - at->epoch_step;
    if (!session->feed)
        return has_order_of(session, at) ? 0 : set_order(session, at);
    const char *error = mtc_synchronize(); /* both windows are free */
    if (!error)
        error = mtc_feed_ready(session, at->epoch, at->epoch_step, steps);
    return mtc_device_fault(session, error, "replaying");
}

static int set_position(MtcSession *session, const MtcPosition *at, int64_t *steps) {
    const int64_t clock[3] = {at->step, at->epoch_step, 0}, next = mtc_conduct_at(session, at->step);
    int code = set_data(session, at, steps);
    *steps = next - at->step < *steps ? next - at->step : *steps;
    if (!code)
        code = mtc_device_fault(session, mtc_upload(session->clock, clock, sizeof clock), "replaying");
    session->at = *at;
    session->order_epoch = at->epoch;
    session->orders = 1;
    return code;
}

/* With the data of the position that was set. */
static MtcRun run_here(const MtcSession *session) {
    return mtc_run(session, &session->data[MTC_TRAIN], session->trainer->reports);
}

static void advance(MtcPosition *at, int64_t steps, int64_t steps_per_epoch) {
    at->step += steps;
    at->epoch_step += steps;
    at->epoch += at->epoch_step / steps_per_epoch;
    at->epoch_step %= steps_per_epoch;
}

/* As many as are done between two questions whether that is enough. */
static int64_t steps_at_once(const MtcTrainer *trainer) {
    const double steps = trainer->step_seconds > 0 ? 0.5 / trainer->step_seconds : 1;
    return steps < 1 ? 1 : (int64_t)fmin(steps, MTC_CHUNK_STEPS);
}

static int replay_until(MtcSession *session, MtcPosition at, int64_t step, Culprit *culprit) {
    const int64_t from = at.step, most = steps_at_once(session->trainer);
    int64_t steps;
    int code = 0;
    while (at.step < step && !code) {
        culprit->ended = mtc_enough(session, "going back", at.step - from, step - from);
        if (culprit->ended)
            return 0;
        code = set_position(session, &at, &steps);
        MtcRun run = run_here(session);
        steps = steps < most ? steps : most;
        steps = steps < step - at.step ? steps : step - at.step;
        if (!code)
            code = mtc_device_fault(session, mtc_train_steps(session, &run, steps), "replaying");
        if (!code)
            code = mtc_device_fault(session, mtc_synchronize(), "replaying");
        advance(&at, steps, session->trainer->steps_per_epoch);
    }
    return code ? code : set_position(session, &at, &steps);
}

/* Of a batch in shards, updates are behind the phases. */
static int replay_update(MtcSession *session, const MtcSnapshot *before, Culprit *culprit) {
    int code = mtc_snapshot_restore(session, before);
    return code ? code : replay_until(session, before->at, before->at.step + 1, culprit);
}

typedef struct Look {
    MtcSession *session;
    Culprit *culprit;
    int phase, code;
} Look;

static bool look_at_phase(void *user) {
    Look *look = (Look *)user;
    look->code = examine_phase(look->session, look->phase, look->culprit);
    return look->code || look->culprit->tensor;
}

/* One step from `before`, phase by phase, each time from the start, since updates change what earlier phases read. */
static int examine_step(MtcSession *session, const MtcSnapshot *before, Culprit *culprit) {
    int code = 0, phases = session->model->train_phases;
    int64_t steps;
    for (int phase = 0; phase < phases && !code && !culprit->tensor; phase++) {
        culprit->ended = mtc_enough(session, "looking for the first bad number", phase, phases);
        if (culprit->ended)
            return 0;
        code = mtc_snapshot_restore(session, before);
        if (!code)
            code = set_position(session, &before->at, &steps);
        MtcRun run = run_here(session);
        Look look = {session, culprit, phase, 0};
        if (!code)
            code = mtc_device_fault(session, mtc_train_phases(session, &run, phase, look_at_phase, &look), "replaying");
        code = code ? code : look.code;
    }
    if (!code && !culprit->tensor && session->shards)
        code = replay_update(session, before, culprit);
    return code || culprit->tensor ? code : examine_phase(session, -1, culprit);
}

/* Steps [first, last] from the snapshot: the first of them in which a tensor goes bad. *step says which. */
static int examine_steps(MtcSession *session, MtcSnapshot *from, int64_t first, int64_t last, Culprit *culprit,
                         int64_t *step) {
    MtcSnapshot *scratch = mtc_snapshot_scratch(session, from);
    const MtcPosition begin = from->at;
    int code = mtc_snapshot_restore(session, from);
    session->orders = 0; /* the device may have others by now */
    if (!code)
        code = replay_until(session, begin, first, culprit);
    for (*step = first; *step <= last && !code && !culprit->ended; ++*step) {
        code = mtc_snapshot_save(session, scratch, &session->at);
        if (!code)
            code = examine_step(session, scratch, culprit);
        if (code || culprit->tensor || culprit->ended)
            break;
        code = mtc_snapshot_restore(session, scratch);
        if (!code)
            code = replay_until(session, scratch->at, *step + 1, culprit);
    }
    return code;
}

/* ---- the message ---- */

static void note_culprit(MtcSession *session, const Culprit *culprit, int64_t step) {
    const MtcTensor *tensor = culprit->tensor;
    static const char *const role[] = {"weight", "buffer", "optimizer state", "value"};
    if (culprit->ended) {
        mtc_note(&session->fault, "the search for the first bad tensor was stopped");
        return;
    }
    if (!tensor) {
        mtc_note(&session->fault,
                 "every stored tensor is finite: the number arises within the computation of the loss");
        return;
    }
    mtc_note(&session->fault, "the first bad tensor is the %s '%s': %s, in step %lld", role[tensor->role], tensor->name,
             mtc_bad_element_text(&culprit->bad, tensor), (long long)step + 1);
    mtc_note_statement(&session->fault, session->model, tensor->statement);
    if (culprit->others)
        mtc_note(&session->fault, "computed together with it, and bad too:");
    for (int i = 0; i < culprit->others; i++)
        mtc_note_statement(&session->fault, session->model, culprit->other[i]);
}

const MtcKnob *mtc_find_rate(const MtcModel *model) {
    for (int i = 0; i < model->knobs; i++)
        if (strstr(model->knob[i].name, "lr") || strstr(model->knob[i].name, "rate"))
            return &model->knob[i];
    return NULL;
}

static void note_advice(MtcSession *session) {
    const MtcKnob *rate = mtc_find_rate(session->model);
    if (rate) {
        mtc_note(&session->fault, "try a smaller learning rate: %s%s%s %g", session->program ? "--" : "", rate->name,
                 session->program ? "" : " =", mtc_shortest(session->knob[rate - session->model->knob] / 10));
        return;
    }
    mtc_note(
        &session->fault,
        "try a smaller learning rate, or clip the gradient; look for log(0), a division by 0, exp of a large number");
}

/* Are there bad numbers in the data of that step's batch? `at` is where training stood at that step or before. */
static int note_batch(MtcSession *session, MtcPosition at, int64_t step, bool *found) {
    const MtcData *data = &session->data[MTC_TRAIN];
    while (at.step < step)
        advance(&at, 1, session->trainer->steps_per_epoch);
    const int64_t batch = mtc_step_examples(session->model);
    int64_t first = at.epoch_step * batch, left = data->examples - first;
    int *order = (int *)malloc((size_t)data->examples * sizeof *order);
    *found = false;
    if (!order)
        return mtc_no_memory(&session->fault, (size_t)data->examples * sizeof *order, "the order");
    mtc_fill_order(session, at.epoch, order);
    int code = mtc_note_bad_data(session, data, "train", order + first, left < batch ? left : batch, found);
    free(order);
    return code;
}

/* What a step that is repeated was computed with is the session's while it is. */
static int find_culprit(MtcSession *session, MtcSnapshot *from, int64_t last, Culprit *culprit, int64_t *step) {
    const int64_t first = last > from->at.step ? last - 1 : last;
    const MtcConduct now = mtc_conduct_now(session);
    int code = examine_steps(session, from, first, last, culprit, step);
    mtc_conduct_take(session, &now);
    return code;
}

int mtc_diagnose(MtcSession *session, const MtcChunk *chunk, int64_t bad) {
    double loss = chunk->reports[bad * mtc_report_columns(session->model)];
    int64_t step = chunk->from.step + bad, culprit_step = step;
    const bool alone = mtc_rank_count() == 1; /* steps again need all ranks, and each sees values of its own */
    MtcSnapshot *from = alone ? mtc_snapshot_before(session, step) : NULL;
    MtcPosition before = from ? from->at : chunk->from;
    Culprit culprit;
    memset(&culprit, 0, sizeof culprit);
    mtc_synchronize();
    int code = from ? find_culprit(session, from, step, &culprit, &culprit_step) : 0;
    if (code)
        return code;
    mtc_fail(&session->fault, MTC_BAD_DATA, "training diverged: the loss of step %lld (epoch %lld) is %s",
             (long long)step + 1, (long long)(step / session->trainer->steps_per_epoch) + 1, mtc_number(loss));
    bool in_data;
    code = note_batch(session, before, culprit.tensor ? culprit_step : step, &in_data);
    if (from && !in_data)
        note_culprit(session, &culprit, culprit_step);
    if (!in_data)
        note_advice(session);
    return code ? code : session->fault.code;
}
