/* A session: one model on one device, its data and where its training stands. */
#ifndef MTC_SESSION_H
#define MTC_SESSION_H

#include "dataset.h"
#include "device.h"

enum { MTC_TRAIN = 0, MTC_TEST = 1 }; /* `which` of the C ABI */

typedef struct MtcTrainer MtcTrainer;

/* Where training stands: steps done in all; the epoch of the next step, and its steps done. */
typedef struct MtcPosition {
    int64_t step, epoch, epoch_step;
} MtcPosition;

/* Seconds that the start of a program took: for the device, then for files that were still being read, for copying. */
typedef struct MtcStart {
    double device, files, upload;
} MtcStart;

struct MtcSession {
    const MtcModel *model;
    const char *program; /* what advice calls the executable */
    MtcFault fault;
    MtcDeviceInfo device;
    bool open, prepared;
    uint64_t seed;
    float knob[MTC_MAX_KNOBS];

    char *arena;
    int64_t *clock;
    MtcData data[2];
    MtcData batch;      /* memory for one batch of examples that are no data set, to predict */
    int *order;         /* of the training examples, this epoch */
    double *evaluation; /* one row of reports per batch of the larger data set */
    int64_t evaluation_rows;

    MtcPosition at;
    MtcStart start;
    MtcTrainer *trainer; /* NULL before the first training */
};

/* 0, or a fault that says what could not be done and the device's reason. */
int mtc_device_fault(MtcSession *session, const char *error, const char *what);
/* Refused with need and free, before it is tried, when it is more than the device has. */
int mtc_session_alloc(MtcSession *session, void **memory, size_t bytes, const char *what);
void mtc_session_free(MtcSession *session, void *memory, size_t bytes); /* of that allocation */

/* What a step reads; reports are written to `reports`. */
MtcRun mtc_run(const MtcSession *session, const MtcData *data, double *reports);

/* mtc_create with the name that advice calls the executable. */
int mtc_session_new(const MtcModel *model, const char *program, uint64_t seed, int device, MtcSession **session);
int mtc_session_set_data(MtcSession *session, int which, const MtcExamples *examples);

int64_t mtc_batches(const MtcSession *session, const MtcData *data);
/* Enqueues the evaluation of every example; batch b's reports go to row b of session->evaluation. */
int mtc_enqueue_evaluation(MtcSession *session, const MtcData *data);
/* The mean over every example, from the means over batches. */
void mtc_mean_reports(const MtcSession *session, const MtcData *data, const double *rows, double *reports);
/* The predictions for every example of a data set that is on the device. */
int mtc_predict_data(MtcSession *session, const MtcData *data, float *out);
int64_t mtc_prediction_elements(const MtcModel *model); /* of one example */

const MtcTensor *mtc_find_tensor(const MtcModel *model, const char *name); /* NULL: none */
size_t mtc_tensor_bytes(const MtcTensor *tensor);
int mtc_read_tensor(MtcSession *session, const MtcTensor *tensor, void *values);

#endif
