/* Which images a folder holds: in a folder for each class, or all in one. Names that begin with a dot are hidden, and do not
 * count. */
#include "base/files.h"
#include "data/image.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* ---- names in a folder ---- */

typedef struct NameList {
    int64_t count, capacity;
    char **at;
} NameList;

static void add_name_in(NameList *names, const char *folder, const char *name) {
    MtcText path = {NULL, 0, 0};
    if (names->count == names->capacity) {
        names->capacity = names->capacity ? 2 * names->capacity : 64;
        names->at = (char **)mtc_memory(names->at, (size_t)names->capacity * sizeof *names->at);
    }
    mtc_text_add(&path, "%s/%s", folder, name);
    names->at[names->count++] = path.at;
}

static void free_names(NameList *names) {
    for (int64_t i = 0; i < names->count; i++)
        free(names->at[i]);
    free(names->at);
    memset(names, 0, sizeof *names);
}

bool mtc_is_folder(const char *path) {
    struct stat status;
    return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

static int compare_names(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The paths of the folders and of the other files in a folder, each in the order of their names. */
static int list_folder(MtcFault *fault, const char *folder, NameList *folders, NameList *files) {
    DIR *listing = opendir(folder);
    memset(folders, 0, sizeof *folders);
    memset(files, 0, sizeof *files);
    if (!listing)
        return mtc_fail(fault, MTC_NO_INPUT, "%s: cannot open: %s", folder, strerror(errno));
    for (struct dirent *item; (item = readdir(listing));) {
        if (item->d_name[0] == '.')
            continue;
        add_name_in(files, folder, item->d_name);
        if (mtc_is_folder(files->at[files->count - 1])) {
            free(files->at[--files->count]);
            add_name_in(folders, folder, item->d_name);
        }
    }
    closedir(listing);
    if (folders->count)
        qsort(folders->at, (size_t)folders->count, sizeof *folders->at, compare_names);
    if (files->count)
        qsort(files->at, (size_t)files->count, sizeof *files->at, compare_names);
    return 0;
}

/* ---- images ---- */

/* The images move to `files`. */
static void add_images(MtcImageFiles *files, NameList *names, int label) {
    const int64_t count = files->count + names->count;
    files->path = (char **)mtc_memory(files->path, (size_t)count * sizeof *files->path + 1);
    files->label = (int *)mtc_memory(files->label, (size_t)count * sizeof *files->label + 1);
    for (int64_t i = 0; i < names->count; i++) {
        files->path[files->count] = names->at[i];
        files->label[files->count++] = label;
    }
    names->count = 0;
}

static int add_class(MtcFault *fault, const char *folder, int label, MtcImageFiles *files) {
    NameList folders, images;
    int code = list_folder(fault, folder, &folders, &images);
    if (!code && folders.count)
        code = mtc_fail(fault, MTC_BAD_DATA, "%s: is a folder within a class's folder, where images are expected",
                        folders.at[0]);
    else if (!code && images.count == 0)
        code = mtc_fail(fault, MTC_BAD_DATA, "%s: the folder of a class holds no images", folder);
    if (!code) {
        files->name[files->classes++] = strdup(strrchr(folder, '/') + 1);
        add_images(files, &images, label);
    }
    free_names(&folders);
    free_names(&images);
    return code;
}

static int no_classes(MtcFault *fault, const char *folder, int64_t images) {
    mtc_fail(fault, MTC_BAD_DATA, "%s: has no folders: each class has one, with its images", folder);
    if (images)
        mtc_note(fault, "%lld file%s lie%s in the folder itself; where there are no classes, predict reads them",
                 (long long)images, images == 1 ? "" : "s", images == 1 ? "s" : "");
    return fault->code;
}

static int check_count(MtcFault *fault, const char *folder, const MtcImageFiles *files) {
    return files->count <= INT32_MAX ? 0
                                     : mtc_fail(fault, MTC_BAD_DATA, "%s: holds %lld images; at most %d can be used",
                                                folder, (long long)files->count, INT32_MAX);
}

int mtc_list_classes(MtcFault *fault, const char *folder, MtcImageFiles *files) {
    NameList folders, others;
    memset(files, 0, sizeof *files);
    int code = list_folder(fault, folder, &folders, &others);
    if (!code && folders.count == 0)
        code = no_classes(fault, folder, others.count);
    files->name = (char **)mtc_zeroed((size_t)folders.count * sizeof *files->name + 1);
    for (int64_t i = 0; i < folders.count && !code; i++)
        code = add_class(fault, folders.at[i], (int)i, files);
    free_names(&folders);
    free_names(&others);
    if (!code)
        code = check_count(fault, folder, files);
    if (code)
        mtc_image_files_free(files);
    return code;
}

static int add_all(MtcFault *fault, const char *folder, MtcImageFiles *files) {
    NameList folders, images;
    int code = list_folder(fault, folder, &folders, &images);
    if (!code)
        add_images(files, &images, 0);
    for (int64_t i = 0; i < folders.count && !code; i++)
        code = add_all(fault, folders.at[i], files);
    free_names(&folders);
    free_names(&images);
    return code;
}

int mtc_list_images(MtcFault *fault, const char *path, MtcImageFiles *files) {
    memset(files, 0, sizeof *files);
    int code = 0;
    if (mtc_is_folder(path))
        code = add_all(fault, path, files);
    else {
        NameList one = {1, 1, (char **)mtc_memory(NULL, sizeof(char *))};
        one.at[0] = strdup(path);
        add_images(files, &one, 0);
        free_names(&one);
    }
    if (!code && files->count == 0)
        code = mtc_fail(fault, MTC_BAD_DATA, "%s: holds no images", path);
    if (!code)
        code = check_count(fault, path, files);
    if (code)
        mtc_image_files_free(files);
    return code;
}

void mtc_visit_images(const char *folder, void (*visit)(void *context, const char *path, bool is_folder),
                      void *context) {
    MtcFault unreadable; /* reading it will say so */
    NameList folders, files;
    int code = list_folder(&unreadable, folder, &folders, &files);
    visit(context, folder, true);
    for (int64_t i = 0; i < files.count && !code; i++)
        visit(context, files.at[i], false);
    for (int64_t i = 0; i < folders.count && !code; i++)
        mtc_visit_images(folders.at[i], visit, context);
    free_names(&folders);
    free_names(&files);
}

void mtc_image_files_free(MtcImageFiles *files) {
    for (int64_t i = 0; i < files->count; i++)
        free(files->path[i]);
    free(files->path);
    free(files->label);
    if (files->name)
        mtc_free_strings(files->name, files->classes);
    memset(files, 0, sizeof *files);
}
