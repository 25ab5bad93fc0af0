/* Copies of weights and states on the device, to go back to when a loss turns out to be no number. */
#include "train.h"

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

static int find_ranges(MtcSession *session, MtcTrainer *trainer) {
    const MtcModel *model = session->model;
    int count = 0;
    trainer->range = (MtcRange *)calloc((size_t)model->tensors + 1, sizeof *trainer->range);
    if (!trainer->range)
        return mtc_no_memory(&session->fault, sizeof *trainer->range, "snapshots");
    for (int i = 0; i < model->tensors; i++)
        if (model->tensor[i].role != MTC_VALUE) {
            trainer->range[count].begin = model->tensor[i].offset;
            trainer->range[count++].end = model->tensor[i].offset + mtc_tensor_bytes(&model->tensor[i]);
        }
    trainer->ranges = join_ranges(trainer->range, count);
    return 0;
}

static size_t snapshot_bytes(const MtcTrainer *trainer) {
    size_t bytes = 0;
    for (int i = 0; i < trainer->ranges; i++)
        bytes += trainer->range[i].end - trainer->range[i].begin;
    return bytes;
}

int mtc_snapshots_new(MtcSession *session, MtcTrainer *trainer) {
    int code = find_ranges(session, trainer);
    size_t bytes = snapshot_bytes(trainer);
    if (bytes > session->device.free_bytes / (4 * MTC_SNAPSHOTS))
        return code; /* training itself needs the memory more */
    for (int i = 0; i < MTC_SNAPSHOTS && !code; i++)
        code = mtc_session_alloc(session, (void **)&trainer->snapshot[i].bytes, bytes, "snapshots");
    return code;
}

void mtc_snapshots_free(MtcSession *session, MtcTrainer *trainer) {
    for (int i = 0; i < MTC_SNAPSHOTS; i++)
        mtc_session_free(session, trainer->snapshot[i].bytes, snapshot_bytes(trainer));
    free(trainer->range);
}

const char *mtc_snapshot_save(const MtcSession *session, MtcSnapshot *snapshot, const MtcPosition *at) {
    const MtcTrainer *trainer = session->trainer;
    const char *error = NULL;
    char *to = snapshot->bytes;
    snapshot->at = *at;
    for (int i = 0; i < trainer->ranges && to && !error; i++) {
        size_t bytes = trainer->range[i].end - trainer->range[i].begin;
        error = mtc_copy(to, session->arena + trainer->range[i].begin, bytes);
        to += bytes;
    }
    return error;
}

const char *mtc_snapshot_restore(const MtcSession *session, const MtcSnapshot *snapshot) {
    const MtcTrainer *trainer = session->trainer;
    const char *error = NULL, *from = snapshot->bytes;
    for (int i = 0; i < trainer->ranges && !error; i++) {
        size_t bytes = trainer->range[i].end - trainer->range[i].begin;
        error = mtc_copy(session->arena + trainer->range[i].begin, from, bytes);
        from += bytes;
    }
    return error;
}
