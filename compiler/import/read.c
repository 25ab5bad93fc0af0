/* The file: its bytes become messages, and its tensors numbers. What it says of itself is not believed: sizes, offsets and names
 * are checked before anything is made of them. */
#define _XOPEN_SOURCE 700 /* realpath */
#include "import/importer.h"
#include "runtime/base/file.h"
#include "support/file.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static const Span nowhere = {0};

/* ---- types of elements ---- */

typedef enum Field { FLOATS, INT32S, INT64S, DOUBLES, UINT64S } Field;

/* How a type's numbers lie in raw_data, and in which field they lie else. */
typedef struct Type {
    int type;
    const char *name;
    Element element;
    size_t width;
    Field field;
} Type;

#define TYPE(name, element, width, field)                                                                              \
    { ONNX__TENSOR_PROTO__DATA_TYPE__##name, #name, element, width, field }

static const Type types[] = {
    TYPE(FLOAT, REAL, 4, FLOATS),    TYPE(DOUBLE, REAL, 8, DOUBLES),   TYPE(FLOAT16, REAL, 2, INT32S),
    TYPE(BFLOAT16, REAL, 2, INT32S), TYPE(BOOL, CONDITION, 1, INT32S), TYPE(UINT8, WHOLE, 1, INT32S),
    TYPE(INT8, WHOLE, 1, INT32S),    TYPE(UINT16, WHOLE, 2, INT32S),   TYPE(INT16, WHOLE, 2, INT32S),
    TYPE(INT32, WHOLE, 4, INT32S),   TYPE(INT64, WHOLE, 8, INT64S),    TYPE(UINT32, WHOLE, 4, UINT64S),
    TYPE(UINT64, WHOLE, 8, UINT64S),
};

static const Type *type_of(Importer *im, int type, const char *of) {
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (types[i].type == type)
            return &types[i];
    refuse(im, "%s has elements of type %d, which is none of numbers that mtc knows (FLOAT is 1, INT64 7)", of, type);
}

Element element_of(Importer *im, int type, const char *of) {
    return type_of(im, type, of)->element;
}

/* ---- numbers ---- */

static float half_number(uint16_t bits) {
    const int exponent = bits >> 10 & 31, fraction = bits & 1023;
    const float magnitude = exponent == 31 ? (fraction ? NAN : INFINITY)
                            : exponent     ? ldexpf((float)(1024 + fraction), exponent - 25)
                                           : ldexpf((float)fraction, -24);
    return bits & 0x8000 ? -magnitude : magnitude;
}

/* Bits of a type, with zeros above, as it has them in raw_data. */
static float real_of(const Type *type, uint64_t bits) {
    float number;
    double wide;
    if (type->type == ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT16)
        return half_number((uint16_t)bits);
    if (type->type == ONNX__TENSOR_PROTO__DATA_TYPE__DOUBLE)
        return memcpy(&wide, &bits, sizeof wide), (float)wide;
    const uint32_t narrow = (uint32_t)(type->type == ONNX__TENSOR_PROTO__DATA_TYPE__BFLOAT16 ? bits << 16 : bits);
    return memcpy(&number, &narrow, sizeof number), number;
}

static int64_t whole_of(const Type *type, uint64_t bits) {
    const bool has_sign = type->name[0] == 'I';
    const int unused = 64 - 8 * (int)type->width;
    return has_sign ? (int64_t)(bits << unused) >> unused : (int64_t)bits;
}

static uint64_t bits_at(const uint8_t *bytes, int64_t i, size_t width) {
    uint64_t bits = 0;
    memcpy(&bits, bytes + (size_t)i * width, width);
    return bits;
}

static void take_bits(Importer *im, const Type *type, Tensor *tensor, int64_t i, uint64_t bits) {
    if (type->element == REAL) {
        tensor_reals(im, tensor)[i] = real_of(type, bits);
        return;
    }
    const int64_t number = whole_of(type, bits);
    if (type->type == ONNX__TENSOR_PROTO__DATA_TYPE__UINT64 && number < 0)
        refuse(im, "tensor '%s' has a number above 9223372036854775807", shown(im, tensor->name));
    tensor_wholes(im, tensor)[i] = type->element == CONDITION ? number != 0 : number;
}

static void take_raw(Importer *im, const Type *type, Tensor *tensor, const uint8_t *bytes, size_t size) {
    if ((uint64_t)tensor->count > SIZE_MAX / type->width || size != (size_t)tensor->count * type->width)
        refuse(im, "tensor '%s': %s of %s has %lld elements of %zu bytes, but its data have %zu bytes",
               shown(im, tensor->name), sizes_text(im, &tensor->extents), type->name, (long long)tensor->count,
               type->width, size);
    for (int64_t i = 0; i < tensor->count; i++)
        take_bits(im, type, tensor, i, bits_at(bytes, i, type->width));
}

/* ---- numbers in a field of their type ---- */

static size_t field_count(const TensorProto *proto, Field field) {
    const size_t counts[] = {[FLOATS] = proto->n_float_data,
                             [INT32S] = proto->n_int32_data,
                             [INT64S] = proto->n_int64_data,
                             [DOUBLES] = proto->n_double_data,
                             [UINT64S] = proto->n_uint64_data};
    return counts[field];
}

static uint64_t field_bits(const TensorProto *proto, const Type *type, size_t i) {
    uint64_t bits = 0;
    switch (type->field) {
    case FLOATS: memcpy(&bits, &proto->float_data[i], sizeof(float)); return bits;
    case DOUBLES: memcpy(&bits, &proto->double_data[i], sizeof(double)); return bits;
    case INT32S: bits = (uint32_t)proto->int32_data[i]; break;
    case INT64S: bits = (uint64_t)proto->int64_data[i]; break;
    case UINT64S: bits = proto->uint64_data[i]; break;
    }
    return type->width < sizeof bits ? bits & ((1ull << 8 * type->width) - 1) : bits;
}

static void take_field(Importer *im, const TensorProto *proto, const Type *type, Tensor *tensor) {
    const size_t count = field_count(proto, type->field);
    if (count != (size_t)tensor->count)
        refuse(im, "tensor '%s': %s of %s has %lld elements, but its data have %zu", shown(im, tensor->name),
               sizes_text(im, &tensor->extents), type->name, (long long)tensor->count, count);
    for (size_t i = 0; i < count; i++)
        take_bits(im, type, tensor, (int64_t)i, field_bits(proto, type, i));
}

/* ---- numbers in another file ---- */

/* Of a tensor's entries in external_data; NULL: there is none. */
static const char *entry_of(const TensorProto *proto, const char *key) {
    for (size_t i = 0; i < proto->n_external_data; i++)
        if (proto->external_data[i]->key && strcmp(proto->external_data[i]->key, key) == 0)
            return proto->external_data[i]->value;
    return NULL;
}

/* -1: it is not given. */
static int64_t entry_number(Importer *im, const TensorProto *proto, const char *key, const char *name) {
    const char *text = entry_of(proto, key);
    char *end;
    if (!text)
        return -1;
    errno = 0;
    const long long number = strtoll(text, &end, 10);
    if (errno || *end || end == text || number < 0)
        refuse(im, "tensor '%s': the %s of its data in another file is '%s', which is no number of bytes", name, key,
               shown(im, text));
    return number;
}

/* Where the data lie: within the folder of the model, whatever links lead to. */
static const char *external_path(Importer *im, const char *location, const char *name) {
    char folder[PATH_MAX], path[PATH_MAX];
    const char *near = path_folder(im->arena, im->request->input);
    if (!location || !*location)
        refuse(im, "tensor '%s': its data are in another file, and none is named", name);
    if (!realpath(near, folder) || !realpath(path_in(im->arena, near, location), path))
        refuse(im, "tensor '%s': its data are in '%s', beside the model: %s", name, shown(im, location),
               strerror(errno));
    const size_t length = strcmp(folder, "/") == 0 ? 0 : strlen(folder);
    if (location[0] == '/' || strncmp(folder, path, length) != 0 || path[length] != '/')
        refuse(im,
               "tensor '%s': its data are in '%s', which is not in the folder of the model: it is not read. The file "
               "is '%s'; "
               "copy it into that folder, and let the model say its name alone",
               name, shown(im, location), shown(im, path));
    return arena_strdup(im->arena, path);
}

static uint8_t *read_part(Importer *im, const char *path, int64_t offset, int64_t length, const char *name) {
    const char *why = NULL;
    struct stat status;
    const int file = mtc_open_file(path, &why);
    const bool opened = file >= 0 && fstat(file, &status) == 0;
    const bool fits = opened && offset <= status.st_size && length <= status.st_size - offset;
    uint8_t *bytes = fits ? arena_alloc(im->arena, (size_t)length + 1) : NULL;
    int64_t got = 0;
    for (ssize_t more = 1; fits && got < length && more > 0; got += more > 0 ? more : 0)
        more = pread(file, bytes + got, (size_t)(length - got), (off_t)(offset + got));
    if (file >= 0)
        close(file);
    if (!opened)
        refuse(im, "tensor '%s': cannot read '%s': %s", name, shown(im, path), why ? why : strerror(errno));
    if (!fits || got < length)
        refuse(im, "tensor '%s': its data are %lld bytes from byte %lld on of '%s', which has %lld", name,
               (long long)length, (long long)offset, shown(im, path_base(path)), (long long)status.st_size);
    return bytes;
}

/* So many bytes, which are there. */
static const uint8_t *read_external(Importer *im, const TensorProto *proto, int64_t needed, const char *name) {
    const char *path = external_path(im, entry_of(proto, "location"), name);
    const int64_t offset = entry_number(im, proto, "offset", name), length = entry_number(im, proto, "length", name);
    if (length >= 0 && length != needed)
        refuse(im, "tensor '%s' has %lld bytes, but the length of its data in another file is %lld", name,
               (long long)needed, (long long)length);
    return read_part(im, path, offset < 0 ? 0 : offset, needed, name);
}

/* ---- a tensor ---- */

static Extents read_extents(Importer *im, const TensorProto *proto, const char *name) {
    Extents extents = {0};
    if (proto->n_dims > MOST_RANK)
        refuse(im, "tensor '%s' has %zu axes; at most %d are known", name, proto->n_dims, MOST_RANK);
    for (size_t i = 0; i < proto->n_dims; i++) {
        if (proto->dims[i] < 0)
            refuse(im, "tensor '%s': axis %zu has the size %lld", name, i, (long long)proto->dims[i]);
        extents.size[extents.rank++] = proto->dims[i];
    }
    return extents;
}

/* Nothing is made of sizes that the data cannot fill. */
static void check_count(Importer *im, const TensorProto *proto, const Type *type, const Extents *extents,
                        const char *name) {
    const int64_t count = extents_count(im, extents);
    const size_t given = proto->has_raw_data ? proto->raw_data.len / type->width : field_count(proto, type->field);
    if ((uint64_t)count > given)
        refuse(im, "tensor '%s': %s of %s has %lld elements, but its data have %zu", name, sizes_text(im, extents),
               type->name, (long long)count, given);
}

Tensor *read_tensor(Importer *im, const TensorProto *proto, const char *name) {
    const char *called = shown(im, name);
    const Type *type = type_of(im, proto->data_type, arena_printf(im->arena, "tensor '%s'", called));
    const bool external = proto->data_location == ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL;
    const Extents extents = read_extents(im, proto, called);
    const int64_t bytes = extents_count(im, &extents) * (int64_t)type->width;
    const uint8_t *elsewhere = external ? read_external(im, proto, bytes, called) : NULL;
    if (!external)
        check_count(im, proto, type, &extents, called);
    Tensor *tensor = tensor_new(im, type->element, &extents);
    tensor->name = name;
    if (external)
        take_raw(im, type, tensor, elsewhere, (size_t)bytes);
    else if (proto->has_raw_data)
        take_raw(im, type, tensor, proto->raw_data.data, proto->raw_data.len);
    else
        take_field(im, proto, type, tensor);
    return tensor;
}

/* ---- the message ---- */

static ModelProto *no_model(Importer *im, const char *path, const char *why) {
    diag_error(im->diag, nowhere, "%s: %s", path, why);
    return NULL;
}

ModelProto *read_model(Importer *im, const char *path) {
    MtcFault fault = {0};
    MtcMapped file;
    if (mtc_map_file(&fault, path, &file)) {
        diag_error(im->diag, nowhere, "%s", fault.text);
        return NULL;
    }
    ModelProto *model = file.size ? onnx__model_proto__unpack(NULL, file.size, file.bytes) : NULL;
    const bool same = mtc_mapped_is_same(&file);
    mtc_unmap_file(&file);
    if (!model)
        return no_model(im, path, "is no ONNX file: its bytes are not the message that such a file is");
    const char *why = !same                ? "was changed while it was read"
                      : !model->graph      ? "is no ONNX file: it has no graph"
                      : model->n_functions ? "has functions of its own, which mtc does not read; inline them first "
                                             "(onnx.inliner.inline_local_functions)"
                                           : NULL;
    if (!why)
        return model;
    onnx__model_proto__free_unpacked(model, NULL);
    return no_model(im, path, why);
}
