/* A session: one model on one device, its data and where its training stands. */
#ifndef MTC_SESSION_H
#define MTC_SESSION_H

#include "base/device.h"
#include "base/meter.h"
#include "data/dataset.h"
#include "session/start.h"

enum { MTC_TRAIN = 0, MTC_TEST = 1, MTC_VALIDATION = 2, MTC_SPLITS = 3 }; /* `which` of the C ABI */

typedef struct MtcTrainer MtcTrainer;
typedef struct MtcFeed MtcFeed;
typedef struct MtcPieces MtcPieces;
typedef struct MtcShards MtcShards;

/* Where training data lie. AUTO: on the device, if they take no more than half of what is free there. */
typedef enum MtcDataOn { MTC_DATA_AUTO, MTC_DATA_ON_DEVICE, MTC_DATA_ON_HOST } MtcDataOn;

/* Where training stands: steps done in all; the epoch of the next step, and its steps done. */
typedef struct MtcPosition {
    int64_t step, epoch, epoch_step;
} MtcPosition;

/* Sums over examples, for means; `examples`: how many these are, or what they weigh. */
typedef struct MtcSums {
    double report[MTC_MAX_REPORTS], examples;
} MtcSums;

/* Of a learning rate that waits for better evaluations. */
typedef struct MtcPlateau {
    int64_t waited, falls; /* evaluations since the best one or the last fall; how often it waited in vain */
} MtcPlateau;

/* What a training remembers beside tensors and position: kept in checkpoints, so that it goes on as if it had not stopped. */
typedef struct MtcRecord {
    int64_t epochs;                /* that were asked for in all; 0: unknown */
    MtcSums epoch, interval;       /* of the running epoch's steps, and of those since the last line of the log */
    char monitor[64];              /* the report that decides which weights are best; "": none yet */
    double best;                   /* its best value so far */
    int64_t best_step, since_best; /* when that was; evaluations since then */
    MtcPlateau plateau[MTC_MAX_PLATEAUS];
    bool losses;             /* there were steps: */
    double first_loss, loss; /* of the first and of the last one */
    double first_weight;     /* the largest when training that is saved began; 0: unknown */
    bool summary_due;        /* the evaluation after the last step was ended before its end */
} MtcRecord;

/* How ranks add up what their devices compute. ANY: the first of the others, in this order, that all can. */
typedef enum MtcSumsWay { MTC_SUMS_ANY, MTC_SUMS_PEERS, MTC_SUMS_NCCL, MTC_SUMS_HOST } MtcSumsWay;

struct MtcSession {
    const MtcModel *model;
    const char *program; /* what advice calls the executable; NULL: a library, of which advice names functions */
    MtcFault fault;
    int failed; /* the code that it could not be made with: nothing else can be done then */
    MtcDeviceInfo device;
    int device_index;
    bool open, prepared;
    int64_t writes;              /* of weights, buffers and states since they were drawn, but by steps */
    bool located;                /* somebody has the address of one */
    uint64_t drawn_seed;         /* they were drawn with */
    bool learned;                /* weights came from a file or from the caller */
    int64_t learned_steps;       /* of the training whose weights alone came from a checkpoint */
    int64_t calls;               /* of functions that may have used the arena */
    bool busy;                   /* training calls functions of the caller's */
    MtcMeter meter;              /* of long work; a library's shows nothing */
    bool (*stopped)(void *user); /* asked between the parts of long work: enough? NULL: nobody is asked */
    void *stopped_by;            /* its argument */
    size_t bytes;                /* of the device's memory */
    uint64_t seed;
    double knob[MTC_MAX_KNOBS];     /* as the program computes with them: floats, but where mtc_computes_in_double */
    bool knob_given[MTC_MAX_KNOBS]; /* set by the caller, who is stronger than a file of weights */

    char *arena;
    int64_t *clock;
    MtcPieces *pieces; /* of the device's memory, in the host's; NULL: none was visited yet */
    MtcDataOn data_on;
    MtcFeed *feed; /* of training data that lie in host memory: data[MTC_TRAIN] has no arrays then; else NULL */
    MtcData data[MTC_SPLITS];
    bool lent[MTC_SPLITS][MTC_MAX_FIELDS]; /* the field's memory is the caller's */
    MtcData batch;                         /* memory for one batch of examples that are no data set, to predict */
    int *order;                            /* of the training examples in mtc_most_orders() epochs */
    MtcEncoding encoding;
    char *folder;         /* where the data are, as --data says; NULL: where the model file says */
    uint64_t split_seed;  /* decided which examples the splits got */
    uint64_t train_hash;  /* of the training examples, when there are any */
    uint64_t *piece_hash; /* of tokens of a file, each MTC_PIECE bytes of them: what train_hash is made of; else NULL */
    int64_t pieces_hashed;
    bool measured;      /* the buffers came from a checkpoint: training data do not change them any more */
    int64_t last_step;  /* of the whole training; 0: as the record's epochs say, else the model's */
    double *evaluation; /* one row of reports per batch of the larger data set */
    int64_t evaluation_rows;
    char *set_values; /* what metrics over a set keep of each example of the largest data set that they were asked of */
    size_t set_values_bytes;
    double *confusion; /* of the last evaluation; NULL: there was none */

    MtcPosition at;
    bool resumed;             /* `at` is a checkpoint's, and no step has been done since */
    int64_t resumed_examples; /* training data of that checkpoint; 0: it does not say */
    uint64_t resumed_hash;
    int64_t order_epoch, orders; /* on the device are the orders of so many epochs, from that one on */
    MtcRecord record;
    MtcStart start;
    MtcTrainer *trainer; /* NULL before the first training */
    MtcSumsWay sums_way; /* of ranks, where there are several */
    MtcShards *shards;   /* of a batch; NULL: it is computed whole, or there was no training yet */
    char *collected; /* host memory of rank 0: states of which each rank has a part (parts.h); NULL: none were yet */
};

/* 0, or a fault that says what could not be done and the device's reason; or the session's, if the error is its text. */
int mtc_device_fault(MtcSession *session, const char *error, const char *what);
/* A note to the session's fault: what can be done. Flags are a program's; who embeds the model has functions, whatever they are called
 * in their language. */
void mtc_note_ways(MtcSession *session, const char *flags);

/* What each function of the C ABI begins with: the calling thread works on the session's device. IDLE: and no training is
 * running that the function would disturb. */
int mtc_enter(MtcSession *session);
int mtc_enter_idle(MtcSession *session);

/* A fault where the training data are not on the device, for what needs them there. */
int mtc_needs_device_data(MtcSession *session);

int mtc_evaluated(const MtcModel *model); /* numbers that an evaluation reports: means, and metrics over the set */
/* Numbers of a row of reports: means or, of a weighted model, sums and what they are divided by. */
int mtc_report_columns(const MtcModel *model);
/* Makes means of a row, in place; what its examples weigh stays behind them. A batch of no weight has means of 0. */
void mtc_finish_row(const MtcModel *model, double *row);
/* What a finished row of so many examples counts in a mean of several. */
double mtc_row_weight(const MtcModel *model, const double *row, int64_t examples);
int64_t mtc_batches(const MtcSession *session, const MtcData *data); /* of an evaluation */
int64_t mtc_step_examples(const MtcModel *model); /* of a training step: the shards of its batch together */
int64_t mtc_steps_per_epoch(const MtcSession *session);
/* Shows that so many parts of long work are done, and asks whether that is enough. */
bool mtc_enough(MtcSession *session, const char *what, int64_t done, int64_t all);
/* The data set that is evaluated while training goes on: validation, else test. */
int mtc_watched(const MtcSession *session);
const char *mtc_split_name(int which);

/* The words of so many classes: those of the label, the field of so many that the prediction does not depend on; or the
 * characters of a text. NULL: its labels are numbers. */
const MtcMeaning *mtc_class_words(const MtcSession *session, int64_t classes);
const MtcMeaning *
mtc_predicted_words(const MtcSession *session); /* NULL: they are numbers, or the prediction is no class */
int64_t mtc_predicted_classes(const MtcModel *model);

#endif
