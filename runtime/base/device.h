/* The device: memory, copies and events. device_cpu.c and device_cuda.c implement it; a program links exactly one.
 *
 * Everything that runs on the device, the model's steps and the copies below, goes to its default stream and happens in
 * the order of the calls. Functions return NULL, or the device's error text. */
#ifndef MTC_DEVICE_H
#define MTC_DEVICE_H

#include "base/common.h"

typedef struct MtcEvent MtcEvent;   /* a point in the order of the work */
typedef struct MtcStream MtcStream; /* copies in an order of their own, beside that work */

/* What the device can do at most in a second: bytes of memory, cycles of all its multiprocessors together. 0: not known. */
typedef struct MtcPeaks {
    double bandwidth, cycles;
} MtcPeaks;

#pragma GCC visibility push(hidden) /* compiled with the program, not with the runtime */

typedef struct MtcDeviceInfo {
    char name[256];
    unsigned char id[16]; /* of this very device, whatever process sees it under which number; zeros: it is the host */
    int major, minor;     /* compute capability; cpu: 0 */
    size_t free_bytes, total_bytes;
    size_t free_at_start; /* when it was opened */
} MtcDeviceInfo;

/* The first thing that a program does: what the device's libraries must find in the environment, which they read before
 * main begins. May start the program anew, with the same arguments. */
void mtc_device_start(char **argv);

MtcPeaks mtc_device_peaks(int index);

/* A stretch of the host's time with a name, which profilers of the device show; they nest. */
void mtc_range_begin(const char *name);
void mtc_range_end(void);

/* Devices to choose among; 0: there is no choice. */
int mtc_device_count(void);

/* Selects the device and checks that the program was built for it; `program` is named in the advice, NULL: a library. */
int mtc_device_open(MtcFault *fault, const MtcModel *model, const char *program, int index, MtcDeviceInfo *info);

/* For the calling thread, which may have worked on another one. */
const char *mtc_device_choose(int index);
/* Between these two, no other thread gives work to the device by the functions of the same library's model. */
void mtc_device_lock(void);
void mtc_device_unlock(void);

void mtc_device_refresh(MtcDeviceInfo *info); /* what is free there now */

/* Why the model's steps could not use memory of somebody else's; NULL: they can. */
const char *mtc_device_reaches(const void *memory, int index);

/* Memory that the program has on the device, as the device says; cpu: the memory of the process. */
size_t mtc_device_bytes(const MtcDeviceInfo *info);

const char *mtc_device_alloc(void **memory, size_t bytes);
void mtc_device_free(void *memory);
/* Host memory that copies reach without an intermediate buffer, so that they overlap with the host's work. */
const char *mtc_host_alloc(void **memory, size_t bytes);
void mtc_host_free(void *memory);

/* For a process that ends, and whose device may work for ever, as one does that waits for a rank that was lost: to give memory back is to
 * wait for it. From here on, memory goes with the process. */
void mtc_device_abandon(void);

/* The device's memory as the host reads and writes it; NULL: by copies alone. */
void *mtc_host_view(void *device);

/* Memory of mtc_device_alloc that another process of this machine reads and writes by its own device: the one gives a handle, the other
 * reaches it, until it leaves it. The memory is given back after that. */
typedef struct MtcReach {
    char handle[64];
} MtcReach;
const char *mtc_device_offer(const void *memory, MtcReach *reach);
const char *mtc_device_reach(const MtcReach *reach, void **memory);
void mtc_device_leave(void *memory); /* also NULL */

/* Copies are ordered with the steps. From and to memory of mtc_host_alloc they return at once; other host memory may be
 * reused (upload) or read (download) when they return. */
const char *mtc_upload(void *device, const void *host, size_t bytes);
const char *mtc_download(void *host, const void *device, size_t bytes);
const char *mtc_copy(void *device, const void *from_device, size_t bytes);
const char *mtc_zero(void *device, size_t bytes);
const char *mtc_synchronize(void);

const char *mtc_event_new(MtcEvent **event);
void mtc_event_free(MtcEvent *event);
const char *mtc_event_record(MtcEvent *event);
const char *mtc_event_wait(MtcEvent *event);            /* until all work before it is done */
bool mtc_event_pending(MtcEvent *event);                /* it is not yet */
const char *mtc_event_before_work(MtcEvent *event);     /* work enqueued from now on comes after it */
double mtc_event_seconds(MtcEvent *from, MtcEvent *to); /* of device time; both are done */

const char *mtc_stream_new(MtcStream **stream);
void mtc_stream_free(MtcStream *stream);                         /* when its copies are done */
const char *mtc_stream_wait(MtcStream *stream, MtcEvent *event); /* copies from now on come after the event */
const char *mtc_stream_upload(MtcStream *stream, void *device, const void *host, size_t bytes);
const char *mtc_stream_record(MtcStream *stream, MtcEvent *event);

#pragma GCC visibility pop
#endif
