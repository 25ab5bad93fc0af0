/* Tables as sources of examples: tsv("..."), csv("..."), and tables to predict. */
#include "data/table_source.h"

#include "data/table_fields.h"

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

int mtc_read_table_input(MtcFault *fault, const MtcModel *model, const MtcOrigin *origin, MtcReading *reading,
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
