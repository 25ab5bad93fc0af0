/* Examples of CIFAR-10 in its binary version: cifar10("folder"). */
#include "data/image.h"
#include "data/source.h"

#include <stdlib.h>
#include <string.h>

enum { CIFAR_CLASSES = 10, CIFAR_IMAGE = 3 * 32 * 32, CIFAR_RECORD = 1 + CIFAR_IMAGE };

static int check_records(MtcFault *fault, const char *path, const uint8_t *bytes, size_t size) {
    if (size == 0 || size % CIFAR_RECORD)
        return mtc_fail(fault, MTC_BAD_DATA,
                        "%s: has %zu bytes, expected records of %d: a label and 3 x 32 x 32 numbers", path, size,
                        CIFAR_RECORD);
    for (size_t i = 0; i < size / CIFAR_RECORD; i++)
        if (bytes[i * CIFAR_RECORD] >= CIFAR_CLASSES)
            return mtc_fail(fault, MTC_BAD_DATA, "%s: the label of record %zu is %d, expected 0 to %d", path, i,
                            bytes[i * CIFAR_RECORD], CIFAR_CLASSES - 1);
    return 0;
}

static void add_records(const MtcModel *model, const uint8_t *bytes, size_t records, MtcExamples *examples) {
    const int image = mtc_image_field(model), label = mtc_label_field(model);
    const size_t first = (size_t)examples->count, count = first + records;
    uint8_t *planes = (uint8_t *)mtc_memory(examples->field[image], count * CIFAR_IMAGE);
    examples->field[image] = planes;
    for (size_t i = 0; i < records; i++)
        memcpy(planes + (first + i) * CIFAR_IMAGE, bytes + i * CIFAR_RECORD + 1, CIFAR_IMAGE);
    if (label >= 0) {
        const MtcField *field = &model->field[label];
        examples->field[label] = mtc_memory(examples->field[label], count * mtc_type_size(field->type));
        for (size_t i = 0; i < records; i++)
            mtc_put_class(field, examples->field[label], (int64_t)(first + i), bytes[i * CIFAR_RECORD]);
    }
    examples->count = (int64_t)count;
}

static int read_records(MtcFault *fault, const MtcModel *model, const char *path, MtcExamples *examples) {
    uint8_t *bytes;
    size_t size;
    int code = mtc_read_file(fault, path, &bytes, &size);
    if (code)
        return code;
    code = check_records(fault, path, bytes, size);
    if (!code && size / CIFAR_RECORD > (size_t)(INT32_MAX - examples->count))
        code = mtc_fail(fault, MTC_BAD_DATA, "%s: there are more than %d examples", path, INT32_MAX);
    if (!code)
        add_records(model, bytes, size / CIFAR_RECORD, examples);
    free(bytes);
    return code;
}

int mtc_read_cifar(MtcFault *fault, const MtcModel *model, const MtcOrigin *origin, const char *folder,
                   MtcExamples *examples) {
    int code = 0;
    memset(examples, 0, sizeof *examples);
    for (int i = 0; i < origin->paths && !code; i++) {
        char *path;
        code = mtc_find_data(fault, model->source, folder, origin->path[i], &path);
        if (code)
            break;
        code = read_records(fault, model, path, examples);
        free(path);
    }
    if (code)
        mtc_examples_free(examples);
    return code;
}

static int open_cifar(MtcFault *fault, MtcReading *reading, MtcOpened *opened) {
    return mtc_read_cifar(fault, opened->model, opened->origin, reading->folder, &opened->arrays);
}

const MtcSource mtc_source_cifar10 = {.open = open_cifar, .example = "examples.npy"};
