/* Arrays of files in the types of fields: NumPy's own are f64 and i64. A number that does not fit, or that has a fraction where the field has
 * none, is a fault that says where it is; rounding to f32 is none. */
#include "data/field.h"
#include "data/stored.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* 1 bit of sign, 5 of exponent, 10 of mantissa. */
double mtc_from_half(uint16_t bits) {
    const int exponent = bits >> 10 & 31, mantissa = bits & 1023;
    const double sign = bits >> 15 ? -1 : 1;
    if (exponent == 31)
        return mantissa ? (double)NAN : sign * (double)INFINITY;
    return sign * (exponent ? ldexp(1024 + mantissa, exponent - 25) : ldexp(mantissa, -24));
}

static int64_t stored_whole(MtcStored stored, const void *values, int64_t i) {
    switch (stored) {
    case MTC_AS_BOOL: return ((const uint8_t *)values)[i] != 0;
    case MTC_AS_U8: return ((const uint8_t *)values)[i];
    case MTC_AS_I8: return ((const int8_t *)values)[i];
    case MTC_AS_I16: return ((const int16_t *)values)[i];
    case MTC_AS_I32: return ((const int32_t *)values)[i];
    case MTC_AS_U16: return ((const uint16_t *)values)[i];
    case MTC_AS_U32: return ((const uint32_t *)values)[i];
    default: return ((const int64_t *)values)[i];
    }
}

static double stored_number(MtcStored stored, const void *values, int64_t i) {
    switch (stored) {
    case MTC_AS_U64: return (double)((const uint64_t *)values)[i];
    case MTC_AS_F16: return mtc_from_half(((const uint16_t *)values)[i]);
    case MTC_AS_F32: return (double)((const float *)values)[i];
    case MTC_AS_F64: return ((const double *)values)[i];
    default: return (double)stored_whole(stored, values, i);
    }
}

/* False: it is none, or beyond 63 bits, or those that a double tells apart. */
static bool whole_number(MtcStored stored, const void *values, int64_t i, int64_t *whole) {
    if (stored <= MTC_AS_U64) {
        *whole = stored_whole(stored, values, i);
        return stored != MTC_AS_U64 || *whole >= 0;
    }
    const double value = stored_number(stored, values, i);
    if (!(fabs(value) <= 1LL << DBL_MANT_DIG) || value != floor(value))
        return false;
    *whole = (int64_t)value;
    return true;
}

/* "example 3", or "example 3, element [0, 2]" where it has several. */
static const char *append_place(MtcText *text, const MtcField *field, int64_t i) {
    mtc_text_add(text, "example %lld", (long long)(i / field->elements));
    if (field->rank)
        mtc_text_add(text, ", element %s", mtc_index(i % field->elements, field->rank, field->dim));
    return text->at;
}

/* All digits of a whole number. */
static const char *stored_text(MtcStored stored, const void *values, int64_t i, char digits[24]) {
    int64_t whole;
    if (stored == MTC_AS_U64)
        snprintf(digits, 24, "%llu", (unsigned long long)((const uint64_t *)values)[i]);
    else if (whole_number(stored, values, i, &whole))
        snprintf(digits, 24, "%lld", (long long)whole);
    else
        return mtc_number(stored_number(stored, values, i));
    return digits;
}

static int does_not_fit(MtcFault *fault, const char *path, const MtcField *field, const MtcArray *array,
                        const void *values, int64_t i) {
    MtcText text = {NULL, 0, 0};
    int64_t whole;
    const bool is_whole = array->stored == MTC_AS_U64 || whole_number(array->stored, values, i, &whole);
    char digits[24];
    const char *number = stored_text(array->stored, values, i, digits);
    if (field->classes)
        mtc_fail(fault, MTC_BAD_DATA, "%s: %s has the label %s; field '%s' is class[%d], so expected %s0 to %d", path,
                 append_place(&text, field, i), number, field->name, field->classes,
                 is_whole ? "" : "whole numbers from ", field->classes - 1);
    else
        mtc_fail(fault, MTC_BAD_DATA, "%s: %s is %s, which does not fit in %s, the type of field '%s'", path,
                 append_place(&text, field, i), number, mtc_type_name(field->type), field->name);
    if (!is_whole && field->type != MTC_F32)
        mtc_note(fault, "the file holds %s; a field of type f32 has fractions", mtc_stored_name(array->stored));
    free(text.at);
    return fault->code;
}

/* False: it does not fit. */
static bool convert_one(const MtcField *field, MtcStored stored, const void *values, int64_t i, void *out) {
    int64_t value;
    if (field->type == MTC_F32) {
        const double number = stored_number(stored, values, i);
        ((float *)out)[i] = (float)number;
        return !isfinite(number) || fabs(number) <= FLT_MAX;
    }
    if (!whole_number(stored, values, i, &value))
        return false;
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
