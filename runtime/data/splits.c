/* The data sets of a model: each origin is read once, and divided. */
#include "data/series.h"
#include "data/source.h"

#include <stdlib.h>
#include <string.h>

static int open_origin(MtcFault *fault, const MtcModel *model, int index, MtcReading *reading, MtcOpened *opened) {
    if (opened->source)
        return 0;
    opened->model = model;
    opened->origin = &model->origin[index];
    opened->name = opened->origin->paths ? opened->origin->path[0] : model->source;
    opened->source = mtc_source_of(opened->origin);
    return opened->source->open(fault, reading, opened);
}

static void close_origins(MtcOpened *origins, int count) {
    for (int i = 0; i < count; i++) {
        mtc_examples_free(&origins[i].arrays);
        if (origins[i].kept)
            origins[i].source->close(origins[i].kept);
    }
    free(origins);
}

/* What the training data decide, unless it is known. */
static int learn(MtcFault *fault, const MtcModel *model, MtcReading *reading, MtcOpened *origins,
                 MtcEncoding *encoding) {
    const MtcSource *source = mtc_training_source(model);
    if (encoding->known || !source->learn)
        return 0;
    const MtcSplitPart train = {mtc_split(model, "train"), reading->seed, false};
    MtcOpened *opened = &origins[train.split->origin];
    int code = open_origin(fault, model, train.split->origin, reading, opened);
    if (!code)
        code = source->learn(fault, &train, opened, encoding);
    if (code)
        mtc_encoding_free(encoding);
    encoding->known = !code;
    return code;
}

/* Does a later one of the splits need the same origin? */
static bool is_last(const MtcModel *model, const char *const *name, int count, int index) {
    for (int i = index + 1; i < count; i++)
        if (name[i] && mtc_split(model, name[i])->origin == mtc_split(model, name[index])->origin)
            return false;
    return true;
}

static int splits_exist(MtcFault *fault, const MtcModel *model, const char *const *name, int count) {
    for (int i = 0; i < count; i++)
        if (name[i] && !mtc_split(model, name[i]))
            return mtc_fail(fault, MTC_USAGE, "the model has no split '%s'", name[i]);
    return 0;
}

static int read_part(MtcFault *fault, const MtcModel *model, const MtcSplitPart *part, const MtcEncoding *encoding,
                     MtcReading *reading, MtcOpened *origins, MtcExamples *examples) {
    MtcOpened *opened = &origins[part->split->origin];
    int code = open_origin(fault, model, part->split->origin, reading, opened);
    if (code)
        return code;
    return opened->source->read ? opened->source->read(fault, part, encoding, reading, opened, examples)
                                : mtc_part_arrays(fault, model, part, opened->name, &opened->arrays, examples);
}

/* Of a series, rows. */
static int read_parts(MtcFault *fault, const MtcModel *model, MtcReading *reading, MtcEncoding *encoding,
                      const char *const *name, int count, MtcExamples *examples) {
    MtcOpened *origins = (MtcOpened *)mtc_zeroed((size_t)model->origins * sizeof *origins);
    reading->skipped = 0;
    int code = splits_exist(fault, model, name, count);
    if (!code)
        code = learn(fault, model, reading, origins, encoding);
    for (int i = 0; i < count && !code; i++) {
        if (!name[i])
            continue;
        const MtcSplitPart part = {mtc_split(model, name[i]), reading->seed, is_last(model, name, count, i)};
        code = read_part(fault, model, &part, encoding, reading, origins, &examples[i]);
    }
    close_origins(origins, model->origins);
    return code;
}

int mtc_read_splits(MtcFault *fault, const MtcModel *model, MtcReading *reading, MtcEncoding *encoding,
                    const char *const *name, int count, MtcExamples *examples) {
    MtcRowModel rows;
    int code = mtc_check_series(fault, model, reading);
    memset(examples, 0, (size_t)count * sizeof *examples);
    if (!code)
        code = read_parts(fault, mtc_row_model(model, &rows), reading, encoding, name, count, examples);
    for (int i = 0; i < count && !code; i++)
        if (name[i])
            code = mtc_make_windows(fault, model, mtc_split(model, name[i]), &examples[i]);
    for (int i = 0; i < count && code; i++)
        mtc_examples_free(&examples[i]);
    return code;
}
