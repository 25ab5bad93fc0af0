/* Files of images: decoded with all processors, and those to predict. */
#include "base/files.h"
#include "base/parallel.h"
#include "data/image.h"
#include "data/table_fields.h"
#include "ranks/ranks.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

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
    int64_t begin, end; /* files that are decoded now */
    bool *wrong;        /* each file */
    pthread_mutex_t lock;
    BadFiles bad;
} DecodeJob;

size_t mtc_image_bytes(const MtcImageForm *form) {
    return (size_t)form->channels * (size_t)(form->height * form->width);
}

static int decode_file(MtcFault *fault, const DecodeJob *job, int64_t i) {
    uint8_t *bytes;
    size_t size;
    int code = mtc_read_file(fault, job->files->path[i], &bytes, &size);
    if (code)
        return code;
    code = mtc_image_decode(fault, job->files->path[i], bytes, size, job->form,
                            job->planes + (size_t)i * mtc_image_bytes(job->form));
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
    const int64_t first = job->begin + task * FILES_PER_TASK;
    for (int64_t i = first; i < first + FILES_PER_TASK && i < job->end; i++) {
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
    const size_t image = mtc_image_bytes(job->form);
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

static void decode_range(DecodeJob *job, int64_t begin, int64_t end) {
    job->begin = begin;
    job->end = end;
    mtc_parallel((end - begin + FILES_PER_TASK - 1) / FILES_PER_TASK, decode_task, job);
}

/* Each rank decodes a part, unless it has all, and gets the others'. Where a file is wrong, each decodes all, and finds what one would. */
static int decode_shares(MtcFault *fault, DecodeJob *job, bool kept) {
    const int rank = mtc_rank();
    int64_t *begin = mtc_ranks_deal(job->files->count);
    bool good = false;
    if (!kept)
        decode_range(job, begin[rank], begin[rank + 1]);
    int code = mtc_ranks_all(fault, !job->bad.count, &good);
    if (!code && good)
        code = mtc_ranks_gather(fault, job->planes, mtc_image_bytes(job->form), begin);
    if (!code && !good && !kept) {
        decode_range(job, 0, begin[rank]);
        decode_range(job, begin[rank + 1], job->files->count);
    }
    free(begin);
    return code;
}

static int begin_decoding(MtcFault *fault, const MtcImageFiles *files, const MtcImageForm *form, uint8_t *kept,
                          DecodeJob **result) {
    const size_t bytes = (size_t)files->count * mtc_image_bytes(form);
    DecodeJob *job = *result = (DecodeJob *)mtc_zeroed(sizeof *job);
    job->files = files;
    job->form = form;
    job->planes = kept ? kept : (uint8_t *)malloc(bytes);
    if (!job->planes) {
        free(job);
        return mtc_no_memory(fault, bytes, "the images");
    }
    job->wrong = (bool *)mtc_zeroed((size_t)files->count);
    pthread_mutex_init(&job->lock, NULL);
    return 0;
}

static int end_decoding(MtcFault *fault, DecodeJob *job, int code, MtcReading *reading, MtcDecoded *decoded) {
    if (code)
        free(job->planes);
    else
        code = finish_decoding(fault, job, reading, decoded);
    pthread_mutex_destroy(&job->lock);
    free(job->wrong);
    free(job);
    return code;
}

int mtc_decode_files(MtcFault *fault, const MtcImageFiles *files, const MtcImageForm *form, MtcReading *reading,
                     MtcDecoded *decoded) {
    DecodeJob *job;
    memset(decoded, 0, sizeof *decoded);
    if (begin_decoding(fault, files, form, NULL, &job))
        return fault->code;
    decode_range(job, 0, files->count);
    return end_decoding(fault, job, 0, reading, decoded);
}

int mtc_decode_together(MtcFault *fault, const MtcImageFiles *files, const MtcImageForm *form, uint8_t *kept,
                        MtcReading *reading, MtcDecoded *decoded) {
    DecodeJob *job;
    memset(decoded, 0, sizeof *decoded);
    int code = begin_decoding(fault, files, form, kept, &job);
    const int ready = mtc_ranks_ready(fault, code);
    if (code)
        return code;
    return end_decoding(fault, job, ready ? ready : decode_shares(fault, job, kept != NULL), reading, decoded);
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

/* The field that an image is: the prediction depends on it and on nothing else. -1: there is none, a fault. */
static int predicting_image(MtcFault *fault, const MtcModel *model, const char *path, bool resize, MtcImageForm *form) {
    int found = -1, others = 0;
    for (int f = 0; f < model->fields; f++)
        if (model->field[f].predicts && found < 0 && mtc_image_form(&model->field[f], resize, form))
            found = f;
        else
            others += model->field[f].predicts;
    if (found >= 0 && !others)
        return found;
    if (found < 0)
        mtc_fail(fault, MTC_BAD_DATA, "%s: holds images, and this model predicts from no field u8[C, H, W] or u8[H, W]",
                 path);
    else
        mtc_fail(fault, MTC_BAD_DATA, "%s: holds images, and the prediction depends on other fields than '%s' too",
                 path, model->field[found].name);
    return -1;
}

/* A file that was left out keeps its place. */
int mtc_read_image_input(MtcFault *fault, const MtcModel *model, const char *path, bool resize, MtcReading *reading,
                         MtcExamples *examples) {
    MtcImageForm form;
    MtcImageFiles files;
    MtcDecoded decoded;
    int field = predicting_image(fault, model, path, resize, &form);
    if (field < 0)
        return fault->code;
    int code = mtc_list_images(fault, path, &files);
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
