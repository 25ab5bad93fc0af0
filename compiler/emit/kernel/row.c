/* Rows of tables: literals, lists, members. */
#include "emit/kernel/row.h"

#include <math.h>

/* ---- literals ---- */

const char *number(Arena *arena, double value) {
    Text out = TEXT(arena);
    if (isinf(value))
        return value > 0 ? "INFINITY" : "-INFINITY";
    text_number(&out, value);
    return text_string(&out);
}

const char *integer(Arena *arena, int64_t value) {
    return arena_printf(arena, "%lld", (long long)value);
}

const char *dims(Arena *arena, const Type *type, int first) {
    Text out = TEXT(arena);
    text_putc(&out, '{');
    for (int axis = first; axis < type->rank; axis++)
        text_printf(&out, "%s%lld", axis > first ? ", " : "", (long long)type->dim[axis]);
    if (type->rank <= first)
        text_putc(&out, '0');
    text_putc(&out, '}');
    return text_string(&out);
}

const char *runtime_type(const Emitter *e, DType dtype, bool computed) {
    static const char *const names[] = {
        [DT_F32] = "MTC_F32",   [DT_I32] = "MTC_I32", [DT_U8] = "MTC_U8", [DT_U16] = "MTC_U16",  [DT_BOOL] = "MTC_BOOL",
        [DT_BF16] = "MTC_BF16", [DT_F16] = "MTC_F16", [DT_I8] = "MTC_I8", [DT_E4M3] = "MTC_E4M3"};
    return computed && dtype == DT_F32 && e->options->f64 ? "MTC_F64" : names[dtype];
}

/* ---- lists ---- */

static size_t column_after(const Writer *out, size_t bytes) {
    return 4 * (size_t)out->indent + bytes;
}

void write_list(Writer *out, const char *head, const char *const *items, int count, const char *tail) {
    Text line = TEXT(out->text.arena);
    int indent = (int)strlen(head);
    text_puts(&line, head);
    for (int k = 0; k < count; k++) {
        const char *end = k + 1 < count ? "," : tail;
        size_t needed = line.length + strlen(items[k]) + strlen(end) + 1;
        bool first = line.length == (size_t)indent;
        if (!first && column_after(out, needed) > LONGEST_LINE) {
            write_line(out, "%s", text_string(&line));
            line = TEXT(out->text.arena);
            text_printf(&line, "%*s", indent, "");
            first = true;
        }
        text_printf(&line, "%s%s%s", first ? "" : " ", items[k], end);
    }
    write_line(out, "%s", text_string(&line));
}

void write_row(Writer *out, const char *const *items, int count) {
    Text line = TEXT(out->text.arena);
    for (int k = 0; k < count; k++)
        text_printf(&line, "%s%s", k ? ", " : "{", items[k]);
    text_puts(&line, "},");
    if (column_after(out, line.length) <= LONGEST_LINE) {
        write_line(out, "%s", text_string(&line));
        return;
    }
    for (int k = 0; k < count; k++)
        write_line(out, "%s%s%s", k ? " " : "{", items[k], k + 1 < count ? "," : "},");
}

void write_notes(Writer *out, const char *head, const Notes *notes) {
    int width = 0;
    for (int k = 0; k < notes->count; k++)
        if ((int)strlen(notes->at[k].row) > width)
            width = (int)strlen(notes->at[k].row);
    write_open(out, "%s = {", head);
    for (int k = 0; k < notes->count; k++)
        if (width < LONGEST_LINE / 2)
            write_noted(out, width, notes->at[k].row, notes->at[k].about);
        else
            write_line(out, "%s", notes->at[k].row);
    write_close(out, "};");
}

const char *is(Arena *arena, const char *member, const char *value) {
    return arena_printf(arena, ".%s = %s", member, value);
}
