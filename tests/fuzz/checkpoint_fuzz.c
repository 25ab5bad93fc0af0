/* libFuzzer harness: safetensors files, the JSON in them, the metadata of checkpoints. A file is refused with a message, or
 * its tensors lie inside it; anything else is a find. */
#include "checkpoint/checkpoint.h"
#include "sealed.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const MtcField fields[] = {
    {.name = "category", .type = MTC_U8, .elements = 1, .classes = 16, .predicts = true},
    {.name = "x", .type = MTC_F32, .rank = 1, .dim = {2}, .elements = 2, .predicts = true},
};
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

static void parse(const uint8_t *data, size_t size, bool fitting) {
    MtcCheckpoint checkpoint;
    MtcFault fault;
    uint8_t *bytes = (uint8_t *)malloc(size ? size : 1);
    memcpy(bytes, data, size);
    if (fitting)
        make_fit(bytes, size);
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
