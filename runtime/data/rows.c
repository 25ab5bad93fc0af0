/* Rows of numbers that are written in the model file; to predict, in a table. */
#include "data/table_source.h"

#include <string.h>

static void put_number(const MtcField *field, void *values, int64_t at, double value) {
    if (field->type == MTC_F32)
        ((float *)values)[at] = (float)value;
    else if (field->classes)
        mtc_put_class(field, values, at, (int64_t)value);
    else if (field->type == MTC_I32)
        ((int32_t *)values)[at] = (int32_t)value;
    else
        ((uint8_t *)values)[at] = (uint8_t)value;
}

static int open_rows(MtcFault *fault, MtcReading *reading, MtcOpened *opened) {
    const MtcModel *model = opened->model;
    const MtcOrigin *origin = opened->origin;
    MtcExamples *examples = &opened->arrays;
    int64_t width = 0, from = 0;
    for (int f = 0; f < model->fields; f++)
        width += model->field[f].elements;
    (void)fault, (void)reading;
    examples->count = origin->rows;
    for (int f = 0; f < model->fields; f++) {
        const MtcField *field = &model->field[f];
        int64_t n = field->elements;
        void *values = examples->field[f] = mtc_memory(NULL, (size_t)(origin->rows * n) * mtc_type_size(field->type));
        for (int64_t i = 0; i < origin->rows * n; i++)
            put_number(field, values, i, origin->row[i / n * width + from + i % n]);
        from += n;
    }
    return 0;
}

/* ---- to predict ---- */

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
static int read_rows_asked(MtcFault *fault, const MtcAsked *asked, const MtcEncoding *encoding, MtcReading *reading,
                           MtcExamples *examples) {
    const MtcModel *model = asked->model;
    MtcModel table = *model;
    MtcAsked in_table = *asked;
    MtcOrigin origin;
    MtcField field[MTC_MAX_FIELDS];
    int columns;
    char **name = element_names(model, &columns), **next = name;
    memset(&origin, 0, sizeof origin);
    origin.columns = columns;
    origin.column = (const char *const *)name;
    origin.separator = first_line_has(asked->path, '\t') ? '\t' : ',';
    for (int f = 0; f < model->fields; f++) {
        field[f] = model->field[f];
        field[f].columns.count = (int)field[f].elements;
        field[f].columns.name = (const char *const *)next;
        field[f].columns.date_format = "";
        next += field[f].elements;
    }
    table.field = field;
    in_table.model = &table;
    in_table.origin = &origin;
    int code = mtc_read_table(fault, &in_table, encoding, reading, examples);
    mtc_free_strings(name, columns);
    return code;
}

const MtcSource mtc_source_rows = {.open = open_rows, .input = read_rows_asked, .example = "new.csv"};
