/* The IDX format, in which MNIST is published: bytes 0 0 TYPE RANK, then RANK sizes, then the elements; all numbers are
 * big-endian. */
#include "data/stored.h"

static bool idx_type(unsigned char code, MtcStored *stored) {
    switch (code) {
    case 0x08: *stored = MTC_AS_U8; return true;
    case 0x09: *stored = MTC_AS_I8; return true;
    case 0x0B: *stored = MTC_AS_I16; return true;
    case 0x0C: *stored = MTC_AS_I32; return true;
    case 0x0D: *stored = MTC_AS_F32; return true;
    case 0x0E: *stored = MTC_AS_F64; return true;
    default: return false;
    }
}

static int idx_short(MtcFault *fault, const MtcInput *input, size_t got) {
    if (got == 0)
        return mtc_fail(fault, MTC_BAD_DATA, "%s: is empty", mtc_input_path(input));
    return mtc_fail(fault, MTC_BAD_DATA, "%s: ends within the header of an IDX file", mtc_input_path(input));
}

int mtc_idx_header(MtcFault *fault, MtcInput *input, MtcArray *array) {
    unsigned char head[4], size[4];
    size_t got;
    const char *path = mtc_input_path(input);
    int code = mtc_input_read(fault, input, head, 4, &got);
    if (code || got < 4)
        return code ? code : idx_short(fault, input, got);
    if (head[0] != 0 || head[1] != 0)
        return mtc_fail(fault, MTC_BAD_DATA,
                        "%s: is not an IDX file: expected it to begin with bytes 00 00, found %02x %02x", path, head[0],
                        head[1]);
    if (!idx_type(head[2], &array->stored))
        return mtc_fail(fault, MTC_BAD_DATA, "%s: is not an IDX file: no element type has the code 0x%02x", path,
                        head[2]);
    if (head[3] < 1 || head[3] > 8)
        return mtc_fail(fault, MTC_BAD_DATA, "%s: expected 1 to 8 dimensions, found %d", path, head[3]);
    array->big_endian = true;
    array->rank = head[3];
    for (int i = 0; i < array->rank; i++) {
        code = mtc_input_read(fault, input, size, 4, &got);
        if (code || got < 4)
            return code ? code : idx_short(fault, input, 1);
        array->dim[i] = (int64_t)size[0] << 24 | size[1] << 16 | size[2] << 8 | size[3];
    }
    return 0;
}
