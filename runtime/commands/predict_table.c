#include "commands/predict_table.h"

#include "base/ending.h"
#include "data/table.h"
#include "session/evaluate.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool mtc_is_table_name(const char *path) {
    return mtc_ends_with(path, ".csv") || mtc_ends_with(path, ".tsv");
}

bool mtc_is_prediction_header(const char *line) {
    static const char *const columns[] = {"prediction\n", "prediction[", "class[", "p("};
    for (const char *at = line; (at = strpbrk(at, ",\t")) != NULL;) {
        at += 1 + (at[1] == '"');
        for (size_t i = 0; i < sizeof columns / sizeof *columns; i++)
            if (strncmp(at, columns[i], strlen(columns[i])) == 0)
                return true;
    }
    return false;
}

/* ---- writing ---- */

typedef struct CellTable {
    MtcText text;
    char separator;
    bool begun; /* the line */
} CellTable;

/* With quotes where a reader would take the text apart. */
static void put_cell(CellTable *table, const char *field) {
    if (table->begun)
        mtc_text_add(&table->text, "%c", table->separator);
    table->begun = true;
    if (!strpbrk(field, "\"\r\n") && !strchr(field, table->separator)) {
        mtc_text_add(&table->text, "%s", field);
        return;
    }
    mtc_text_add(&table->text, "\"");
    for (const char *c = field; *c; c++)
        mtc_text_add(&table->text, *c == '"' ? "\"\"" : "%c", *c);
    mtc_text_add(&table->text, "\"");
}

static void put_cell_number(CellTable *table, double value) {
    char digits[32];
    snprintf(digits, sizeof digits, isnan(value) ? "nan" : "%.9g", value);
    put_cell(table, digits);
}

static void put_indexed(CellTable *table, const char *name, int64_t index) {
    MtcText text = {NULL, 0, 0};
    mtc_text_add(&text, "%s[%lld]", name, (long long)index);
    put_cell(table, text.at);
    free(text.at);
}

static void end_line(CellTable *table) {
    mtc_text_add(&table->text, "\n");
    table->begun = false;
}

/* ---- what a row is of ---- */

static void put_source_names(CellTable *table, const MtcTableRows *source, char *const *file) {
    if (!source)
        put_cell(table, file ? "file" : "example");
    for (int i = 0; source && i < source->columns; i++)
        put_cell(table, source->name[i]);
}

static void put_fields(CellTable *table, const MtcTableRows *source, int64_t row) {
    char **field = (char **)mtc_memory(NULL, (size_t)source->columns * sizeof *field);
    mtc_table_row_fields(source, row, field);
    for (int i = 0; i < source->columns; i++)
        put_cell(table, field[i]);
    mtc_free_strings(field, source->columns);
}

static void put_source(CellTable *table, const MtcTableRows *source, char *const *file, int64_t row) {
    char number[24];
    snprintf(number, sizeof number, "%lld", (long long)row);
    if (source)
        put_fields(table, source, row);
    else
        put_cell(table, file ? file[row] : number);
}

/* ---- what was predicted ---- */

typedef struct Shape {
    int64_t elements, classes; /* classes 0: numbers, not classes */
    const MtcMeaning *words;
} Shape;

/* The last class may be the one of words that training does not have; others without a word are numbers. */
static const char *word_of(const Shape *shape, int64_t class_, char *digits, size_t size) {
    if (shape->words && class_ < shape->words->words)
        return shape->words->word[class_];
    if (shape->words && class_ == shape->classes - 1)
        return "other";
    snprintf(digits, size, "%lld", (long long)class_);
    return digits;
}

/* A class and its probabilities; of several positions the class of each. */
static void put_names(CellTable *table, const Shape *shape) {
    char digits[24];
    if (!shape->classes) {
        for (int64_t j = 0; j < shape->elements; j++)
            if (shape->elements == 1)
                put_cell(table, "prediction");
            else
                put_indexed(table, "prediction", j);
        return;
    }
    if (shape->elements > shape->classes) {
        for (int64_t j = 0; j < shape->elements / shape->classes; j++)
            put_indexed(table, "class", j);
        return;
    }
    put_cell(table, "class");
    for (int64_t j = 0; j < shape->classes; j++) {
        MtcText name = {NULL, 0, 0};
        mtc_text_add(&name, "p(%s)", word_of(shape, j, digits, sizeof digits));
        put_cell(table, name.at);
        free(name.at);
    }
}

static void put_class(CellTable *table, const Shape *shape, const float *row) {
    char digits[24];
    int64_t best = 0;
    for (int64_t j = 1; j < shape->classes; j++)
        if (row[j] > row[best])
            best = j;
    put_cell(table, isnan(row[best]) ? "nan" : word_of(shape, best, digits, sizeof digits));
}

static void put_prediction(CellTable *table, const Shape *shape, const float *row) {
    const int64_t positions = shape->classes ? shape->elements / shape->classes : 0;
    for (int64_t i = 0; i < positions; i++)
        put_class(table, shape, row + i * shape->classes);
    for (int64_t j = 0; j < shape->elements && positions <= 1; j++)
        put_cell_number(table, (double)row[j]);
}

static int write_table(MtcFault *fault, const char *path, const MtcText *text) {
    MtcOutput *output;
    int code = mtc_output_open(fault, path, &output);
    if (code)
        return code;
    code = mtc_output_write(fault, output, text->at, text->length);
    if (!code)
        return mtc_output_commit(fault, output);
    mtc_output_discard(output);
    return code;
}

int mtc_write_prediction_table(MtcFault *fault, const MtcSession *session, const char *path, const float *values,
                               int64_t rows, const MtcMeaning *words, const MtcTableRows *source, char *const *file) {
    const MtcModel *model = session->model;
    const int rank = model->prediction_rank;
    Shape shape = {mtc_prediction_elements(model), 0, words};
    CellTable table = {{NULL, 0, 0}, mtc_ends_with(path, ".csv") ? ',' : '\t', false};
    if (model->prediction_is_classes)
        shape.classes = rank ? model->prediction_dim[rank - 1] : 1;
    if (source && source->rows != rows)
        return mtc_fail(fault, MTC_INTERNAL, "%lld rows were read, and %lld are to be written", (long long)source->rows,
                        (long long)rows);
    put_source_names(&table, source, file);
    put_names(&table, &shape);
    end_line(&table);
    for (int64_t i = 0; i < rows; i++, values += shape.elements) {
        put_source(&table, source, file, i);
        put_prediction(&table, &shape, values);
        end_line(&table);
    }
    int code = write_table(fault, path, &table.text);
    free(table.text.at);
    return code;
}
