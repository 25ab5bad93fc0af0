/* Files of examples to predict. */
#include "data/image.h"
#include "data/series.h"
#include "data/source.h"

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

/* A text file, where the training data are read from one too: all fields are in it. */
static int read_text(MtcFault *fault, const MtcModel *model, const char *path, const bool *wanted,
                     const MtcEncoding *encoding, MtcReading *reading, MtcExamples *examples) {
    const MtcAsked asked = {mtc_training_source(model), model, &model->origin[mtc_split(model, "train")->origin], path,
                            wanted};
    return asked.source->input(fault, &asked, encoding, reading, examples);
}

static int read_images(MtcFault *fault, const MtcModel *model, const char *path, MtcReading *reading,
                       MtcExamples *examples) {
    const MtcSplit *train = mtc_split(model, "train");
    const bool resize = reading->resize || (train && model->origin[train->origin].resize);
    if (mtc_is_folder(path) && !mtc_predicts_from_image(model))
        return mtc_fail(fault, MTC_BAD_DATA,
                        "%s: is a folder: only images come as one, and this model predicts from none", path);
    return mtc_read_image_input(fault, model, path, resize, reading, examples);
}

static int read_files(MtcFault *fault, const MtcModel *model, MtcReading *reading, const MtcEncoding *encoding,
                      const char *const *path, int paths, MtcExamples *examples) {
    bool wanted[MTC_MAX_FIELDS];
    MtcFileKind kind;
    for (int f = 0; f < model->fields; f++)
        wanted[f] = model->field[f].predicts;
    int code = mtc_check_inputs(fault, model, path, paths);
    if (!code)
        code = mtc_file_kind(fault, path[0], &kind);
    if (code)
        return code;
    const bool text = kind == MTC_FILE_TEXT && mtc_training_source(model)->input;
    if (paths > 1 && (kind == MTC_FILE_ZIP || kind == MTC_FILE_IMAGES || text))
        return mtc_fail(fault, MTC_USAGE, "%s holds all fields: give --input once", path[0]);
    if (kind == MTC_FILE_IMAGES)
        return read_images(fault, model, path[0], reading, examples);
    if (kind == MTC_FILE_ZIP)
        return mtc_read_npz(fault, model, path[0], wanted, reading, examples);
    return text ? read_text(fault, model, path[0], wanted, encoding, reading, examples)
                : read_field_files(fault, model, path, paths, reading, examples);
}

int mtc_read_input(MtcFault *fault, const MtcModel *model, MtcReading *reading, const MtcEncoding *encoding,
                   const char *const *path, int paths, MtcExamples *examples) {
    MtcRowModel rows;
    reading->skipped = 0;
    memset(examples, 0, sizeof *examples);
    int code = mtc_check_series(fault, model, reading);
    if (!code)
        code = read_files(fault, mtc_row_model(model, &rows), reading, encoding, path, paths, examples);
    return code ? code : mtc_newest_window(fault, model, path[0], examples);
}
