#include "emit/build/cache.h"

#include "support/file.h"
#include "support/sha256.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { MAX_ENTRIES = 64, KEY_LENGTH = 64, DIGEST_LENGTH = 64, LARGEST = 1 << 30 };

static const Span nowhere = {0};

/* ---- the folder ---- */

/* A folder of its own: beside it lie data, which others may be meant to write. */
static const char *cache_folder(Arena *arena) {
    const char *caches = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    if (caches && caches[0] == '/')
        return path_in(arena, caches, "mtc/programs");
    return home && home[0] == '/' ? path_in(arena, home, ".cache/mtc/programs") : NULL;
}

/* What only this user may write. */
static bool is_ours(const struct stat *status) {
    return status->st_uid == geteuid() && !(status->st_mode & (S_IWGRP | S_IWOTH));
}

/* What is checked is the folder that was opened: a name may mean another one the next moment. -1: there is none, or none
 * that can be trusted, with errno EPERM. */
static int open_folder(const char *path) {
    int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct stat status;
    if (folder < 0 || (fstat(folder, &status) == 0 && is_ours(&status)))
        return folder;
    close(folder);
    errno = EPERM;
    return -1;
}

/* ---- entries: the digest of key and program, the program ---- */

typedef struct Entry {
    char *bytes;
    size_t size;
} Entry;

static const char *digest(Arena *arena, const char *key, const char *program, size_t size) {
    Sha256 hash;
    sha256_begin(&hash);
    sha256_add_string(&hash, key);
    sha256_add(&hash, program, size);
    return sha256_hex(&hash, arena);
}

static bool is_whole(Arena *arena, const char *key, const Entry *entry) {
    if (entry->size <= DIGEST_LENGTH)
        return false;
    const char *right = digest(arena, key, entry->bytes + DIGEST_LENGTH, entry->size - DIGEST_LENGTH);
    return memcmp(entry->bytes, right, DIGEST_LENGTH) == 0;
}

/* Reads to the end: a file that shrinks meanwhile is one that is not whole. */
static bool read_regular(Arena *arena, int file, Entry *entry) {
    struct stat status;
    if (fstat(file, &status) != 0 || !S_ISREG(status.st_mode) || !is_ours(&status) || status.st_size > LARGEST)
        return false;
    *entry = (Entry){arena_alloc(arena, (size_t)status.st_size + 1), 0};
    for (ssize_t got; entry->size < (size_t)status.st_size; entry->size += (size_t)got)
        if ((got = read(file, entry->bytes + entry->size, (size_t)status.st_size - entry->size)) <= 0)
            return false;
    return true;
}

/* Nothing is waited for: a FIFO has no writer. */
static bool read_entry(Arena *arena, int folder, const char *key, Entry *entry) {
    int file = openat(folder, key, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
    if (file < 0)
        return false;
    bool good = read_regular(arena, file, entry) && is_whole(arena, key, entry);
    if (good)
        futimens(file, NULL); /* used now: the oldest are dropped first */
    close(file);
    return good;
}

static bool is_there(int folder, const char *key) {
    struct stat status;
    return fstatat(folder, key, &status, AT_SYMLINK_NOFOLLOW) == 0;
}

const char *cache_find(Diag *diag, const char *key, size_t *size) {
    Arena *arena = diag_arena(diag);
    const char *path = cache_folder(arena);
    int folder = path ? open_folder(path) : -1;
    Entry entry;
    if (folder < 0) {
        if (path && errno == EPERM)
            diag_warning(diag, nowhere, "the cache '%s' is not used: somebody else owns it or may write to it", path);
        return NULL;
    }
    bool found = read_entry(arena, folder, key, &entry);
    if (!found && is_there(folder, key)) {
        diag_note(diag, nowhere, "the cache's entry '%s' is damaged, or somebody else's: compiling anew",
                  path_in(arena, path, key));
        unlinkat(folder, key, 0);
    }
    close(folder);
    *size = found ? entry.size - DIGEST_LENGTH : 0;
    return found ? entry.bytes + DIGEST_LENGTH : NULL;
}

/* ---- the oldest ---- */

typedef struct Listed {
    const char *name;
    struct timespec used;
} Listed;

static int newest_first(const void *a, const void *b) {
    const struct timespec x = ((const Listed *)a)->used, y = ((const Listed *)b)->used;
    if (x.tv_sec != y.tv_sec)
        return x.tv_sec < y.tv_sec ? 1 : -1;
    return (x.tv_nsec < y.tv_nsec) - (x.tv_nsec > y.tv_nsec);
}

/* Whatever begins with a key: an entry, or what a program that was killed left unfinished. */
static void drop_oldest(Arena *arena, const char *path) {
    VEC(Listed) listed = {0};
    DIR *listing = opendir(path);
    struct stat status;
    for (struct dirent *item; listing && (item = readdir(listing));)
        if (strspn(item->d_name, "0123456789abcdef") >= KEY_LENGTH &&
            fstatat(dirfd(listing), item->d_name, &status, AT_SYMLINK_NOFOLLOW) == 0)
            VEC_PUSH(arena, &listed, ((Listed){arena_strdup(arena, item->d_name), status.st_mtim}));
    if (listed.count > MAX_ENTRIES)
        qsort(listed.at, (size_t)listed.count, sizeof *listed.at, newest_first);
    for (int i = MAX_ENTRIES; i < listed.count; i++)
        unlinkat(dirfd(listing), listed.at[i].name, 0);
    if (listing)
        closedir(listing);
}

/* Whatever the umask is, others may not write what will be run. */
static bool folder_make_private(Arena *arena, const char *path) {
    return folder_make(arena, path_folder(arena, path)) && (mkdir(path, 0700) == 0 || errno == EEXIST);
}

void cache_put(Arena *arena, const char *key, const char *program, size_t size) {
    const char *path = cache_folder(arena);
    int folder = path && folder_make_private(arena, path) ? open_folder(path) : -1;
    if (folder < 0)
        return;
    close(folder);
    Entry entry = {arena_alloc(arena, size + DIGEST_LENGTH), size + DIGEST_LENGTH};
    memcpy(entry.bytes, digest(arena, key, program, size), DIGEST_LENGTH);
    memcpy(entry.bytes + DIGEST_LENGTH, program, size);
    if (file_write_private(path_in(arena, path, key), entry.bytes, entry.size))
        drop_oldest(arena, path);
}
