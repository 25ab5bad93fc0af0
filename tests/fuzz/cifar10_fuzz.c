/* libFuzzer harness: the files of cifar10("folder"). The first two bytes of an input say how long two files are, the rest, again and
 * again, is in them. They are refused with a message, for a length or a label that is none, or read to the byte; anything else is
 * a find. */
#define _GNU_SOURCE /* memfd_create, of memory_file.h */
#include "data/image.h"
#include "memory_file.h"

#include <string.h>

enum { IMAGE = 3 * 32 * 32, RECORD = 1 + IMAGE, CLASSES = 10 };

static const MtcField image = {.name = "image", .type = MTC_U8, .rank = 3, .dim = {3, 32, 32}, .elements = IMAGE};
static const MtcField label = {.name = "label", .type = MTC_U8, .elements = 1, .classes = CLASSES};
static const MtcField wide = {.name = "label", .type = MTC_I32, .elements = 1, .classes = CLASSES};

typedef struct File {
    uint8_t *bytes;
    size_t size;
    int file;
    char path[64];
} File;

/* Records, or a byte more or less; now and then none. Bits of `kind`: how many; one byte more; one less; labels as they come. */
static void make_file(File *file, uint8_t kind, const uint8_t *data, size_t size) {
    const size_t records = kind % 4u;
    file->size = records * RECORD + (kind >> 6 == 1) - (records && kind >> 6 == 2);
    file->bytes = (uint8_t *)malloc(file->size ? file->size : 1);
    for (size_t i = 0; i < file->size; i++) {
        const uint8_t byte = (uint8_t)(data[i % size] + i / size);
        file->bytes[i] = i % RECORD || kind & 8 ? byte : byte % CLASSES;
    }
    memory_file(&file->file, file->path, sizeof file->path, file->bytes, file->size);
}

/* What the format says, written once more. */
static bool is_right(const File *file) {
    bool right = file->size && file->size % RECORD == 0;
    for (size_t i = 0; i < file->size && right; i += RECORD)
        right = file->bytes[i] < CLASSES;
    return right;
}

/* Of the examples, those of the file: how many there are. */
static int64_t check_file(const MtcModel *model, const MtcExamples *examples, int64_t first, const File *file) {
    const bool label_first = model->field[0].classes > 0;
    const uint8_t *planes = (const uint8_t *)examples->field[label_first];
    const int64_t count = (int64_t)(file->size / RECORD);
    for (int64_t i = 0; i < count; i++) {
        const uint8_t *record = file->bytes + i * RECORD;
        if (memcmp(planes + (first + i) * IMAGE, record + 1, IMAGE) != 0)
            abort();
        if (model->fields == 2 &&
            mtc_class_at(&model->field[!label_first], examples->field[!label_first], first + i) != record[0])
            abort();
    }
    return count;
}

static void read_files(const MtcModel *model, const File *a, const File *b) {
    const char *const paths[] = {a->path, b->path};
    const MtcOrigin origin = {.format = "cifar10", .paths = 2, .path = paths};
    MtcExamples examples;
    MtcFault fault;
    memset(&fault, 0, sizeof fault);
    int code = mtc_read_cifar(&fault, model, &origin, NULL, &examples);
    if ((code == 0) != (is_right(a) && is_right(b)) || (code && (!fault.code || !fault.text[0])))
        abort();
    if (code)
        return;
    int64_t count = check_file(model, &examples, 0, a);
    count += check_file(model, &examples, count, b);
    if (count != examples.count)
        abort();
    mtc_examples_free(&examples);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const MtcField orders[][2] = {{image, label}, {wide, image}, {image, wide}};
    File file[2];
    if (size < 3)
        return 0;
    for (int i = 0; i < 2; i++)
        make_file(&file[i], data[i], data + 2, size - 2);
    for (int i = 0; i < 3; i++) {
        const MtcModel model = {.source = "m.mt", .fields = 2, .field = orders[i]};
        read_files(&model, &file[0], &file[1]);
    }
    const MtcModel no_label = {.source = "m.mt", .fields = 1, .field = &image};
    read_files(&no_label, &file[0], &file[1]);
    for (int i = 0; i < 2; i++) {
        free(file[i].bytes);
        close(file[i].file);
    }
    return 0;
}
