#include "files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

static bool is_file(const char *path) {
    struct stat status;
    return stat(path, &status) == 0 && S_ISREG(status.st_mode);
}

/* What a message calls the path: absolute, whether it exists or not. */
static void add_absolute(MtcText *text, const char *path) {
    char folder[4096];
    if (path[0] != '/' && getcwd(folder, sizeof folder))
        mtc_text_add(text, "%s/", folder);
    mtc_text_add(text, "%s", path);
}

/* A search: the places tried so far, one a line, and the file once it is found. */
typedef struct DataSearch {
    MtcText tried;
    char *found;
} DataSearch;

static void try_place(DataSearch *search, const char *folder, const char *path) {
    static const char *const ending[] = {"", ".gz"};
    for (int i = 0; i < 2 && !search->found; i++) {
        MtcText candidate = {NULL, 0, 0};
        mtc_text_add(&candidate, "%s%s%s%s", folder ? folder : "", folder ? "/" : "", path, ending[i]);
        if (is_file(candidate.at)) {
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

int mtc_find_data(MtcFault *fault, const char *source, const char *folder, const char *path, char **found) {
    DataSearch search = {{NULL, 0, 0}, NULL};
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
        mtc_fail(fault, MTC_NO_INPUT, "no data file '%s'; tried%s", path, search.tried.at);
        mtc_note(fault, "say where it is with --data FOLDER or $MTC_DATA_DIR");
    }
    free(search.tried.at);
    return search.found ? 0 : fault->code;
}

/* ---- writing ---- */

struct MtcOutput {
    char *path, *temporary; /* the same for what is no plain file, such as /dev/null: that is written in place */
    int file;
};

static int cannot_write(MtcFault *fault, const char *path, int code) {
    return mtc_fail(fault, code, "%s: cannot write: %s", path, strerror(errno));
}

static bool written_in_place(const char *path) {
    struct stat status;
    return stat(path, &status) == 0 && !S_ISREG(status.st_mode);
}

/* The file that a link leads to, so that it is replaced and not the link. */
static char *resolved(const char *path) {
    char *target = realpath(path, NULL);
    return target ? target : strdup(path);
}

static MtcOutput *output_new(const char *path) {
    MtcOutput *output = (MtcOutput *)calloc(1, sizeof *output);
    MtcText temporary = {NULL, 0, 0};
    if (!output || !(output->path = resolved(path))) {
        free(output);
        return NULL;
    }
    mtc_text_add(&temporary, "%s", output->path);
    if (!written_in_place(path))
        mtc_text_add(&temporary, ".%ld.tmp", (long)getpid());
    output->temporary = temporary.at;
    return output;
}

static bool in_place(const MtcOutput *output) {
    return strcmp(output->path, output->temporary) == 0;
}

int mtc_output_open(MtcFault *fault, const char *path, MtcOutput **result) {
    MtcOutput *output = output_new(path);
    if (!output)
        return mtc_no_memory(fault, sizeof *output, path);
    int create = in_place(output) ? O_TRUNC : O_CREAT | O_EXCL;
    if (!in_place(output))
        unlink(output->temporary); /* of a killed program that had our number */
    output->file = open(output->temporary, O_WRONLY | O_CLOEXEC | create, 0666);
    *result = output;
    if (output->file >= 0)
        return 0;
    cannot_write(fault, path, MTC_CANT_CREATE);
    mtc_output_discard(output);
    return fault->code;
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

/* Makes the move itself durable: a directory is synchronised like a file. */
static void synchronise_folder(const char *path) {
    char *folder = folder_of(path);
    int directory = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (directory >= 0) {
        fsync(directory);
        close(directory);
    }
    free(folder);
}

int mtc_output_commit(MtcFault *fault, MtcOutput *output) {
    int code = 0;
    if (!in_place(output) && (fsync(output->file) != 0 || rename(output->temporary, output->path) != 0))
        code = cannot_write(fault, output->path, MTC_IO);
    else
        synchronise_folder(output->path);
    mtc_output_discard(output);
    return code;
}

void mtc_output_discard(MtcOutput *output) {
    if (output->file >= 0) {
        close(output->file);
        if (!in_place(output))
            unlink(output->temporary); /* after a commit there is none */
    }
    free(output->path);
    free(output->temporary);
    free(output);
}

int mtc_output_check(MtcFault *fault, const char *path) {
    MtcOutput *output;
    struct stat status;
    if (stat(path, &status) == 0 && S_ISDIR(status.st_mode)) {
        errno = EISDIR;
        return cannot_write(fault, path, MTC_CANT_CREATE);
    }
    if (written_in_place(path)) /* opening would empty it */
        return access(path, W_OK) == 0 ? 0 : cannot_write(fault, path, MTC_CANT_CREATE);
    int code = mtc_output_open(fault, path, &output);
    if (!code)
        mtc_output_discard(output);
    return code;
}
