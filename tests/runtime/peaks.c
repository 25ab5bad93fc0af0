/* The CPU's device layer as that of a GPU, for `profile` of fake.c: its name and compute capability are those of $GPU, as
 * "NVIDIA H200, 9.0", it has a clock and a memory, and each kernel takes a time of its own. Linked with --wrap. */
#include "base/device.h"

#include <stdio.h>
#include <stdlib.h>

extern int fake_kernel;
extern int64_t fake_launches;

int __real_mtc_device_open(MtcFault *fault, const MtcModel *model, const char *program, int index, MtcDeviceInfo *info);

int __wrap_mtc_device_open(MtcFault *fault, const MtcModel *model, const char *program, int index,
                           MtcDeviceInfo *info) {
    int code = __real_mtc_device_open(fault, model, program, index, info);
    if (sscanf(getenv("GPU"), "%200[^,], %d.%d", info->name, &info->major, &info->minor) != 3)
        return mtc_fail(fault, MTC_USAGE, "GPU is no device");
    return code;
}

/* 100 multiprocessors of 1 GHz. */
MtcPeaks __wrap_mtc_device_peaks(int index) {
    const MtcPeaks peaks = {4e12, 100e9};
    (void)index;
    return peaks;
}

double __wrap_mtc_event_seconds(MtcEvent *from, MtcEvent *to) {
    static const double microseconds[] = {80, 250, 250, 5000, 200, 2};
    (void)from, (void)to;
    return 1e-6 * microseconds[fake_kernel] * (double)fake_launches;
}
