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
    mtc_text_add(json, "%s}", meaning->mean ? "]" : "");
}

static void meta_encoding(MtcText *text, const MtcSession *session) {
    const MtcModel *model = session->model;
    MtcText json = {NULL, 0, 0};
    mtc_text_add(&json, "{");
    for (int i = 0; i < model->fields; i++)
        if (session->encoding.field[i].words || session->encoding.field[i].mean)
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

static int check_finite(MtcFault *fault, const MtcModel *model, const MtcTensor *tensor, const void *values) {
    MtcBadNumber bad = {false, 0, 0};
    if (tensor->role != MTC_STATE)
        bad = mtc_find_bad(tensor->type, values, mtc_elements(tensor->rank, tensor->dim));
    if (!bad.found)
        return 0;
    mtc_fail(fault, MTC_BAD_DATA, "the weights are not saved, for '%s' is not finite: %s", tensor->name,
             mtc_bad_element_text(&bad, tensor));
    mtc_note_statement(fault, model, tensor->statement);
    return fault->code;
}

static void describe_blob(MtcBlob *blob, const MtcTensor *tensor, const void *bytes) {
    blob->name = tensor->name;
    blob->dtype = mtc_dtype(tensor->type);
    blob->rank = tensor->rank;
    mtc_file_dim(tensor, blob->dim);
    blob->size = mtc_tensor_bytes(tensor);
    blob->bytes = bytes;
}

/* Memory for the tensors that files have in another order. */
static char *reserve_permuted(const MtcModel *model) {
    size_t bytes = 1;
    for (int i = 0; i < model->tensors; i++)
        if (model->tensor[i].role != MTC_VALUE && mtc_is_permuted(&model->tensor[i]))
            bytes += mtc_tensor_bytes(&model->tensor[i]);
    return (char *)malloc(bytes);
}

/* The tensor's bytes in the order of files: themselves, or what is written to *next. */
static const char *in_file_order(const MtcTensor *tensor, const char *bytes, char **next) {
    if (!mtc_is_permuted(tensor))
        return bytes;
    const char *permuted = *next;
    mtc_to_file(tensor, bytes, *next);
    *next += mtc_tensor_bytes(tensor);
    return permuted;
}

/* Weights, buffers, then states; how many, in *count. */
static int describe_blobs(MtcFault *fault, const MtcModel *model, const MtcKept *kept, const char *copy, char *permuted,
                          MtcBlob *blob, int *count) {
    int code = 0;
    for (int role = MTC_WEIGHT; role <= MTC_STATE; role++)
        for (int i = 0; i < model->tensors && !code; i++) {
            const MtcTensor *tensor = &model->tensor[i];
            if (tensor->role != (MtcRole)role)
                continue;
            const char *bytes = mtc_kept_at(kept, copy, tensor->offset);
            code = check_finite(fault, model, tensor, bytes);
            describe_blob(&blob[(*count)++], tensor, in_file_order(tensor, bytes, &permuted));
        }
    return code;
}

int mtc_checkpoint_write(MtcFault *fault, const MtcModel *model, const char *path, const char *base,
                         const char *metadata, const MtcKept *kept, const char *copy) {
    int count = 0;
    MtcBlob *blob = (MtcBlob *)calloc((size_t)model->tensors + 1, sizeof *blob);
    char *permuted = reserve_permuted(model);
    int code = blob && permuted ? describe_blobs(fault, model, kept, copy, permuted, blob, &count)
                                : mtc_no_memory(fault, kept->bytes, path);
    mtc_range_begin("write checkpoint");
    if (!code)
        code = mtc_archive_write(fault, path, base, metadata, blob, count);
    mtc_range_end();
    free(permuted);
    free(blob);
    return code;
}

typedef struct Saving {
    MtcSession *session;
    const char *path;
} Saving;

static int save_checkpoint(void *context) {
    MtcSession *session = ((const Saving *)context)->session;
    const char *path = ((const Saving *)context)->path;
    MtcText metadata = {NULL, 0, 0};
    MtcKept kept;
    int code = mtc_kept_ranges(&session->fault, session->model, &kept);
    char *copy = (char *)malloc(kept.bytes + 1);
    if (!code && !copy)
        code = mtc_no_memory(&session->fault, kept.bytes, path);
    if (!code)
        code = mtc_download_kept(session, &kept, copy);
    mtc_checkpoint_metadata(&metadata, session);
    if (!code)
        code = mtc_checkpoint_write(&session->fault, session->model, path, NULL, metadata.at, &kept, copy);
    free(metadata.at);
    free(copy);
    free(kept.range);
    return code;
}

int mtc_save(MtcSession *session, const char *path) {
    Saving saving = {session, path};
    int code = mtc_enter(session);
    return code ? code : mtc_guard(&session->fault, save_checkpoint, &saving);
}
