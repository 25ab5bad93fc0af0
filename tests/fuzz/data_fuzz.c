/* libFuzzer harness: files of examples. The first byte of an input selects the format and the field, the rest is the
 * file; FUZZ_READER=table|npz|windows|images|npy|idx holds to one reader. A file is refused with a message or read whole, labels in range; a table is the same however it is cut into
 * chunks; anything else is a find. */
#define _GNU_SOURCE /* memfd_create, of memory_file.h */
#include "base/zip.h"
#include "data/dataset.h"
#include "data/image.h"
#include "data/stored.h"
#include "data/table.h"
#include "data/tokens.h"
#include "data/vocabulary.h"
#include "memory_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const MtcField fields[] = {
    {.name = "image", .type = MTC_U8, .rank = 2, .dim = {2, 3}, .elements = 6},
    {.name = "label", .type = MTC_U8, .elements = 1, .classes = 10},
    {.name = "word", .type = MTC_I32, .rank = 1, .dim = {4}, .elements = 4, .classes = 300},
    {.name = "signal", .type = MTC_F32, .rank = 1, .dim = {5}, .elements = 5},
};

/* Bits of the first byte that choose the reader. */
static const struct Reader {
    const char *name;
    uint8_t mask, bits;
} readers[] = {{"table", 128, 128}, {"npz", 192, 64}, {"windows", 224, 32},
               {"images", 232, 8},  {"npy", 236, 4},  {"idx", 236, 0}};
static const struct Reader *only; /* the one that $FUZZ_READER names; NULL: each input chooses */

int LLVMFuzzerInitialize(int *argc, char ***argv) {
    const char *wanted = getenv("FUZZ_READER");
    (void)argc;
    (void)argv;
    for (size_t i = 0; wanted && i < sizeof readers / sizeof *readers; i++)
        if (strcmp(readers[i].name, wanted) == 0)
            only = &readers[i];
    return setenv("OMP_NUM_THREADS", "1", 1);
}

/* ---- arrays ---- */

static void check(const MtcField *field, int64_t count, const void *values) {
    size_t bytes = (size_t)(count * field->elements) * mtc_type_size(field->type);
    uint8_t *copy = (uint8_t *)malloc(bytes);
    memcpy(copy, values, bytes); /* a sanitizer sees whether all of it is there */
    for (int64_t i = 0; i < count * field->elements && field->classes; i++) {
        int label = field->type == MTC_U8 ? copy[i] : ((const int32_t *)values)[i];
        if (label < 0 || label >= field->classes)
            abort();
    }
    free(copy);
}

static void read_array(MtcReadHeader *header, const MtcField *field, const uint8_t *data, size_t size) {
    MtcFault fault;
    int64_t count;
    void *values;
    char *note;
    MtcInput *input = mtc_input_memory("input", data, size);
    memset(&fault, 0, sizeof fault);
    if (mtc_read_field(&fault, input, header, field, &count, &values, &note) == 0) {
        check(field, count, values);
        free(values);
        free(note);
    } else if (!fault.code || !fault.text[0])
        abort();
    mtc_input_close(input);
}

static void read_archive(const MtcField *field, const uint8_t *data, size_t size) {
    static const char *const names[] = {"image.npy", "label.npy", "word.npy", "signal.npy"};
    MtcFault fault;
    MtcZip *zip;
    uint8_t *bytes;
    size_t length;
    memset(&fault, 0, sizeof fault);
    int code = mtc_zip_memory(&fault, "input", data, size, &zip);
    if (code == 0) {
        code = mtc_zip_read(&fault, zip, names[field - fields], &bytes, &length);
        if (code == 0) {
            read_array(mtc_npy_header, field, bytes, length);
            free(bytes);
        }
        mtc_zip_close(zip);
    }
    if (code && (!fault.code || !fault.text[0]))
        abort();
}

/* ---- images ---- */

static void read_image(uint8_t kind, const uint8_t *data, size_t size) {
    enum { HEIGHT = 6, WIDTH = 9 };
    MtcImageForm form = {kind & 1 ? 1 : 3, HEIGHT, WIDTH, kind & 2};
    MtcFault fault;
    uint8_t *copy = (uint8_t *)malloc(size ? size : 1); /* nothing lies behind it */
    uint8_t *planes = (uint8_t *)malloc((size_t)form.channels * HEIGHT * WIDTH);
    memcpy(copy, data, size);
    memset(&fault, 0, sizeof fault);
    if (mtc_image_decode(&fault, "input", copy, size, &form, planes) && (!fault.code || !fault.text[0]))
        abort();
    free(copy);
    free(planes);
}

/* ---- windows ---- */

static void check_fault(const MtcFault *fault) {
    if (!fault->code || !fault->text[0])
        abort();
}

/* Read in two pieces they are the same as at once. */
static void check_tokens(const MtcField *field, const MtcTokens *tokens) {
    const int64_t count = mtc_tokens_count(tokens), half = count / 2;
    const size_t size = mtc_type_size(field->type);
    uint8_t *all = (uint8_t *)malloc((size_t)count * size + 1), *pieces = (uint8_t *)malloc((size_t)count * size + 1);
    MtcFault fault, same;
    memset(&fault, 0, sizeof fault);
    int code = mtc_tokens_read(&fault, tokens, 0, count, all);
    int parts = mtc_tokens_read(&same, tokens, 0, half, pieces);
    if (!parts)
        parts = mtc_tokens_read(&same, tokens, half, count - half, pieces + (size_t)half * size);
    if (code != parts || (code ? strcmp(fault.text, same.text) : memcmp(all, pieces, (size_t)count * size)))
        abort();
    if (code)
        check_fault(&fault);
    for (int64_t i = 0; i < count && !code; i++)
        if (mtc_class_at(field, all, i) >= field->classes)
            abort();
    free(all);
    free(pieces);
}

/* `data`: malloced, and taken. */
static void read_tokens(const MtcField *field, uint8_t *data, size_t size) {
    MtcMapped mapped = {.bytes = data, .size = size, .memory = data, .file = -1};
    MtcTokens *tokens;
    MtcFault fault;
    memset(&fault, 0, sizeof fault);
    if (mtc_tokens_new(&fault, field, false, "input", &mapped, &tokens)) {
        check_fault(&fault);
        return;
    }
    check_tokens(field, tokens);
    mtc_tokens_free(tokens);
}

/* What is encoded and decoded again is the text. */
static void read_characters(const MtcField *field, const char *data, size_t size) {
    MtcFault fault;
    MtcMeaning meaning;
    void *token;
    int64_t count;
    size_t at = 0;
    memset(&fault, 0, sizeof fault);
    memset(&meaning, 0, sizeof meaning);
    if (mtc_learn_characters(&fault, field, "input", data, size, &meaning)) {
        check_fault(&fault);
        return;
    }
    MtcVocabulary vocabulary = {MTC_LEVEL_CHARACTERS, 0, meaning.words, meaning.word};
    if (mtc_encode_characters(&fault, field, &vocabulary, "input", data, size, &token, &count))
        abort();
    for (int64_t i = 0; i < count; i++) {
        char bytes[MTC_TOKEN_BYTES];
        size_t length = mtc_decode_token(&vocabulary, (int32_t)mtc_class_at(field, token, i), bytes);
        if (at + length > size || memcmp(data + at, bytes, length) != 0)
            abort();
        at += length;
    }
    if (at != size)
        abort();
    mtc_free_strings(meaning.word, meaning.words);
    free(token);
}

static void read_windows(uint8_t kind, const uint8_t *data, size_t size) {
    MtcField few = {.name = "window", .type = MTC_U8, .rank = 1, .dim = {3}, .elements = 3, .classes = 40};
    MtcField many = {.name = "window", .type = MTC_U16, .rank = 1, .dim = {3}, .elements = 3, .classes = 3000};
    uint8_t *copy = (uint8_t *)malloc(size ? size : 1); /* nothing lies behind it */
    memcpy(copy, data, size);
    if (kind & 1) {
        read_tokens(kind & 2 ? &few : &many, copy, size);
        return;
    }
    read_characters(kind & 2 ? &few : &many, (const char *)copy, size);
    free(copy);
}

/* ---- tables ---- */

static const MtcTableColumn columns[] = {{"b", MTC_CELL_WORD, "", true, 0, 0},
                                         {"a", MTC_CELL_NUMBER, "", true, 0, 0},
                                         {"c", MTC_CELL_DATE, "%Y-%m-%d", true, 0, 0},
                                         {"a", MTC_CELL_INTEGER, "", true, -1000, 1000}};
static const char *const names[] = {"a", "b", "c"};

static int read_table(MtcFault *fault, const char *path, const MtcTableForm *form, bool skip, const char *chunk,
                      MtcTable *table) {
    memset(fault, 0, sizeof *fault);
    setenv("MTC_TABLE_CHUNK", chunk, 1);
    int code = mtc_table_read(fault, path, form, skip, false, table);
    if (code && (!fault->code || !fault->text[0]))
        abort();
    return code;
}

static void compare(const MtcTable *a, const MtcTable *b) {
    if (a->rows != b->rows || a->bad != b->bad || strcmp(a->first_bad, b->first_bad) != 0)
        abort();
    for (int c = 0; c < a->columns; c++) {
        if (memcmp(a->cell[c], b->cell[c], (size_t)a->rows * 4) != 0 || a->words[c].count != b->words[c].count)
            abort();
        for (int i = 0; i < a->words[c].count; i++)
            if (strcmp(a->words[c].word[i], b->words[c].word[i]) != 0)
                abort();
    }
}

/* In one piece, and in pieces of a few bytes. */
static void read_tables(uint8_t kind, const uint8_t *data, size_t size) {
    MtcTableForm form = {.header = kind & 1,
                         .names = kind & 1 ? 0 : 3,
                         .name = names,
                         .shorter = kind & 2,
                         .series = kind & 32,
                         .separator = kind & 4 ? ',' : '\t',
                         .quote = kind & 4 ? '"' : 0,
                         .columns = 4,
                         .column = columns};
    MtcFault whole_fault, cut_fault;
    MtcTable whole, cut;
    char path[64], place[512];
    int file;
    memory_file(&file, path, sizeof path, data, size);
    int code = read_table(&whole_fault, path, &form, kind & 8, "1000000", &whole);
    int other = read_table(&cut_fault, path, &form, kind & 8, kind & 16 ? "1" : "5", &cut);
    if (code != other || (code && strcmp(whole_fault.text, cut_fault.text) != 0))
        abort();
    if (!code) {
        compare(&whole, &cut);
        for (int64_t row = 0; row < whole.rows && row < 50; row++)
            mtc_table_place(&whole, &form, row, (int)(row % 4), place, sizeof place);
        mtc_table_free(&whole);
        mtc_table_free(&cut);
    }
    close(file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size == 0)
        return 0;
    uint8_t kind = only ? (uint8_t)((data[0] & ~only->mask) | only->bits) : data[0];
    const MtcField *field = &fields[kind % 4];
    if (kind & 128)
        read_tables(kind, data + 1, size - 1);
    else if (kind & 64)
        read_archive(field, data + 1, size - 1);
    else if (kind & 32)
        read_windows(kind, data + 1, size - 1);
    else if (kind & 8)
        read_image(kind, data + 1, size - 1);
    else
        read_array(kind & 4 ? mtc_npy_header : mtc_idx_header, field, data + 1, size - 1);
    return 0;
}
