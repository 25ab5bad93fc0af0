/* Examples that are images, in a folder for each class: images("folder"). */
#include "base/cache.h"
#include "data/image.h"
#include "data/source.h"
#include "data/table.h"
#include "ranks/ranks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- kept images ----
 *
 * They are used while names, sizes and times of the files are the same: to read every file for a digest would take most of
 * the time that is saved. */

typedef struct KeptHeader {
    char magic[8];
    MtcDigest list, rest;
    uint64_t size;
} KeptHeader;

static MtcDigest digest_list(const MtcImageFiles *files, const MtcImageForm *form) {
    MtcText text = {NULL, 0, 0};
    mtc_text_add(&text, "1 %d %lld %lld %d\n", form->channels, (long long)form->height, (long long)form->width,
                 form->resize);
    for (int64_t i = 0; i < files->count; i++) {
        struct stat status;
        memset(&status, 0, sizeof status);
        stat(files->path[i], &status);
        mtc_text_add(&text, "%s %lld %lld %ld\n", files->path[i], (long long)status.st_size,
                     (long long)status.st_mtim.tv_sec, status.st_mtim.tv_nsec);
    }
    MtcDigest digest = mtc_digest(text.at, text.length);
    free(text.at);
    return digest;
}

static bool same_digest(MtcDigest a, MtcDigest b) {
    return a.at[0] == b.at[0] && a.at[1] == b.at[1];
}

static uint8_t *load_images_from(const char *path, MtcDigest list, size_t size) {
    MtcFault unused;
    MtcInput *input;
    KeptHeader header;
    size_t got;
    uint8_t *bytes = NULL;
    if (access(path, R_OK) != 0 || mtc_input_open(&unused, path, &input))
        return NULL;
    bool good = mtc_input_read(&unused, input, &header, sizeof header, &got) == 0 && got == sizeof header &&
                memcmp(header.magic, "mtcimage", 8) == 0 && header.size == size && same_digest(header.list, list) &&
                (bytes = (uint8_t *)malloc(size)) != NULL;
    good = good && mtc_input_read(&unused, input, bytes, size, &got) == 0 && got == size &&
           same_digest(mtc_digest(bytes, size), header.rest);
    mtc_input_close(input);
    if (good)
        return bytes;
    free(bytes);
    return NULL;
}

static uint8_t *load_kept(const char *folder, MtcDigest list, size_t size) {
    uint8_t *planes = NULL;
    for (int place = 0; place < MTC_CACHE_PLACES && !planes; place++) {
        char *path = mtc_cache_path(folder, place);
        planes = path ? load_images_from(path, list, size) : NULL;
        free(path);
    }
    return planes;
}

static void keep_images(const char *folder, MtcDigest list, const uint8_t *planes, size_t size) {
    KeptHeader header;
    memcpy(header.magic, "mtcimage", sizeof header.magic);
    header.list = list;
    header.rest = mtc_digest(planes, size);
    header.size = size;
    mtc_cache_keep(folder, &header, sizeof header, planes, size);
}

/* Each rank decodes a part of one list: of the same names, wherever its folder lies. */
static int agree_on_list(MtcFault *fault, const char *folder, const MtcImageFiles *files) {
    MtcText names = {NULL, 0, 0};
    char value[64];
    const MtcAgreed agreed = {"list of images", value};
    for (int64_t i = 0; i < files->count; i++)
        mtc_text_add(&names, "%s\n", files->path[i] + strlen(folder));
    const MtcDigest digest = mtc_digest(names.at, names.length);
    snprintf(value, sizeof value, "%lld files, %016llx", (long long)files->count, (unsigned long long)digest.at[0]);
    free(names.at);
    const int code = mtc_ranks_ready(fault, 0);
    return code ? code : mtc_ranks_agree(fault, &agreed, 1);
}

static int decode_missing(MtcFault *fault, const char *folder, const MtcImageFiles *files, const MtcImageForm *form,
                          uint8_t *kept, MtcReading *reading, MtcDecoded *decoded) {
    bool all_have = kept != NULL;
    int code = mtc_rank_count() > 1 ? agree_on_list(fault, folder, files) : 0;
    code = code || mtc_rank_count() == 1 ? code : mtc_ranks_all(fault, kept != NULL, &all_have);
    if (code) {
        free(kept);
        return code;
    }
    if (!all_have)
        return mtc_rank_count() > 1 ? mtc_decode_together(fault, files, form, kept, reading, decoded)
                                    : mtc_decode_files(fault, files, form, reading, decoded);
    *decoded = (MtcDecoded){.count = files->count, .planes = kept};
    return 0;
}

static int decode_or_load(MtcFault *fault, const char *folder, const MtcImageFiles *files, const MtcImageForm *form,
                          MtcReading *reading, MtcDecoded *decoded) {
    const size_t size = (size_t)files->count * mtc_image_bytes(form);
    const MtcDigest list = reading->cache ? digest_list(files, form) : (MtcDigest){{0, 0}};
    uint8_t *kept = reading->cache ? load_kept(folder, list, size) : NULL;
    const bool missing = !kept;
    const int code = decode_missing(fault, folder, files, form, kept, reading, decoded);
    if (!code && reading->cache && missing && !decoded->file)
        keep_images(folder, list, decoded->planes, size);
    return code;
}

/* ---- images("folder") ---- */

static int check_classes(MtcFault *fault, const char *folder, const MtcField *field, const MtcImageFiles *files) {
    if (files->classes <= field->classes)
        return 0;
    mtc_fail(fault, MTC_BAD_DATA, "%s: has folders for %d classes, and '%s' has %d", folder, files->classes,
             field->name, field->classes);
    mtc_note(fault, "'%s: class[%d]' has room for them", field->name, files->classes);
    return fault->code;
}

static void give_labels(const MtcField *field, const MtcImageFiles *files, void **labels) {
    *labels = mtc_memory(NULL, (size_t)files->count * mtc_type_size(field->type));
    for (int64_t i = 0; i < files->count; i++)
        mtc_put_class(field, *labels, i, files->label[i]);
}

/* Files that were left out are gone from the list. */
static void keep_decoded(MtcImageFiles *files, MtcDecoded *decoded) {
    int64_t next = 0;
    for (int64_t i = 0; i < files->count && decoded->file; i++) {
        if (next == decoded->count || decoded->file[next] != i) {
            free(files->path[i]);
            continue;
        }
        files->path[next] = files->path[i];
        files->label[next++] = files->label[i];
    }
    files->count = decoded->count;
    free(decoded->file);
    decoded->file = NULL;
}

static int read_image_folder(MtcFault *fault, const MtcModel *model, const MtcOrigin *origin, const char *folder,
                             MtcReading *reading, MtcExamples *examples, MtcMeaning *classes) {
    const int image = mtc_image_field(model), label = mtc_label_field(model);
    MtcImageForm form;
    MtcImageFiles files;
    MtcDecoded decoded;
    mtc_image_form(&model->field[image], origin->resize, &form);
    int code = mtc_list_classes(fault, folder, &files);
    if (code)
        return code;
    if (label >= 0)
        code = check_classes(fault, folder, &model->field[label], &files);
    if (!code)
        code = decode_or_load(fault, folder, &files, &form, reading, &decoded);
    if (!code) {
        keep_decoded(&files, &decoded);
        examples->count = files.count;
        examples->field[image] = decoded.planes;
        if (label >= 0)
            give_labels(&model->field[label], &files, &examples->field[label]);
        examples->path = files.path;
        files.path = NULL;
        files.count = 0;
        classes->words = files.classes;
        classes->word = files.name;
        files.name = NULL;
    }
    mtc_image_files_free(&files);
    return code;
}

static void free_classes(void *kept) {
    MtcMeaning *classes = (MtcMeaning *)kept;
    mtc_free_strings(classes->word, classes->words);
    free(classes);
}

/* What is kept: the names that labels stand for, until the encoding has given them its own. */
static int open_folder(MtcFault *fault, MtcReading *reading, MtcOpened *opened) {
    const MtcModel *model = opened->model;
    char *path;
    int code = mtc_find_folder(fault, model->source, reading->folder, opened->origin->path[0], &path);
    if (code)
        return code;
    for (size_t end = strlen(path); end > 1 && path[end - 1] == '/'; end--)
        path[end - 1] = '\0'; /* what is kept lies beside the folder, not in it */
    MtcMeaning *classes = (MtcMeaning *)mtc_zeroed(sizeof *classes);
    code = read_image_folder(fault, model, opened->origin, path, reading, &opened->arrays, classes);
    free(path);
    if (code)
        free_classes(classes);
    else
        opened->kept = classes;
    return code;
}

/* ---- classes ---- */

/* The classes are the folders' names, in their order. */
static int learn_classes(MtcFault *fault, const MtcSplitPart *train, const MtcOpened *opened, MtcEncoding *encoding) {
    const MtcMeaning *classes = (const MtcMeaning *)opened->kept;
    const int label = mtc_label_field(opened->model), words = classes->words;
    (void)fault, (void)train;
    if (label < 0)
        return 0;
    encoding->field[label].words = words;
    encoding->field[label].word = (char **)mtc_memory(NULL, (size_t)words * sizeof(char *));
    for (int k = 0; k < words; k++)
        encoding->field[label].word[k] = strdup(classes->word[k]);
    return 0;
}

/* Labels as the encoding has the classes' names. Where it has none, they are numbers, in the order of the names. */
static int encode_classes(MtcFault *fault, const MtcEncoding *encoding, MtcOpened *opened) {
    const MtcModel *model = opened->model;
    MtcMeaning *classes = (MtcMeaning *)opened->kept;
    const int label = mtc_label_field(model);
    const MtcMeaning *known = &encoding->field[label < 0 ? 0 : label];
    if (label < 0 || !classes->words || !known->words)
        return 0;
    int *code = (int *)mtc_memory(NULL, (size_t)classes->words * sizeof *code);
    for (int k = 0; k < classes->words; k++) {
        code[k] = mtc_find_word((const char *const *)known->word, known->words, classes->word[k]);
        if (code[k] < 0) {
            mtc_fail(fault, MTC_BAD_DATA, "%s: '%s' is no class of the training images", opened->name,
                     classes->word[k]);
            free(code);
            return fault->code;
        }
    }
    void *labels = opened->arrays.field[label];
    for (int64_t i = 0; i < opened->arrays.count; i++)
        mtc_put_class(&model->field[label], labels, i, code[mtc_class_at(&model->field[label], labels, i)]);
    free(code);
    mtc_free_strings(classes->word, classes->words);
    memset(classes, 0, sizeof *classes);
    return 0;
}

static int read_folder_part(MtcFault *fault, const MtcSplitPart *part, const MtcEncoding *encoding, MtcReading *reading,
                            MtcOpened *opened, MtcExamples *examples) {
    (void)reading;
    int code = encode_classes(fault, encoding, opened);
    return code ? code : mtc_part_arrays(fault, opened->model, part, opened->name, &opened->arrays, examples);
}

const MtcSource mtc_source_images = {.open = open_folder,
                                     .learn = learn_classes,
                                     .read = read_folder_part,
                                     .close = free_classes,
                                     .example = "examples.npy",
                                     .folders = true,
                                     .parsed = true,
                                     .together = true};
