/* Origins of examples that are images: images("folder"), cifar10("folder"), and files to predict. */
#include "base/cache.h"
#include "base/files.h"
#include "base/parallel.h"
#include "data/image.h"
#include "data/table_fields.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- the fields of an example ---- */

/* The compiler has made sure that there is one image, and at most one label. */
static int image_field(const MtcModel *model) {
    int f = 0;
    while (f < model->fields - 1 && model->field[f].classes)
        f++;
    return f;
}

static int label_field(const MtcModel *model) {
    for (int f = 0; f < model->fields; f++)
        if (model->field[f].classes)
            return f;
    return -1;
}

/* ---- decoding, with all processors ---- */

enum { FILES_PER_TASK = 16, BAD_FILES_LISTED = 5 };

/* The first files that are wrong, in order, and how many there are. */
typedef struct BadFiles {
    int64_t count, at[BAD_FILES_LISTED];
    MtcFault fault[BAD_FILES_LISTED];
} BadFiles;

typedef struct DecodeJob {
    const MtcImageFiles *files;
    const MtcImageForm *form;
    uint8_t *planes;
    bool *wrong; /* each file */
    pthread_mutex_t lock;
    BadFiles bad;
} DecodeJob;

static size_t image_bytes(const MtcImageForm *form) {
    return (size_t)form->channels * (size_t)(form->height * form->width);
}

static int decode_file(MtcFault *fault, const DecodeJob *job, int64_t i) {
    uint8_t *bytes;
    size_t size;
    int code = mtc_read_file(fault, job->files->path[i], &bytes, &size);
    if (code)
        return code;
    code = mtc_image_decode(fault, job->files->path[i], bytes, size, job->form,
                            job->planes + (size_t)i * image_bytes(job->form));
    free(bytes);
    return code;
}

static void add_bad_file(BadFiles *bad, int64_t file, const MtcFault *fault) {
    const int64_t listed = bad->count < BAD_FILES_LISTED ? bad->count : BAD_FILES_LISTED;
    int64_t place = listed;
    while (place > 0 && bad->at[place - 1] > file)
        place--;
    for (int64_t i = listed < BAD_FILES_LISTED ? listed : BAD_FILES_LISTED - 1; i > place; i--) {
        bad->at[i] = bad->at[i - 1];
        bad->fault[i] = bad->fault[i - 1];
    }
    if (place < BAD_FILES_LISTED) {
        bad->at[place] = file;
        bad->fault[place] = *fault;
    }
    bad->count++;
}

static void decode_task(void *context, int64_t task) {
    DecodeJob *job = (DecodeJob *)context;
    MtcFault fault;
    for (int64_t i = task * FILES_PER_TASK; i < (task + 1) * FILES_PER_TASK && i < job->files->count; i++) {
        fault.code = 0;
        if (!decode_file(&fault, job, i))
            continue;
        job->wrong[i] = true;
        pthread_mutex_lock(&job->lock);
        add_bad_file(&job->bad, i, &fault);
        pthread_mutex_unlock(&job->lock);
    }
}

static void cut_to_line(MtcFault *fault) {
    fault->text[strcspn(fault->text, "\n")] = 0;
}

/* The first as it is, then a line for each of the next. */
static int refuse_files(MtcFault *fault, const MtcImageFiles *files, BadFiles *bad) {
    *fault = bad->fault[0];
    if (fault->code == MTC_UNAVAILABLE)
        return fault->code;
    for (int i = 1; i < bad->count && i < BAD_FILES_LISTED; i++) {
        cut_to_line(&bad->fault[i]);
        mtc_note(fault, "%s", bad->fault[i].text);
    }
    if (bad->count > BAD_FILES_LISTED)
        mtc_note(fault, "and %lld more", (long long)(bad->count - BAD_FILES_LISTED));
    if (files->count > 1)
        mtc_note(fault, "%lld of %lld files cannot be used; --bad-rows skip leaves such files out",
                 (long long)bad->count, (long long)files->count);
    return fault->code;
}

/* The images that are good move together. */
static int leave_out(MtcFault *fault, const DecodeJob *job, MtcReading *reading, MtcDecoded *decoded) {
    const size_t image = image_bytes(job->form);
    MtcFault first = job->bad.fault[0];
    cut_to_line(&first);
    reading->images = true;
    mtc_count_bad(reading, job->bad.count, first.text);
    decoded->file = (int64_t *)mtc_memory(NULL, (size_t)job->files->count * sizeof *decoded->file);
    for (int64_t i = 0; i < job->files->count; i++) {
        if (job->wrong[i])
            continue;
        memmove(job->planes + (size_t)decoded->count * image, job->planes + (size_t)i * image, image);
        decoded->file[decoded->count++] = i;
    }
    return decoded->count ? 0
                          : mtc_fail(fault, MTC_BAD_DATA, "no image can be used; the first bad one: %s", first.text);
}

/* A library that is not there, or too little memory, is no fault of a file. */
static int finish_decoding(MtcFault *fault, DecodeJob *job, MtcReading *reading, MtcDecoded *decoded) {
    decoded->planes = job->planes;
    decoded->count = job->bad.count ? 0 : job->files->count;
    if (!job->bad.count)
        return 0;
    int code = reading->skip_bad_rows && job->bad.fault[0].code != MTC_UNAVAILABLE
                   ? leave_out(fault, job, reading, decoded)
                   : refuse_files(fault, job->files, &job->bad);
    if (code) {
        free(decoded->planes);
        free(decoded->file);
    }
    return code;
}

int mtc_decode_files(MtcFault *fault, const MtcImageFiles *files, const MtcImageForm *form, MtcReading *reading,
                     MtcDecoded *decoded) {
    const size_t bytes = (size_t)files->count * image_bytes(form);
    DecodeJob *job = (DecodeJob *)mtc_zeroed(sizeof *job);
    memset(decoded, 0, sizeof *decoded);
    job->files = files;
    job->form = form;
    job->planes = (uint8_t *)malloc(bytes);
    if (!job->planes) {
        free(job);
        return mtc_no_memory(fault, bytes, "the images");
    }
    job->wrong = (bool *)mtc_zeroed((size_t)files->count);
    pthread_mutex_init(&job->lock, NULL);
    mtc_parallel((files->count + FILES_PER_TASK - 1) / FILES_PER_TASK, decode_task, job);
    pthread_mutex_destroy(&job->lock);
    int code = finish_decoding(fault, job, reading, decoded);
    free(job->wrong);
    free(job);
    return code;
}

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

static int decode_or_load(MtcFault *fault, const char *folder, const MtcImageFiles *files, const MtcImageForm *form,
                          MtcReading *reading, MtcDecoded *decoded) {
    const size_t size = (size_t)files->count * image_bytes(form);
    MtcDigest list = {{0, 0}};
    memset(decoded, 0, sizeof *decoded);
    decoded->count = files->count;
    if (reading->cache) {
        list = digest_list(files, form);
        if ((decoded->planes = load_kept(folder, list, size)) != NULL)
            return 0;
    }
    int code = mtc_decode_files(fault, files, form, reading, decoded);
    if (!code && reading->cache && !decoded->file)
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
    const int image = image_field(model), label = label_field(model);
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

int mtc_read_images(MtcFault *fault, const MtcModel *model, const MtcOrigin *origin, MtcReading *reading,
                    MtcExamples *examples, MtcMeaning *classes) {
    char *path;
    int code = mtc_find_folder(fault, model->source, reading->folder, origin->path[0], &path);
    memset(examples, 0, sizeof *examples);
    memset(classes, 0, sizeof *classes);
    if (code)
        return code;
    for (size_t end = strlen(path); end > 1 && path[end - 1] == '/'; end--)
        path[end - 1] = '\0'; /* what is kept lies beside the folder, not in it */
    code = read_image_folder(fault, model, origin, path, reading, examples, classes);
    free(path);
    return code;
}

/* ---- cifar10("folder") ---- */

enum { CIFAR_CLASSES = 10, CIFAR_IMAGE = 3 * 32 * 32, CIFAR_RECORD = 1 + CIFAR_IMAGE };

static int check_records(MtcFault *fault, const char *path, const uint8_t *bytes, size_t size) {
    if (size == 0 || size % CIFAR_RECORD)
        return mtc_fail(fault, MTC_BAD_DATA,
                        "%s: has %zu bytes, expected records of %d: a label and 3 x 32 x 32 numbers", path, size,
                        CIFAR_RECORD);
    for (size_t i = 0; i < size / CIFAR_RECORD; i++)
        if (bytes[i * CIFAR_RECORD] >= CIFAR_CLASSES)
            return mtc_fail(fault, MTC_BAD_DATA, "%s: the label of record %zu is %d, expected 0 to %d", path, i,
                            bytes[i * CIFAR_RECORD], CIFAR_CLASSES - 1);
    return 0;
}

static void add_records(const MtcModel *model, const uint8_t *bytes, size_t records, MtcExamples *examples) {
    const int image = image_field(model), label = label_field(model);
    const size_t first = (size_t)examples->count, count = first + records;
    uint8_t *planes = (uint8_t *)mtc_memory(examples->field[image], count * CIFAR_IMAGE);
    examples->field[image] = planes;
    for (size_t i = 0; i < records; i++)
        memcpy(planes + (first + i) * CIFAR_IMAGE, bytes + i * CIFAR_RECORD + 1, CIFAR_IMAGE);
    if (label >= 0) {
        const MtcField *field = &model->field[label];
        examples->field[label] = mtc_memory(examples->field[label], count * mtc_type_size(field->type));
        for (size_t i = 0; i < records; i++)
            mtc_put_class(field, examples->field[label], (int64_t)(first + i), bytes[i * CIFAR_RECORD]);
    }
    examples->count = (int64_t)count;
}

static int read_records(MtcFault *fault, const MtcModel *model, const char *path, MtcExamples *examples) {
    uint8_t *bytes;
    size_t size;
    int code = mtc_read_file(fault, path, &bytes, &size);
    if (code)
        return code;
    code = check_records(fault, path, bytes, size);
    if (!code && size / CIFAR_RECORD > (size_t)(INT32_MAX - examples->count))
        code = mtc_fail(fault, MTC_BAD_DATA, "%s: there are more than %d examples", path, INT32_MAX);
    if (!code)
        add_records(model, bytes, size / CIFAR_RECORD, examples);
    free(bytes);
    return code;
}

int mtc_read_cifar(MtcFault *fault, const MtcModel *model, const MtcOrigin *origin, const char *folder,
                   MtcExamples *examples) {
    int code = 0;
    memset(examples, 0, sizeof *examples);
    for (int i = 0; i < origin->paths && !code; i++) {
        char *path;
        code = mtc_find_data(fault, model->source, folder, origin->path[i], &path);
        if (code)
            break;
        code = read_records(fault, model, path, examples);
        free(path);
    }
    if (code)
        mtc_examples_free(examples);
    return code;
}

/* ---- images to predict ---- */

bool mtc_predicts_from_image(const MtcModel *model) {
    MtcImageForm form;
    int images = 0, others = 0;
    for (int f = 0; f < model->fields; f++)
        if (model->field[f].predicts && mtc_image_form(&model->field[f], true, &form))
            images++;
        else
            others += model->field[f].predicts;
    return images == 1 && !others;
}

/* The field that an image is: the prediction depends on it and on nothing else. */
static int predicting_image(MtcFault *fault, const MtcModel *model, const char *path, bool resize, MtcImageForm *form,
                            int *found) {
    int others = 0;
    *found = -1;
    for (int f = 0; f < model->fields; f++)
        if (model->field[f].predicts && *found < 0 && mtc_image_form(&model->field[f], resize, form))
            *found = f;
        else
            others += model->field[f].predicts;
    if (*found < 0)
        return mtc_fail(fault, MTC_BAD_DATA,
                        "%s: holds images, and this model predicts from no field u8[C, H, W] or u8[H, W]", path);
    return others ? mtc_fail(fault, MTC_BAD_DATA,
                             "%s: holds images, and the prediction depends on other fields than '%s' too", path,
                             model->field[*found].name)
                  : 0;
}

/* A file that was left out keeps its place. */
int mtc_read_image_input(MtcFault *fault, const MtcModel *model, const char *path, bool resize, MtcReading *reading,
                         MtcExamples *examples) {
    MtcImageForm form;
    MtcImageFiles files;
    MtcDecoded decoded;
    int field, code = predicting_image(fault, model, path, resize, &form, &field);
    if (!code)
        code = mtc_list_images(fault, path, &files);
    if (code)
        return code;
    code = mtc_decode_files(fault, &files, &form, reading, &decoded);
    if (!code) {
        examples->count = decoded.count;
        examples->field[field] = decoded.planes;
        examples->row = decoded.file;
        examples->rows = files.count;
        examples->path = files.path;
        files.path = NULL;
        files.count = 0;
    }
    mtc_image_files_free(&files);
    return code;
}
