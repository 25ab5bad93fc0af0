/* The data sets of a model: each origin is read once, and divided. */
#include "data/image.h"
#include "data/table_fields.h"
#include "data/vocabulary.h"
#include "data/windows.h"

#include "random.h"

#include <math.h>
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

/* Which of `count` rows a part has, in their order; free *row. A row is in the part where the permutation puts it. */
static int64_t rows_of_part(const MtcSplit *split, uint64_t seed, int64_t count, int64_t **row) {
    const int64_t begin = llround(split->from * (double)count), end = llround(split->to * (double)count);
    uint64_t key = mtc_split_key(seed);
    int64_t rows = 0;
    *row = (int64_t *)mtc_memory(NULL, (size_t)(end - begin) * sizeof **row);
    for (int64_t i = 0; i < count; i++) {
        int64_t place = end - begin == count ? i : (int64_t)mtc_permute(key, (uint32_t)count, (uint32_t)i);
        if (place >= begin && place < end)
            (*row)[rows++] = i;
    }
    return rows;
}

static int empty_part(MtcFault *fault, const Source *source, const MtcSplit *split, int64_t count) {
    return mtc_fail(fault, MTC_BAD_DATA, "%s: '%s', %.6g%% of %lld example%s, is empty", source->name, split->name,
                    100 * (split->to - split->from), (long long)count, count == 1 ? "" : "s");
}

static int select_part(MtcFault *fault, const Source *source, const MtcSplit *split, uint64_t seed, int64_t **row,
                       int64_t *rows) {
    int64_t count = source->table ? source->fields.rows : source->arrays.count;
    *rows = rows_of_part(split, seed, count, row);
    for (int64_t i = 0; i < *rows && source->table; i++)
        (*row)[i] = source->fields.row[(*row)[i]];
    return *rows ? 0 : empty_part(fault, source, split, count);
}

static void gather(const MtcModel *model, const MtcExamples *from, const int64_t *row, int64_t rows, MtcExamples *to) {
    to->count = rows;
    for (int f = 0; f < model->fields; f++) {
        size_t size = mtc_example_bytes(&model->field[f]);
        to->field[f] = mtc_memory(NULL, (size_t)rows * size);
        for (int64_t i = 0; i < rows; i++)
            memcpy((char *)to->field[f] + (size_t)i * size, (const char *)from->field[f] + (size_t)row[i] * size, size);
    }
    to->path = from->path ? (char **)mtc_memory(NULL, (size_t)rows * sizeof *to->path) : NULL;
    for (int64_t i = 0; i < rows && from->path; i++)
        to->path[i] = strdup(from->path[row[i]]);
}

static int take_part(MtcFault *fault, const MtcModel *model, Source *source, const MtcSplit *split, bool last,
                     MtcReading *reading, const MtcEncoding *encoding, MtcExamples *examples) {
    int64_t *row = NULL, rows;
    memset(examples, 0, sizeof *examples);
    if (mtc_is_windows(&model->origin[split->origin]))
        return mtc_token_row_part(fault, model, &model->origin[split->origin], split, last, &source->tokens, examples);
    if (!source->table && last && split->from <= 0 && split->to >= 1) { /* nobody else needs the arrays */
        *examples = source->arrays;
        memset(&source->arrays, 0, sizeof source->arrays);
        return 0;
    }
    int code = select_part(fault, source, split, reading->seed, &row, &rows);
    if (!code && source->table)
        code = mtc_field_table_encode(fault, &source->fields, encoding, reading, row, rows, examples);
    else if (!code)
        gather(model, &source->arrays, row, rows, examples);
    free(row);
    return code;
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
    int code = read_source(fault, model, reading, split->origin, source);
    if (!code && source->table) {
        code = select_part(fault, source, split, reading->seed, &row, &rows);
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
        code = read_source(fault, model, reading, split->origin, &source[split->origin]);
        if (!code)
            code = encode_source(fault, model, encoding, &model->origin[split->origin], &source[split->origin]);
        if (!code)
            code = take_part(fault, model, &source[split->origin], split, is_last(model, name, count, i), reading,
                             encoding, &examples[i]);
    }
    for (int i = 0; i < count && code; i++)
        mtc_examples_free(&examples[i]);
    free_sources(source, model->origins);
    return code;
}
