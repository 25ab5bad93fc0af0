#include "session/snapshot.h"

#include "base/parallel.h"
#include "ranks/ranks.h"
#include "session/finite.h"
#include "session/init.h"
#include "session/memory.h"
#include "session/parts.h"
#include "session/pieces.h"
#include "session/train.h"
#include "session/weights.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- what is copied ---- */

static int compare_ranges(const void *a, const void *b) {
    const MtcRange *x = (const MtcRange *)a, *y = (const MtcRange *)b;
    return (x->begin > y->begin) - (x->begin < y->begin);
}

/* Where states begin of which a process may have a part: no range goes on there. */
static bool begins_parted(const MtcModel *model, size_t end, size_t begin) {
    return model->flat_bytes && end <= model->parted_offset && begin >= model->parted_offset;
}

/* Neighbours become one range, with the alignment gap between them: one copy instead of many. */
static int join_ranges(const MtcModel *model, MtcRange *range, int count) {
    int last = 0;
    qsort(range, (size_t)count, sizeof *range, compare_ranges);
    for (int i = 1; i < count; i++)
        if (mtc_copied_together(range[last].end, range[i].begin) &&
            !begins_parted(model, range[last].end, range[i].begin))
            range[last].end = range[i].end;
        else
            range[++last] = range[i];
    return count ? last + 1 : 0;
}

static void count_bytes(MtcKept *kept) {
    kept->bytes = 0;
    for (int i = 0; i < kept->ranges; i++)
        kept->bytes += kept->range[i].end - kept->range[i].begin;
}

int mtc_kept_here(MtcFault *fault, const MtcModel *model, MtcKept *kept) {
    const int code = mtc_kept_ranges(fault, model, kept);
    if (code || !model->flat_bytes || mtc_rank_count() == 1)
        return code;
    while (kept->ranges && kept->range[kept->ranges - 1].begin >= model->parted_offset)
        kept->ranges--;
    count_bytes(kept);
    return 0;
}

int mtc_kept_ranges(MtcFault *fault, const MtcModel *model, MtcKept *kept) {
    int count = 0;
    memset(kept, 0, sizeof *kept);
    kept->range = (MtcRange *)calloc((size_t)model->tensors + 1, sizeof *kept->range);
    if (!kept->range)
        return mtc_no_memory(fault, sizeof *kept->range, "copies of the weights");
    for (int i = 0; i < model->tensors; i++)
        if (model->tensor[i].role != MTC_VALUE) {
            kept->range[count].begin = model->tensor[i].offset;
            kept->range[count++].end = model->tensor[i].offset + mtc_tensor_bytes(&model->tensor[i]);
        }
    kept->ranges = join_ranges(model, kept->range, count);
    count_bytes(kept);
    return 0;
}

int mtc_download_kept(MtcSession *session, const MtcKept *kept, char *to) {
    const size_t parted = session->model->parted_offset;
    const char *error = NULL;
    for (int i = 0; i < kept->ranges && !error; i++) {
        size_t bytes = kept->range[i].end - kept->range[i].begin;
        if (session->collected && kept->range[i].begin >= parted)
            mtc_copy_memory(to, session->collected + (kept->range[i].begin - parted), bytes);
        else
            error = mtc_download(to, session->arena + kept->range[i].begin, bytes);
        to += bytes;
    }
    return mtc_device_fault(session, error ? error : mtc_synchronize(), "reading the weights");
}

/* Where a copy has that byte of the arena. */
static const char *kept_at(const MtcState *state, size_t offset) {
    const MtcRange *range = state->kept->range;
    const char *at = state->copy;
    for (; offset >= range->end; range++)
        at += range->end - range->begin;
    return at + (offset - range->begin);
}

int mtc_visit_state(const MtcState *state, const MtcTensor *tensor, MtcVisitBytes *visit, void *user) {
    const size_t bytes = mtc_tensor_bytes(tensor);
    if (!state->copy && mtc_is_apart(tensor))
        return visit(state->session, user, mtc_collected(state->session, tensor), 0, bytes);
    return state->copy ? visit(state->session, user, kept_at(state, tensor->offset), 0, bytes)
                       : mtc_visit_memory(state->session, state->session->arena + tensor->offset, bytes, visit, user);
}

/* ---- one copy ---- */

static int copy_on_device(MtcSession *session, const MtcKept *kept, char *copy, bool back) {
    const char *error = NULL;
    for (int i = 0; i < kept->ranges && !error; i++) {
        size_t bytes = kept->range[i].end - kept->range[i].begin;
        char *place = session->arena + kept->range[i].begin;
        error = back ? mtc_copy(place, copy, bytes) : mtc_copy(copy, place, bytes);
        copy += bytes;
    }
    return mtc_device_fault(session, error, "copying the weights");
}

static int keep_piece(MtcSession *session, void *user, const void *bytes, size_t from, size_t size) {
    (void)session;
    mtc_copy_memory((char *)user + from, bytes, size);
    return 0;
}

static int copy_to_host(MtcSession *session, const MtcKept *kept, char *copy) {
    int code = 0;
    for (int i = 0; i < kept->ranges && !code; i++) {
        size_t bytes = kept->range[i].end - kept->range[i].begin;
        code = mtc_visit_memory(session, session->arena + kept->range[i].begin, bytes, keep_piece, copy);
        copy += bytes;
    }
    return code;
}

static int copy_from_host(MtcSession *session, const MtcKept *kept, const char *copy) {
    int code = 0;
    for (int i = 0; i < kept->ranges && !code; i++) {
        size_t bytes = kept->range[i].end - kept->range[i].begin;
        code = mtc_write_memory(session, session->arena + kept->range[i].begin, copy, bytes);
        copy += bytes;
    }
    return code;
}

int mtc_snapshot_save(MtcSession *session, MtcSnapshot *snapshot, const MtcPosition *at) {
    const MtcSnapshots *all = &session->trainer->snapshots;
    int code = all->on_host ? copy_to_host(session, &all->kept, snapshot->bytes)
                            : copy_on_device(session, &all->kept, snapshot->bytes, false);
    snapshot->taken = !code;
    snapshot->drawn = false;
    snapshot->at = *at;
    return code;
}

int mtc_snapshot_restore(MtcSession *session, const MtcSnapshot *snapshot) {
    const MtcSnapshots *all = &session->trainer->snapshots;
    if (snapshot->drawn)
        return mtc_draw_weights(session);
    return all->on_host ? copy_from_host(session, &all->kept, snapshot->bytes)
                        : copy_on_device(session, &all->kept, snapshot->bytes, true);
}

/* ---- which there are ---- */

/* On the host a copy may take a 400th of the time; a 20th, where somebody writes weights again and again. */
static const double PRICE = 400, EXPECTED_RATE = 2e10;
static const double PRICE_AFTER_WRITES = 20;

static bool as_drawn(const MtcSession *session) {
    return session->writes == 0 && session->at.step == 0 && session->seed == session->drawn_seed;
}

/* $MTC_SNAPSHOT_SECONDS: so often, and on the host, for tests. */
static void place_snapshots(MtcSession *session, MtcSnapshots *all) {
    const char *wanted = getenv("MTC_SNAPSHOT_SECONDS");
    const double expected = PRICE * (double)all->kept.bytes / EXPECTED_RATE;
    all->on_host = wanted || mtc_snapshot_bytes(all->kept.bytes) == 0;
    all->interval = wanted ? strtod(wanted, NULL) : -1;
    all->looked_at = -1;
    all->writes = session->writes;
    all->snapshot[0].taken = all->snapshot[0].drawn = all->on_host && as_drawn(session);
    all->due = all->snapshot[0].taken ? mtc_seconds() + (wanted ? all->interval : expected) : 0;
}

int mtc_snapshots_new(MtcSession *session, MtcSnapshots *all) {
    int code = mtc_kept_here(&session->fault, session->model, &all->kept);
    if (!code)
        place_snapshots(session, all);
    for (int i = 0; i < MTC_SNAPSHOTS && !code && !all->on_host; i++)
        code = mtc_session_alloc(session, (void **)&all->snapshot[i].bytes, all->kept.bytes, "snapshots");
    return code;
}

void mtc_snapshots_free(MtcSession *session, MtcSnapshots *all) {
    for (int i = 0; i < MTC_SNAPSHOTS; i++)
        if (all->on_host)
            free(all->snapshot[i].bytes);
        else
            mtc_session_free(session, all->snapshot[i].bytes, all->kept.bytes);
    free(all->conduct);
    free(all->kept.range);
}

void mtc_snapshots_begin(MtcSession *session) {
    MtcSnapshots *all = &session->trainer->snapshots;
    session->writes += session->located; /* whoever has the address may have written there */
    if (all->writes == session->writes)
        return;
    for (int i = 0; i < MTC_SNAPSHOTS; i++)
        all->snapshot[i].taken = false;
    all->conducts = 0; /* of steps that nothing goes back to; a checkpoint may begin before them */
    all->looked_at = -1;
    all->writes = session->writes;
    all->due = fmin(all->due, all->taken + (all->interval < 0 ? PRICE_AFTER_WRITES * all->took : 0));
}

/* The device's copies have theirs from the beginning, the host's from its first use on. */
static bool has_memory_for_copy(MtcSnapshots *all) {
    if (!all->snapshot[0].bytes)
        all->snapshot[0].bytes = (char *)malloc(all->kept.bytes);
    return all->snapshot[0].bytes != NULL;
}

MtcSnapshot *mtc_snapshot_before(MtcSession *session, int64_t step) {
    MtcSnapshots *all = &session->trainer->snapshots;
    MtcSnapshot *best = NULL;
    for (int i = 0; i < MTC_SNAPSHOTS; i++) {
        MtcSnapshot *one = &all->snapshot[i];
        const bool usable = one->taken && one->at.step <= step;
        if (usable && (!best || (one->at.step < step && (best->at.step == step || best->at.step < one->at.step))))
            best = one;
    }
    return has_memory_for_copy(all) ? best : NULL;
}

MtcSnapshot *mtc_snapshot_scratch(MtcSession *session, MtcSnapshot *from) {
    MtcSnapshots *all = &session->trainer->snapshots;
    return all->on_host || from != all->snapshot ? all->snapshot : all->snapshot + 1;
}

/* ---- what steps are computed with ---- */

MtcConduct mtc_conduct_now(const MtcSession *session) {
    MtcConduct conduct;
    memset(&conduct, 0, sizeof conduct);
    conduct.step = session->at.step;
    conduct.last_step = session->last_step;
    conduct.epochs = session->record.epochs;
    conduct.seed = session->seed;
    memcpy(conduct.knob, session->knob, sizeof conduct.knob);
    for (int i = 0; i < MTC_MAX_PLATEAUS; i++)
        conduct.falls[i] = session->record.plateau[i].falls;
    return conduct;
}

void mtc_conduct_take(MtcSession *session, const MtcConduct *conduct) {
    session->last_step = conduct->last_step;
    session->record.epochs = conduct->epochs;
    session->seed = conduct->seed;
    memcpy(session->knob, conduct->knob, sizeof session->knob);
    for (int i = 0; i < MTC_MAX_PLATEAUS; i++)
        session->record.plateau[i].falls = conduct->falls[i];
}

/* The oldest step that a search may go back to. */
static int64_t oldest_step(const MtcSession *session) {
    const MtcSnapshots *all = &session->trainer->snapshots;
    int64_t oldest = session->at.step;
    for (int i = 0; i < MTC_SNAPSHOTS; i++)
        if (all->snapshot[i].taken && all->snapshot[i].at.step < oldest)
            oldest = all->snapshot[i].at.step;
    return oldest;
}

static void forget_conduct(MtcSnapshots *all, int64_t oldest) {
    int old = 0;
    while (old + 1 < all->conducts && all->conduct[old + 1].step <= oldest)
        old++;
    all->conducts -= old;
    if (old)
        memmove(all->conduct, all->conduct + old, (size_t)all->conducts * sizeof *all->conduct);
}

static int note_conduct(MtcSession *session) {
    MtcSnapshots *all = &session->trainer->snapshots;
    MtcConduct now = mtc_conduct_now(session), last = all->conducts ? all->conduct[all->conducts - 1] : now;
    last.step = now.step;
    if (all->conducts && memcmp(&last, &now, sizeof now) == 0)
        return 0;
    forget_conduct(all, oldest_step(session));
    MtcConduct *more = (MtcConduct *)realloc(all->conduct, (size_t)(all->conducts + 1) * sizeof *more);
    if (!more)
        return mtc_no_memory(&session->fault, sizeof *more, "training");
    all->conduct = more;
    all->conduct[all->conducts++] = now;
    return 0;
}

int64_t mtc_conduct_at(MtcSession *session, int64_t step) {
    const MtcSnapshots *all = &session->trainer->snapshots;
    const MtcConduct *conduct = all->conduct;
    int i = 0;
    while (i + 1 < all->conducts && conduct[i + 1].step <= step)
        i++;
    mtc_conduct_take(session, &conduct[i]);
    return i + 1 < all->conducts ? conduct[i + 1].step : INT64_MAX;
}

int mtc_snapshot_enqueue(MtcSession *session) {
    MtcSnapshots *all = &session->trainer->snapshots;
    int code = note_conduct(session);
    return code || all->on_host
               ? code
               : mtc_snapshot_save(session, &all->snapshot[all->count++ % MTC_SNAPSHOTS], &session->at);
}

/* ---- the host's copy ---- */

bool mtc_snapshot_due(const MtcSession *session) {
    const MtcSnapshots *all = &session->trainer->snapshots;
    return all->on_host && all->looked_at != session->at.step && mtc_seconds() >= all->due;
}

static int find_bad_state(MtcSession *session, bool *found) {
    int code = 0;
    *found = false;
    for (int i = 0; i < session->model->tensors && !code && !*found; i++) {
        const MtcTensor *tensor = &session->model->tensor[i];
        const bool floats = tensor->type == MTC_F32 || tensor->type == MTC_F64;
        MtcBadNumber bad = {false, 0, 0};
        if (tensor->role != MTC_VALUE && floats)
            code = mtc_examine_tensor(session, tensor, &bad);
        *found = bad.found;
    }
    return code;
}

/* Without memory for a copy, training goes on without one. Bad numbers that steps since the last look have left without effect on any loss are none that spoil the next. */
int mtc_snapshot_renew(MtcSession *session) {
    MtcSnapshots *all = &session->trainer->snapshots;
    const double begun = mtc_seconds();
    bool bad = false;
    int code = all->snapshot[0].taken && !all->doubted ? find_bad_state(session, &bad) : 0;
    all->doubted = bad;
    all->looked_at = session->at.step;
    const bool possible = bad || has_memory_for_copy(all);
    if (!code && !bad && possible)
        code = mtc_snapshot_save(session, &all->snapshot[0], &session->at);
    all->taken = mtc_seconds();
    all->took = all->taken - begun;
    all->due = possible ? all->taken + (all->interval < 0 ? PRICE * all->took : all->interval) : INFINITY;
    forget_conduct(all, oldest_step(session));
    return code;
}
