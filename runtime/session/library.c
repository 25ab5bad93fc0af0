#include "session/library.h"

#include "base/device.h"

#include <pthread.h>

/* Of this library alone: each has a runtime of its own. */
static pthread_mutex_t counting = PTHREAD_MUTEX_INITIALIZER;
static int open_sessions, open_device, prepared_sessions;

int mtc_library_enter(MtcFault *fault, const MtcModel *model, int device) {
    int code = 0;
    pthread_mutex_lock(&counting);
    if (open_sessions && open_device != device)
        code =
            mtc_fail(fault, MTC_UNAVAILABLE,
                     "the sessions of a library are on one device at a time: '%s' has %d open on device %d, not on %d",
                     model->name, open_sessions, open_device, device);
    else {
        open_sessions++;
        open_device = device;
    }
    pthread_mutex_unlock(&counting);
    if (code)
        mtc_note(fault, "close them first, or load a copy of the library's file for device %d", device);
    return code;
}

void mtc_library_leave(void) {
    pthread_mutex_lock(&counting);
    open_sessions--;
    pthread_mutex_unlock(&counting);
}

/* ---- the model's functions ---- */

static const char *end_call(const char *error) {
    mtc_device_unlock();
    return error;
}

const char *mtc_model_train(const MtcModel *model, const MtcRun *run, int64_t steps) {
    mtc_device_lock();
    return end_call(model->train(run, steps));
}

const char *mtc_model_train_shard(const MtcModel *model, const MtcRun *run) {
    mtc_device_lock();
    return end_call(model->train_shard(run));
}

const char *mtc_model_train_whole(const MtcModel *model, const MtcRun *run, char *waiting, int64_t shards,
                                  int64_t steps) {
    mtc_device_lock();
    return end_call(model->train_whole(run, waiting, shards, steps));
}

const char *mtc_model_train_between(const MtcModel *model, const MtcRun *run, int from, int to) {
    mtc_device_lock();
    return end_call(model->train_between(run, from, to));
}

const char *mtc_model_update(const MtcModel *model, const MtcRun *run) {
    mtc_device_lock();
    return end_call(model->update(run));
}

const char *mtc_model_add_sums(const MtcModel *model, void *to, const void *from, int64_t count) {
    mtc_device_lock();
    return end_call(model->add_sums(to, from, count));
}

const char *mtc_model_train_until(const MtcModel *model, const MtcRun *run, int phase) {
    mtc_device_lock();
    return end_call(model->train_until(run, phase));
}

const char *mtc_model_eval(const MtcModel *model, const MtcRun *run, int64_t first, int64_t rows, int64_t slot) {
    mtc_device_lock();
    return end_call(model->eval(run, first, rows, slot));
}

const char *mtc_model_shuffle(const MtcModel *model, const MtcRun *run, int *order, int64_t epoch, int64_t epochs) {
    mtc_device_lock();
    return end_call(model->shuffle(run, order, epoch, epochs));
}

const char *mtc_model_draw(const MtcModel *model, char *arena, const MtcTensor *tensor, uint64_t seed,
                           uint32_t stream) {
    mtc_device_lock();
    return end_call(model->draw(arena, tensor, seed, stream));
}

const char *mtc_model_watch(const MtcModel *model, const MtcRun *run) {
    mtc_device_lock();
    return end_call(model->watch(run));
}

const char *mtc_model_measure(const MtcModel *model, const MtcRun *run, int64_t first, int64_t rows) {
    mtc_device_lock();
    return end_call(model->measure(run, first, rows));
}

const char *mtc_model_decode(const MtcModel *model, const MtcRun *run) {
    mtc_device_lock();
    return end_call(model->decode(run));
}

const char *mtc_model_decode_texts(const MtcModel *model, const MtcRun *run) {
    mtc_device_lock();
    return end_call(model->decode_texts(run));
}

const char *mtc_model_draw_texts(const MtcModel *model, const MtcRun *run, const MtcDrawing *drawing, int64_t tokens) {
    mtc_device_lock();
    return end_call(model->draw_texts(run, drawing, tokens));
}

const char *mtc_model_prefill(const MtcModel *model, const MtcRun *run) {
    mtc_device_lock();
    return end_call(model->prefill(run));
}

const char *mtc_model_draw_tokens(const MtcModel *model, const MtcRun *run, const MtcDrawing *drawing, int64_t tokens) {
    mtc_device_lock();
    return end_call(model->draw_tokens(run, drawing, tokens));
}

const char *mtc_model_run_kernel(const MtcModel *model, const MtcRun *run, int kernel, int64_t times) {
    mtc_device_lock();
    return end_call(model->run_kernel(run, kernel, times));
}

static const char *prepare_first(const MtcModel *model, const MtcRun *run) {
    mtc_device_lock();
    const char *error = model->prepare(run);
    if (error) /* a part of it may be done */
        model->release();
    return end_call(error);
}

const char *mtc_model_prepare(const MtcModel *model, const MtcRun *run) {
    pthread_mutex_lock(&counting);
    const char *error = prepared_sessions ? NULL : prepare_first(model, run);
    prepared_sessions += !error;
    pthread_mutex_unlock(&counting);
    return error;
}

void mtc_model_release(const MtcModel *model) {
    pthread_mutex_lock(&counting);
    if (--prepared_sessions == 0) {
        mtc_device_lock();
        model->release();
        mtc_device_unlock();
    }
    pthread_mutex_unlock(&counting);
}
