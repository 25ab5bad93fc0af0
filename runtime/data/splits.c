/* The data sets of a model: each origin is read once, and divided. */
#include "data/image.h"
#include "data/table_fields.h"
#include "data/vocabulary.h"
#include "data/windows.h"

#include "random.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool is_table(const MtcOrigin *origin) {
    return strcmp(origin->format, "tsv") == 0 || strcmp(origin->format, "csv") == 0;
}

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
    source->table = is_table(origin);
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

/* ---- examples to predict ---- */

/* Fields listed in a message: "'image', 'label'". */
static void add_name(MtcText *text, const MtcField *field) {
    mtc_text_add(text, "%s'%s'", text->length ? ", " : "", field->name);
}

static int wrong_number_of_inputs(MtcFault *fault, const MtcModel *model, int given) {
    MtcText all = {NULL, 0, 0}, missing = {NULL, 0, 0};
    for (int i = 0; i < model->fields; i++) {
        add_name(&all, &model->field[i]);
        if (model->field[i].predicts && given-- <= 0)
            add_name(&missing, &model->field[i]);
    }
    if (missing.at)
        mtc_fail(fault, MTC_USAGE, "no --input for %s", missing.at);
    else
        mtc_fail(fault, MTC_USAGE, "more --input files than fields");
    mtc_note(fault,
             "give a file for each of the fields, in this order: %s; those that the prediction does not depend on may "
             "be left out",
             all.at);
    free(all.at);
    free(missing.at);
    return fault->code;
}

/* The message of reading says more where the file cannot be read. */
int mtc_check_inputs(MtcFault *fault, const MtcModel *model, const char *const *path, int paths) {
    MtcFault unreadable;
    MtcFileKind kind;
    if (paths > 1 && !mtc_file_kind(&unreadable, path[0], &kind) && kind == MTC_FILE_IMAGES)
        return mtc_fail(fault, MTC_USAGE,
                        "%s is an input of its own: to predict many images, put them in a folder: --input FOLDER",
                        path[0]);
    return paths > model->fields ? wrong_number_of_inputs(fault, model, paths) : 0;
}

/* A file for each field. With fewer files than fields, those that the prediction does not depend on get none, the last
 * ones first. */
static int read_field_files(MtcFault *fault, const MtcModel *model, const char *const *path, int paths,
                            MtcReading *reading, MtcExamples *examples) {
    const char *file[MTC_MAX_FIELDS] = {NULL};
    int needed = 0, next = 0;
    for (int i = 0; i < model->fields; i++)
        needed += model->field[i].predicts;
    int others = paths - needed;
    if (others < 0)
        return wrong_number_of_inputs(fault, model, paths);
    for (int i = 0; i < model->fields; i++)
        if (model->field[i].predicts || others-- > 0)
            file[i] = path[next++];
    return mtc_read_field_files(fault, model, file, reading, examples);
}

static const MtcOrigin *table_origin(const MtcModel *model) {
    const MtcSplit *split = mtc_split(model, "train");
    return split && is_table(&model->origin[split->origin]) ? &model->origin[split->origin] : NULL;
}

/* Which rows of the table the examples are, those counted too that were left out because they are wrong. */
static void place_examples(const MtcFieldTable *fields, MtcExamples *examples) {
    const MtcTable *table = &fields->table;
    int64_t bad = 0;
    examples->rows = table->rows + table->bad;
    examples->row = (int64_t *)mtc_memory(NULL, (size_t)examples->count * sizeof *examples->row);
    for (int64_t i = 0; i < examples->count; i++) {
        while (bad < table->bad && table->bad_at[bad] < table->at[fields->row[i]])
            bad++;
        examples->row[i] = fields->row[i] + bad;
    }
}

static int read_table_input(MtcFault *fault, const MtcModel *model, const MtcOrigin *origin, MtcReading *reading,
                            const MtcEncoding *encoding, const char *path, const bool *wanted, MtcExamples *examples) {
    MtcFieldTable fields;
    const bool cache = reading->cache;
    reading->cache = cache && !reading->skip_bad_rows; /* a kept table does not say where bad rows were */
    int code = mtc_field_table_open(fault, model, origin, path, reading, wanted, true, &fields);
    reading->cache = cache;
    if (code)
        return code;
    code = mtc_field_table_encode(fault, &fields, encoding, reading, fields.row, fields.rows, examples);
    if (!code)
        place_examples(&fields, examples);
    if (!code && reading->source)
        code = mtc_table_rows(fault, &fields.table, &fields.form, &examples->source);
    mtc_field_table_free(&fields);
    return code;
}

/* "x[0]", "x[1]", ... for each field; free with mtc_free_strings. */
static char **element_names(const MtcModel *model, int *count) {
    char **name = NULL;
    *count = 0;
    for (int f = 0; f < model->fields; f++) {
        const int64_t elements = model->field[f].elements;
        name = (char **)mtc_memory(name, (size_t)(*count + elements) * sizeof *name);
        for (int64_t e = 0; e < elements; e++) {
            MtcText text = {NULL, 0, 0};
            mtc_text_add(&text, elements > 1 ? "%s[%lld]" : "%s", model->field[f].name, (long long)e);
            name[(*count)++] = text.at;
        }
    }
    return name;
}

static bool first_line_has(const char *path, char character) {
    MtcFault unreadable; /* reading it will say so */
    MtcInput *input;
    char begin[4096];
    size_t got = 0;
    if (mtc_input_open(&unreadable, path, &input))
        return false;
    mtc_input_read(&unreadable, input, begin, sizeof begin, &got);
    mtc_input_close(input);
    const char *end = (const char *)memchr(begin, '\n', got);
    return memchr(begin, character, end ? (size_t)(end - begin) : got) != NULL;
}

/* Rows of numbers, as they stand in the model: a table without a header, a column for each element of each field. Tabs or
 * commas are between them. */
static int read_rows_input(MtcFault *fault, const MtcModel *model, MtcReading *reading, const MtcEncoding *encoding,
                           const char *path, const bool *wanted, MtcExamples *examples) {
    MtcModel table = *model;
    MtcOrigin origin;
    MtcField field[MTC_MAX_FIELDS];
    int columns;
    char **name = element_names(model, &columns), **next = name;
    memset(&origin, 0, sizeof origin);
    origin.columns = columns;
    origin.column = (const char *const *)name;
    origin.separator = first_line_has(path, '\t') ? '\t' : ',';
    for (int f = 0; f < model->fields; f++) {
        field[f] = model->field[f];
        field[f].columns.count = (int)field[f].elements;
        field[f].columns.name = (const char *const *)next;
        field[f].columns.date_format = "";
        next += field[f].elements;
    }
    table.field = field;
    int code = read_table_input(fault, &table, &origin, reading, encoding, path, wanted, examples);
    mtc_free_strings(name, columns);
    return code;
}

/* A text or a file of tokens, as the training data are. */
static int read_windows_input(MtcFault *fault, const MtcModel *model, const MtcEncoding *encoding, const char *path,
                              MtcExamples *examples) {
    const MtcOrigin *origin = mtc_windows_origin(model);
    MtcTokenRow row;
    int code = mtc_token_row_read(fault, model, origin, path, &row);
    if (!code)
        code = mtc_token_row_encode(fault, model, encoding, &row);
    if (!code)
        code = mtc_token_row_part(fault, model, origin, NULL, true, &row, examples);
    if (!code)
        code = mtc_keep_examples(fault, model, NULL, examples->count, examples);
    mtc_token_row_free(&row);
    return code;
}

static bool has_rows(const MtcModel *model) {
    const MtcSplit *split = mtc_split(model, "train");
    return split && strcmp(model->origin[split->origin].format, "rows") == 0;
}

static bool resizes(const MtcModel *model) {
    const MtcSplit *split = mtc_split(model, "train");
    return split && model->origin[split->origin].resize;
}

int mtc_read_input(MtcFault *fault, const MtcModel *model, MtcReading *reading, const MtcEncoding *encoding,
                   const char *const *path, int paths, MtcExamples *examples) {
    const MtcOrigin *origin = table_origin(model);
    bool wanted[MTC_MAX_FIELDS];
    MtcFileKind kind;
    for (int f = 0; f < model->fields; f++)
        wanted[f] = model->field[f].predicts;
    reading->skipped = 0;
    memset(examples, 0, sizeof *examples);
    int code = mtc_check_inputs(fault, model, path, paths);
    if (!code)
        code = mtc_file_kind(fault, path[0], &kind);
    if (code)
        return code;
    bool text = kind == MTC_FILE_TEXT, rows = text && has_rows(model), windows = text && mtc_windows_origin(model);
    bool one = kind == MTC_FILE_ZIP || kind == MTC_FILE_IMAGES || rows || windows || (text && origin);
    if (one && paths > 1)
        return mtc_fail(fault, MTC_USAGE, "%s holds all fields: give --input once", path[0]);
    if (kind == MTC_FILE_IMAGES && mtc_is_folder(path[0]) && !mtc_predicts_from_image(model))
        return mtc_fail(fault, MTC_BAD_DATA,
                        "%s: is a folder: only images come as one, and this model predicts from none", path[0]);
    if (kind == MTC_FILE_IMAGES)
        return mtc_read_image_input(fault, model, path[0], reading->resize || resizes(model), reading, examples);
    if (kind == MTC_FILE_ZIP)
        return mtc_read_npz(fault, model, path[0], wanted, reading, examples);
    if (windows)
        return read_windows_input(fault, model, encoding, path[0], examples);
    if (rows)
        return read_rows_input(fault, model, reading, encoding, path[0], wanted, examples);
    return one ? read_table_input(fault, model, origin, reading, encoding, path[0], wanted, examples)
               : read_field_files(fault, model, path, paths, reading, examples);
}
