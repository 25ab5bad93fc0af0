#include "emit/c/phases.h"

#include "emit/kernel/function.h"
#include "emit/kernel/repeat.h"
#include "emit/kernel/table.h"

/* ---- a call ---- */

/* The function that is written for the kernel, and at which of its places. */
static void add_call(Emitter *e, const Kernel *kernel, RowTable *rows) {
    table_text(rows, NULL, written_function(e, kernel)->name);
    table_number(rows, NULL, written_function(e, kernel)->first + function_of(e, kernel)->place);
}

/* "h(t, batch)", "h(&t->h_at[7 + 2 * i], batch)" */
static const char *call_text(Emitter *e, const Kernel *kernel, const RowTable *rows, const Fold *fold, int row) {
    const Function *f = written_function(e, kernel);
    const char *tensors = "t";
    if (f->type)
        tensors = arena_printf(e->arena, "&t->%s[%s]", f->at, table_growth(rows, fold, row, 0));
    return arena_printf(e->arena, "%s(%s)", f->name, c_arguments(e, f, tensors, "batch", ""));
}

static void write_fold(const Fold *fold, const Writer *lines, Writer *out) {
    if (fold->times > 1)
        write_block(out, arena_printf(out->text.arena, "for (int i = 0; i < %d; i++)", fold->times), lines);
    else
        write_all(out, lines);
}

/* A row for each kernel. */
static RowTable calls_of(Emitter *e, const Phase *phase) {
    RowTable rows = {.arena = e->arena};
    for (int k = 0; k < phase->kernels.count; k++) {
        table_row(&rows, NULL);
        rows.rows.at[k].lines = 1;
        add_call(e, phase->kernels.at[k], &rows);
    }
    return rows;
}

/* ---- a kernel by its number ---- */

/* In the order of the phases; those of the training step are the rows of kernel_table. */
static Phase kernels_of(const Program *program) {
    Phase all = {0};
    for (int p = 0; p < program->phases.count; p++)
        for (int k = 0; k < program->phases.at[p].kernels.count; k++)
            VEC_PUSH(program->arena, &all.kernels, program->phases.at[p].kernels.at[k]);
    return all;
}

/* On a line of its own where that is too long for one; in a loop, all stand further in. */
static void write_case(int kernel, const char *call, bool in_loop, Writer *out) {
    const int indent = in_loop ? 8 : 4;
    const char *line = arena_printf(out->text.arena, "case %d: %s; break;", kernel, call);
    if ((int)strlen(line) + indent > LONGEST_LINE)
        line = arena_printf(out->text.arena, "case %d:\n    %s;\n    break;", kernel, call);
    write_line(out, "%s", line);
}

/* `count` folds that stand by themselves, or one that comes again, whose cases are those of its first time. */
static void write_choice_of(Emitter *e, const Phase *step, const RowTable *rows, const Fold *folds, int count,
                            Writer *out) {
    Writer lines = writer_like(out);
    const Fold since = {0, folds->period, folds->times};
    const char *before = folds->times > 1 ? arena_printf(e->arena, " - %s", fold_row(e->arena, &since, 0)) : "";
    write_line(&lines, "switch (kernel%s) {", before);
    for (const Fold *fold = folds; fold < folds + count; fold++)
        for (int row = fold->first; row < fold->first + fold->period; row++)
            write_case(row, call_text(e, step->kernels.at[row], rows, fold, row), folds->times > 1, &lines);
    write_line(&lines, "}");
    write_fold(folds, &lines, out);
}

/* Updates by a rate that is the same in all steps do not read the batch, the step of a model that trains nothing no tensors. */
static void write_unused(const Emitter *e, const Phase *kernels, KernelParameter parameter, Writer *out) {
    bool read = false;
    for (int k = 0; k < kernels->kernels.count; k++)
        read |= written_function(e, kernels->kernels.at[k])->has[parameter];
    if (!read)
        write_line(out, parameter == PARAMETER_BATCH ? "(void)batch;" : "(void)t;");
}

static void write_kernel_choice(Emitter *e, const Program *program, Writer *out) {
    const Phase step = kernels_of(program);
    RowTable rows = calls_of(e, &step);
    const Folds folds = table_loops(&rows);
    write_open(out, "static void %s_kernel(const Tensors *t, const Batch *batch, int kernel) {", program->prefix);
    write_unused(e, &step, PARAMETER_TENSORS, out);
    write_unused(e, &step, PARAMETER_BATCH, out);
    for (int f = 0, count; f < folds.count; f += count) {
        for (count = 1; f + count < folds.count && folds.at[f].times == 1 && folds.at[f + count].times == 1;)
            count++;
        write_choice_of(e, &step, &rows, &folds.at[f], count, out);
    }
    write_close(out, "}");
}

/* ---- phases ---- */

/* Which kernel is the first behind each phase. clang-format would set a list of several lines in columns. */
static void write_ends(const Program *program, const char *phases, Writer *out) {
    Arena *arena = program->arena;
    const char **ends = NEW_ARRAY(arena, const char *, program->phases.count);
    Text head = TEXT(arena), list = TEXT(arena);
    text_printf(&head, "static const int %s_ends[%s_PHASES] = {", program->prefix, phases);
    for (int p = 0, end = 0; p < program->phases.count; p++) {
        ends[p] = integer(arena, end += program->phases.at[p].kernels.count);
        text_printf(&list, "%s%s", p ? ", " : "", ends[p]);
    }
    write_line(out, "// the first kernel behind each phase");
    if (head.length + list.length + strlen("};") <= LONGEST_LINE) {
        write_line(out, "%s%s};\n", text_string(&head), text_string(&list));
        return;
    }
    write_open(out, "// clang-format off\n%s", text_string(&head));
    write_list(out, "", ends, program->phases.count, "");
    write_close(out, "};\n// clang-format on\n");
}

/* Training phases that stop for sums over shards go on from any; all others begin with the first. */
static void write_phase_loop(const Program *program, bool from_any, Writer *out) {
    const char *prefix = program->prefix;
    write_line(out,
               "static void %s_phases(const Tensors *t, const Batch *batch, Team *team, %s) {\n"
               "    for (int phase = %s; phase < %s; phase++) {\n"
               "        for (; kernel < %s_ends[phase]; kernel++)\n"
               "            %s_kernel(t, batch, kernel);\n"
               "        team_wait(team);\n"
               "    }\n"
               "}",
               prefix, from_any ? "int from, int to" : "int count",
               from_any ? arena_printf(program->arena, "from, kernel = from ? %s_ends[from - 1] : 0", prefix)
                        : "0, kernel = 0",
               from_any ? "to" : "count", prefix, prefix);
}

void write_c_phases(Emitter *e, const Program *program, Writer *out) {
    const char *prefix = program->prefix, *phases = names_upper(e->arena, prefix);
    write_kernel_choice(e, program, out);
    write_line(out, "\nenum { %s_PHASES = %d };", phases, program->phases.count);
    write_ends(program, phases, out);
    write_phase_loop(program, program == e->programs[PROGRAM_TRAIN] && plan_exchanges(e->plan), out);
}
