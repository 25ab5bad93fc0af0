#include "session/memory.h"

#include "session/parts.h"
#include "session/shards.h"
#include "session/snapshot.h"

#include <assert.h>
#include <stdlib.h>

static_assert(MTC_CLOCK_BYTES == MTC_CLOCKS * sizeof(int64_t), "the clock is as long as it is said to be");

int mtc_model_needs(MtcFault *fault, const MtcModel *model, MtcNeeds *needs) {
    const size_t rows = (size_t)mtc_report_rows(model), reports = (size_t)mtc_report_columns(model);
    MtcKept kept;
    int code = mtc_kept_here(fault, model, &kept);
    if (code)
        return code;
    *needs = (MtcNeeds){.arena = mtc_arena_bytes(model),
                        .reports = MTC_CLOCK_BYTES + reports * sizeof(double) + mtc_report_bytes(rows, reports),
                        .snapshots = mtc_snapshot_bytes(kept.bytes),
                        .sums = mtc_shard_bytes(model)};
    for (int i = 0; i < model->fields; i++)
        needs->batch += mtc_field_bytes(&model->field[i], model->batch, 0);
    free(kept.range);
    return 0;
}
