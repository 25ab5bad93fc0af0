#include "data/dataset.h"

#include "data/table.h"
#include "data/tokens.h"

#include <stdlib.h>
#include <string.h>

/* ---- stored types ---- */

static const struct {
    const char *name;
    size_t size;
    int type; /* the MtcType that it is, or -1 */
} stored_types[] = {{"bool", 1, MTC_BOOL}, {"u8", 1, MTC_U8},   {"i8", 1, -1},
                    {"i16", 2, -1},        {"i32", 4, MTC_I32}, {"i64", 8, -1},
                    {"f16", 2, -1},        {"f32", 4, MTC_F32}, {"f64", 8, MTC_F64}};

const char *mtc_stored_name(MtcStored stored) {
    return stored_types[stored].name;
}

size_t mtc_stored_size(MtcStored stored) {
    return stored_types[stored].size;
}

bool mtc_host_is_big_endian(void) {
    const uint16_t one = 1;
    return *(const uint8_t *)&one == 0;
}

static void swap_bytes(uint8_t *bytes, size_t count, size_t size) {
    for (size_t i = 0; i < count; i++, bytes += size)
        for (size_t k = 0; k < size / 2; k++) {
            uint8_t byte = bytes[k];
            bytes[k] = bytes[size - 1 - k];
            bytes[size - 1 - k] = byte;
        }
}

/* ---- one field ---- */

static bool is_converted(const MtcField *field, const MtcArray *array) {
    return field->classes || stored_types[array->stored].type != (int)field->type;
}

static int check_type(MtcFault *fault, const char *path, const MtcField *field, const MtcArray *array) {
    const bool whole = array->stored <= MTC_AS_I64;
    if (field->classes && !whole)
        return mtc_fail(fault, MTC_BAD_DATA, "%s: field '%s' is a class label: expected integers, found %s", path,
                        field->name, mtc_stored_name(array->stored));
    if (is_converted(field, array) && field->type != MTC_F32 && !whole)
        return mtc_fail(fault, MTC_BAD_DATA, "%s: field '%s' expects elements of type %s, found %s", path, field->name,
                        mtc_type_name(field->type), mtc_stored_name(array->stored));
    return 0;
}

static int check_shape(MtcFault *fault, const char *path, const MtcField *field, const MtcArray *array) {
    bool same = array->rank == field->rank + 1;
    for (int i = 0; same && i < field->rank; i++)
        same = array->dim[i + 1] == field->dim[i];
    if (!same) {
        mtc_fail(fault, MTC_BAD_DATA, "%s: field '%s' expects examples of shape %s, found %s", path, field->name,
                 mtc_shape(field->rank, field->dim), mtc_shape(array->rank - 1, array->dim + 1));
        mtc_note(fault, "the file's whole shape is %s; its first size counts the examples",
                 mtc_shape(array->rank, array->dim));
        return fault->code;
    }
    if (array->dim[0] == 0)
        return mtc_fail(fault, MTC_BAD_DATA, "%s: holds no examples", path);
    if (array->dim[0] > INT32_MAX)
        return mtc_fail(fault, MTC_BAD_DATA, "%s: holds %lld examples; at most %d can be used", path,
                        (long long)array->dim[0], INT32_MAX);
    return 0;
}

static int cut_off(MtcFault *fault, const MtcInput *input, const MtcArray *array, size_t promised, size_t found,
                   bool exact) {
    return mtc_fail(fault, MTC_BAD_DATA, "%s: is cut off: its header %s promises %zu bytes of data, found %s%zu",
                    mtc_input_path(input), mtc_shape(array->rank, array->dim), promised, exact ? "" : "at most ",
                    found);
}

/* Exactly the bytes that the header promises. They are bounded by the file's size before memory is asked for. */
static int read_values(MtcFault *fault, MtcInput *input, const MtcField *field, const MtcArray *array, void **values) {
    const char *path = mtc_input_path(input);
    size_t size = mtc_stored_size(array->stored), promised = (size_t)(array->dim[0] * field->elements) * size, got,
           more;
    bool exact;
    size_t bound = mtc_input_bound(input, &exact);
    char extra;
    if (promised > bound)
        return cut_off(fault, input, array, promised, bound, exact);
    *values = malloc(promised);
    if (!*values)
        return mtc_no_memory(fault, promised, path);
    int code = mtc_input_read(fault, input, *values, promised, &got);
    if (code || got < promised)
        return code ? code : cut_off(fault, input, array, promised, got, true);
    code = mtc_input_read(fault, input, &extra, 1, &more);
    if (code || more)
        return code ? code
                    : mtc_fail(fault, MTC_BAD_DATA, "%s: is longer than its header %s promises (%zu bytes of data)",
                               path, mtc_shape(array->rank, array->dim), promised);
    if (array->big_endian != mtc_host_is_big_endian())
        swap_bytes((uint8_t *)*values, promised / size, size);
    return 0;
}

/* Numbers of these types are not all numbers of the field's. */
static char *rounding_note(const char *path, const MtcField *field, const MtcArray *array) {
    MtcText note = {NULL, 0, 0};
    const bool rounds = array->stored == MTC_AS_F64 || array->stored == MTC_AS_I64 || array->stored == MTC_AS_I32;
    if (!is_converted(field, array) || field->type != MTC_F32 || !rounds)
        return NULL;
    mtc_text_add(&note, "%s holds %s, rounded to the f32 of field '%s'", path, mtc_stored_name(array->stored),
                 field->name);
    return note.at;
}

int mtc_read_field(MtcFault *fault, MtcInput *input, const char *format, const MtcField *field, int64_t *count,
                   void **values, char **note) {
    MtcArray array;
    const char *path = mtc_input_path(input);
    *values = NULL;
    *note = NULL;
    int code = strcmp(format, "npy") == 0 ? mtc_npy_header(fault, input, &array) : mtc_idx_header(fault, input, &array);
    if (!code)
        code = check_type(fault, path, field, &array);
    if (!code)
        code = check_shape(fault, path, field, &array);
    if (!code)
        code = read_values(fault, input, field, &array, values);
    if (!code && is_converted(field, &array))
        code = mtc_convert_field(fault, path, field, &array, values);
    if (code) {
        free(*values);
        *values = NULL;
        return code;
    }
    *count = array.dim[0];
    *note = rounding_note(path, field, &array);
    return 0;
}

int64_t mtc_field_stride(const MtcField *field, int64_t stride) {
    return stride ? stride : field->elements;
}

size_t mtc_field_bytes(const MtcField *field, int64_t examples, int64_t stride) {
    int64_t elements = examples ? (examples - 1) * mtc_field_stride(field, stride) + field->elements : 0;
    return (size_t)elements * mtc_type_size(field->type);
}

size_t mtc_example_bytes(const MtcField *field) {
    return mtc_field_bytes(field, 1, 0);
}

void mtc_put_class(const MtcField *field, void *values, int64_t at, int64_t class_) {
    switch (field->type) {
    case MTC_U8: ((uint8_t *)values)[at] = (uint8_t)class_; break;
    case MTC_U16: ((uint16_t *)values)[at] = (uint16_t)class_; break;
    default: ((int32_t *)values)[at] = (int32_t)class_; break;
    }
}

int64_t mtc_class_at(const MtcField *field, const void *values, int64_t at) {
    switch (field->type) {
    case MTC_U8: return ((const uint8_t *)values)[at];
    case MTC_U16: return ((const uint16_t *)values)[at];
    default: return ((const int32_t *)values)[at];
    }
}

int64_t mtc_find_bad_class(const MtcField *field, const void *values, int64_t count) {
    int64_t most = 0, least = 0;
    const int32_t *wide = (const int32_t *)values;
    const uint16_t *half = (const uint16_t *)values;
    const uint8_t *byte = (const uint8_t *)values;
    for (int64_t i = 0; i < count && field->type == MTC_I32; i++) {
        most = wide[i] > most ? wide[i] : most;
        least = wide[i] < least ? wide[i] : least;
    }
    for (int64_t i = 0; i < count && field->type == MTC_U16; i++)
        most = half[i] > most ? half[i] : most;
    for (int64_t i = 0; i < count && field->type == MTC_U8; i++)
        most = byte[i] > most ? byte[i] : most;
    if (least >= 0 && most < field->classes)
        return count;
    for (int64_t i = 0;; i++)
        if (mtc_class_at(field, values, i) < 0 || mtc_class_at(field, values, i) >= field->classes)
            return i;
}

int mtc_read_elements(MtcFault *fault, const MtcModel *model, const MtcExamples *examples, int field, int64_t from,
                      int64_t count, void *values) {
    const size_t size = mtc_type_size(model->field[field].type);
    if (examples->tokens)
        return mtc_tokens_read(fault, examples->tokens, examples->first_token + from, count, values);
    memcpy(values, (const char *)examples->field[field] + (size_t)from * size, (size_t)count * size);
    return 0;
}

int mtc_read_example(MtcFault *fault, const MtcModel *model, const MtcExamples *examples, int field, int64_t example,
                     void *values) {
    const MtcField *of = &model->field[field];
    return mtc_read_elements(fault, model, examples, field, example * mtc_field_stride(of, examples->stride),
                             of->elements, values);
}

int mtc_keep_examples(MtcFault *fault, const MtcModel *model, const int64_t *which, int64_t count,
                      MtcExamples *examples) {
    MtcExamples kept;
    int code = 0;
    memset(&kept, 0, sizeof kept);
    kept.count = count;
    for (int f = 0; f < model->fields && !code; f++) {
        const size_t size = mtc_example_bytes(&model->field[f]);
        char *array = (char *)mtc_memory(NULL, (size_t)count * size);
        kept.field[f] = array;
        for (int64_t i = 0; i < count && !code; i++)
            code = mtc_read_example(fault, model, examples, f, which ? which[i] : i, array + (size_t)i * size);
    }
    mtc_examples_free(code ? &kept : examples);
    if (!code)
        *examples = kept;
    return code;
}

void mtc_examples_free(MtcExamples *examples) {
    for (int i = 0; i < MTC_MAX_FIELDS; i++)
        free(examples->field[i]);
    mtc_tokens_free(examples->tokens);
    if (examples->path)
        mtc_free_strings(examples->path, (int)(examples->row ? examples->rows : examples->count));
    mtc_table_rows_free(examples->source);
    free(examples->row);
    memset(examples, 0, sizeof *examples);
}

void mtc_encoding_free(MtcEncoding *encoding) {
    for (int i = 0; i < MTC_MAX_FIELDS; i++) {
        MtcMeaning *meaning = &encoding->field[i];
        mtc_free_strings(meaning->word, meaning->words);
        free(meaning->mean);
    }
    memset(encoding, 0, sizeof *encoding);
}

const MtcSplit *mtc_split(const MtcModel *model, const char *name) {
    for (int i = 0; i < model->splits; i++)
        if (strcmp(model->split[i].name, name) == 0)
            return &model->split[i];
    return NULL;
}

const char *mtc_test_split(const MtcModel *model) {
    return mtc_split(model, "test") ? "test" : mtc_split(model, "validation") ? "validation" : NULL;
}
