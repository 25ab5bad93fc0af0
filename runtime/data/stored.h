/* Arrays of numbers as files have them: IDX, npy. */
#ifndef MTC_STORED_H
#define MTC_STORED_H

#include "base/files.h"

/* An array of numbers in a file: [examples, dim...], as its header describes it. */
typedef enum MtcStored {
    MTC_AS_BOOL,
    MTC_AS_U8,
    MTC_AS_I8,
    MTC_AS_I16,
    MTC_AS_I32,
    MTC_AS_I64,
    MTC_AS_U16,
    MTC_AS_U32,
    MTC_AS_U64, /* the last of whole numbers */
    MTC_AS_F16,
    MTC_AS_F32,
    MTC_AS_F64
} MtcStored;
typedef struct MtcArray {
    MtcStored stored;
    bool big_endian;
    bool first_fastest; /* neighbours in the file differ in the first index, not in the last: Fortran's order */
    int rank;
    int64_t dim[8];
} MtcArray;

/* Reads the header; the array's bytes are next. */
typedef int MtcReadHeader(MtcFault *fault, MtcInput *input, MtcArray *array);
int mtc_idx_header(MtcFault *fault, MtcInput *input, MtcArray *array);
int mtc_npy_header(MtcFault *fault, MtcInput *input, MtcArray *array);
const char *mtc_stored_name(MtcStored stored);
size_t mtc_stored_size(MtcStored stored);

/* The field of every example in a file, in the field's type: numbers of any type become f32; i32, u8 and classes take those that
 * are whole. One that does not fit is a fault. Free *values. *note, to be freed, says what was
 * rounded; NULL: nothing. */
int mtc_read_field(MtcFault *fault, MtcInput *input, MtcReadHeader *header, const MtcField *field, int64_t *count,
                   void **values, char **note);
/* The array's values, taken in the field's type instead of the one that they are stored in. */
int mtc_convert_field(MtcFault *fault, const char *path, const MtcField *field, const MtcArray *array, void **values);
double mtc_from_half(uint16_t bits); /* the number that an IEEE half is */

/* numpy's format, little-endian, C order. */
int mtc_write_npy(MtcFault *fault, const char *path, int rank, const int64_t *dim, const float *values);

#endif
