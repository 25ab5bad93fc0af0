/* Where the tensors of functions with several places begin: tables in constant memory, and structs that are made of a row. */
#include "emit/cuda/places.h"

#include "emit/kernel/expr.h"
#include "emit/kernel/repeat.h"
#include "emit/kernel/table.h"

/* Bytes of constant memory that tables may take, of 64 KB. */
static bool fits_constant_memory(const Emitter *e) {
    enum { MOST = 40 * 1024 };
    size_t bytes = 0;
    for (int k = 0; k < e->functions.count; k++) {
        const Function *written = &e->functions.at[e->functions.at[k].like];
        bytes += has_own_tensors(written) ? (size_t)written->buffers.count * sizeof(unsigned) : 0;
    }
    return bytes <= MOST;
}

/* A row for each place: where its tensors begin. Returns how the rows are called. */
static const char *write_begins(Emitter *e, const Function *f, Writer *out) {
    const char *memory = fits_constant_memory(e) ? "__constant__" : "__device__ const";
    const char *constant = f->general ? arena_printf(e->arena, "%s constexpr", memory) : memory;
    const NumberedFunctions all = functions_at(e, f);
    RowTable table = {.arena = e->arena};
    for (int k = 0; k < all.count; k++) {
        table_row(&table, all.at[k]->name);
        for (int b = 0; b < all.at[k]->buffers.count; b++)
            table_number(&table, NULL, e->plan->buffers.at[all.at[k]->buffers.at[b]].offset / ARENA_ALIGN);
    }
    const RunTable as = {constant, "unsigned", arena_printf(e->arena, "%s_places", f->name), f->buffers.count};
    return write_runs(&table, &as, out);
}

static DType type_at(const Emitter *e, const Function *f, int b) {
    return e->plan->buffers.at[f->buffers.at[b]].type.dtype;
}

/* "float *h, *h_weight;": those of a type together. */
static void write_tensors(Emitter *e, const Function *f, Writer *out) {
    bool *written = NEW_ARRAY(e->arena, bool, f->buffers.count);
    for (int b = 0; b < f->buffers.count; b++) {
        if (written[b])
            continue;
        Text line = TEXT(e->arena);
        for (int other = b; other < f->buffers.count; other++)
            if (type_at(e, f, other) == type_at(e, f, b)) {
                const char *before = other == b ? c_type(e, type_at(e, f, b)) : ",";
                text_printf(&line, "%s *%s", before, e->tensor[f->buffers.at[other]]);
                written[other] = true;
            }
        write_line(out, "%s;", text_string(&line));
    }
}

/* "struct Own { ... };", which is made of a row. */
static void write_own(Emitter *e, const Function *f, const char *rows, Writer *out) {
    const char *from = f->general ? arena_printf(e->arena, "(%s + FIRST)", rows) : rows;
    const char *row = f->general ? "PLACES == 1 ? 0 : row" : "row";
    const Members shared = shared_by(e, f, ".");
    Text members = TEXT(e->arena);
    write_open(out, "struct Own {");
    for (int k = 0; k < shared.count; k++)
        write_line(out, "%s%s;", shared.at[k].type, shared.at[k].name);
    write_tensors(e, f, out);
    write_open(out, "__device__ Own(const Tensors &t, int row) {");
    for (int k = 0; k < shared.count; k++)
        write_line(out, "%s = t.%s;", shared.at[k].name, shared.at[k].name);
    for (int b = 0; b < f->buffers.count; b++)
        text_printf(&members, ", %s", e->tensor[f->buffers.at[b]]);
    write_line(out, "begin_at(%s[%s]%s);", from, row, text_string(&members));
    write_close(out, "}");
    write_close(out, "};");
}

/* ---- several sizes ---- */

/* "template <int FIRST, int PLACES, int ROWS>": where that is too long for a line, below each other. */
static const char *template_head(Emitter *e, const Function *f) {
    Text head = TEXT(e->arena);
    text_puts(&head, "template <int FIRST, int PLACES");
    size_t begin = 0;
    for (int k = 0; k < f->parameters.count; k++) {
        const char *parameter = arena_printf(e->arena, " int %s", f->parameters.at[k]);
        text_putc(&head, ',');
        if (head.length - begin + strlen(parameter) + strlen(",") > LONGEST_LINE) {
            begin = head.length + 1;
            text_puts(&head, "\n         ");
        }
        text_puts(&head, parameter);
    }
    text_putc(&head, '>');
    return text_string(&head);
}

/* "struct h_2 : h_sized<4, 1, H_2_ROWS> {};" */
static const char *instance(Emitter *e, const Function *f, const char *general) {
    Text sizes = TEXT(e->arena);
    for (int k = 0; k < f->arguments.count; k++)
        text_printf(&sizes, ", %s", f->arguments.at[k]);
    return arena_printf(e->arena, "struct %s : %s<%d, %d%s> {};", f->name, general, f->first, f->places,
                        text_string(&sizes));
}

/* clang-format would set those that are too long for a line in columns of its own. */
static void write_instances(Emitter *e, const Function *f, Writer *out) {
    Writer lines = writer_like(out);
    bool narrow = true;
    for (int k = 0; k < e->functions.count; k++) {
        const Function *each = &e->functions.at[k];
        if (each->like != k || each->sized != f - e->functions.at)
            continue;
        const char *line = instance(e, each, f->general);
        write_line(&lines, "%s", line);
        narrow &= strlen(line) <= LONGEST_LINE;
    }
    if (!narrow)
        write_line(out, "// clang-format off");
    write_all(out, &lines);
    if (!narrow)
        write_line(out, "// clang-format on");
}

/* ---- kernels ---- */

/* What its lines do not say has no name. */
static const char *signature(Emitter *e, const Function *f) {
    const bool *has = f->has;
    return arena_printf(
        e->arena, "static __device__ void run(const %s &%s, const Batch &%s, int%s, char *%s, Gate &%s)",
        has_own_tensors(f) ? "Own" : "Tensors", has[PARAMETER_TENSORS] ? "t" : "", has[PARAMETER_BATCH] ? "batch" : "",
        has[PARAMETER_TILE] ? " tile" : "", has[PARAMETER_SHARED] ? "shared" : "", has[PARAMETER_GATE] ? "gate" : "");
}

static void open_struct(Emitter *e, const Function *f, Writer *out) {
    const char *type = arena_printf(e->arena, "struct %s {", f->general ? f->general : f->name);
    const char *head = f->general ? template_head(e, f) : "";
    const bool one_line = strlen(head) + 1 + strlen(type) <= LONGEST_LINE;
    write_open(out, "%s%s%s", head, !*head ? "" : one_line ? " " : "\n", type);
}

void write_kernel(Emitter *e, const Function *f, Writer *out) {
    const char *rows = has_own_tensors(f) ? write_begins(e, f, out) : NULL;
    write_all(out, &f->tables);
    out->at = f->lines.at;
    open_struct(e, f, out);
    if (rows)
        write_own(e, f, rows, out);
    write_all(out, &f->declarations);
    out->at = f->lines.at;
    write_open(out, "%s {", signature(e, f));
    write_all(out, &f->lines);
    write_close(out, "}");
    write_close(out, "};");
    if (f->general)
        write_instances(e, f, out);
}

static bool stands_for_places(const Function *f) {
    return has_own_tensors(f) && (f->sized < 0 || f->general);
}

void explain_places(Emitter *e, bool launches_say_rows, Writer *out) {
    const Function *some = NULL, *sized = NULL;
    for (int k = 0; k < e->functions.count; k++) {
        some = some || !stands_for_places(&e->functions.at[k]) ? some : &e->functions.at[k];
        sized = sized || !e->functions.at[k].general ? sized : &e->functions.at[k];
    }
    if (!some)
        return;
    const char *sizes = sized ? arena_printf(e->arena,
                                             " Those that differ in sizes are one template, %s, and a struct for each "
                                             "that says which sizes, and which rows of the table are its own.",
                                             sized->general)
                              : "";
    const char *rows =
        " A launch takes row 0, made again row 1, 2 ...; At<kernel, 3, 2, 4> takes rows 3 to 6, made again 5 "
        "to 8 (cuda/phase.cuh).";
    write_blank(out);
    write_comment(
        out, 0,
        arena_printf(e->arena,
                     "Layers that are alike share their kernels, which are given the tensors of one place, Own: "
                     "%s_places has a row for each, where its tensors begin, in units of %d bytes.%s%s",
                     some->name, ARENA_ALIGN, sizes, launches_say_rows ? rows : ""));
}

/* Of a sum: 8 KB of the constant memory that tables of places leave. */
enum { MOST_CONSTANT_TERMS = 2048 };

void write_long_sum(Body *body, const char *name, const Buffer *const *terms, int count, const Tree *place) {
    Emitter *e = body->e;
    RowTable table = {.arena = e->arena};
    VEC_PUSH(e->arena, &e->sums, ((LongSum){NULL, terms, count}));
    for (int k = 0; k < count; k++) {
        table_row(&table, tensor_name(e, terms[k]));
        table_number(&table, NULL, terms[k]->offset / ARENA_ALIGN);
    }
    const char *at = body_text(body, place), *k = names_claim(&body->names, "term");
    const char *rows = names_claim(&e->globals, arena_printf(e->arena, "%s_terms", body->name));
    write_comment(
        body->above, 0,
        arena_printf(e->arena, "Where the tensors begin that are summed, in units of %d bytes.", ARENA_ALIGN));
    const char *memory = count <= MOST_CONSTANT_TERMS ? "__constant__" : "__device__ const";
    rows = write_runs(&table, &(RunTable){memory, "unsigned", rows, 1}, body->above);
    Writer lines = writer_like(body->out);
    write_line(&lines, "%s += at_place<float>(%s[%s][0])[%s];", name, rows, k, at);
    write_line(body->out, "float %s = at_place<float>(%s[0][0])[%s];", name, rows, at);
    write_line(body->out, "#pragma unroll");
    write_block(body->out, arena_printf(e->arena, "for (int %s = 1; %s < %d; %s++)", k, k, count, k), &lines);
}
