#include "emit/kernel/emitter.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

const char *tensor_name(const Emitter *e, const Buffer *buffer) {
    return e->tensor[buffer - e->plan->buffers.at];
}

const char *c_type(const Emitter *e, DType dtype) {
    return dtype == DT_F32 ? e->dialect->real : dtype_info[dtype].c_name;
}

/* Bytes that are stored could be a part of anything. */
const char *pointer_mark(const Emitter *e, DType dtype) {
    return dtype_is_byte(dtype) ? arena_printf(e->arena, "*%s", e->dialect->sole) : "*";
}

/* The shortest digits that read back as the same number of the type; without an exponent if that is no longer. */
static const char *digits(Arena *arena, double value, bool f64) {
    char text[40], plain[40];
    for (int precision = 1; precision <= 17; precision++) {
        snprintf(text, sizeof text, "%.*g", precision, value);
        if (f64 ? strtod(text, NULL) == value : strtof(text, NULL) == (float)value)
            break;
    }
    snprintf(plain, sizeof plain, "%.15g", strtod(text, NULL));
    return arena_strdup(arena, strlen(plain) <= strlen(text) ? plain : text);
}

const char *literal(const Emitter *e, double value, DType dtype) {
    if (dtype_is_narrow(dtype) && !e->mathematics)
        return arena_printf(e->arena, "%s(%s)", dtype_info[dtype].rounding, literal(e, value, DT_F32));
    if (isnan(value))
        return "NAN";
    if (isinf(value))
        return value > 0 ? "INFINITY" : "-INFINITY";
    if (dtype != DT_F32)
        return arena_printf(e->arena, "%.0f", value);
    const char *text = digits(e->arena, value, e->options->f64);
    const char *point = strpbrk(text, ".e") ? "" : ".0";
    return e->mathematics ? text : arena_printf(e->arena, "%s%s%s", text, point, e->options->f64 ? "" : "f");
}

const Tree *literal_tree(const Emitter *e, double value, DType dtype) {
    if (!dtype_is_narrow(dtype) || e->mathematics)
        return tree_literal(e->arena, literal(e, value, dtype));
    const Tree *number = tree_literal(e->arena, literal(e, value, DT_F32));
    return tree_call(e->arena, dtype_info[dtype].rounding, &number, 1);
}

/* Equal numbers of one operator are one: it has one hint for them. */
static NamedNumber *named_number(Emitter *e, const char *hint, double value) {
    for (int k = 0; k < e->numbers.count; k++)
        if (e->numbers.at[k]->value == value && e->numbers.at[k]->hint == hint)
            return e->numbers.at[k];
    NamedNumber *number = NEW(e->arena, NamedNumber);
    *number = (NamedNumber){.hint = hint, .symbol = names_claim_constant(&e->globals, hint), .value = value};
    VEC_PUSH(e->arena, &e->numbers, number);
    return number;
}

/* Whole numbers are short, and equal ones, which are one node, mean many things: 0 is a mean and what relu compares with. */
const Tree *number_tree(Emitter *e, const Node *constant) {
    double value = constant->attr.value;
    if (!constant->hint || value == floor(value) || constant->type.dtype != DT_F32 || e->mathematics)
        return literal_tree(e, value, constant->type.dtype);
    NamedNumber *number = named_number(e, constant->hint, value);
    return tree_constant(e->arena, number->symbol, 0, &number->printed);
}

void write_numbers(const Emitter *e, Writer *out) {
    for (int k = 0; k < e->numbers.count; k++) {
        const NamedNumber *number = e->numbers.at[k];
        if (number->printed)
            write_line(out, "%s %s %s = %s;", e->dialect->named, e->dialect->real, number->symbol,
                       literal(e, number->value, DT_F32));
    }
}
