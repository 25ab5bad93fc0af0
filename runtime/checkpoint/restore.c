/* A checkpoint becomes the state of a session. */
#include "checkpoint/checkpoint.h"
#include "session/finite.h"
#include "session/init.h"
#include "session/weights.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- does it fit the model? ---- */

static bool same_shape(const MtcTensor *tensor, const MtcBlob *blob) {
    int64_t dim[8];
    mtc_file_dim(tensor, dim);
    return tensor->rank == blob->rank && memcmp(dim, blob->dim, (size_t)blob->rank * sizeof *dim) == 0;
}

/* Weights and buffers take floats of any width; states, with which a training goes on to the bit, none that are wider. */
static bool same_type(const MtcTensor *tensor, const MtcBlob *blob) {
    static const char *const floats[] = {"BF16", "F16", "F32", "F64"};
    const int most = tensor->type == MTC_F64 || (tensor->type == MTC_F32 && mtc_is_kept(tensor)) ? 4
                     : tensor->type == MTC_F32                                                   ? 2
                                                                                                 : 0;
    bool same = strcmp(mtc_dtype(tensor->type), blob->dtype) == 0;
    for (int i = 0; i < most && !same; i++)
        same = strcmp(floats[i], blob->dtype) == 0;
    return same;
}

bool mtc_blob_fits(const MtcTensor *tensor, const MtcBlob *blob) {
    return blob && same_shape(tensor, blob) && same_type(tensor, blob);
}

void mtc_misfit_text(const MtcTensor *tensor, const MtcBlob *blob, char *text, size_t size) {
    if (!blob)
        snprintf(text, size, "is missing");
    else
        snprintf(text, size, "expected %s of type %s, found %s of type %s", mtc_tensor_shape(tensor),
                 mtc_dtype(tensor->type), mtc_shape(blob->rank, blob->dim), blob->dtype);
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

/* The length of the layer's name that a weight's or buffer's begins with, or of the weight's that a state's does; 0: none. */
static size_t owner_length(const MtcTensor *tensor) {
    const char *dot = strrchr(tensor->name, '.');
    return dot ? (size_t)(dot - tensor->name) : 0;
}

/* A layer is taken whole: a bias that was learned with another weight says nothing. So what keeps a tensor from being taken is one
 * of its layer that the file has in another shape; and what keeps a state from it is its weight. NULL: nothing does. */
static const MtcTensor *held_by(const MtcCheckpoint *checkpoint, const MtcModel *model, const MtcTensor *tensor) {
    const size_t length = owner_length(tensor);
    const bool state = tensor->role == MTC_STATE;
    for (int i = 0; i < model->tensors && length; i++) {
        const MtcTensor *other = &model->tensor[i];
        const size_t end = state ? strlen(other->name) : owner_length(other);
        if (!mtc_is_kept(other) || other == tensor || end != length || strncmp(other->name, tensor->name, length) != 0)
            continue;
        const MtcBlob *blob = mtc_archive_find(&checkpoint->archive, other->name);
        if ((blob && !mtc_blob_fits(other, blob)) || (state && held_by(checkpoint, model, other)))
            return other;
    }
    return NULL;
}

static bool is_taken(const MtcCheckpoint *checkpoint, const MtcModel *model, const MtcTensor *tensor, MtcTake take) {
    return is_wanted(checkpoint, tensor, take) &&
           mtc_blob_fits(tensor, mtc_archive_find(&checkpoint->archive, tensor->name)) &&
           !held_by(checkpoint, model, tensor);
}

bool mtc_checkpoint_gives_all(const MtcCheckpoint *checkpoint, const MtcModel *model, MtcTake take) {
    bool all = true;
    for (int i = 0; i < model->tensors && all; i++)
        all = !mtc_is_drawn(&model->tensor[i]) || is_taken(checkpoint, model, &model->tensor[i], take);
    return all;
}

/* Of the tensors in a file of ours, those behind the weights are states, known to this model or not. */
static bool is_expected(const MtcCheckpoint *checkpoint, const MtcModel *model, int blob, MtcTake take) {
    const MtcTensor *tensor = mtc_find_tensor(model, checkpoint->archive.blob[blob].name);
    if (!checkpoint->ours && !tensor && mtc_needless(&checkpoint->archive.blob[blob]))
        return true;
    if (checkpoint->ours && take != MTC_TAKE_ALL && blob >= checkpoint->weights)
        return true;
    return tensor && tensor->role != MTC_VALUE && (checkpoint->ours || tensor->role != MTC_STATE);
}

/* Differences between file and model, by kind: the first of each, one a line, and how many there are. HELD: it would fit, but
 * its layer does not. */
enum { LISTED_MOST = 5 };
typedef enum Difference { DIFF_MISSING, DIFF_UNEXPECTED, DIFF_OTHER, DIFF_HELD, DIFF_KINDS } Difference;
typedef struct Differences {
    bool all; /* each is listed */
    MtcText text[DIFF_KINDS];
    int count[DIFF_KINDS];
} Differences;

static int count_differences(const Differences *differences) {
    int count = 0;
    for (int kind = 0; kind < DIFF_KINDS; kind++)
        count += differences->count[kind];
    return count;
}

static void free_differences(Differences *differences) {
    for (int kind = 0; kind < DIFF_KINDS; kind++)
        free(differences->text[kind].at);
}

static void add_difference(Differences *differences, Difference kind, const char *name, const char *what) {
    if (differences->count[kind]++ < LISTED_MOST || differences->all)
        mtc_text_add(&differences->text[kind], "\n  %.120s: %s", name, what);
}

/* "2 missing, 1 unexpected", then a line for each of some. */
static char *differences_text(const Differences *differences) {
    static const char *const kinds[] = {"missing", "unexpected", "different", "of a layer that differs"};
    MtcText text = {NULL, 0, 0};
    for (int kind = 0; kind < DIFF_KINDS; kind++)
        if (differences->count[kind])
            mtc_text_add(&text, "%s%d %s", text.length ? ", " : "", differences->count[kind], kinds[kind]);
    for (int kind = 0; kind < DIFF_KINDS; kind++) {
        if (differences->count[kind])
            mtc_text_add(&text, "%s", differences->text[kind].at);
        if (differences->count[kind] > LISTED_MOST && !differences->all)
            mtc_text_add(&text, "\n  and %d more that are %s", differences->count[kind] - LISTED_MOST, kinds[kind]);
    }
    return text.at;
}

static void compare_tensors(const MtcCheckpoint *checkpoint, const MtcModel *model, MtcTake take,
                            Differences *differences) {
    char what[400];
    for (int i = 0; i < model->tensors; i++) {
        const MtcTensor *tensor = &model->tensor[i];
        const MtcBlob *blob = mtc_archive_find(&checkpoint->archive, tensor->name);
        const MtcTensor *holder = differences->all ? held_by(checkpoint, model, tensor) : NULL;
        if (!is_wanted(checkpoint, tensor, take) || (mtc_blob_fits(tensor, blob) && !holder) ||
            (!blob && is_optional(checkpoint, tensor, take)))
            continue;
        if (mtc_blob_fits(tensor, blob)) {
            snprintf(what, sizeof what, "is left out, for '%.120s' does not fit", holder->name);
            add_difference(differences, DIFF_HELD, tensor->name, what);
            continue;
        }
        mtc_misfit_text(tensor, blob, what, sizeof what);
        add_difference(differences, blob ? DIFF_OTHER : DIFF_MISSING, tensor->name, what);
    }
    for (int i = 0; i < checkpoint->archive.count; i++)
        if (!is_expected(checkpoint, model, i, take))
            add_difference(differences, DIFF_UNEXPECTED, checkpoint->archive.blob[i].name,
                           mtc_unexpected_text(model, checkpoint->archive.blob[i].name, take));
}

static int count_fitting(const MtcCheckpoint *checkpoint, const MtcModel *model, MtcTake take) {
    int fit = 0;
    for (int i = 0; i < model->tensors; i++)
        fit += is_taken(checkpoint, model, &model->tensor[i], take);
    return fit;
}

/* Whatever is missing is a state: of another optimizer, or an average of weights. */
static bool weights_fit(const MtcCheckpoint *checkpoint, const MtcModel *model) {
    Differences differences;
    memset(&differences, 0, sizeof differences);
    compare_tensors(checkpoint, model, MTC_TAKE_INITIAL, &differences);
    const bool fit = count_differences(&differences) == 0;
    free_differences(&differences);
    return fit;
}

/* What else can be done with the file. */
static void note_other_ways(MtcSession *session, const MtcCheckpoint *checkpoint, MtcTake take, bool partial) {
    const MtcModel *model = session->model;
    const bool foreign = take == MTC_TAKE_ALL && !checkpoint->ours;
    if (foreign)
        mtc_note_ways(session, "it is no checkpoint of a training: --init-from begins one with its weights");
    else if (take == MTC_TAKE_ALL && weights_fit(checkpoint, model))
        mtc_note_ways(session, "its weights fit: --init-from begins a training with them");
    if (!foreign && session->program && take != MTC_TAKE_LOAD && !partial && count_fitting(checkpoint, model, take))
        mtc_note(&session->fault, "--partial takes what fits");
}

static int refuse_tensors(MtcSession *session, const MtcCheckpoint *checkpoint, MtcTake take, bool partial,
                          const char *differences) {
    MtcFault *fault = &session->fault;
    const MtcModel *model = session->model;
    const char *name = mtc_checkpoint_text(checkpoint, "model");
    if (partial)
        mtc_fail(fault, MTC_BAD_DATA, "nothing of %s fits this model: %s", checkpoint->path, differences);
    else
        mtc_fail(fault, MTC_BAD_DATA, "%s: does not hold the %s of this model: %s", checkpoint->path,
                 take == MTC_TAKE_ALL && weights_fit(checkpoint, model) ? "states" : "weights", differences);
    mtc_note_prefix(fault, checkpoint, model);
    if (take == MTC_TAKE_ALL)
        mtc_note_precision(fault, checkpoint, model);
    mtc_note_quantized(fault, checkpoint, model, session->program);
    mtc_note_params(session, checkpoint);
    note_other_ways(session, checkpoint, take, partial);
    if (name && strcmp(name, model->name) != 0)
        mtc_note(fault, "it is a checkpoint of '%s', and this is '%s'", name, model->name);
    return fault->code;
}

/* "  taken: conv1.weight, bn1.weight, ...", in lines of some hundred characters. */
static void add_taken_names(MtcText *notes, const MtcCheckpoint *checkpoint, const MtcModel *model, MtcTake take) {
    const size_t width = 100;
    size_t begin = notes->length;
    const char *before = "  taken: ";
    for (int i = 0; i < model->tensors; i++) {
        if (!is_taken(checkpoint, model, &model->tensor[i], take))
            continue;
        const bool full = notes->length - begin + strlen(model->tensor[i].name) > width;
        mtc_text_add(notes, "%s", before[0] != ',' ? before : full ? ",\n    " : ", ");
        begin = full && before[0] == ',' ? notes->length : begin;
        mtc_text_add(notes, "%.120s", model->tensor[i].name);
        before = ", ";
    }
    mtc_text_add(notes, "\n");
}

static int check_tensors(MtcSession *session, const MtcCheckpoint *checkpoint, MtcTake take, bool partial,
                         MtcText *notes) {
    const MtcModel *model = session->model;
    Differences differences;
    int code = 0;
    memset(&differences, 0, sizeof differences);
    differences.all = partial;
    compare_tensors(checkpoint, model, take, &differences);
    if (count_differences(&differences)) {
        char *text = differences_text(&differences);
        if (!partial || count_fitting(checkpoint, model, take) == 0)
            code = refuse_tensors(session, checkpoint, take, partial, text);
        else {
            mtc_text_add(notes, "  not taken, or not found: %s\n", text);
            add_taken_names(notes, checkpoint, model, take);
        }
        free(text);
    }
    free_differences(&differences);
    return code;
}

static int check_hash(MtcSession *session, const MtcCheckpoint *checkpoint, MtcTake take, bool partial,
                      MtcText *notes) {
    MtcFault *fault = &session->fault;
    const MtcModel *model = session->model;
    const char *hash = mtc_checkpoint_text(checkpoint, "model_hash");
    if (!checkpoint->ours) {
        if (take != MTC_TAKE_ALL || partial)
            return 0;
        mtc_fail(fault, MTC_BAD_DATA, "%s: says nothing about where a training stands", checkpoint->path);
        if (session->program)
            mtc_note(fault, "begin with its weights: --init-from %s", checkpoint->path);
        else
            mtc_note_ways(session, NULL);
        return fault->code;
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
    mtc_note_params(session, checkpoint);
    mtc_note_ways(session, "--partial goes on all the same; --init-from begins anew with its weights");
    return fault->code;
}

static int check_blob_finite(MtcFault *fault, const char *path, const MtcTensor *tensor, const MtcBlob *blob) {
    const bool as_it_lies = strcmp(mtc_dtype(tensor->type), blob->dtype) == 0;
    void *converted = as_it_lies ? NULL : mtc_blob_values(fault, tensor, blob);
    if (!as_it_lies && !converted)
        return fault->code;
    MtcBadNumber bad =
        mtc_find_bad(tensor->type, as_it_lies ? blob->bytes : converted, mtc_elements(blob->rank, blob->dim));
    free(converted);
    return bad.found ? mtc_fail(fault, MTC_BAD_DATA, "%s: '%s' is not finite: %s", path, tensor->name,
                                mtc_bad_text(&bad, blob->rank, blob->dim))
                     : 0;
}

static int check_blobs_finite(MtcFault *fault, const MtcCheckpoint *checkpoint, const MtcModel *model) {
    int code = 0;
    for (int i = 0; i < model->tensors && !code; i++) {
        const MtcTensor *tensor = &model->tensor[i];
        const MtcBlob *blob = mtc_archive_find(&checkpoint->archive, tensor->name);
        if (mtc_is_kept(tensor) && mtc_blob_fits(tensor, blob))
            code = check_blob_finite(fault, checkpoint->path, tensor, blob);
    }
    return code;
}

/* ---- taking it ---- */

static int take_tensor(MtcSession *session, const MtcTensor *tensor, const MtcBlob *blob) {
    if (strcmp(mtc_dtype(tensor->type), blob->dtype) == 0)
        return mtc_write_file_values(session, tensor, blob->bytes);
    void *values = mtc_blob_values(&session->fault, tensor, blob);
    int code = values ? mtc_write_file_values(session, tensor, values) : session->fault.code;
    free(values);
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
        if (tensor->role < first || tensor->role > last || !is_taken(checkpoint, model, tensor, take))
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

/* What else a file of ours says, read before anything is taken. */
typedef struct CheckpointRest {
    MtcEncoding encoding;
    MtcPosition at;
    MtcRecord record;
    int64_t examples;
    uint64_t hash;
} CheckpointRest;

/* Of a text that took more, or of another; with the cure. */
static int wrong_param(MtcSession *session, const MtcCheckpoint *checkpoint, const char *name) {
    char why[1024];
    snprintf(why, sizeof why, "%.*s", (int)sizeof why - 1, session->fault.text);
    mtc_fail(&session->fault, MTC_BAD_DATA, "%s: was trained with another param than this program takes: %s",
             checkpoint->path, why);
    mtc_note(&session->fault, session->program ? "--%s NUMBER gives another one" : "set '%s' before", name);
    return session->fault.code;
}

/* What goes on with a training has all of its params, unless a command line says otherwise. What asks what was trained has those that
 * evaluation computes with, unless they were set; a training that begins with the weights has its own. */
static bool wants_param(const MtcSession *session, int index, MtcTake take) {
    const bool given = session->knob_given[index];
    return take == MTC_TAKE_ALL    ? !given || !session->program
           : take == MTC_TAKE_LOAD ? !given && session->model->knob[index].evaluated
                                   : false;
}

static int take_param(MtcSession *session, const MtcCheckpoint *checkpoint, int index) {
    const char *name = session->model->knob[index].name;
    char key[128];
    double value;
    snprintf(key, sizeof key, "param.%s", name);
    if (!mtc_checkpoint_text(checkpoint, key))
        return 0;
    int code = mtc_checkpoint_number(&session->fault, checkpoint, key, &value);
    return code || !mtc_put_knob(session, index, value) ? code : wrong_param(session, checkpoint, name);
}

/* All or none. */
static int take_params(MtcSession *session, const MtcCheckpoint *checkpoint, MtcTake take) {
    double before[MTC_MAX_KNOBS];
    int code = 0;
    memcpy(before, session->knob, sizeof before);
    for (int i = 0; i < session->model->knobs && checkpoint->ours && !code; i++)
        if (wants_param(session, i, take))
            code = take_param(session, checkpoint, i);
    if (code)
        memcpy(session->knob, before, sizeof before);
    else if (take == MTC_TAKE_ALL && !session->program)
        memset(session->knob_given, 0, sizeof session->knob_given);
    return code;
}

static int read_checkpoint_training(MtcSession *session, const MtcCheckpoint *checkpoint, CheckpointRest *rest) {
    MtcFault *fault = &session->fault;
    int code = mtc_checkpoint_position(fault, checkpoint, &rest->at);
    if (!code)
        code = mtc_checkpoint_record(fault, checkpoint, session->model, &rest->record);
    return code ? code : mtc_checkpoint_data(fault, checkpoint, &rest->examples, &rest->hash);
}

static void take_training(MtcSession *session, const MtcCheckpoint *checkpoint, const CheckpointRest *rest) {
    session->at = rest->at;
    session->record = rest->record;
    session->resumed_examples = rest->examples;
    session->resumed_hash = rest->hash;
    session->seed = checkpoint->seed;
    session->resumed = true;
    session->orders = 0;
    session->last_step = 0;
}

static bool same_words(const MtcMeaning *a, const MtcMeaning *b) {
    bool same = a->words == b->words && !a->tokenizer == !b->tokenizer && a->digest == b->digest;
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

/* Everything but the tensors. Params are set at last: what comes after them cannot be the file's fault. */
static int read_checkpoint_rest(MtcSession *session, const MtcCheckpoint *checkpoint, MtcTake take,
                                CheckpointRest *rest) {
    const bool training = checkpoint->ours && take == MTC_TAKE_ALL;
    int code = mtc_checkpoint_encoding(&session->fault, checkpoint, session->model, &rest->encoding);
    if (!code && rest->encoding.known)
        code = check_words(session, checkpoint, &rest->encoding);
    if (!code && training)
        code = read_checkpoint_training(session, checkpoint, rest);
    return code ? code : take_params(session, checkpoint, take);
}

/* Where the file says nothing, what is known stays. */
static void take_encoding(MtcSession *session, MtcEncoding *encoding) {
    if (!encoding->known)
        return;
    mtc_encoding_free(&session->encoding);
    session->encoding = *encoding;
    memset(encoding, 0, sizeof *encoding);
}

/* What made the weights, where only they are taken; 0: the file does not say. */
static int64_t steps_behind(const MtcCheckpoint *checkpoint) {
    const char *text = mtc_checkpoint_text(checkpoint, "step");
    return checkpoint->ours && text ? strtoll(text, NULL, 10) : 0;
}

static void add_number_of(MtcText *text, const char *before, int count, const char *what) {
    if (count || before[0] == ':') /* the first of them always */
        mtc_text_add(text, "%s%d %s%s", before, count, what, count == 1 ? "" : "s");
}

/* "; 12 causal masks left out" */
static void add_needless(MtcText *text, const MtcCheckpoint *checkpoint) {
    const char *what = NULL;
    int count = 0;
    for (int i = 0; i < checkpoint->archive.count && !checkpoint->ours; i++)
        if (mtc_needless(&checkpoint->archive.blob[i])) {
            what = mtc_needless(&checkpoint->archive.blob[i]);
            count++;
        }
    if (count)
        mtc_text_add(text, "; %d %s left out", count, what);
}

static void add_taken(MtcText *notes, const MtcSession *session, const MtcCheckpoint *checkpoint, MtcTake take,
                      const int taken[MTC_VALUE]) {
    MtcText text = {NULL, 0, 0};
    mtc_text_add(&text, "%s %s", take == MTC_TAKE_ALL ? "resumed from" : "weights from", checkpoint->path);
    add_number_of(&text, ": ", taken[MTC_WEIGHT], "weight");
    add_number_of(&text, ", ", taken[MTC_BUFFER], "buffer");
    add_number_of(&text, ", ", taken[MTC_STATE], "optimizer state");
    add_needless(&text, checkpoint);
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
    const bool training = checkpoint->ours && take == MTC_TAKE_ALL;
    int taken[MTC_VALUE] = {0};
    CheckpointRest rest;
    memset(&rest, 0, sizeof rest);
    int code = check_tensors(session, checkpoint, take, partial, &notes);
    if (!code)
        code = check_hash(session, checkpoint, take, partial, &notes);
    if (!code)
        code = check_blobs_finite(fault, checkpoint, model);
    if (!code)
        code = mtc_check_quantized(fault, checkpoint, model);
    if (!code)
        code = read_checkpoint_rest(session, checkpoint, take, &rest);
    if (!code)
        code = take_tensors(session, checkpoint, take, taken);
    if (!code)
        code = mtc_archive_unchanged(fault, checkpoint->path, &checkpoint->archive);
    if (!code)
        take_encoding(session, &rest.encoding);
    mtc_encoding_free(&rest.encoding);
    if (!code && checkpoint->ours)
        session->split_seed = checkpoint->split_seed;
    if (!code && training)
        take_training(session, checkpoint, &rest);
    else if (!code)
        session->learned_steps = steps_behind(checkpoint);
    session->learned |= !code && taken[MTC_WEIGHT] > 0;
    session->measured |= !code && taken[MTC_BUFFER] > 0 && taken[MTC_BUFFER] == mtc_count_tensors(model, MTC_BUFFER);
    add_taken(&notes, session, checkpoint, take, taken);
    if (result)
        mtc_text_add(result, "%s", notes.at);
    free(notes.at);
    return code;
}

/* ---- the C ABI ---- */

typedef struct Taking {
    MtcSession *session;
    const char *path;
    MtcTake take;
} Taking;

static int take_checkpoint(void *context) {
    const Taking *taking = (const Taking *)context;
    MtcCheckpoint checkpoint;
    int code = mtc_checkpoint_open(&taking->session->fault, taking->path, &checkpoint);
    if (!code)
        code = mtc_checkpoint_apply(taking->session, &checkpoint, taking->take, false, NULL);
    mtc_checkpoint_close(&checkpoint);
    return code;
}

static int take_file(MtcSession *session, const char *path, MtcTake take) {
    Taking taking = {session, path, take};
    int code = mtc_enter_idle(session);
    return code ? code : mtc_guard(&session->fault, take_checkpoint, &taking);
}

int mtc_load(MtcSession *session, const char *path) {
    return take_file(session, path, MTC_TAKE_LOAD);
}

int mtc_resume(MtcSession *session, const char *path) {
    return take_file(session, path, MTC_TAKE_ALL);
}
