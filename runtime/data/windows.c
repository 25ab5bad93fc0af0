/* Examples that are windows of a row of tokens: of the characters or the bytes of a text, or of a file of tokens.
 *
 *     file -> text, or tokens that stay in it -> a part of the tokens -> windows, which begin every `stride` tokens */
#include "data/bpe.h"
#include "data/source.h"
#include "data/tokens.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What a file holds. All zero: nothing. */
typedef struct TokenRow {
    char *path;
    uint8_t *text; /* characters, until the vocabulary is known; byte pairs: the file's bytes; else NULL */
    size_t size;
    int64_t count;
    void *token;             /* `count` of them, in the field's type; or NULL, and */
    MtcTokens *file;         /* they stay in the file */
    MtcTokenizer *tokenizer; /* of byte pairs */
} TokenRow;

static void free_row(TokenRow *row) {
    free(row->path);
    free(row->text);
    free(row->token);
    mtc_tokens_free(row->file);
    mtc_tokenizer_free(row->tokenizer);
    memset(row, 0, sizeof *row);
}

static int read_row(MtcFault *fault, const MtcModel *model, MtcLevel level, const char *path, TokenRow *row) {
    memset(row, 0, sizeof *row);
    int code = level == MTC_LEVEL_CHARACTERS || level == MTC_LEVEL_PIECES
                   ? mtc_read_file(fault, path, &row->text, &row->size)
                   : mtc_tokens_open(fault, mtc_window_field(model), level == MTC_LEVEL_BYTES, path, &row->file);
    if (code) {
        memset(row, 0, sizeof *row);
        return code;
    }
    row->path = strdup(path);
    row->count = row->file ? mtc_tokens_count(row->file) : 0;
    return 0;
}

/* The text of byte pairs as tokens. */
static int cut_into_pieces(MtcFault *fault, const MtcModel *model, const MtcOrigin *origin, const char *folder,
                           TokenRow *row) {
    int code = mtc_find_tokenizer(fault, model, origin, folder, &row->tokenizer);
    if (!code)
        code = mtc_encode_pieces(fault, mtc_window_field(model), row->tokenizer, origin, row->text, row->size,
                                 &row->token, &row->count);
    free(row->text);
    row->text = NULL;
    return code;
}

/* The file as the source needs it to learn from it. */
static int read_source(MtcFault *fault, const MtcModel *model, const MtcSource *source, const MtcOrigin *origin,
                       const char *folder, const char *path, TokenRow *row) {
    int code = read_row(fault, model, source->level, path, row);
    if (!code && source->level == MTC_LEVEL_PIECES)
        code = cut_into_pieces(fault, model, origin, folder, row);
    if (code)
        free_row(row);
    return code;
}

/* Tokens, by what the encoding knows: a character that it lacks is a fault, as is another tokenizer. */
static int encode_tokens(MtcFault *fault, const MtcModel *model, const MtcSource *source, const MtcOrigin *origin,
                         const MtcEncoding *encoding, TokenRow *row) {
    MtcVocabulary vocabulary;
    int code = mtc_vocabulary_at(fault, model, source->level, encoding, &vocabulary);
    if (!code && row->tokenizer)
        code = mtc_check_tokenizer(fault, &encoding->field[vocabulary.field], row->tokenizer, origin->path[1]);
    if (!code && row->text) {
        code = mtc_encode_characters(fault, mtc_window_field(model), &vocabulary, row->path, (const char *)row->text,
                                     row->size, &row->token, &row->count);
        free(row->text);
        row->text = NULL;
    }
    return code;
}

static int too_short(MtcFault *fault, const MtcField *field, const MtcOrigin *origin, const MtcSplit *split,
                     const TokenRow *row, int64_t count) {
    MtcText part = {NULL, 0, 0};
    if (count < row->count)
        mtc_text_add(&part, "'%s', %.6g%% of %lld %s, ", split->name, 100 * (split->to - split->from),
                     (long long)row->count, origin->format);
    mtc_fail(fault, MTC_BAD_DATA, "%s: %shas %lld %s, and a window of '%s' has %lld", row->path, part.at ? part.at : "",
             (long long)count, origin->format, field->name, (long long)field->elements);
    free(part.at);
    return fault->code;
}

/* The windows within the part of the row that the split has (NULL: all of it). `last`: nobody else needs the row. */
static int part_of_row(MtcFault *fault, const MtcModel *model, const MtcOrigin *origin, const MtcSplit *split,
                       bool last, TokenRow *row, MtcExamples *examples) {
    const MtcField *field = mtc_window_field(model);
    const size_t size = mtc_type_size(field->type);
    const int64_t begin = split ? llround(split->from * (double)row->count) : 0;
    const int64_t end = split ? llround(split->to * (double)row->count) : row->count, count = end - begin;
    memset(examples, 0, sizeof *examples);
    if (count < field->elements)
        return too_short(fault, field, origin, split, row, count);
    void **values = &examples->field[field - model->field];
    if (row->file) {
        examples->tokens = mtc_tokens_share(row->file);
        examples->first_token = begin;
    } else if (last && count == row->count) {
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

/* ---- the sources ---- */

static int open_row(MtcFault *fault, MtcReading *reading, MtcOpened *opened) {
    char *path;
    int code = mtc_find_data(fault, opened->model->source, reading->folder, opened->origin->path[0], &path);
    if (code)
        return code;
    TokenRow *row = (TokenRow *)mtc_zeroed(sizeof *row);
    code = read_source(fault, opened->model, opened->source, opened->origin, reading->folder, path, row);
    free(path);
    if (code)
        free(row);
    else
        opened->kept = row;
    return code;
}

static void close_row(void *kept) {
    free_row((TokenRow *)kept);
    free(kept);
}

/* The characters of the whole text, however it is split. */
static int learn_characters(MtcFault *fault, const MtcSplitPart *train, const MtcOpened *opened,
                            MtcEncoding *encoding) {
    const MtcField *field = mtc_window_field(opened->model);
    const TokenRow *row = (const TokenRow *)opened->kept;
    (void)train;
    return mtc_learn_characters(fault, field, row->path, (const char *)row->text, row->size,
                                &encoding->field[field - opened->model->field]);
}

static int learn_pieces(MtcFault *fault, const MtcSplitPart *train, const MtcOpened *opened, MtcEncoding *encoding) {
    const int field = (int)(mtc_window_field(opened->model) - opened->model->field);
    (void)fault;
    (void)train;
    mtc_learn_tokenizer(((const TokenRow *)opened->kept)->tokenizer, opened->origin->path[1], &encoding->field[field]);
    return 0;
}

static int read_token_part(MtcFault *fault, const MtcSplitPart *part, const MtcEncoding *encoding, MtcReading *reading,
                           MtcOpened *opened, MtcExamples *examples) {
    TokenRow *row = (TokenRow *)opened->kept;
    (void)reading;
    int code = encode_tokens(fault, opened->model, opened->source, opened->origin, encoding, row);
    return code ? code : part_of_row(fault, opened->model, opened->origin, part->split, part->last, row, examples);
}

static int read_tokens_asked(MtcFault *fault, const MtcAsked *asked, const MtcEncoding *encoding, MtcReading *reading,
                             MtcExamples *examples) {
    const MtcModel *model = asked->model;
    TokenRow row;
    int code = read_source(fault, model, asked->source, asked->origin, reading->folder, asked->path, &row);
    if (!code)
        code = encode_tokens(fault, model, asked->source, asked->origin, encoding, &row);
    if (!code)
        code = part_of_row(fault, model, asked->origin, NULL, true, &row, examples);
    if (!code)
        code = mtc_keep_examples(fault, model, NULL, examples->count, examples);
    free_row(&row);
    return code;
}

const MtcSource mtc_source_characters = {.open = open_row,
                                         .learn = learn_characters,
                                         .read = read_token_part,
                                         .close = close_row,
                                         .input = read_tokens_asked,
                                         .example = "new.txt",
                                         .level = MTC_LEVEL_CHARACTERS};
const MtcSource mtc_source_bytes = {.open = open_row,
                                    .read = read_token_part,
                                    .close = close_row,
                                    .input = read_tokens_asked,
                                    .example = "new.txt",
                                    .level = MTC_LEVEL_BYTES};
const MtcSource mtc_source_tokens = {.open = open_row,
                                     .read = read_token_part,
                                     .close = close_row,
                                     .input = read_tokens_asked,
                                     .example = "new.txt",
                                     .level = MTC_LEVEL_NUMBERS};
const MtcSource mtc_source_pieces = {.open = open_row,
                                     .learn = learn_pieces,
                                     .read = read_token_part,
                                     .close = close_row,
                                     .input = read_tokens_asked,
                                     .example = "new.txt",
                                     .level = MTC_LEVEL_PIECES};
