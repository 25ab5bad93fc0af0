#include "support/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char *read_open(Arena *arena, int file, size_t *size) {
    size_t capacity = 65536;
    char *bytes = arena_alloc(arena, capacity);
    *size = 0;
    for (ssize_t got; (got = read(file, bytes + *size, capacity - *size - 1)) != 0;) {
        if (got < 0 && errno != EINTR)
            return NULL;
        *size += got > 0 ? (size_t)got : 0;
        if (*size + 1 == capacity) {
            char *larger = arena_alloc(arena, capacity * 2);
            memcpy(larger, bytes, capacity);
            bytes = larger;
            capacity *= 2;
        }
    }
    bytes[*size] = '\0';
    return bytes;
}

char *file_read(Arena *arena, const char *path, size_t *size) {
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return NULL;
    char *bytes = read_open(arena, file, size);
    int reason = errno;
    close(file);
    errno = reason;
    return bytes;
}

static bool write_all(int file, const char *bytes, size_t size) {
    while (size) {
        ssize_t written = write(file, bytes, size);
        if (written < 0 && errno != EINTR)
            return false;
        bytes += written > 0 ? written : 0;
        size -= written > 0 ? (size_t)written : 0;
    }
    return true;
}

/* mkstemp makes files that only their owner can read; ours are like any other. */
static mode_t usual_mode(bool executable) {
    mode_t mask = umask(0);
    umask(mask);
    return (executable ? 0777 : 0666) & ~mask;
}

static int open_temporary(Arena *arena, const char *path, bool executable, char **name) {
    *name = arena_printf(arena, "%s.XXXXXX", path);
    int file = mkstemp(*name);
    if (file >= 0) {
        fcntl(file, F_SETFD, FD_CLOEXEC);
        fchmod(file, usual_mode(executable));
    }
    return file;
}

static bool write_mode(Arena *arena, const char *path, const void *bytes, size_t size, bool executable) {
    char *name;
    int file = open_temporary(arena, path, executable, &name);
    if (file < 0)
        return false;
    bool good = write_all(file, bytes, size);
    good = close(file) == 0 && good && rename(name, path) == 0;
    int reason = errno;
    if (!good)
        unlink(name);
    errno = reason;
    return good;
}

bool file_write(Arena *arena, const char *path, const void *bytes, size_t size) {
    return write_mode(arena, path, bytes, size, false);
}

bool file_copy(Arena *arena, const char *from, const char *to, bool executable) {
    size_t size;
    char *bytes = file_read(arena, from, &size);
    return bytes && write_mode(arena, to, bytes, size, executable);
}

const char *file_temporary(Arena *arena, const char *path) {
    char *name;
    int file = open_temporary(arena, path, false, &name);
    if (file < 0)
        return NULL;
    close(file);
    return name;
}

bool file_exists(const char *path) {
    struct stat status;
    return stat(path, &status) == 0;
}

bool folder_make(Arena *arena, const char *path) {
    struct stat status;
    if (stat(path, &status) == 0) {
        errno = ENOTDIR;
        return S_ISDIR(status.st_mode);
    }
    const char *parent = path_folder(arena, path);
    if (strcmp(parent, path) != 0 && !folder_make(arena, parent))
        return false;
    return mkdir(path, 0777) == 0 || errno == EEXIST;
}

const char *folder_temporary(Arena *arena) {
    const char *wanted = getenv("TMPDIR");
    char *path = arena_printf(arena, "%s/mtc-XXXXXX", wanted && wanted[0] == '/' ? wanted : "/tmp");
    return mkdtemp(path);
}

void folder_remove(Arena *arena, const char *path) {
    DIR *listing = opendir(path);
    for (struct dirent *item; listing && (item = readdir(listing));)
        unlink(path_in(arena, path, item->d_name));
    if (listing)
        closedir(listing);
    rmdir(path);
}

const char *path_folder(Arena *arena, const char *path) {
    const char *slash = strrchr(path, '/');
    if (!slash)
        return ".";
    return slash == path ? "/" : arena_strndup(arena, path, (size_t)(slash - path));
}

const char *path_base(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

const char *path_in(Arena *arena, const char *folder, const char *name) {
    if (name[0] == '/' || strcmp(folder, ".") == 0)
        return name;
    const char *slash = folder[0] && folder[strlen(folder) - 1] == '/' ? "" : "/";
    return arena_printf(arena, "%s%s%s", folder, slash, name);
}

const char *path_beside(const char *path, const char *other) {
    size_t folder = (size_t)(path_base(other) - other);
    return strncmp(path, other, folder) == 0 ? path + folder : path;
}

bool path_same(const char *a, const char *b) {
    struct stat x, y;
    return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}
