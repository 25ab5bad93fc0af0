/* The model's tensors by name, in the order of a file's axes, and their values to and from the device. Initial values are drawn in
 * init.c; checkpoints are written and read in checkpoint/. */
#include "session/weights.h"

#include "base/hash.h"
#include "base/param.h"
#include "ranks/ranks.h"
#include "session/parts.h"
#include "session/pieces.h"

#include <stdlib.h>
#include <string.h>

bool mtc_is_kept(const MtcTensor *tensor) {
    return tensor->role == MTC_WEIGHT || tensor->role == MTC_BUFFER;
}

const MtcTensor *mtc_find_tensor(const MtcModel *model, const char *name) {
    for (int i = 0; i < model->tensors; i++)
        if (strcmp(model->tensor[i].name, name) == 0)
            return &model->tensor[i];
    return NULL;
}

size_t mtc_tensor_bytes(const MtcTensor *tensor) {
    return (size_t)mtc_elements(tensor->rank, tensor->dim) * mtc_type_size(tensor->type);
}

/* ---- the order of axes in files ---- */

const char *mtc_tensor_shape(const MtcTensor *tensor) {
    int64_t dim[8];
    mtc_file_dim(tensor, dim);
    return mtc_shape(tensor->rank, dim);
}

const MtcQuantized *mtc_quantized(const MtcModel *model, const MtcTensor *tensor) {
    for (int i = 0; i < model->quantized; i++)
        if (&model->tensor[model->quantized_weight[i].weight] == tensor)
            return &model->quantized_weight[i];
    return NULL;
}

/* ---- by name ---- */

static int find_tensor(MtcSession *session, const char *name, const MtcTensor **tensor) {
    const MtcModel *model = session->model;
    int code = mtc_enter(session);
    *tensor = mtc_find_tensor(model, name);
    if (code || *tensor)
        return code;
    const char **names = (const char **)malloc((size_t)(model->tensors + 1) * sizeof *names);
    for (int i = 0; names && i < model->tensors; i++)
        names[i] = model->tensor[i].name;
    const char *nearest = names ? mtc_nearest(name, names, model->tensors) : NULL;
    free(names);
    return mtc_fail(&session->fault, MTC_USAGE, "there is no tensor '%s'%s%s%s", name,
                    nearest ? "; did you mean '" : "", nearest ? nearest : "", nearest ? "'?" : "");
}

static int find_values(MtcSession *session, const char *name, size_t bytes, const MtcTensor **tensor) {
    int code = find_tensor(session, name, tensor);
    if (!code && bytes != mtc_tensor_bytes(*tensor))
        code = mtc_fail(&session->fault, MTC_USAGE, "tensor '%s' is %s of type %s, %zu bytes; given %zu", name,
                        mtc_tensor_shape(*tensor), mtc_type_name((*tensor)->type), mtc_tensor_bytes(*tensor), bytes);
    return code;
}

int mtc_read_tensor(MtcSession *session, const MtcTensor *tensor, void *values) {
    if (mtc_is_apart(tensor))
        return mtc_fail(&session->fault, MTC_INTERNAL, "this process has a part of '%s' alone", tensor->name);
    const char *error = mtc_download(values, session->arena + tensor->offset, mtc_tensor_bytes(tensor));
    return mtc_device_fault(session, error ? error : mtc_synchronize(), tensor->name);
}

int mtc_write_tensor(MtcSession *session, const MtcTensor *tensor, const void *values) {
    const MtcOwnBytes piece = mtc_piece_here(session, tensor);
    session->writes++;
    if (mtc_is_apart(tensor) && session->collected)
        memcpy(mtc_collected(session, tensor), values, mtc_tensor_bytes(tensor));
    return piece.bytes ? mtc_write_memory(session, piece.memory, (const char *)values + piece.from, piece.bytes) : 0;
}

int mtc_write_file_values(MtcSession *session, const MtcTensor *tensor, const void *values) {
    size_t bytes = mtc_tensor_bytes(tensor);
    if (!mtc_is_permuted(tensor))
        return mtc_write_tensor(session, tensor, values);
    void *stored = malloc(bytes);
    if (!stored)
        return mtc_no_memory(&session->fault, bytes, tensor->name);
    mtc_from_file(tensor, values, stored);
    int code = mtc_write_tensor(session, tensor, stored);
    free(stored);
    return code;
}

int mtc_copy_states(MtcSession *session) {
    const MtcModel *model = session->model;
    int code = 0;
    session->writes++;
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

int mtc_get(MtcSession *session, const char *name, void *values, size_t bytes) {
    const MtcTensor *tensor;
    int code = find_values(session, name, bytes, &tensor);
    if (code || !mtc_is_permuted(tensor))
        return code ? code : mtc_read_tensor(session, tensor, values);
    void *stored = malloc(bytes);
    code = stored ? mtc_read_tensor(session, tensor, stored) : mtc_no_memory(&session->fault, bytes, name);
    if (!code)
        mtc_to_file(tensor, stored, values);
    free(stored);
    return code;
}

int mtc_set(MtcSession *session, const char *name, const void *values, size_t bytes) {
    const MtcTensor *tensor;
    int code = find_values(session, name, bytes, &tensor);
    session->learned |= !code && tensor->role == MTC_WEIGHT;
    return code ? code : mtc_write_file_values(session, tensor, values);
}

int mtc_locate(MtcSession *session, const char *name, void **memory) {
    const MtcTensor *tensor;
    int code = find_tensor(session, name, &tensor);
    if (!code)
        code = mtc_device_fault(session, mtc_synchronize(), "the work before");
    session->located |= !code;
    *memory = code ? NULL : session->arena + tensor->offset;
    return code;
}

bool mtc_computes_in_double(const MtcModel *model) {
    for (int i = 0; i < model->tensors; i++)
        if (model->tensor[i].type == MTC_F64)
            return true;
    return false;
}

size_t mtc_real_bytes(const MtcModel *model) {
    return mtc_computes_in_double(model) ? sizeof(double) : sizeof(float);
}

double mtc_as_computed(const MtcModel *model, double value) {
    return mtc_computes_in_double(model) ? value : (double)(float)value;
}

double mtc_shortest_knob(const MtcSession *session, int index) {
    double value = session->knob[index];
    return mtc_computes_in_double(session->model) ? value : mtc_shortest((float)value);
}

int mtc_put_knob(MtcSession *session, int index, double value) {
    const int code =
        mtc_check_param(&session->fault, &session->model->knob[index], value, mtc_computes_in_double(session->model));
    if (!code)
        session->knob[index] = mtc_as_computed(session->model, value);
    return code;
}

int mtc_set_knob(MtcSession *session, const char *name, double value) {
    const MtcModel *model = session->model;
    const char *names[MTC_MAX_KNOBS];
    if (session->failed)
        return session->failed;
    for (int i = 0; i < model->knobs; i++) {
        names[i] = model->knob[i].name;
        if (strcmp(names[i], name) != 0)
            continue;
        const int code = mtc_put_knob(session, i, value);
        session->knob_given[i] |= !code;
        return code;
    }
    const char *nearest = mtc_nearest(name, names, model->knobs);
    return mtc_fail(&session->fault, MTC_USAGE, "there is no parameter '%s'%s%s%s", name,
                    nearest ? "; did you mean '" : "", nearest ? nearest : "", nearest ? "'?" : "");
}

static int visit_kept(MtcSession *session, void *user, const void *bytes, size_t from, size_t size) {
    (void)session, (void)from;
    mtc_hash_add((MtcHash *)user, bytes, size);
    return 0;
}

int mtc_hash_kept(MtcSession *session, uint64_t *hash) {
    const MtcModel *model = session->model;
    MtcHash sum;
    int code = 0;
    mtc_hash_begin(&sum);
    for (int i = 0; i < model->tensors && !code; i++)
        if (model->tensor[i].role != MTC_VALUE && !mtc_is_apart(&model->tensor[i]))
            code = mtc_visit_memory(session, session->arena + model->tensor[i].offset,
                                    mtc_tensor_bytes(&model->tensor[i]), visit_kept, &sum);
    *hash = mtc_hash_end(&sum);
    return code;
}

static int share_tensor(MtcSession *session, const MtcTensor *tensor) {
    const size_t bytes = mtc_tensor_bytes(tensor);
    void *values = malloc(bytes);
    int code = values ? 0 : mtc_no_memory(&session->fault, bytes, tensor->name);
    if (!code && !mtc_rank())
        code = mtc_read_tensor(session, tensor, values);
    code = code ? code : mtc_ranks_share(&session->fault, values, bytes, false);
    if (!code && mtc_rank())
        code = mtc_write_tensor(session, tensor, values);
    free(values);
    return code;
}

int mtc_share_kept(MtcSession *session) {
    const MtcModel *model = session->model;
    int code = 0;
    for (int i = 0; i < model->tensors && !code; i++)
        if (model->tensor[i].role != MTC_VALUE && !mtc_is_apart(&model->tensor[i]))
            code = share_tensor(session, &model->tensor[i]);
    return code;
}
