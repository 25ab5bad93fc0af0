#include "session/memory.h"

#include <string.h>

int mtc_session_alloc(MtcSession *session, void **memory, size_t bytes, const char *what) {
    if (bytes > session->device.free_bytes) /* others may have freed some since */
        mtc_device_refresh(&session->device);
    if (bytes > session->device.free_bytes)
        return mtc_fail(&session->fault, MTC_UNAVAILABLE, "not enough memory: %s needs %s; %s has %s free of %s", what,
                        mtc_bytes((double)bytes), session->device.name, mtc_bytes((double)session->device.free_bytes),
                        mtc_bytes((double)session->device.total_bytes));
    const char *error = mtc_device_alloc(memory, bytes);
    if (!error) {
        session->device.free_bytes -= bytes;
        session->bytes += bytes;
    }
    return mtc_device_fault(session, error, what);
}

void mtc_session_free(MtcSession *session, void *memory, size_t bytes) {
    mtc_device_free(memory);
    session->device.free_bytes += memory ? bytes : 0;
    session->bytes -= memory ? bytes : 0;
}

void mtc_data_strides(const MtcModel *model, int64_t stride, MtcData *data) {
    for (int i = 0; i < model->fields; i++)
        data->stride[i] = mtc_field_stride(&model->field[i], stride);
}

size_t mtc_data_bytes(const MtcSession *session, const MtcData *data, int field) {
    return mtc_field_bytes(&session->model->field[field], data->examples, data->stride[field]);
}

int mtc_alloc_data(MtcSession *session, MtcData *data, int64_t examples, int64_t stride, const bool *lent) {
    const MtcModel *model = session->model;
    int code = 0;
    data->examples = examples;
    mtc_data_strides(model, stride, data);
    for (int i = 0; i < model->fields && !code; i++)
        if (!lent || !lent[i])
            code = mtc_session_alloc(session, (void **)&data->field[i], mtc_data_bytes(session, data, i),
                                     model->field[i].name);
    return code;
}

void mtc_free_data(MtcSession *session, MtcData *data, const bool *lent) {
    for (int i = 0; i < session->model->fields; i++)
        if (!lent || !lent[i])
            mtc_session_free(session, (void *)data->field[i], mtc_data_bytes(session, data, i));
    memset(data, 0, sizeof *data);
}

int mtc_reserve_evaluation(MtcSession *session, int64_t rows) {
    size_t row = (size_t)mtc_report_columns(session->model) * sizeof *session->evaluation;
    if (rows <= session->evaluation_rows)
        return 0;
    double *larger = NULL; /* other data sets are evaluated with the one that is there */
    int code = mtc_session_alloc(session, (void **)&larger, (size_t)rows * row, "reports");
    if (code)
        return code;
    mtc_session_free(session, session->evaluation, (size_t)session->evaluation_rows * row);
    session->evaluation = larger;
    session->evaluation_rows = rows;
    return 0;
}

/* ---- memory of the caller's ---- */

int mtc_memory_new(MtcSession *session, size_t bytes, void **memory) {
    *memory = NULL;
    int code = mtc_enter(session);
    if (!code && mtc_device_alloc(memory, bytes))
        return mtc_fail(&session->fault, MTC_UNAVAILABLE, "not enough memory: %s has no %s left", session->device.name,
                        mtc_bytes((double)bytes));
    return code;
}

int mtc_memory_free(MtcSession *session, void *memory) {
    int code = mtc_enter(session);
    if (!code)
        code = mtc_device_fault(session, mtc_synchronize(), "the work before");
    mtc_device_free(memory);
    return code;
}

int mtc_memory_read(MtcSession *session, void *host, const void *memory, size_t bytes) {
    int code = mtc_enter(session);
    if (code)
        return code;
    const char *error = mtc_download(host, memory, bytes);
    return mtc_device_fault(session, error ? error : mtc_synchronize(), "reading memory");
}

int mtc_memory_write(MtcSession *session, void *memory, const void *host, size_t bytes) {
    int code = mtc_enter(session);
    if (code)
        return code;
    const char *error = mtc_upload(memory, host, bytes);
    return mtc_device_fault(session, error ? error : mtc_synchronize(), "writing memory");
}
