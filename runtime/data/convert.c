/* Arrays of files in the types of fields: NumPy's own are f64 and i64. A number that does not fit is a fault that says where it
 * is; rounding is none. */
#include "data/field.h"
#include "data/stored.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

static int64_t whole_number(MtcStored stored, const void *values, int64_t i) {
    switch (stored) {
    case MTC_AS_BOOL: return ((const uint8_t *)values)[i] != 0;
    case MTC_AS_U8: return ((const uint8_t *)values)[i];
    case MTC_AS_I8: return ((const int8_t *)values)[i];
    case MTC_AS_I16: return ((const int16_t *)values)[i];
    case MTC_AS_I32: return ((const int32_t *)values)[i];
    default: return ((const int64_t *)values)[i];
    }
}

/* 1 bit of sign, 5 of exponent, 10 of mantissa. */
double mtc_from_half(uint16_t bits) {
    const int exponent = bits >> 10 & 31, mantissa = bits & 1023;
    const double sign = bits >> 15 ? -1 : 1;
    if (exponent == 31)
        return mantissa ? (double)NAN : sign * (double)INFINITY;
    return sign * (exponent ? ldexp(1024 + mantissa, exponent - 25) : ldexp(mantissa, -24));
}

static double stored_number(MtcStored stored, const void *values, int64_t i) {
    switch (stored) {
    case MTC_AS_F16: return mtc_from_half(((const uint16_t *)values)[i]);
    case MTC_AS_F32: return (double)((const float *)values)[i];
    case MTC_AS_F64: return ((const double *)values)[i];
    default: return (double)whole_number(stored, values, i);
    }
}

/* "example 3", or "example 3, element [0, 2]" where it has several. */
static const char *append_place(MtcText *text, const MtcField *field, int64_t i) {
    mtc_text_add(text, "example %lld", (long long)(i / field->elements));
    if (field->rank)
        mtc_text_add(text, ", element %s", mtc_index(i % field->elements, field->rank, field->dim));
    return text->at;
}

static int does_not_fit(MtcFault *fault, const char *path, const MtcField *field, const MtcArray *array,
                        const void *values, int64_t i) {
    MtcText text = {NULL, 0, 0};
    if (field->classes)
        mtc_fail(fault, MTC_BAD_DATA,
                 "%s: example %lld has the label %lld; field '%s' is class[%d], so expected 0 to %d", path,
                 (long long)(i / field->elements), (long long)whole_number(array->stored, values, i), field->name,
                 field->classes, field->classes - 1);
    else
        mtc_fail(fault, MTC_BAD_DATA, "%s: %s is %s, which does not fit in %s, the type of field '%s'", path,
                 append_place(&text, field, i), mtc_number(stored_number(array->stored, values, i)),
                 mtc_type_name(field->type), field->name);
    free(text.at);
    return fault->code;
}

/* False: it does not fit. */
static bool convert_one(const MtcField *field, MtcStored stored, const void *values, int64_t i, void *out) {
    if (field->type == MTC_F32) {
        const double value = stored_number(stored, values, i);
        ((float *)out)[i] = (float)value;
        return !isfinite(value) || fabs(value) <= FLT_MAX;
    }
    const int64_t value = whole_number(stored, values, i);
    if (field->classes) {
        mtc_put_class(field, out, i, value);
        return value >= 0 && value < field->classes;
    }
    if (field->type == MTC_I32)
        ((int32_t *)out)[i] = (int32_t)value;
    else
        ((uint8_t *)out)[i] = (uint8_t)value;
    return field->type == MTC_I32 ? value >= INT32_MIN && value <= INT32_MAX
                                  : value >= 0 && value <= (field->type == MTC_BOOL ? 1 : UINT8_MAX);
}

int mtc_convert_field(MtcFault *fault, const char *path, const MtcField *field, const MtcArray *array, void **values) {
    const int64_t count = array->dim[0] * field->elements;
    void *out = malloc((size_t)count * mtc_type_size(field->type));
    if (!out)
        return mtc_no_memory(fault, (size_t)count * mtc_type_size(field->type), path);
    for (int64_t i = 0; i < count; i++)
        if (!convert_one(field, array->stored, *values, i, out)) {
            free(out);
            return does_not_fit(fault, path, field, array, *values, i);
        }
    free(*values);
    *values = out;
    return 0;
}
