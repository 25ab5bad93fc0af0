/* A device, $DEVICES of them, whose memory the host does not see: that of one is never what ranks add up. Says which one was
 * opened. */
#include "base/device.h"
#include "ranks/ranks.h"

#include <stdio.h>
#include <stdlib.h>

int __wrap_mtc_device_count(void);
int __wrap_mtc_device_open(MtcFault *fault, const MtcModel *model, const char *program, int index, MtcDeviceInfo *info);
int __real_mtc_device_open(MtcFault *fault, const MtcModel *model, const char *program, int index, MtcDeviceInfo *info);
void *__wrap_mtc_host_view(void *device);

int __wrap_mtc_device_count(void) {
    return atoi(getenv("DEVICES"));
}

int __wrap_mtc_device_open(MtcFault *fault, const MtcModel *model, const char *program, int index,
                           MtcDeviceInfo *info) {
    fprintf(stderr, "device %d\n", index);
    const char *own = getenv("CUDA_VISIBLE_DEVICES"); /* a process may see one of many, which is its number 0 */
    const int code = __real_mtc_device_open(fault, model, program, 0, info);
    info->id[0] = (unsigned char)(1 + index + (own ? atoi(own) : 0));
    return code;
}

void *__wrap_mtc_host_view(void *device) {
    (void)device;
    return NULL;
}

bool __wrap_mtc_event_pending(MtcEvent *event);

bool __wrap_mtc_event_pending(MtcEvent *event) { /* where $HANGS, the first that is asked for never comes */
    static MtcEvent *first;
    first = first ? first : event;
    return getenv("HANGS") && event == first;
}

static struct {
    char *begin;
    size_t bytes;
} memory[64];
static size_t count;

const char *__wrap_mtc_device_alloc(void **result, size_t bytes);
const char *__real_mtc_device_alloc(void **result, size_t bytes);
int __wrap_mtc_ranks_sum(MtcFault *fault, void *values, int64_t numbers, bool doubles);
int __real_mtc_ranks_sum(MtcFault *fault, void *values, int64_t numbers, bool doubles);

const char *__wrap_mtc_device_alloc(void **result, size_t bytes) {
    const char *error = __real_mtc_device_alloc(result, bytes);
    if (count == sizeof memory / sizeof *memory)
        abort();
    memory[count].begin = (char *)*result;
    memory[count++].bytes = bytes;
    return error;
}

int __wrap_mtc_ranks_sum(MtcFault *fault, void *values, int64_t numbers, bool doubles) {
    for (size_t i = 0; i < count; i++)
        if ((char *)values >= memory[i].begin && (char *)values < memory[i].begin + memory[i].bytes)
            abort();
    return __real_mtc_ranks_sum(fault, values, numbers, doubles);
}
