/* CUDA's runtime on a machine without a GPU: its memory is the machine's, and what is given to a stream is done at once. So that the
 * runtime of generated programs compiles as it is; kernels are in cuda_on_host.h. */
#ifndef CUDA_RUNTIME_API_H
#define CUDA_RUNTIME_API_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef enum cudaError {
    cudaSuccess,
    cudaErrorNotSupported,
    cudaErrorNotReady,
    cudaErrorInvalidClusterSize,
    cudaErrorLaunchOutOfResources,
    cudaErrorMemoryAllocation
} cudaError_t;
typedef struct OnHostStream *cudaStream_t;
typedef struct OnHostEvent *cudaEvent_t;
typedef struct {
    char reserved[64];
} cudaIpcMemHandle_t;

enum cudaMemcpyKind { cudaMemcpyHostToHost, cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost, cudaMemcpyDeviceToDevice };
enum cudaMemoryType { cudaMemoryTypeUnregistered, cudaMemoryTypeHost, cudaMemoryTypeDevice, cudaMemoryTypeManaged };
enum cudaDeviceAttr {
    cudaDevAttrMultiProcessorCount,
    cudaDevAttrClockRate,
    cudaDevAttrMemoryClockRate,
    cudaDevAttrGlobalMemoryBusWidth
};
enum { cudaHostAllocDefault, cudaStreamNonBlocking = 1, cudaEventDisableTiming = 2, cudaIpcMemLazyEnablePeerAccess = 1 };

struct cudaDeviceProp {
    char name[256];
    struct {
        char bytes[16];
    } uuid;
    int major, minor;
};
struct cudaPointerAttributes {
    enum cudaMemoryType type;
    int device;
};

static inline const char *cudaGetErrorString(cudaError_t error) {
    return error == cudaErrorMemoryAllocation ? "out of memory" : "not on this machine";
}
static inline cudaError_t cudaGetLastError(void) {
    return cudaSuccess;
}
static inline cudaError_t cudaDriverGetVersion(int *version) {
    *version = 13000;
    return cudaSuccess;
}
static inline cudaError_t cudaGetDeviceCount(int *count) {
    *count = 1;
    return cudaSuccess;
}
static inline cudaError_t cudaGetDevice(int *device) {
    *device = 0;
    return cudaSuccess;
}
static inline cudaError_t cudaSetDevice(int device) {
    (void)device;
    return cudaSuccess;
}
static inline cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *property, int device) {
    (void)device;
    memset(property, 0, sizeof *property);
    strcpy(property->name, "this machine");
    property->major = 9;
    return cudaSuccess;
}
static inline cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr which, int device) {
    (void)which, (void)device;
    *value = 1;
    return cudaSuccess;
}
static inline cudaError_t cudaMemGetInfo(size_t *left, size_t *total) {
    *left = *total = (size_t)1 << 33;
    return cudaSuccess;
}
static inline cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *attributes, const void *memory) {
    (void)memory;
    attributes->type = cudaMemoryTypeHost;
    attributes->device = 0;
    return cudaSuccess;
}

/* ---- memory ---- */

static inline cudaError_t cudaMalloc(void **memory, size_t bytes) {
    *memory = aligned_alloc(1024, (bytes + 1023) / 1024 * 1024);
    return *memory ? cudaSuccess : cudaErrorMemoryAllocation;
}
static inline cudaError_t cudaHostAlloc(void **memory, size_t bytes, unsigned flags) {
    (void)flags;
    return cudaMalloc(memory, bytes);
}
static inline cudaError_t cudaFree(void *memory) {
    free(memory);
    return cudaSuccess;
}
static inline cudaError_t cudaFreeHost(void *memory) {
    return cudaFree(memory);
}
static inline cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind,
                                          cudaStream_t stream) {
    (void)kind, (void)stream;
    memmove(to, from, bytes);
    return cudaSuccess;
}
static inline cudaError_t cudaMemsetAsync(void *memory, int value, size_t bytes, cudaStream_t stream) {
    (void)stream;
    memset(memory, value, bytes);
    return cudaSuccess;
}
static inline cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t *handle, void *memory) {
    (void)handle, (void)memory;
    return cudaErrorNotSupported;
}
static inline cudaError_t cudaIpcOpenMemHandle(void **memory, cudaIpcMemHandle_t handle, unsigned flags) {
    (void)memory, (void)handle, (void)flags;
    return cudaErrorNotSupported;
}
static inline cudaError_t cudaIpcCloseMemHandle(void *memory) {
    (void)memory;
    return cudaSuccess;
}

/* ---- streams and events: all is done when it is asked for ---- */

static inline cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags) {
    (void)flags;
    *stream = (cudaStream_t)(uintptr_t)1;
    return cudaSuccess;
}
static inline cudaError_t cudaStreamDestroy(cudaStream_t stream) {
    (void)stream;
    return cudaSuccess;
}
static inline cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
    (void)stream;
    return cudaSuccess;
}
static inline cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags) {
    (void)stream, (void)event, (void)flags;
    return cudaSuccess;
}
static inline cudaError_t cudaEventCreate(cudaEvent_t *event) {
    *event = (cudaEvent_t)(uintptr_t)1;
    return cudaSuccess;
}
static inline cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags) {
    (void)flags;
    return cudaEventCreate(event);
}
static inline cudaError_t cudaEventDestroy(cudaEvent_t event) {
    (void)event;
    return cudaSuccess;
}
static inline cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
    (void)event, (void)stream;
    return cudaSuccess;
}
static inline cudaError_t cudaEventSynchronize(cudaEvent_t event) {
    (void)event;
    return cudaSuccess;
}
static inline cudaError_t cudaEventQuery(cudaEvent_t event) {
    (void)event;
    return cudaSuccess;
}
static inline cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t from, cudaEvent_t to) {
    (void)from, (void)to;
    *milliseconds = 1;
    return cudaSuccess;
}

#endif
