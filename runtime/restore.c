/* A checkpoint becomes the state of a session. */
#include "checkpoint.h"
#include "finite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- does it fit the model? ---- */

static bool same_shape(const MtcTensor *tensor, const MtcBlob *blob) {
    return tensor->rank == blob->rank && memcmp(tensor->dim, blob->dim, (size_t)blob->rank * sizeof *blob->dim) == 0;
}

/* A double program takes the weights of a single one. */
static bool same_type(const MtcTensor *tensor, const MtcBlob *blob) {
    return strcmp(mtc_dtype(tensor->type), blob->dtype) == 0 ||
           (tensor->type == MTC_F64 && strcmp(blob->dtype, "F32") == 0);
}

static bool fits(const MtcTensor *tensor, const MtcBlob *blob) {
    return blob && same_shape(tensor, blob) && same_type(tensor, blob);
}

/* States that are copies of weights serve evaluations: they are taken where there are any. */
static bool is_optional(const MtcCheckpoint *checkpoint, const MtcTensor *tensor, MtcTake take) {
    if (tensor->role == MTC_BUFFER) /* measured over the training data, where a file has none */
        return !checkpoint->ours && take == MTC_TAKE_INITIAL;
    return tensor->role == MTC_STATE && tensor->init == MTC_COPY && take == MTC_TAKE_LOAD;
}

static bool is_wanted(const MtcCheckpoint *checkpoint, const MtcTensor *tensor, MtcTake take) {
    return tensor->role == MTC_WEIGHT || tensor->role == MTC_BUFFER ||
           (tensor->role == MTC_STATE && (take == MTC_TAKE_ALL || is_optional(checkpoint, tensor, take)));
}

/* Of the tensors in a file of ours, those behind the weights are states, known to this model or not. */
static bool is_expected(const MtcCheckpoint *checkpoint, const MtcModel *model, int blob, MtcTake take) {
    const MtcTensor *tensor = mtc_find_tensor(model, checkpoint->archive.blob[blob].name);
    if (checkpoint->ours && take != MTC_TAKE_ALL && blob >= checkpoint->weights)
        return true;
    return tensor && tensor->role != MTC_VALUE && (checkpoint->ours || tensor->role != MTC_STATE);
}

enum { LISTED_MOST = 12 }; /* differences named in one message */

/* Differences between file and model, one a line; how many there are. */
typedef struct Differences {
    MtcText text;
    int count;
} Differences;

static void add_difference(Differences *differences, const char *name, const char *what) {
    if (differences->count++ < LISTED_MOST)
        mtc_text_add(&differences->text, "\n  %s: %s", name, what);
    else if (differences->count == LISTED_MOST + 1)
        mtc_text_add(&differences->text, "\n  and more");
}

static void compare_tensors(const MtcCheckpoint *checkpoint, const MtcModel *model, MtcTake take,
                            Differences *differences) {
    char what[400];
    for (int i = 0; i < model->tensors; i++) {
        const MtcTensor *tensor = &model->tensor[i];
        const MtcBlob *blob = mtc_archive_find(&checkpoint->archive, tensor->name);
        if (!is_wanted(checkpoint, tensor, take) || fits(tensor, blob) ||
            (!blob && is_optional(checkpoint, tensor, take)))
            continue;
        snprintf(what, sizeof what, "expected %s of type %s, found %s of type %s", mtc_shape(tensor->rank, tensor->dim),
                 mtc_dtype(tensor->type), blob ? mtc_shape(blob->rank, blob->dim) : "", blob ? blob->dtype : "");
        add_difference(differences, tensor->name, blob ? what : "is missing");
    }
    for (int i = 0; i < checkpoint->archive.count; i++)
        if (!is_expected(checkpoint, model, i, take))
            add_difference(differences, checkpoint->archive.blob[i].name,
                           take == MTC_TAKE_ALL ? "is nothing that this model has" : "is no weight of this model");
}

static int check_tensors(MtcFault *fault, const MtcCheckpoint *checkpoint, const MtcModel *model, MtcTake take,
                         bool partial, MtcText *notes) {
    Differences differences = {{NULL, 0, 0}, 0};
    const char *name = mtc_checkpoint_text(checkpoint, "model");
    compare_tensors(checkpoint, model, take, &differences);
    if (differences.count && !partial) {
        mtc_fail(fault, MTC_BAD_DATA, "%s: does not hold the weights of this model%s", checkpoint->path,
                 differences.text.at);
        if (take == MTC_TAKE_ALL && !checkpoint->ours)
            mtc_note(fault, "it is no checkpoint of a training: --init-from begins one with its weights");
        else if (take != MTC_TAKE_LOAD)
            mtc_note(fault, "--partial takes what fits");
        if (name && strcmp(name, model->name) != 0)
            mtc_note(fault, "it is a checkpoint of '%s', and this is '%s'", name, model->name);
    } else if (differences.count)
        mtc_text_add(notes, "  not taken, or not found:%s\n", differences.text.at);
    free(differences.text.at);
    return differences.count && !partial ? fault->code : 0;
}

static int check_hash(MtcFault *fault, const MtcCheckpoint *checkpoint, const MtcModel *model, MtcTake take,
                      bool partial, MtcText *notes) {
    const char *hash = mtc_checkpoint_text(checkpoint, "model_hash");
    if (!checkpoint->ours) {
        if (take == MTC_TAKE_ALL && !partial)
            return mtc_fail(fault, MTC_BAD_DATA,
                            "%s: says nothing about where a training stands\n  begin with its weights: --init-from %s",
                            checkpoint->path, checkpoint->path);
        return 0;
    }
    if (hash && strcmp(hash, model->model_hash) == 0)
        return 0;
    if (take != MTC_TAKE_ALL || partial) {
        mtc_text_add(notes, "  the model's text has changed since: its hash was %s, and is %s\n",
                     hash ? hash : "unknown", model->model_hash);
        return 0;
    }
    mtc_fail(fault, MTC_BAD_DATA, "%s: the model's text has changed since: its hash was %s, and is %s",
             checkpoint->path, hash ? hash : "unknown", model->model_hash);
    mtc_note(fault, "--partial goes on all the same; --init-from begins anew with its weights");
    return fault->code;
}

static int check_blobs_finite(MtcFault *fault, const MtcCheckpoint *checkpoint, const MtcModel *model) {
    for (int i = 0; i < model->tensors; i++) {
        const MtcTensor *tensor = &model->tensor[i];
        const MtcBlob *blob = mtc_archive_find(&checkpoint->archive, tensor->name);
        if ((tensor->role != MTC_WEIGHT && tensor->role != MTC_BUFFER) || !fits(tensor, blob))
            continue;
        bool narrow = tensor->type == MTC_F64 && strcmp(blob->dtype, "F32") == 0;
        MtcBadNumber bad =
            mtc_find_bad(narrow ? MTC_F32 : tensor->type, blob->bytes, mtc_elements(tensor->rank, tensor->dim));
        if (bad.found)
            return mtc_fail(fault, MTC_BAD_DATA, "%s: '%s' is not finite: %s", checkpoint->path, tensor->name,
                            mtc_bad_text(&bad, tensor->rank, tensor->dim));
    }
    return 0;
}

/* ---- taking it ---- */

static int take_tensor(MtcSession *session, const MtcTensor *tensor, const MtcBlob *blob) {
    size_t bytes = mtc_tensor_bytes(tensor);
    if (blob->size == bytes)
        return mtc_write_tensor(session, tensor, blob->bytes);
    double *wide = (double *)malloc(bytes);
    if (!wide)
        return mtc_no_memory(&session->fault, bytes, tensor->name);
    for (size_t i = 0; i < bytes / sizeof *wide; i++) {
        float value; /* the file's data need not be aligned */
        memcpy(&value, (const char *)blob->bytes + i * sizeof value, sizeof value);
        wide[i] = (double)value;
    }
    int code = mtc_write_tensor(session, tensor, wide);
    free(wide);
    return code;
}

/* The tensors with one of the roles [first, last] that fit; taken: how many of each role. */
static int take_roles(MtcSession *session, const MtcCheckpoint *checkpoint, MtcTake take, MtcRole first, MtcRole last,
                      int taken[MTC_VALUE]) {
    const MtcModel *model = session->model;
    int code = 0;
    for (int i = 0; i < model->tensors && !code; i++) {
        const MtcTensor *tensor = &model->tensor[i];
        const MtcBlob *blob = mtc_archive_find(&checkpoint->archive, tensor->name);
        if (tensor->role < first || tensor->role > last || !is_wanted(checkpoint, tensor, take) || !fits(tensor, blob))
            continue;
        code = take_tensor(session, tensor, blob);
        taken[tensor->role]++;
    }
    return code;
}

/* States that the file lacks and that are copies of weights become copies of those that were taken. */
static int take_tensors(MtcSession *session, const MtcCheckpoint *checkpoint, MtcTake take, int taken[MTC_VALUE]) {
    int code = take_roles(session, checkpoint, take, MTC_WEIGHT, MTC_BUFFER, taken);
    if (!code)
        code = mtc_copy_states(session);
    return code ? code : take_roles(session, checkpoint, take, MTC_STATE, MTC_STATE, taken);
}

static int take_params(MtcSession *session, const MtcCheckpoint *checkpoint) {
    const MtcModel *model = session->model;
    int code = 0;
    for (int i = 0; i < model->knobs && !code; i++) {
        char key[128];
        double value;
        snprintf(key, sizeof key, "param.%s", model->knob[i].name);
        if (!mtc_checkpoint_text(checkpoint, key))
            continue;
        code = mtc_checkpoint_number(&session->fault, checkpoint, key, &value);
        if (!code)
            code = mtc_set_knob(session, model->knob[i].name, value);
    }
    return code;
}

static int take_training(MtcSession *session, const MtcCheckpoint *checkpoint) {
    MtcFault *fault = &session->fault;
    int code = mtc_checkpoint_position(fault, checkpoint, &session->at);
    if (!code)
        code = mtc_checkpoint_record(fault, checkpoint, session->model, &session->record);
    if (!code)
        code = mtc_checkpoint_data(fault, checkpoint, &session->resumed_examples, &session->resumed_hash);
    if (!code)
        code = take_params(session, checkpoint);
    session->seed = checkpoint->seed;
    session->resumed = !code;
    session->orders = 0;
    return code;
}

static bool same_words(const MtcMeaning *a, const MtcMeaning *b) {
    bool same = a->words == b->words;
    for (int k = 0; k < a->words && same; k++)
        same = strcmp(a->word[k], b->word[k]) == 0;
    return same;
}

/* Data sets that are there already have labels by the words of their time. */
static int check_words(MtcSession *session, const MtcCheckpoint *checkpoint, const MtcEncoding *encoding) {
    bool loaded = false;
    for (int which = 0; which < MTC_SPLITS; which++)
        loaded |= session->data[which].examples > 0;
    for (int i = 0; i < session->model->fields && loaded && session->encoding.known; i++)
        if (!same_words(&encoding->field[i], &session->encoding.field[i]))
            return mtc_fail(
                &session->fault, MTC_USAGE,
                "%s: has other words for the field '%s' than the data that were loaded: load it before them",
                checkpoint->path, session->model->field[i].name);
    return 0;
}

/* Where the file says nothing, what is known stays. */
static int take_encoding(MtcSession *session, const MtcCheckpoint *checkpoint) {
    MtcEncoding encoding;
    int code = mtc_checkpoint_encoding(&session->fault, checkpoint, session->model, &encoding);
    if (code || !encoding.known)
        return code;
    code = check_words(session, checkpoint, &encoding);
    mtc_encoding_free(code ? &encoding : &session->encoding);
    if (!code)
        session->encoding = encoding;
    return code;
}

static void add_number_of(MtcText *text, const char *before, int count, const char *what) {
    if (count)
        mtc_text_add(text, "%s%d %s%s", before, count, what, count == 1 ? "" : "s");
}

static void add_taken(MtcText *notes, const MtcSession *session, const MtcCheckpoint *checkpoint, MtcTake take,
                      const int taken[MTC_VALUE]) {
    MtcText text = {NULL, 0, 0};
    mtc_text_add(&text, "%s %s", take == MTC_TAKE_ALL ? "resumed from" : "weights from", checkpoint->path);
    add_number_of(&text, ": ", taken[MTC_WEIGHT], "weight");
    add_number_of(&text, ", ", taken[MTC_BUFFER], "buffer");
    add_number_of(&text, ", ", taken[MTC_STATE], "optimizer state");
    if (take == MTC_TAKE_ALL && checkpoint->ours)
        mtc_text_add(&text, "; step %lld, epoch %lld", (long long)session->at.step, (long long)session->at.epoch + 1);
    mtc_text_add(&text, "\n%s", notes->at ? notes->at : "");
    free(notes->at);
    *notes = text;
}

int mtc_checkpoint_apply(MtcSession *session, const MtcCheckpoint *checkpoint, MtcTake take, bool partial,
                         MtcText *result) {
    const MtcModel *model = session->model;
    MtcFault *fault = &session->fault;
    MtcText notes = {NULL, 0, 0};
    int taken[MTC_VALUE] = {0};
    int code = check_tensors(fault, checkpoint, model, take, partial, &notes);
    if (!code)
        code = check_hash(fault, checkpoint, model, take, partial, &notes);
    if (!code && take != MTC_TAKE_LOAD)
        code = check_blobs_finite(fault, checkpoint, model);
    if (!code)
        code = take_encoding(session, checkpoint);
    if (!code)
        code = take_tensors(session, checkpoint, take, taken);
    if (!code && checkpoint->ours)
        session->split_seed = checkpoint->split_seed;
    if (!code && checkpoint->ours && take == MTC_TAKE_ALL)
        code = take_training(session, checkpoint);
    session->measured |= !code && taken[MTC_BUFFER] > 0 && taken[MTC_BUFFER] == mtc_count_tensors(model, MTC_BUFFER);
    add_taken(&notes, session, checkpoint, take, taken);
    if (result)
        mtc_text_add(result, "%s", notes.at);
    free(notes.at);
    return code;
}

int mtc_check_resumed(MtcSession *session, bool partial, MtcText *notes) {
    const int64_t examples = session->data[MTC_TRAIN].examples, before = session->resumed_examples;
    bool same = !before || (before == examples && session->resumed_hash == session->train_hash);
    if (!session->resumed || (same && session->at.epoch_step < mtc_batches(session, &session->data[MTC_TRAIN])))
        return 0;
    if (!partial) {
        mtc_fail(&session->fault, MTC_BAD_DATA,
                 "the training data are not those of the checkpoint: it has seen %lld examples, and there are %lld%s",
                 (long long)before, (long long)examples, before == examples ? " others" : "");
        mtc_note(&session->fault, "--partial goes on with them; --init-from begins anew with the weights");
        return session->fault.code;
    }
    mtc_text_add(notes, "  other training data: %lld examples, there were %lld; an epoch begins\n", (long long)examples,
                 (long long)before);
    session->at.epoch_step = 0;
    session->resumed = false;
    return 0;
}

/* ---- the C ABI ---- */

static int take_file(MtcSession *session, const char *path, MtcTake take) {
    MtcCheckpoint checkpoint;
    int code = mtc_checkpoint_open(&session->fault, path, &checkpoint);
    if (!code)
        code = mtc_checkpoint_apply(session, &checkpoint, take, false, NULL);
    mtc_checkpoint_close(&checkpoint);
    return code;
}

int mtc_load(MtcSession *session, const char *path) {
    return take_file(session, path, MTC_TAKE_LOAD);
}

int mtc_resume(MtcSession *session, const char *path) {
    return take_file(session, path, MTC_TAKE_ALL);
}
