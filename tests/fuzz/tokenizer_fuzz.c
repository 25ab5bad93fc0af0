/* libFuzzer harness: files of tokenizers and what they encode. The first byte of an input chooses: the rest is a tokenizer.json; or a
 * vocab.json, a byte 0xFF and a merges.txt. What stands behind a last 0xFF is a text. A file is refused with a message, or a text becomes
 * tokens that are the same bytes again, and the same tokens when it is cut where it may be; anything else is a find. */
#define _GNU_SOURCE /* mkdtemp */
#include "base/file.h"
#include "tokenizer/tokenizer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[] = "/tmp/mtc_fuzz_XXXXXX", tokenizer_path[64], vocabulary_path[64], merges_path[64];

static void remove_folder(void) {
    unlink(tokenizer_path);
    unlink(vocabulary_path);
    unlink(merges_path);
    rmdir(folder);
}

int LLVMFuzzerInitialize(int *argc, char ***argv) {
    (void)argc;
    (void)argv;
    if (!mkdtemp(folder))
        abort();
    snprintf(tokenizer_path, sizeof tokenizer_path, "%s/tokenizer.json", folder);
    snprintf(vocabulary_path, sizeof vocabulary_path, "%s/vocab.json", folder);
    snprintf(merges_path, sizeof merges_path, "%s/merges.txt", folder);
    atexit(remove_folder);
    return 0;
}

static void write_file(const char *path, const uint8_t *bytes, size_t size) {
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(bytes, 1, size, file) != size || fclose(file) != 0)
        abort();
}

static void check_bytes(const MtcTokenizer *tokenizer, const MtcTokenList *tokens, const uint8_t *text, size_t size) {
    size_t at = 0, bytes;
    for (size_t i = 0; i < tokens->count; i++) {
        if (tokens->at[i] < 0 || tokens->at[i] >= mtc_tokenizer_classes(tokenizer))
            abort();
        const uint8_t *token = mtc_tokenizer_bytes(tokenizer, tokens->at[i], &bytes);
        if (!token || !bytes || bytes > size - at || memcmp(text + at, token, bytes) != 0)
            abort();
        at += bytes;
    }
    if (at != size)
        abort();
}

static void check_text(const MtcTokenizer *tokenizer, const uint8_t *text, size_t size) {
    MtcTokenList whole = {NULL, 0, 0}, pieces = {NULL, 0, 0};
    MtcEncoder *encoder = mtc_encoder_new(tokenizer);
    mtc_encode(encoder, text, size, &whole);
    check_bytes(tokenizer, &whole, text, size);
    for (size_t from = 0, end; from < size; from = end) {
        end = mtc_tokenizer_cut(tokenizer, text, size, from + 1, size);
        mtc_encode(encoder, text + from, end - from, &pieces);
    }
    if (whole.count != pieces.count ||
        (whole.count && memcmp(whole.at, pieces.at, whole.count * sizeof *whole.at) != 0))
        abort();
    mtc_encoder_free(encoder);
    free(whole.at);
    free(pieces.at);
}

/* Up to the next 0xFF, which is in no UTF-8; behind it the rest begins. */
static size_t part(const uint8_t **data, size_t *size) {
    const uint8_t *end = *size ? (const uint8_t *)memchr(*data, 0xFF, *size) : NULL;
    const size_t length = end ? (size_t)(end - *data) : *size;
    *data += length + (end != NULL);
    *size -= length + (end != NULL);
    return length;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    MtcTokenizer *tokenizer;
    MtcFault fault = {0, {0}};
    if (size == 0)
        return 0;
    const bool two = data[0] % 2;
    const uint8_t *first = ++data;
    size--;
    const size_t length = part(&data, &size);
    write_file(two ? vocabulary_path : tokenizer_path, first, length);
    if (two) {
        const uint8_t *merges = data;
        const size_t bytes = part(&data, &size);
        write_file(merges_path, merges, bytes);
    }
    if (mtc_tokenizer_open(&fault, two ? vocabulary_path : tokenizer_path, &tokenizer) == 0) {
        check_text(tokenizer, data, size);
        mtc_tokenizer_free(tokenizer);
    } else if (!fault.code || !fault.text[0])
        abort();
    return 0;
}
