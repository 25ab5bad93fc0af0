#include "data/tokens.h"

#include <stdlib.h>
#include <string.h>

struct MtcTokens {
    int owners;
    const MtcField *field;
    char *path;
    MtcMapped mapped;
    size_t begin, width; /* bytes before the first token; of each */
    int64_t count;
};

/* ---- where they lie ---- */

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

static int find_layout(MtcFault *fault, bool bytes, MtcTokens *tokens) {
    const MtcMapped *mapped = &tokens->mapped;
    tokens->width = 1;
    if (!bytes &&
        token_layout(fault, tokens->field, tokens->path, mapped->bytes, mapped->size, &tokens->begin, &tokens->width))
        return fault->code;
    tokens->count = (int64_t)((mapped->size - tokens->begin) / tokens->width);
    return 0;
}

int mtc_tokens_new(MtcFault *fault, const MtcField *field, bool bytes, const char *path, MtcMapped *mapped,
                   MtcTokens **result) {
    MtcTokens *tokens = (MtcTokens *)mtc_zeroed(sizeof *tokens);
    tokens->owners = 1;
    tokens->field = field;
    tokens->path = strdup(path);
    tokens->mapped = *mapped;
    int code = find_layout(fault, bytes, tokens);
    if (code)
        mtc_tokens_free(tokens);
    else
        *result = tokens;
    return code;
}

int mtc_tokens_open(MtcFault *fault, const MtcField *field, bool bytes, const char *path, MtcTokens **result) {
    MtcMapped mapped;
    int code = mtc_map_file(fault, path, &mapped);
    return code ? code : mtc_tokens_new(fault, field, bytes, path, &mapped, result);
}

MtcTokens *mtc_tokens_share(MtcTokens *tokens) {
    tokens->owners++;
    return tokens;
}

void mtc_tokens_free(MtcTokens *tokens) {
    if (!tokens || --tokens->owners > 0)
        return;
    mtc_unmap_file(&tokens->mapped);
    free(tokens->path);
    free(tokens);
}

int64_t mtc_tokens_count(const MtcTokens *tokens) {
    return tokens->count;
}

/* ---- reading ---- */

/* In the field's type, up to the first that is no class of it; how many those are. */
static int64_t take_classes(const MtcField *field, const uint8_t *bytes, size_t width, int64_t count, void *values) {
    if (width == mtc_type_size(field->type) && !mtc_host_is_big_endian()) {
        memcpy(values, bytes, (size_t)count * width);
        return mtc_find_bad_class(field, values, count);
    }
    for (int64_t i = 0; i < count; i++) {
        const uint32_t value = read_little_endian(bytes + (size_t)i * width, width);
        if (value >= (uint32_t)field->classes)
            return i;
        mtc_put_class(field, values, i, value);
    }
    return count;
}

static int tokens_changed(MtcFault *fault, const MtcTokens *tokens) {
    return mtc_fail(fault, MTC_NO_INPUT, "%s: was changed while it was read", tokens->path);
}

static int no_class(MtcFault *fault, const MtcTokens *tokens, int64_t at, uint32_t value) {
    const MtcField *field = tokens->field;
    return mtc_fail(fault, MTC_BAD_DATA,
                    "%s: token %lld, counted from 0, is %u; field '%s' is class[%d][%lld], so expected 0 to %d",
                    tokens->path, (long long)at, value, field->name, field->classes, (long long)field->elements,
                    field->classes - 1);
}

/* Looked at before, the file has bytes to read; behind, they were those of the file that was mapped. */
int mtc_tokens_read(MtcFault *fault, const MtcTokens *tokens, int64_t from, int64_t count, void *values) {
    const uint8_t *bytes = tokens->mapped.bytes + tokens->begin + (size_t)from * tokens->width;
    if (!mtc_mapped_is_same(&tokens->mapped))
        return tokens_changed(fault, tokens);
    const int64_t taken = take_classes(tokens->field, bytes, tokens->width, count, values);
    if (!mtc_mapped_is_same(&tokens->mapped))
        return tokens_changed(fault, tokens);
    return taken == count ? 0
                          : no_class(fault, tokens, from + taken,
                                     read_little_endian(bytes + (size_t)taken * tokens->width, tokens->width));
}
