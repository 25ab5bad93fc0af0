/* The data sets of a session: memory on the device, or lent by the caller, or in the host's for a feed. */
#include "session/session_data.h"

#include "base/hash.h"
#include "base/parallel.h"
#include "ranks/ranks.h"
#include "session/feed.h"
#include "session/lent.h"
#include "session/measure.h"
#include "session/memory.h"
#include "session/order.h"
#include "session/pieces.h"
#include "session/set_values.h"
#include "session/train.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* ---- memory ---- */

static size_t order_bytes(int64_t examples) {
    return examples ? (size_t)(mtc_most_orders(examples) * examples) * sizeof(int) : 0;
}

void mtc_release_data(MtcSession *session, int which) {
    MtcData *data = &session->data[which];
    if (which == MTC_TRAIN) {
        session->orders = 0;
        mtc_session_free(session, session->order, order_bytes(data->examples));
        session->order = NULL;
        free(session->piece_hash);
        session->piece_hash = NULL;
        mtc_feed_free(session);
    }
    mtc_free_data(session, data, session->lent[which]);
    memset(session->lent[which], 0, sizeof session->lent[which]);
}

/* Nothing is under way that reads the data set, and no trainer remembers its size. */
static int empty_data(MtcSession *session, int which) {
    int code = mtc_device_fault(session, mtc_synchronize(), "the work before");
    mtc_trainer_free(session);
    mtc_release_data(session, which);
    return code;
}

/* Memory for another number of examples, and for what depends on it: all of it, or none. */
static int resize_data(MtcSession *session, int which, int64_t examples, int64_t stride, bool on_host,
                       const bool *lent) {
    MtcData *data = &session->data[which];
    int code = empty_data(session, which);
    data->examples = examples;
    mtc_data_strides(session->model, stride, data);
    if (lent)
        memcpy(session->lent[which], lent, (size_t)session->model->fields * sizeof *lent);
    if (!code && !on_host)
        code = mtc_alloc_data(session, data, examples, stride, lent);
    if (!code)
        code = mtc_reserve_evaluation(session, mtc_batches(session, data));
    if (!code && which != MTC_TRAIN) /* training data may be evaluated, and seldom are */
        code = mtc_reserve_set_values(session, data);
    if (!code && which == MTC_TRAIN)
        code = mtc_session_alloc(session, (void **)&session->order, order_bytes(examples), "the order");
    if (code)
        mtc_release_data(session, which);
    return code;
}

static int visit_hash(MtcSession *session, void *user, const void *bytes, size_t from, size_t size) {
    (void)session, (void)from;
    mtc_hash_add((MtcHash *)user, bytes, size);
    return 0;
}

static int hash_examples(MtcSession *session, const void *const *fields, const bool *lent) {
    const MtcData *data = &session->data[MTC_TRAIN];
    MtcHash hash;
    int code = 0;
    mtc_hash_begin(&hash);
    for (int i = 0; i < session->model->fields && !code; i++)
        code =
            mtc_visit_field(session, fields[i], mtc_data_bytes(session, data, i), lent && lent[i], visit_hash, &hash);
    session->train_hash = mtc_hash_end(&hash);
    return code;
}

int mtc_hash_data(MtcSession *session, int which, uint64_t *result) {
    const MtcData *data = &session->data[which];
    MtcHash hash;
    int code = 0;
    mtc_hash_begin(&hash);
    for (int i = 0; i < session->model->fields && !code && data->examples; i++)
        code = mtc_visit_memory(session, (const char *)data->field[i], mtc_data_bytes(session, data, i), visit_hash,
                                &hash);
    *result = mtc_hash_end(&hash);
    return code;
}

/* ---- setting ---- */

/* With new training examples an epoch begins, unless they are those that a resumed training had. */
static void begin_epoch(MtcSession *session) {
    session->orders = 0;
    session->last_step = 0;
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

static int feed_from_host(MtcSession *session, MtcExamples *arrays) {
    int code = resize_data(session, MTC_TRAIN, arrays->count, arrays->stride, true, NULL);
    if (!code)
        code = mtc_feed_new(session, arrays);
    if (code)
        mtc_release_data(session, MTC_TRAIN);
    return code;
}

/* Has the data set memory for these already? */
static bool fits_data(const MtcSession *session, int which, int64_t examples, int64_t stride, const bool *lent) {
    const MtcData *data = &session->data[which];
    bool same = data->examples == examples && data->stride[0] == mtc_field_stride(&session->model->field[0], stride);
    for (int i = 0; i < session->model->fields; i++)
        same &= session->lent[which][i] == (lent && lent[i]);
    return same && !(which == MTC_TRAIN && session->feed);
}

/* Copies the arrays of the caller's into the data set's memory; where that is lent, it is theirs. */
static int upload_fields(MtcSession *session, int which, const void *const *fields) {
    MtcData *data = &session->data[which];
    const char *error = NULL;
    int i = 0;
    for (; i < session->model->fields && !error; i++)
        if (session->lent[which][i])
            data->field[i] = fields[i];
        else
            error = mtc_upload((void *)data->field[i], fields[i], mtc_data_bytes(session, data, i));
    return error ? mtc_device_fault(session, error, session->model->field[i - 1].name) : 0;
}

static int check_example_count(MtcSession *session, int which, int64_t examples) {
    if (check_which(session, which))
        return session->fault.code;
    return examples >= 1 && examples <= INT32_MAX
               ? 0
               : mtc_fail(&session->fault, MTC_BAD_DATA, "a data set has 1 to %d examples, not %lld", INT32_MAX,
                          (long long)examples);
}

static int check_arrays(MtcSession *session, int which, int64_t examples, const void *const *fields) {
    const MtcModel *model = session->model;
    if (check_example_count(session, which, examples))
        return session->fault.code;
    for (int i = 0; i < model->fields; i++)
        if (!fields || !fields[i])
            return mtc_fail(&session->fault, MTC_USAGE, "there is no array for the field '%s'", model->field[i].name);
    return 0;
}

/* What new training data decide. Those that weights were trained on before decided what the buffers are. */
static int begin_training_data(MtcSession *session) {
    bool trained = session->at.step > 0 && !session->resumed;
    begin_epoch(session);
    return session->measured || trained ? 0 : mtc_measure(session);
}

/* Memory for the examples, which may be there already. */
static int reserve_data(MtcSession *session, int which, int64_t examples, int64_t stride, const bool *lent) {
    return fits_data(session, which, examples, stride, lent)
               ? 0
               : resize_data(session, which, examples, stride, false, lent);
}

/* Classes that are none leave no data set: memory comes first, so that arrays too large for it are not read. */
static int set_arrays(MtcSession *session, int which, int64_t examples, const void *const *fields, const bool *lent) {
    int code = reserve_data(session, which, examples, 0, lent);
    if (!code)
        code = mtc_check_classes(session, examples, fields, lent);
    if (!code)
        code = mtc_check_weights(session, examples, fields, lent);
    if (!code)
        code = upload_fields(session, which, fields);
    if (!code && which == MTC_TRAIN)
        code = hash_examples(session, fields, lent);
    if (!code && which == MTC_TRAIN)
        code = begin_training_data(session);
    if (code && session->data[which].examples)
        empty_data(session, which);
    return code;
}

int mtc_lend_data(MtcSession *session, int which, int64_t examples, const void *const *fields, const bool *lent) {
    int code = mtc_enter_idle(session);
    if (!code)
        code = check_arrays(session, which, examples, fields);
    if (!code)
        code = mtc_check_lent(session, fields, lent);
    return code ? code : set_arrays(session, which, examples, fields, lent);
}

int mtc_set_data(MtcSession *session, int which, int64_t examples, const void *const *fields) {
    return mtc_lend_data(session, which, examples, fields, NULL);
}

/* ---- data that were read ---- */

/* Tokens of a file on their way: those of a piece are read by all threads. */
typedef struct TokenReading {
    const MtcModel *model;
    const MtcExamples *examples;
    uint64_t *hash; /* of each piece; NULL: nobody asks */
    char *piece;
    int64_t first, count; /* of the piece */
    int64_t failed;       /* the first task that did, whose fault it is */
    MtcFault fault;
    pthread_mutex_t lock;
} TokenReading;

enum { TOKENS_PER_TASK = 1 << 18 };

static uint64_t hash_of(const void *bytes, size_t size) {
    MtcHash hash;
    mtc_hash_begin(&hash);
    mtc_hash_add(&hash, bytes, size);
    return mtc_hash_end(&hash);
}

static void note_failure(TokenReading *reading, int64_t task, const MtcFault *fault) {
    pthread_mutex_lock(&reading->lock);
    if (task < reading->failed) {
        reading->failed = task;
        reading->fault = *fault;
    }
    pthread_mutex_unlock(&reading->lock);
}

static void read_some_tokens(void *context, int64_t task) {
    TokenReading *reading = (TokenReading *)context;
    const size_t size = mtc_type_size(reading->model->field[0].type);
    const int64_t from = task * TOKENS_PER_TASK, left = reading->count - from;
    MtcFault fault;
    if (mtc_read_elements(&fault, reading->model, reading->examples, 0, reading->first + from,
                          left < TOKENS_PER_TASK ? left : TOKENS_PER_TASK, reading->piece + (size_t)from * size))
        note_failure(reading, task, &fault);
}

static int read_piece(MtcSession *session, void *user, void *bytes, size_t from, size_t size) {
    TokenReading *reading = (TokenReading *)user;
    const size_t width = mtc_type_size(reading->model->field[0].type);
    reading->piece = (char *)bytes;
    reading->first = (int64_t)(from / width);
    reading->count = (int64_t)(size / width);
    reading->failed = INT64_MAX;
    mtc_parallel((reading->count + TOKENS_PER_TASK - 1) / TOKENS_PER_TASK, read_some_tokens, reading);
    if (reading->failed < INT64_MAX) {
        session->fault = reading->fault;
        return session->fault.code;
    }
    if (reading->hash)
        reading->hash[from / MTC_PIECE] = hash_of(bytes, size);
    return 0;
}

/* Of tokens that a feed takes from the file when they are needed: each rank looks at a part. */
static int look_at_tokens(MtcSession *session, TokenReading *reading, size_t bytes) {
    char *piece = (char *)malloc(MTC_PIECE);
    const int64_t end = mtc_ranks_first(session->pieces_hashed, mtc_rank() + 1);
    int code = piece ? 0 : mtc_no_memory(&session->fault, MTC_PIECE, session->model->field->name);
    for (int64_t i = mtc_ranks_first(session->pieces_hashed, mtc_rank()); i < end && !code; i++) {
        const size_t from = (size_t)i * MTC_PIECE, left = bytes - from;
        code = read_piece(session, reading, piece, from, left < MTC_PIECE ? left : MTC_PIECE);
    }
    free(piece);
    return code;
}

/* That of one piece is the checksum of all. */
static void hash_pieces(MtcSession *session) {
    const int64_t pieces = session->pieces_hashed;
    session->train_hash =
        pieces == 1 ? session->piece_hash[0] : hash_of(session->piece_hash, (size_t)pieces * sizeof(uint64_t));
}

int mtc_share_train_hash(MtcSession *session) {
    if (!session->piece_hash || mtc_rank_count() == 1)
        return 0;
    int64_t *begin = mtc_ranks_deal(session->pieces_hashed);
    const int code = mtc_ranks_gather(&session->fault, session->piece_hash, sizeof *session->piece_hash, begin);
    free(begin);
    hash_pieces(session);
    return code;
}

/* Tokens of a file: each is looked at. They go to the device, unless a feed has them; those of training are hashed. */
static int take_tokens(MtcSession *session, int which, const MtcExamples *examples) {
    const MtcData *data = &session->data[which];
    const size_t bytes = mtc_data_bytes(session, data, 0);
    if (which == MTC_TRAIN) {
        session->pieces_hashed = (int64_t)((bytes + MTC_PIECE - 1) / MTC_PIECE);
        session->piece_hash = (uint64_t *)mtc_zeroed((size_t)session->pieces_hashed * sizeof(uint64_t));
    }
    TokenReading reading = {.model = session->model,
                            .examples = examples,
                            .hash = which == MTC_TRAIN ? session->piece_hash : NULL,
                            .lock = PTHREAD_MUTEX_INITIALIZER};
    const int code = data->field[0] ? mtc_fill_memory(session, (void *)data->field[0], bytes, read_piece, &reading)
                                    : look_at_tokens(session, &reading, bytes);
    if (which == MTC_TRAIN)
        hash_pieces(session);
    return code;
}

static int take_arrays(MtcSession *session, int which, const MtcExamples *examples) {
    const void *const *array = (const void *const *)examples->field;
    int code = which == MTC_TRAIN && session->feed ? 0 : upload_fields(session, which, array);
    return code || which != MTC_TRAIN ? code : hash_examples(session, array, NULL);
}

int mtc_session_set_data(MtcSession *session, int which, MtcExamples *examples) {
    const MtcExamples given = *examples; /* where the values are, whoever has them then */
    int code = given.tokens ? check_example_count(session, which, given.count)
                            : check_arrays(session, which, given.count, (const void *const *)given.field);
    if (!code && !given.tokens && !given.stride) /* readers of windows have looked at their rows */
        code = mtc_check_weights(session, given.count, (const void *const *)given.field, NULL);
    if (code)
        return code;
    mtc_range_begin("upload examples");
    code = wants_host(session, which, examples) ? feed_from_host(session, examples)
                                                : reserve_data(session, which, given.count, given.stride, NULL);
    if (!code)
        code = given.tokens ? take_tokens(session, which, &given) : take_arrays(session, which, &given);
    if (!code && which == MTC_TRAIN)
        code = begin_training_data(session);
    if (code && session->data[which].examples)
        empty_data(session, which);
    mtc_range_end();
    return code;
}

/* A split that is read, and what its fields mean then. */
typedef struct SplitLoad {
    MtcSession *session;
    const char *split;
    MtcReading reading;
    MtcExamples examples;
    MtcEncoding learned; /* where the session knew nothing */
} SplitLoad;

static int read_split(void *context) {
    SplitLoad *load = (SplitLoad *)context;
    MtcSession *session = load->session;
    return mtc_read_splits(&session->fault, session->model, &load->reading,
                           session->encoding.known ? &session->encoding : &load->learned, &load->split, 1,
                           &load->examples);
}

int mtc_load_data(MtcSession *session, int which, const char *folder) {
    SplitLoad load;
    int code = mtc_enter_idle(session);
    if (!code)
        code = check_which(session, which);
    memset(&load, 0, sizeof load);
    load.session = session;
    load.split = mtc_split_name(which);
    load.reading.folder = folder;
    if (!code) {
        free(session->folder);
        session->folder = folder ? strdup(folder) : NULL;
    }
    load.reading.seed = session->split_seed;
    load.reading.cache = true;
    if (!code && !mtc_split(session->model, load.split))
        code = mtc_fail(&session->fault, MTC_USAGE, "the model has no split '%s'", load.split);
    if (!code)
        code = mtc_guard(&session->fault, read_split, &load);
    if (code)
        return code;
    if (load.learned.known)
        session->encoding = load.learned;
    mtc_device_refresh(&session->device); /* a program that embeds the model may have used, or freed, some since */
    code = mtc_session_set_data(session, which, &load.examples);
    mtc_examples_free(&load.examples);
    return code;
}

int mtc_drop_data(MtcSession *session, int which) {
    int code = mtc_enter_idle(session);
    if (!code)
        code = check_which(session, which);
    return code ? code : empty_data(session, which);
}
