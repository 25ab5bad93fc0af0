#include "data/stored.h"

#include "data/field.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name;
    size_t size;
    int type; /* the MtcType that it is, or -1 */
} stored_types[] = {{"bool", 1, MTC_BOOL}, {"u8", 1, MTC_U8}, {"i8", 1, -1},       {"i16", 2, -1},
                    {"i32", 4, MTC_I32},   {"i64", 8, -1},    {"u16", 2, -1},      {"u32", 4, -1},
                    {"u64", 8, -1},        {"f16", 2, -1},    {"f32", 4, MTC_F32}, {"f64", 8, MTC_F64}};

const char *mtc_stored_name(MtcStored stored) {
    return stored_types[stored].name;
}

size_t mtc_stored_size(MtcStored stored) {
    return stored_types[stored].size;
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

/* As many numbers, in other axes: a grey image with a plane or without. */
static void note_same_elements(MtcFault *fault, const MtcField *field, const MtcArray *array) {
    const char *name = field->name;
    const int window = field->steps > 1; /* whose rows they are: an axis of the field that the file has not */
    int64_t dim[8] = {field->steps}, whole[8] = {field->steps};
    char type[64];
    if (mtc_elements(array->rank - 1, array->dim + 1) != mtc_elements(field->rank, field->dim))
        return;
    snprintf(type, sizeof type, "%s", mtc_type_name(field->type));
    if (field->classes)
        snprintf(type, sizeof type, "class[%lld]", (long long)field->classes);
    memcpy(dim + window, array->dim + 1, (size_t)(array->rank - 1) * sizeof *dim);
    memcpy(whole + window, field->dim, (size_t)field->rank * sizeof *whole);
    mtc_note(fault, "they are as many numbers: write %s : %s%s in the model file, and reshape(%s, %s) where it is used",
             name, type, array->rank - 1 + window ? mtc_shape(array->rank - 1 + window, dim) : "", name,
             mtc_shape(field->rank + window, whole));
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
        note_same_elements(fault, field, array);
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

/* The numbers in the order of their indices, the last fastest. `values` becomes another array. */
static int reorder(MtcFault *fault, const char *path, const MtcArray *array, size_t bytes, void **values) {
    const size_t size = mtc_stored_size(array->stored);
    int64_t index[8] = {0}, stride[8], from = 0;
    char *ordered = (char *)malloc(bytes);
    if (!ordered)
        return mtc_no_memory(fault, bytes, path);
    for (int k = 0; k < array->rank; k++)
        stride[k] = k ? stride[k - 1] * array->dim[k - 1] : 1;
    for (size_t to = 0; to < bytes; to += size) {
        memcpy(ordered + to, (const char *)*values + (size_t)from * size, size);
        int k = array->rank - 1;
        for (from += stride[k]; ++index[k] == array->dim[k] && k > 0; from += stride[k]) {
            from -= index[k] * stride[k];
            index[k--] = 0;
        }
    }
    free(*values);
    *values = ordered;
    return 0;
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
    return array->first_fastest ? reorder(fault, path, array, promised, values) : 0;
}

static int check_weights(MtcFault *fault, const char *path, const MtcField *field, int64_t count, const void *values) {
    const int64_t bad = field->weighs ? mtc_find_bad_weight(field, values, count) : count;
    if (bad == count)
        return 0;
    return mtc_fail(fault, MTC_BAD_DATA,
                    "%s: example %lld has the weight %s; the weight of an example is " MTC_A_WEIGHT, path,
                    (long long)bad, mtc_number(mtc_weight_at(field, values, bad)));
}

/* Numbers of these types are not all numbers of the field's. */
static char *rounding_note(const char *path, const MtcField *field, const MtcArray *array) {
    MtcText note = {NULL, 0, 0};
    const bool rounds = array->stored != MTC_AS_F32 && mtc_stored_size(array->stored) > 2;
    if (!is_converted(field, array) || field->type != MTC_F32 || !rounds)
        return NULL;
    mtc_text_add(&note, "%s holds %s, rounded to the f32 of field '%s'", path, mtc_stored_name(array->stored),
                 field->name);
    return note.at;
}

int mtc_read_field(MtcFault *fault, MtcInput *input, MtcReadHeader *header, const MtcField *field, int64_t *count,
                   void **values, char **note) {
    MtcArray array = {.rank = 0};
    const char *path = mtc_input_path(input);
    *values = NULL;
    *note = NULL;
    int code = header(fault, input, &array);
    if (!code)
        code = check_shape(fault, path, field, &array);
    if (!code)
        code = read_values(fault, input, field, &array, values);
    if (!code && is_converted(field, &array))
        code = mtc_convert_field(fault, path, field, &array, values);
    if (!code)
        code = check_weights(fault, path, field, array.dim[0], *values);
    if (code) {
        free(*values);
        *values = NULL;
        return code;
    }
    *count = array.dim[0];
    *note = rounding_note(path, field, &array);
    return 0;
}
