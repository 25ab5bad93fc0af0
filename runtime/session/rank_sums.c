#include "session/rank_sums.h"

#include "ranks/nccl.h"
#include "ranks/ranks.h"
#include "session/library.h"
#include "session/memory.h"
#include "session/peers.h"
#include "session/weights.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

/* Four ways: where they lie, if the host sees that; in a copy of the host's; by NCCL, from device to device; by devices that reach each
 * other's memory. */
struct MtcRankSums {
    MtcPeerSums *peers;       /* NULL: devices do not */
    char *staged;             /* the host's copy; NULL: none is needed */
    char *scratch;            /* of the device; NULL: NCCL has not joined */
    MtcEvent *added, *summed; /* of the step before: the sums here; those of all */
    bool waits;               /* for these */
};

int mtc_rank_devices(MtcSession *session, int *devices) {
    enum { ID = sizeof session->device.id };
    const int count = mtc_rank_count();
    const unsigned char host[ID] = {0};
    unsigned char(*id)[ID] = (unsigned char(*)[ID])mtc_zeroed((size_t)count * ID);
    const int code = mtc_ranks_each(&session->fault, session->device.id, ID, id);
    *devices = 0;
    for (int rank = 0; rank < count; rank++) {
        int like = 0;
        while (memcmp(id[like], id[rank], ID) != 0)
            like++;
        *devices += like == rank && memcmp(id[rank], host, ID) != 0;
    }
    free(id);
    return code;
}

static size_t scratch_bytes(const MtcModel *model) {
    const size_t most = (size_t)1 << 26;
    return model->sums_bytes < most ? model->sums_bytes : most;
}

static int reserve_for_nccl(MtcSession *session, MtcRankSums *ranks) {
    int code =
        mtc_session_alloc(session, (void **)&ranks->scratch, scratch_bytes(session->model), "sums of other ranks");
    if (code)
        return code;
    const char *error = mtc_event_new(&ranks->added);
    error = error ? error : mtc_event_new(&ranks->summed);
    return mtc_device_fault(session, error, "sums of several ranks");
}

static int stage(MtcSession *session, MtcRankSums *ranks) {
    const char *error = mtc_host_alloc((void **)&ranks->staged, session->model->sums_bytes);
    return mtc_device_fault(session, error, "host memory for the sums of several ranks");
}

static int find_peers(MtcSession *session, MtcRankSums *ranks) {
    const char *why = NULL;
    const int code = mtc_peers_new(session, &ranks->peers, &why);
    if (code || ranks->peers || session->sums_way == MTC_SUMS_ANY)
        return code;
    mtc_fail(&session->fault, MTC_UNAVAILABLE, "GPUs do not reach each other's memory: %s", why);
    mtc_note(&session->fault, "--sums nccl needs NCCL, --sums host nothing");
    return session->fault.code;
}

static int find_nccl(MtcSession *session) {
    bool all = false;
    const int code = mtc_nccl_found(&session->fault, &all);
    return code || !all ? code : mtc_nccl_join(&session->fault);
}

/* The first that there is. Ranks that share a GPU wait for one another by turns of milliseconds. */
static int find_any(MtcSession *session, MtcRankSums *ranks) {
    int devices = 0, code = mtc_rank_devices(session, &devices);
    if (code || devices < mtc_rank_count())
        return code;
    code = find_peers(session, ranks);
    return code || ranks->peers ? code : find_nccl(session);
}

static int find_way(MtcSession *session, MtcRankSums *ranks) {
    const MtcSumsWay way = session->sums_way;
    const int code = way == MTC_SUMS_ANY     ? find_any(session, ranks)
                     : way == MTC_SUMS_PEERS ? find_peers(session, ranks)
                     : way == MTC_SUMS_NCCL  ? mtc_nccl_join(&session->fault)
                                             : 0;
    return code || ranks->peers ? code : mtc_nccl_joined() ? reserve_for_nccl(session, ranks) : stage(session, ranks);
}

/* All begin behind this one together: how long a way took to be found, as NCCL may, says nothing of how long a step does. */
int mtc_rank_sums_new(MtcSession *session, MtcRankSums **result) {
    MtcRankSums *ranks = *result = (MtcRankSums *)calloc(1, sizeof *ranks);
    if (!ranks)
        return mtc_no_memory(&session->fault, sizeof *ranks, "training");
    return mtc_host_view(session->arena) ? 0 : mtc_ranks_ready(&session->fault, find_way(session, ranks));
}

void mtc_rank_sums_free(MtcSession *session, MtcRankSums *ranks) {
    if (!ranks)
        return;
    mtc_peers_free(session, ranks->peers);
    if (ranks->staged)
        mtc_host_free(ranks->staged);
    if (ranks->scratch)
        mtc_session_free(session, ranks->scratch, scratch_bytes(session->model));
    mtc_event_free(ranks->added);
    mtc_event_free(ranks->summed);
    free(ranks);
}

/* What is done with memory of which each rank has a piece: all is added up; that of its own piece alone; pieces go to all. */
typedef struct RankWork {
    int (*work)(MtcFault *fault, const MtcAdding *sums, void *values, int64_t count, size_t size);
    bool takes_piece, leaves_piece;
} RankWork;
static const RankWork SUM_ALL = {mtc_ranks_sum_by, false, false}, SUM_PIECE = {mtc_ranks_add_by, false, true},
                      SHARE_PIECES = {mtc_ranks_share_by, true, false};

typedef const char *Copy(void *to, const void *from, size_t bytes);

/* All bytes, or those of the rank's piece. */
static const char *move_numbers(const MtcSession *session, char *to, const char *from, size_t bytes, bool piece,
                                Copy *copy) {
    const size_t size = mtc_real_bytes(session->model);
    int64_t begin = 0, end = (int64_t)(bytes / size);
    if (piece)
        mtc_ranks_piece(end, &begin, &end);
    return end > begin ? copy(to + (size_t)begin * size, from + (size_t)begin * size, (size_t)(end - begin) * size)
                       : NULL;
}

/* By the host: what a device adds up waits for its end, goes there and comes back. */
static const char *work_by_host(MtcSession *session, const RankWork *work, char *staged, char *values, size_t bytes) {
    const MtcAdding adding = mtc_ranks_host_adding(bytes, mtc_computes_in_double(session->model));
    const size_t size = mtc_real_bytes(session->model);
    const char *error = staged ? move_numbers(session, staged, values, bytes, work->takes_piece, mtc_download) : NULL;
    error = error || !staged ? error : mtc_synchronize();
    if (!error && work->work(&session->fault, &adding, staged ? staged : values, (int64_t)(bytes / size), size))
        return session->fault.text;
    return error || !staged ? error : move_numbers(session, values, staged, bytes, work->leaves_piece, mtc_upload);
}

/* ---- by NCCL ---- */

static int add_on_device(MtcFault *fault, void *user, void *to, const void *from, int64_t count) {
    const char *error = count ? mtc_model_add_sums((const MtcModel *)user, to, from, count) : NULL;
    return error ? mtc_fail(fault, MTC_UNAVAILABLE, "sums of several ranks: %s", error) : 0;
}

/* Its own work takes what it takes; from then on, the others are waited for. */
const char *mtc_await_rank_sums(MtcSession *session, MtcRankSums *ranks) {
    double since = 0;
    if (!ranks->waits)
        return NULL;
    ranks->waits = false;
    while (mtc_event_pending(ranks->summed)) {
        since = since > 0 || mtc_event_pending(ranks->added) ? since : mtc_seconds();
        if (mtc_nccl_look(&session->fault, since > 0 ? mtc_seconds() - since : 0))
            return session->fault.text;
        sched_yield();
    }
    return mtc_event_wait(ranks->summed);
}

/* A step ahead of what is awaited, so that the device has work while the host looks. */
static const char *work_by_nccl(MtcSession *session, const RankWork *work, MtcRankSums *ranks, char *values,
                                size_t bytes) {
    const MtcModel *model = session->model;
    const MtcAdding adding = {mtc_nccl_exchange, add_on_device, (void *)(uintptr_t)model, ranks->scratch,
                              scratch_bytes(model)};
    const size_t size = mtc_real_bytes(session->model);
    const bool begins = !work->takes_piece; /* the step's first */
    const char *error = begins ? mtc_await_rank_sums(session, ranks) : NULL;
    error = error || !begins ? error : mtc_event_record(ranks->added);
    if (!error && work->work(&session->fault, &adding, values, (int64_t)(bytes / size), size))
        return session->fault.text;
    ranks->waits = true;
    return error ? error : mtc_event_record(ranks->summed);
}

static const char *do_work(MtcSession *session, const RankWork *work, MtcRankSums *ranks, char *values, size_t bytes) {
    return !bytes           ? NULL
           : ranks->scratch ? work_by_nccl(session, work, ranks, values, bytes)
                            : work_by_host(session, work, ranks->staged, values, bytes);
}

/* Of weights that each rank updates a part of, the sums of that part are enough, unless something is made of all of them. */
const char *mtc_sum_over_ranks(MtcSession *session, MtcRankSums *ranks, char *sums) {
    const MtcModel *model = session->model;
    if (ranks->peers)
        return mtc_peers_sum(ranks->peers, model, model->sums_offset, model->sums_bytes);
    if (!model->flat_bytes || model->needs_all_sums)
        return do_work(session, &SUM_ALL, ranks, sums, model->sums_bytes);
    const char *error = do_work(session, &SUM_ALL, ranks, sums, model->flat_sums - model->sums_offset);
    return error ? error : do_work(session, &SUM_PIECE, ranks, session->arena + model->flat_sums, model->flat_bytes);
}

const char *mtc_sum_range_over_ranks(MtcSession *session, MtcRankSums *ranks, size_t offset, size_t bytes) {
    return ranks->peers ? mtc_peers_sum(ranks->peers, session->model, offset, bytes)
                        : do_work(session, &SUM_ALL, ranks, session->arena + offset, bytes);
}

const char *mtc_share_updates(MtcSession *session, MtcRankSums *ranks) {
    const MtcModel *model = session->model;
    const char *error = do_work(session, &SHARE_PIECES, ranks, session->arena + model->flat_weights, model->flat_bytes);
    return error || !model->averages
               ? error
               : do_work(session, &SHARE_PIECES, ranks, session->arena + model->flat_averages, model->flat_bytes);
}

bool mtc_train_among_ranks(MtcSession *session, MtcRankSums *ranks, const MtcRun *run, int64_t steps,
                           const char **error) {
    if (!ranks->peers)
        return false;
    *error = mtc_peers_train(ranks->peers, session->model, run, steps);
    return true;
}

int mtc_check_rank_sums(MtcSession *session, const MtcRankSums *ranks) {
    return ranks->peers ? mtc_peers_check(session, ranks->peers) : 0;
}
