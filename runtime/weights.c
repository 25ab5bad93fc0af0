/* Tensors and parameters by name: reading and writing. */
#include "session.h"

#include <math.h>
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

int mtc_write_tensor(MtcSession *session, const MtcTensor *tensor, const void *values) {
    const char *error = mtc_upload(session->arena + tensor->offset, values, mtc_tensor_bytes(tensor));
    return mtc_device_fault(session, error, tensor->name);
}

int mtc_get(MtcSession *session, const char *name, void *values, size_t bytes) {
    const MtcTensor *tensor;
    int code = locate(session, name, bytes, &tensor);
    return code ? code : mtc_read_tensor(session, tensor, values);
}

int mtc_set(MtcSession *session, const char *name, const void *values, size_t bytes) {
    const MtcTensor *tensor;
    int code = locate(session, name, bytes, &tensor);
    return code ? code : mtc_write_tensor(session, tensor, values);
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
