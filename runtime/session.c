#include "session.h"

#include "feed.h"
#include "hash.h"
#include "init.h"
#include "train.h"

#include <stdlib.h>
#include <string.h>

int mtc_device_fault(MtcSession *session, const char *error, const char *what) {
    if (!error)
        return 0;
    return mtc_fail(&session->fault, MTC_UNAVAILABLE, "%s: %s: %s", session->device.name, what, error);
}

/* ---- memory ---- */

size_t mtc_tensor_bytes(const MtcTensor *tensor) {
    return (size_t)mtc_elements(tensor->rank, tensor->dim) * mtc_type_size(tensor->type);
}

/* Weights and states stay as they are when the batch changes; the rest of the arena grows with it. */
static void note_smaller_batch(MtcSession *session) {
    const MtcModel *model = session->model;
    double kept = 0, free_bytes = (double)session->device.free_bytes;
    for (int i = 0; i < model->tensors; i++)
        if (model->tensor[i].role != MTC_VALUE)
            kept += (double)mtc_tensor_bytes(&model->tensor[i]);
    double per_example = ((double)model->arena_bytes - kept) / (double)model->batch;
    if (kept < free_bytes && per_example > 0 && (free_bytes - kept) / per_example >= 1)
        mtc_note(&session->fault, "a batch of about %.0f would fit; this program has %lld",
                 (free_bytes - kept) / per_example, (long long)model->batch);
}

int mtc_session_alloc(MtcSession *session, void **memory, size_t bytes, const char *what) {
    if (bytes > session->device.free_bytes)
        return mtc_fail(&session->fault, MTC_UNAVAILABLE, "not enough memory: %s needs %s; %s has %s free of %s", what,
                        mtc_bytes((double)bytes), session->device.name, mtc_bytes((double)session->device.free_bytes),
                        mtc_bytes((double)session->device.total_bytes));
    const char *error = mtc_device_alloc(memory, bytes);
    if (!error)
        session->device.free_bytes -= bytes;
    return mtc_device_fault(session, error, what);
}

void mtc_session_free(MtcSession *session, void *memory, size_t bytes) {
    mtc_device_free(memory);
    session->device.free_bytes += memory ? bytes : 0;
}

MtcRun mtc_run(const MtcSession *session, const MtcData *data, double *reports) {
    MtcRun run;
    memset(&run, 0, sizeof run);
    run.arena = session->arena;
    run.data = *data;
    if (data == &session->data[MTC_TRAIN]) {
        run.order = session->order;
        if (session->feed)
            run.data = mtc_feed_data(session);
    }
    run.clock = session->clock;
    run.reports = reports;
    run.steps_per_epoch = mtc_batches(session, &session->data[MTC_TRAIN]);
    int64_t epochs = session->record.epochs ? session->record.epochs : session->model->epochs;
    run.last_step = session->last_step ? session->last_step : epochs * run.steps_per_epoch;
    run.seed = session->seed;
    memcpy(run.knob, session->knob, sizeof run.knob);
    return run;
}

static int reserve_evaluation(MtcSession *session, int64_t rows) {
    size_t row = (size_t)session->model->reports * sizeof *session->evaluation;
    if (rows <= session->evaluation_rows)
        return 0;
    mtc_session_free(session, session->evaluation, (size_t)session->evaluation_rows * row);
    session->evaluation = NULL;
    session->evaluation_rows = 0;
    int code = mtc_session_alloc(session, (void **)&session->evaluation, (size_t)rows * row, "reports");
    session->evaluation_rows = code ? 0 : rows;
    return code;
}

void mtc_data_strides(const MtcModel *model, int64_t stride, MtcData *data) {
    for (int i = 0; i < model->fields; i++)
        data->stride[i] = mtc_field_stride(&model->field[i], stride);
}

/* Of a data set's field. */
static size_t data_bytes(const MtcSession *session, const MtcData *data, int field) {
    return mtc_field_bytes(&session->model->field[field], data->examples, data->stride[field]);
}

int64_t mtc_most_orders(int64_t examples) {
    const int64_t many = 1 << 16;
    return examples < many ? many / examples : 1;
}

static size_t order_bytes(int64_t examples) {
    return examples ? (size_t)(mtc_most_orders(examples) * examples) * sizeof(int) : 0;
}

/* One array per field. */
static int alloc_data(MtcSession *session, MtcData *data, int64_t examples, int64_t stride) {
    const MtcModel *model = session->model;
    int code = 0;
    data->examples = examples;
    mtc_data_strides(model, stride, data);
    for (int i = 0; i < model->fields && !code; i++)
        code = mtc_session_alloc(session, (void **)&data->field[i], data_bytes(session, data, i), model->field[i].name);
    return code;
}

static void free_data(MtcSession *session, MtcData *data) {
    for (int i = 0; i < session->model->fields; i++)
        mtc_session_free(session, (void *)data->field[i], data_bytes(session, data, i));
    memset(data, 0, sizeof *data);
}

static void drop_data(MtcSession *session, int which) {
    MtcData *data = &session->data[which];
    if (which == MTC_TRAIN) {
        session->orders = 0;
        mtc_session_free(session, session->order, order_bytes(data->examples));
        session->order = NULL;
        mtc_feed_free(session);
    }
    free_data(session, data);
}

/* ---- beginning and end ---- */

static int upload_tensor(MtcSession *session, const MtcTensor *tensor, int row) {
    void *values = malloc(mtc_tensor_bytes(tensor));
    if (!values)
        return mtc_no_memory(&session->fault, mtc_tensor_bytes(tensor), tensor->name);
    mtc_init_tensor(tensor, row, session->seed, values);
    const char *error = mtc_upload(session->arena + tensor->offset, values, mtc_tensor_bytes(tensor));
    free(values);
    return mtc_device_fault(session, error, tensor->name);
}

/* Buffers take no random numbers: weights begin as they would without them. */
static int initialise(MtcSession *session) {
    int stream = 0;
    int code = mtc_device_fault(session, mtc_zero(session->arena, session->model->arena_bytes), "clearing memory");
    for (int i = 0; i < session->model->tensors && !code; i++) {
        const MtcTensor *tensor = &session->model->tensor[i];
        if (tensor->role != MTC_VALUE)
            code = upload_tensor(session, tensor, stream);
        stream += tensor->role != MTC_BUFFER;
    }
    return code ? code : mtc_copy_states(session);
}

int mtc_copy_states(MtcSession *session) {
    const MtcModel *model = session->model;
    int code = 0;
    for (int i = 0; i < model->tensors && !code; i++) {
        const MtcTensor *tensor = &model->tensor[i];
        if (tensor->role == MTC_VALUE || tensor->init != MTC_COPY)
            continue;
        const char *from = session->arena + model->tensor[(int)tensor->a].offset;
        const char *error = mtc_copy(session->arena + tensor->offset, from, mtc_tensor_bytes(tensor));
        code = mtc_device_fault(session, error, tensor->name);
    }
    return code;
}

static int alloc_session(MtcSession *session) {
    const MtcModel *model = session->model;
    int code = mtc_session_alloc(session, (void **)&session->arena, model->arena_bytes, "the model");
    if (code && session->device.free_bytes < model->arena_bytes)
        note_smaller_batch(session);
    if (!code)
        code = mtc_session_alloc(session, (void **)&session->clock, MTC_CLOCKS * sizeof *session->clock, "the clock");
    if (!code)
        code = reserve_evaluation(session, 1);
    return code ? code : alloc_data(session, &session->batch, model->batch, 0);
}

int mtc_session_new(const MtcModel *model, const char *program, uint64_t seed, int device, MtcSession **result) {
    MtcSession *session = (MtcSession *)calloc(1, sizeof *session);
    *result = session;
    if (!session)
        return MTC_UNAVAILABLE;
    session->model = model;
    session->program = program;
    session->seed = session->split_seed = seed;
    for (int i = 0; i < model->knobs; i++)
        session->knob[i] = (float)model->knob[i].value;
    if (model->abi != MTC_ABI)
        return mtc_fail(&session->fault, MTC_INTERNAL, "the model speaks version %d of the interface, the runtime %d",
                        model->abi, MTC_ABI);
    int code = mtc_device_open(&session->fault, model, program, device, &session->device);
    session->open = !code;
    if (!code)
        code = alloc_session(session);
    return code ? code : initialise(session);
}

int mtc_create(const MtcModel *model, uint64_t seed, int device, MtcSession **session) {
    return mtc_session_new(model, model->name, seed, device, session);
}

void mtc_destroy(MtcSession *session) {
    if (!session)
        return;
    if (session->open) {
        mtc_synchronize();
        if (session->prepared)
            session->model->release();
        mtc_trainer_free(session);
        for (int which = 0; which < MTC_SPLITS; which++)
            drop_data(session, which);
        free_data(session, &session->batch);
        mtc_device_free(session->evaluation);
        mtc_device_free(session->clock);
        mtc_device_free(session->arena);
    }
    mtc_encoding_free(&session->encoding);
    free(session);
}

const char *mtc_error(const MtcSession *session) {
    return session ? session->fault.text : "out of memory";
}

/* ---- data ---- */

int64_t mtc_batches(const MtcSession *session, const MtcData *data) {
    return (data->examples + session->model->batch - 1) / session->model->batch;
}

/* Memory for another number of examples, and for what depends on it: all of it, or none. */
static int resize_data(MtcSession *session, int which, int64_t examples, int64_t stride, bool on_host) {
    MtcData *data = &session->data[which];
    int code = mtc_device_fault(session, mtc_synchronize(), "the work before");
    mtc_trainer_free(session);
    drop_data(session, which);
    data->examples = examples;
    mtc_data_strides(session->model, stride, data);
    if (!code && !on_host)
        code = alloc_data(session, data, examples, stride);
    if (!code)
        code = reserve_evaluation(session, mtc_batches(session, data));
    if (!code && which == MTC_TRAIN)
        code = mtc_session_alloc(session, (void **)&session->order, order_bytes(examples), "the order");
    if (code)
        drop_data(session, which);
    return code;
}

static uint64_t hash_examples(const MtcSession *session, const MtcData *data, const void *const *fields) {
    MtcHash hash;
    mtc_hash_begin(&hash);
    for (int i = 0; i < session->model->fields; i++)
        mtc_hash_add(&hash, fields[i], data_bytes(session, data, i));
    return mtc_hash_end(&hash);
}

/* With new training examples an epoch begins, unless they are those that a resumed training had. */
static void begin_epoch(MtcSession *session, const void *const *fields) {
    session->train_hash = hash_examples(session, &session->data[MTC_TRAIN], fields);
    session->orders = 0;
    if (!session->resumed)
        session->at.epoch_step = 0;
}

static int check_which(MtcSession *session, int which) {
    return which >= 0 && which < MTC_SPLITS
               ? 0
               : mtc_fail(&session->fault, MTC_USAGE, "data sets are 0 (train), 1 (test) and 2 (validation), not %d",
                          which);
}

static bool wants_host(const MtcSession *session, int which, const MtcExamples *arrays) {
    size_t bytes = 0;
    for (int i = 0; i < session->model->fields; i++)
        bytes += mtc_field_bytes(&session->model->field[i], arrays->count, arrays->stride);
    return which == MTC_TRAIN && (session->data_on == MTC_DATA_ON_HOST ||
                                  (session->data_on == MTC_DATA_AUTO && bytes > session->device.free_bytes / 2));
}

int mtc_needs_device_data(MtcSession *session) {
    return !session->feed ? 0
                          : mtc_fail(&session->fault, MTC_UNAVAILABLE,
                                     "the training data do not fit on %s, where this needs them", session->device.name);
}

static int feed_from_host(MtcSession *session, MtcExamples *arrays) {
    int code = resize_data(session, MTC_TRAIN, arrays->count, arrays->stride, true);
    if (!code)
        code = mtc_feed_new(session, arrays);
    if (code)
        drop_data(session, MTC_TRAIN);
    return code;
}

static int upload_fields(MtcSession *session, int which, int64_t examples, int64_t stride, const void *const *fields) {
    const MtcModel *model = session->model;
    const MtcData *data = &session->data[which];
    bool same = data->examples == examples && data->stride[0] == mtc_field_stride(&model->field[0], stride);
    int code = 0;
    if (!same || (which == MTC_TRAIN && session->feed))
        code = resize_data(session, which, examples, stride, false);
    for (int i = 0; i < model->fields && !code; i++) {
        const char *error = mtc_upload((void *)data->field[i], fields[i], data_bytes(session, data, i));
        code = mtc_device_fault(session, error, model->field[i].name);
    }
    return code;
}

/* arrays: those of `fields`, which may be taken. NULL: they are the caller's, and are copied to the device. */
static int set_data(MtcSession *session, int which, int64_t examples, const void *const *fields, MtcExamples *arrays) {
    const MtcModel *model = session->model;
    if (check_which(session, which))
        return session->fault.code;
    if (examples < 1 || examples > INT32_MAX)
        return mtc_fail(&session->fault, MTC_BAD_DATA, "a data set has 1 to %d examples, not %lld", INT32_MAX,
                        (long long)examples);
    for (int i = 0; i < model->fields; i++)
        if (!fields || !fields[i])
            return mtc_fail(&session->fault, MTC_USAGE, "there is no array for the field '%s'", model->field[i].name);
    const void *array[MTC_MAX_FIELDS]; /* where the arrays are, whoever has them then */
    memcpy(array, fields, (size_t)model->fields * sizeof *array);
    int code = arrays && wants_host(session, which, arrays)
                   ? feed_from_host(session, arrays)
                   : upload_fields(session, which, examples, arrays ? arrays->stride : 0, fields);
    if (which != MTC_TRAIN || code)
        return code;
    begin_epoch(session, array);
    return session->measured ? 0 : mtc_measure(session);
}

int mtc_set_data(MtcSession *session, int which, int64_t examples, const void *const *fields) {
    return set_data(session, which, examples, fields, NULL);
}

int mtc_session_set_data(MtcSession *session, int which, MtcExamples *examples) {
    mtc_range_begin("upload examples");
    int code = set_data(session, which, examples->count, (const void *const *)examples->field, examples);
    mtc_range_end();
    return code;
}

int mtc_load_data(MtcSession *session, int which, const char *folder) {
    MtcReading reading;
    MtcExamples examples;
    if (check_which(session, which))
        return session->fault.code;
    const char *name = mtc_split_name(which);
    if (!mtc_split(session->model, name))
        return mtc_fail(&session->fault, MTC_USAGE, "the model has no split '%s'", name);
    memset(&reading, 0, sizeof reading);
    reading.folder = folder;
    reading.seed = session->split_seed;
    reading.cache = true;
    int code = mtc_read_splits(&session->fault, session->model, &reading, &session->encoding, &name, 1, &examples);
    if (code)
        return code;
    code = mtc_session_set_data(session, which, &examples);
    mtc_examples_free(&examples);
    return code;
}

int mtc_watched(const MtcSession *session) {
    return session->data[MTC_VALIDATION].examples ? MTC_VALIDATION : MTC_TEST;
}

const char *mtc_split_name(int which) {
    return which == MTC_TRAIN ? "train" : which == MTC_TEST ? "test" : "validation";
}

/* ---- evaluation and prediction ---- */

static int no_data(MtcSession *session, const char *what) {
    return mtc_fail(&session->fault, MTC_USAGE, "there are no data to %s: set or load them first", what);
}

int mtc_enqueue_evaluation(MtcSession *session, const MtcData *data) {
    int64_t batch = session->model->batch, slot = 0;
    MtcRun run = mtc_run(session, data, session->evaluation);
    run.order = NULL;
    const char *error = NULL;
    mtc_range_begin("enqueue evaluation");
    for (int64_t first = 0; first < data->examples && !error; first += batch, slot++) {
        int64_t left = data->examples - first;
        error = session->model->eval(&run, first, left < batch ? left : batch, slot);
    }
    mtc_range_end();
    return mtc_device_fault(session, error, "evaluation");
}

void mtc_mean_reports(const MtcSession *session, const MtcData *data, const double *rows, double *reports) {
    int count = session->model->reports;
    int64_t batch = session->model->batch, batches = mtc_batches(session, data);
    for (int r = 0; r < count; r++) {
        double sum = 0;
        for (int64_t b = 0; b < batches; b++) {
            int64_t left = data->examples - b * batch;
            sum += rows[b * count + r] * (double)(left < batch ? left : batch);
        }
        reports[r] = sum / (double)data->examples;
    }
}

int mtc_evaluate(MtcSession *session, int which, double *reports) {
    if (which < 0 || which >= MTC_SPLITS || session->data[which].examples == 0)
        return no_data(session, "evaluate");
    const MtcData *data = &session->data[which];
    size_t bytes = (size_t)(mtc_batches(session, data) * session->model->reports) * sizeof(double);
    double *rows = (double *)malloc(bytes);
    if (!rows)
        return mtc_no_memory(&session->fault, bytes, "reports");
    int code = mtc_enqueue_evaluation(session, data);
    if (!code)
        code = mtc_device_fault(session, mtc_download(rows, session->evaluation, bytes), "reading the reports");
    if (!code)
        code = mtc_device_fault(session, mtc_synchronize(), "evaluation");
    if (!code)
        mtc_mean_reports(session, data, rows, reports);
    free(rows);
    return code;
}

int64_t mtc_prediction_elements(const MtcModel *model) {
    return mtc_elements(model->prediction_rank, model->prediction_dim);
}

/* Programs of `mtc --real f64` compute in double throughout. */
static bool computes_in_double(const MtcModel *model) {
    for (int i = 0; i < model->tensors; i++)
        if (model->tensor[i].type == MTC_F64)
            return true;
    return false;
}

static int download_predictions(MtcSession *session, int64_t count, float *out) {
    const char *from = session->arena + session->model->prediction_offset;
    const char *error = NULL;
    if (!computes_in_double(session->model))
        error = mtc_download(out, from, (size_t)count * sizeof *out);
    else {
        double *wide = (double *)malloc((size_t)count * sizeof *wide);
        error = wide ? mtc_download(wide, from, (size_t)count * sizeof *wide) : "out of memory";
        for (int64_t i = 0; i < count && !error; i++)
            out[i] = (float)wide[i];
        free(wide);
    }
    if (!error)
        error = mtc_synchronize();
    return mtc_device_fault(session, error, "prediction");
}

static int predict_rows(MtcSession *session, const MtcRun *run, int64_t first, int64_t rows, float *out) {
    int code = mtc_device_fault(session, session->model->eval(run, first, rows, 0), "prediction");
    return code ? code : download_predictions(session, rows * mtc_prediction_elements(session->model), out);
}

int mtc_predict_data(MtcSession *session, const MtcData *data, float *out) {
    int64_t batch = session->model->batch, elements = mtc_prediction_elements(session->model);
    MtcRun run = mtc_run(session, data, session->evaluation);
    run.order = NULL;
    int code = 0;
    for (int64_t first = 0; first < data->examples && !code; first += batch) {
        int64_t left = data->examples - first;
        code = predict_rows(session, &run, first, left < batch ? left : batch, out + first * elements);
    }
    return code;
}

static int upload_rows(MtcSession *session, int64_t first, int64_t rows, const void *const *fields) {
    const char *error = NULL;
    for (int i = 0; i < session->model->fields && !error; i++) {
        const MtcField *field = &session->model->field[i];
        size_t size = mtc_example_bytes(field);
        void *to = (void *)session->batch.field[i];
        if (fields && fields[i])
            error = mtc_upload(to, (const char *)fields[i] + (size_t)first * size, (size_t)rows * size);
        else
            error = mtc_zero(to, (size_t)rows * size);
    }
    return mtc_device_fault(session, error, "copying the examples");
}

int mtc_predict(MtcSession *session, int64_t examples, const void *const *fields, float *out) {
    int64_t batch = session->model->batch, elements = mtc_prediction_elements(session->model);
    int code = 0;
    MtcRun run = mtc_run(session, &session->batch, session->evaluation);
    for (int64_t first = 0; first < examples && !code; first += batch) {
        int64_t rows = examples - first < batch ? examples - first : batch;
        code = upload_rows(session, first, rows, fields);
        if (!code)
            code = predict_rows(session, &run, 0, rows, out + first * elements);
    }
    return code;
}
