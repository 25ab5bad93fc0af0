/* Files that need no disk. _GNU_SOURCE is defined where this is included. */
#ifndef MTC_FUZZ_MEMORY_FILE_H
#define MTC_FUZZ_MEMORY_FILE_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* A file in memory, of these bytes: its path. Close it. */
static void memory_file(int *file, char *path, size_t path_size, const uint8_t *data, size_t size) {
    *file = memfd_create("input", 0);
    if (*file < 0 || write(*file, data, size) != (ssize_t)size)
        abort();
    snprintf(path, path_size, "/proc/self/fd/%d", *file);
}

#endif
