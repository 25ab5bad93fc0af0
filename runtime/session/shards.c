#include "session/shards.h"

#include "ranks/ranks.h"
#include "session/library.h"
#include "session/memory.h"
#include "session/rank_sums.h"
#include "session/weights.h"

#include <stdlib.h>
#include <string.h>

/* Sums wait on the way up: at level k that of 2^k shards, until the next 2^k are there. */
struct MtcShards {
    int64_t first, count; /* of them, those of this program */
    int64_t *number;      /* host memory that copies reach: first, first + 1, ..., then first and count */
    int levels;
    char *level;
    MtcRankSums *ranks; /* NULL: one */
};

size_t mtc_shard_bytes(const MtcModel *model) {
    return (size_t)mtc_shard_levels(mtc_report_rows(model)) * model->sums_bytes;
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
    if (!code && shards->levels)
        code = mtc_session_alloc(session, (void **)&shards->level, mtc_shard_bytes(model), "sums over shards");
    return code || mtc_rank_count() == 1 ? code : mtc_rank_sums_new(session, &shards->ranks);
}

void mtc_shards_free(MtcSession *session) {
    MtcShards *shards = session->shards;
    if (!shards)
        return;
    mtc_session_free(session, shards->level, mtc_shard_bytes(session->model));
    mtc_host_free(shards->number);
    mtc_rank_sums_free(session, shards->ranks);
    free(shards);
    session->shards = NULL;
}

/* ---- a step ---- */

static const char *add_level(const MtcSession *session, char *sums, int level) {
    const MtcModel *model = session->model;
    return mtc_model_add_sums(model, sums, session->shards->level + (size_t)level * model->sums_bytes,
                              (int64_t)(model->sums_bytes / mtc_real_bytes(model)));
}

/* The sums of shard i are there; those of the shards before it wait at the levels that the bits of i say. Behind the last one,
 * all come together. */
static const char *climb(const MtcSession *session, char *sums, int64_t i) {
    const MtcShards *shards = session->shards;
    const bool last = i + 1 == shards->count;
    const char *error = NULL;
    int level = 0;
    for (; level < shards->levels && !error && (last || i >> level & 1); level++)
        if (i >> level & 1)
            error = add_level(session, sums, level);
    return error || last
               ? error
               : mtc_copy(shards->level + (size_t)level * session->model->sums_bytes, sums, session->model->sums_bytes);
}

static const char *choose_shard(const MtcSession *session, int64_t i) {
    const MtcShards *shards = session->shards;
    return mtc_upload(session->clock + MTC_SHARD, shards->number + i, sizeof *shards->number);
}

static const char *train_step(MtcSession *session, const MtcRun *run) {
    const MtcModel *model = session->model;
    char *sums = session->arena + model->sums_offset;
    const char *error = NULL;
    for (int64_t i = 0; i < session->shards->count && !error; i++) {
        error = choose_shard(session, i);
        error = error ? error : mtc_model_train_shard(model, run);
        error = error ? error : climb(session, sums, i);
    }
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

const char *mtc_train_steps(MtcSession *session, const MtcRun *run, int64_t steps) {
    const char *error = NULL;
    if (!session->shards)
        return mtc_model_train(session->model, run, steps);
    if (train_alone(session, run, steps, &error))
        return error;
    for (int64_t step = 0; step < steps && !error; step++)
        error = train_step(session, run);
    return error || !session->shards->ranks ? error : mtc_await_rank_sums(session, session->shards->ranks);
}

int mtc_check_shards(MtcSession *session) {
    return session->shards && session->shards->ranks ? mtc_check_rank_sums(session, session->shards->ranks) : 0;
}

const char *mtc_train_phases(MtcSession *session, const MtcRun *run, int phase, bool (*look)(void *user), void *user) {
    const int64_t shards = session->shards ? session->shards->count : 1;
    const char *error = NULL;
    for (int64_t i = 0; i < shards && !error; i++) {
        error = session->shards ? choose_shard(session, i) : NULL;
        error = error ? error : mtc_model_train_until(session->model, run, phase);
        if (!error && look(user))
            break;
    }
    return error;
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
