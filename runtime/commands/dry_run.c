#include "commands/dry_run.h"

#include "session/memory.h"
#include "session/parts.h"
#include "session/snapshot.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>

static const double SHOWN_SECONDS = 0.005; /* what takes less is left out of the start's parts */

void mtc_print_dry_reports(const MtcModel *model, const char *title, int count, const double *reports) {
    printf("  %-10s", title);
    for (int r = 0; r < count; r++)
        printf("  %s %s", model->report[r], mtc_number(reports[r]));
    printf("\n");
}

void mtc_print_dry_data(const MtcSession *session) {
    double bytes = 0;
    printf("  %-10s", "data");
    for (int which = 0; which < MTC_SPLITS; which++) {
        const MtcData *data = &session->data[which];
        for (int i = 0; i < session->model->fields; i++)
            bytes += (double)mtc_field_bytes(&session->model->field[i], data->examples, data->stride[i]);
        if (data->examples)
            printf("  %s %lld examples", mtc_split_name(which), (long long)data->examples);
    }
    printf("\n  %-10s  model %s, data %s; %s free on %s\n", "memory",
           mtc_bytes((double)mtc_arena_bytes(session->model)), mtc_bytes(bytes),
           mtc_bytes((double)session->device.free_bytes), session->device.name);
}

void mtc_print_dry_start(const MtcStart *start) {
    printf("  %-10s  %.2f s until the first step was done", "start", mtc_start_seconds(start));
    for (int part = 0; part < MTC_START_PARTS; part++)
        if (start->seconds[part] >= SHOWN_SECONDS)
            printf("\n  %-10s  %.2f s %s", "", start->seconds[part], mtc_start_what((MtcStartPart)part));
    printf("\n");
}

int mtc_print_dry_saving(MtcFault *fault, const MtcModel *model, const char *save) {
    struct statvfs system;
    MtcKept kept;
    int code = save ? mtc_kept_ranges(fault, model, &kept) : 0;
    if (code || !save)
        return code;
    printf("  %-10s  %s can be written: %s a checkpoint", "save", save, mtc_bytes((double)kept.bytes));
    char *path = mtc_resolved(save), *slash = strrchr(path, '/');
    if (slash)
        slash[slash == path] = 0;
    if (statvfs(slash ? path : ".", &system) == 0)
        printf(", %s free there", mtc_bytes((double)system.f_bavail * (double)system.f_frsize));
    printf("\n");
    free(path);
    free(kept.range);
    return 0;
}
