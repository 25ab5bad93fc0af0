/* Linked with -Wl,--wrap=pread: before each read, the file named CHANGED_FILE gets CHANGED_SIZE bytes, as another program might
 * make it. */
#include <stdlib.h>
#include <unistd.h>

ssize_t __real_pread(int file, void *bytes, size_t size, off_t at);
ssize_t __wrap_pread(int file, void *bytes, size_t size, off_t at);

ssize_t __wrap_pread(int file, void *bytes, size_t size, off_t at) {
    const char *path = getenv("CHANGED_FILE");
    if (path && truncate(path, atol(getenv("CHANGED_SIZE"))) != 0)
        return -1;
    return __real_pread(file, bytes, size, at);
}
