#include "files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- finding data ---- */

/* "models/mnist.mt" -> "models"; no folder: ".". */
static char *folder_of(const char *path) {
    const char *slash = strrchr(path, '/');
    MtcText text = {NULL, 0, 0};
    if (!slash)
        mtc_text_add(&text, ".");
    else
        mtc_text_add(&text, "%.*s", slash == path ? 1 : (int)(slash - path), path);
    return text.at;
}

static bool is_of_kind(const char *path, bool folder) {
    struct stat status;
    return stat(path, &status) == 0 && (folder ? S_ISDIR(status.st_mode) : S_ISREG(status.st_mode));
}

/* What a message calls the path: absolute, whether it exists or not. */
static void add_absolute(MtcText *text, const char *path) {
    char folder[4096];
    if (path[0] != '/' && getcwd(folder, sizeof folder))
        mtc_text_add(text, "%s/", folder);
    mtc_text_add(text, "%s", path);
}

/* A search: the places tried so far, one a line, and the file or folder once it is found. */
typedef struct DataSearch {
    bool for_folder;
    MtcText tried;
    char *found;
} DataSearch;

static void try_place(DataSearch *search, const char *folder, const char *path) {
    static const char *const ending[] = {"", ".gz"};
    for (int i = 0; i < (search->for_folder ? 1 : 2) && !search->found; i++) {
        MtcText candidate = {NULL, 0, 0};
        mtc_text_add(&candidate, "%s%s%s%s", folder ? folder : "", folder ? "/" : "", path, ending[i]);
        if (is_of_kind(candidate.at, search->for_folder)) {
            search->found = candidate.at;
            return;
        }
        mtc_text_add(&search->tried, "\n    ");
        add_absolute(&search->tried, candidate.at);
        free(candidate.at);
    }
}

static void try_cache(DataSearch *search, const char *path) {
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    MtcText folder = {NULL, 0, 0};
    if (cache && *cache)
        mtc_text_add(&folder, "%s/mtc", cache);
    else if (home && *home)
        mtc_text_add(&folder, "%s/.cache/mtc", home);
    if (folder.at)
        try_place(search, folder.at, path);
    free(folder.at);
}

static void try_default_places(DataSearch *search, const char *source, const char *path) {
    const char *data = getenv("MTC_DATA_DIR");
    char *beside = folder_of(source);
    try_place(search, strcmp(beside, ".") == 0 ? NULL : beside, path);
    if (data && *data)
        try_place(search, data, path);
    try_cache(search, path);
    free(beside);
}

static int find(MtcFault *fault, const char *source, const char *folder, const char *path, bool for_folder,
                char **found) {
    DataSearch search = {for_folder, {NULL, 0, 0}, NULL};
    const char *slash = strrchr(path, '/');
    if (path[0] == '/')
        try_place(&search, NULL, path);
    else if (!folder)
        try_default_places(&search, source, path);
    else {
        try_place(&search, folder, path);
        if (slash)
            try_place(&search, folder, slash + 1);
    }
    *found = search.found;
    if (!search.found) {
        mtc_fail(fault, MTC_NO_INPUT, "no data %s '%s'; tried%s", for_folder ? "folder" : "file", path,
                 search.tried.at);
        mtc_note(fault, "say where it is with --data FOLDER or $MTC_DATA_DIR");
    }
    free(search.tried.at);
    return search.found ? 0 : fault->code;
}

int mtc_find_data(MtcFault *fault, const char *source, const char *folder, const char *path, char **found) {
    return find(fault, source, folder, path, false, found);
}

int mtc_find_folder(MtcFault *fault, const char *source, const char *folder, const char *path, char **found) {
    return find(fault, source, folder, path, true, found);
}

/* ---- writing ---- */

/* Written as `temporary`, "<path>.<number of the process>.tmp", under a lock as long as its process lives: what a killed
 * program left is told apart by having none. A path that is no plain file, such as /dev/null, is written in place. */
struct MtcOutput {
    char *path, *temporary, *folder;
    int file;
};

static int cannot_write(MtcFault *fault, const char *path, int code) {
    return mtc_fail(fault, code, "%s: cannot write: %s", path, strerror(errno));
}

bool mtc_written_in_place(const char *path) {
    struct stat status;
    return stat(path, &status) == 0 && !S_ISREG(status.st_mode);
}

char *mtc_resolved(const char *path) {
    char *target = realpath(path, NULL);
    return target ? target : strdup(path);
}

static char *temporary_name(const char *base) {
    MtcText text = {NULL, 0, 0};
    mtc_text_add(&text, "%s.%ld.tmp", base, (long)getpid());
    return text.at;
}

static MtcOutput *output_new(const char *path, const char *base) {
    MtcOutput *output = (MtcOutput *)calloc(1, sizeof *output);
    if (!output || !(output->path = mtc_resolved(path))) {
        free(output);
        return NULL;
    }
    if (mtc_written_in_place(path))
        output->temporary = strdup(output->path);
    else
        output->temporary = temporary_name(base ? base : output->path);
    output->folder = folder_of(output->path);
    return output;
}

static bool in_place(const MtcOutput *output) {
    return strcmp(output->path, output->temporary) == 0;
}

/* Removes a temporary file unless a program that runs holds its lock. */
static void remove_leftover(const char *path) {
    int file = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (file < 0)
        return;
    if (flock(file, LOCK_EX | LOCK_NB) == 0)
        unlink(path);
    close(file);
}

/* Whoever cleans the folder may have seen the new file before it was locked, and removed it: then again. */
static int create_temporary(const char *path) {
    struct stat status;
    for (;;) {
        remove_leftover(
            path); /* of a program that had our number; another machine or container may have one that runs */
        int file = open(path, O_WRONLY | O_CLOEXEC | O_CREAT | O_EXCL, 0666);
        if (file < 0 || flock(file, LOCK_EX) != 0 || fstat(file, &status) != 0 || status.st_nlink > 0)
            return file;
        close(file);
    }
}

int mtc_output_open_as(MtcFault *fault, const char *path, const char *base, MtcOutput **result) {
    MtcOutput *output = output_new(path, base);
    if (!output)
        return mtc_no_memory(fault, sizeof *output, path);
    if (in_place(output))
        output->file = open(output->path, O_WRONLY | O_CLOEXEC | O_TRUNC);
    else
        output->file = create_temporary(output->temporary);
    *result = output;
    if (output->file >= 0)
        return 0;
    cannot_write(fault, path, MTC_CANT_CREATE);
    mtc_output_discard(output);
    return fault->code;
}

int mtc_output_open(MtcFault *fault, const char *path, MtcOutput **result) {
    return mtc_output_open_as(fault, path, NULL, result);
}

int mtc_output_write(MtcFault *fault, MtcOutput *output, const void *bytes, size_t size) {
    const char *at = (const char *)bytes;
    while (size > 0) {
        ssize_t n = write(output->file, at, size < 1u << 30 ? size : 1u << 30);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return cannot_write(fault, output->path, MTC_IO);
        at += n;
        size -= (size_t)n;
    }
    return 0;
}

/* Makes a move durable: a directory is synchronised like a file, where it may be read and the file system can. */
static int synchronise_folder(MtcFault *fault, const char *path, const char *folder) {
    int directory = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool bad = directory < 0 ? errno != EACCES : fsync(directory) != 0 && errno != EINVAL;
    int code = bad ? cannot_write(fault, path, MTC_IO) : 0;
    if (directory >= 0)
        close(directory);
    return code;
}

int mtc_output_commit(MtcFault *fault, MtcOutput *output) {
    int code = 0;
    if (in_place(output)) {
        bool failed = close(output->file) != 0;
        output->file = -1;
        code = failed ? cannot_write(fault, output->path, MTC_IO) : 0;
    } else if (fsync(output->file) != 0 || rename(output->temporary, output->path) != 0)
        code = cannot_write(fault, output->path, MTC_IO);
    else
        code = synchronise_folder(fault, output->path, output->folder);
    mtc_output_discard(output);
    return code;
}

void mtc_output_discard(MtcOutput *output) {
    if (output->file >= 0) {
        if (!in_place(output))
            unlink(output->temporary); /* after a commit there is none */
        close(output->file);
    }
    free(output->path);
    free(output->temporary);
    free(output->folder);
    free(output);
}

int mtc_output_link(MtcFault *fault, const char *existing, const char *path) {
    char *temporary = temporary_name(path), *folder = folder_of(path);
    unlink(temporary);
    bool linked = link(existing, temporary) == 0;
    bool moved = linked && rename(temporary, path) == 0;
    int code = moved ? synchronise_folder(fault, path, folder) : cannot_write(fault, path, MTC_IO);
    if (linked)
        unlink(temporary); /* still there when `path` was that file already */
    free(folder);
    free(temporary);
    return code;
}

/* Is `name` "<base>.<digits>.tmp"? */
static bool is_temporary_of(const char *name, const char *base) {
    size_t length = strlen(base), digits;
    if (strncmp(name, base, length) != 0 || name[length] != '.')
        return false;
    digits = strspn(name + length + 1, "0123456789");
    return digits > 0 && strcmp(name + length + 1 + digits, ".tmp") == 0;
}

void mtc_output_clean(const char *path) {
    char *target = mtc_resolved(path), *folder = folder_of(target);
    const char *slash = strrchr(target, '/'), *base = slash ? slash + 1 : target;
    DIR *listing = opendir(folder);
    for (struct dirent *item; listing && (item = readdir(listing));)
        if (is_temporary_of(item->d_name, base)) {
            MtcText leftover = {NULL, 0, 0};
            mtc_text_add(&leftover, "%s/%s", folder, item->d_name);
            remove_leftover(leftover.at);
            free(leftover.at);
        }
    if (listing)
        closedir(listing);
    free(target);
    free(folder);
}

void mtc_make_folders(const char *path) {
    char *folder = strdup(path);
    for (char *slash = folder; slash && (slash = strchr(slash + 1, '/')) != NULL; *slash = '/') {
        *slash = 0;
        mkdir(folder, 0777);
    }
    free(folder);
}

int mtc_output_check(MtcFault *fault, const char *path) {
    MtcOutput *output;
    struct stat status;
    if (stat(path, &status) == 0 && S_ISDIR(status.st_mode)) {
        errno = EISDIR;
        return cannot_write(fault, path, MTC_CANT_CREATE);
    }
    if (mtc_written_in_place(path)) /* opening would empty it */
        return access(path, W_OK) == 0 ? 0 : cannot_write(fault, path, MTC_CANT_CREATE);
    mtc_output_clean(path);
    int code = mtc_output_open(fault, path, &output);
    if (!code)
        mtc_output_discard(output);
    return code;
}
