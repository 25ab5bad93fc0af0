/* A session's beginning and end. */
#include "session/open.h"

#include "ranks/ranks.h"
#include "session/init.h"
#include "session/library.h"
#include "session/memory.h"
#include "session/parts.h"
#include "session/pieces.h"
#include "session/session_data.h"
#include "session/train.h"
#include "session/weights.h"

#include <stdlib.h>

/* Weights and states stay as they are when the batch changes; the rest of the arena grows with it. */
static void note_smaller_batch(MtcSession *session) {
    const MtcModel *model = session->model;
    double kept = 0, free_bytes = (double)session->device.free_bytes;
    for (int i = 0; i < model->tensors; i++)
        if (model->tensor[i].role != MTC_VALUE)
            kept += (double)mtc_tensor_bytes(&model->tensor[i]);
    kept -= (double)mtc_bytes_elsewhere(model);
    double per_example = ((double)mtc_arena_bytes(model) - kept) / (double)model->batch;
    if (kept < free_bytes && per_example > 0 && (free_bytes - kept) / per_example >= 1)
        mtc_note(&session->fault, "a batch of about %.0f would fit; this %s has %lld",
                 (free_bytes - kept) / per_example, session->program ? "program" : "library", (long long)model->batch);
}

/* What comes behind the arena, for whoever makes room. */
static void note_needs(MtcSession *session) {
    MtcFault fault;
    MtcNeeds needs;
    const MtcModel *model = session->model;
    const double states = (double)model->parted_states * (double)model->flat_bytes;
    if (mtc_model_needs(&fault, model, &needs) == 0)
        mtc_note(&session->fault, "training needs %s and its data: the arena and %s for a batch, reports and snapshots",
                 mtc_bytes((double)mtc_needed(&needs)), mtc_bytes((double)(mtc_needed(&needs) - needs.arena)));
    if (states > 0 && mtc_rank_count() == 1)
        mtc_note(&session->fault, "of the arena %s are states: each of N processes has 1/N of them", mtc_bytes(states));
}

static int alloc_session(MtcSession *session) {
    const MtcModel *model = session->model;
    int code = mtc_session_alloc(session, (void **)&session->arena, mtc_arena_bytes(model), "the model");
    if (code && session->device.free_bytes < mtc_arena_bytes(model)) {
        note_needs(session);
        note_smaller_batch(session);
    }
    if (!code)
        code = mtc_session_alloc(session, (void **)&session->clock, MTC_CLOCKS * sizeof *session->clock, "the clock");
    if (!code)
        code = mtc_reserve_evaluation(session, 1);
    return code ? code : mtc_alloc_data(session, &session->batch, model->batch, 0, NULL);
}

static int open_session(MtcSession *session, int device) {
    const MtcModel *model = session->model;
    if (model->abi != MTC_ABI)
        return mtc_fail(&session->fault, MTC_INTERNAL, "the model speaks version %d of the interface, the runtime %d",
                        model->abi, MTC_ABI);
    int code = mtc_device_open(&session->fault, model, session->program, device, &session->device);
    if (!code)
        code = mtc_library_enter(&session->fault, model, device);
    session->open = !code;
    mtc_start_end_part(&session->start, MTC_START_DEVICE);
    if (!code)
        code = alloc_session(session);
    mtc_start_end_part(&session->start, MTC_START_MEMORY);
    return code;
}

int mtc_session_new(const MtcModel *model, const char *program, uint64_t seed, int device, bool draws,
                    MtcSession **result) {
    MtcSession *session = (MtcSession *)calloc(1, sizeof *session);
    *result = session;
    if (!session)
        return MTC_UNAVAILABLE;
    session->model = model;
    session->program = program;
    session->device_index = device;
    session->seed = session->split_seed = seed;
    mtc_start_begin(&session->start, mtc_seconds());
    for (int i = 0; i < model->knobs; i++)
        session->knob[i] = mtc_as_computed(model, model->knob[i].value);
    session->failed = open_session(session, device);
    if (!session->failed)
        session->failed = draws ? mtc_draw_weights(session) : mtc_clear_weights(session);
    mtc_start_end_part(&session->start, MTC_START_WEIGHTS);
    return session->failed;
}

int mtc_create(const MtcModel *model, uint64_t seed, int device, MtcSession **session) {
    return mtc_session_new(model, NULL, seed, device, true, session);
}

void mtc_destroy(MtcSession *session) {
    if (!session)
        return;
    if (session->open) {
        mtc_device_choose(session->device_index);
        mtc_synchronize();
        if (session->prepared)
            mtc_model_release(session->model);
        mtc_trainer_free(session);
        mtc_parts_free(session);
        mtc_pieces_free(session);
        for (int which = 0; which < MTC_SPLITS; which++)
            mtc_release_data(session, which);
        mtc_free_data(session, &session->batch, NULL);
        mtc_device_free(session->evaluation);
        mtc_device_free(session->set_values);
        mtc_device_free(session->clock);
        mtc_device_free(session->arena);
        mtc_library_leave();
    }
    mtc_encoding_free(&session->encoding);
    free(session->confusion);
    free(session->folder);
    free(session);
}
