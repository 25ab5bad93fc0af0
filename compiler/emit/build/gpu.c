/* Asks NVML, which comes with the driver and is loaded only when it is there, which GPUs this machine has. (The CUDA
 * driver itself knows too, but takes ten times as long to start.) */
#include "emit/build/toolchain.h"
#include "support/text.h"

#include <dlfcn.h>
#include <stdlib.h>

enum { NVML_SUCCESS = 0 };

typedef struct Nvml {
    int (*init)(void);
    int (*count)(unsigned *count);
    int (*device)(unsigned index, void **device);
    int (*capability)(void *device, int *major, int *minor);
} Nvml;

/* dlsym returns an object pointer; POSIX lets it be stored through this cast. */
static bool load(void *library, const char *name, void *function) {
    *(void **)function = dlsym(library, name);
    return *(void **)function != NULL;
}

static bool open_nvml(Nvml *nvml) {
    void *library = dlopen("libnvidia-ml.so.1", RTLD_LAZY | RTLD_LOCAL);
    return library && load(library, "nvmlInit_v2", &nvml->init) &&
           load(library, "nvmlDeviceGetCount_v2", &nvml->count) &&
           load(library, "nvmlDeviceGetHandleByIndex_v2", &nvml->device) &&
           load(library, "nvmlDeviceGetCudaComputeCapability", &nvml->capability) && nvml->init() == NVML_SUCCESS;
}

/* NVML lists GPUs that CUDA was told not to see, too. */
static bool all_hidden(void) {
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    return visible && (!*visible || strcmp(visible, "-1") == 0 || strcmp(visible, "NoDevFiles") == 0);
}

const char *gpu_architectures(Arena *arena) {
    Nvml nvml;
    unsigned count = 0;
    if (all_hidden() || !open_nvml(&nvml) || nvml.count(&count) != NVML_SUCCESS)
        return NULL;
    Text list = TEXT(arena);
    for (unsigned i = 0; i < count; i++) {
        void *device;
        int major, minor;
        if (nvml.device(i, &device) != NVML_SUCCESS || nvml.capability(device, &major, &minor) != NVML_SUCCESS)
            continue;
        const char *own = major == 9 ? "a" : ""; /* instructions of its own: products of groups of warps */
        const char *name = arena_printf(arena, "sm_%d%d%s", major, minor, own);
        if (!strstr(text_string(&list), name))
            text_printf(&list, "%s%s", list.length ? "," : "", name);
    }
    return list.length ? text_string(&list) : NULL;
}
