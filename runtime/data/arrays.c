/* Sources of examples that are arrays, one for each field: IDX and npy files, npz archives. */
#include "base/parallel.h"
#include "base/zip.h"
#include "data/image.h"
#include "data/source.h"
#include "data/stored.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* An array of a field, and how reading it went. */
typedef struct FieldLoad {
    const MtcField *field;
    MtcReadHeader *header;
    char *path;
    const MtcZip *zip; /* the archive that path is in, or NULL: a file */
    int64_t count;
    void *values;
    char *note; /* what was rounded, or NULL */
    MtcFault fault;
} FieldLoad;

static void load_field_file(FieldLoad *load) {
    MtcInput *input;
    if (mtc_input_open(&load->fault, load->path, &input))
        return;
    mtc_read_field(&load->fault, input, load->header, load->field, &load->count, &load->values, &load->note);
    mtc_input_close(input);
}

static void load_member(FieldLoad *load) {
    uint8_t *bytes;
    size_t size;
    MtcText name = {NULL, 0, 0};
    if (mtc_zip_read(&load->fault, load->zip, load->path, &bytes, &size))
        return;
    mtc_text_add(&name, "%s: %s", mtc_zip_path(load->zip), load->path);
    MtcInput *input = mtc_input_memory(name.at, bytes, size);
    mtc_read_field(&load->fault, input, mtc_npy_header, load->field, &load->count, &load->values, &load->note);
    mtc_input_close(input);
    free(name.at);
    free(bytes);
}

static void load_field(void *context, int64_t task) {
    FieldLoad *load = (FieldLoad *)context + task;
    if (!load->path)
        return;
    if (load->zip)
        load_member(load);
    else
        load_field_file(load);
}

/* The first fault in the order of the fields; all arrays have as many examples. */
static int check_loads(MtcFault *fault, const FieldLoad *loads, int count) {
    const FieldLoad *first = NULL;
    for (int i = 0; i < count; i++) {
        const FieldLoad *load = &loads[i];
        if (load->fault.code) {
            *fault = load->fault;
            return fault->code;
        }
        first = first || !load->path ? first : load;
        if (load->path && load->count != first->count)
            return mtc_fail(fault, MTC_BAD_DATA, "%s: holds %lld examples, but %s holds %lld", load->path,
                            (long long)load->count, first->path, (long long)first->count);
    }
    return 0;
}

static int run_loads(MtcFault *fault, const MtcModel *model, FieldLoad *loads, MtcReading *reading,
                     MtcExamples *examples) {
    mtc_parallel(model->fields, load_field, loads);
    int code = check_loads(fault, loads, model->fields);
    memset(examples, 0, sizeof *examples);
    for (int i = 0; i < model->fields; i++) {
        examples->field[i] = loads[i].values;
        examples->count = loads[i].path ? loads[i].count : examples->count;
        if (loads[i].note && !*reading->rounded)
            snprintf(reading->rounded, sizeof reading->rounded, "%s", loads[i].note);
    }
    if (code)
        mtc_examples_free(examples);
    return code;
}

static FieldLoad *new_loads(const MtcModel *model) {
    FieldLoad *loads = (FieldLoad *)mtc_zeroed((size_t)model->fields * sizeof *loads);
    for (int i = 0; i < model->fields; i++)
        loads[i].field = &model->field[i];
    return loads;
}

static void free_loads(const MtcModel *model, FieldLoad *loads) {
    for (int i = 0; i < model->fields; i++) {
        free(loads[i].path);
        free(loads[i].note);
    }
    free(loads);
}

/* ---- files ---- */

static int open_files(MtcFault *fault, MtcReadHeader *header, MtcReading *reading, MtcOpened *opened) {
    const MtcModel *model = opened->model;
    const MtcOrigin *origin = opened->origin;
    if (origin->paths != model->fields)
        return mtc_fail(fault, MTC_INTERNAL, "there are %d files for %d fields", origin->paths, model->fields);
    FieldLoad *loads = new_loads(model);
    int code = 0;
    for (int i = 0; i < model->fields && !code; i++) {
        loads[i].header = header;
        code = mtc_find_data(fault, model->source, reading->folder, origin->path[i], &loads[i].path);
    }
    if (!code)
        code = run_loads(fault, model, loads, reading, &opened->arrays);
    free_loads(model, loads);
    return code;
}

static int open_idx(MtcFault *fault, MtcReading *reading, MtcOpened *opened) {
    return open_files(fault, mtc_idx_header, reading, opened);
}

static int open_npy(MtcFault *fault, MtcReading *reading, MtcOpened *opened) {
    return open_files(fault, mtc_npy_header, reading, opened);
}

const MtcSource mtc_source_idx = {.open = open_idx, .example = "examples.npy"};
const MtcSource mtc_source_npy = {.open = open_npy, .example = "examples.npy"};

int mtc_read_field_files(MtcFault *fault, const MtcModel *model, const char *const *path, MtcReading *reading,
                         MtcExamples *examples) {
    FieldLoad *loads = new_loads(model);
    int code = 0;
    for (int i = 0; i < model->fields && !code; i++) {
        MtcFileKind kind = MTC_FILE_TEXT;
        if (!path[i])
            continue;
        code = mtc_file_kind(fault, path[i], &kind);
        loads[i].header = kind == MTC_FILE_NPY ? mtc_npy_header : mtc_idx_header;
        loads[i].path = strdup(path[i]);
    }
    if (!code)
        code = run_loads(fault, model, loads, reading, examples);
    free_loads(model, loads);
    return code;
}

int mtc_file_kind(MtcFault *fault, const char *path, MtcFileKind *kind) {
    MtcInput *input;
    struct stat status;
    uint8_t first[MTC_IMAGE_MAGIC] = {0};
    size_t got = 0;
    *kind = MTC_FILE_IMAGES;
    if (stat(path, &status) == 0 && S_ISDIR(status.st_mode))
        return 0;
    int code = mtc_input_open(fault, path, &input);
    if (code)
        return code;
    code = mtc_input_read(fault, input, first, sizeof first, &got);
    mtc_input_close(input);
    *kind = memcmp(first, "\x93NUM", 4) == 0             ? MTC_FILE_NPY
            : memcmp(first, "PK\3\4", 4) == 0            ? MTC_FILE_ZIP
            : got >= 4 && first[0] == 0 && first[1] == 0 ? MTC_FILE_IDX
            : mtc_is_image(first, got)                   ? MTC_FILE_IMAGES
                                                         : MTC_FILE_TEXT;
    return code;
}

/* ---- an archive ---- */

int mtc_read_npz(MtcFault *fault, const MtcModel *model, const char *path, const bool *wanted, MtcReading *reading,
                 MtcExamples *examples) {
    MtcZip *zip;
    int code = mtc_zip_open(fault, path, &zip);
    if (code)
        return code;
    FieldLoad *loads = new_loads(model);
    for (int i = 0; i < model->fields; i++) {
        MtcText name = {NULL, 0, 0};
        mtc_text_add(&name, "%s.npy", model->field[i].name);
        if (wanted && !wanted[i] && !mtc_zip_has(zip, name.at)) {
            free(name.at);
            continue;
        }
        loads[i].zip = zip;
        loads[i].path = name.at;
    }
    code = run_loads(fault, model, loads, reading, examples);
    free_loads(model, loads);
    mtc_zip_close(zip);
    return code;
}

static int open_npz(MtcFault *fault, MtcReading *reading, MtcOpened *opened) {
    char *path;
    int code = mtc_find_data(fault, opened->model->source, reading->folder, opened->origin->path[0], &path);
    if (code)
        return code;
    code = mtc_read_npz(fault, opened->model, path, NULL, reading, &opened->arrays);
    free(path);
    return code;
}

const MtcSource mtc_source_npz = {.open = open_npz, .example = "examples.npz"};
