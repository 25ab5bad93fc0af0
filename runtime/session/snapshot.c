/* Copies of weights, buffers and states: on the device, to go back to when a loss turns out to be no number; on the host,
 * to be saved. */
#include "session/memory.h"
#include "session/train.h"
#include "session/weights.h"

#include <stdlib.h>
#include <string.h>

static int compare_ranges(const void *a, const void *b) {
    const MtcRange *x = (const MtcRange *)a, *y = (const MtcRange *)b;
    return (x->begin > y->begin) - (x->begin < y->begin);
}

/* Neighbours become one range, with the alignment gap between them: one copy instead of many. */
static int join_ranges(MtcRange *range, int count) {
    const size_t gap = 256;
    int last = 0;
    qsort(range, (size_t)count, sizeof *range, compare_ranges);
    for (int i = 1; i < count; i++)
        if (range[i].begin <= range[last].end + gap)
            range[last].end = range[i].end;
        else
            range[++last] = range[i];
    return count ? last + 1 : 0;
}

int mtc_kept_ranges(MtcFault *fault, const MtcModel *model, MtcKept *kept) {
    int count = 0;
    memset(kept, 0, sizeof *kept);
    kept->range = (MtcRange *)calloc((size_t)model->tensors + 1, sizeof *kept->range);
    if (!kept->range)
        return mtc_no_memory(fault, sizeof *kept->range, "copies of the weights");
    for (int i = 0; i < model->tensors; i++)
        if (model->tensor[i].role != MTC_VALUE) {
            kept->range[count].begin = model->tensor[i].offset;
            kept->range[count++].end = model->tensor[i].offset + mtc_tensor_bytes(&model->tensor[i]);
        }
    kept->ranges = join_ranges(kept->range, count);
    for (int i = 0; i < kept->ranges; i++)
        kept->bytes += kept->range[i].end - kept->range[i].begin;
    return 0;
}

int mtc_download_kept(MtcSession *session, const MtcKept *kept, char *to) {
    const char *error = NULL;
    for (int i = 0; i < kept->ranges && !error; i++) {
        size_t bytes = kept->range[i].end - kept->range[i].begin;
        error = mtc_download(to, session->arena + kept->range[i].begin, bytes);
        to += bytes;
    }
    return mtc_device_fault(session, error ? error : mtc_synchronize(), "reading the weights");
}

const char *mtc_kept_at(const MtcKept *kept, const char *copy, size_t offset) {
    const MtcRange *range = kept->range;
    for (; offset >= range->end; range++)
        copy += range->end - range->begin;
    return copy + (offset - range->begin);
}

int mtc_snapshots_new(MtcSession *session, MtcTrainer *trainer) {
    int code = mtc_kept_ranges(&session->fault, session->model, &trainer->kept);
    size_t bytes = trainer->kept.bytes;
    if (bytes > session->device.free_bytes / (4 * MTC_SNAPSHOTS))
        return code; /* training itself needs the memory more */
    for (int i = 0; i < MTC_SNAPSHOTS && !code; i++)
        code = mtc_session_alloc(session, (void **)&trainer->snapshot[i].bytes, bytes, "snapshots");
    return code;
}

void mtc_snapshots_free(MtcSession *session, MtcTrainer *trainer) {
    for (int i = 0; i < MTC_SNAPSHOTS; i++)
        mtc_session_free(session, trainer->snapshot[i].bytes, trainer->kept.bytes);
    free(trainer->kept.range);
}

const char *mtc_snapshot_save(const MtcSession *session, MtcSnapshot *snapshot, const MtcPosition *at) {
    const MtcKept *kept = &session->trainer->kept;
    const char *error = NULL;
    char *to = snapshot->bytes;
    snapshot->at = *at;
    for (int i = 0; i < kept->ranges && to && !error; i++) {
        size_t bytes = kept->range[i].end - kept->range[i].begin;
        error = mtc_copy(to, session->arena + kept->range[i].begin, bytes);
        to += bytes;
    }
    return error;
}

const char *mtc_snapshot_restore(const MtcSession *session, const MtcSnapshot *snapshot) {
    const MtcKept *kept = &session->trainer->kept;
    const char *error = NULL, *from = snapshot->bytes;
    for (int i = 0; i < kept->ranges && !error; i++) {
        size_t bytes = kept->range[i].end - kept->range[i].begin;
        error = mtc_copy(session->arena + kept->range[i].begin, from, bytes);
        from += bytes;
    }
    return error;
}
