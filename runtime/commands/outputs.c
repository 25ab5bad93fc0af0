/* Before anything is done: would a file that is written destroy one that is read, the program itself, or another output? Or
 * one that is something else than what is written: a mistyped name? */
#include "base/ending.h"
#include "base/lock.h"
#include "base/safetensors.h"
#include "checkpoint/keeper.h"
#include "commands/cli.h"
#include "commands/predict_table.h"
#include "data/image.h"
#include "data/source.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* A training may save where the weights that it begins with are: the file is replaced when they have been read. */
typedef enum FilePurpose { FILE_READ, FILE_WEIGHTS, FILE_WRITTEN, FILE_SAVED } FilePurpose;

typedef struct FileUse {
    FilePurpose purpose;
    char *path, *what; /* what: "--log run.jsonl", "sales.tsv, data of the model" */
    struct stat file;  /* which file it is; of one that does not exist yet, the folder */
    char *name;        /* in that folder; else NULL */
} FileUse;

typedef struct FileUses {
    int count, capacity;
    FileUse *use;
} FileUses;

static bool find_folder(const char *path, struct stat *status) {
    const char *slash = strrchr(path, '/');
    MtcText folder = {NULL, 0, 0};
    mtc_text_add(&folder, "%.*s", slash ? (int)(slash - path) + 1 : 1, slash ? path : ".");
    bool found = stat(folder.at, status) == 0;
    free(folder.at);
    return found;
}

/* Links lead to their file. False: it is none that could be destroyed, as /dev/null. */
static bool identify(FileUse *use) {
    const char *slash = strrchr(use->path, '/');
    if (stat(use->path, &use->file) == 0)
        return S_ISREG(use->file.st_mode);
    use->name = strdup(slash ? slash + 1 : use->path);
    return use->purpose >= FILE_WRITTEN && find_folder(use->path, &use->file);
}

static bool is_same_file(const FileUse *a, const FileUse *b) {
    return a->file.st_dev == b->file.st_dev && a->file.st_ino == b->file.st_ino && !a->name == !b->name &&
           (!a->name || strcmp(a->name, b->name) == 0);
}

static void free_use(FileUse *use) {
    free(use->path);
    free(use->what);
    free(use->name);
}

/* Messages call it what stands before and after its path, and the path. NULL: there is none. */
static void add_use(FileUses *uses, FilePurpose purpose, const char *path, const char *before, const char *after) {
    MtcText what = {NULL, 0, 0};
    FileUse use;
    if (!path)
        return;
    memset(&use, 0, sizeof use);
    mtc_text_add(&what, "%s%s%s", before, path, after);
    use.purpose = purpose;
    use.path = strdup(path);
    use.what = what.at;
    if (!identify(&use)) {
        free_use(&use);
        return;
    }
    if (uses->count == uses->capacity) {
        uses->capacity = 2 * uses->capacity + 16;
        uses->use = (FileUse *)mtc_memory(uses->use, (size_t)uses->capacity * sizeof *uses->use);
    }
    uses->use[uses->count++] = use;
}

/* ---- folders of images ----
 *
 * Each file in them is read, and each folder in them is a class: whatever is written there would be the next image, in a
 * place of any depth. */

typedef struct ImageFolder {
    FileUses *uses; /* NULL: files are of no interest */
    MtcFault *fault;
    const MtcOptions *options;
    const char *path;
    int code;
} ImageFolder;

/* Does the path, or the nearest folder above it that exists, lie in the folder? */
static bool lies_in(const char *path, const struct stat *folder) {
    struct stat status;
    char *at = mtc_resolved(path), *slash;
    bool found = false, relative = at[0] != '/';
    while (!found && (slash = strrchr(at, '/')) != NULL && slash > at) {
        *slash = '\0';
        if (relative && stat(at, &status) == 0) { /* from here on, without links and dots */
            char *whole = mtc_resolved(at);
            free(at);
            at = whole;
            relative = false;
        }
        found = stat(at, &status) == 0 && status.st_dev == folder->st_dev && status.st_ino == folder->st_ino;
    }
    free(at);
    return found;
}

static int refuse_in(ImageFolder *images, const char *flag, const char *output, const struct stat *folder) {
    MtcText path = {NULL, 0, 0};
    if (!output)
        return 0;
    mtc_text_add(&path, "%s%s%s", output[0] == '/' ? "" : "./", output, strcmp(flag, "--tensorboard") ? "" : "/events");
    bool inside = lies_in(path.at, folder);
    free(path.at);
    if (!inside)
        return 0;
    mtc_fail(images->fault, MTC_CANT_CREATE, "%s %s lies in %s, a folder of images", flag, output, images->path);
    mtc_note(images->fault, "it would be read as an image of it, or replace one: choose a place outside");
    return images->fault->code;
}

static void visit_image(void *context, const char *path, bool is_folder) {
    ImageFolder *images = (ImageFolder *)context;
    const MtcOptions *options = images->options;
    struct stat folder;
    if (!is_folder && images->uses)
        add_use(images->uses, FILE_READ, path, "", ", an image that is read,");
    if (images->code || !is_folder || stat(path, &folder) != 0)
        return;
    images->code = refuse_in(images, "--save", options->save, &folder);
    if (!images->code)
        images->code = refuse_in(images, "--log", options->log, &folder);
    if (!images->code)
        images->code = refuse_in(images, "--output", options->output, &folder);
    if (!images->code)
        images->code = refuse_in(images, "--tensorboard", options->tensorboard, &folder);
}

static bool exists(const char *path) {
    struct stat status;
    return path && stat(path, &status) == 0;
}

/* A file that is new cannot be an image under another name: the images need no look then. */
static bool may_replace(const MtcOptions *options) {
    char *best = options->save ? mtc_best_path(options->save) : NULL;
    bool any = exists(options->save) || exists(best) || exists(options->log) || exists(options->output);
    free(best);
    return any;
}

static int add_image_folder(MtcFault *fault, FileUses *uses, const MtcOptions *options, const char *path) {
    ImageFolder images = {may_replace(options) ? uses : NULL, fault, options, path, 0};
    mtc_visit_images(path, visit_image, &images);
    return images.code;
}

/* ---- what a command uses ---- */

static int add_data_files(MtcFault *fault, FileUses *uses, const MtcModel *model, const MtcOptions *options) {
    int code = 0;
    for (int i = 0; i < model->origins; i++) {
        const MtcOrigin *origin = &model->origin[i];
        for (int p = 0; p < origin->paths && !code; p++) {
            MtcFault missing; /* reading it will say so */
            char *path;
            if (mtc_find_source(&missing, model, origin, p, options->data, &path))
                continue;
            if (mtc_source_of(origin)->folders)
                code = add_image_folder(fault, uses, options, path);
            else
                add_use(uses, FILE_READ, path, "", ", data of the model,");
            free(path);
        }
    }
    return code;
}

static int add_inputs(MtcFault *fault, FileUses *uses, const MtcOptions *options) {
    int code = 0;
    for (int i = 0; i < options->input.count && !code; i++) {
        add_use(uses, FILE_READ, options->input.at[i], "--input ", "");
        if (mtc_is_folder(options->input.at[i]))
            code = add_image_folder(fault, uses, options, options->input.at[i]);
    }
    return code;
}

static void add_outputs(FileUses *uses, const MtcOptions *options) {
    add_use(uses, FILE_WRITTEN, options->log, "--log ", "");
    add_use(uses, FILE_WRITTEN, options->output, "--output ", "");
    add_use(uses, FILE_SAVED, options->save, "--save ", "");
    if (!options->save)
        return;
    char *path = mtc_resolved(options->save), *best = mtc_best_path(path);
    char *last_good = mtc_last_good_path(path);
    add_use(uses, FILE_SAVED, best, "", ", the best weights beside --save,");
    add_use(uses, FILE_SAVED, last_good, "", ", the last good weights beside --save,");
    free(last_good);
    free(best);
    free(path);
}

static bool is_numbered(const char *save, const char *path) {
    struct stat here, there;
    return mtc_is_numbered(save, path) && find_folder(save, &here) && find_folder(path, &there) &&
           here.st_dev == there.st_dev && here.st_ino == there.st_ino;
}

static int destroys(MtcFault *fault, const FileUse *output, const FileUse *other) {
    return mtc_fail(fault, MTC_CANT_CREATE, "%s and %s are the same file: %s", other->what, output->what,
                    other->purpose >= FILE_WRITTEN ? "each would overwrite the other" : "it would be overwritten");
}

static int compare_uses(MtcFault *fault, const FileUses *uses, const MtcOptions *options) {
    for (int i = 0; i < uses->count; i++) {
        const FileUse *use = &uses->use[i];
        for (int j = 0; j < i && use->purpose >= FILE_WRITTEN; j++) {
            const FileUse *other = &uses->use[j];
            bool apart = use->purpose == FILE_SAVED && (other->purpose == FILE_WEIGHTS || other->purpose == FILE_SAVED);
            if (!apart && is_same_file(use, other))
                return destroys(fault, use, other);
        }
        bool replaced = use->purpose == FILE_READ || use->purpose == FILE_WRITTEN;
        if (replaced && options->save && options->keep && is_numbered(options->save, use->path))
            return mtc_fail(fault, MTC_CANT_CREATE, "%s has the name of a numbered checkpoint of --save %s", use->what,
                            options->save);
    }
    return 0;
}

/* ---- what is there already ---- */

enum { TELLING_BYTES = 9 };

/* The length of its JSON, as 8 bytes, then the JSON. */
static bool is_safetensors(const unsigned char *head, size_t bytes) {
    uint64_t length = 0;
    for (int i = 7; i >= 0; i--)
        length = length << 8 | head[i];
    return bytes == TELLING_BYTES && head[8] == '{' && length < (uint64_t)1 << 40;
}

static bool is_log(const unsigned char *head, size_t bytes) {
    static const char event[] = "{\"event\"";
    return memcmp(head, event, bytes < sizeof event - 1 ? bytes : sizeof event - 1) == 0;
}

static bool is_npy(const unsigned char *head, size_t bytes) {
    return bytes >= 6 && memcmp(head, "\x93NUMPY", 6) == 0;
}

static int no_kind(MtcFault *fault, const char *flag, const char *path, const char *kind) {
    mtc_fail(fault, MTC_CANT_CREATE, "%s %s would replace a file that is no %s", flag, path, kind);
    mtc_note(fault, "choose another name, or remove the file");
    return fault->code;
}

/* A file of another kind is not replaced; one without content is. */
static int check_kind(MtcFault *fault, const char *flag, const char *path,
                      bool (*is_kind)(const unsigned char *head, size_t bytes), const char *kind) {
    unsigned char head[TELLING_BYTES] = {0};
    struct stat status;
    if (!path || stat(path, &status) != 0 || !S_ISREG(status.st_mode))
        return 0;
    FILE *file = fopen(path, "rb");
    size_t bytes = file ? fread(head, 1, sizeof head, file) : 0;
    if (file)
        fclose(file);
    return bytes == 0 || is_kind(head, bytes) ? 0 : no_kind(fault, flag, path, kind);
}

/* The same of a table: any text could be one, so that its columns tell. */
static int check_table(MtcFault *fault, const char *path) {
    struct stat status;
    if (stat(path, &status) != 0 || !S_ISREG(status.st_mode) || status.st_size == 0)
        return 0;
    FILE *file = fopen(path, "rb");
    char *line = NULL;
    size_t room = 0;
    bool known = file && getline(&line, &room, file) > 0 && mtc_is_prediction_header(line);
    free(line);
    if (file)
        fclose(file);
    return known ? 0 : no_kind(fault, "--output", path, "table of predictions");
}

static int check_output(MtcFault *fault, const MtcOptions *options) {
    const char *path = options->output;
    if (options->exports)
        return check_kind(fault, "--output", path, mtc_is_onnx, "network (ONNX)");
    return path && mtc_is_table_name(path) ? check_table(fault, path)
                                           : check_kind(fault, "--output", path, is_npy, "array of predictions (npy)");
}

/* A name that is made of another is no wish to write through a pipe. */
static int check_plain(MtcFault *fault, const char *save, const char *path) {
    struct stat status;
    if (!path || stat(path, &status) != 0 || S_ISREG(status.st_mode))
        return 0;
    return mtc_fail(fault, MTC_CANT_CREATE, "--save %s: %s, where the best weights go, is no plain file", save, path);
}

static int check_endings(MtcFault *fault, const MtcOptions *options) {
    int code = mtc_check_ending(fault, "--save", options->save, ".safetensors");
    if (!code)
        code = mtc_check_ending(fault, "--log", options->log, ".jsonl, .json and .txt");
    return code ? code
                : mtc_check_ending(fault, "--output", options->output,
                                   options->exports ? ".onnx" : ".npy, .csv and .tsv");
}

/* Weights that no program of mtc wrote, as those of mtc import and of PyTorch, cannot be had again by training: they are replaced only by a
 * training that is told to begin with them. */
static int check_own(MtcFault *fault, const MtcOptions *options) {
    const char *save = options->save, *from = options->resume ? options->resume : options->init_from;
    struct stat status;
    if (!save || stat(save, &status) != 0 || !S_ISREG(status.st_mode) || status.st_size == 0 ||
        mtc_is_own_checkpoint(save) || (from && mtc_is_named_after(save, from)))
        return 0;
    mtc_fail(fault, MTC_CANT_CREATE, "--save %s would replace weights that no training of mtc has written", save);
    mtc_note(fault, "choose another name, or remove the file; --init-from %s begins with them, and may save there",
             save);
    return fault->code;
}

static int check_kinds(MtcFault *fault, const MtcOptions *options) {
    char *best = options->save ? mtc_best_path(options->save) : NULL;
    int code = check_kind(fault, "--save", options->save, is_safetensors, "checkpoint (safetensors)");
    if (!code)
        code = check_own(fault, options);
    if (!code)
        code = check_plain(fault, options->save, best);
    if (!code)
        code = check_kind(fault, "--save: its best weights", best, is_safetensors, "checkpoint (safetensors)");
    if (!code)
        code = check_kind(fault, "--log", options->log, is_log, "log of a run (JSON lines)");
    if (!code)
        code = check_output(fault, options);
    free(best);
    return code;
}

int mtc_check_outputs(MtcFault *fault, const MtcModel *model, const MtcOptions *options) {
    FileUses uses = {0, 0, NULL};
    if (!options->log && !options->output && !options->save && !options->tensorboard)
        return 0;
    char *program = mtc_resolved("/proc/self/exe"), *source = mtc_model_path(model->source);
    add_use(&uses, FILE_READ, program, "", ", the running program,");
    free(program);
    add_use(&uses, FILE_READ, source, "the model ", "");
    free(source);
    int code = add_data_files(fault, &uses, model, options);
    if (!code)
        code = add_inputs(fault, &uses, options);
    add_use(&uses, FILE_WEIGHTS, options->load, "--load ", "");
    add_use(&uses, FILE_WEIGHTS, options->resume, "--resume ", "");
    add_use(&uses, FILE_WEIGHTS, options->init_from, "--init-from ", "");
    add_outputs(&uses, options);
    if (!code)
        code = compare_uses(fault, &uses, options);
    if (!code)
        code = check_kinds(fault, options);
    if (!code)
        code = check_endings(fault, options);
    for (int i = 0; i < uses.count; i++)
        free_use(&uses.use[i]);
    free(uses.use);
    return code;
}

static int lock_best(MtcFault *fault, const char *save, MtcLock **lock) {
    if (!save || mtc_written_in_place(save))
        return 0;
    char *path = mtc_resolved(save), *best = mtc_best_path(path);
    const int code = mtc_lock_open(fault, "the best weights of --save,", best, lock);
    free(best);
    free(path);
    return code;
}

int mtc_lock_outputs(MtcFault *fault, const MtcOptions *options, MtcOutputLocks *locks) {
    *locks = (MtcOutputLocks){NULL, NULL, NULL};
    int code = mtc_lock_open(fault, "--log", options->log, &locks->log);
    if (!code)
        code = mtc_lock_open(fault, "--save", options->save, &locks->save);
    return code ? code : lock_best(fault, options->save, &locks->best);
}

void mtc_unlock_outputs(MtcOutputLocks *locks) {
    mtc_lock_close(locks->best);
    mtc_lock_close(locks->save);
    mtc_lock_close(locks->log);
}

void mtc_note_replaced(const MtcOptions *options, MtcText *notes) {
    struct stat status;
    if (!options->save || mtc_written_in_place(options->save) || stat(options->save, &status) != 0 ||
        (options->resume && mtc_is_named_after(options->save, options->resume)))
        return;
    const int64_t step = mtc_step_of_file(options->save);
    mtc_text_add(notes, step < 0 ? "%s is there already" : "%s is there already, of step %lld", options->save,
                 (long long)step);
    mtc_text_add(notes, ": this training replaces it\n");
}
