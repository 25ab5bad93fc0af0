/* Tensors by name: reading, writing, saving and loading. */
#include "finite.h"
#include "safetensors.h"
#include "session.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const MtcTensor *mtc_find_tensor(const MtcModel *model, const char *name) {
    for (int i = 0; i < model->tensors; i++)
        if (strcmp(model->tensor[i].name, name) == 0)
            return &model->tensor[i];
    return NULL;
}

static int locate(MtcSession *session, const char *name, size_t bytes, const MtcTensor **tensor) {
    const MtcModel *model = session->model;
    *tensor = mtc_find_tensor(model, name);
    if (!*tensor) {
        const char **names = (const char **)malloc((size_t)(model->tensors + 1) * sizeof *names);
        for (int i = 0; names && i < model->tensors; i++)
            names[i] = model->tensor[i].name;
        const char *nearest = names ? mtc_nearest(name, names, model->tensors) : NULL;
        free(names);
        return mtc_fail(&session->fault, MTC_USAGE, "there is no tensor '%s'%s%s%s", name,
                        nearest ? "; did you mean '" : "", nearest ? nearest : "", nearest ? "'?" : "");
    }
    if (bytes != mtc_tensor_bytes(*tensor))
        return mtc_fail(&session->fault, MTC_USAGE, "tensor '%s' is %s of type %s, %zu bytes; given %zu", name,
                        mtc_shape((*tensor)->rank, (*tensor)->dim), mtc_type_name((*tensor)->type),
                        mtc_tensor_bytes(*tensor), bytes);
    return 0;
}

int mtc_read_tensor(MtcSession *session, const MtcTensor *tensor, void *values) {
    const char *error = mtc_download(values, session->arena + tensor->offset, mtc_tensor_bytes(tensor));
    return mtc_device_fault(session, error ? error : mtc_synchronize(), tensor->name);
}

int mtc_get(MtcSession *session, const char *name, void *values, size_t bytes) {
    const MtcTensor *tensor;
    int code = locate(session, name, bytes, &tensor);
    return code ? code : mtc_read_tensor(session, tensor, values);
}

int mtc_set(MtcSession *session, const char *name, const void *values, size_t bytes) {
    const MtcTensor *tensor;
    int code = locate(session, name, bytes, &tensor);
    return code ? code : mtc_device_fault(session, mtc_upload(session->arena + tensor->offset, values, bytes), name);
}

int mtc_set_knob(MtcSession *session, const char *name, double value) {
    const MtcModel *model = session->model;
    const char *names[MTC_MAX_KNOBS];
    for (int i = 0; i < model->knobs; i++) {
        const MtcKnob *knob = &model->knob[i];
        names[i] = knob->name;
        if (strcmp(knob->name, name) != 0)
            continue;
        if (knob->integer && value != floor(value))
            return mtc_fail(&session->fault, MTC_USAGE, "'%s' is an integer, not %g", name, value);
        if (knob->has_range && !(value >= knob->low && value <= knob->high))
            return mtc_fail(&session->fault, MTC_USAGE, "'%s' is from %g to %g, not %g", name, knob->low, knob->high,
                            value);
        if (!isfinite((float)value))
            return mtc_fail(&session->fault, MTC_USAGE, "'%s' is a finite float, not %g", name, value);
        session->knob[i] = (float)value;
        return 0;
    }
    const char *nearest = mtc_nearest(name, names, model->knobs);
    return mtc_fail(&session->fault, MTC_USAGE, "there is no parameter '%s'%s%s%s", name,
                    nearest ? "; did you mean '" : "", nearest ? nearest : "", nearest ? "'?" : "");
}

/* ---- saving ---- */

static void add_text(MtcText *text, const char *key, const char *value) {
    mtc_text_add(text, ",");
    mtc_text_json(text, key);
    mtc_text_add(text, ":");
    mtc_text_json(text, value);
}

static void add_number(MtcText *text, const char *key, double value) {
    char number[32];
    snprintf(number, sizeof number, "%.9g", value);
    add_text(text, key, number);
}

/* What made these weights: all strings, as the format demands. */
static void add_metadata(MtcText *text, const MtcSession *session) {
    const MtcModel *model = session->model;
    char number[32];
    mtc_text_add(text, "{\"format\":\"pt\"");
    add_text(text, "mtc.model", model->name);
    add_text(text, "mtc.model_hash", model->model_hash);
    snprintf(number, sizeof number, "%lld", (long long)session->at.step);
    add_text(text, "mtc.steps", number);
    snprintf(number, sizeof number, "%llu", (unsigned long long)session->seed);
    add_text(text, "mtc.seed", number);
    for (int i = 0; i < model->fixed; i++)
        add_number(text, model->fixed_param[i].name, model->fixed_param[i].value);
    for (int i = 0; i < model->knobs; i++)
        add_number(text, model->knob[i].name, (double)session->knob[i]);
    mtc_text_add(text, "}");
}

static int check_finite(MtcSession *session, const MtcTensor *tensor, const void *values) {
    MtcBadNumber bad = mtc_find_bad(tensor->type, values, mtc_elements(tensor->rank, tensor->dim));
    if (!bad.found)
        return 0;
    mtc_fail(&session->fault, MTC_BAD_DATA, "the weights are not saved, for '%s' is not finite: %s", tensor->name,
             mtc_bad_text(&bad, tensor->rank, tensor->dim));
    mtc_note_line(session, tensor->line);
    return session->fault.code;
}

/* Host copies of every weight, named and shaped as in the model. */
static int gather_weights(MtcSession *session, MtcBlob *blob, int *count) {
    for (int i = 0; i < session->model->tensors; i++) {
        const MtcTensor *tensor = &session->model->tensor[i];
        if (tensor->role != MTC_WEIGHT)
            continue;
        MtcBlob *b = &blob[(*count)++];
        b->name = tensor->name;
        b->dtype = mtc_dtype(tensor->type);
        b->rank = tensor->rank;
        memcpy(b->dim, tensor->dim, sizeof b->dim);
        b->size = mtc_tensor_bytes(tensor);
        void *bytes = malloc(b->size);
        b->bytes = bytes;
        if (!bytes)
            return mtc_no_memory(&session->fault, b->size, tensor->name);
        int code = mtc_read_tensor(session, tensor, bytes);
        if (!code)
            code = check_finite(session, tensor, bytes);
        if (code)
            return code;
    }
    return 0;
}

int mtc_save(MtcSession *session, const char *path) {
    MtcText metadata = {NULL, 0, 0};
    int count = 0;
    MtcBlob *blob = (MtcBlob *)calloc((size_t)session->model->tensors + 1, sizeof *blob);
    if (!blob)
        return mtc_no_memory(&session->fault, sizeof *blob, path);
    int code = gather_weights(session, blob, &count);
    add_metadata(&metadata, session);
    if (!code)
        code = mtc_archive_write(&session->fault, path, metadata.at, blob, count);
    for (int i = 0; i < count; i++)
        free((void *)blob[i].bytes);
    free(blob);
    free(metadata.at);
    return code;
}

/* ---- loading ---- */

static bool same_shape(const MtcTensor *tensor, const MtcBlob *blob) {
    return tensor->rank == blob->rank && memcmp(tensor->dim, blob->dim, (size_t)blob->rank * sizeof *blob->dim) == 0;
}

/* A double program takes the weights of a single one. */
static bool same_type(const MtcTensor *tensor, const MtcBlob *blob) {
    return strcmp(mtc_dtype(tensor->type), blob->dtype) == 0 ||
           (tensor->type == MTC_F64 && strcmp(blob->dtype, "F32") == 0);
}

enum { LISTED_MOST = 12 }; /* differences named in one message */

static void note_difference(MtcFault *fault, const char *path, int *differences, const char *name, const char *what) {
    if ((*differences)++ == 0)
        mtc_fail(fault, MTC_BAD_DATA, "%s: does not hold the weights of this model", path);
    if (*differences <= LISTED_MOST)
        mtc_note(fault, "%s: %s", name, what);
}

/* Every weight of the model, with its shape and type, and nothing else. */
static int check_weights(MtcSession *session, const char *path, const MtcArchive *archive) {
    const MtcModel *model = session->model;
    MtcFault *fault = &session->fault;
    int differences = 0;
    char what[400];
    for (int i = 0; i < model->tensors; i++) {
        const MtcTensor *tensor = &model->tensor[i];
        const MtcBlob *blob = tensor->role == MTC_WEIGHT ? mtc_archive_find(archive, tensor->name) : NULL;
        if (tensor->role != MTC_WEIGHT || (blob && same_shape(tensor, blob) && same_type(tensor, blob)))
            continue;
        snprintf(what, sizeof what, "expected %s of type %s, found %s of type %s", mtc_shape(tensor->rank, tensor->dim),
                 mtc_dtype(tensor->type), blob ? mtc_shape(blob->rank, blob->dim) : "", blob ? blob->dtype : "");
        note_difference(fault, path, &differences, tensor->name, blob ? what : "is missing");
    }
    for (int i = 0; i < archive->count; i++) {
        const MtcTensor *tensor = mtc_find_tensor(model, archive->blob[i].name);
        if (!tensor || tensor->role != MTC_WEIGHT)
            note_difference(fault, path, &differences, archive->blob[i].name, "is no weight of this model");
    }
    if (differences > LISTED_MOST)
        mtc_note(fault, "and %d more", differences - LISTED_MOST);
    return differences ? fault->code : 0;
}

static int load_tensor(MtcSession *session, const MtcTensor *tensor, const MtcBlob *blob) {
    size_t bytes = mtc_tensor_bytes(tensor);
    if (blob->size == bytes)
        return mtc_set(session, tensor->name, blob->bytes, bytes);
    double *wide = (double *)malloc(bytes);
    if (!wide)
        return mtc_no_memory(&session->fault, bytes, tensor->name);
    for (size_t i = 0; i < bytes / sizeof *wide; i++) {
        float value; /* the file's data need not be aligned */
        memcpy(&value, (const char *)blob->bytes + i * sizeof value, sizeof value);
        wide[i] = (double)value;
    }
    int code = mtc_set(session, tensor->name, wide, bytes);
    free(wide);
    return code;
}

int mtc_load(MtcSession *session, const char *path) {
    MtcArchive archive;
    int code = mtc_archive_read(&session->fault, path, &archive);
    if (code)
        return code;
    code = check_weights(session, path, &archive);
    for (int i = 0; i < session->model->tensors && !code; i++)
        if (session->model->tensor[i].role == MTC_WEIGHT)
            code = load_tensor(session, &session->model->tensor[i],
                               mtc_archive_find(&archive, session->model->tensor[i].name));
    mtc_archive_free(&archive);
    return code;
}
