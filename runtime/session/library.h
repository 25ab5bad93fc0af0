/* What the sessions of a library share, which different threads may use at once: the device, and the model's functions. */
#ifndef MTC_LIBRARY_H
#define MTC_LIBRARY_H

#include "base/common.h"

/* A session is open from here on. All that are at a time are on one device: what the target's kernels keep is there. */
int mtc_library_enter(MtcFault *fault, const MtcModel *model, int device);
void mtc_library_leave(void);

/* The functions of a model. On a GPU they leave what they work on where the next call writes it too, so that a call is one
 * piece of the device's order of work: nothing calls them but these. */
const char *mtc_model_train(const MtcModel *model, const MtcRun *run, int64_t steps);
const char *mtc_model_train_shard(const MtcModel *model, const MtcRun *run);
const char *mtc_model_train_whole(const MtcModel *model, const MtcRun *run, char *waiting, int64_t shards,
                                  int64_t steps);
const char *mtc_model_train_between(const MtcModel *model, const MtcRun *run, int from, int to);
const char *mtc_model_update(const MtcModel *model, const MtcRun *run);
const char *mtc_model_add_sums(const MtcModel *model, void *to, const void *from, int64_t count);
const char *mtc_model_train_until(const MtcModel *model, const MtcRun *run, int phase);
const char *mtc_model_eval(const MtcModel *model, const MtcRun *run, int64_t first, int64_t rows, int64_t slot);
const char *mtc_model_shuffle(const MtcModel *model, const MtcRun *run, int *order, int64_t epoch, int64_t epochs);
const char *mtc_model_draw(const MtcModel *model, char *arena, const MtcTensor *tensor, uint64_t seed, uint32_t stream);
const char *mtc_model_watch(const MtcModel *model, const MtcRun *run);
const char *mtc_model_measure(const MtcModel *model, const MtcRun *run, int64_t first, int64_t rows);
const char *mtc_model_decode(const MtcModel *model, const MtcRun *run);
const char *mtc_model_decode_texts(const MtcModel *model, const MtcRun *run);
const char *mtc_model_draw_texts(const MtcModel *model, const MtcRun *run, const MtcDrawing *drawing, int64_t tokens);
const char *mtc_model_prefill(const MtcModel *model, const MtcRun *run);
const char *mtc_model_draw_tokens(const MtcModel *model, const MtcRun *run, const MtcDrawing *drawing, int64_t tokens);
const char *mtc_model_run_kernel(const MtcModel *model, const MtcRun *run, int kernel, int64_t times);

/* Prepared by the first session that trains, released by the last one that was prepared. */
const char *mtc_model_prepare(const MtcModel *model, const MtcRun *run);
void mtc_model_release(const MtcModel *model);

#endif
