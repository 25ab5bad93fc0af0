/* libFuzzer harness: everything that mtc does with a model file, short of calling a compiler, in this process.
 *
 * Each input is compiled to CUDA C++ and formatted. A user's fault is a message; exiting, crashing, leaking or a report
 * of a sanitizer is a find. */
#define main compiler_main
#include "main.c"
#undef main

#include <sys/mman.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static int file = -1;
    static char path[64];
    if (file < 0) {
        file = memfd_create("model", 0);
        snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    }
    if (ftruncate(file, 0) != 0 || pwrite(file, data, size, 0) != (ssize_t)size)
        abort();
    compiler_main(3, (char *[]){"mtc", "--emit=cu", path, NULL});
    compiler_main(3, (char *[]){"mtc", "--format", path, NULL});
    return 0;
}
