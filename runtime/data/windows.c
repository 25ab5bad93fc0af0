#include "data/windows.h"

#include "data/tokens.h"
#include "data/vocabulary.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void mtc_token_row_free(MtcTokenRow *row) {
    free(row->path);
    free(row->text);
    free(row->token);
    mtc_tokens_free(row->file);
    memset(row, 0, sizeof *row);
}

int mtc_token_row_read(MtcFault *fault, const MtcModel *model, const MtcOrigin *origin, const char *path,
                       MtcTokenRow *row) {
    memset(row, 0, sizeof *row);
    const bool characters = strcmp(origin->format, "characters") == 0;
    int code = characters ? mtc_read_file(fault, path, &row->text, &row->size)
                          : mtc_tokens_open(fault, mtc_window_field(model), strcmp(origin->format, "bytes") == 0, path,
                                            &row->file);
    if (code) {
        memset(row, 0, sizeof *row);
        return code;
    }
    row->path = strdup(path);
    row->count = row->file ? mtc_tokens_count(row->file) : 0;
    return 0;
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
