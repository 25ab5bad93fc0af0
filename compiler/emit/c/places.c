#include "emit/c/places.h"

#include "emit/c/phases.h"
#include "emit/kernel/repeat.h"
#include "emit/kernel/table.h"

/* ---- the struct of a place ---- */

/* "real *h_weight, *h_bias;": neighbours of one type, as many as fit into a line. */
static void write_pointers(Emitter *e, const Function *f, Writer *out) {
    Text line = TEXT(e->arena);
    DType last = DT_F32;
    for (int k = 0; k < f->buffers.count; k++) {
        const DType dtype = e->plan->buffers.at[f->buffers.at[k]].type.dtype;
        const char *name = e->tensor[f->buffers.at[k]];
        bool room = 4 * (size_t)out->indent + line.length + strlen(name) + strlen(", *;") <= LONGEST_LINE;
        if (line.length && (dtype != last || !room)) {
            write_line(out, "%s;", text_string(&line));
            line = TEXT(e->arena);
        }
        text_printf(&line, "%s%s%s", line.length ? ", " : arena_printf(e->arena, "%s ", c_type(e, dtype)),
                    pointer_mark(e, dtype), name);
        last = dtype;
    }
    if (line.length)
        write_line(out, "%s;", text_string(&line));
}

/* A member of Tensors: tensors first, which begin_at sets. */
static void write_place(Emitter *e, const Function *f, Writer *out) {
    const Members shared = shared_by(e, f, "->");
    write_open(out, "struct %s {", f->type);
    write_pointers(e, f, out);
    for (int k = 0; k < shared.count; k++)
        write_line(out, "%s%s;", shared.at[k].type, shared.at[k].name);
    write_close(out, arena_printf(e->arena, "} %s[%d];", f->at, functions_at(e, f).count));
}

/* ---- where its tensors begin ---- */

/* A row for each place, as the kernels come. */
static RowTable places_of(Emitter *e, const Function *f) {
    RowTable table = {.arena = e->arena};
    const NumberedFunctions all = functions_at(e, f);
    for (int k = 0; k < all.count; k++) {
        table_row(&table, all.at[k]->kernel->name);
        table.rows.at[table.rows.count - 1].lines = 1;
        for (int b = 0; b < all.at[k]->buffers.count; b++)
            table_number(&table, NULL, e->plan->buffers.at[all.at[k]->buffers.at[b]].offset);
    }
    return table;
}

/* Its struct and its array are those of others, too, for which it is written. */
static bool stands_for_places(const Function *f) {
    return has_own_tensors(f) && (f->sized < 0 || f->general);
}

/* "begin_at(run, t.h_at[i], 4096 + 512 * i, 65536);" */
static void write_row_of_places(Emitter *e, const Function *f, const RowTable *table, const Fold *fold, int row,
                                Writer *out) {
    const Members shared = shared_by(e, f, "->");
    const char *place = arena_printf(e->arena, "t.%s[%s]", f->at, fold_row(e->arena, fold, row));
    Text begins = TEXT(e->arena);
    for (int k = 0; k < f->buffers.count; k++)
        text_printf(&begins, ", %s", table_growth(table, fold, row, k));
    if (begins.length)
        write_line(out, "begin_at(run, %s%s);", place, text_string(&begins));
    for (int k = 0; k < shared.count; k++)
        write_line(out, "%s.%s = t.%s;", place, shared.at[k].name, shared.at[k].name);
}

/* Writes the lines as often as they are done, and empties them. */
static void write_times(Writer *lines, int times, Writer *out) {
    if (times > 1 && lines->lines.count)
        write_block(out, arena_printf(out->text.arena, "for (int64_t i = 0; i < %d; i++)", times), lines);
    else
        write_all(out, lines);
    *lines = writer_like(out);
}

/* Neighbouring loops over as many places are one. */
static void write_begins(Emitter *e, Writer *out) {
    Writer lines = writer_like(out);
    int times = 1;
    for (int f = 0; f < e->functions.count; f++) {
        if (!stands_for_places(&e->functions.at[f]))
            continue;
        RowTable table = places_of(e, &e->functions.at[f]);
        const Folds folds = table_loops(&table);
        for (int k = 0; k < folds.count; k++) {
            const Fold *fold = &folds.at[k];
            if (fold->times != times)
                write_times(&lines, times, out);
            times = fold->times;
            for (int row = fold->first; row < fold->first + fold->period; row++)
                write_row_of_places(e, &e->functions.at[f], &table, fold, row, &lines);
        }
    }
    write_times(&lines, times, out);
}

/* ---- sums of many tensors ---- */

void write_sum_of_array(Body *body, const char *name, const Buffer *const *terms, int count, const Tree *place) {
    Emitter *e = body->e;
    const char *at = body_text(body, place), *k = names_claim(&body->names, "term");
    const char *member = names_claim(&e->members, arena_printf(e->arena, "%s_terms", body->name));
    Writer lines = writer_like(body->out);
    VEC_PUSH(e->arena, &e->sums, ((LongSum){member, terms, count}));
    write_line(&lines, "%s += t->%s[%s][%s];", name, member, k, at);
    write_line(body->out, "%s %s = t->%s[0][%s];", e->dialect->real, name, member, at);
    write_block(body->out, arena_printf(e->arena, "for (int %s = 1; %s < %d; %s++)", k, k, count, k), &lines);
}

static void write_arrays(const Emitter *e, Writer *out) {
    for (int k = 0; k < e->sums.count; k++)
        write_line(out, "%s *%s[%d]; // the tensors that are summed", e->dialect->real, e->sums.at[k].member,
                   e->sums.at[k].count);
}

/* The `count` folds from `fold` on are of one array, whose neighbours they set: those that come again in a loop. */
static void write_begins_of_terms(const LongSum *sum, const RowTable *table, const Fold *fold, int count, Writer *out) {
    Text begins = TEXT(table->arena);
    Writer lines = writer_like(out);
    for (const Fold *each = fold; each < fold + count; each++)
        for (int row = each->first; row < each->first + each->period; row++)
            text_printf(&begins, ", %s", table_growth(table, each, row, 0));
    write_line(&lines, "begin_at(run, t.%s[%s]%s);", sum->member, fold_row(table->arena, fold, fold->first),
               text_string(&begins));
    write_times(&lines, fold->times, out);
}

static void write_terms(const Emitter *e, const LongSum *sum, Writer *out) {
    RowTable table = {.arena = e->arena};
    for (int k = 0; k < sum->count; k++) {
        table_row(&table, NULL);
        table.rows.at[k].lines = 1;
        table_number(&table, NULL, sum->terms[k]->offset);
    }
    const Folds folds = table_loops(&table);
    for (int f = 0, count; f < folds.count; f += count) {
        for (count = 1; f + count < folds.count && folds.at[f].times == 1 && folds.at[f + count].times == 1;)
            count++;
        write_begins_of_terms(sum, &table, &folds.at[f], count, out);
    }
}

/* ---- all tensors ---- */

static bool have_places(const Emitter *e) {
    bool any = e->sums.count > 0;
    for (int k = 0; k < e->functions.count; k++)
        any |= has_own_tensors(&e->functions.at[k]);
    return any;
}

static void write_struct(Emitter *e, const Members *members, Writer *out) {
    write_open(out, "typedef struct Tensors {");
    write_members(e, members, false, out);
    for (int k = 0; k < e->functions.count; k++)
        if (stands_for_places(&e->functions.at[k]))
            write_place(e, &e->functions.at[k], out);
    write_arrays(e, out);
    write_close(out, "} Tensors;");
}

void write_tensors(Emitter *e, Writer *out) {
    const Members members = tensors_members(e, "->", "run->");
    const bool places = have_places(e);
    write_struct(e, &members, out);
    write_blank(out);
    write_open(out, "static Tensors tensors(const MtcRun *run) {");
    write_open(out, places ? "Tensors t = {" : "return (Tensors){");
    for (int k = 0; k < members.count; k++)
        write_line(out, ".%s = %s,", members.at[k].name, members.at[k].value);
    write_close(out, "};");
    write_begins(e, out);
    for (int k = 0; k < e->sums.count; k++)
        write_terms(e, &e->sums.at[k], out);
    if (places)
        write_line(out, "return t;");
    write_close(out, "}");
}

static void write_place_remark(Emitter *e, const Function *f, Writer *out) {
    const char *last = f->name;
    for (int k = 0; k < e->functions.count; k++)
        if (&e->functions.at[e->functions.at[k].like] == f)
            last = e->functions.at[k].name;
    write_comment(out, 0, arena_printf(e->arena, "At %d places: %s ... %s", f->places, f->name, last));
}

static const char *tensors_type(Emitter *e, const Function *f) {
    return f->type ? arena_printf(e->arena, "struct %s", f->type) : "Tensors";
}

/* "static void h(const Tensors *t)", the parameters being those that its text uses. */
static const char *signature(Emitter *e, const Function *f) {
    return arena_printf(e->arena, "static void %s(%s)", f->name, c_parameters(e, f, tensors_type(e, f), "void"));
}

static bool stores_bytes(const Kernel *kernel) {
    bool stores = false;
    for (int k = 0; k < kernel->stores.count; k++) {
        DType dtype = kernel->stores.at[k]->type.dtype;
        stores |= dtype == DT_U8 || dtype_is_byte(dtype);
    }
    return stores;
}

/* A byte that is stored could be a part of what says where tensors lie, which would be read anew behind it: loops would be no vector
 * code. */
static void write_lines_of(Emitter *e, const Function *f, Writer *out) {
    if (stores_bytes(f->kernel)) {
        write_line(out, "const %s known = *t; // no part of it is a byte that is stored", tensors_type(e, f));
        write_line(out, "t = &known;");
    }
    write_all(out, &f->lines);
}

/* What calls the function with its sizes. */
static void write_instance(Emitter *e, const Function *f, const char *general, Writer *out) {
    Text sizes = TEXT(e->arena);
    for (int k = 0; k < f->arguments.count; k++)
        text_printf(&sizes, ", %s", f->arguments.at[k]);
    write_blank(out);
    write_open(out, "%s {", signature(e, f));
    write_line(out, "%s(%s%s);", general, c_arguments(e, f, "t", "batch", ""), text_string(&sizes));
    write_close(out, "}");
}

/* It is part of each that calls it, as if the sizes stood in its text. */
static void write_general(Emitter *e, const Function *f, Writer *out) {
    Text sizes = TEXT(e->arena);
    for (int k = 0; k < f->parameters.count; k++)
        text_printf(&sizes, ", const int %s", f->parameters.at[k]);
    write_open(out, "static inline __attribute__((always_inline)) void %s(%s%s) {", f->general,
               c_parameters(e, f, arena_printf(e->arena, "struct %s", f->type), ""), text_string(&sizes));
    write_lines_of(e, f, out);
    write_close(out, "}");
    for (int k = 0; k < e->functions.count; k++)
        if (e->functions.at[k].like == k && e->functions.at[k].sized == f - e->functions.at)
            write_instance(e, &e->functions.at[k], f->general, out);
}

void write_c_function(Emitter *e, const Function *f, Writer *out) {
    if (f->general) {
        write_general(e, f, out);
        return;
    }
    if (f->places > 1)
        write_place_remark(e, f, out);
    write_open(out, "%s {", signature(e, f));
    write_lines_of(e, f, out);
    write_close(out, "}");
}
