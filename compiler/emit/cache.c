#include "emit/cache.h"

#include "support/file.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { MAX_ENTRIES = 64, KEY_LENGTH = 64 };

static const char *cache_folder(Arena *arena) {
    const char *caches = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    if (caches && caches[0] == '/')
        return path_in(arena, caches, "mtc");
    return home && home[0] == '/' ? path_in(arena, home, ".cache/mtc") : NULL;
}

bool cache_get(Arena *arena, const char *key, const char *output) {
    const char *folder = cache_folder(arena);
    if (!folder)
        return false;
    const char *entry = path_in(arena, folder, key);
    utimensat(AT_FDCWD, entry, NULL, 0); /* used now: the oldest are dropped first */
    return file_copy(arena, entry, output, true);
}

typedef struct Entry {
    const char *path;
    struct timespec used;
} Entry;

static int newest_first(const void *a, const void *b) {
    const struct timespec x = ((const Entry *)a)->used, y = ((const Entry *)b)->used;
    if (x.tv_sec != y.tv_sec)
        return x.tv_sec < y.tv_sec ? 1 : -1;
    return (x.tv_nsec < y.tv_nsec) - (x.tv_nsec > y.tv_nsec);
}

static void drop_oldest(Arena *arena, const char *folder) {
    VEC(Entry) entries = {0};
    DIR *listing = opendir(folder);
    for (struct dirent *item; listing && (item = readdir(listing));) {
        const char *path = path_in(arena, folder, item->d_name);
        struct stat status;
        if (strlen(item->d_name) == KEY_LENGTH && stat(path, &status) == 0)
            VEC_PUSH(arena, &entries, ((Entry){path, status.st_mtim}));
    }
    if (listing)
        closedir(listing);
    if (entries.count <= MAX_ENTRIES)
        return;
    qsort(entries.at, (size_t)entries.count, sizeof *entries.at, newest_first);
    for (int i = MAX_ENTRIES; i < entries.count; i++)
        unlink(entries.at[i].path);
}

void cache_put(Arena *arena, const char *key, const char *program) {
    const char *folder = cache_folder(arena);
    if (!folder || !folder_make(arena, folder) || !file_copy(arena, program, path_in(arena, folder, key), true))
        return;
    drop_oldest(arena, folder);
}
