/* Linked with --wrap: says on stderr how many bytes of the host's memory are asked for, each time, and when weights are drawn. */
#include "base/device.h"
#include "session/init.h"

#include <stdio.h>

const char *__real_mtc_host_alloc(void **memory, size_t bytes);
const char *__wrap_mtc_host_alloc(void **memory, size_t bytes);

const char *__wrap_mtc_host_alloc(void **memory, size_t bytes) {
    fprintf(stderr, "host memory: %zu\n", bytes);
    return __real_mtc_host_alloc(memory, bytes);
}

int __real_mtc_draw_weights(MtcSession *session);
int __wrap_mtc_draw_weights(MtcSession *session);

int __wrap_mtc_draw_weights(MtcSession *session) {
    fputs("weights are drawn\n", stderr);
    return __real_mtc_draw_weights(session);
}
