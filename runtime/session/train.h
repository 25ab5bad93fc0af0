/* Training: steps in chunks, two chunks in flight.
 *
 *     host     | enqueue 0 | enqueue 1 | look at 0 | enqueue 2 | look at 1 | ...
 *     device               | chunk 0   | chunk 1               | chunk 2   | ...
 *
 * A chunk is some 50 ms of steps. On the device there come: a snapshot of weights and states, if they are few (for the search
 * for the first NaN), the clock and, where an epoch begins, its order; the steps; the evaluation of the test data where one is
 * due; copies of the reports. Host buffers of chunk n are used again by chunk n + 2, when n is done. */
#ifndef MTC_TRAIN_H
#define MTC_TRAIN_H

#include "session/snapshot.h"
#include "session/watch.h"

typedef struct MtcTraining {
    int64_t until; /* train until so many steps are done */
    int64_t every; /* a summary after every n-th epoch and at the end; 0: never */
    int64_t cut;   /* a pause after every n-th step; 0: when `pause` says so */
    int64_t print; /* what the text prints is shown before every n-th step, from the first; 0: never */
    bool pauses;   /* a pause after each summary */
    void *user;    /* of the functions below; each may be NULL */
    /* Steps [first, first + count) are done; their reports, one finished row of mtc_report_columns() per step. */
    void (*steps)(void *user, int64_t first, int64_t count, const double *reports);
    MtcShowPrinted *printed;
    /* A summary is due: where training stands, and the means over the test data, NULL when there are none. */
    void (*summary)(void *user, const MtcPosition *at, const double *reports);
    bool (*stopped)(void *user); /* asked before each chunk: enough? */
    bool (*pause)(void *user);   /* asked for each chunk: a pause after it? */
    /* Every step enqueued so far is done and reported, `at` is where training stands, the weights are those of that
     * moment. A fault of the session, returned, ends training. */
    int (*paused)(void *user, const MtcPosition *at);
    /* Asked of rank 0: will states be saved now, in a pause, or, where training `ends`, behind it? Then they are collected before. */
    bool (*saves)(void *user, bool ends);
    double train_seconds, evaluate_seconds; /* result: time of the device */
    int64_t ended;                          /* result: steps that were done in all then */
} MtcTraining;

int mtc_train_run(MtcSession *session, MtcTraining *training);
/* Where a training of so many epochs ends, as far as data and position say now. */
int64_t mtc_last_step(const MtcSession *session, int64_t epochs);
void mtc_trainer_free(MtcSession *session);
/* Once the training data are there: are they those of the checkpoint? With `partial` a training on others begins an epoch. */
int mtc_check_resumed(MtcSession *session, bool partial, MtcText *notes);

/* ---- inside ---- */

enum { MTC_SLOTS = 2, MTC_SEGMENTS = 512 };

typedef struct MtcChunk {
    MtcPosition from;
    int64_t steps;
    bool summary;   /* one is due at its end */
    bool evaluated; /* the data for it were, all of them */
    MtcPosition to;
    int64_t segments, orders; /* calls of `train`; orders in the host buffers */
    int *order;               /* host buffers of orders; none where the device computes them */
    int64_t *clock;           /* three numbers per segment */
    double *reports, *evaluation;
    void *kept; /* for metrics over the set that is evaluated */
    MtcEvent *begun, *trained, *done;
} MtcChunk;

struct MtcTrainer {
    int64_t steps_per_epoch, most_orders;
    int64_t goal;    /* steps of the next chunk, at most */
    bool rested;     /* there was a pause since the last chunk */
    double *reports; /* on the device: MTC_CHUNK_STEPS rows */
    void *host;      /* memory of the chunks' host buffers */
    MtcChunk chunk[MTC_SLOTS];
    int64_t enqueued, finished; /* chunks so far */
    double step_seconds;        /* of device time, as last measured; 0: not yet */
    bool held;                  /* nothing follows the newest chunk before it is finished */
    MtcSnapshots snapshots;
};

/* The param that is a learning rate, as its name tells; NULL: none does. */
const MtcKnob *mtc_find_rate(const MtcModel *model);

/* A step of the chunk just looked at, `bad` steps into it, had a loss that is no finite number: finds out where that
 * came from. Returns the fault. */
int mtc_diagnose(MtcSession *session, const MtcChunk *chunk, int64_t bad);

#endif
