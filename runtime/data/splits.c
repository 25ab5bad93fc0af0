/* The data sets of a model: each origin is read once, and divided. */
#include "data/image.h"
#include "data/part.h"
#include "data/table_fields.h"
#include "data/vocabulary.h"
#include "data/windows.h"

#include <stdlib.h>
#include <string.h>

static bool is_images(const MtcOrigin *origin) {
    return strcmp(origin->format, "images") == 0;
}

/* An origin that was read. */
typedef struct Source {
    bool read, table;
    MtcExamples arrays;
    MtcMeaning classes; /* images: the names that labels stand for, until the encoding has given them its own */
    MtcFieldTable fields;
    MtcTokenRow tokens; /* windows */
    const char *name;   /* of the file, for messages */
} Source;

static int read_source(MtcFault *fault, const MtcModel *model, MtcReading *reading, int index, Source *source) {
    const MtcOrigin *origin = &model->origin[index];
    char *path;
    int code;
    if (source->read)
        return 0;
    source->table = mtc_is_table(origin);
    source->name = origin->paths ? origin->path[0] : model->source;
    if (is_images(origin))
        code = mtc_read_images(fault, model, origin, reading, &source->arrays, &source->classes);
    else if (!source->table && !mtc_is_windows(origin))
        code = mtc_read_arrays(fault, model, origin, reading, &source->arrays);
    else {
        code = mtc_find_data(fault, model->source, reading->folder, origin->path[0], &path);
        if (code)
            return code;
        code = source->table ? mtc_field_table_open(fault, model, origin, path, reading, NULL, false, &source->fields)
                             : mtc_token_row_read(fault, model, origin, path, &source->tokens);
        free(path);
    }
    source->read = !code;
    return code;
}

static void free_sources(Source *source, int count) {
    for (int i = 0; i < count; i++) {
        mtc_examples_free(&source[i].arrays);
        mtc_token_row_free(&source[i].tokens);
        mtc_free_strings(source[i].classes.word, source[i].classes.words);
        if (source[i].read && source[i].table)
            mtc_field_table_free(&source[i].fields);
    }
    free(source);
}

/* ---- parts ---- */

/* The rows of a table that the part has, among those that are not left out. */
static int select_rows(MtcFault *fault, const Source *source, const MtcSplitPart *part, int64_t **row, int64_t *rows) {
    int code = mtc_part_rows(fault, part, source->name, source->fields.rows, row, rows);
    for (int64_t i = 0; i < *rows; i++)
        (*row)[i] = source->fields.row[(*row)[i]];
    return code;
}

static int take_rows(MtcFault *fault, Source *source, const MtcSplitPart *part, MtcReading *reading,
                     const MtcEncoding *encoding, MtcExamples *examples) {
    int64_t *row, rows;
    int code = select_rows(fault, source, part, &row, &rows);
    if (!code)
        code = mtc_field_table_encode(fault, &source->fields, encoding, reading, row, rows, examples);
    free(row);
    return code;
}

static int take_part(MtcFault *fault, const MtcModel *model, Source *source, const MtcSplitPart *part,
                     MtcReading *reading, const MtcEncoding *encoding, MtcExamples *examples) {
    const MtcOrigin *origin = &model->origin[part->split->origin];
    memset(examples, 0, sizeof *examples);
    if (mtc_is_windows(origin))
        return mtc_token_row_part(fault, model, origin, part->split, part->last, &source->tokens, examples);
    return source->table ? take_rows(fault, source, part, reading, encoding, examples)
                         : mtc_part_arrays(fault, model, part, source->name, &source->arrays, examples);
}

/* ---- what training data decide ---- */

static bool has_meaning(const MtcModel *model, const MtcSplit *train) {
    const char *format = model->origin[train->origin].format;
    if (strcmp(format, "images") == 0 || strcmp(format, "characters") == 0)
        return true;
    for (int f = 0; f < model->fields; f++)
        if (model->field[f].columns.count)
            return true;
    return false;
}

static int label_of_images(const MtcModel *model) {
    int f = 0;
    while (f < model->fields && !model->field[f].classes)
        f++;
    return f; /* without labels: no field */
}

/* The classes are the folders' names, in their order. */
static void learn_classes(const MtcModel *model, const Source *source, MtcEncoding *encoding) {
    const int label = label_of_images(model), words = source->classes.words;
    if (label == model->fields)
        return;
    encoding->field[label].words = words;
    encoding->field[label].word = (char **)mtc_memory(NULL, (size_t)words * sizeof(char *));
    for (int k = 0; k < words; k++)
        encoding->field[label].word[k] = strdup(source->classes.word[k]);
}

/* Labels as the encoding has the classes' names. Where it has none, they are numbers, in the order of the names. */
static int encode_classes(MtcFault *fault, const MtcModel *model, const MtcEncoding *encoding, Source *source) {
    const int label = label_of_images(model);
    const MtcMeaning *known = &encoding->field[label == model->fields ? 0 : label];
    if (label == model->fields || !source->classes.words || !known->words)
        return 0;
    int *code = (int *)mtc_memory(NULL, (size_t)source->classes.words * sizeof *code);
    for (int k = 0; k < source->classes.words; k++) {
        code[k] = mtc_find_word((const char *const *)known->word, known->words, source->classes.word[k]);
        if (code[k] < 0) {
            mtc_fail(fault, MTC_BAD_DATA, "%s: '%s' is no class of the training images", source->name,
                     source->classes.word[k]);
            free(code);
            return fault->code;
        }
    }
    void *labels = source->arrays.field[label];
    for (int64_t i = 0; i < source->arrays.count; i++)
        mtc_put_class(&model->field[label], labels, i, code[mtc_class_at(&model->field[label], labels, i)]);
    free(code);
    mtc_free_strings(source->classes.word, source->classes.words);
    memset(&source->classes, 0, sizeof source->classes);
    return 0;
}

/* The characters of the whole text, however it is split. */
static int learn_text(MtcFault *fault, const MtcModel *model, const MtcTokenRow *text, MtcEncoding *encoding) {
    const MtcField *field = mtc_window_field(model);
    return mtc_learn_characters(fault, field, text->path, (const char *)text->text, text->size,
                                &encoding->field[field - model->field]);
}

/* Classes by the meaning that they have. */
static int encode_source(MtcFault *fault, const MtcModel *model, const MtcEncoding *encoding, const MtcOrigin *origin,
                         Source *source) {
    return mtc_is_windows(origin) ? mtc_token_row_encode(fault, model, encoding, &source->tokens)
                                  : encode_classes(fault, model, encoding, source);
}

static int learn(MtcFault *fault, const MtcModel *model, MtcReading *reading, Source *sources, MtcEncoding *encoding) {
    const MtcSplit *split = mtc_split(model, "train");
    int64_t *row = NULL, rows;
    if (encoding->known || !split || !has_meaning(model, split))
        return 0;
    Source *source = &sources[split->origin];
    const MtcSplitPart part = {split, reading->seed, false};
    int code = read_source(fault, model, reading, split->origin, source);
    if (!code && source->table) {
        code = select_rows(fault, source, &part, &row, &rows);
        if (!code)
            code = mtc_field_table_learn(fault, &source->fields, row, rows, encoding);
        free(row);
    }
    if (!code && source->classes.words)
        learn_classes(model, source, encoding);
    if (!code && source->tokens.text)
        code = learn_text(fault, model, &source->tokens, encoding);
    if (code)
        mtc_encoding_free(encoding);
    encoding->known = !code;
    return code;
}

/* ---- reading ---- */

/* Does a later one of the splits need the same origin? */
static bool is_last(const MtcModel *model, const char *const *name, int count, int index) {
    for (int i = index + 1; i < count; i++)
        if (name[i] && mtc_split(model, name[i])->origin == mtc_split(model, name[index])->origin)
            return false;
    return true;
}

static int splits_exist(MtcFault *fault, const MtcModel *model, const char *const *name, int count) {
    for (int i = 0; i < count; i++)
        if (name[i] && !mtc_split(model, name[i]))
            return mtc_fail(fault, MTC_USAGE, "the model has no split '%s'", name[i]);
    return 0;
}

int mtc_read_splits(MtcFault *fault, const MtcModel *model, MtcReading *reading, MtcEncoding *encoding,
                    const char *const *name, int count, MtcExamples *examples) {
    Source *source = (Source *)mtc_zeroed((size_t)model->origins * sizeof *source);
    memset(examples, 0, (size_t)count * sizeof *examples);
    reading->skipped = 0;
    int code = splits_exist(fault, model, name, count);
    if (!code)
        code = learn(fault, model, reading, source, encoding);
    for (int i = 0; i < count && !code; i++) {
        const MtcSplit *split = name[i] ? mtc_split(model, name[i]) : NULL;
        if (!split)
            continue;
        const MtcSplitPart part = {split, reading->seed, is_last(model, name, count, i)};
        code = read_source(fault, model, reading, split->origin, &source[split->origin]);
        if (!code)
            code = encode_source(fault, model, encoding, &model->origin[split->origin], &source[split->origin]);
        if (!code)
            code = take_part(fault, model, &source[split->origin], &part, reading, encoding, &examples[i]);
    }
    for (int i = 0; i < count && code; i++)
        mtc_examples_free(&examples[i]);
    free_sources(source, model->origins);
    return code;
}
