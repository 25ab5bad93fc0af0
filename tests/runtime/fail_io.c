/* Loaded before the C library: makes the n-th call that writes below a folder fail.
 *
 *     FAIL_BELOW   absolute path of the folder
 *     FAIL_AT      which call fails, from 1; 0: none
 *     FAIL_ERRNO   with which error
 *     FAIL_ON      1: and every one after it
 *     FAIL_LINKS   1: every link, as on a file system that has none
 *     FAIL_TOUCH   a file that another program writes, to the same bytes, whenever one is read from
 *     FAIL_COUNT   a file that is told how many such calls there were
 *     FAIL_TRACE   a file that gets a line for each, before it is made: "fsync /folder/file"
 *
 * Calls are open (for writing, or of a folder), write, fsync, rename and link. A write that fails for want of
 * space has written half of its bytes before. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

enum { DESCRIPTORS = 1024 };
static char *watched[DESCRIPTORS]; /* the path of each that is; NULL: not watched */
static int calls;

static long number(const char *name) {
    const char *text = getenv(name);
    return text ? atol(text) : 0;
}

static int is_below(const char *path) {
    const char *folder = getenv("FAIL_BELOW");
    return folder && strncmp(path, folder, strlen(folder)) == 0;
}

static void trace(const char *call, const char *path) {
    const char *name = getenv("FAIL_TRACE");
    FILE *file = name ? fopen(name, "a") : NULL; /* not by the open below */
    if (file) {
        fprintf(file, "%s %s\n", call, path);
        fclose(file);
    }
}

static int fails(const char *call, const char *path) {
    long at = number("FAIL_AT");
    calls++;
    trace(call, path);
    if (at == 0 || (number("FAIL_ON") ? calls < at : calls != at))
        return 0;
    errno = (int)number("FAIL_ERRNO");
    return 1;
}

__attribute__((destructor)) static void tell(void) {
    const char *path = getenv("FAIL_COUNT");
    FILE *file = path ? fopen(path, "w") : NULL;
    if (file) {
        fprintf(file, "%d", calls);
        fclose(file);
    }
}

static const char *path_of(int file) {
    return file >= 0 && file < DESCRIPTORS ? watched[file] : NULL;
}

int open(const char *path, int flags, ...) {
    static int (*real)(const char *, int, ...);
    va_list args;
    va_start(args, flags);
    int mode = flags & O_CREAT ? va_arg(args, int) : 0;
    va_end(args);
    if (!real)
        real = (int (*)(const char *, int, ...))dlsym(RTLD_NEXT, "open");
    int watch = is_below(path) && flags & (O_WRONLY | O_RDWR | O_DIRECTORY);
    if (watch && fails("open", path))
        return -1;
    int file = real(path, flags, mode);
    if (file >= 0 && file < DESCRIPTORS)
        watched[file] = watch ? strdup(path) : NULL;
    return file;
}

ssize_t write(int file, const void *bytes, size_t size) {
    static ssize_t (*real)(int, const void *, size_t);
    if (!real)
        real = (ssize_t(*)(int, const void *, size_t))dlsym(RTLD_NEXT, "write");
    if (path_of(file) && fails("write", path_of(file))) {
        int error = errno;
        ssize_t written = error == ENOSPC ? real(file, bytes, size / 2) : 0;
        errno = error;
        return written < 0 ? written : -1;
    }
    return real(file, bytes, size);
}

ssize_t pread(int file, void *bytes, size_t size, off_t at) {
    static ssize_t (*real)(int, void *, size_t, off_t);
    const char *touched = getenv("FAIL_TOUCH");
    if (!real)
        real = (ssize_t(*)(int, void *, size_t, off_t))dlsym(RTLD_NEXT, "pread");
    return touched && utimensat(AT_FDCWD, touched, NULL, 0) != 0 ? -1 : real(file, bytes, size, at);
}

int fsync(int file) {
    static int (*real)(int);
    if (!real)
        real = (int (*)(int))dlsym(RTLD_NEXT, "fsync");
    return path_of(file) && fails("fsync", path_of(file)) ? -1 : real(file);
}

int rename(const char *from, const char *to) {
    static int (*real)(const char *, const char *);
    if (!real)
        real = (int (*)(const char *, const char *))dlsym(RTLD_NEXT, "rename");
    return is_below(to) && fails("rename", to) ? -1 : real(from, to);
}

int linkat(int from_folder, const char *from, int to_folder, const char *to, int flags) {
    static int (*real)(int, const char *, int, const char *, int);
    if (!real)
        real = (int (*)(int, const char *, int, const char *, int))dlsym(RTLD_NEXT, "linkat");
    if (number("FAIL_LINKS")) {
        errno = EPERM;
        return -1;
    }
    return is_below(to) && fails("link", to) ? -1 : real(from_folder, from, to_folder, to, flags);
}
