/* A device, $DEVICES of them, whose memory the host does not see: that of one is never what ranks add up. Says which one was
 * opened. */
#define _GNU_SOURCE
#include "base/device.h"
#include "ranks/ranks.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

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

/* Memory of a device is a file that has no name, which another process finds by its owner's number. */
static struct {
    char *begin;
    size_t bytes;
    int file;
} memory[64];
static size_t count;

const char *__wrap_mtc_device_alloc(void **result, size_t bytes);
void __wrap_mtc_device_free(void *begin);
int __wrap_mtc_ranks_sum(MtcFault *fault, void *values, int64_t numbers, bool doubles);
int __real_mtc_ranks_sum(MtcFault *fault, void *values, int64_t numbers, bool doubles);

static void *map_shared(int file, size_t bytes) {
    void *begin = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (begin == MAP_FAILED)
        abort();
    return begin;
}

const char *__wrap_mtc_device_alloc(void **result, size_t bytes) {
    const int file = memfd_create("device", 0);
    bytes = bytes ? bytes : 1;
    if (file < 0 || ftruncate(file, (off_t)bytes) || count == sizeof memory / sizeof *memory)
        abort();
    *result = map_shared(file, bytes);
    memory[count].file = file;
    memory[count].begin = (char *)*result;
    memory[count++].bytes = bytes;
    return NULL;
}

void __wrap_mtc_device_free(void *begin) {
    for (size_t i = 0; i < count; i++)
        if (begin && memory[i].begin == begin) {
            munmap(begin, memory[i].bytes);
            close(memory[i].file);
            memory[i] = memory[--count];
            return;
        }
}

int __wrap_mtc_ranks_sum(MtcFault *fault, void *values, int64_t numbers, bool doubles) {
    for (size_t i = 0; i < count; i++)
        if ((char *)values >= memory[i].begin && (char *)values < memory[i].begin + memory[i].bytes)
            abort();
    return __real_mtc_ranks_sum(fault, values, numbers, doubles);
}

/* ---- devices that reach each other's memory: where $PEERS ---- */

const char *__wrap_mtc_device_offer(const void *begin, MtcReach *reach);
const char *__wrap_mtc_device_reach(const MtcReach *reach, void **begin);
void __wrap_mtc_device_leave(void *begin);
const char *add_peers(const MtcPeers *peers, size_t offset, size_t bytes);
const char *train_peers(const MtcRun *run, const MtcPeers *peers, int64_t steps);

const char *__wrap_mtc_device_offer(const void *begin, MtcReach *reach) {
    const char *able = getenv("PEERS");
    if (!able || atoi(able) == mtc_rank() + 1) /* the one that cannot */
        return "no way to its memory";
    for (size_t i = 0; i < count; i++)
        if (memory[i].begin == begin)
            snprintf(reach->handle, sizeof reach->handle, "/proc/%d/fd/%d", (int)getpid(), memory[i].file);
    return NULL;
}

const char *__wrap_mtc_device_reach(const MtcReach *reach, void **begin) {
    struct stat size;
    FILE *file = fopen(reach->handle, "r+");
    if (!file || fstat(fileno(file), &size))
        return "its memory cannot be opened";
    *begin = map_shared(fileno(file), (size_t)size.st_size);
    fclose(file);
    return NULL;
}

void __wrap_mtc_device_leave(void *begin) { /* what is mapped, the end of the process gives back */
    (void)begin;
}

/* Words: who has come, for each rank, where. */
static void meet(const MtcPeers *peers, int where, unsigned turn) {
    const double begun = mtc_seconds();
    for (int other = 0; other < peers->count; other++)
        atomic_store((_Atomic unsigned *)peers->words[other] + where * MTC_MAX_PEERS + peers->rank, turn);
    for (int other = 0; other < peers->count && !*peers->lost; other++)
        while (atomic_load((_Atomic unsigned *)peers->words[peers->rank] + where * MTC_MAX_PEERS + other) < turn)
            if (1e9 * (mtc_seconds() - begun) > (double)peers->patience) {
                *peers->lost = 1 + other;
                break;
            }
}

static float *numbers_of(const MtcPeers *peers, int rank, size_t offset) {
    return (float *)(peers->arena[rank] + offset);
}

static float tree_sum(const MtcPeers *peers, size_t offset, int64_t i, int first, int ranks) {
    return ranks == 1 ? numbers_of(peers, first, offset)[i]
                      : tree_sum(peers, offset, i, first, ranks / 2) +
                            tree_sum(peers, offset, i, first + ranks / 2, ranks / 2);
}

const char *add_peers(const MtcPeers *peers, size_t offset, size_t bytes) {
    static unsigned turn;
    if (!turn)
        fprintf(stderr, "peers\n");
    const int64_t numbers = (int64_t)(bytes / sizeof(float)), each = (numbers + peers->count - 1) / peers->count;
    meet(peers, 0, ++turn);
    for (int64_t i = peers->rank * each; i < (peers->rank + 1) * each && i < numbers && !*peers->lost; i++) {
        const float sum = tree_sum(peers, offset, i, 0, peers->count);
        for (int rank = 0; rank < peers->count; rank++)
            numbers_of(peers, rank, offset)[i] = sum;
    }
    meet(peers, 1, turn);
    return NULL;
}

extern const MtcModel mtc_model;

/* The shard of this peer, and the sums of all that it reads on the way. */
static const char *train_peer(const MtcRun *run, const MtcPeers *peers) {
    const MtcModel *model = &mtc_model;
    const char *error = NULL;
    int from = 0;
    if (!model->exchanges)
        return model->train_shard(run);
    for (int k = 0; k < model->exchanges && !error; k++) {
        const MtcExchange *sum = &model->exchange[k];
        error = sum->phase > from ? model->train_between(run, from, sum->phase) : NULL;
        error = error ? error : add_peers(peers, sum->offset, (size_t)sum->count * sizeof(float));
        from = sum->phase;
    }
    return error ? error : model->train_between(run, from, model->train_phases);
}

const char *train_peers(const MtcRun *run, const MtcPeers *peers, int64_t steps) {
    const char *error = NULL;
    for (int64_t step = 0; step < steps && !error; step++) {
        error = train_peer(run, peers);
        error = error ? error : add_peers(peers, peers->offset, peers->bytes);
        error = error ? error : mtc_model.update(run);
    }
    return error;
}
