#include "session/finite.h"

#include "base/parallel.h"
#include "data/stored.h"
#include "session/feed.h"
#include "session/parts.h"
#include "session/pieces.h"
#include "session/weights.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A fraction of 3 bits behind a 1, or, with the least exponent, behind a 0: kernels_lib/cpu/float8.h. */
static double from_e4m3(uint8_t bits) {
    const int exponent = bits >> 3 & 15, fraction = bits & 7;
    const double size = exponent ? ldexp(1 + fraction / 8.0, exponent - 7) : ldexp(fraction, -9);
    return (bits & 0x7f) == 0x7f ? (double)NAN : bits >> 7 ? -size : size;
}

/* Of values that need not be aligned: a file's. */
static double real_at(MtcType type, const void *values, int64_t i) {
    float single;
    double wide;
    if (type == MTC_F64) {
        memcpy(&wide, (const char *)values + (size_t)i * sizeof wide, sizeof wide);
        return wide;
    }
    if (type == MTC_E4M3)
        return from_e4m3(((const uint8_t *)values)[i]);
    if (type == MTC_BF16 || type == MTC_F16) {
        uint16_t half;
        memcpy(&half, (const char *)values + (size_t)i * sizeof half, sizeof half);
        if (type == MTC_F16)
            return mtc_from_half(half);
        uint32_t bits = (uint32_t)half << 16; /* the upper half of a float */
        memcpy(&single, &bits, sizeof single);
        return (double)single;
    }
    memcpy(&single, (const char *)values + (size_t)i * sizeof single, sizeof single);
    return (double)single;
}

/* Most blocks have none, and are left after one look at all their exponents. */
static bool some_bad_float(const char *values, int64_t count) {
    const uint32_t exponent = 0x7F800000u;
    bool bad = false;
    for (int64_t i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, values + (size_t)i * sizeof bits, sizeof bits);
        bad |= (bits & exponent) == exponent;
    }
    return bad;
}

static MtcBadNumber find_bad_one_by_one(MtcType type, const char *values, int64_t from, int64_t to) {
    MtcBadNumber bad = {false, 0, 0};
    for (int64_t i = from; i < to && !bad.found; i++)
        if (!isfinite(real_at(type, values, i))) {
            bad.found = true;
            bad.element = i;
            bad.value = real_at(type, values, i);
        }
    return bad;
}

static MtcBadNumber find_bad_in_blocks(MtcType type, const char *bytes, int64_t count) {
    MtcBadNumber bad = {false, 0, 0};
    const int64_t block = 4096;
    for (int64_t from = 0; from < count && !bad.found; from += block) {
        const int64_t to = from + block < count ? from + block : count;
        if (type != MTC_F32 || some_bad_float(bytes + (size_t)from * sizeof(float), to - from))
            bad = find_bad_one_by_one(type, bytes, from, to);
    }
    return bad;
}

typedef struct Examination {
    MtcType type;
    const char *values;
    int64_t count;
    MtcBadNumber bad; /* the first in all parts so far */
    pthread_mutex_t lock;
} Examination;

enum { PART = 1 << 18 }; /* elements that a thread looks at at a time */

static void examine_part(void *context, int64_t part) {
    Examination *job = (Examination *)context;
    const int64_t from = part * PART, left = job->count - from;
    const char *values = job->values + (size_t)from * mtc_type_size(job->type);
    MtcBadNumber bad = find_bad_in_blocks(job->type, values, left < PART ? left : PART);
    if (!bad.found)
        return;
    bad.element += from;
    pthread_mutex_lock(&job->lock);
    if (!job->bad.found || bad.element < job->bad.element)
        job->bad = bad;
    pthread_mutex_unlock(&job->lock);
}

MtcBadNumber mtc_find_bad(MtcType type, const void *values, int64_t count) {
    Examination job = {type, (const char *)values, count, {false, 0, 0}, PTHREAD_MUTEX_INITIALIZER};
    if (!mtc_is_real(type))
        return job.bad;
    if (count <= PART) /* a thread takes longer to start */
        return find_bad_in_blocks(type, job.values, count);
    mtc_parallel((count + PART - 1) / PART, examine_part, &job);
    return job.bad;
}

const char *mtc_bad_text(const MtcBadNumber *bad, int rank, const int64_t *dim) {
    static __thread char text[256];
    snprintf(text, sizeof text, rank ? "element %s is %s" : "%sit is %s",
             rank ? mtc_index(bad->element, rank, dim) : "", mtc_number(bad->value));
    return text;
}

const char *mtc_tensor_index(const MtcTensor *tensor, int64_t element) {
    int64_t dim[8];
    mtc_file_dim(tensor, dim);
    return mtc_index(mtc_file_element(tensor, element), tensor->rank, dim);
}

const char *mtc_bad_element_text(const MtcBadNumber *bad, const MtcTensor *tensor) {
    MtcBadNumber shown = *bad;
    int64_t dim[8];
    mtc_file_dim(tensor, dim);
    shown.element = mtc_file_element(tensor, bad->element);
    return mtc_bad_text(&shown, tensor->rank, dim);
}

typedef struct TensorSearch {
    MtcType type;
    MtcBadNumber *bad;
} TensorSearch;

static int search_piece(MtcSession *session, void *user, const void *bytes, size_t from, size_t size) {
    const TensorSearch *search = (const TensorSearch *)user;
    const size_t width = mtc_type_size(search->type);
    (void)session;
    if (search->bad->found)
        return 0;
    *search->bad = mtc_find_bad(search->type, bytes, (int64_t)(size / width));
    search->bad->element += search->bad->found ? (int64_t)(from / width) : 0;
    return 0;
}

int mtc_examine_tensor(MtcSession *session, const MtcTensor *tensor, MtcBadNumber *bad) {
    TensorSearch search = {tensor->type, bad};
    const MtcOwnBytes piece = mtc_piece_here(session, tensor);
    memset(bad, 0, sizeof *bad);
    const int code = mtc_visit_memory(session, piece.memory, piece.bytes, search_piece, &search);
    bad->element += bad->found ? (int64_t)(piece.from / mtc_type_size(tensor->type)) : 0;
    return code;
}

void mtc_add_statement(MtcText *text, const MtcModel *model, int statement) {
    if (statement < 0)
        return;
    const MtcStatement *from = &model->statement[statement];
    mtc_text_add(text, "  %s%s%d: %s", from->file ? from->file : "", from->file ? ":" : "", from->line, from->text);
}

void mtc_note_statement(MtcFault *fault, const MtcModel *model, int statement) {
    if (statement < 0)
        return;
    const MtcStatement *from = &model->statement[statement];
    const char *slash = strrchr(model->source, '/');
    int folder = slash && from->file && from->file[0] != '/' ? (int)(slash - model->source) + 1 : 0;
    mtc_note(fault, "%.*s%s:%d: %s", folder, model->source, from->file ? from->file : model->source, from->line,
             from->text);
}

/* ---- in the data ---- */

static void note_example(MtcSession *session, const char *split, int index, int64_t example, const MtcBadNumber *bad) {
    const MtcField *field = &session->model->field[index];
    const MtcSplit *part = mtc_split(session->model, split);
    const MtcOrigin *files = part ? &session->model->origin[part->origin] : NULL;
    mtc_note(&session->fault, "such a number is in the data: field '%s' of example %lld of '%s': %s", field->name,
             (long long)example, split, mtc_bad_text(bad, field->rank, field->dim));
    if (files && files->paths) /* one for each field, or one that holds all */
        mtc_note(&session->fault, "check the data file %s%s", files->path[index < files->paths ? index : 0],
                 part->from > 0 || part->to < 1 ? "; examples are counted in the part that the split gives" : "");
}

int mtc_read_back(MtcSession *session, const MtcData *data, int index, int64_t example, void *values) {
    const MtcField *field = &session->model->field[index];
    const size_t bytes = mtc_example_bytes(field);
    const size_t from = (size_t)(example * data->stride[index]) * mtc_type_size(field->type);
    if (session->feed && data == &session->data[MTC_TRAIN])
        return mtc_feed_example(session, index, example, values);
    const char *error = mtc_download(values, (const char *)data->field[index] + from, bytes);
    return mtc_device_fault(session, error ? error : mtc_synchronize(), field->name);
}

static int examine_field(MtcSession *session, const MtcData *data, const char *split, int index, const int *example,
                         int64_t count, bool *found) {
    const MtcField *field = &session->model->field[index];
    size_t bytes = mtc_example_bytes(field);
    void *values = malloc(bytes);
    int code = values ? 0 : mtc_no_memory(&session->fault, bytes, field->name);
    for (int64_t i = 0; i < count && !code && !*found; i++) {
        int64_t at = example ? example[i] : i;
        code = mtc_read_back(session, data, index, at, values);
        if (code)
            break;
        MtcBadNumber bad = mtc_find_bad(field->type, values, field->elements);
        *found = bad.found;
        if (bad.found)
            note_example(session, split, index, at, &bad);
    }
    free(values);
    return code;
}

int mtc_note_bad_data(MtcSession *session, const MtcData *data, const char *split, const int *example, int64_t count,
                      bool *found) {
    int code = 0;
    *found = false;
    for (int i = 0; i < session->model->fields && !code && !*found; i++)
        if (session->model->field[i].type == MTC_F32)
            code = examine_field(session, data, split, i, example, count, found);
    return code;
}

/* ---- in an evaluation ---- */

static int note_bad_weight(MtcSession *session, bool *found) {
    const MtcModel *model = session->model;
    int code = 0;
    *found = false;
    for (int i = 0; i < model->tensors && !code && !*found; i++) {
        const MtcTensor *tensor = &model->tensor[i];
        MtcBadNumber bad = {0};
        if (mtc_is_kept(tensor))
            code = mtc_examine_tensor(session, tensor, &bad);
        *found = mtc_is_kept(tensor) && !code && bad.found;
        if (*found) {
            mtc_note(&session->fault, "the weight '%s' is not finite: %s", tensor->name,
                     mtc_bad_element_text(&bad, tensor));
            mtc_note_statement(&session->fault, session->model, tensor->statement);
        }
    }
    return code;
}

int mtc_check_means(MtcSession *session, int which, const char *split, int64_t step, const double *means) {
    const MtcModel *model = session->model;
    const MtcData *data = &session->data[which];
    bool found;
    int r = 0;
    while (r < mtc_evaluated(model) && isfinite(means[r]))
        r++;
    if (r == mtc_evaluated(model))
        return 0;
    mtc_fail(&session->fault, MTC_BAD_DATA, "the %s over the data set '%s' is %s", model->report[r], split,
             mtc_number(means[r]));
    if (step)
        mtc_note(&session->fault, "after step %lld of training", (long long)step);
    if (r >= model->reports)
        mtc_note(&session->fault,
                 "some metrics over a set have no value: roc_auc of examples that are all of one class");
    int code = note_bad_weight(session, &found);
    if (!code && !found)
        code = mtc_note_bad_data(session, data, split, NULL, data->examples, &found);
    if (!code && !found)
        mtc_note(&session->fault, "weights and data are finite: the number arises within the evaluation; look for "
                                  "log(0), a division by 0, exp of a large number");
    return code ? code : MTC_BAD_DATA;
}
