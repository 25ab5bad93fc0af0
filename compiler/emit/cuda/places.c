/* Where the tensors of functions with several places begin: tables in constant memory, and structs that are made of a row. */
#include "emit/cuda/places.h"

#include "emit/kernel/repeat.h"
#include "emit/kernel/table.h"
#include "emit/kernel/tensors.h"

/* Bytes of constant memory that tables may take, of 64 KB. */
static bool fits_constant_memory(const Emitter *e) {
    enum { MOST = 40 * 1024 };
    size_t bytes = 0;
    for (int k = 0; k < e->functions.count; k++) {
        const Function *written = &e->functions.at[e->functions.at[k].like];
        bytes += written->places > 1 ? (size_t)written->buffers.count * sizeof(unsigned) : 0;
    }
    return bytes <= MOST;
}

/* A row for each place: where its tensors begin. Returns how the rows are called. */
static const char *write_begins(Emitter *e, const Function *f, Writer *out) {
    const char *memory = fits_constant_memory(e) ? "__constant__" : "__device__ const";
    RowTable table = {.arena = e->arena};
    for (int k = 0; k < e->functions.count; k++) {
        const Function *at = &e->functions.at[k];
        if (&e->functions.at[at->like] != f)
            continue;
        table_row(&table, at->kernel->name);
        for (int b = 0; b < at->buffers.count; b++)
            table_number(&table, NULL, e->plan->buffers.at[at->buffers.at[b]].offset / ARENA_ALIGN);
    }
    const RunTable as = {memory, "unsigned", arena_printf(e->arena, "%s_places", f->name), f->buffers.count};
    return write_runs(&table, &as, out);
}

/* Fields and flags that the function mentions: the same at all places. */
static void write_shared_members(Emitter *e, const Function *f, bool declared, Writer *out) {
    Members members = shared_members(e);
    const char *text = text_string(&f->lines.text);
    for (int k = 0; k < members.count; k++)
        if (has_word(text, arena_printf(e->arena, "t.%s", members.at[k].name))) {
            if (declared)
                write_line(out, "%s%s;", members.at[k].type, members.at[k].name);
            else
                write_line(out, "%s = t.%s;", members.at[k].name, members.at[k].name);
        }
}

static void write_struct(Emitter *e, const Function *f, const char *rows, Writer *out) {
    const char *type = places_type(e, f);
    const char **members = NEW_ARRAY(e->arena, const char *, f->buffers.count + 1);
    members[0] = arena_printf(e->arena, "%s[row]", rows);
    write_open(out, "struct %s {", type);
    write_shared_members(e, f, true, out);
    for (int b = 0; b < f->buffers.count; b++) {
        members[b + 1] = e->tensor[f->buffers.at[b]];
        write_line(out, "%s *%s;", c_type(e, e->plan->buffers.at[f->buffers.at[b]].type.dtype), members[b + 1]);
    }
    write_open(out, "__device__ %s(const Tensors &t, int row) {", type);
    write_shared_members(e, f, false, out);
    write_list(out, "begin_at(", members, f->buffers.count + 1, ");");
    write_close(out, "}");
    write_close(out, "};");
}

void write_places(Emitter *e, const Function *f, Writer *out) {
    write_comment(
        out, 0,
        arena_printf(e->arena, "At %d places: where its tensors begin, in units of %d bytes.", f->places, ARENA_ALIGN));
    write_struct(e, f, write_begins(e, f, out), out);
}
