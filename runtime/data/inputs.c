/* Files of examples to predict. */
#include "data/image.h"
#include "data/rows.h"
#include "data/table_source.h"
#include "data/windows.h"

#include <stdlib.h>
#include <string.h>

/* ---- which files ---- */

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
    return split && mtc_is_table(&model->origin[split->origin]) ? &model->origin[split->origin] : NULL;
}

/* ---- the input of a model ---- */

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
        return mtc_read_rows_input(fault, model, reading, encoding, path[0], wanted, examples);
    return one ? mtc_read_table_input(fault, model, origin, reading, encoding, path[0], wanted, examples)
               : read_field_files(fault, model, path, paths, reading, examples);
}
