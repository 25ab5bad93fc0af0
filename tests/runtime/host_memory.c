/* Linked with -Wl,--wrap=mtc_host_alloc: says on stderr how many bytes of the host's memory are asked for, each time. */
#include "base/device.h"

#include <stdio.h>

const char *__real_mtc_host_alloc(void **memory, size_t bytes);
const char *__wrap_mtc_host_alloc(void **memory, size_t bytes);

const char *__wrap_mtc_host_alloc(void **memory, size_t bytes) {
    fprintf(stderr, "host memory: %zu\n", bytes);
    return __real_mtc_host_alloc(memory, bytes);
}
