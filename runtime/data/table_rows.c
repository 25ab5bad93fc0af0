/* The rows of a table as its text has them. Where a row begins the reader of tables has found (table_parse.c): a row that is
 * wrong, whatever its quotes are, moves no other. */
#include "data/table.h"

#include <stdlib.h>
#include <string.h>

/* Those that are good and those that are not, in the order of the text; then its end. */
static void place_rows(const MtcTable *table, MtcTableRows *rows) {
    int64_t good = 0, bad = 0;
    rows->rows = table->rows + table->bad;
    rows->at = (uint64_t *)mtc_memory(NULL, (size_t)(rows->rows + 1) * sizeof *rows->at);
    for (int64_t i = 0; i < rows->rows; i++) {
        const bool is_bad = good == table->rows || (bad < table->bad && table->bad_at[bad] < table->at[good]);
        const uint64_t at = is_bad ? table->bad_at[bad++] : table->at[good++], before = i ? rows->at[i - 1] : 0;
        rows->at[i] = at < before ? before : at < table->text.size ? at : table->text.size; /* a kept one might lie */
    }
    rows->at[rows->rows] = table->text.size;
}

static char *text_of_field(const MtcTableRows *rows, const MtcSpan *field) {
    char *buffer = NULL;
    size_t capacity = 0;
    const MtcSpan plain = mtc_span_plain(field, rows->form.quote, &buffer, &capacity);
    const size_t length = (size_t)(plain.end - plain.begin);
    char *copy = (char *)mtc_memory(NULL, length + 1);
    memcpy(copy, plain.begin, length);
    copy[length] = 0;
    free(buffer);
    return copy;
}

/* The row of the text that begins at `from`. False: it is wrong, or has more or fewer fields than columns. */
static bool scan_source_row(const MtcTableRows *rows, size_t from, size_t to, MtcSpan *field) {
    MtcScan scan;
    MtcRow row;
    memset(&row, 0, sizeof row);
    row.capacity = rows->columns;
    row.field = field;
    mtc_scan_begin(&scan, &rows->form, rows->text + from, rows->text + to);
    if (!mtc_scan_row(&scan, &row) || row.flaw.kind != MTC_FLAW_NONE || row.fields != rows->columns)
        return false;
    for (int i = 0; i < rows->columns && row.stop; i++)
        field[i] = mtc_row_field(&row, i);
    return true;
}

static void name_source_columns(MtcTableRows *rows, size_t begin) {
    MtcSpan *field = (MtcSpan *)mtc_memory(NULL, (size_t)(rows->columns + 1) * sizeof *field);
    const bool header = rows->form.header && scan_source_row(rows, 0, begin, field);
    rows->name = (char **)mtc_memory(NULL, (size_t)rows->columns * sizeof *rows->name);
    for (int i = 0; i < rows->columns; i++) {
        const char *given = i < rows->form.names ? rows->form.name[i] : "_";
        MtcText name = {NULL, 0, 0};
        if (!header && strcmp(given, "_") == 0)
            mtc_text_add(&name, "column[%d]", i);
        else if (!header)
            mtc_text_add(&name, "%s", given);
        rows->name[i] = header ? text_of_field(rows, &field[i]) : name.at;
    }
    free(field);
}

int mtc_table_rows(MtcFault *fault, MtcTable *table, const MtcTableForm *form, MtcTableRows **result) {
    MtcTableText *text = &table->text;
    int *position = NULL, columns;
    size_t begin;
    int code = mtc_text_measure(fault, text);
    if (!code)
        code = mtc_text_know(fault, text, text->size);
    if (!code)
        code = mtc_table_layout(fault, text, form, &position, &columns, &begin);
    free(position);
    if (code)
        return code;
    MtcTableRows *rows = *result = (MtcTableRows *)mtc_zeroed(sizeof *rows);
    rows->form = *form;
    rows->columns = columns;
    rows->text = (char *)mtc_memory(NULL, text->size + 1);
    memcpy(rows->text, text->bytes, text->size);
    place_rows(table, rows);
    name_source_columns(rows, begin);
    rows->form.name = NULL;
    rows->form.column = NULL;
    return 0;
}

void mtc_table_row_fields(const MtcTableRows *rows, int64_t row, char **field) {
    const size_t from = rows->at[row], to = rows->at[row + 1];
    MtcSpan *span = (MtcSpan *)mtc_memory(NULL, (size_t)(rows->columns + 1) * sizeof *span);
    const bool whole = scan_source_row(rows, from, to, span);
    if (!whole) {
        memset(span, 0, (size_t)rows->columns * sizeof *span);
        span[0].begin = rows->text + from;
        span[0].end = rows->text + to;
        while (span[0].end > span[0].begin && (span[0].end[-1] == '\n' || span[0].end[-1] == '\r'))
            span[0].end--;
    }
    for (int i = 0; i < rows->columns; i++)
        field[i] = span[i].begin ? text_of_field(rows, &span[i]) : strdup("");
    free(span);
}

void mtc_table_rows_free(MtcTableRows *rows) {
    if (!rows)
        return;
    mtc_free_strings(rows->name, rows->columns);
    free(rows->at);
    free(rows->text);
    free(rows);
}
