#include "weights/torch.h"

#include "runtime/base/axes.h"
#include "support/text.h"
#include "weights/pickle.h"

#include <stdlib.h>

/* ---- what a pickle of weights names ---- */

enum { ORDERED_DICT, REBUILD_TENSOR, REBUILD_PARAMETER, FIRST_STORAGE };
static const PickleGlobal globals[] = {
    [ORDERED_DICT] = {"collections", "OrderedDict", PICKLE_MAPS},
    [REBUILD_TENSOR] = {"torch._utils", "_rebuild_tensor_v2", PICKLE_CALLED},
    [REBUILD_PARAMETER] = {"torch._utils", "_rebuild_parameter", PICKLE_CALLED},
    {"torch", "FloatStorage", PICKLE_NAMED},
    {"torch", "DoubleStorage", PICKLE_NAMED},
    {"torch", "HalfStorage", PICKLE_NAMED},
    {"torch", "BFloat16Storage", PICKLE_NAMED},
    {"torch", "LongStorage", PICKLE_NAMED},
    {"torch", "IntStorage", PICKLE_NAMED},
    {"torch", "ShortStorage", PICKLE_NAMED},
    {"torch", "CharStorage", PICKLE_NAMED},
    {"torch", "ByteStorage", PICKLE_NAMED},
    {"torch", "BoolStorage", PICKLE_NAMED},
};
enum { GLOBALS = sizeof globals / sizeof *globals };
/* From FIRST_STORAGE on. */
static const struct {
    const char *dtype;
    size_t bytes;
} elements[] = {{"F32", 4}, {"F64", 8}, {"F16", 2}, {"BF16", 2}, {"I64", 8},
                {"I32", 4}, {"I16", 2}, {"I8", 1},  {"U8", 1},   {"BOOL", 1}};
_Static_assert(sizeof elements / sizeof *elements == GLOBALS - FIRST_STORAGE, "a row for each storage");

/* ---- a tensor ---- */

static int bad_tensor(MtcFault *fault, const TorchFile *file, const TorchTensor *tensor, const char *what) {
    return mtc_fail(fault, MTC_BAD_DATA, "%s: tensor '%s': %s", file->path, mtc_harmless(tensor->name), what);
}

static const PickleValue *item_of(const PickleValue *value, size_t index, PickleKind kind) {
    const PickleValue *item = value ? pickle_item(value, index) : NULL;
    return item && item->kind == kind ? item : NULL;
}

enum { LONGEST_KEY = 64 };

/* ('storage', torch.FloatStorage, '0', 'cpu', elements) */
static int read_storage(MtcFault *fault, TorchFile *file, const PickleValue *value, TorchTensor *tensor) {
    const PickleValue *id = item_of(value, 0, PICKLE_TUPLE), *type = item_of(id, 1, PICKLE_GLOBAL),
                      *key = item_of(id, 2, PICKLE_TEXT), *count = item_of(id, 4, PICKLE_INT),
                      *other_type = item_of(id, 1, PICKLE_OPAQUE);
    if (other_type)
        return bad_tensor(fault, file, tensor,
                          arena_printf(file->arena, "its numbers are those of %s, which are not read",
                                       pickle_kind(file->arena, other_type)));
    if (!type || !key || !count || count->integer < 0 || id->size != 5 || type->integer < FIRST_STORAGE ||
        key->size > LONGEST_KEY || !pickle_is_text(pickle_item(id, 0), "storage"))
        return bad_tensor(fault, file, tensor, "its storage is not described as torch.save does it");
    tensor->dtype = elements[type->integer - FIRST_STORAGE].dtype;
    tensor->element = elements[type->integer - FIRST_STORAGE].bytes;
    tensor->stored = count->integer;
    tensor->member = arena_printf(file->arena, "%sdata/%.*s", file->folder, (int)key->size, key->bytes);
    size_t size;
    if (!mtc_zip_size(file->zip, tensor->member, &size))
        return bad_tensor(fault, file, tensor,
                          arena_printf(file->arena, "its storage %s is missing", mtc_harmless(tensor->member)));
    if (size % tensor->element || size / tensor->element != (uint64_t)count->integer)
        return mtc_fail(fault, MTC_BAD_DATA,
                        "%s: tensor '%s': its storage is to have %lld elements of %zu bytes, and has %zu bytes",
                        file->path, mtc_harmless(tensor->name), (long long)count->integer, tensor->element, size);
    return 0;
}

/* Sizes and strides: tuples of as many numbers, none below 0. */
static int read_shape(MtcFault *fault, const TorchFile *file, const PickleValue *size, const PickleValue *stride,
                      TorchTensor *tensor) {
    if (!size || !stride || size->size != stride->size)
        return bad_tensor(fault, file, tensor, "it has no tuples of sizes and of strides");
    if (size->size > 8)
        return bad_tensor(fault, file, tensor, "it has more than 8 dimensions");
    const PickleItem *step = stride->first;
    for (const PickleItem *item = size->first; item; item = item->next, step = step->next) {
        if (item->value->kind != PICKLE_INT || step->value->kind != PICKLE_INT || item->value->integer < 0 ||
            step->value->integer < 0)
            return bad_tensor(fault, file, tensor, "a size or a stride is no number from 0 on");
        tensor->dim[tensor->rank] = item->value->integer;
        tensor->stride[tensor->rank++] = step->value->integer;
    }
    return 0;
}

/* The last element, and so each, lies in the storage: from + sum of (dim - 1) stride < stored. */
static bool is_inside(const TorchTensor *tensor) {
    int64_t last = tensor->from;
    if (last >= tensor->stored)
        return false;
    for (int i = 0; i < tensor->rank; i++) {
        const int64_t steps = tensor->dim[i] - 1, stride = tensor->stride[i];
        if (steps && stride && stride > (tensor->stored - 1 - last) / steps)
            return false;
        last += steps * stride;
    }
    return true;
}

static int measure_tensor(MtcFault *fault, const TorchFile *file, TorchTensor *tensor) {
    const int64_t count = mtc_elements(tensor->rank, tensor->dim);
    if (count && !is_inside(tensor))
        return bad_tensor(fault, file, tensor, "it reaches beyond its storage");
    if (count > INT64_MAX / (int64_t)tensor->element)
        return bad_tensor(fault, file, tensor, "it has more elements than a file can");
    tensor->size = (size_t)count * tensor->element;
    return 0;
}

/* _rebuild_tensor_v2(storage, offset, size, stride, requires_grad, backward_hooks[, metadata]) */
static int read_rebuilt(MtcFault *fault, TorchFile *file, const PickleValue *call, TorchTensor *tensor) {
    const PickleValue *offset = item_of(call, 1, PICKLE_INT), *metadata = pickle_item(call, 6);
    if (!offset || offset->integer < 0)
        return bad_tensor(fault, file, tensor, "it has no offset in its storage");
    if (metadata && (metadata->kind == PICKLE_DICT ? metadata->size > 0 : metadata->kind != PICKLE_NONE))
        return bad_tensor(fault, file, tensor,
                          "it is the negative or the conjugate of what is stored; save x.resolve_neg()");
    tensor->from = offset->integer;
    int code = read_storage(fault, file, item_of(call, 0, PICKLE_OUTSIDE), tensor);
    if (!code)
        code = read_shape(fault, file, item_of(call, 2, PICKLE_TUPLE), item_of(call, 3, PICKLE_TUPLE), tensor);
    return code ? code : measure_tensor(fault, file, tensor);
}

/* A parameter, _rebuild_parameter(tensor, ...), is its tensor. NULL: the value is neither. */
static const PickleValue *unwrapped(const PickleValue *value) {
    if (value->kind == PICKLE_CALL && value->integer == REBUILD_PARAMETER)
        value = item_of(value, 0, PICKLE_CALL);
    return value && value->kind == PICKLE_CALL && value->integer == REBUILD_TENSOR ? value : NULL;
}

static const char weights_alone[] =
    "what is read are tensors by their names: torch.save(model.state_dict(), \"model.pt\")";

/* What a call of another function makes of storages: a sparse or quantized tensor, or one of a class of its own. */
static bool is_unknown_tensor(const PickleValue *value) {
    return value->outside && (value->kind == PICKLE_CALL || value->kind == PICKLE_OPAQUE);
}

static int unknown_tensor(MtcFault *fault, const TorchFile *file, const char *name, const PickleValue *value) {
    const PickleValue *inner = item_of(value, 0, PICKLE_OPAQUE);
    const char *maker = pickle_kind(file->arena, value->kind == PICKLE_CALL && inner ? inner : value);
    mtc_fail(fault, MTC_BAD_DATA, "%s: '%s' is what %s makes of numbers in the file, and nothing is looked up or run",
             file->path, name ? mtc_harmless(name) : "?", maker);
    mtc_note(fault, "save it as a plain tensor: x.to_dense(), x.dequantize(), x.as_subclass(torch.Tensor)");
    return fault->code;
}

/* ---- the state dict ---- */

enum { MOST_LISTED = 12 };

static bool holds_tensors(const PickleValue *value) {
    if (value->kind != PICKLE_DICT)
        return false;
    for (const PickleItem *key = value->first; key; key = key->next->next)
        if (unwrapped(key->next->value))
            return true;
    return false;
}

/* NULL: it is no text, has a zero in it, is no UTF-8; or one name stands so often that a copy of each would fill memory. */
static const char *text_of(TorchFile *file, const PickleValue *value) {
    if (value->kind != PICKLE_TEXT || value->size > file->names || memchr(value->bytes, '\0', value->size))
        return NULL;
    const unsigned char *at = (const unsigned char *)value->bytes, *end = at + value->size;
    for (int length; at < end; at += length)
        if ((length = utf8_length(at, end)) == 0)
            return NULL;
    file->names -= value->size;
    return arena_strndup(file->arena, value->bytes, value->size);
}

static int note_members(MtcFault *fault, TorchFile *file, const PickleValue *dict) {
    Text names = TEXT(file->arena);
    int count = 0;
    const PickleItem *key = dict->first;
    for (; key && count < MOST_LISTED; key = key->next->next) {
        const char *name = text_of(file, key->value);
        if (name)
            text_printf(&names, "%s'%s' (%s)", count++ ? ", " : "", mtc_harmless(name),
                        holds_tensors(key->next->value) ? "tensors" : pickle_kind(file->arena, key->next->value));
    }
    if (count)
        mtc_note(fault, "it holds %s%s", text_string(&names), key ? " and more" : "");
    return fault->code;
}

/* "state.model": the member of that name; else the member "model" of the member "state". */
static const PickleValue *member_at(const PickleValue *dict, const char *path) {
    const PickleValue *inner = NULL;
    const char *rest = NULL;
    for (const PickleItem *key = dict->first; key; key = key->next->next) {
        const size_t size = key->value->size;
        if (key->value->kind != PICKLE_TEXT || strncmp(path, key->value->bytes, size) != 0)
            continue;
        if (path[size] == '\0')
            return key->next->value;
        if (path[size] == '.' && key->next->value->kind == PICKLE_DICT) {
            inner = key->next->value;
            rest = path + size + 1;
        }
    }
    return inner ? member_at(inner, rest) : NULL;
}

static int find_by_key(MtcFault *fault, TorchFile *file, const PickleValue *root, const PickleValue **dict) {
    *dict = member_at(root, file->key);
    if (*dict && holds_tensors(*dict))
        return 0;
    mtc_fail(fault, MTC_BAD_DATA, *dict ? "%s: '%s' holds no tensors" : "%s: has no member '%s'", file->path,
             mtc_harmless(file->key));
    return note_members(fault, file, *dict && (*dict)->kind == PICKLE_DICT ? *dict : root);
}

static int by_value(const void *a, const void *b) {
    const PickleItem *x = *(const PickleItem *const *)a, *y = *(const PickleItem *const *)b;
    const uintptr_t left = (uintptr_t)x->next->value, right = (uintptr_t)y->next->value;
    return (left > right) - (left < right);
}

/* The keys of members that hold tensors; of several that have one dict, one. So each dict is looked through once, however many
 * members have it. */
static int members_with_tensors(TorchFile *file, const PickleValue *root, const PickleItem ***found) {
    VEC(const PickleItem *) keys = {0};
    int count = 0;
    for (const PickleItem *key = root->first; key; key = key->next->next)
        if (key->next->value->kind == PICKLE_DICT)
            VEC_PUSH(file->arena, &keys, key);
    if (keys.count)
        qsort((void *)keys.at, (size_t)keys.count, sizeof *keys.at, by_value);
    for (int i = 0; i < keys.count; i++)
        if ((i == 0 || keys.at[i]->next->value != keys.at[i - 1]->next->value) &&
            holds_tensors(keys.at[i]->next->value))
            keys.at[count++] = keys.at[i];
    *found = keys.at;
    return count;
}

/* The file's own tensors, or those of the only member that has some. */
static int find_weights(MtcFault *fault, TorchFile *file, const PickleValue *root, const PickleValue **dict) {
    const PickleItem **keys;
    const int found = holds_tensors(root) ? 0 : members_with_tensors(file, root, &keys);
    *dict = found ? keys[0]->next->value : root;
    if (holds_tensors(root) || found == 1) {
        file->key = found ? text_of(file, keys[0]->value) : NULL;
        return 0;
    }
    mtc_fail(fault, MTC_BAD_DATA,
             found ? "%s: several of its members hold tensors: --key says which" : "%s: holds no tensors", file->path);
    note_members(fault, file, root);
    if (!found && root->outside)
        mtc_note(fault, weights_alone);
    return fault->code;
}

static void note_other(TorchFile *file, const char *name, const PickleItem *key) {
    if (file->others.count <= TORCH_MOST_OTHERS)
        VEC_PUSH(file->arena, &file->others,
                 arena_printf(file->arena, "%s (%s)", name ? name : pickle_kind(file->arena, key->value),
                              pickle_kind(file->arena, key->next->value)));
}

static int read_tensors(MtcFault *fault, TorchFile *file, const PickleValue *dict) {
    for (const PickleItem *key = dict->first; key; key = key->next->next) {
        const PickleValue *call = unwrapped(key->next->value);
        const char *name = text_of(file, key->value);
        if (!call && is_unknown_tensor(key->next->value))
            return unknown_tensor(fault, file, name, key->next->value);
        if (!call) {
            note_other(file, name, key);
            continue;
        }
        if (!name)
            return mtc_fail(fault, MTC_BAD_DATA,
                            "%s: a tensor has no name: its key is %s, and is to be a str of UTF-8 that no other has",
                            file->path, pickle_kind(file->arena, key->value));
        TorchTensor tensor = {.name = name};
        int code = read_rebuilt(fault, file, call, &tensor);
        if (code)
            return code;
        VEC_PUSH(file->arena, &file->tensors, tensor);
    }
    return 0;
}

/* Views that repeat elements, and storages that are packed, can promise any size: a file of weights does not grow far beyond its own. */
static int check_growth(MtcFault *fault, const TorchFile *file) {
    const uint64_t most = 8 * (uint64_t)file->file.size + ((uint64_t)1 << 30);
    uint64_t size = 0;
    for (int i = 0; i < file->tensors.count; i++) {
        const TorchTensor *tensor = &file->tensors.at[i];
        size += tensor->size;
        if (size > most || (uint64_t)tensor->stored > most / tensor->element)
            return mtc_fail(
                fault, MTC_BAD_DATA,
                "%s: has %s, and its tensors would be more than %s: they repeat what is stored, or it is packed; "
                "save x.contiguous() of those that are needed",
                file->path, mtc_bytes((double)file->file.size), mtc_bytes((double)most));
    }
    return 0;
}

/* ---- the file ---- */

static int other_file(MtcFault *fault, const TorchFile *file) {
    const MtcMapped *mapped = &file->file;
    const char *format = mtc_other_weights(mapped->bytes, mapped->size);
    if (mapped->size > 9 && memcmp(mapped->bytes + 6, "\0\0{\"", 4) == 0)
        return mtc_fail(fault, MTC_BAD_DATA, "%s: is a safetensors file already", file->path);
    const bool tar = mapped->size > 262 && memcmp(mapped->bytes + 257, "ustar", 5) == 0;
    mtc_fail(fault, MTC_BAD_DATA, "%s: is not a file of torch.save%s%s", file->path, tar || format ? ", but " : "",
             tar      ? "a tar archive, as PyTorch wrote before 0.1.10"
             : format ? format
                      : "");
    if (tar || (mapped->size && mapped->bytes[0] == 0x80))
        mtc_note(fault,
                 "with PyTorch 1.6 or later: torch.save(torch.load(\"old.pt\", map_location=\"cpu\"), \"new.pt\")");
    return fault->code;
}

static bool has_member(const TorchFile *file, const char *name) {
    return mtc_zip_has(file->zip, arena_printf(file->arena, "%s%s", file->folder, name));
}

/* The folder that the archive's members are in is called like the file that was written. */
static int find_folder(MtcFault *fault, TorchFile *file) {
    static const char pickle[] = "data.pkl";
    const char *name;
    for (int i = 0; (name = mtc_zip_name(file->zip, i)); i++) {
        const size_t length = strlen(name), ending = sizeof pickle - 1;
        if (length > ending && name[length - ending - 1] == '/' && strcmp(name + length - ending, pickle) == 0 &&
            strchr(name, '/') == name + length - ending - 1)
            file->folder = arena_strndup(file->arena, name, length - ending);
    }
    if (!file->folder)
        return mtc_fail(fault, MTC_BAD_DATA, "%s: is a zip archive, but not one of torch.save: it has no data.pkl",
                        file->path);
    if (has_member(file, "constants.pkl")) {
        mtc_fail(fault, MTC_BAD_DATA, "%s: is a program of TorchScript, as torch.jit.save writes it", file->path);
        mtc_note(fault, "its weights: torch.save(torch.jit.load(\"old.pt\").state_dict(), \"new.pt\")");
    }
    return fault->code;
}

/* A member of at most so many bytes. */
static int read_small(MtcFault *fault, const TorchFile *file, const char *name, size_t most, uint8_t **bytes,
                      size_t *size) {
    const char *path = arena_printf(file->arena, "%s%s", file->folder, name);
    if (mtc_zip_size(file->zip, path, size) && *size > most)
        return mtc_fail(fault, MTC_BAD_DATA, "%s: %s has %s, and needs %s at most", file->path, mtc_harmless(path),
                        mtc_bytes((double)*size), mtc_bytes((double)most));
    return mtc_zip_read(fault, file->zip, path, bytes, size);
}

static int check_byte_order(MtcFault *fault, const TorchFile *file) {
    uint8_t *bytes;
    size_t size;
    if (!has_member(file, "byteorder")) /* older versions write none */
        return 0;
    int code = read_small(fault, file, "byteorder", 64, &bytes, &size);
    if (code)
        return code;
    if (size != 6 || memcmp(bytes, "little", size) != 0)
        code = mtc_fail(
            fault, MTC_BAD_DATA,
            "%s: was written on a machine whose numbers begin with the highest byte; write it again on another",
            file->path);
    free(bytes);
    return code;
}

static int read_description(MtcFault *fault, TorchFile *file, const uint8_t *bytes, size_t size) {
    const char *where = arena_printf(file->arena, "%s: %sdata.pkl", file->path, mtc_harmless(file->folder));
    const PickleValue *root, *dict = NULL;
    file->names = 4 * size;
    int code = pickle_read(fault, file->arena, where, bytes, size, globals, GLOBALS, &root);
    if (!code && root->kind != PICKLE_DICT)
        code = mtc_fail(fault, MTC_BAD_DATA, "%s: holds %s, not tensors by their names", file->path,
                        pickle_kind(file->arena, root));
    if (code) {
        mtc_note(fault, weights_alone);
        return code;
    }
    code = file->key ? find_by_key(fault, file, root, &dict) : find_weights(fault, file, root, &dict);
    if (!code)
        code = read_tensors(fault, file, dict);
    return code ? code : check_growth(fault, file);
}

/* The first place of each tensor's storage, so that whoever shares one comes behind it. */
typedef struct Placed {
    TorchTensor tensor;
    int place, first;
} Placed;

static int by_storage(const void *a, const void *b) {
    const Placed *x = a, *y = b;
    const int order = strcmp(x->tensor.member, y->tensor.member);
    return order ? order : (x->place > y->place) - (x->place < y->place);
}

static int by_place(const void *a, const void *b) {
    const Placed *x = a, *y = b;
    const int order = (x->first > y->first) - (x->first < y->first);
    return order ? order : (x->place > y->place) - (x->place < y->place);
}

static void gather_shared(TorchFile *file) {
    const int count = file->tensors.count;
    Placed *placed = NEW_ARRAY(file->arena, Placed, count + 1);
    for (int i = 0; i < count; i++)
        placed[i] = (Placed){file->tensors.at[i], i, i};
    qsort(placed, (size_t)count, sizeof *placed, by_storage);
    for (int i = 1; i < count; i++)
        if (strcmp(placed[i].tensor.member, placed[i - 1].tensor.member) == 0)
            placed[i].first = placed[i - 1].first;
    qsort(placed, (size_t)count, sizeof *placed, by_place);
    for (int i = 0; i < count; i++)
        file->tensors.at[i] = placed[i].tensor;
}

static int read_archive(MtcFault *fault, TorchFile *file) {
    uint8_t *bytes;
    size_t size;
    int code = find_folder(fault, file);
    if (!code)
        code = check_byte_order(fault, file);
    if (!code)
        code = read_small(fault, file, "data.pkl", PICKLE_MOST_BYTES, &bytes, &size);
    if (code)
        return code;
    code = read_description(fault, file, bytes, size);
    free(bytes);
    if (!code)
        gather_shared(file);
    return code;
}

int torch_open(MtcFault *fault, Arena *arena, const char *path, const char *key, TorchFile *file) {
    *file = (TorchFile){.path = path, .arena = arena, .key = key};
    int code = mtc_map_file(fault, path, &file->file);
    if (code)
        return code;
    if (file->file.size < 4 || memcmp(file->file.bytes, "PK\3\4", 4) != 0)
        return other_file(fault, file);
    code = mtc_zip_memory(fault, path, file->file.bytes, file->file.size, &file->zip);
    return code ? code : read_archive(fault, file);
}

void torch_close(TorchFile *file) {
    if (file->zip)
        mtc_zip_close(file->zip);
    if (file->file.bytes)
        mtc_unmap_file(&file->file);
}

/* ---- elements ---- */

/* How many of the last axes lie without gaps, and how many elements those are. */
static int run_axes(const TorchTensor *tensor, int64_t *run) {
    int axis = tensor->rank;
    *run = 1;
    while (axis > 0 && (tensor->stride[axis - 1] == *run || tensor->dim[axis - 1] == 1))
        *run *= tensor->dim[--axis];
    return axis;
}

static int write_tensor(MtcFault *fault, const TorchTensor *tensor, const uint8_t *storage, MtcArchiveWriter *writer) {
    enum { BUFFER = 1 << 16 };
    uint8_t buffer[BUFFER];
    int64_t index[8] = {0}, at = tensor->from, run;
    const int axes = run_axes(tensor, &run);
    const size_t bytes = (size_t)run * tensor->element;
    size_t used = 0;
    int code = 0;
    for (size_t done = 0; done < tensor->size && !code; done += bytes) {
        const uint8_t *from = storage + (size_t)at * tensor->element;
        if (bytes > BUFFER / 2) {
            code = mtc_archive_add(fault, writer, from, bytes);
        } else {
            memcpy(buffer + used, from, bytes);
            used += bytes;
        }
        if (used > BUFFER / 2) {
            code = mtc_archive_add(fault, writer, buffer, used);
            used = 0;
        }
        mtc_next_element(axes, tensor->dim, tensor->stride, index, &at);
    }
    return code || !used ? code : mtc_archive_add(fault, writer, buffer, used);
}

int torch_write(MtcFault *fault, const TorchFile *file, MtcArchiveWriter *writer) {
    uint8_t *storage = NULL;
    const char *member = NULL;
    size_t size;
    int code = 0;
    for (int i = 0; i < file->tensors.count && !code; i++) {
        const TorchTensor *tensor = &file->tensors.at[i];
        if (!member || strcmp(member, tensor->member) != 0) {
            free(storage);
            storage = NULL;
            member = tensor->member;
            code = mtc_zip_read(fault, file->zip, member, &storage, &size);
        }
        if (!code)
            code = write_tensor(fault, tensor, storage, writer);
        else
            storage = NULL;
    }
    free(storage);
    return code;
}
