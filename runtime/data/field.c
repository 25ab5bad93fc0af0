#include "data/field.h"

bool mtc_host_is_big_endian(void) {
    const uint16_t one = 1;
    return *(const uint8_t *)&one == 0;
}

int64_t mtc_field_stride(const MtcField *field, int64_t stride) {
    return stride ? stride : field->elements;
}

size_t mtc_field_bytes(const MtcField *field, int64_t examples, int64_t stride) {
    int64_t elements = examples ? (examples - 1) * mtc_field_stride(field, stride) + field->elements : 0;
    return (size_t)elements * mtc_type_size(field->type);
}

size_t mtc_example_bytes(const MtcField *field) {
    return mtc_field_bytes(field, 1, 0);
}

int64_t mtc_row_elements(const MtcField *field) {
    return field->elements / (field->steps ? field->steps : 1);
}

void mtc_put_class(const MtcField *field, void *values, int64_t at, int64_t class_) {
    switch (field->type) {
    case MTC_U8: ((uint8_t *)values)[at] = (uint8_t)class_; break;
    case MTC_U16: ((uint16_t *)values)[at] = (uint16_t)class_; break;
    default: ((int32_t *)values)[at] = (int32_t)class_; break;
    }
}

int64_t mtc_class_at(const MtcField *field, const void *values, int64_t at) {
    switch (field->type) {
    case MTC_U8: return ((const uint8_t *)values)[at];
    case MTC_U16: return ((const uint16_t *)values)[at];
    default: return ((const int32_t *)values)[at];
    }
}

int64_t mtc_find_bad_class(const MtcField *field, const void *values, int64_t count) {
    int64_t most = 0, least = 0;
    const int32_t *wide = (const int32_t *)values;
    const uint16_t *half = (const uint16_t *)values;
    const uint8_t *byte = (const uint8_t *)values;
    for (int64_t i = 0; i < count && field->type == MTC_I32; i++) {
        most = wide[i] > most ? wide[i] : most;
        least = wide[i] < least ? wide[i] : least;
    }
    for (int64_t i = 0; i < count && field->type == MTC_U16; i++)
        most = half[i] > most ? half[i] : most;
    for (int64_t i = 0; i < count && field->type == MTC_U8; i++)
        most = byte[i] > most ? byte[i] : most;
    if (least >= 0 && most < field->classes)
        return count;
    for (int64_t i = 0;; i++)
        if (mtc_class_at(field, values, i) < 0 || mtc_class_at(field, values, i) >= field->classes)
            return i;
}

bool mtc_is_weight(double value) {
    return value == 0 || (value >= (double)1e-30f && value <= (double)1e30f);
}

double mtc_weight_at(const MtcField *field, const void *values, int64_t i) {
    return field->type == MTC_F32 ? (double)((const float *)values)[i] : (double)mtc_class_at(field, values, i);
}

int64_t mtc_find_bad_weight(const MtcField *field, const void *values, int64_t count) {
    int64_t i = 0;
    if (field->type == MTC_BOOL)
        return count;
    while (i < count && mtc_is_weight(mtc_weight_at(field, values, i)))
        i++;
    return i;
}
