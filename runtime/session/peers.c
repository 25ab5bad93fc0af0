#include "session/peers.h"

#include "ranks/ranks.h"
#include "session/memory.h"

#include <stdlib.h>
#include <string.h>

struct MtcPeerSums {
    MtcPeers peers;
    char *words, *room; /* of this rank */
};

/* What a rank tells the others. */
typedef struct Offer {
    bool given;
    MtcReach arena, words, room;
} Offer;

/* Mail, and for the own part of each bucket, of all others. Parts are whole times 16 bytes, as in cuda/peers.cuh. */
static size_t room_bytes(const MtcModel *model, int count) {
    enum { FOURS = 4 * sizeof(float) };
    size_t parts = 0;
    for (int k = 0; k < model->buckets; k++)
        parts += (model->bucket[k].bytes / FOURS + (size_t)count - 1) / (size_t)count;
    return 2 * MTC_MAIL_BYTES * (size_t)count + parts * FOURS * (size_t)(count - 1);
}

static const char *make_words(MtcSession *session, MtcPeerSums *sums) {
    const char *error = mtc_host_alloc((void **)&sums->peers.lost, sizeof *sums->peers.lost);
    if (error)
        return error;
    *sums->peers.lost = 0;
    if (mtc_session_alloc(session, (void **)&sums->words, MTC_PEER_BYTES, "words between GPUs"))
        return session->fault.text;
    error = mtc_zero(sums->words, MTC_PEER_BYTES);
    return error ? error : mtc_synchronize();
}

static const char *make_room_for_sums(MtcSession *session, MtcPeerSums *sums) {
    const size_t bytes = room_bytes(session->model, sums->peers.count);
    return mtc_session_alloc(session, (void **)&sums->room, bytes, "sums of other GPUs") ? session->fault.text : NULL;
}

static Offer offer_of(const MtcSession *session, const MtcPeerSums *sums, const char **why) {
    Offer offer;
    memset(&offer, 0, sizeof offer);
    *why = *why ? *why : mtc_device_offer(session->arena, &offer.arena);
    *why = *why ? *why : mtc_device_offer(sums->words, &offer.words);
    *why = *why ? *why : mtc_device_offer(sums->room, &offer.room);
    offer.given = !*why;
    return offer;
}

static const char *reach(MtcPeerSums *sums, int other, const Offer *offer) {
    MtcPeers *peers = &sums->peers;
    const char *error = mtc_device_reach(&offer->arena, (void **)&peers->arena[other]);
    error = error ? error : mtc_device_reach(&offer->words, (void **)&peers->words[other]);
    return error ? error : mtc_device_reach(&offer->room, (void **)&peers->room[other]);
}

static const char *reach_all(const MtcSession *session, MtcPeerSums *sums, const Offer *offers) {
    MtcPeers *peers = &sums->peers;
    const char *error = NULL;
    for (int other = 0; other < peers->count && !error; other++)
        if (other != peers->rank)
            error =
                offers[other].given ? reach(sums, other, &offers[other]) : "another rank gives no way to its memory";
    peers->arena[peers->rank] = session->arena;
    peers->words[peers->rank] = sums->words;
    peers->room[peers->rank] = sums->room;
    return error;
}

/* Each rank says whether it can; all can, or nobody does. */
static int agree(MtcFault *fault, const char **why) {
    bool all = false;
    const int code = mtc_ranks_all(fault, !*why, &all);
    if (!code && !all && !*why)
        *why = "the GPU of another rank cannot";
    return code;
}

static int meet(MtcSession *session, MtcPeerSums *sums, const char **why) {
    Offer offers[MTC_MAX_PEERS];
    const Offer own = offer_of(session, sums, why);
    int code = mtc_ranks_each(&session->fault, &own, sizeof own, offers);
    if (code)
        return code;
    *why = *why ? *why : reach_all(session, sums, offers);
    return agree(&session->fault, why);
}

int mtc_peers_new(MtcSession *session, MtcPeerSums **result, const char **why) {
    const MtcModel *model = session->model;
    const int count = mtc_rank_count();
    *result = NULL;
    *why = !model->add_over_peers ? "the target has no GPUs"
           : model->flat_bytes    ? "with --shard-optimizer, sums and weights go piece by piece, over NCCL or the host"
           : count != 2 && count != 4 && count != 8 ? "it is for 2, 4 or 8 GPUs of one machine"
                                                    : NULL;
    if (*why)
        return 0;
    MtcPeerSums *sums = (MtcPeerSums *)calloc(1, sizeof *sums);
    if (!sums)
        return mtc_no_memory(&session->fault, sizeof *sums, "training");
    sums->peers.rank = mtc_rank();
    sums->peers.count = count;
    sums->peers.offset = model->sums_offset;
    sums->peers.bytes = model->sums_bytes;
    *why = make_words(session, sums);
    *why = *why ? *why : make_room_for_sums(session, sums);
    const int code = meet(session, sums, why);
    if (code || *why)
        mtc_peers_free(session, sums);
    else
        *result = sums;
    return code;
}

void mtc_peers_free(MtcSession *session, MtcPeerSums *sums) {
    if (!sums)
        return;
    for (int other = 0; other < sums->peers.count; other++)
        if (other != sums->peers.rank) {
            mtc_device_leave(sums->peers.arena[other]);
            mtc_device_leave(sums->peers.words[other]);
            mtc_device_leave(sums->peers.room[other]);
        }
    if (sums->words)
        mtc_session_free(session, sums->words, MTC_PEER_BYTES);
    if (sums->room)
        mtc_session_free(session, sums->room, room_bytes(session->model, sums->peers.count));
    if (sums->peers.lost)
        mtc_host_free(sums->peers.lost);
    free(sums);
}

static const MtcPeers *as_patient_as_now(MtcPeerSums *sums) {
    sums->peers.patience = (long long)(1e9 * mtc_ranks_patience());
    return &sums->peers;
}

const char *mtc_peers_sum(MtcPeerSums *sums, const MtcModel *model, size_t offset, size_t bytes) {
    return model->add_over_peers(as_patient_as_now(sums), offset, bytes);
}

const char *mtc_peers_train(MtcPeerSums *sums, const MtcModel *model, const MtcRun *run, int64_t steps) {
    return model->train_among(run, as_patient_as_now(sums), steps);
}

int mtc_peers_check(MtcSession *session, const MtcPeerSums *sums) {
    const int lost = *(const volatile int *)sums->peers.lost;
    return lost ? mtc_ranks_missed(&session->fault, lost - 1) : 0;
}
