/* A CUDA GPU as a device, through the runtime API. */
#include "base/device.h"

#include <assert.h>
#include <cuda_runtime_api.h>
#if __has_include(<nvtx3/nvToolsExt.h>)
#include <nvtx3/nvToolsExt.h>
#define MTC_NVTX
#endif
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *cuda_text(cudaError_t error) {
    return error == cudaSuccess ? NULL : cudaGetErrorString(error);
}

/* May code for `built` ("sm_86", "sm_90a") run on a device of compute capability `major`.`minor`? Machine code does on
 * its own generation, from its minor version up; `a` code nowhere but on its own. */
static bool code_runs(const char *built, int major, int minor) {
    char *end;
    long version = strtol(built + 3, &end, 10);
    bool exact = *end == 'a';
    return version / 10 == major && (exact ? version % 10 == minor : version % 10 <= minor);
}

/* `architectures`: "sm_75;sm_90" with "+ptx" after the last when its PTX is there too, which newer devices translate.
 * Empty: a standalone file, which whoever ran nvcc built for a device of theirs. */
static bool built_for(const char *architectures, int major, int minor) {
    if (!*architectures)
        return true;
    bool runs = false;
    const char *last = architectures;
    for (const char *at = architectures; at; at = strchr(at, ';'), at = at ? at + 1 : NULL) {
        runs |= code_runs(at, major, minor);
        last = at;
    }
    return runs || (strstr(architectures, "+ptx") && strtol(last + 3, NULL, 10) <= 10 * major + minor);
}

void mtc_device_start(char **argv) {
    (void)argv;
}

static void note_remake(MtcFault *fault, const char *why, const MtcModel *model, const char *flag, const char *value,
                        const char *program) {
    MtcText command = {NULL, 0, 0};
    mtc_remake(&command, model, flag, value, program);
    mtc_note(fault, "%s: %s", why, command.at);
    free(command.at);
}

/* CUDA calls a driver that is not there one that is too old. */
static const char *why_none(cudaError_t error) {
    int version = 0;
    bool driver = cudaDriverGetVersion(&version) == cudaSuccess && version > 0;
    return error == cudaSuccess ? "none is visible"
           : driver             ? cudaGetErrorString(error)
                                : "there is no NVIDIA driver here";
}

static int no_gpu(MtcFault *fault, const MtcModel *model, const char *program, const char *why) {
    mtc_fail(fault, MTC_UNAVAILABLE, "no CUDA device: %s", why);
    note_remake(fault, "to train on the CPU", model, "--target", "cpu", program);
    return fault->code;
}

static int wrong_gpu(MtcFault *fault, const MtcModel *model, const char *program, int index,
                     const MtcDeviceInfo *info) {
    char architecture[32];
    mtc_fail(fault, MTC_UNAVAILABLE, "this %s was built for %s; device %d, %s, is sm_%d%d",
             program ? "program" : "library", model->architectures, index, info->name, info->major, info->minor);
    snprintf(architecture, sizeof architecture, "sm_%d%d", info->major, info->minor);
    note_remake(fault, "rebuild it", model, "--arch", architecture, program);
    return fault->code;
}

int mtc_device_open(MtcFault *fault, const MtcModel *model, const char *program, int index, MtcDeviceInfo *info) {
    int count = 0;
    cudaError_t error = cudaGetDeviceCount(&count);
    memset(info, 0, sizeof *info);
    if (error != cudaSuccess || count == 0)
        return no_gpu(fault, model, program, why_none(error));
    if (index < 0 || index >= count)
        return mtc_fail(fault, MTC_UNAVAILABLE, "no device %d: there %s %d, numbered from 0", index,
                        count == 1 ? "is" : "are", count);
    struct cudaDeviceProp property;
    if ((error = cudaGetDeviceProperties(&property, index)) == cudaSuccess) {
        snprintf(info->name, sizeof info->name, "%s", property.name);
        memcpy(info->id, &property.uuid, sizeof info->id);
        info->major = property.major;
        info->minor = property.minor;
        if (!built_for(model->architectures, info->major, info->minor))
            return wrong_gpu(fault, model, program, index, info);
        error = cudaSetDevice(index);
    }
    if (error == cudaSuccess)
        error = cudaMemGetInfo(&info->free_bytes, &info->total_bytes);
    info->free_at_start = info->free_bytes;
    if (error != cudaSuccess)
        return mtc_fail(fault, MTC_UNAVAILABLE, "device %d: %s", index, cudaGetErrorString(error));
    return 0;
}

int mtc_device_count(void) {
    int count = 0;
    return cudaGetDeviceCount(&count) == cudaSuccess ? count : 0;
}

const char *mtc_device_choose(int index) {
    return cuda_text(cudaSetDevice(index));
}

static pthread_mutex_t giving_work = PTHREAD_MUTEX_INITIALIZER;

void mtc_device_lock(void) {
    pthread_mutex_lock(&giving_work);
}

void mtc_device_unlock(void) {
    pthread_mutex_unlock(&giving_work);
}

void mtc_device_refresh(MtcDeviceInfo *info) {
    size_t now = 0, total = 0;
    if (cudaMemGetInfo(&now, &total) == cudaSuccess)
        info->free_bytes = now;
}

const char *mtc_device_reaches(const void *memory, int index) {
    struct cudaPointerAttributes attributes;
    cudaError_t error = cudaPointerGetAttributes(&attributes, memory);
    if (error != cudaSuccess) {
        cudaGetLastError(); /* is no error of what follows */
        return cudaGetErrorString(error);
    }
    if (attributes.type == cudaMemoryTypeManaged)
        return NULL;
    if (attributes.type != cudaMemoryTypeDevice)
        return "it is memory of the host";
    return attributes.device == index ? NULL : "it is memory of another device";
}

size_t mtc_device_bytes(const MtcDeviceInfo *info) {
    size_t left = 0, total = 0;
    bool known = cudaMemGetInfo(&left, &total) == cudaSuccess && left < info->free_at_start;
    return known ? info->free_at_start - left : 0;
}

static double attribute(enum cudaDeviceAttr which, int index) {
    int value = 0;
    return cudaDeviceGetAttribute(&value, which, index) == cudaSuccess ? (double)value : 0;
}

/* Clocks are in kHz. Memory moves its bus width twice a cycle. */
MtcPeaks mtc_device_peaks(int index) {
    MtcPeaks peaks;
    peaks.bandwidth =
        2 * 1e3 * attribute(cudaDevAttrMemoryClockRate, index) * attribute(cudaDevAttrGlobalMemoryBusWidth, index) / 8;
    peaks.cycles = 1e3 * attribute(cudaDevAttrClockRate, index) * attribute(cudaDevAttrMultiProcessorCount, index);
    return peaks;
}

void mtc_range_begin(const char *name) {
#ifdef MTC_NVTX
    nvtxRangePushA(name);
#else
    (void)name;
#endif
}

void mtc_range_end(void) {
#ifdef MTC_NVTX
    nvtxRangePop();
#endif
}

const char *mtc_device_alloc(void **memory, size_t bytes) {
    return cuda_text(cudaMalloc(memory, bytes ? bytes : 1));
}

static bool abandoned;

void mtc_device_abandon(void) {
    abandoned = true;
}

/* CUDA gives no memory back before the work under way has ended, which may need it. */
void mtc_device_free(void *memory) {
    if (!abandoned)
        cudaFree(memory);
}

const char *mtc_host_alloc(void **memory, size_t bytes) {
    return cuda_text(cudaHostAlloc(memory, bytes ? bytes : 1, cudaHostAllocDefault));
}

void mtc_host_free(void *memory) {
    if (!abandoned)
        cudaFreeHost(memory);
}

void *mtc_host_view(void *device) {
    (void)device;
    return NULL;
}

const char *mtc_device_offer(const void *memory, MtcReach *reach) {
    cudaIpcMemHandle_t handle;
    const cudaError_t error = cudaIpcGetMemHandle(&handle, (void *)(uintptr_t)memory);
    static_assert(sizeof handle == sizeof *reach, "a handle of CUDA");
    memcpy(reach, &handle, sizeof *reach);
    return cuda_text(error);
}

/* What cannot be had is no error of what follows. */
const char *mtc_device_reach(const MtcReach *reach, void **memory) {
    cudaIpcMemHandle_t handle;
    memcpy(&handle, reach, sizeof handle);
    const char *error = cuda_text(cudaIpcOpenMemHandle(memory, handle, cudaIpcMemLazyEnablePeerAccess));
    cudaGetLastError();
    return error;
}

void mtc_device_leave(void *memory) {
    if (memory)
        cudaIpcCloseMemHandle(memory);
}

const char *mtc_upload(void *device, const void *host, size_t bytes) {
    return cuda_text(cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice, 0));
}

const char *mtc_download(void *host, const void *device, size_t bytes) {
    return cuda_text(cudaMemcpyAsync(host, device, bytes, cudaMemcpyDeviceToHost, 0));
}

const char *mtc_copy(void *device, const void *from_device, size_t bytes) {
    return cuda_text(cudaMemcpyAsync(device, from_device, bytes, cudaMemcpyDeviceToDevice, 0));
}

const char *mtc_zero(void *device, size_t bytes) {
    return cuda_text(cudaMemsetAsync(device, 0, bytes, 0));
}

const char *mtc_synchronize(void) {
    return cuda_text(cudaStreamSynchronize(0));
}

struct MtcEvent {
    cudaEvent_t event;
};

const char *mtc_event_new(MtcEvent **event) {
    *event = (MtcEvent *)calloc(1, sizeof **event);
    return *event ? cuda_text(cudaEventCreate(&(*event)->event)) : "out of memory";
}

void mtc_event_free(MtcEvent *event) {
    if (event && event->event)
        cudaEventDestroy(event->event);
    free(event);
}

const char *mtc_event_record(MtcEvent *event) {
    return cuda_text(cudaEventRecord(event->event, 0));
}

const char *mtc_event_wait(MtcEvent *event) {
    return cuda_text(cudaEventSynchronize(event->event));
}

bool mtc_event_pending(MtcEvent *event) {
    return cudaEventQuery(event->event) == cudaErrorNotReady;
}

double mtc_event_seconds(MtcEvent *from, MtcEvent *to) {
    float milliseconds = 0;
    cudaEventElapsedTime(&milliseconds, from->event, to->event);
    return 1e-3 * (double)milliseconds;
}

/* ---- copies beside the work ---- */

struct MtcStream {
    cudaStream_t stream;
};

const char *mtc_event_before_work(MtcEvent *event) {
    return cuda_text(cudaStreamWaitEvent(0, event->event, 0));
}

const char *mtc_stream_new(MtcStream **stream) {
    *stream = (MtcStream *)calloc(1, sizeof **stream);
    return *stream ? cuda_text(cudaStreamCreateWithFlags(&(*stream)->stream, cudaStreamNonBlocking)) : "out of memory";
}

void mtc_stream_free(MtcStream *stream) {
    if (stream && stream->stream) {
        cudaStreamSynchronize(stream->stream);
        cudaStreamDestroy(stream->stream);
    }
    free(stream);
}

const char *mtc_stream_wait(MtcStream *stream, MtcEvent *event) {
    return cuda_text(cudaStreamWaitEvent(stream->stream, event->event, 0));
}

const char *mtc_stream_upload(MtcStream *stream, void *device, const void *host, size_t bytes) {
    return cuda_text(cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice, stream->stream));
}

const char *mtc_stream_record(MtcStream *stream, MtcEvent *event) {
    return cuda_text(cudaEventRecord(event->event, stream->stream));
}
