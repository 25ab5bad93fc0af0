#include "data/dataset.h"

#include "data/series.h"
#include "data/table.h"
#include "data/tokens.h"

#include <stdlib.h>
#include <string.h>

int mtc_read_elements(MtcFault *fault, const MtcModel *model, const MtcExamples *examples, int field, int64_t from,
                      int64_t count, void *values) {
    const size_t size = mtc_type_size(model->field[field].type);
    if (examples->tokens)
        return mtc_tokens_read(fault, examples->tokens, examples->first_token + from, count, values);
    memcpy(values, (const char *)examples->field[field] + (size_t)from * size, (size_t)count * size);
    return 0;
}

int mtc_read_example(MtcFault *fault, const MtcModel *model, const MtcExamples *examples, int field, int64_t example,
                     void *values) {
    const MtcField *of = &model->field[field];
    return mtc_read_elements(fault, model, examples, field, example * mtc_field_stride(of, examples->stride),
                             of->elements, values);
}

int mtc_keep_examples(MtcFault *fault, const MtcModel *model, const int64_t *which, int64_t count,
                      MtcExamples *examples) {
    MtcExamples kept;
    int code = 0;
    memset(&kept, 0, sizeof kept);
    kept.count = count;
    for (int f = 0; f < model->fields && !code; f++) {
        const size_t size = mtc_example_bytes(&model->field[f]);
        char *array = (char *)mtc_memory(NULL, (size_t)count * size);
        kept.field[f] = array;
        for (int64_t i = 0; i < count && !code; i++)
            code = mtc_read_example(fault, model, examples, f, which ? which[i] : i, array + (size_t)i * size);
    }
    mtc_examples_free(code ? &kept : examples);
    if (!code)
        *examples = kept;
    return code;
}

void mtc_examples_free(MtcExamples *examples) {
    for (int i = 0; i < MTC_MAX_FIELDS; i++)
        free(examples->field[i]);
    mtc_tokens_free(examples->tokens);
    if (examples->path)
        mtc_free_strings(examples->path, (int)(examples->row ? examples->rows : examples->count));
    mtc_table_rows_free(examples->source);
    free(examples->row);
    memset(examples, 0, sizeof *examples);
}

void mtc_encoding_free(MtcEncoding *encoding) {
    for (int i = 0; i < MTC_MAX_FIELDS; i++) {
        MtcMeaning *meaning = &encoding->field[i];
        mtc_free_strings(meaning->word, meaning->words);
        free(meaning->mean);
        free(meaning->tokenizer);
    }
    memset(encoding, 0, sizeof *encoding);
}

const MtcSplit *mtc_split(const MtcModel *model, const char *name) {
    for (int i = 0; i < model->splits; i++)
        if (strcmp(model->split[i].name, name) == 0)
            return &model->split[i];
    return NULL;
}

const char *mtc_test_split(const MtcModel *model) {
    return mtc_split(model, "test") ? "test" : mtc_split(model, "validation") ? "validation" : NULL;
}

const MtcOrigin *mtc_windows_origin(const MtcModel *model) {
    const MtcSplit *split = mtc_split(model, "train");
    const MtcOrigin *origin = split ? &model->origin[split->origin] : NULL;
    return origin && origin->stride && !mtc_is_series(model) ? origin : NULL;
}

const MtcField *mtc_window_field(const MtcModel *model) {
    int f = 0;
    while (!model->field[f].windows)
        f++;
    return &model->field[f];
}
