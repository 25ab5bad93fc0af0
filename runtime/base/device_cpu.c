/* The CPU as a device: its memory is the host's, and work is done when the call returns. */
#include "base/device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

/* How many processors the container may use: the quota of its control group, in microseconds of each period; 0: as many
 * as there are. */
static int cpu_quota(void) {
    double quota, period;
    FILE *file = fopen("/sys/fs/cgroup/cpu.max", "r");
    bool limited = file && fscanf(file, "%lf %lf", &quota, &period) == 2 && period > 0; /* "max 100000": none */
    if (file)
        fclose(file);
    return limited ? (int)((quota + period - 1) / period) : 0;
}

/* A waiting thread of OpenMP spins for milliseconds, on a processor that, on a busy machine, the thread that everybody
 * waits for could use: 20 times slower and worse. OpenMP learns otherwise from its environment only, which it reads when
 * it is loaded, so the program sets that and begins again. What the user has set stays. */
void mtc_device_start(char **argv) {
    char limit[16], self[4096];
    int quota = cpu_quota();
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    bool by_loader = getauxval(AT_BASE) == 0; /* `ld.so program`: the file of the process is ld.so */
    if (length <= 0 || by_loader || getenv("OMP_WAIT_POLICY") || setenv("OMP_WAIT_POLICY", "passive", 0) != 0)
        return;
    self[length] = 0;
    snprintf(limit, sizeof limit, "%d", quota);
    if (quota > 0)
        setenv("OMP_THREAD_LIMIT", limit, 0);
    execv(self, argv);
}

/* The value of a line such as "MemAvailable:   8154836 kB", in bytes; 0 when there is none. */
static size_t cpu_meminfo(const char *key) {
    char line[256];
    size_t kilobytes = 0, length = strlen(key);
    FILE *file = fopen("/proc/meminfo", "r");
    while (file && fgets(line, sizeof line, file))
        if (strncmp(line, key, length) == 0)
            kilobytes = (size_t)strtoull(line + length, NULL, 10);
    if (file)
        fclose(file);
    return kilobytes * 1024;
}

static void cpu_name(char *name, size_t size) {
    char line[256];
    FILE *file = fopen("/proc/cpuinfo", "r");
    snprintf(name, size, "CPU");
    while (file && fgets(line, sizeof line, file)) {
        char *colon = strchr(line, ':');
        if (strncmp(line, "model name", 10) != 0 || !colon)
            continue;
        line[strcspn(line, "\n")] = 0;
        snprintf(name, size, "%s", colon + 2);
        break;
    }
    if (file)
        fclose(file);
}

int mtc_device_open(MtcFault *fault, const MtcModel *model, const char *program, int index, MtcDeviceInfo *info) {
    (void)model;
    memset(info, 0, sizeof *info);
    if (index != 0)
        return mtc_fail(fault, MTC_UNAVAILABLE, "no device %d: this %s runs on the CPU, which is device 0", index,
                        program ? "program" : "library");
    cpu_name(info->name, sizeof info->name);
    info->total_bytes = cpu_meminfo("MemTotal:");
    info->free_bytes = cpu_meminfo("MemAvailable:");
    if (info->total_bytes == 0)
        info->total_bytes = info->free_bytes = SIZE_MAX;
    info->free_at_start = info->free_bytes;
    return 0;
}

int mtc_device_count(void) {
    return 0;
}

const char *mtc_device_choose(int index) {
    (void)index;
    return NULL;
}

/* What a step keeps is the session's. */
void mtc_device_lock(void) {
}

void mtc_device_unlock(void) {
}

void mtc_device_refresh(MtcDeviceInfo *info) {
    size_t now = cpu_meminfo("MemAvailable:");
    info->free_bytes = now ? now : info->free_bytes;
}

const char *mtc_device_reaches(const void *memory, int index) {
    (void)memory, (void)index;
    return NULL;
}

size_t mtc_device_bytes(const MtcDeviceInfo *info) {
    unsigned long long whole = 0, resident = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    (void)info;
    if (file && fscanf(file, "%llu %llu", &whole, &resident) != 2)
        resident = 0;
    if (file)
        fclose(file);
    return (size_t)resident * (size_t)sysconf(_SC_PAGESIZE);
}

MtcPeaks mtc_device_peaks(int index) {
    MtcPeaks unknown = {0, 0};
    (void)index;
    return unknown;
}

void mtc_range_begin(const char *name) {
    (void)name;
}

void mtc_range_end(void) {
}

const char *mtc_device_alloc(void **memory, size_t bytes) {
    return posix_memalign(memory, 4096, bytes ? bytes : 1) == 0 ? NULL : "out of memory";
}

/* Work of a host ends with the call that asks for it. */
void mtc_device_abandon(void) {
}

void mtc_device_free(void *memory) {
    free(memory);
}

const char *mtc_host_alloc(void **memory, size_t bytes) {
    return mtc_device_alloc(memory, bytes);
}

void mtc_host_free(void *memory) {
    free(memory);
}

void *mtc_host_view(void *device) {
    return device;
}

static const char no_reach[] = "memory of the processor's programs is their own";

const char *mtc_device_offer(const void *memory, MtcReach *reach) {
    (void)memory, (void)reach;
    return no_reach;
}

const char *mtc_device_reach(const MtcReach *reach, void **memory) {
    (void)reach, (void)memory;
    return no_reach;
}

void mtc_device_leave(void *memory) {
    (void)memory;
}

const char *mtc_upload(void *device, const void *host, size_t bytes) {
    memcpy(device, host, bytes);
    return NULL;
}

const char *mtc_download(void *host, const void *device, size_t bytes) {
    memcpy(host, device, bytes);
    return NULL;
}

const char *mtc_copy(void *device, const void *from_device, size_t bytes) {
    memcpy(device, from_device, bytes);
    return NULL;
}

const char *mtc_zero(void *device, size_t bytes) {
    memset(device, 0, bytes);
    return NULL;
}

const char *mtc_synchronize(void) {
    return NULL;
}

struct MtcEvent {
    double time;
};

const char *mtc_event_new(MtcEvent **event) {
    *event = (MtcEvent *)calloc(1, sizeof **event);
    return *event ? NULL : "out of memory";
}

void mtc_event_free(MtcEvent *event) {
    free(event);
}

const char *mtc_event_record(MtcEvent *event) {
    event->time = mtc_seconds();
    return NULL;
}

const char *mtc_event_wait(MtcEvent *event) {
    (void)event;
    return NULL;
}

bool mtc_event_pending(MtcEvent *event) {
    (void)event;
    return false;
}

double mtc_event_seconds(MtcEvent *from, MtcEvent *to) {
    return to->time - from->time;
}

/* ---- copies beside the work: done at once ---- */

const char *mtc_event_before_work(MtcEvent *event) {
    (void)event;
    return NULL;
}

const char *mtc_stream_new(MtcStream **stream) {
    *stream = NULL;
    return NULL;
}

void mtc_stream_free(MtcStream *stream) {
    (void)stream;
}

const char *mtc_stream_wait(MtcStream *stream, MtcEvent *event) {
    (void)stream, (void)event;
    return NULL;
}

const char *mtc_stream_upload(MtcStream *stream, void *device, const void *host, size_t bytes) {
    (void)stream;
    memcpy(device, host, bytes);
    return NULL;
}

const char *mtc_stream_record(MtcStream *stream, MtcEvent *event) {
    (void)stream;
    return mtc_event_record(event);
}
