#include "session/parts.h"

#include "ranks/ranks.h"
#include "session/memory.h"
#include "session/weights.h"

#include <stdlib.h>

MtcOwnPart mtc_own_part(const MtcModel *model) {
    const size_t size = mtc_real_bytes(model);
    int64_t begin, end;
    mtc_ranks_piece((int64_t)(model->flat_bytes / size), &begin, &end);
    return (MtcOwnPart){(size_t)begin * size, (size_t)end * size};
}

bool mtc_is_apart(const MtcTensor *tensor) {
    return tensor->parted && mtc_rank_count() > 1;
}

size_t mtc_bytes_elsewhere(const MtcModel *model) {
    const MtcOwnPart part = mtc_own_part(model);
    return (size_t)model->parted_states * (model->flat_bytes - (part.end - part.begin));
}

size_t mtc_arena_bytes(const MtcModel *model) {
    return model->arena_bytes - mtc_bytes_elsewhere(model);
}

static size_t later_of(size_t a, size_t b) {
    return a > b ? a : b;
}

MtcOwnBytes mtc_piece_here(const MtcSession *session, const MtcTensor *tensor) {
    const MtcModel *model = session->model;
    const size_t bytes = mtc_tensor_bytes(tensor);
    if (!mtc_is_apart(tensor))
        return (MtcOwnBytes){session->arena + tensor->offset, 0, bytes};
    const MtcOwnPart part = mtc_own_part(model);
    const size_t place = (tensor->offset - model->parted_offset) % model->flat_bytes,
                 slot = (tensor->offset - model->parted_offset) / model->flat_bytes;
    const size_t begin = later_of(place, part.begin), until = place + bytes < part.end ? place + bytes : part.end;
    if (begin >= until)
        return (MtcOwnBytes){session->arena + model->parted_offset, 0, 0};
    char *states = session->arena + model->parted_offset + slot * (part.end - part.begin);
    return (MtcOwnBytes){states + (begin - part.begin), begin - place, until - begin};
}

/* ---- at rank 0 ---- */

int mtc_reserve_collected(MtcSession *session) {
    const MtcModel *model = session->model;
    const size_t bytes = (size_t)model->parted_states * model->flat_bytes;
    if (mtc_rank_count() == 1 || mtc_rank() || !bytes || session->collected)
        return 0;
    const char *error = mtc_host_alloc((void **)&session->collected, bytes);
    return mtc_device_fault(session, error, "host memory for the states of all processes, to save them,");
}

char *mtc_collected(const MtcSession *session, const MtcTensor *tensor) {
    return session->collected ? session->collected + (tensor->offset - session->model->parted_offset) : NULL;
}

/* `own`: where this rank's piece of one state goes on its way. */
static int collect_slot(MtcSession *session, int slot, char *own) {
    const MtcModel *model = session->model;
    const MtcOwnPart part = mtc_own_part(model);
    const size_t bytes = part.end - part.begin, size = mtc_real_bytes(model);
    char *whole = session->collected ? session->collected + (size_t)slot * model->flat_bytes : NULL;
    char *to = whole ? whole + part.begin : own;
    const char *states = session->arena + model->parted_offset + (size_t)slot * bytes;
    const char *error = bytes ? mtc_download(to, states, bytes) : NULL;
    int code = mtc_device_fault(session, error ? error : mtc_synchronize(), "reading the states");
    return code ? code
                : mtc_ranks_collect(&session->fault, whole ? whole : own, (int64_t)(model->flat_bytes / size), size);
}

int mtc_collect_states(MtcSession *session) {
    const MtcModel *model = session->model;
    const MtcOwnPart part = mtc_own_part(model);
    char *own = NULL;
    if (mtc_rank_count() == 1 || !model->parted_states)
        return 0;
    int code = mtc_reserve_collected(session);
    if (!code && mtc_rank()) {
        own = (char *)malloc(part.end - part.begin + 1);
        code = own ? 0 : mtc_no_memory(&session->fault, part.end - part.begin, "states on their way to rank 0");
    }
    for (int slot = 0; slot < model->parted_states && !code; slot++)
        code = collect_slot(session, slot, own);
    free(own);
    return code;
}

void mtc_parts_free(MtcSession *session) {
    if (session->collected)
        mtc_host_free(session->collected);
    session->collected = NULL;
}
