#include "windows.h"

#include "vocabulary.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void mtc_token_row_free(MtcTokenRow *row) {
    free(row->path);
    free(row->text);
    free(row->token);
    memset(row, 0, sizeof *row);
}

bool mtc_is_windows(const MtcOrigin *origin) {
    return origin->stride > 0;
}

const MtcOrigin *mtc_windows_origin(const MtcModel *model) {
    const MtcSplit *split = mtc_split(model, "train");
    const MtcOrigin *origin = split ? &model->origin[split->origin] : NULL;
    return origin && mtc_is_windows(origin) ? origin : NULL;
}

const MtcField *mtc_window_field(const MtcModel *model) {
    int f = 0;
    while (!model->field[f].windows)
        f++;
    return &model->field[f];
}

/* ---- files of tokens ---- */

/* 256 numbers of 32 bits, the first of them magic, version and the number of tokens; llm.c writes both kinds. */
enum { TOKEN_HEADER_BYTES = 1024, TOKEN_HEADER_NUMBERS = 3 };
typedef struct TokenFormat {
    uint32_t magic, version;
    size_t width; /* bytes of a token */
} TokenFormat;
static const TokenFormat token_formats[] = {{20240520, 1, 2}, {20240801, 7, 4}};

static uint32_t read_little_endian(const uint8_t *bytes, size_t width) {
    uint32_t value = 0;
    for (size_t i = 0; i < width; i++)
        value |= (uint32_t)bytes[i] << 8 * i;
    return value;
}

static const TokenFormat *token_format_of(uint32_t magic) {
    for (size_t i = 0; i < sizeof token_formats / sizeof *token_formats; i++)
        if (token_formats[i].magic == magic)
            return &token_formats[i];
    return NULL;
}

/* Three numbers, the second a small one, then zeros: no text begins so. */
static bool looks_like_token_header(const uint8_t *bytes, size_t size) {
    if (size < TOKEN_HEADER_BYTES || read_little_endian(bytes, 4) <= UINT16_MAX ||
        read_little_endian(bytes + 4, 4) > UINT8_MAX)
        return false;
    for (size_t i = 4 * TOKEN_HEADER_NUMBERS; i < TOKEN_HEADER_BYTES; i++)
        if (bytes[i])
            return false;
    return true;
}

static int check_token_header(MtcFault *fault, const char *path, const TokenFormat *format, const uint8_t *bytes,
                              size_t size) {
    if (size < TOKEN_HEADER_BYTES)
        return mtc_fail(fault, MTC_BAD_DATA, "%s: is cut off: its header has %d bytes, found %zu", path,
                        TOKEN_HEADER_BYTES, size);
    const uint32_t version = read_little_endian(bytes + 4, 4), count = read_little_endian(bytes + 8, 4);
    if (version != format->version)
        return mtc_fail(fault, MTC_BAD_DATA, "%s: tokens with the magic %u have version %u, found %u", path,
                        format->magic, format->version, version);
    const size_t promised = (size_t)count * format->width, found = size - TOKEN_HEADER_BYTES;
    if (promised != found)
        return mtc_fail(fault, MTC_BAD_DATA, "%s: %s its header promises %u tokens, %zu bytes behind it, found %zu",
                        path, found < promised ? "is cut off:" : "is too long:", count, promised, found);
    return 0;
}

/* Tokens of 32 bits read as those of 16: every second number is the upper half of a class, 0 below 65536 classes. */
static bool looks_wide(const MtcField *field, const uint8_t *bytes, size_t size) {
    enum { PAIR = 4, LEAST = 128, MOST = 65536 };
    const size_t pairs = size / PAIR < MOST ? size / PAIR : MOST;
    const uint32_t largest = (uint32_t)(field->classes - 1) >> 16;
    uint32_t lower = 0;
    if (size % PAIR || pairs < LEAST)
        return false;
    for (size_t i = 0; i < pairs; i++) {
        lower |= read_little_endian(bytes + PAIR * i, 2);
        if (read_little_endian(bytes + PAIR * i + 2, 2) > largest)
            return false;
    }
    return lower > largest; /* else neither half of them says anything */
}

/* Where the tokens begin and how wide they are; without a header, 16 bits. */
static int token_layout(MtcFault *fault, const MtcField *field, const char *path, const uint8_t *bytes, size_t size,
                        size_t *begin, size_t *width) {
    const TokenFormat *format = size >= 4 ? token_format_of(read_little_endian(bytes, 4)) : NULL;
    *begin = format ? TOKEN_HEADER_BYTES : 0;
    *width = format ? format->width : sizeof(uint16_t);
    if (format)
        return check_token_header(fault, path, format, bytes, size);
    if (looks_like_token_header(bytes, size))
        return mtc_fail(fault, MTC_BAD_DATA,
                        "%s: its header has the magic %u: expected %u (tokens of 16 bits) or %u (of 32)", path,
                        read_little_endian(bytes, 4), token_formats[0].magic, token_formats[1].magic);
    if (size % sizeof(uint16_t))
        return mtc_fail(fault, MTC_BAD_DATA, "%s: has %zu bytes: without a header tokens have two each", path, size);
    if (looks_wide(field, bytes, size)) {
        mtc_fail(
            fault, MTC_BAD_DATA,
            "%s: every second number of 16 bits is %s: these look like tokens of 32 or 64 bits, and without a header "
            "tokens have 16",
            path, field->classes > UINT16_MAX + 1 ? "tiny" : "0");
        mtc_note(fault, "write 16 bits (NumPy: '<u2'), or 32 behind the header that has the magic %u",
                 token_formats[1].magic);
        return fault->code;
    }
    return 0;
}

int mtc_parse_tokens(MtcFault *fault, const MtcField *field, const char *path, const uint8_t *bytes, size_t size,
                     void **token, int64_t *count) {
    size_t begin, width;
    if (token_layout(fault, field, path, bytes, size, &begin, &width))
        return fault->code;
    *count = (int64_t)((size - begin) / width);
    *token = malloc((size_t)*count * mtc_type_size(field->type) + 1);
    if (!*token)
        return mtc_no_memory(fault, (size_t)*count * mtc_type_size(field->type), path);
    for (int64_t i = 0; i < *count; i++) {
        const uint32_t value = read_little_endian(bytes + begin + (size_t)i * width, width);
        if (value >= (uint32_t)field->classes) {
            free(*token);
            *token = NULL;
            return mtc_fail(fault, MTC_BAD_DATA,
                            "%s: token %lld, counted from 0, is %u; field '%s' is class[%d][%lld], so expected 0 to %d",
                            path, (long long)i, value, field->name, field->classes, (long long)field->elements,
                            field->classes - 1);
        }
        mtc_put_class(field, *token, i, value);
    }
    return 0;
}

/* ---- rows of tokens ---- */

int mtc_token_row_read(MtcFault *fault, const MtcModel *model, const MtcOrigin *origin, const char *path,
                       MtcTokenRow *row) {
    uint8_t *bytes;
    size_t size;
    memset(row, 0, sizeof *row);
    int code = mtc_read_file(fault, path, &bytes, &size);
    if (code)
        return code;
    row->path = strdup(path);
    if (strcmp(origin->format, "characters") == 0) {
        row->text = bytes;
        row->size = size;
    } else if (strcmp(origin->format, "bytes") == 0) {
        row->token = bytes;
        row->count = (int64_t)size;
    } else {
        code = mtc_parse_tokens(fault, mtc_window_field(model), path, bytes, size, &row->token, &row->count);
        free(bytes);
    }
    if (code)
        mtc_token_row_free(row);
    return code;
}

int mtc_token_row_encode(MtcFault *fault, const MtcModel *model, const MtcEncoding *encoding, MtcTokenRow *row) {
    MtcVocabulary vocabulary;
    int code = mtc_vocabulary_of(fault, model, encoding, &vocabulary);
    if (!code && row->text) {
        code = mtc_encode_characters(fault, mtc_window_field(model), &vocabulary, row->path, (const char *)row->text,
                                     row->size, &row->token, &row->count);
        free(row->text);
        row->text = NULL;
    }
    return code;
}

static int too_short(MtcFault *fault, const MtcField *field, const MtcOrigin *origin, const MtcSplit *split,
                     const MtcTokenRow *row, int64_t count) {
    MtcText part = {NULL, 0, 0};
    if (count < row->count)
        mtc_text_add(&part, "'%s', %.6g%% of %lld %s, ", split->name, 100 * (split->to - split->from),
                     (long long)row->count, origin->format);
    mtc_fail(fault, MTC_BAD_DATA, "%s: %shas %lld %s, and a window of '%s' has %lld", row->path, part.at ? part.at : "",
             (long long)count, origin->format, field->name, (long long)field->elements);
    free(part.at);
    return fault->code;
}

int mtc_token_row_part(MtcFault *fault, const MtcModel *model, const MtcOrigin *origin, const MtcSplit *split,
                       bool last, MtcTokenRow *row, MtcExamples *examples) {
    const MtcField *field = mtc_window_field(model);
    const size_t size = mtc_type_size(field->type);
    const int64_t begin = split ? llround(split->from * (double)row->count) : 0;
    const int64_t end = split ? llround(split->to * (double)row->count) : row->count, count = end - begin;
    memset(examples, 0, sizeof *examples);
    if (count < field->elements)
        return too_short(fault, field, origin, split, row, count);
    void **values = &examples->field[field - model->field];
    if (last && count == row->count) {
        *values = row->token;
        row->token = NULL;
    } else {
        *values = mtc_memory(NULL, (size_t)count * size);
        memcpy(*values, (const char *)row->token + (size_t)begin * size, (size_t)count * size);
    }
    examples->stride = origin->stride;
    examples->count = (count - field->elements) / origin->stride + 1;
    return 0;
}

void mtc_windows_apart(const MtcModel *model, MtcExamples *examples) {
    const MtcField *field = mtc_window_field(model);
    const size_t size = mtc_example_bytes(field), step = (size_t)examples->stride * mtc_type_size(field->type);
    void **values = &examples->field[field - model->field];
    char *apart = (char *)mtc_memory(NULL, (size_t)examples->count * size);
    for (int64_t i = 0; i < examples->count; i++)
        memcpy(apart + (size_t)i * size, (const char *)*values + (size_t)i * step, size);
    free(*values);
    *values = apart;
    examples->stride = 0;
}
