/* Writing a checkpoint: its metadata, and its tensors as one safetensors file (safetensors.c); what the file holds is said in
 * checkpoint.h. keeper.c calls it from its thread while training goes on, mtc_save at once. Reading is checkpoint_read.c, taking over
 * what was read restore.c. */
#include "checkpoint/checkpoint.h"

#include "session/finite.h"
#include "session/weights.h"

#include <stdlib.h>
#include <string.h>

/* ---- metadata ---- */

static void meta_text(MtcText *text, const char *key, const char *value) {
    mtc_text_add(text, ",\"mtc.%s\":", key);
    mtc_text_json(text, value);
}

static void meta_count(MtcText *text, const char *key, int64_t value) {
    mtc_text_add(text, ",\"mtc.%s\":\"%lld\"", key, (long long)value);
}

static void meta_unsigned(MtcText *text, const char *key, uint64_t value) {
    mtc_text_add(text, ",\"mtc.%s\":\"%llu\"", key, (unsigned long long)value);
}

/* With the digits that give the same number back. */
static void meta_number(MtcText *text, const char *key, double value) {
    mtc_text_add(text, ",\"mtc.%s\":\"%.17g\"", key, value);
}

static void meta_params(MtcText *text, const MtcSession *session) {
    const MtcModel *model = session->model;
    const int digits = mtc_computes_in_double(model) ? 17 : 9;
    for (int i = 0; i < model->fixed; i++)
        mtc_text_add(text, ",\"mtc.param.%s\":\"%.17g\"", model->fixed_param[i].name, model->fixed_param[i].value);
    for (int i = 0; i < model->knobs; i++)
        mtc_text_add(text, ",\"mtc.param.%s\":\"%.*g\"", model->knob[i].name, digits, mtc_shortest_knob(session, i));
}

static void meta_sums(MtcText *text, const char *key, const MtcSums *sums, int reports) {
    if (sums->examples <= 0)
        return;
    mtc_text_add(text, ",\"mtc.%s\":\"%.17g", key, sums->examples);
    for (int r = 0; r < reports; r++)
        mtc_text_add(text, " %.17g", sums->report[r]);
    mtc_text_add(text, "\"");
}

static void meta_plateaus(MtcText *text, const MtcSession *session) {
    const MtcModel *model = session->model;
    if (!model->plateaus)
        return;
    mtc_text_add(text, ",\"mtc.plateaus\":\"");
    for (int i = 0; i < model->plateaus; i++) {
        const MtcPlateau *plateau = &session->record.plateau[i];
        mtc_text_add(text, "%s%d %lld %lld", i ? " " : "", model->plateau[i], (long long)plateau->waited,
                     (long long)plateau->falls);
    }
    mtc_text_add(text, "\"");
}

static void meta_record(MtcText *text, const MtcSession *session) {
    const MtcRecord *record = &session->record;
    if (record->epochs)
        meta_count(text, "epochs", record->epochs);
    meta_sums(text, "epoch_sums", &record->epoch, session->model->reports);
    meta_sums(text, "interval_sums", &record->interval, session->model->reports);
    if (record->losses)
        mtc_text_add(text, ",\"mtc.losses\":\"%.17g %.17g\"", record->first_loss, record->loss);
    if (record->first_weight > 0)
        meta_number(text, "first_weight", record->first_weight);
    if (record->summary_due)
        meta_count(text, "summary_due", 1);
    if (!*record->monitor)
        return;
    meta_text(text, "monitor", record->monitor);
    meta_number(text, "best", record->best);
    meta_count(text, "best_step", record->best_step);
    meta_count(text, "since_best", record->since_best);
    meta_plateaus(text, session);
}

static void add_meaning(MtcText *json, const MtcField *field, const MtcMeaning *meaning) {
    mtc_text_add(json, "%s", json->length > 1 ? "," : "");
    mtc_text_json(json, field->name);
    mtc_text_add(json, ":{");
    for (int k = 0; k < meaning->words; k++) {
        mtc_text_add(json, "%s", k ? "," : "\"words\":[");
        mtc_text_json(json, meaning->word[k]);
    }
    mtc_text_add(json, "%s%s", meaning->words ? "]" : "", meaning->words && meaning->mean ? "," : "");
    for (int64_t e = 0; meaning->mean && e < mtc_row_elements(field); e++)
        mtc_text_add(json, "%s%.17g", e ? "," : "\"mean\":[", meaning->mean[e]);
    mtc_text_add(json, "%s", meaning->mean ? "]" : "");
    if (meaning->tokenizer) {
        mtc_text_add(json, "\"tokenizer\":");
        mtc_text_json(json, meaning->tokenizer);
        mtc_text_add(json, ",\"digest\":\"%016llx\"", (unsigned long long)meaning->digest);
    }
    mtc_text_add(json, "}");
}

static bool is_meaning(const MtcMeaning *meaning) {
    return meaning->words || meaning->mean || meaning->tokenizer;
}

static void meta_encoding(MtcText *text, const MtcSession *session) {
    const MtcModel *model = session->model;
    MtcText json = {NULL, 0, 0};
    mtc_text_add(&json, "{");
    for (int i = 0; i < model->fields; i++)
        if (is_meaning(&session->encoding.field[i]))
            add_meaning(&json, &model->field[i], &session->encoding.field[i]);
    mtc_text_add(&json, "}");
    meta_text(text, "encoding", json.at);
    free(json.at);
}

int mtc_count_tensors(const MtcModel *model, MtcRole role) {
    int count = 0;
    for (int i = 0; i < model->tensors; i++)
        count += model->tensor[i].role == role;
    return count;
}

void mtc_checkpoint_metadata(MtcText *text, const MtcSession *session) {
    const MtcModel *model = session->model;
    mtc_text_add(text, "{\"format\":\"pt\",\"" MTC_CHECKSUM "\":\"" MTC_NO_CHECKSUM "\"");
    meta_count(text, "version", MTC_LAYOUT);
    meta_text(text, "model", model->name);
    meta_text(text, "model_hash", model->model_hash);
    meta_count(text, "weights", mtc_count_tensors(model, MTC_WEIGHT) + mtc_count_tensors(model, MTC_BUFFER));
    meta_count(text, "step", session->at.step);
    meta_count(text, "epoch", session->at.epoch);
    meta_count(text, "epoch_step", session->at.epoch_step);
    meta_unsigned(text, "seed", session->seed);
    meta_unsigned(text, "split_seed", session->split_seed);
    if (session->data[MTC_TRAIN].examples)
        mtc_text_add(text, ",\"mtc.data\":\"%lld %016llx\"", (long long)session->data[MTC_TRAIN].examples,
                     (unsigned long long)session->train_hash);
    meta_record(text, session);
    meta_params(text, session);
    if (session->encoding.known)
        meta_encoding(text, session);
    mtc_text_add(text, "}");
}

/* ---- writing ---- */

typedef struct Writing {
    MtcFault *fault;
    const MtcState *state;
    const MtcTensor *tensor; /* the one that is being written */
    MtcArchiveWriter *writer;
    char *room; /* for tensors that files have in another order, one after the other */
    size_t room_bytes;
} Writing;

/* Of the tensor's elements from `first` on. */
static int check_finite(const Writing *writing, const void *values, size_t first, int64_t count) {
    const MtcTensor *tensor = writing->tensor;
    MtcBadNumber bad = {false, 0, 0};
    if (tensor->role != MTC_STATE)
        bad = mtc_find_bad(tensor->type, values, count);
    if (!bad.found)
        return 0;
    bad.element += (int64_t)first;
    mtc_fail(writing->fault, MTC_BAD_DATA, "the weights are not saved, for '%s' is not finite: %s", tensor->name,
             mtc_bad_element_text(&bad, tensor));
    mtc_note_statement(writing->fault, writing->state->session->model, tensor->statement);
    return writing->fault->code;
}

static int write_piece(MtcSession *session, void *user, const void *bytes, size_t from, size_t size) {
    const Writing *writing = (const Writing *)user;
    const size_t width = mtc_type_size(writing->tensor->type);
    (void)session;
    int code = check_finite(writing, bytes, from / width, (int64_t)(size / width));
    return code ? code : mtc_archive_add(writing->fault, writing->writer, bytes, size);
}

/* Memory that was used before need not be cleared by the system again. */
static int need_room(Writing *writing, size_t bytes) {
    if (bytes <= writing->room_bytes)
        return 0;
    free(writing->room);
    writing->room = (char *)malloc(bytes);
    writing->room_bytes = writing->room ? bytes : 0;
    return writing->room ? 0 : mtc_no_memory(writing->fault, bytes, writing->tensor->name);
}

/* In the order of files, at the beginning of the room; behind that the tensor is put together, where it comes in pieces. */
static int permute_piece(MtcSession *session, void *user, const void *bytes, size_t from, size_t size) {
    const Writing *writing = (const Writing *)user;
    const size_t all = mtc_tensor_bytes(writing->tensor);
    char *together = writing->room + all;
    (void)session;
    if (size < all)
        memcpy(together + from, bytes, size);
    if (from + size < all)
        return 0;
    const void *values = size < all ? together : bytes;
    mtc_to_file(writing->tensor, values, writing->room);
    return check_finite(writing, values, 0, mtc_elements(writing->tensor->rank, writing->tensor->dim));
}

static int write_permuted(Writing *writing) {
    const size_t bytes = mtc_tensor_bytes(writing->tensor);
    int code = need_room(writing, 2 * bytes);
    if (!code)
        code = mtc_visit_state(writing->state, writing->tensor, permute_piece, writing);
    return code ? code : mtc_archive_add(writing->fault, writing->writer, writing->room, bytes);
}

/* Weights, buffers, then states: the order of a file. NULL ends it; `index` begins at 0. */
static const MtcTensor *next_saved(const MtcModel *model, int *index) {
    for (; *index < (MTC_STATE + 1) * model->tensors; ++*index) {
        const MtcTensor *tensor = &model->tensor[*index % model->tensors];
        if ((int)tensor->role == *index / model->tensors)
            return &model->tensor[(*index)++ % model->tensors];
    }
    return NULL;
}

static int write_tensors(void *user, MtcArchiveWriter *writer) {
    Writing *writing = (Writing *)user;
    int code = 0;
    writing->writer = writer;
    for (int i = 0; !code && (writing->tensor = next_saved(writing->state->session->model, &i));)
        code = mtc_is_permuted(writing->tensor)
                   ? write_permuted(writing)
                   : mtc_visit_state(writing->state, writing->tensor, write_piece, writing);
    return code;
}

static void describe_blob(MtcBlob *blob, const MtcTensor *tensor) {
    blob->name = tensor->name;
    blob->dtype = mtc_dtype(tensor->type);
    blob->rank = tensor->rank;
    mtc_file_dim(tensor, blob->dim);
    blob->size = mtc_tensor_bytes(tensor);
}

int mtc_checkpoint_write(MtcFault *fault, const MtcState *state, const char *path, const char *base,
                         const char *metadata) {
    const MtcModel *model = state->session->model;
    Writing writing = {.fault = fault, .state = state};
    int count = 0;
    MtcBlob *blob = (MtcBlob *)calloc((size_t)model->tensors + 1, sizeof *blob);
    if (!blob)
        return mtc_no_memory(fault, ((size_t)model->tensors + 1) * sizeof *blob, path);
    for (int i = 0; (writing.tensor = next_saved(model, &i));)
        describe_blob(&blob[count++], writing.tensor);
    mtc_range_begin("write checkpoint");
    fault->code = 0;
    int code = mtc_archive_write(fault, path, base, metadata, blob, count, write_tensors, &writing);
    if (code && !fault->code) /* the device's */
        *fault = state->session->fault;
    mtc_range_end();
    free(writing.room);
    free(blob);
    return code;
}

typedef struct Saving {
    MtcSession *session;
    const char *path;
} Saving;

static int save_checkpoint(void *context) {
    MtcSession *session = ((const Saving *)context)->session;
    const MtcState state = {session, NULL, NULL};
    MtcText metadata = {NULL, 0, 0};
    mtc_checkpoint_metadata(&metadata, session);
    int code = mtc_checkpoint_write(&session->fault, &state, ((const Saving *)context)->path, NULL, metadata.at);
    free(metadata.at);
    return code;
}

int mtc_save(MtcSession *session, const char *path) {
    Saving saving = {session, path};
    int code = mtc_enter(session);
    return code ? code : mtc_guard(&session->fault, save_checkpoint, &saving);
}
