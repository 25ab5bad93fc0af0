#include "data/series.h"

#include <string.h>

bool mtc_is_series(const MtcModel *model) {
    return model->fields > 0 && model->field[0].steps > 0;
}

/* The first axis is the rows'. A row keeps `steps`: messages say of which field it is one. */
static MtcField field_of_row(const MtcField *field) {
    MtcField row = *field;
    row.elements = mtc_row_elements(field);
    if (field->rank > 0) {
        row.rank--;
        memmove(row.dim, row.dim + 1, (size_t)row.rank * sizeof *row.dim);
    }
    return row;
}

const MtcModel *mtc_row_model(const MtcModel *model, MtcRowModel *rows) {
    if (!mtc_is_series(model))
        return model;
    rows->model = *model;
    rows->model.field = rows->field;
    for (int f = 0; f < model->fields; f++)
        rows->field[f] = field_of_row(&model->field[f]);
    return &rows->model;
}

int mtc_check_series(MtcFault *fault, const MtcModel *model, const MtcReading *reading) {
    if (!mtc_is_series(model) || !reading->skip_bad_rows)
        return 0;
    mtc_fail(fault, MTC_USAGE, "the examples are windows of rows: one that is left out tears those that it is in");
    mtc_note(fault,
             "leave --bad-rows out, which shows the first bad row; missing = 0 in the model lets a number stand in");
    return fault->code;
}

/* ---- windows ---- */

/* Rows [begin, end) of a window, that the fields which were read have; others are NULL. */
typedef struct WindowRows {
    int64_t begin, end;
} WindowRows;

static WindowRows extent_of_windows(const MtcModel *model, const MtcExamples *rows) {
    WindowRows window = {INT64_MAX, 0};
    for (int f = 0; f < model->fields; f++) {
        const MtcField *field = &model->field[f];
        if (!rows->field[f])
            continue;
        window.begin = field->from < window.begin ? field->from : window.begin;
        window.end = field->from + field->steps > window.end ? field->from + field->steps : window.end;
    }
    return window;
}

/* `count` windows: the rows `first`, first + stride, ... and what follows them. */
static void windows_of_rows(const MtcModel *model, int64_t begin, int64_t first, int64_t stride, int64_t count,
                            MtcExamples *examples) {
    MtcExamples windows;
    memset(&windows, 0, sizeof windows);
    windows.count = count;
    for (int f = 0; f < model->fields; f++) {
        const MtcField *field = &model->field[f];
        const size_t bytes = mtc_example_bytes(field), row = bytes / (size_t)field->steps;
        if (!examples->field[f])
            continue;
        const char *from = (const char *)examples->field[f] + (size_t)(first + field->from - begin) * row;
        char *to = (char *)mtc_memory(NULL, (size_t)count * bytes);
        windows.field[f] = to;
        for (int64_t i = 0; i < count; i++)
            memcpy(to + (size_t)i * bytes, from + (size_t)(i * stride) * row, bytes);
    }
    mtc_examples_free(examples);
    *examples = windows;
}

int mtc_make_windows(MtcFault *fault, const MtcModel *model, const MtcSplit *split, MtcExamples *examples) {
    if (!mtc_is_series(model))
        return 0;
    const MtcOrigin *origin = &model->origin[split->origin];
    const WindowRows window = extent_of_windows(model, examples);
    const int64_t length = window.end - window.begin, rows = examples->count;
    if (rows < length)
        return mtc_fail(fault, MTC_BAD_DATA, "%s: '%s', %.6g%% of it, has %lld row%s, and a window has %lld",
                        origin->path[0], split->name, 100 * (split->to - split->from), (long long)rows,
                        rows == 1 ? "" : "s", (long long)length);
    windows_of_rows(model, window.begin, 0, origin->stride, (rows - length) / origin->stride + 1, examples);
    return 0;
}

int mtc_newest_window(MtcFault *fault, const MtcModel *model, const char *path, MtcExamples *examples) {
    if (!mtc_is_series(model))
        return 0;
    const WindowRows window = extent_of_windows(model, examples);
    const int64_t length = window.end - window.begin, rows = examples->count;
    if (rows >= length) {
        windows_of_rows(model, window.begin, rows - length, 1, 1, examples);
        return 0;
    }
    mtc_examples_free(examples);
    return mtc_fail(fault, MTC_BAD_DATA, "%s: has %lld row%s, and a window has %lld", path, (long long)rows,
                    rows == 1 ? "" : "s", (long long)length);
}
