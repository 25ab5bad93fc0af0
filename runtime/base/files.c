#include "base/files.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- finding data ---- */

static bool is_of_kind(const char *path, bool folder) {
    struct stat status;
    return stat(path, &status) == 0 && (folder ? S_ISDIR(status.st_mode) : S_ISREG(status.st_mode));
}

/* mtc links another value into a program of a model that it was given by an absolute path. */
__attribute__((weak)) const char *mtc_model_folder = "";

char *mtc_model_path(const char *source) {
    const size_t length = strlen(mtc_model_folder);
    MtcText path = {NULL, 0, 0};
    if (length && source[0] != '/')
        mtc_text_add(&path, "%s%s", mtc_model_folder, mtc_model_folder[length - 1] == '/' ? "" : "/");
    mtc_text_add(&path, "%s", source);
    return path.at;
}

/* What a message calls the path: absolute, whether it exists or not. */
static void add_absolute(MtcText *text, const char *path) {
    char folder[4096];
    if (path[0] != '/' && getcwd(folder, sizeof folder))
        mtc_text_add(text, "%s%s", folder, strcmp(folder, "/") == 0 ? "" : "/");
    mtc_text_add(text, "%s", path);
}

/* Of what is there, though not as it should be, or cannot be seen; NULL: it is not there. */
static const char *why_not_there(const char *path) {
    struct stat status;
    if (stat(path, &status) != 0)
        return errno == ENOENT || errno == ENOTDIR ? NULL : strerror(errno);
    return S_ISDIR(status.st_mode) ? "is a folder" : S_ISREG(status.st_mode) ? "is a file, no folder" : "is no file";
}

/* What is wrong with the folder of --data itself. */
static void note_places(MtcFault *fault, const char *folder) {
    struct stat status;
    if (folder && stat(folder, &status) != 0)
        mtc_note(fault, "there is no folder '%s'; --data FOLDER says where the data are", folder);
    else if (folder && !S_ISDIR(status.st_mode))
        mtc_note(fault, "'%s' is a file; --data FOLDER takes the folder that it lies in", folder);
    else
        mtc_note(fault, "say where it is with --data FOLDER or $MTC_DATA_DIR");
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
        mtc_text_add(&candidate, "%s%s%s%s", folder ? folder : "",
                     folder && folder[strlen(folder) - 1] != '/' ? "/" : "", path, ending[i]);
        if (is_of_kind(candidate.at, search->for_folder)) {
            search->found = candidate.at;
            return;
        }
        mtc_text_add(&search->tried, "\n    ");
        const char *why = why_not_there(candidate.at);
        add_absolute(&search->tried, candidate.at);
        mtc_text_add(&search->tried, "%s%s", why ? ": " : "", why ? why : "");
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
    char *model = mtc_model_path(source), *beside = mtc_folder_of(model);
    try_place(search, strcmp(beside, ".") == 0 ? NULL : beside, path);
    if (data && *data)
        try_place(search, data, path);
    try_cache(search, path);
    free(beside);
    free(model);
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
        note_places(fault, folder);
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

/* ---- folders ---- */

void mtc_make_folders(const char *path) {
    char *folder = strdup(path);
    for (char *slash = folder; slash && (slash = strchr(slash + 1, '/')) != NULL; *slash = '/') {
        *slash = 0;
        mkdir(folder, 0777);
    }
    free(folder);
}
