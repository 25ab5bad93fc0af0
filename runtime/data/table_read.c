/* A table from its file: which columns it has, its rows, or those that were kept the last time. */
#include "data/table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the header ---- */

/* Scans the first row, into memory for so many fields and one. */
static void scan_first(const MtcTableText *text, const MtcTableForm *form, int capacity, MtcSpan *field, MtcScan *scan,
                       MtcRow *row) {
    memset(row, 0, sizeof *row);
    row->capacity = capacity;
    row->field = field;
    mtc_scan_begin(scan, form, text->bytes, text->bytes + text->known);
    mtc_scan_row(scan, row);
}

/* The texts of the first row's fields; free each and the array. */
static char **header_names(const MtcTableText *text, const MtcTableForm *form, int count) {
    MtcScan scan;
    MtcRow row;
    MtcSpan *field = (MtcSpan *)mtc_memory(NULL, (size_t)(count + 1) * sizeof *field);
    char *plain = NULL, **name = (char **)mtc_memory(NULL, (size_t)count * sizeof *name);
    size_t plain_size = 0;
    scan_first(text, form, count, field, &scan, &row);
    for (int i = 0; i < count; i++) {
        MtcSpan written = mtc_row_field(&row, i), span = mtc_span_plain(&written, form->quote, &plain, &plain_size);
        size_t length = (size_t)(span.end - span.begin);
        name[i] = (char *)mtc_memory(NULL, length + 1);
        memcpy(name[i], span.begin, length);
        name[i][length] = 0;
    }
    free(plain);
    free(field);
    return name;
}

/* The first line is none of names: it is the first row. */
static bool are_numbers(const char *const *name, int count) {
    for (int i = 0; i < count; i++) {
        char *end;
        strtod(name[i], &end);
        if (end == name[i] || *end)
            return false;
    }
    return count > 0;
}

static int lacks_column(MtcFault *fault, const char *path, const char *wanted, const char *const *name, int count) {
    const char *nearest = mtc_nearest(wanted, name, count);
    const bool unnamed = are_numbers(name, count);
    MtcText names = {NULL, 0, 0};
    mtc_fail(fault, MTC_BAD_DATA, "%s:1: no column is called '%s'%s%s%s%s", path, wanted,
             nearest ? "; did you mean '" : "", nearest ? mtc_shown(nearest) : "", nearest ? "'?" : "",
             unnamed ? ": the line has numbers, and no names" : "");
    for (int i = 0; i < count && i < 40; i++)
        mtc_text_add(&names, "%s'%s'", i ? ", " : "", mtc_shown(name[i]));
    if (unnamed)
        mtc_note(fault, "where there is no line of names, the model file gives them: header = false, columns = [...]");
    else
        mtc_note(fault, "the columns are %s%s", names.at, count > 40 ? ", ..." : "");
    free(names.at);
    return fault->code;
}

static int find_column(MtcFault *fault, const char *path, const char *wanted, const char *const *name, int count,
                       int *position) {
    int found = -1;
    for (int i = 0; i < count; i++) {
        if (strcmp(name[i], wanted) != 0)
            continue;
        if (found >= 0)
            return mtc_fail(fault, MTC_BAD_DATA, "%s:1: columns %d and %d are both called '%s'", path, found + 1, i + 1,
                            wanted);
        found = i;
    }
    *position = found;
    return found >= 0 ? 0 : lacks_column(fault, path, wanted, name, count);
}

/* The names that the model gives are those of the file, where it has a header. */
static int check_names(MtcFault *fault, const char *path, const MtcTableForm *form, const char *const *name,
                       int count) {
    for (int i = 0; i < form->names && i < count; i++)
        if (strcmp(form->name[i], "_") != 0 && strcmp(form->name[i], name[i]) != 0)
            return mtc_fail(fault, MTC_BAD_DATA, "%s:1: column %d is called '%s', expected '%s'", path, i + 1,
                            mtc_shown(name[i]), form->name[i]);
    if (form->names != count)
        return mtc_fail(fault, MTC_BAD_DATA, "%s:1: the header has %d columns, expected %d", path, count, form->names);
    return 0;
}

static int find_positions(MtcFault *fault, const char *path, const MtcTableForm *form, const char *const *name,
                          int count, int *position) {
    bool given = form->header && form->names && !form->shorter;
    int code = given ? check_names(fault, path, form, name, count) : 0;
    for (int c = 0; c < form->columns && !code; c++)
        code = find_column(fault, path, form->column[c].name, name, count, &position[c]);
    return code;
}

static int check_header(MtcFault *fault, const MtcTableText *text, const MtcRow *row) {
    char place[512];
    const char *bad = mtc_text_bad(row->begin, row->end);
    MtcFlaw flaw = row->flaw;
    if (bad) {
        flaw.kind = MTC_FLAW_BYTES;
        flaw.span.begin = flaw.span.end = bad;
    }
    flaw.column = NULL;
    if (flaw.kind == MTC_FLAW_NONE)
        return 0;
    mtc_flaw_text(text, &flaw, place, sizeof place);
    return mtc_fail(fault, MTC_BAD_DATA, "%s", place);
}

/* Without a header: the first row may lack last columns that nobody wants. */
static int count_fields(MtcFault *fault, const MtcTableText *text, const MtcTableForm *form, const int *position,
                        int found) {
    int needed = 0;
    for (int c = 0; c < form->columns; c++)
        needed = position[c] >= needed ? position[c] + 1 : needed;
    if (form->shorter && found < needed)
        return mtc_fail(fault, MTC_BAD_DATA, "%s:1: the row has %d column%s, expected %d, or at least the first %d",
                        text->path, found, found == 1 ? "" : "s", form->names, needed);
    return 0;
}

static int layout_by_header(MtcFault *fault, const MtcTableText *text, const MtcTableForm *form, const MtcRow *row,
                            size_t begin, int *position) {
    int code = check_header(fault, text, row);
    if (code)
        return code;
    char **name = header_names(text, form, row->fields);
    code = find_positions(fault, text->path, form, (const char *const *)name, row->fields, position);
    mtc_free_strings(name, row->fields);
    if (!code && begin >= text->size)
        code = mtc_fail(fault, MTC_BAD_DATA, "%s: has a header, but no rows", text->path);
    return code;
}

int mtc_table_layout(MtcFault *fault, const MtcTableText *text, const MtcTableForm *form, int **position, int *fields,
                     size_t *begin) {
    MtcSpan unused;
    MtcScan scan;
    MtcRow row;
    scan_first(text, form, 0, &unused, &scan, &row);
    *position = (int *)mtc_memory(NULL, (size_t)form->columns * sizeof **position);
    *begin = form->header ? (size_t)(scan.at - text->bytes) : 0;
    *fields = form->header || (form->shorter && row.fields < form->names) ? row.fields : form->names;
    if (form->header)
        return layout_by_header(fault, text, form, &row, *begin, *position);
    int code = find_positions(fault, text->path, form, form->name, form->names, *position);
    return code ? code : count_fields(fault, text, form, *position, row.fields);
}

/* ---- advice ---- */

/* A first line that is one column may have its columns separated by another character than the model says. */
static void note_separator(MtcFault *fault, const MtcTableText *text, const MtcTableForm *form) {
    static const char *const shown[] = {";", ",", "\\t"};
    MtcSpan unused;
    MtcScan scan;
    MtcRow row;
    scan_first(text, form, 0, &unused, &scan, &row);
    for (int i = 0; i < 3 && row.fields == 1; i++) {
        char other = shown[i][0] == '\\' ? '\t' : shown[i][0];
        if (other != form->separator && memchr(row.begin, other, (size_t)(row.end - row.begin))) {
            mtc_note(fault, "the first line is one column; are the columns separated by \"%s\"? separator = \"%s\"",
                     shown[i], shown[i]);
            return;
        }
    }
}

/* The name of a column where a number or a date should be: no digit, or the very name. */
static bool is_name(const char *text, const MtcTableColumn *column) {
    MtcSpan span = {text, text + strlen(text), false};
    return strcmp(text, column->name) == 0 || (!mtc_is_missing(&span) && !strpbrk(text, "0123456789"));
}

/* Of a table without a header: has its first row names where there should be numbers and dates? */
static void note_header(MtcFault *fault, const MtcTableText *text, const MtcTableForm *form, const int *position) {
    MtcSpan unused;
    MtcScan scan;
    MtcRow row;
    scan_first(text, form, 0, &unused, &scan, &row);
    char **name = header_names(text, form, row.fields);
    int names = 0;
    bool all = row.fields == form->names;
    for (int c = 0; c < form->columns && all; c++)
        if (form->column[c].cell != MTC_CELL_WORD) {
            all = is_name(name[position[c]], &form->column[c]);
            names += all;
        }
    mtc_free_strings(name, row.fields);
    if (all && names)
        mtc_note(fault, "the first line looks like a header, and the model says that there is none: header = true");
}

/* ---- tables ---- */

/* Knows the first row: a line, unless it has quotes. */
static int know_row(MtcFault *fault, MtcTableText *text, const MtcTableForm *form) {
    int code = mtc_text_measure(fault, text);
    if (!code)
        code = mtc_text_know(fault, text, mtc_text_line(text, 0));
    if (!code && form->quote && memchr(text->bytes, form->quote, text->known))
        code = mtc_text_know(fault, text, text->size);
    return code;
}

static int parse_text(MtcFault *fault, const MtcTableForm *form, bool skip_bad, MtcTable *table) {
    int *position = NULL, fields, code = know_row(fault, &table->text, form);
    size_t begin;
    if (code)
        return code;
    code = mtc_table_layout(fault, &table->text, form, &position, &fields, &begin);
    if (!code) {
        code = mtc_table_parse(fault, form, position, fields, begin, skip_bad, table);
        if (code && !form->header)
            note_header(fault, &table->text, form, position);
    }
    if (code)
        note_separator(fault, &table->text, form);
    free(position);
    return code;
}

/* A smaller file is parsed in the milliseconds that its kept table would take to read and to write: whoever predicts a few
 * rows finds no other file beside theirs. Tests keep small ones. */
static bool is_worth_keeping(const MtcTableText *text) {
    const char *from = getenv("MTC_TABLE_KEPT_FROM");
    return text->file_size >= (from ? strtoull(from, NULL, 10) : 1 << 20);
}

int mtc_table_read(MtcFault *fault, const char *path, const MtcTableForm *form, bool skip_bad, bool cache,
                   MtcTable *table) {
    MtcDigest content = {{0, 0}};
    memset(table, 0, sizeof *table);
    int code = mtc_text_open(fault, path, &table->text);
    cache = cache && !code && is_worth_keeping(&table->text);
    if (!code && cache)
        code = mtc_text_digest(fault, &table->text, &content);
    if (!code && cache && mtc_cache_load(table, form, content, skip_bad))
        return 0;
    if (!code)
        code = parse_text(fault, form, skip_bad, table);
    if (code)
        mtc_table_free(table);
    else if (cache)
        mtc_cache_store(table, form, content);
    return code;
}

void mtc_table_place(MtcTable *table, const MtcTableForm *form, int64_t row, int column, char *place, size_t size) {
    MtcFault unused;
    MtcScan scan;
    MtcRow fields;
    int *position = NULL, count;
    size_t begin;
    snprintf(place, size, "%s: row %lld: ", table->text.path, (long long)row + 1);
    if (mtc_text_measure(&unused, &table->text) || mtc_text_know(&unused, &table->text, table->text.size) ||
        mtc_table_layout(&unused, &table->text, form, &position, &count, &begin)) {
        free(position);
        return;
    }
    const char *end = table->text.bytes + table->text.size;
    const char *at =
        table->text.bytes + (table->at[row] < table->text.size ? table->at[row] : 0); /* a kept one might lie */
    memset(&fields, 0, sizeof fields);
    fields.capacity = count;
    fields.field = (MtcSpan *)mtc_memory(NULL, (size_t)(count + 1) * sizeof *fields.field);
    mtc_scan_begin(&scan, form, at, end);
    if (mtc_scan_row(&scan, &fields) && fields.fields == count)
        at = mtc_row_field(&fields, position[column]).begin;
    mtc_place_text(&table->text, at, place, size);
    free(fields.field);
    free(position);
}
