/* The processes that train together: ranks 0 .. count - 1, each with its shards of a batch. A program that was started alone is rank
 * 0 of 1, for which all of this does nothing.
 *
 * All ranks call the same functions in the same order. Each returns 0, or the code of a fault that names the rank that was waited
 * for, its host and the step. */
#ifndef MTC_RANKS_H
#define MTC_RANKS_H

#include "base/common.h"

/* The rank that this process will have, by what it was started by; 0 alone. Asks nobody. */
int mtc_ranks_place(void);
bool mtc_ranks_started(void); /* it was started as one of several */
/* Joins the others. `timeout`: seconds that a rank waits for another in the midst of
 * training. */
int mtc_ranks_join(MtcFault *fault, double timeout);
/* The same by sockets that lead to the others already, socket[r] to rank r; they are closed when all leave, or if this one cannot join. */
int mtc_ranks_join_by(MtcFault *fault, int rank, int count, const int *socket, double timeout);
/* Of a library, what was joined is the calling thread's, and of others each is alone. Around functions of the caller's, who knows of no ranks,
 * it is alone too, until they have returned. */
bool mtc_ranks_rest(void); /* for mtc_ranks_go_on: whether it was not */
void mtc_ranks_go_on(bool rested);
int mtc_rank(void);
int mtc_rank_count(void);
int mtc_rank_here(void); /* of those on this machine, which this one is */

/* Have all opened what they need? `code`: of this rank, with its fault. Where it has lost another, nobody is asked: that one would not
 * answer. Asked again behind a fault, it is that rank's code: who asks on the way to what all must have meets one that came no further. */
int mtc_ranks_ready(MtcFault *fault, int code);
/* What must be the same in all; where it is not, the fault names it and the rank. How many there are may differ only behind a
 * difference. */
typedef struct MtcAgreed {
    const char *name, *value;
} MtcAgreed;
int mtc_ranks_agree(MtcFault *fault, const MtcAgreed *agreed, int count);

/* Adds up, along a tree of neighbours: (0 + 1) + (2 + 3). All get the same bits. */
int mtc_ranks_sum(MtcFault *fault, void *values, int64_t count, bool doubles);
/* How values lie that are added up: to whom they go at once with what comes, and how one is added to another. Each returns 0, or the
 * code of its fault. `scratch`: for what comes, so many bytes at a time. */
typedef struct MtcAdding {
    int (*exchange)(MtcFault *fault, int to, const void *send, size_t send_bytes, int from, void *receive,
                    size_t receive_bytes);
    int (*add)(MtcFault *fault, void *user, void *to, const void *from, int64_t count);
    void *user;
    char *scratch;
    size_t room; /* of it, whole numbers */
} MtcAdding;
/* The same, wherever they lie: `size` bytes each. */
int mtc_ranks_sum_by(MtcFault *fault, const MtcAdding *sums, void *values, int64_t count, size_t size);
/* The two halves of that. Behind the first a rank has the sums of its own piece, and elsewhere what nobody needs; by the second all get
 * what each has in its piece. Of whole 64 elements, pieces are so too. Of ranks that are no power of two, those beyond the largest one
 * have none. */
int mtc_ranks_add_by(MtcFault *fault, const MtcAdding *sums, void *values, int64_t count, size_t size);
int mtc_ranks_share_by(MtcFault *fault, const MtcAdding *sums, void *values, int64_t count, size_t size);
void mtc_ranks_piece(int64_t count, int64_t *begin, int64_t *end);
/* Of values in host memory, of so many bytes: until the next call that adds up. */
MtcAdding mtc_ranks_host_adding(size_t bytes, bool doubles);
/* Rank 0 gets the pieces of all others at their places in `values`; those of another one are its piece alone. */
int mtc_ranks_collect(MtcFault *fault, void *values, int64_t count, size_t size);
/* Seconds that this rank waits for another, beside its own work. */
double mtc_ranks_patience(void);
/* While others are waited for by other means: 0, or the code of what ended one of them, whose connection has ended. */
int mtc_ranks_look(MtcFault *fault);
/* The fault of a rank that was waited for longer than that. */
int mtc_ranks_missed(MtcFault *fault, int other);
/* What each has, for all: `bytes` of each, one behind the other. */
int mtc_ranks_each(MtcFault *fault, const void *own, size_t bytes, void *all);
/* Whether all say yes. */
int mtc_ranks_all(MtcFault *fault, bool own, bool *all);
/* What rank 0 has, for all. `patient`: rank 0 may have been busy with something of its own. */
int mtc_ranks_share(MtcFault *fault, void *values, size_t bytes, bool patient);
/* Of `count` that are dealt out, the first that is rank r's: each has neighbours, as many as the others, or one more. */
int64_t mtc_ranks_first(int64_t count, int r);
/* That of each rank, and of the one behind the last; the caller's to free. */
int64_t *mtc_ranks_deal(int64_t count);
/* Elements begin[r] .. begin[r + 1] - 1, of `size` bytes each, are rank r's; all get those of all. */
int mtc_ranks_gather(MtcFault *fault, void *values, size_t size, const int64_t *begin);
/* For messages: steps that are done. */
void mtc_ranks_at(int64_t step);

/* Before a fault is told: rank 0 has the first word. False: it has told it for all. */
bool mtc_ranks_tell(int code);
/* The training, or the program, ends with this code: with the others, or, where it failed, by ending them. This one is alone then. */
void mtc_ranks_leave(int code);

typedef enum MtcArrival {
    MTC_ARRIVED,
    MTC_EXPIRED, /* it takes too long */
    MTC_CLOSED,  /* the other one is gone */
    MTC_ENDED    /* another one has ended all, and says why */
} MtcArrival;

/* A way to send and receive. */
typedef struct MtcTransport {
    const char *name;
    bool (*started)(int *rank);                 /* by what this process was started, as which of several */
    const char *(*open)(int *rank, int *count); /* NULL, or what is missing */
    /* Sends and receives at once, from host memory. `expired` is asked while nothing comes; true gives up. */
    MtcArrival (*exchange)(int to, const void *send, size_t send_bytes, int from, void *receive, size_t receive_bytes,
                           bool (*expired)(void));
    bool (*ended)(void); /* has another one ended all? NULL: then this process would be no more */
    int (*gone)(void);   /* a rank whose connection has ended; -1: none. NULL likewise */
    void (*close)(void);
    void (*abort)(int code);
} MtcTransport;
extern const MtcTransport mtc_transport_mpi, mtc_transport_tcp;
/* In place of mtc_transport_tcp.open, where the connections are there. */
void mtc_sockets_take(int rank, int count, const int *socket);

#endif
