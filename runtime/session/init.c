#include "session/init.h"

#include "random.h"
#include "session/weights.h"

#include <stdlib.h>

/* Streams of weights, apart from those of dropout, which count from 0. */
enum { INIT_STREAM = 1 << 30 };

static double initial_value(const MtcTensor *tensor, int row, uint64_t seed, uint64_t i) {
    uint32_t stream = INIT_STREAM + (uint32_t)row;
    switch (tensor->init) {
    case MTC_CONSTANT: return tensor->a;
    case MTC_UNIFORM: return fma(tensor->b - tensor->a, (double)mtc_uniform(seed, stream, 0, i), tensor->a);
    case MTC_NORMAL: return fma(tensor->b, (double)mtc_normal(seed, stream, 0, i), tensor->a);
    default: return 0;
    }
}

static void init_tensor(const MtcTensor *tensor, int row, uint64_t seed, void *values) {
    int64_t count = mtc_elements(tensor->rank, tensor->dim);
    for (int64_t i = 0; i < count; i++) {
        double value = initial_value(tensor, row, seed, (uint64_t)i);
        switch (tensor->type) {
        case MTC_F32: ((float *)values)[i] = (float)value; break;
        case MTC_F64: ((double *)values)[i] = value; break;
        case MTC_I32: ((int32_t *)values)[i] = (int32_t)value; break;
        default: ((uint8_t *)values)[i] = (uint8_t)value;
        }
    }
}

static int upload_tensor(MtcSession *session, const MtcTensor *tensor, int row) {
    void *values = malloc(mtc_tensor_bytes(tensor));
    if (!values)
        return mtc_no_memory(&session->fault, mtc_tensor_bytes(tensor), tensor->name);
    init_tensor(tensor, row, session->seed, values);
    const char *error = mtc_upload(session->arena + tensor->offset, values, mtc_tensor_bytes(tensor));
    free(values);
    return mtc_device_fault(session, error, tensor->name);
}

/* Buffers take no random numbers: weights begin as they would without them. */
int mtc_draw_weights(MtcSession *session) {
    int stream = 0;
    int code = mtc_device_fault(session, mtc_zero(session->arena, session->model->arena_bytes), "clearing memory");
    for (int i = 0; i < session->model->tensors && !code; i++) {
        const MtcTensor *tensor = &session->model->tensor[i];
        if (tensor->role != MTC_VALUE)
            code = upload_tensor(session, tensor, stream);
        stream += tensor->role != MTC_BUFFER;
    }
    if (!code)
        code = mtc_copy_states(session);
    session->writes = 0;
    session->drawn_seed = session->seed;
    return code;
}
