/* The safetensors format: eight bytes of header length (little-endian), a JSON header
 *
 *     {"__metadata__": {"format": "pt"}, "h.bias": {"dtype": "F32", "shape": [128], "data_offsets": [0, 512]}, ...}
 *
 * and the tensors' bytes, which fill the rest of the file without gaps. */
#ifndef MTC_SAFETENSORS_H
#define MTC_SAFETENSORS_H

#include "base/files.h"
#include "base/json.h"

/* A tensor in a file or to be written to one. */
typedef struct MtcBlob {
    const char *name;
    const char *dtype; /* "F32" */
    int rank;
    int64_t dim[8];
    const void *bytes;
    size_t size;
} MtcBlob;

/* A file whose tensors are read where they lie in it. */
typedef struct MtcArchive {
    MtcMapped file;
    char *text; /* of the header, which names and metadata point into */
    MtcJsonDocument *header;
    int count;
    MtcBlob *blob; /* in the order of their bytes */
} MtcArchive;

int mtc_archive_read(MtcFault *fault, const char *path, MtcArchive *archive);
/* The same from memory, which must outlive the archive; `file` stays empty. */
int mtc_archive_parse(MtcFault *fault, const char *path, const uint8_t *bytes, size_t size, MtcArchive *archive);
/* A fault: another program has changed the file since it was opened: what was taken from it may be neither the old
 * bytes nor the new ones. */
int mtc_archive_unchanged(MtcFault *fault, const char *path, const MtcArchive *archive);
void mtc_archive_free(MtcArchive *archive);
const MtcBlob *mtc_archive_find(const MtcArchive *archive, const char *name);
/* The same of a moving average, NAME.ema: where the file has none, the weight NAME, which averages begin as. */
const MtcBlob *mtc_archive_find_average(const MtcArchive *archive, const char *name);

/* Is a file that begins so one of ONNX? */
bool mtc_is_onnx(const uint8_t *bytes, size_t size);
/* What else weights are kept in, as a file's first bytes say: "a GGUF file". NULL: nothing that is known. */
const char *mtc_other_weights(const uint8_t *bytes, size_t size);

/* A string of "__metadata__"; NULL: none. */
const char *mtc_archive_metadata(const MtcArchive *archive, const char *key);

/* `metadata` is the JSON object's text; where it holds MTC_CHECKSUM with MTC_NO_CHECKSUM for its value, the checksum of
 * the file takes its place, and is verified whenever the file is read. Written whole or not at all, and durable on return;
 * until then it is called "<base>.<process>.tmp" (base NULL: path). The blobs have no bytes: `fill` adds them all, in their
 * order, in pieces of any size; where the output takes no second look at its beginning, a pipe, it is called twice, first for
 * the checksum alone. */
#define MTC_CHECKSUM "mtc.checksum"
#define MTC_NO_CHECKSUM "0000000000000000"
typedef struct MtcArchiveWriter MtcArchiveWriter;
typedef int MtcArchiveFill(void *user, MtcArchiveWriter *writer);
int mtc_archive_write(MtcFault *fault, const char *path, const char *base, const char *metadata, const MtcBlob *blob,
                      int count, MtcArchiveFill *fill, void *user);
int mtc_archive_add(MtcFault *fault, MtcArchiveWriter *writer, const void *bytes, size_t size);

const char *mtc_dtype(MtcType type);      /* "F32" */
bool mtc_has_floats(const MtcBlob *blob); /* of a width that weights are read from */

#endif
