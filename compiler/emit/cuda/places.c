/* Where the tensors of functions with several places begin: tables in constant memory, and structs that are made of a row. */
#include "emit/cuda/places.h"

#include "emit/kernel/repeat.h"
#include "emit/kernel/table.h"

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

static void write_struct(Emitter *e, const Function *f, const char *rows, Writer *out) {
    const char *type = places_type(f);
    const Members shared = shared_by(e, f, ".");
    const char **members = NEW_ARRAY(e->arena, const char *, f->buffers.count + 1);
    members[0] = arena_printf(e->arena, "%s[row]", rows);
    write_open(out, "struct %s {", type);
    for (int k = 0; k < shared.count; k++)
        write_line(out, "%s%s;", shared.at[k].type, shared.at[k].name);
    for (int b = 0; b < f->buffers.count; b++) {
        members[b + 1] = e->tensor[f->buffers.at[b]];
        write_line(out, "%s *%s;", c_type(e, e->plan->buffers.at[f->buffers.at[b]].type.dtype), members[b + 1]);
    }
    write_open(out, "__device__ %s(const Tensors &t, int row) {", type);
    for (int k = 0; k < shared.count; k++)
        write_line(out, "%s = t.%s;", shared.at[k].name, shared.at[k].name);
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
