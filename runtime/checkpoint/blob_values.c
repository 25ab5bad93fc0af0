/* Numbers of a checkpoint in the type that a tensor has. */
#include "checkpoint/checkpoint.h"
#include "data/stored.h"
#include "session/weights.h"

#include <stdlib.h>
#include <string.h>

/* The upper half of a float. */
static float from_bfloat16(uint16_t bits) {
    const uint32_t whole = (uint32_t)bits << 16;
    float value;
    memcpy(&value, &whole, sizeof value);
    return value;
}

static double number_in_blob(const MtcBlob *blob, int64_t i) {
    const char *bytes = (const char *)blob->bytes;
    uint16_t half;
    float value; /* the file's data need not be aligned */
    double wide;
    if (strcmp(blob->dtype, "F64") == 0) {
        memcpy(&wide, bytes + (size_t)i * sizeof wide, sizeof wide);
        return wide;
    }
    if (strcmp(blob->dtype, "F32") == 0) {
        memcpy(&value, bytes + (size_t)i * sizeof value, sizeof value);
        return (double)value;
    }
    memcpy(&half, bytes + (size_t)i * sizeof half, sizeof half);
    return strcmp(blob->dtype, "F16") == 0 ? mtc_from_half(half) : (double)from_bfloat16(half);
}

void *mtc_blob_values(MtcFault *fault, const MtcTensor *tensor, const MtcBlob *blob) {
    void *values = malloc(mtc_tensor_bytes(tensor) + 1);
    if (!values)
        mtc_no_memory(fault, mtc_tensor_bytes(tensor), tensor->name);
    else if (strcmp(mtc_dtype(tensor->type), blob->dtype) == 0)
        memcpy(values, blob->bytes, blob->size);
    else
        for (int64_t i = 0; i < mtc_elements(blob->rank, blob->dim); i++)
            if (tensor->type == MTC_F64)
                ((double *)values)[i] = number_in_blob(blob, i);
            else
                ((float *)values)[i] = (float)number_in_blob(blob, i);
    return values;
}
