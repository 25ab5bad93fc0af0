/* numpy's .npy format: "\x93NUMPY", version, header length, then a Python dictionary such as
 *
 *     {'descr': '<f4', 'fortran_order': False, 'shape': (60000, 784), }
 *
 * padded with spaces so that the elements begin at a multiple of 64. */
#include "data/stored.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int npy_error(MtcFault *fault, const MtcInput *input, const char *what) {
    return mtc_fail(fault, MTC_BAD_DATA, "%s: is not an npy file that can be read: %s", mtc_input_path(input), what);
}

/* What follows `'key':` in the dictionary; NULL when the key is not there. */
static const char *npy_value(const char *header, const char *key) {
    char quoted[32];
    snprintf(quoted, sizeof quoted, "'%s':", key);
    const char *at = strstr(header, quoted);
    return at ? at + strlen(quoted) + strspn(at + strlen(quoted), " ") : NULL;
}

static bool npy_type(const char *descr, MtcArray *array) {
    static const struct {
        const char *code;
        MtcStored stored;
    } types[] = {{"u1", MTC_AS_U8},   {"u2", MTC_AS_U16}, {"u4", MTC_AS_U32}, {"u8", MTC_AS_U64},
                 {"b1", MTC_AS_BOOL}, {"i1", MTC_AS_I8},  {"i2", MTC_AS_I16}, {"i4", MTC_AS_I32},
                 {"i8", MTC_AS_I64},  {"f2", MTC_AS_F16}, {"f4", MTC_AS_F32}, {"f8", MTC_AS_F64}};
    if (!descr || descr[0] != '\'' || !descr[1] || !strchr("<>|=", descr[1]))
        return false;
    array->big_endian = descr[1] == '>';
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (strncmp(descr + 2, types[i].code, 2) == 0 && descr[4] == '\'') {
            array->stored = types[i].stored;
            return true;
        }
    return false;
}

/* "(60000, 784), }" */
static bool npy_dims(const char *shape, MtcArray *array, bool *fits) {
    if (!shape || *shape != '(')
        return false;
    array->rank = 0;
    for (shape++; *shape != ')'; array->rank++) {
        char *end;
        if (*shape < '0' || *shape > '9' || array->rank == 8)
            return false;
        errno = 0;
        array->dim[array->rank] = strtoll(shape, &end, 10);
        *fits &= errno == 0;
        shape = end + strspn(end, ", ");
    }
    return true;
}

static int npy_dictionary(MtcFault *fault, MtcInput *input, size_t length, MtcArray *array) {
    char header[4096];
    size_t got;
    if (length >= sizeof header)
        return npy_error(fault, input, "its header is too long");
    int code = mtc_input_read(fault, input, header, length, &got);
    if (code || got < length)
        return code ? code : npy_error(fault, input, "it ends within its header");
    header[length] = 0;
    const char *order = npy_value(header, "fortran_order");
    if (!npy_type(npy_value(header, "descr"), array))
        return npy_error(fault, input, "its element type is not one of b1 u1 u2 u4 u8 i1 i2 i4 i8 f2 f4 f8");
    array->first_fastest = order && strncmp(order, "True", 4) == 0;
    if (!order || (!array->first_fastest && strncmp(order, "False", 5) != 0))
        return npy_error(fault, input, "its fortran_order is neither True nor False");
    bool fits = true;
    if (!npy_dims(npy_value(header, "shape"), array, &fits) || array->rank == 0)
        return npy_error(fault, input, "its shape is not a list of 1 to 8 sizes");
    if (!fits)
        return npy_error(fault, input, "a size of its shape is beyond 64 bits");
    return 0;
}

int mtc_npy_header(MtcFault *fault, MtcInput *input, MtcArray *array) {
    unsigned char head[12] = {0};
    size_t got, length;
    int code = mtc_input_read(fault, input, head, 10, &got);
    if (code || got < 10 || memcmp(head, "\x93NUMPY", 6) != 0)
        return code ? code : npy_error(fault, input, "it does not begin with \\x93NUMPY");
    length = head[8] | (size_t)head[9] << 8;
    if (head[6] > 1) { /* later versions: four bytes of length */
        code = mtc_input_read(fault, input, head + 10, 2, &got);
        if (code)
            return code;
        length |= (size_t)head[10] << 16 | (size_t)head[11] << 24;
    }
    return npy_dictionary(fault, input, length, array);
}

int mtc_write_npy(MtcFault *fault, const char *path, int rank, const int64_t *dim, const float *values) {
    MtcText header = {NULL, 0, 0};
    MtcOutput *output;
    mtc_text_add(&header, "{'descr': '<f4', 'fortran_order': False, 'shape': (");
    for (int i = 0; i < rank; i++)
        mtc_text_add(&header, "%lld,%s", (long long)dim[i], i + 1 < rank ? " " : "");
    mtc_text_add(&header, "), }");
    while ((10 + header.length + 1) % 64 != 0)
        mtc_text_add(&header, " ");
    mtc_text_add(&header, "\n");
    unsigned char head[10] = {0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0};
    head[8] = (unsigned char)header.length;
    head[9] = (unsigned char)(header.length >> 8);

    int code = mtc_output_open(fault, path, &output);
    if (!code) {
        code = mtc_output_write(fault, output, head, sizeof head);
        if (!code)
            code = mtc_output_write(fault, output, header.at, header.length);
        if (!code)
            code = mtc_output_write(fault, output, values, (size_t)mtc_elements(rank, dim) * sizeof *values);
        if (code)
            mtc_output_discard(output);
        else
            code = mtc_output_commit(fault, output);
    }
    free(header.at);
    return code;
}
