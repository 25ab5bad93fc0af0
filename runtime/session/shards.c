#include "session/shards.h"

#include "ranks/ranks.h"
#include "session/library.h"
#include "session/memory.h"
#include "session/rank_sums.h"
#include "session/weights.h"

#include <stdlib.h>
#include <string.h>

/* Sums wait on the way up: at level k that of 2^k shards, until the next 2^k are there. Two neighbours come together as they are computed,
 * unless shards stop: the second adds to what the first has left. */
struct MtcShards {
    int64_t first, count; /* of them, those of this program */
    int64_t *number;      /* host memory that copies reach: first, first + 1, ..., then first and count */
    int levels;
    char *level;
    char *own; /* of shards that wait for each other: their sums and values, one shard behind the other; or NULL */
    MtcRankSums *ranks; /* NULL: one */
};

/* Below it, sums do not wait. */
static int first_level(const MtcModel *model) {
    return model->exchanges ? 0 : 1;
}

static size_t level_bytes(const MtcModel *model) {
    return (size_t)mtc_waiting_levels(mtc_report_rows(model), model->exchanges > 0) * model->sums_bytes;
}

/* What a shard must find again behind a stop, where others have run meanwhile. */
static size_t own_bytes(const MtcModel *model) {
    return model->sums_bytes + model->values_bytes;
}

static size_t all_own_bytes(const MtcModel *model) {
    const int64_t count = mtc_report_rows(model);
    return model->exchanges && count > 1 ? (size_t)count * own_bytes(model) : 0;
}

size_t mtc_shard_bytes(const MtcModel *model) {
    return level_bytes(model) + all_own_bytes(model);
}

static int number_shards(MtcSession *session, MtcShards *shards) {
    const size_t count = (size_t)shards->count + 2;
    const char *error = mtc_host_alloc((void **)&shards->number, count * sizeof *shards->number);
    if (error)
        return mtc_device_fault(session, error, "host memory for training");
    for (int64_t i = 0; i < shards->count; i++)
        shards->number[i] = shards->first + i;
    int64_t *range = shards->number + shards->count;
    range[0] = shards->first;
    range[1] = shards->count;
    return mtc_device_fault(session, mtc_upload(session->clock + MTC_FIRST_SHARD, range, 2 * sizeof *range), "shards");
}

int mtc_shards_new(MtcSession *session) {
    const MtcModel *model = session->model;
    if (!model->shards)
        return 0;
    MtcShards *shards = session->shards = (MtcShards *)calloc(1, sizeof *shards);
    if (!shards)
        return mtc_no_memory(&session->fault, sizeof *shards, "training");
    shards->count = mtc_report_rows(model);
    shards->first = mtc_rank() * shards->count;
    shards->levels = mtc_shard_levels(shards->count);
    int code = number_shards(session, shards);
    if (!code && level_bytes(model))
        code = mtc_session_alloc(session, (void **)&shards->level, level_bytes(model), "sums over shards");
    if (!code && all_own_bytes(model))
        code = mtc_session_alloc(session, (void **)&shards->own, all_own_bytes(model), "values of all shards");
    return code || mtc_rank_count() == 1 ? code : mtc_rank_sums_new(session, &shards->ranks);
}

void mtc_shards_free(MtcSession *session) {
    MtcShards *shards = session->shards;
    if (!shards)
        return;
    mtc_session_free(session, shards->level, level_bytes(session->model));
    mtc_session_free(session, shards->own, all_own_bytes(session->model));
    mtc_host_free(shards->number);
    mtc_rank_sums_free(session, shards->ranks);
    free(shards);
    session->shards = NULL;
}

/* ---- sums of the step ---- */

static char *level_of(const MtcSession *session, int level) {
    const MtcModel *model = session->model;
    return session->shards->level + (size_t)(level - first_level(model)) * model->sums_bytes;
}

static const char *add_level(const MtcSession *session, char *sums, int level) {
    const MtcModel *model = session->model;
    return mtc_model_add_sums(model, sums, level_of(session, level),
                              (int64_t)(model->sums_bytes / mtc_real_bytes(model)));
}

/* The sums of shard i are there; those of the shards before it wait at the levels that the bits of i say. Behind the last one,
 * all come together. */
static const char *climb(const MtcSession *session, char *sums, int64_t i) {
    const MtcShards *shards = session->shards;
    const bool last = i + 1 == shards->count;
    const char *error = NULL;
    int level = first_level(session->model);
    if (level && !last && i % 2 == 0)
        return NULL;
    for (; level < shards->levels && !error && (last || i >> level & 1); level++)
        if (i >> level & 1)
            error = add_level(session, sums, level);
    return error || last ? error : mtc_copy(level_of(session, level), sums, session->model->sums_bytes);
}

static const char *choose_shard(const MtcSession *session, int64_t i) {
    const MtcShards *shards = session->shards;
    return mtc_upload(session->clock + MTC_SHARD, shards->number + i, sizeof *shards->number);
}

/* ---- shards that stop for sums of all ----
 *
 * The phases up to a stop run for one shard after the other; then what each has for the sums (MtcExchange) is added up, here and over
 * the ranks, along the tree of all other sums. */

static char *own_of(const MtcSession *session, int64_t i) {
    return session->shards->own + (size_t)i * own_bytes(session->model);
}

static const char *keep_own(const MtcSession *session, int64_t i) {
    const MtcModel *model = session->model;
    char *own = own_of(session, i);
    const char *error = mtc_copy(own, session->arena + model->sums_offset, model->sums_bytes);
    return error ? error
                 : mtc_copy(own + model->sums_bytes, session->arena + model->values_offset, model->values_bytes);
}

static const char *take_own(const MtcSession *session, int64_t i) {
    const MtcModel *model = session->model;
    const char *own = own_of(session, i);
    const char *error = mtc_copy(session->arena + model->sums_offset, own, model->sums_bytes);
    return error ? error
                 : mtc_copy(session->arena + model->values_offset, own + model->sums_bytes, model->values_bytes);
}

/* Neighbours first; the arena has the whole. */
static const char *add_own(const MtcSession *session, const MtcExchange *sum, size_t bytes) {
    const MtcModel *model = session->model;
    const int64_t count = session->shards->count;
    const size_t place = model->sums_bytes + sum->offset - model->values_offset;
    const char *error = NULL;
    for (int64_t apart = 1; apart < count; apart *= 2)
        for (int64_t i = 0; i + apart < count && !error; i += 2 * apart)
            error =
                mtc_model_add_sums(model, own_of(session, i) + place, own_of(session, i + apart) + place, sum->count);
    return error ? error : mtc_copy(session->arena + sum->offset, own_of(session, 0) + place, bytes);
}

static const char *give_to_own(const MtcSession *session, const MtcExchange *sum, size_t bytes) {
    const MtcModel *model = session->model;
    const size_t place = model->sums_bytes + sum->offset - model->values_offset;
    const char *error = NULL;
    for (int64_t i = 0; i < session->shards->count && !error; i++)
        error = mtc_copy(own_of(session, i) + place, session->arena + sum->offset, bytes);
    return error;
}

static const char *add_exchange(MtcSession *session, const MtcExchange *sum) {
    const MtcShards *shards = session->shards;
    const size_t bytes = (size_t)sum->count * mtc_real_bytes(session->model);
    const char *error = shards->own ? add_own(session, sum, bytes) : NULL;
    if (!error && shards->ranks)
        error = mtc_sum_range_over_ranks(session, shards->ranks, sum->offset, bytes);
    return error || !shards->own ? error : give_to_own(session, sum, bytes);
}

/* All sums that the phase begins with. */
static const char *add_exchanges(MtcSession *session, int phase) {
    const MtcModel *model = session->model;
    const char *error = NULL;
    for (int k = 0; k < model->exchanges && !error; k++)
        if (model->exchange[k].phase == phase)
            error = add_exchange(session, &model->exchange[k]);
    return error;
}

/* Up to which phase shards run from this one on. */
static int next_stop(const MtcModel *model, int from, int phases) {
    for (int k = 0; k < model->exchanges; k++)
        if (model->exchange[k].phase > from && model->exchange[k].phase < phases)
            return model->exchange[k].phase;
    return phases;
}

static const char *run_phases(const MtcModel *model, const MtcRun *run, int from, int to) {
    return model->exchanges                                  ? mtc_model_train_between(model, run, from, to)
           : model->train_shard && to == model->train_phases ? mtc_model_train_shard(model, run)
                                                             : mtc_model_train_until(model, run, to - 1);
}

static const char *run_shard(const MtcSession *session, const MtcRun *run, int64_t i, int from, int to) {
    const MtcShards *shards = session->shards;
    const char *error = shards ? choose_shard(session, i) : NULL;
    if (!error && from && shards->own)
        error = take_own(session, i);
    return error ? error : run_phases(session->model, run, from, to);
}

/* What is done with a shard behind its last phase; true: that is enough. */
typedef bool BehindShard(MtcSession *session, int64_t shard, const char **error, void *user);

/* The first `phases` of each shard. */
static const char *run_shards(MtcSession *session, const MtcRun *run, int phases, BehindShard *behind, void *user) {
    const MtcShards *shards = session->shards;
    const int64_t count = shards ? shards->count : 1;
    const char *error = NULL;
    for (int from = 0, to; from < phases && !error; from = to) {
        to = next_stop(session->model, from, phases);
        for (int64_t i = 0; i < count && !error; i++) {
            error = run_shard(session, run, i, from, to);
            if (!error && to == phases && behind(session, i, &error, user))
                return error;
            if (!error && to < phases && shards->own)
                error = keep_own(session, i);
        }
        if (!error && to < phases)
            error = add_exchanges(session, to);
    }
    return error;
}

/* ---- a step ---- */

static bool climb_behind(MtcSession *session, int64_t shard, const char **error, void *sums) {
    *error = climb(session, (char *)sums, shard);
    return false;
}

static const char *train_step(MtcSession *session, const MtcRun *run) {
    const MtcModel *model = session->model;
    char *sums = session->arena + model->sums_offset;
    const char *error = run_shards(session, run, model->train_phases, climb_behind, sums);
    if (!error && session->shards->ranks)
        error = mtc_sum_over_ranks(session, session->shards->ranks, sums);
    error = error ? error : mtc_model_update(model, run);
    return error || !session->shards->ranks ? error : mtc_share_updates(session, session->shards->ranks);
}

/* Where each rank has one shard, the device may need the host for none of it. */
static bool train_alone(MtcSession *session, const MtcRun *run, int64_t steps, const char **error) {
    const MtcShards *shards = session->shards;
    if (!shards->ranks || shards->count > 1)
        return false;
    *error = choose_shard(session, 0);
    return *error || mtc_train_among_ranks(session, shards->ranks, run, steps, error);
}

/* As a graph of all shards, unless there are too many for one. */
static bool trains_whole(const MtcSession *session) {
    enum { MOST_SHARDS = 16 };
    const MtcShards *shards = session->shards;
    return session->model->train_whole && !shards->ranks && shards->count <= MOST_SHARDS;
}

static const char *train_whole(MtcSession *session, const MtcRun *run, int64_t steps) {
    const MtcShards *shards = session->shards;
    const char *error = choose_shard(session, 0);
    return error ? error : mtc_model_train_whole(session->model, run, shards->level, shards->count, steps);
}

const char *mtc_train_steps(MtcSession *session, const MtcRun *run, int64_t steps) {
    const char *error = NULL;
    if (!session->shards)
        return mtc_model_train(session->model, run, steps);
    if (trains_whole(session))
        return train_whole(session, run, steps);
    if (train_alone(session, run, steps, &error))
        return error;
    for (int64_t step = 0; step < steps && !error; step++)
        error = train_step(session, run);
    return error || !session->shards->ranks ? error : mtc_await_rank_sums(session, session->shards->ranks);
}

const char *mtc_train_own_steps(MtcSession *session, const MtcRun *run, int64_t steps) {
    MtcShards *shards = session->shards;
    MtcRankSums *ranks = shards ? shards->ranks : NULL;
    if (shards)
        shards->ranks = NULL;
    const char *error = mtc_train_steps(session, run, steps);
    if (shards)
        shards->ranks = ranks;
    return error;
}

const char *mtc_choose_first_shard(MtcSession *session) {
    return session->shards ? choose_shard(session, 0) : NULL;
}

int mtc_check_shards(MtcSession *session) {
    return session->shards && session->shards->ranks ? mtc_check_rank_sums(session, session->shards->ranks) : 0;
}

/* Who looks, and for whom. */
typedef struct Looking {
    bool (*look)(void *user);
    void *user;
} Looking;

static bool look_behind(MtcSession *session, int64_t shard, const char **error, void *user) {
    const Looking *looking = (const Looking *)user;
    (void)session, (void)shard, (void)error;
    return looking->look(looking->user);
}

const char *mtc_train_phases(MtcSession *session, const MtcRun *run, int phase, bool (*look)(void *user), void *user) {
    Looking looking = {look, user};
    return run_shards(session, run, phase + 1, look_behind, &looking);
}

/* ---- reports ---- */

int64_t mtc_report_rows(const MtcModel *model) {
    return model->shards ? model->shards / mtc_rank_count() : 1;
}

/* Along the same tree: neighbours first. */
static void add_rows(double *row, int64_t rows, int reports) {
    for (int64_t apart = 1; apart < rows; apart *= 2)
        for (int64_t i = 0; i + apart < rows; i += 2 * apart)
            for (int r = 0; r < reports; r++)
                row[i * reports + r] += row[(i + apart) * reports + r];
}

int mtc_add_reports(MtcSession *session, double *reports, int64_t steps) {
    const int64_t rows = mtc_report_rows(session->model);
    const int count = mtc_report_columns(session->model);
    for (int64_t step = 0; step < steps && rows > 1; step++) {
        double *row = reports + step * rows * count;
        add_rows(row, rows, count);
        memmove(reports + step * count, row, (size_t)count * sizeof *row);
    }
    return mtc_ranks_sum(&session->fault, reports, steps * count, true);
}
