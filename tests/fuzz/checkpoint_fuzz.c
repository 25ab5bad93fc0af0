/* libFuzzer harness: safetensors files, and the JSON in them. A file is refused with a message, or its tensors lie inside
 * it; anything else is a find. */
#include "safetensors.h"

#include <stdlib.h>
#include <string.h>

static void check(const MtcArchive *archive, const uint8_t *bytes, size_t size) {
    size_t total = 0;
    for (int i = 0; i < archive->count; i++) {
        const MtcBlob *blob = &archive->blob[i];
        const uint8_t *begin = (const uint8_t *)blob->bytes;
        if (begin < bytes + 8 || blob->size > (size_t)(bytes + size - begin) || !mtc_archive_find(archive, blob->name))
            abort();
        total += blob->size;
    }
    if (total > size)
        abort();
}

static void parse(const uint8_t *data, size_t size, bool fitting) {
    MtcArchive archive;
    MtcFault fault;
    uint8_t *bytes = (uint8_t *)malloc(size ? size : 1);
    memcpy(bytes, data, size);
    if (fitting) {
        size_t length = (bytes[0] | (size_t)bytes[1] << 8) % (size - 7);
        memset(bytes, 0, 8);
        bytes[0] = (uint8_t)length;
        bytes[1] = (uint8_t)(length >> 8);
    }
    memset(&fault, 0, sizeof fault);
    if (mtc_archive_parse(&fault, "input", bytes, size, &archive) == 0) {
        check(&archive, bytes, size);
        mtc_archive_free(&archive);
    } else if (!fault.code || !fault.text[0])
        abort();
    free(bytes);
}

/* Once as it is; once with a header length that fits, so that mutations reach the JSON. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    parse(data, size, false);
    if (size >= 8)
        parse(data, size, true);
    return 0;
}
