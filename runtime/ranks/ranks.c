#include "ranks/ranks.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { HOST = 64, VALUE = 128 };

typedef struct Company {
    const MtcTransport *transport; /* NULL: alone */
    int rank, count;
    double timeout, until; /* seconds; 0: as long as it takes */
    double heard, busy;    /* when this rank last heard of another; its own longest work until it did so again */
    int64_t step;
    char (*host)[HOST];
    char *scratch;
    size_t scratch_bytes;
    bool told;   /* rank 0 tells the fault, which all have */
    bool failed; /* all know that one was not ready */
} Company;

/* Sessions of a library train in threads of their own, some with other processes, some alone. */
static __thread Company joined = {.count = 1}, resting = {.count = 1};
static const Company alone = {.count = 1};

int mtc_rank(void) {
    return joined.rank;
}

int mtc_rank_count(void) {
    return joined.count;
}

int mtc_rank_here(void) {
    int here = 0;
    for (int other = 0; joined.host && other < joined.rank; other++)
        here += strcmp(joined.host[other], joined.host[joined.rank]) == 0;
    return here;
}

/* Of one process nothing is kept: it may train in several sessions, each in a thread of its own. */
void mtc_ranks_at(int64_t step) {
    if (joined.transport)
        joined.step = step;
}

/* ---- one to one ---- */

static bool waited_enough(void) {
    return joined.until > 0 && mtc_seconds() > joined.until;
}

static int rank_gone(MtcFault *fault, int other) {
    mtc_fail(fault, MTC_RANK_LOST, "rank %d of %d (%s) lost rank %d (%s): its connection ended, after step %lld",
             joined.rank, joined.count, joined.host ? joined.host[joined.rank] : "?", other,
             joined.host ? joined.host[other] : "?", (long long)joined.step);
    mtc_note(fault, "it was killed, or its machine or the network failed; --resume goes on from the last checkpoint");
    return fault->code;
}

static int rank_lost(MtcFault *fault, int other, MtcArrival arrival) {
    if (arrival == MTC_ENDED) {
        joined.told = true;
        return mtc_fail(fault, MTC_RANK_LOST, "rank %d ended all", other);
    }
    if (arrival == MTC_CLOSED)
        return rank_gone(fault, other);
    mtc_fail(fault, MTC_RANK_LOST,
             "rank %d of %d (%s) waits for rank %d (%s): nothing came for %.3g s, after step %lld", joined.rank,
             joined.count, joined.host ? joined.host[joined.rank] : "?", other, joined.host ? joined.host[other] : "?",
             joined.timeout + joined.busy, (long long)joined.step);
    mtc_note(
        fault,
        "it hangs, was stopped, or cannot be reached; --rank-timeout SECONDS waits longer, --resume goes on from the "
        "last checkpoint");
    return fault->code;
}

int mtc_ranks_look(MtcFault *fault) {
    const MtcTransport *transport = joined.transport;
    const int other = transport && transport->gone ? transport->gone() : -1;
    if (other >= 0)
        return rank_lost(fault, other, transport->ended() ? MTC_ENDED : MTC_CLOSED);
    return 0;
}

int mtc_ranks_missed(MtcFault *fault, int other) {
    return rank_lost(fault, other, MTC_EXPIRED);
}

/* What took this rank long, such as an evaluation of many examples, may take another one as long again. */
static int exchange(MtcFault *fault, int to, const void *send, size_t send_bytes, int from, void *receive,
                    size_t receive_bytes, bool patient) {
    const double now = mtc_seconds();
    if (!patient)
        joined.busy = fmax(joined.busy, now - joined.heard);
    joined.until = patient ? 0 : now + joined.timeout + joined.busy;
    const MtcArrival arrival =
        joined.transport->exchange(to, send, send_bytes, from, receive, receive_bytes, waited_enough);
    if (receive_bytes)
        joined.heard = mtc_seconds();
    return arrival ? rank_lost(fault, receive_bytes ? from : to, arrival) : 0;
}

/* ---- sums ---- */

static int add_doubles(MtcFault *fault, void *user, void *to, const void *from, int64_t count) {
    (void)fault, (void)user;
    for (int64_t i = 0; i < count; i++)
        ((double *)to)[i] += ((const double *)from)[i];
    return 0;
}

static int add_floats(MtcFault *fault, void *user, void *to, const void *from, int64_t count) {
    (void)fault, (void)user;
    for (int64_t i = 0; i < count; i++)
        ((float *)to)[i] += ((const float *)from)[i];
    return 0;
}

static int exchange_host(MtcFault *fault, int to, const void *send, size_t send_bytes, int from, void *receive,
                         size_t receive_bytes) {
    return exchange(fault, to, send, send_bytes, from, receive, receive_bytes, false);
}

static char *scratch_of(size_t bytes) {
    if (bytes > joined.scratch_bytes)
        joined.scratch = (char *)mtc_memory(joined.scratch, joined.scratch_bytes = bytes);
    return joined.scratch;
}

/* Large pieces begin at whole cache lines, wherever that lets devices add several numbers at a time; and so do all of what has so
 * many whole ones. */
static int64_t half_of(int64_t count) {
    const int64_t half = count / 2;
    return count < 4096 && count % 64 ? half : half / 64 * 64;
}

/* Of 2^k ranks. In turn n, ranks that differ in bit n give each other the half of the piece that they have so far which the other
 * one keeps; then the pieces, which are complete, go the same way back. Both of a pair add the same two numbers, so the sum of each
 * element is that of the tree, whoever makes it. */
typedef struct Pieces {
    int64_t begin[32], end[32]; /* what the rank has behind so many turns */
    int turns;
} Pieces;

static int ranks_of_tree(void) {
    int tree = 1;
    while (tree * 2 <= joined.count)
        tree *= 2;
    return tree;
}

static Pieces pieces_of(int rank, int64_t count) {
    Pieces pieces = {.end = {count}};
    for (int bit = 1; bit < ranks_of_tree(); bit *= 2, pieces.turns++) {
        const int turn = pieces.turns;
        const int64_t begin = pieces.begin[turn], end = pieces.end[turn], middle = begin + half_of(end - begin);
        pieces.begin[turn + 1] = rank & bit ? middle : begin;
        pieces.end[turn + 1] = rank & bit ? end : middle;
    }
    return pieces;
}

static size_t slice_bytes(int64_t count, int64_t at, int64_t slice, size_t size) {
    const int64_t left = count - at;
    return left <= 0 ? 0 : (size_t)(left < slice ? left : slice) * size;
}

/* Gives the other rank `out` values, and adds the `in` that it has for this one, as many at a time as there is room for. */
static int exchange_and_add(MtcFault *fault, const MtcAdding *sums, int other, const char *given, int64_t out,
                            char *kept, int64_t in, size_t size) {
    const int64_t slice = (int64_t)(sums->room / size);
    int code = 0;
    for (int64_t at = 0; (at < out || at < in) && !code; at += slice) {
        const size_t sent = slice_bytes(out, at, slice, size), came = slice_bytes(in, at, slice, size);
        const size_t from = (size_t)at * size;
        code = sums->exchange(fault, other, sent ? given + from : NULL, sent, other, sums->scratch, came);
        if (!code && came)
            code = sums->add(fault, sums->user, kept + from, sums->scratch, (int64_t)(came / size));
    }
    return code;
}

static int add_pieces(MtcFault *fault, const MtcAdding *sums, char *values, int64_t count, size_t size) {
    const Pieces pieces = pieces_of(joined.rank, count);
    int code = 0;
    for (int turn = 0; turn < pieces.turns && !code; turn++) {
        const int64_t kept = pieces.begin[turn + 1], end = pieces.end[turn + 1];
        const int64_t given = kept > pieces.begin[turn] ? pieces.begin[turn] : end;
        const int64_t out = pieces.end[turn] - pieces.begin[turn] - (end - kept);
        code = exchange_and_add(fault, sums, joined.rank ^ (1 << turn), values + (size_t)given * size, out,
                                values + (size_t)kept * size, end - kept, size);
    }
    return code;
}

static int share_pieces(MtcFault *fault, const MtcAdding *sums, char *values, int64_t count, size_t size) {
    const Pieces pieces = pieces_of(joined.rank, count);
    int code = 0;
    for (int turn = pieces.turns; turn > 0 && !code; turn--) {
        const int64_t begin = pieces.begin[turn], end = pieces.end[turn];
        const bool upper = joined.rank >> (turn - 1) & 1;
        const int64_t from = upper ? pieces.begin[turn - 1] : end, to = upper ? begin : pieces.end[turn - 1];
        const int other = joined.rank ^ (1 << (turn - 1));
        code = sums->exchange(fault, other, values + (size_t)begin * size, (size_t)(end - begin) * size, other,
                              values + (size_t)from * size, (size_t)(to - from) * size);
    }
    return code;
}

/* Ranks beyond the largest power of two give their values to another one, and get the sum of it. */
int mtc_ranks_add_by(MtcFault *fault, const MtcAdding *sums, void *values, int64_t count, size_t size) {
    const int tree = ranks_of_tree(), beyond = joined.count - tree;
    int code = 0;
    if (joined.count == 1 || count == 0)
        return 0;
    if (joined.rank >= tree)
        return exchange_and_add(fault, sums, joined.rank - tree, (const char *)values, count, NULL, 0, size);
    if (joined.rank < beyond)
        code = exchange_and_add(fault, sums, joined.rank + tree, NULL, 0, (char *)values, count, size);
    return code ? code : add_pieces(fault, sums, (char *)values, count, size);
}

int mtc_ranks_share_by(MtcFault *fault, const MtcAdding *sums, void *values, int64_t count, size_t size) {
    const size_t bytes = (size_t)count * size;
    const int tree = ranks_of_tree(), beyond = joined.count - tree;
    if (joined.count == 1 || count == 0)
        return 0;
    if (joined.rank >= tree)
        return sums->exchange(fault, joined.rank - tree, NULL, 0, joined.rank - tree, values, bytes);
    const int code = share_pieces(fault, sums, (char *)values, count, size);
    return code || joined.rank >= beyond ? code : sums->exchange(fault, joined.rank + tree, values, bytes, 0, NULL, 0);
}

int mtc_ranks_sum_by(MtcFault *fault, const MtcAdding *sums, void *values, int64_t count, size_t size) {
    const int code = mtc_ranks_add_by(fault, sums, values, count, size);
    return code ? code : mtc_ranks_share_by(fault, sums, values, count, size);
}

static void piece_of(int rank, int64_t count, int64_t *begin, int64_t *end) {
    const Pieces pieces = pieces_of(rank, count);
    const bool has = rank < ranks_of_tree();
    *begin = has ? pieces.begin[pieces.turns] : 0;
    *end = has ? pieces.end[pieces.turns] : 0;
}

void mtc_ranks_piece(int64_t count, int64_t *begin, int64_t *end) {
    piece_of(joined.rank, count, begin, end);
}

int mtc_ranks_collect(MtcFault *fault, void *values, int64_t count, size_t size) {
    int64_t begin, end;
    int code = 0;
    piece_of(joined.rank, count, &begin, &end);
    if (joined.rank)
        return end > begin ? exchange(fault, 0, values, (size_t)(end - begin) * size, 0, NULL, 0, true) : 0;
    for (int other = 1; other < joined.count && !code; other++) {
        piece_of(other, count, &begin, &end);
        if (end > begin)
            code = exchange(fault, other, NULL, 0, other, (char *)values + (size_t)begin * size,
                            (size_t)(end - begin) * size, true);
    }
    return code;
}

MtcAdding mtc_ranks_host_adding(size_t bytes, bool doubles) {
    const size_t most = (size_t)1 << 22, room = bytes < most ? bytes : most;
    return (MtcAdding){exchange_host, doubles ? add_doubles : add_floats, NULL, scratch_of(room), room};
}

int mtc_ranks_sum(MtcFault *fault, void *values, int64_t count, bool doubles) {
    const size_t size = doubles ? sizeof(double) : sizeof(float);
    if (joined.count == 1)
        return 0;
    const MtcAdding sums = mtc_ranks_host_adding((size_t)count * size, doubles);
    return mtc_ranks_sum_by(fault, &sums, values, count, size);
}

double mtc_ranks_patience(void) {
    return joined.timeout + joined.busy;
}

/* ---- from and to rank 0 ---- */

int mtc_ranks_share(MtcFault *fault, void *values, size_t bytes, bool patient) {
    int code = 0;
    if (joined.rank)
        return exchange(fault, 0, NULL, 0, 0, values, bytes, patient);
    for (int other = 1; other < joined.count && !code; other++)
        code = exchange(fault, other, values, bytes, other, NULL, 0, patient);
    return code;
}

int mtc_ranks_each(MtcFault *fault, const void *own, size_t bytes, void *result) {
    char *all = (char *)result;
    int code = 0;
    memcpy(all + (size_t)joined.rank * bytes, own, bytes);
    if (joined.rank)
        code = exchange(fault, 0, own, bytes, 0, NULL, 0, true);
    for (int other = 1; other < joined.count && !joined.rank && !code; other++)
        code = exchange(fault, other, NULL, 0, other, all + (size_t)other * bytes, bytes, true);
    return code ? code : mtc_ranks_share(fault, all, bytes * (size_t)joined.count, true);
}

int mtc_ranks_all(MtcFault *fault, bool own, bool *all) {
    bool *said = (bool *)mtc_zeroed((size_t)joined.count * sizeof *said);
    const int code = mtc_ranks_each(fault, &own, sizeof own, said);
    *all = true;
    for (int rank = 0; rank < joined.count; rank++)
        *all = *all && said[rank];
    free(said);
    return code;
}

int64_t mtc_ranks_first(int64_t count, int r) {
    return count * r / joined.count;
}

int64_t *mtc_ranks_deal(int64_t count) {
    int64_t *begin = (int64_t *)mtc_memory(NULL, ((size_t)joined.count + 1) * sizeof *begin);
    for (int r = 0; r <= joined.count; r++)
        begin[r] = mtc_ranks_first(count, r);
    return begin;
}

/* In a ring: what came from the neighbour before goes on to the one behind. */
int mtc_ranks_gather(MtcFault *fault, void *values, size_t size, const int64_t *begin) {
    const int count = joined.count, next = (joined.rank + 1) % count, before = (joined.rank + count - 1) % count;
    int code = 0;
    for (int turn = 0; turn + 1 < count && !code; turn++) {
        const int out = (joined.rank + count - turn) % count, in = (before + count - turn) % count;
        const size_t sent = (size_t)(begin[out + 1] - begin[out]) * size,
                     received = (size_t)(begin[in + 1] - begin[in]) * size;
        code = exchange(fault, next, (char *)values + (size_t)begin[out] * size, sent, before,
                        (char *)values + (size_t)begin[in] * size, received, false);
    }
    return code;
}

/* ---- beginning ---- */

static int share_hosts(MtcFault *fault) {
    char own[HOST] = "";
    gethostname(own, sizeof own - 1);
    joined.host = (char(*)[HOST])mtc_zeroed((size_t)joined.count * HOST);
    return mtc_ranks_each(fault, own, sizeof own, joined.host[0]);
}

static const MtcTransport *transport_that_started(int *rank) {
    static const MtcTransport *const all[] = {&mtc_transport_mpi, &mtc_transport_tcp};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i]->started(rank))
            return all[i];
    *rank = 0;
    return NULL;
}

int mtc_ranks_place(void) {
    int rank;
    transport_that_started(&rank);
    return rank;
}

bool mtc_ranks_started(void) {
    int rank;
    return transport_that_started(&rank) != NULL;
}

int mtc_ranks_join(MtcFault *fault, double timeout) {
    const MtcTransport *transport = transport_that_started(&joined.rank);
    if (!transport)
        return 0;
    const char *missing = transport->open(&joined.rank, &joined.count);
    if (missing)
        return mtc_fail(fault, MTC_UNAVAILABLE, "%s: %s", transport->name, missing);
    joined.transport = transport;
    joined.timeout = timeout;
    joined.heard = mtc_seconds();
    return share_hosts(fault);
}

int mtc_ranks_join_by(MtcFault *fault, int rank, int count, const int *socket, double timeout) {
    if (joined.transport || resting.transport) {
        for (int other = 0; other < count; other++)
            if (other != rank)
                close(socket[other]);
        return mtc_fail(fault, MTC_USAGE,
                        "a training in several processes calls this: another one cannot begin before it ends");
    }
    joined = (Company){
        .transport = &mtc_transport_tcp, .rank = rank, .count = count, .timeout = timeout, .heard = mtc_seconds()};
    mtc_sockets_take(rank, count, socket);
    return share_hosts(fault);
}

bool mtc_ranks_rest(void) {
    const bool several = joined.transport != NULL;
    if (several) {
        resting = joined;
        joined = alone;
    }
    return several;
}

/* What took the caller long is no work of this rank's that another one may have too. */
void mtc_ranks_go_on(bool rested) {
    if (!rested)
        return;
    joined = resting;
    resting = alone;
    joined.heard = mtc_seconds();
}

static int tell_all(MtcFault *fault, int rank, int code) {
    joined.told = joined.rank != rank;
    return joined.rank == rank ? code : mtc_fail(fault, code, "rank %d failed", rank);
}

static int compare_values(MtcFault *fault, const char (*all)[VALUE], const MtcAgreed *agreed) {
    for (int other = 1; other < joined.count; other++)
        if (strcmp(all[0], all[other]) != 0) {
            joined.told = joined.rank != 0;
            return mtc_fail(fault, MTC_USAGE, "rank %d (%s) has another %s than rank 0 (%s): %s, not %s", other,
                            joined.host[other], agreed->name, joined.host[0], all[other], all[0]);
        }
    return 0;
}

int mtc_ranks_ready(MtcFault *fault, int code) {
    if (joined.count == 1 || code == MTC_RANK_LOST || joined.failed)
        return code;
    MtcFault lost;
    int *codes = (int *)mtc_zeroed((size_t)joined.count * sizeof *codes);
    int result = mtc_ranks_each(&lost, &code, sizeof code, codes);
    if (result)
        *fault = lost;
    for (int rank = 0; rank < joined.count && !result; rank++)
        if (codes[rank])
            result = tell_all(fault, rank, codes[rank]);
    free(codes);
    joined.failed = result != 0;
    return result;
}

int mtc_ranks_agree(MtcFault *fault, const MtcAgreed *agreed, int count) {
    char(*all)[VALUE] = (char(*)[VALUE])mtc_zeroed((size_t)joined.count * VALUE);
    int code = 0;
    for (int i = 0; i < count && !code && joined.count > 1; i++) {
        char own[VALUE] = "";
        snprintf(own, sizeof own, "%s", agreed[i].value);
        code = mtc_ranks_each(fault, own, sizeof own, all[0]);
        code = code ? code : compare_values(fault, (const char(*)[VALUE])all, &agreed[i]);
    }
    free(all);
    return code;
}

/* ---- the end ---- */

bool mtc_ranks_tell(int code) {
    if (mtc_ranks_place() && code != MTC_RANK_LOST && !joined.told)
        sleep(1); /* what all find, rank 0 tells, and ends the others */
    if (code != MTC_RANK_LOST && joined.transport && joined.transport->ended && joined.transport->ended())
        joined.told = true;
    return !joined.told;
}

void mtc_ranks_leave(int code) {
    const bool stopped = code >= 128; /* by a signal, all together */
    if (!joined.transport)
        return;
    if (code && !stopped && !joined.told)
        joined.transport->abort(code);
    joined.transport->close();
    free(joined.host);
    free(joined.scratch);
    joined = alone;
}
