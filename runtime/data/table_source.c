/* Tables as sources of examples: tsv("..."), csv("..."), and tables to predict. */
#include "data/table_source.h"

#include "data/table_fields.h"

#include <stdlib.h>

static int open_table(MtcFault *fault, MtcReading *reading, MtcOpened *opened) {
    char *path;
    int code = mtc_find_data(fault, opened->model->source, reading->folder, opened->origin->path[0], &path);
    if (code)
        return code;
    MtcFieldTable *fields = (MtcFieldTable *)mtc_zeroed(sizeof *fields);
    code = mtc_field_table_open(fault, opened->model, opened->origin, path, reading, NULL, false, fields);
    free(path);
    if (code)
        free(fields);
    else
        opened->kept = fields;
    return code;
}

static void close_table(void *kept) {
    mtc_field_table_free((MtcFieldTable *)kept);
    free(kept);
}

/* The rows that a part has, among those that are not left out. */
static int select_rows(MtcFault *fault, const MtcSplitPart *part, const MtcOpened *opened, int64_t **row,
                       int64_t *rows) {
    const MtcFieldTable *fields = (const MtcFieldTable *)opened->kept;
    int code = mtc_part_rows(fault, part, opened->name, fields->rows, row, rows);
    for (int64_t i = 0; i < *rows; i++)
        (*row)[i] = fields->row[(*row)[i]];
    return code;
}

static int learn_columns(MtcFault *fault, const MtcSplitPart *train, const MtcOpened *opened, MtcEncoding *encoding) {
    int64_t *row, rows;
    int code = select_rows(fault, train, opened, &row, &rows);
    if (!code)
        code = mtc_field_table_learn(fault, (const MtcFieldTable *)opened->kept, row, rows, encoding);
    free(row);
    return code;
}

static int read_table_part(MtcFault *fault, const MtcSplitPart *part, const MtcEncoding *encoding, MtcReading *reading,
                           MtcOpened *opened, MtcExamples *examples) {
    int64_t *row, rows;
    int code = select_rows(fault, part, opened, &row, &rows);
    if (!code)
        code = mtc_field_table_encode(fault, (MtcFieldTable *)opened->kept, encoding, reading, row, rows, examples);
    free(row);
    return code;
}

/* ---- to predict ---- */

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

int mtc_read_table(MtcFault *fault, const MtcAsked *asked, const MtcEncoding *encoding, MtcReading *reading,
                   MtcExamples *examples) {
    MtcFieldTable fields;
    const bool cache = reading->cache;
    reading->cache = cache && !reading->skip_bad_rows; /* a kept table does not say where bad rows were */
    int code =
        mtc_field_table_open(fault, asked->model, asked->origin, asked->path, reading, asked->wanted, true, &fields);
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

/* ---- the sources ---- */

const MtcSource mtc_source_tsv = {.open = open_table,
                                  .learn = learn_columns,
                                  .read = read_table_part,
                                  .close = close_table,
                                  .input = mtc_read_table,
                                  .example = "new.tsv",
                                  .parsed = true};
const MtcSource mtc_source_csv = {.open = open_table,
                                  .learn = learn_columns,
                                  .read = read_table_part,
                                  .close = close_table,
                                  .input = mtc_read_table,
                                  .example = "new.csv",
                                  .parsed = true};
