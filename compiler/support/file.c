#include "support/file.h"

#include "runtime/base/files.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

const char *file_why(const char *path) {
    return mtc_why_unwritten(path);
}

/* With room for a byte behind its end, where that is known: the read that finds the end asks for more than none. */
static size_t room_for(int file) {
    struct stat status;
    bool known = fstat(file, &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0;
    return known ? (size_t)status.st_size + 2 : 65536;
}

static char *read_open(Arena *arena, int file, size_t *size) {
    size_t capacity = room_for(file);
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

char *file_read(Arena *arena, const char *path, size_t *size, const char **why) {
    const char *reason = NULL;
    int file = mtc_open_stream(path, &reason);
    char *bytes = file >= 0 ? read_open(arena, file, size) : NULL;
    if (!bytes && !reason)
        reason = strerror(errno);
    if (file >= 0)
        close(file);
    if (why)
        *why = reason;
    return bytes;
}

int file_open(const char *path, const char **why) {
    return mtc_open_stream(path, why);
}

typedef int (*Permission)(MtcFault *fault, MtcOutput *output); /* NULL: as usual */

static bool write_as(const char *path, const void *bytes, size_t size, Permission permit) {
    MtcFault unused; /* it says no more than errno */
    MtcOutput *output;
    if (mtc_output_open(&unused, path, &output))
        return false;
    if (!mtc_output_write(&unused, output, bytes, size) && !(permit && permit(&unused, output)))
        return mtc_output_place(&unused, output) == 0;
    mtc_output_discard(output);
    return false;
}

bool file_write(const char *path, const void *bytes, size_t size) {
    return write_as(path, bytes, size, NULL);
}

bool file_write_program(const char *path, const void *bytes, size_t size) {
    return write_as(path, bytes, size, mtc_output_executable);
}

bool file_write_private(const char *path, const void *bytes, size_t size) {
    return write_as(path, bytes, size, mtc_output_private);
}

const char *data_file(Arena *arena, const char *model, const char *path) {
    MtcFault unused;
    char *found;
    if (mtc_find_data(&unused, model, NULL, path, &found))
        return NULL;
    const char *result = arena_strdup(arena, found);
    free(found);
    return result;
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
    return folder_temporary_as(arena, path_in(arena, wanted && wanted[0] == '/' ? wanted : "/tmp", "mtc"));
}

const char *folder_temporary_as(Arena *arena, const char *path) {
    return mkdtemp(arena_printf(arena, "%s.XXXXXX", path));
}

void folder_remove(Arena *arena, const char *path) {
    DIR *listing = opendir(path);
    for (struct dirent *item; listing && (item = readdir(listing));)
        unlink(path_in(arena, path, item->d_name));
    if (listing)
        closedir(listing);
    rmdir(path);
}

/* ---- folders to work in ---- */

enum { RANDOM_LETTERS = 6 }; /* of mkdtemp */

/* Locked as long as this process lives. False: whoever cleans up has seen it before that, and removes it. */
static bool lock_folder(const char *path) {
    struct stat opened, named;
    int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC); /* stays open */
    if (folder < 0)
        return errno != ENOENT;
    if (flock(folder, LOCK_EX | LOCK_NB) != 0 ? errno != EWOULDBLOCK /* a file system without locks */
                                              : fstat(folder, &opened) == 0 && stat(path, &named) == 0 &&
                                                    opened.st_dev == named.st_dev && opened.st_ino == named.st_ino)
        return true;
    close(folder);
    return false;
}

static bool is_named_so(const char *name, const char *base) {
    size_t length = strlen(base);
    if (strncmp(name, base, length) != 0 || name[length] != '.')
        return false;
    for (name += length + 1; isalnum((unsigned char)*name); name++)
        length++;
    return !*name && length == strlen(base) + RANDOM_LETTERS;
}

/* Nothing but files of ours: what somebody else calls so stays. */
static bool holds_ours(const char *path, const char *const *ours, int count) {
    DIR *listing = opendir(path);
    bool only = listing != NULL;
    for (struct dirent *item; only && (item = readdir(listing));) {
        bool known = strcmp(item->d_name, ".") == 0 || strcmp(item->d_name, "..") == 0;
        for (int i = 0; i < count && !known; i++)
            known = strcmp(item->d_name, ours[i]) == 0;
        only = known;
    }
    if (listing)
        closedir(listing);
    return only;
}

static void remove_dead_folder(Arena *arena, const char *path, const char *const *ours, int count) {
    int folder = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (folder < 0)
        return;
    if (holds_ours(path, ours, count) && flock(folder, LOCK_EX | LOCK_NB) == 0)
        folder_remove(arena, path);
    close(folder);
}

const char *folder_to_work_in(Arena *arena, const char *path, const char *const *files, int count) {
    enum { MOST_TRIES = 100 };
    const char *parent = path_folder(arena, path), *made = NULL;
    DIR *listing = opendir(parent);
    for (struct dirent *item; listing && (item = readdir(listing));)
        if (is_named_so(item->d_name, path_base(path)))
            remove_dead_folder(arena, path_in(arena, parent, item->d_name), files, count);
    if (listing)
        closedir(listing);
    for (int i = 0; i < MOST_TRIES; i++)
        if (!(made = folder_temporary_as(arena, path)) || lock_folder(made))
            break;
    return made;
}

/* ---- paths ---- */

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
