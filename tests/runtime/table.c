/* Reads a table as its arguments say and prints its cells: the parser alone, for tests and bench/tables.
 *
 *     table FILE SEPARATOR QUOTE NAMES WANTED... [--header] [--shorter] [--skip] [--cache] [--time N]
 *
 * NAMES: "a,b,_", or "" for those of the header. WANTED: n:NAME a number, i:NAME an integer, w:NAME a word, d:NAME a date,
 * in capitals where the column may be empty. --time N: seconds of the fastest of N readings, and bytes, instead. */
#include "data/table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 2000 };

static void add_wanted(MtcTableForm *form, MtcTableColumn *column, const char *text) {
    static const char kinds[] = "nidw";
    static const MtcCell cells[] = {MTC_CELL_NUMBER, MTC_CELL_INTEGER, MTC_CELL_DATE, MTC_CELL_WORD};
    MtcTableColumn *c = &column[form->columns++];
    const char kind = (char)(text[0] | 0x20);
    c->name = text + 2;
    c->cell = cells[strchr(kinds, kind) - kinds];
    c->date_format = "%Y-%m-%d";
    c->optional = kind != text[0];
    c->low = 0;
    c->high = 255;
}

static int split_names(char *text, const char **name) {
    int count = 0;
    for (char *word = strtok(text, ","); word; word = strtok(NULL, ","))
        name[count++] = word;
    return count;
}

static void print_cell(const MtcTable *table, const MtcTableColumn *column, int c, int64_t row) {
    int32_t value = ((const int32_t *)table->cell[c])[row];
    if (column->cell == MTC_CELL_NUMBER)
        printf("%a", (double)((const float *)table->cell[c])[row]);
    else if (value == MTC_EMPTY)
        printf("-");
    else if (column->cell == MTC_CELL_WORD)
        printf("%d=%s", value, table->words[c].word[value]);
    else
        printf("%d", value);
    printf("%c", 0);
}

static void print_table(MtcTable *table, const MtcTableForm *form) {
    char place[512];
    for (int64_t row = 0; row < table->rows; row++)
        for (int c = 0; c < form->columns; c++)
            print_cell(table, &form->column[c], c, row);
    mtc_table_place(table, form, table->rows - 1, form->columns - 1, place, sizeof place);
    fprintf(stderr, "%lld bad; %s\n%s\n", (long long)table->bad, table->first_bad, place);
}

static int time_table(MtcFault *fault, const char *path, const MtcTableForm *form, bool cache, int times) {
    double best = 1e30;
    size_t bytes = 0;
    for (int i = 0; i < times; i++) {
        MtcTable table;
        double began = mtc_seconds();
        int code = mtc_table_read(fault, path, form, false, cache, &table);
        double seconds = mtc_seconds() - began;
        if (code)
            return code;
        best = seconds < best ? seconds : best;
        bytes = table.text.file_size;
        mtc_table_free(&table);
    }
    printf("%.9g %zu\n", best, bytes);
    return 0;
}

int main(int argc, char **argv) {
    static MtcTableColumn column[MOST];
    static const char *name[MOST];
    MtcTableForm form = {.separator = argv[2][0], .quote = argv[3][0], .name = name, .column = column};
    MtcFault fault = {0};
    MtcTable table;
    bool skip = false, cache = false;
    int times = 0, code;
    form.names = split_names(argv[4], name);
    for (int i = 5; i < argc; i++) {
        if (strncmp(argv[i], "--", 2) != 0)
            add_wanted(&form, column, argv[i]);
        form.header |= strcmp(argv[i], "--header") == 0;
        form.shorter |= strcmp(argv[i], "--shorter") == 0;
        skip |= strcmp(argv[i], "--skip") == 0;
        cache |= strcmp(argv[i], "--cache") == 0;
        times = strcmp(argv[i], "--time") == 0 ? atoi(argv[++i]) : times;
    }
    code = times ? time_table(&fault, argv[1], &form, cache, times)
                 : mtc_table_read(&fault, argv[1], &form, skip, cache, &table);
    if (!code && !times) {
        print_table(&table, &form);
        mtc_table_free(&table);
    }
    if (code)
        fprintf(stderr, "%s\n", fault.text);
    return code;
}
