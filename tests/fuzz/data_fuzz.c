/* libFuzzer harness: files of examples. The first byte of an input selects the format and the field, the rest is the
 * file. A file is refused with a message or read whole, labels in range; anything else is a find. */
#include "dataset.h"

#include <stdlib.h>
#include <string.h>

static const MtcField fields[] = {
    {"image", MTC_U8, 2, {2, 3}, 6, 0},
    {"label", MTC_U8, 0, {0}, 1, 10},
    {"word", MTC_I32, 1, {4}, 4, 300},
    {"signal", MTC_F32, 1, {5}, 5, 0},
};

static void check(const MtcField *field, int64_t count, const void *values) {
    size_t bytes = (size_t)(count * field->elements) * mtc_type_size(field->type);
    uint8_t *copy = (uint8_t *)malloc(bytes);
    memcpy(copy, values, bytes); /* a sanitizer sees whether all of it is there */
    for (int64_t i = 0; i < count * field->elements && field->classes; i++) {
        int label = field->type == MTC_U8 ? copy[i] : ((const int32_t *)values)[i];
        if (label < 0 || label >= field->classes)
            abort();
    }
    free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    MtcFault fault;
    int64_t count;
    void *values;
    if (size == 0)
        return 0;
    const MtcField *field = &fields[data[0] % 4];
    MtcInput *input = mtc_input_memory("input", data + 1, size - 1);
    memset(&fault, 0, sizeof fault);
    if (mtc_read_field(&fault, input, data[0] & 4 ? "npy" : "idx", field, &count, &values) == 0) {
        check(field, count, values);
        free(values);
    } else if (!fault.code || !fault.text[0])
        abort();
    mtc_input_close(input);
    return 0;
}
