#include "base/safetensors.h"

#include "base/hash.h"
#include "base/parallel.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const uint64_t MAX_HEADER = 100000000; /* what the format's own readers accept */

/* ---- reading ---- */

static const struct {
    const char *name;
    size_t size;
} dtypes[] = {{"F64", 8}, {"F32", 4}, {"F16", 2}, {"BF16", 2}, {"F8_E4M3", 1}, {"F8_E5M2", 1}, {"I64", 8}, {"I32", 4},
              {"I16", 2}, {"I8", 1},  {"U64", 8}, {"U32", 4},  {"U16", 2},     {"U8", 1},      {"BOOL", 1}};

static size_t dtype_size(const char *name) {
    for (size_t i = 0; i < sizeof dtypes / sizeof dtypes[0]; i++)
        if (strcmp(dtypes[i].name, name) == 0)
            return dtypes[i].size;
    return 0;
}

static int bad_tensor(MtcFault *fault, const char *path, const char *name, const char *what) {
    return mtc_fail(fault, MTC_BAD_DATA, "%s: tensor '%s': %s", path, name, what);
}

/* Sizes whose product fits: the tensor's bytes are at most the file's. */
static int parse_shape(MtcFault *fault, const char *path, const MtcJson *shape, size_t limit, MtcBlob *blob) {
    uint64_t elements = 1;
    bool empty = false;
    if (!shape || shape->kind != MTC_JSON_ARRAY)
        return bad_tensor(fault, path, blob->name, "has no \"shape\"");
    for (const MtcJson *size = shape->first; size; size = size->next) {
        if (size->kind != MTC_JSON_NUMBER || !size->is_integer || size->integer < 0)
            return bad_tensor(fault, path, blob->name, "its \"shape\" has an item that is no size");
        if (blob->rank == 8)
            return bad_tensor(fault, path, blob->name, "has more than 8 dimensions");
        blob->dim[blob->rank++] = size->integer;
        empty |= size->integer == 0;
        if (!empty && (uint64_t)size->integer > limit / elements)
            return bad_tensor(fault, path, blob->name, "its \"shape\" is larger than the file");
        elements *= empty ? 1 : (uint64_t)size->integer;
    }
    blob->size = empty ? 0 : (size_t)elements * dtype_size(blob->dtype);
    return 0;
}

static int parse_offsets(MtcFault *fault, const char *path, const MtcJson *offsets, const uint8_t *data, size_t size,
                         MtcBlob *blob) {
    const MtcJson *begin = offsets && offsets->kind == MTC_JSON_ARRAY ? offsets->first : NULL;
    const MtcJson *end = begin ? begin->next : NULL;
    if (!end || end->next || !begin->is_integer || !end->is_integer || begin->integer < 0 ||
        end->integer < begin->integer)
        return bad_tensor(fault, path, blob->name, "its \"data_offsets\" are not two positions [begin, end]");
    if ((uint64_t)end->integer > size)
        return mtc_fail(fault, MTC_BAD_DATA, "%s: is cut off: tensor '%s' ends at byte %lld of the data, which has %zu",
                        path, blob->name, (long long)end->integer, size);
    if ((uint64_t)(end->integer - begin->integer) != blob->size)
        return mtc_fail(fault, MTC_BAD_DATA,
                        "%s: tensor '%s': %s of type %s needs %zu bytes, but its \"data_offsets\" span %lld", path,
                        blob->name, mtc_shape(blob->rank, blob->dim), blob->dtype, blob->size,
                        (long long)(end->integer - begin->integer));
    blob->bytes = data + begin->integer;
    return 0;
}

static int parse_tensor(MtcFault *fault, const char *path, const MtcJson *entry, const uint8_t *data, size_t size,
                        MtcBlob *blob) {
    const MtcJson *dtype = mtc_json_member(entry, "dtype");
    blob->name = entry->key;
    if (entry->kind != MTC_JSON_OBJECT)
        return bad_tensor(fault, path, blob->name, "is not described by an object");
    if (!dtype || dtype->kind != MTC_JSON_STRING || dtype_size(dtype->string) == 0)
        return bad_tensor(fault, path, blob->name, "has no \"dtype\" of the format (F32, F64, I32, ...)");
    blob->dtype = dtype->string;
    int code = parse_shape(fault, path, mtc_json_member(entry, "shape"), size, blob);
    return code ? code : parse_offsets(fault, path, mtc_json_member(entry, "data_offsets"), data, size, blob);
}

static int compare_blobs(const void *a, const void *b) {
    const MtcBlob *x = (const MtcBlob *)a, *y = (const MtcBlob *)b;
    if (x->bytes != y->bytes)
        return (const uint8_t *)x->bytes < (const uint8_t *)y->bytes ? -1 : 1;
    return (x->size > y->size) - (x->size < y->size);
}

/* The tensors fill the data exactly: nothing overlaps, nothing is left over. */
static int check_layout(MtcFault *fault, const char *path, const MtcArchive *archive, const uint8_t *data,
                        size_t size) {
    const uint8_t *at = data;
    for (int i = 0; i < archive->count; i++) {
        const MtcBlob *blob = &archive->blob[i];
        if ((const uint8_t *)blob->bytes < at)
            return mtc_fail(fault, MTC_BAD_DATA, "%s: tensors '%s' and '%s' overlap", path, archive->blob[i - 1].name,
                            blob->name);
        if ((const uint8_t *)blob->bytes > at)
            return mtc_fail(fault, MTC_BAD_DATA, "%s: %lld bytes before tensor '%s' belong to no tensor", path,
                            (long long)((const uint8_t *)blob->bytes - at), blob->name);
        at += blob->size;
    }
    if (at != data + size)
        return mtc_fail(fault, MTC_BAD_DATA, "%s: %lld bytes at its end belong to no tensor", path,
                        (long long)(data + size - at));
    return 0;
}

static int parse_entries(MtcFault *fault, const char *path, const uint8_t *data, size_t size, MtcArchive *archive) {
    const MtcJson *root = mtc_json_root(archive->header);
    int entries = 0;
    if (root->kind != MTC_JSON_OBJECT)
        return mtc_fail(fault, MTC_BAD_DATA, "%s: its header is not a JSON object", path);
    for (const MtcJson *entry = root->first; entry; entry = entry->next)
        entries++;
    archive->blob = (MtcBlob *)calloc((size_t)entries + 1, sizeof *archive->blob);
    if (!archive->blob)
        return mtc_no_memory(fault, (size_t)entries * sizeof *archive->blob, path);
    for (const MtcJson *entry = root->first; entry; entry = entry->next) {
        if (strcmp(entry->key, "__metadata__") == 0)
            continue;
        int code = parse_tensor(fault, path, entry, data, size, &archive->blob[archive->count]);
        if (code)
            return code;
        archive->count++;
    }
    qsort(archive->blob, (size_t)archive->count, sizeof *archive->blob, compare_blobs);
    return check_layout(fault, path, archive, data, size);
}

/* ---- the checksum ----
 *
 * Sixteen hexadecimal digits in the metadata, of every byte of the file, with zeros in place of the digits. */

static const char CHECKSUM_KEY[] = "\"" MTC_CHECKSUM "\":\"", CHECKSUM_NONE[] = MTC_NO_CHECKSUM;
enum { CHECKSUM_DIGITS = sizeof MTC_NO_CHECKSUM - 1 };

/* Where the digits are in a header, before it is parsed; NULL: none. A string in the JSON cannot hold the key, for its
 * quotes would be escaped. */
static const char *find_checksum(const char *header, size_t length) {
    const size_t key = sizeof CHECKSUM_KEY - 1;
    for (size_t i = 0; i + key + CHECKSUM_DIGITS <= length; i++)
        if (header[i] == '"' && memcmp(header + i, CHECKSUM_KEY, key) == 0)
            return header + i + key;
    return NULL;
}

/* `header` includes the eight bytes of its length. */
static void begin_checksum(MtcHash *hash, const char *header, size_t length, const char *digits) {
    size_t before = (size_t)(digits - header), after = before + CHECKSUM_DIGITS;
    mtc_hash_begin(hash);
    mtc_hash_add(hash, header, before);
    mtc_hash_add(hash, CHECKSUM_NONE, CHECKSUM_DIGITS);
    mtc_hash_add(hash, header + after, length - after);
}

static void format_checksum(MtcHash *hash, char digits[CHECKSUM_DIGITS + 1]) {
    snprintf(digits, CHECKSUM_DIGITS + 1, "%016llx", (unsigned long long)mtc_hash_end(hash));
}

/* Of a file whose header, the eight bytes included, ends at `header`. */
static bool checksum_matches(const uint8_t *bytes, size_t size, size_t header) {
    const char *digits = find_checksum((const char *)bytes, header);
    char expected[CHECKSUM_DIGITS + 1];
    MtcHash hash;
    if (!digits)
        return true;
    mtc_touch_memory(bytes, size);
    begin_checksum(&hash, (const char *)bytes, header, digits);
    mtc_hash_add(&hash, bytes + header, size - header);
    format_checksum(&hash, expected);
    return memcmp(expected, digits, CHECKSUM_DIGITS) == 0;
}

/* Its first field is the version of the format, a small number. */
bool mtc_is_onnx(const uint8_t *bytes, size_t size) {
    return size >= 2 && bytes[0] == 8 && bytes[1] > 0 && bytes[1] < 128;
}

const char *mtc_other_weights(const uint8_t *bytes, size_t size) {
    static const struct {
        const char *magic, *name;
    } formats[] = {{"PK\3\4", "a zip archive, as torch.save writes it (.pt, .pth)"},
                   {"\x80\2", "a Python pickle, as older versions of torch.save write it (.pt, .pth)"},
                   {"\x80\3", "a Python pickle"},
                   {"\x80\4", "a Python pickle"},
                   {"\x80\5", "a Python pickle"},
                   {"\x89HDF\r\n\x1a\n", "an HDF5 file, as Keras writes it (.h5)"},
                   {"\x93NUMPY", "an array of NumPy (.npy)"},
                   {"GGUF", "a GGUF file"}};
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (size >= strlen(formats[i].magic) && memcmp(bytes, formats[i].magic, strlen(formats[i].magic)) == 0)
            return formats[i].name;
    return mtc_is_onnx(bytes, size) ? "a network of ONNX (.onnx)" : NULL;
}

static int no_safetensors(MtcFault *fault, const char *path, const uint8_t *bytes, size_t size) {
    mtc_fail(fault, MTC_BAD_DATA, "%s: is not a safetensors file, but %s", path, mtc_other_weights(bytes, size));
    if (bytes[0] == 'P')
        mtc_note(fault, "mtc weights %s -o x.safetensors makes one of it", path);
    else if (mtc_is_onnx(bytes, size))
        mtc_note(fault, "mtc import %s -o x.mt writes a model of it, and beside that its weights, x.safetensors", path);
    else
        mtc_note(fault, "from PyTorch: safetensors.torch.save_file(model.state_dict(), \"x.safetensors\")");
    return fault->code;
}

/* How long the header is, by the eight bytes before it. */
static int parse_length(MtcFault *fault, const char *path, const uint8_t *bytes, size_t size, uint64_t *result) {
    uint64_t length = 0;
    if (size < 8)
        return mtc_fail(
            fault, MTC_BAD_DATA,
            "%s: is not a safetensors file: it has %zu bytes, fewer than the 8 that say how long its header is", path,
            size);
    for (int i = 0; i < 8; i++)
        length |= (uint64_t)bytes[i] << 8 * i;
    if (length > MAX_HEADER && mtc_other_weights(bytes, size))
        return no_safetensors(fault, path, bytes, size);
    if (length > MAX_HEADER)
        return mtc_fail(
            fault, MTC_BAD_DATA,
            "%s: is not a safetensors file: its first 8 bytes promise a header of %llu bytes; at most %llu are allowed",
            path, (unsigned long long)length, (unsigned long long)MAX_HEADER);
    if (length > size - 8)
        return mtc_fail(fault, MTC_BAD_DATA, "%s: is cut off: its header has %llu bytes, but the file ends after %zu",
                        path, (unsigned long long)length, size - 8);
    *result = length;
    return 0;
}

/* Parsing changes the header's text: it is a copy. */
static int parse_header(MtcFault *fault, const char *path, const uint8_t *bytes, size_t length, MtcArchive *archive) {
    archive->text = (char *)malloc(length + 1);
    if (!archive->text)
        return mtc_no_memory(fault, length, path);
    memcpy(archive->text, bytes + 8, length);
    int code = mtc_json_read(fault, path, archive->text, length, &archive->header);
    if (code)
        archive->header = NULL;
    return code;
}

int mtc_archive_parse(MtcFault *fault, const char *path, const uint8_t *bytes, size_t size, MtcArchive *archive) {
    uint64_t length = 0;
    memset(archive, 0, sizeof *archive);
    int code = parse_length(fault, path, bytes, size, &length);
    if (code)
        return code;
    const size_t header = 8 + (size_t)length;
    code = parse_header(fault, path, bytes, (size_t)length, archive);
    if (!code)
        code = parse_entries(fault, path, bytes + header, size - header, archive);
    if (!code && !checksum_matches(bytes, size, header))
        code = mtc_fail(fault, MTC_BAD_DATA, "%s: is damaged: its bytes do not give the checksum that it holds", path);
    if (code)
        mtc_archive_free(archive);
    return code;
}

const char *mtc_archive_metadata(const MtcArchive *archive, const char *key) {
    const MtcJson *metadata = mtc_json_member(mtc_json_root(archive->header), "__metadata__");
    const MtcJson *value = metadata && metadata->kind == MTC_JSON_OBJECT ? mtc_json_member(metadata, key) : NULL;
    return value && value->kind == MTC_JSON_STRING ? value->string : NULL;
}

int mtc_archive_read(MtcFault *fault, const char *path, MtcArchive *archive) {
    MtcMapped file;
    int code = mtc_map_file(fault, path, &file);
    if (code)
        return code;
    code = mtc_archive_parse(fault, path, file.bytes, file.size, archive);
    if (code)
        mtc_unmap_file(&file);
    else
        archive->file = file;
    return code;
}

int mtc_archive_unchanged(MtcFault *fault, const char *path, const MtcArchive *archive) {
    const bool same = !archive->file.bytes || mtc_mapped_is_same(&archive->file);
    return same ? 0 : mtc_fail(fault, MTC_NO_INPUT, "%s: was changed while it was read", path);
}

void mtc_archive_free(MtcArchive *archive) {
    mtc_json_free(archive->header);
    free(archive->blob);
    free(archive->text);
    if (archive->file.bytes)
        mtc_unmap_file(&archive->file);
    memset(archive, 0, sizeof *archive);
}

const MtcBlob *mtc_archive_find(const MtcArchive *archive, const char *name) {
    for (int i = 0; i < archive->count; i++)
        if (strcmp(archive->blob[i].name, name) == 0)
            return &archive->blob[i];
    return NULL;
}

const MtcBlob *mtc_archive_find_average(const MtcArchive *archive, const char *name) {
    static const char ending[] = ".ema";
    const MtcBlob *found = mtc_archive_find(archive, name);
    for (int i = 0; i < archive->count && !found; i++) {
        const char *weight = archive->blob[i].name;
        const size_t length = strlen(weight);
        if (strncmp(name, weight, length) == 0 && strcmp(name + length, ending) == 0)
            found = &archive->blob[i];
    }
    return found;
}

/* ---- writing ---- */

const char *mtc_dtype(MtcType type) {
    static const char *const names[] = {"F32", "I32", "U8", "BOOL", "F64", "BF16", "U16", "F16", "I8", "F8_E4M3"};
    return names[type];
}

bool mtc_has_floats(const MtcBlob *blob) {
    static const MtcType floats[] = {MTC_F32, MTC_F64, MTC_F16, MTC_BF16};
    for (size_t i = 0; i < sizeof floats / sizeof *floats; i++)
        if (strcmp(blob->dtype, mtc_dtype(floats[i])) == 0)
            return true;
    return false;
}

static void add_entry(MtcText *header, const MtcBlob *blob, size_t offset) {
    mtc_text_add(header, ",");
    mtc_text_json(header, blob->name);
    mtc_text_add(header, ":{\"dtype\":\"%s\",\"shape\":[", blob->dtype);
    for (int i = 0; i < blob->rank; i++)
        mtc_text_add(header, i ? ",%lld" : "%lld", (long long)blob->dim[i]);
    mtc_text_add(header, "],\"data_offsets\":[%zu,%zu]}", offset, offset + blob->size);
}

/* The header with its length before it, padded so that the data begin at a multiple of 64. */
static void make_header(MtcText *header, const char *metadata, const MtcBlob *blob, int count) {
    size_t offset = 0;
    mtc_text_add(header, "########{\"__metadata__\":%s", metadata);
    for (int i = 0; i < count; i++) {
        add_entry(header, &blob[i], offset);
        offset += blob[i].size;
    }
    mtc_text_add(header, "}");
    while (header->length % 64 != 0)
        mtc_text_add(header, " ");
    for (int i = 0; i < 8; i++)
        header->at[i] = (char)(uint8_t)((header->length - 8) >> 8 * i);
}

struct MtcArchiveWriter {
    MtcOutput *output; /* NULL: only the checksum is computed */
    MtcText header;
    char *digits; /* of the checksum in the header; NULL: it has none */
    MtcHash hash;
};

enum { ADDED_AT_ONCE = 1 << 20 }; /* written while the processor still has what the checksum has read */

int mtc_archive_add(MtcFault *fault, MtcArchiveWriter *writer, const void *bytes, size_t size) {
    const char *at = (const char *)bytes;
    int code = 0;
    for (size_t left = size, n; left && !code; left -= n, at += n) {
        n = left < ADDED_AT_ONCE ? left : ADDED_AT_ONCE;
        if (writer->digits)
            mtc_hash_add(&writer->hash, at, n);
        if (writer->output)
            code = mtc_output_write(fault, writer->output, at, n);
    }
    return code;
}

/* Everything behind the header; the checksum of all comes into the header's text. */
static int fill_archive(MtcArchiveWriter *writer, MtcArchiveFill *fill, void *user) {
    char checksum[CHECKSUM_DIGITS + 1];
    if (writer->digits)
        begin_checksum(&writer->hash, writer->header.at, writer->header.length, writer->digits);
    int code = fill(user, writer);
    if (writer->digits) {
        format_checksum(&writer->hash, checksum);
        memcpy(writer->digits, checksum, CHECKSUM_DIGITS);
    }
    return code;
}

/* A plain file gets its header twice, with the checksum when the rest is there. */
static int write_archive(MtcFault *fault, MtcArchiveWriter *writer, bool again, MtcArchiveFill *fill, void *user) {
    MtcOutput *output = writer->output;
    int code = 0;
    if (!again && writer->digits) {
        writer->output = NULL;
        code = fill_archive(writer, fill, user);
        writer->output = output;
    }
    if (!code)
        code = mtc_output_write(fault, output, writer->header.at, writer->header.length);
    if (!code)
        code = fill_archive(writer, fill, user);
    return code || !again ? code : mtc_output_rewrite(fault, output, writer->header.at, writer->header.length);
}

int mtc_archive_write(MtcFault *fault, const char *path, const char *base, const char *metadata, const MtcBlob *blob,
                      int count, MtcArchiveFill *fill, void *user) {
    MtcArchiveWriter writer;
    memset(&writer, 0, sizeof writer);
    make_header(&writer.header, metadata, blob, count); /* while no file is open: it may find no memory */
    const char *digits = find_checksum(writer.header.at, writer.header.length);
    writer.digits = digits ? writer.header.at + (digits - writer.header.at) : NULL;
    int code = (base ? mtc_output_open_own : mtc_output_open_as)(fault, path, base, &writer.output);
    if (!code) {
        code = write_archive(fault, &writer, !mtc_written_in_place(path), fill, user);
        if (code)
            mtc_output_discard(writer.output);
        else
            code = mtc_output_commit(fault, writer.output);
    }
    free(writer.header.at);
    return code;
}
