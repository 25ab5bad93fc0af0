/* libFuzzer harness: safetensors files, the JSON in them, the metadata of checkpoints. A file is refused with a message, or
 * its tensors lie inside it; anything else is a find. */
#include "checkpoint.h"
#include "hash.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const MtcField fields[] = {{"category", MTC_U8, 0, {0}, 1, 16, true, {0}},
                                  {"x", MTC_F32, 1, {2}, 2, 0, true, {0}}};
static MtcModel model; /* with these fields and two reports */

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

/* Each part is read whatever became of the others. */
static void read_metadata(MtcFault *fault, const MtcCheckpoint *checkpoint) {
    MtcEncoding *encoding = (MtcEncoding *)malloc(sizeof *encoding);
    MtcPosition at;
    MtcRecord record;
    int64_t examples;
    uint64_t hash;
    double value;
    if (mtc_checkpoint_encoding(fault, checkpoint, &model, encoding) == 0)
        mtc_encoding_free(encoding);
    mtc_checkpoint_position(fault, checkpoint, &at);
    mtc_checkpoint_record(fault, checkpoint, &model, &record);
    mtc_checkpoint_data(fault, checkpoint, &examples, &hash);
    mtc_checkpoint_number(fault, checkpoint, "param.lr", &value);
    free(encoding);
}

/* The checksum that the bytes have now, so that mutations get past it. */
static void seal(uint8_t *bytes, size_t size) {
    static const char key[] = "\"" MTC_CHECKSUM "\":\"", none[] = MTC_NO_CHECKSUM;
    char digits[sizeof none];
    MtcHash hash;
    for (size_t i = 8; i + sizeof key - 1 + sizeof none - 1 <= size; i++)
        if (memcmp(bytes + i, key, sizeof key - 1) == 0) {
            uint8_t *at = bytes + i + sizeof key - 1, *after = at + sizeof none - 1;
            mtc_hash_begin(&hash);
            mtc_hash_add(&hash, bytes, (size_t)(at - bytes));
            mtc_hash_add(&hash, none, sizeof none - 1);
            mtc_hash_add(&hash, after, (size_t)(bytes + size - after));
            snprintf(digits, sizeof digits, "%016llx", (unsigned long long)mtc_hash_end(&hash));
            memcpy(at, digits, sizeof none - 1);
            return;
        }
}

static void parse(const uint8_t *data, size_t size, bool fitting) {
    MtcCheckpoint checkpoint;
    MtcFault fault;
    uint8_t *bytes = (uint8_t *)malloc(size ? size : 1);
    memcpy(bytes, data, size);
    if (fitting) {
        size_t length = (bytes[0] | (size_t)bytes[1] << 8) % (size - 7);
        memset(bytes, 0, 8);
        bytes[0] = (uint8_t)length;
        bytes[1] = (uint8_t)(length >> 8);
        seal(bytes, size);
    }
    memset(&fault, 0, sizeof fault);
    if (mtc_checkpoint_parse(&fault, "input", bytes, size, &checkpoint) == 0) {
        check(&checkpoint.archive, bytes, size);
        read_metadata(&fault, &checkpoint);
    } else if (!fault.code || !fault.text[0])
        abort();
    mtc_checkpoint_close(&checkpoint);
    free(bytes);
}

/* Once as it is; once with a header length that fits and its own checksum, so that mutations reach the JSON. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    model.fields = 2;
    model.field = fields;
    model.reports = 2;
    parse(data, size, false);
    if (size >= 8)
        parse(data, size, true);
    return 0;
}
