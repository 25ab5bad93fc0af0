#include "data/table_fields.h"
#include "data/series.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- which columns ---- */

bool mtc_is_words(const MtcField *field) {
    return field->classes && field->rank == 0 && field->columns.part == MTC_PART_VALUE;
}

static MtcTableColumn column_of(const MtcField *field, int i) {
    const MtcColumns *columns = &field->columns;
    MtcTableColumn column = {columns->name[i], MTC_CELL_NUMBER, "", columns->missing != MTC_MISSING_ERROR, 0, 0};
    if (columns->part != MTC_PART_VALUE) {
        column.cell = MTC_CELL_DATE;
        column.date_format = columns->date_format;
    } else if (mtc_is_words(field))
        column.cell = MTC_CELL_WORD;
    else if (field->classes) {
        column.cell = MTC_CELL_INTEGER;
        column.high = field->classes - 1;
    } else if (field->type != MTC_F32) {
        column.cell = MTC_CELL_INTEGER;
        column.low = field->type == MTC_I32 ? -INT32_MAX : 0;
        column.high = field->type == MTC_I32 ? INT32_MAX : field->type == MTC_BOOL ? 1 : UINT8_MAX;
    }
    return column;
}

static bool same_column(const MtcTableColumn *a, const MtcTableColumn *b) {
    return strcmp(a->name, b->name) == 0 && a->cell == b->cell && a->optional == b->optional && a->low == b->low &&
           a->high == b->high && strcmp(a->date_format, b->date_format) == 0;
}

/* Fields that use one column in one way share it. */
static int add_column(MtcFieldTable *fields, const MtcTableColumn *column) {
    for (int i = 0; i < fields->form.columns; i++)
        if (same_column(&fields->column[i], column))
            return i;
    fields->column[fields->form.columns] = *column;
    return fields->form.columns++;
}

static void add_columns(MtcFieldTable *fields, const bool *wanted) {
    const MtcModel *model = fields->model;
    size_t most = 0;
    for (int f = 0; f < model->fields; f++)
        most += (size_t)model->field[f].columns.count;
    fields->column = (MtcTableColumn *)mtc_memory(NULL, most * sizeof *fields->column);
    for (int f = 0; f < model->fields; f++) {
        const MtcField *field = &model->field[f];
        if (wanted && !wanted[f])
            continue;
        fields->of[f] = (int *)mtc_memory(NULL, (size_t)field->columns.count * sizeof *fields->of[f]);
        for (int i = 0; i < field->columns.count; i++) {
            MtcTableColumn column = column_of(field, i);
            fields->of[f][i] = add_column(fields, &column);
        }
    }
    fields->form.column = fields->column;
}

/* ---- cells ---- */

int32_t mtc_cell_integer(const MtcFieldTable *fields, int f, int i, int64_t row) {
    return ((const int32_t *)fields->table.cell[fields->of[f][i]])[row];
}

static float cell_float(const MtcFieldTable *fields, int f, int i, int64_t row) {
    return ((const float *)fields->table.cell[fields->of[f][i]])[row];
}

static bool cell_is_number(const MtcFieldTable *fields, int f, int i) {
    return fields->column[fields->of[f][i]].cell == MTC_CELL_NUMBER;
}

bool mtc_cell_empty(const MtcFieldTable *fields, int f, int i, int64_t row) {
    return cell_is_number(fields, f, i) ? isnan(cell_float(fields, f, i, row)) != 0
                                        : mtc_cell_integer(fields, f, i, row) == MTC_EMPTY;
}

/* What the field is made of, where it is not a word: the number, or the part of the date. The cell is not empty. */
double mtc_cell_value(const MtcFieldTable *fields, int f, int i, int64_t row) {
    const MtcPart part = fields->model->field[f].columns.part;
    if (cell_is_number(fields, f, i))
        return (double)cell_float(fields, f, i, row);
    int32_t value = mtc_cell_integer(fields, f, i, row);
    if (part == MTC_PART_VALUE)
        return value;
    MtcDay day = mtc_day(value);
    return part == MTC_PART_DAY_OF_YEAR ? day.of_year : part == MTC_PART_MONTH ? day.month : day.weekday;
}

/* ---- opening ---- */

static bool is_left_out(const MtcFieldTable *fields, int64_t row) {
    for (int f = 0; f < fields->model->fields; f++) {
        const MtcColumns *columns = &fields->model->field[f].columns;
        if (columns->missing != MTC_MISSING_SKIP || !fields->of[f])
            continue;
        for (int i = 0; i < columns->count; i++)
            if (mtc_cell_empty(fields, f, i, row))
                return true;
    }
    return false;
}

static int keep_rows(MtcFault *fault, MtcFieldTable *fields) {
    const int64_t rows = fields->table.rows;
    const char *path = fields->table.text.path;
    if (rows > INT32_MAX)
        return mtc_fail(fault, MTC_BAD_DATA, "%s: holds %lld rows; at most %d can be used", path, (long long)rows,
                        INT32_MAX);
    fields->row = (int64_t *)mtc_memory(NULL, (size_t)rows * sizeof *fields->row);
    for (int64_t row = 0; row < rows; row++)
        if (!is_left_out(fields, row))
            fields->row[fields->rows++] = row;
    if (fields->rows == 0)
        return mtc_fail(fault, MTC_BAD_DATA,
                        "%s: each of its %lld rows lacks a value that the model says to skip rows without", path,
                        (long long)rows);
    return 0;
}

void mtc_count_bad(MtcReading *reading, int64_t bad, const char *first) {
    if (bad && reading->skipped == 0)
        snprintf(reading->first_bad, sizeof reading->first_bad, "%.511s", first);
    reading->skipped += bad;
}

int mtc_field_table_open(MtcFault *fault, const MtcModel *model, const MtcOrigin *origin, const char *path,
                         MtcReading *reading, const bool *wanted, bool shorter, MtcFieldTable *fields) {
    memset(fields, 0, sizeof *fields);
    fields->model = model;
    fields->origin = origin;
    fields->form.header = origin->header;
    fields->form.names = origin->columns;
    fields->form.name = origin->column;
    fields->form.shorter = shorter;
    fields->form.series = mtc_is_series(model);
    fields->form.separator = origin->separator;
    fields->form.quote = origin->quote;
    add_columns(fields, wanted);
    int code = mtc_table_read(fault, path, &fields->form, reading->skip_bad_rows, reading->cache, &fields->table);
    if (!code) {
        mtc_count_bad(reading, fields->table.bad, fields->table.first_bad);
        code = keep_rows(fault, fields);
    }
    if (code)
        mtc_field_table_free(fields);
    return code;
}

void mtc_field_table_free(MtcFieldTable *fields) {
    for (int f = 0; f < MTC_MAX_FIELDS; f++)
        free(fields->of[f]);
    free(fields->column);
    free(fields->row);
    mtc_table_free(&fields->table);
    memset(fields, 0, sizeof *fields);
}

/* ---- words ---- */

int mtc_label_of(const char *word, int classes) {
    MtcSpan span = {word, word + strlen(word), false};
    double value;
    return mtc_parse_number(&span, span.end, &value) && value == floor(value) && value >= 0 && value < classes
               ? (int)value
               : -1;
}

int mtc_word_classes(const MtcField *field) {
    return field->classes - field->columns.unseen_other;
}

const char *mtc_missing_word(const MtcColumns *columns) {
    if (columns->missing != MTC_MISSING_VALUE)
        return NULL;
    return columns->missing_text ? columns->missing_text : mtc_number(columns->missing_value);
}
