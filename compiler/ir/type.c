#include "ir/type.h"

#include "support/text.h"

#include <stdlib.h>

const DTypeInfo dtype_info[DTYPE_COUNT] = {
#define DTYPE(id, name, c, bytes, safetensors, rounding) {name, c, safetensors, bytes, rounding},
#include "ir/dtype.def"
#undef DTYPE
};

bool dtype_is_narrow(DType dtype) {
    return dtype_info[dtype].rounding;
}

bool dtype_is_byte(DType dtype) {
    return dtype == DT_I8 || dtype == DT_E4M3;
}

bool dtype_is_real(DType dtype) {
    return dtype == DT_F32 || dtype_is_narrow(dtype);
}

bool dtype_from_name(const char *name, DType *dtype) {
    for (int i = 0; i < DTYPE_COUNT; i++)
        if (!strcmp(dtype_info[i].name, name)) {
            *dtype = (DType)i;
            return true;
        }
    return false;
}

Type type_scalar(DType dtype) {
    return (Type){.dtype = dtype};
}

Type type_make(DType dtype, bool batched, int rank, const int64_t *dim) {
    Type type = {.dtype = dtype, .rank = rank, .batched = batched};
    for (int k = 0; k < rank; k++)
        type.dim[k] = dim[k];
    return type;
}

int64_t type_elements(const Type *type) {
    int64_t elements = 1;
    for (int k = 0; k < type->rank && elements >= 0; k++)
        elements = size_product(elements, type->dim[k]);
    return elements < 0 ? MAX_ELEMENTS : elements;
}

bool type_fits(const Type *type) {
    int64_t elements = 1;
    for (int k = 0; k < type->rank; k++)
        if (type->dim[k] > INT32_MAX || (elements = size_product(elements, type->dim[k])) < 0)
            return false;
    return true;
}

static int64_t most_given_to_ints(int64_t most) {
    const char *wanted = getenv("MTC_INT_HOLDS");
    return wanted ? strtoll(wanted, NULL, 10) : most;
}

bool int_holds(int64_t most) {
    return most <= most_given_to_ints(INT32_MAX);
}

bool int_counts(int64_t count) {
    return count <= most_given_to_ints(MOST_COUNTED);
}

int64_t type_bytes(const Type *type) {
    return type_elements(type) * dtype_info[type->dtype].bytes;
}

bool type_same_shape(const Type *a, const Type *b) {
    if (a->rank != b->rank)
        return false;
    for (int k = 0; k < a->rank; k++)
        if (a->dim[k] != b->dim[k])
            return false;
    return true;
}

int64_t type_stride(const Type *type, int axis) {
    int64_t stride = 1;
    for (int k = axis + 1; k < type->rank; k++)
        stride *= type->dim[k];
    return stride;
}

static const char *type_text(Arena *arena, const Type *type, int first_axis) {
    Text text = TEXT(arena);
    text_puts(&text, dtype_info[type->dtype].name);
    for (int k = first_axis; k < type->rank; k++)
        text_printf(&text, "%s%lld", k == first_axis ? "[" : ", ", (long long)type->dim[k]);
    if (type->rank > first_axis)
        text_putc(&text, ']');
    return text_string(&text);
}

const char *type_user_text(Arena *arena, const Type *type) {
    return type_text(arena, type, type->batched);
}

const char *type_graph_text(Arena *arena, const Type *type) {
    return type_text(arena, type, 0);
}

int64_t size_product(int64_t a, int64_t b) {
    int64_t product;
    return __builtin_mul_overflow(a, b, &product) || product > MAX_ELEMENTS ? -1 : product;
}

int64_t type_extent(const Type *type, int first, int end) {
    int64_t extent = 1;
    for (int axis = first; axis < end; axis++)
        extent *= type->dim[axis];
    return extent;
}

int64_t common_divisor(int64_t a, int64_t b) {
    return b ? common_divisor(b, a % b) : a;
}
