/* Data sets: files of examples, checked against the fields of the model, in host memory. */
#ifndef MTC_DATASET_H
#define MTC_DATASET_H

#include "files.h"

/* One array per field, in the field's type; free with mtc_examples_free. */
typedef struct MtcExamples {
    int64_t count;
    void *field[MTC_MAX_FIELDS];
} MtcExamples;

void mtc_examples_free(MtcExamples *examples);

/* Loads a split of the model: one file per field, read at the same time. `folder` may be NULL. */
int mtc_load_split(MtcFault *fault, const MtcModel *model, const MtcSplit *split, const char *folder,
                   MtcExamples *examples);
const MtcSplit *mtc_split(const MtcModel *model, const char *name); /* NULL: none */
/* The split that is evaluated during training: "test", else "validation", else NULL. */
const char *mtc_test_split(const MtcModel *model);

/* An array of numbers in a file: [examples, dim...], as its header describes it. */
typedef enum MtcStored { MTC_AS_U8, MTC_AS_I8, MTC_AS_I16, MTC_AS_I32, MTC_AS_I64, MTC_AS_F32, MTC_AS_F64 } MtcStored;
typedef struct MtcArray {
    MtcStored stored;
    bool big_endian;
    int rank;
    int64_t dim[8];
} MtcArray;

/* Read the header; the array's bytes are next. */
int mtc_idx_header(MtcFault *fault, MtcInput *input, MtcArray *array);
int mtc_npy_header(MtcFault *fault, MtcInput *input, MtcArray *array);
const char *mtc_stored_name(MtcStored stored);
size_t mtc_stored_size(MtcStored stored);

/* The field of every example in a file. `format` is "idx" or "npy". Free *values. */
int mtc_read_field(MtcFault *fault, MtcInput *input, const char *format, const MtcField *field, int64_t *count,
                   void **values);

/* numpy's format, little-endian, C order. */
int mtc_write_npy(MtcFault *fault, const char *path, int rank, const int64_t *dim, const float *values);

#endif
