/* Asks the CUDA driver, loaded only when it is there, which GPUs this machine has. */
#include "emit/toolchain.h"
#include "support/text.h"

#include <dlfcn.h>

enum { CUDA_SUCCESS = 0, COMPUTE_CAPABILITY_MAJOR = 75, COMPUTE_CAPABILITY_MINOR = 76 };

typedef struct Driver {
    int (*init)(unsigned flags);
    int (*count)(int *count);
    int (*device)(int *device, int ordinal);
    int (*attribute)(int *value, int attribute, int device);
} Driver;

/* dlsym returns an object pointer; POSIX lets it be stored through this cast. */
static bool load(void *library, const char *name, void *function) {
    *(void **)function = dlsym(library, name);
    return *(void **)function != NULL;
}

static bool open_driver(Driver *driver) {
    void *library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
    return library && load(library, "cuInit", &driver->init) && load(library, "cuDeviceGetCount", &driver->count) &&
           load(library, "cuDeviceGet", &driver->device) &&
           load(library, "cuDeviceGetAttribute", &driver->attribute) && driver->init(0) == CUDA_SUCCESS;
}

const char *gpu_architectures(Arena *arena) {
    Driver driver;
    int count = 0;
    if (!open_driver(&driver) || driver.count(&count) != CUDA_SUCCESS)
        return NULL;
    Text list = TEXT(arena);
    for (int i = 0; i < count; i++) {
        int device, major, minor;
        if (driver.device(&device, i) != CUDA_SUCCESS ||
            driver.attribute(&major, COMPUTE_CAPABILITY_MAJOR, device) != CUDA_SUCCESS ||
            driver.attribute(&minor, COMPUTE_CAPABILITY_MINOR, device) != CUDA_SUCCESS)
            continue;
        const char *name = arena_printf(arena, "sm_%d%d", major, minor);
        if (!strstr(text_string(&list), name))
            text_printf(&list, "%s%s", list.length ? "," : "", name);
    }
    return list.length ? text_string(&list) : NULL;
}
