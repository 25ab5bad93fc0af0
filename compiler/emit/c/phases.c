#include "emit/c/phases.h"

#include "emit/kernel/function.h"
#include "emit/kernel/repeat.h"
#include "emit/kernel/table.h"

/* ---- a call ---- */

/* The function that is written for the kernel, and at which of its places. */
static void add_call(Emitter *e, const Kernel *kernel, RowTable *rows) {
    table_text(rows, NULL, written_function(e, kernel)->name);
    table_number(rows, NULL, function_of(e, kernel)->place);
}

/* Call `number` of a row: "h(t, batch)", "h(&t->h_at[7 + 2 * i], batch)". */
static const char *call_text(Emitter *e, const Kernel *kernel, const RowTable *rows, const Fold *fold, int row,
                             int number) {
    const Function *f = written_function(e, kernel);
    const char *tensors = "t";
    if (f->type)
        tensors = arena_printf(e->arena, "&t->%s[%s]", f->at, table_growth(rows, fold, row, number));
    return arena_printf(e->arena, "%s(%s)", f->name, c_arguments(e, text_string(&f->lines.text), tensors, "batch", ""));
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

/* ---- phases ---- */

/* The kernels of a phase that comes once: those that come again are loops. */
static void write_calls(Emitter *e, const Phase *phase, Writer *out) {
    RowTable rows = calls_of(e, phase);
    const Folds folds = table_loops(&rows);
    for (int f = 0; f < folds.count; f++) {
        const Fold *fold = &folds.at[f];
        Writer lines = writer_like(out);
        for (int row = fold->first; row < fold->first + fold->period; row++)
            write_line(&lines, "%s;", call_text(e, phase->kernels.at[row], &rows, fold, row, 0));
        write_fold(fold, &lines, out);
    }
}

static void write_phase(Emitter *e, const Program *program, const RowTable *rows, const Fold *fold, int p,
                        Writer *out) {
    const Phase *phase = &program->phases.at[p];
    Writer lines = writer_like(out);
    if (fold->times == 1)
        write_calls(e, phase, &lines);
    for (int k = 0; k < phase->kernels.count && fold->times > 1; k++)
        write_line(&lines, "%s;", call_text(e, phase->kernels.at[k], rows, fold, p, k));
    write_line(&lines, "team_wait(team);");
    write_block(out, arena_printf(e->arena, "if (count > %s)", fold_row(e->arena, fold, p)), &lines);
}

void write_c_phases(Emitter *e, const Program *program, Writer *out) {
    RowTable rows = {.arena = e->arena};
    for (int p = 0; p < program->phases.count; p++) {
        const Phase *phase = &program->phases.at[p];
        table_row(&rows, NULL);
        rows.rows.at[p].lines = phase->kernels.count + 3;
        for (int k = 0; k < phase->kernels.count; k++)
            add_call(e, phase->kernels.at[k], &rows);
    }
    const Folds folds = table_loops(&rows);
    write_open(out, "static void %s_phases(const Tensors *t, const Batch *batch, Team *team, int count) {",
               program->prefix);
    for (int f = 0; f < folds.count; f++) {
        const Fold *fold = &folds.at[f];
        Writer lines = writer_like(out);
        for (int p = fold->first; p < fold->first + fold->period; p++)
            write_phase(e, program, &rows, fold, p, &lines);
        write_fold(fold, &lines, out);
    }
    write_close(out, "}");
}

/* ---- a kernel alone ---- */

/* The kernels of the training step, as kernel_table has them. */
static Phase kernels_of_step(const Emitter *e) {
    const Program *train = e->programs[PROGRAM_TRAIN];
    Phase all = {0};
    for (int p = 0; p < train->phases.count; p++)
        for (int k = 0; k < train->phases.at[p].kernels.count; k++)
            VEC_PUSH(e->arena, &all.kernels, train->phases.at[p].kernels.at[k]);
    return all;
}

/* On a line of its own where that is too long for one. */
static void write_case(int kernel, const char *call, Writer *out) {
    enum { INDENT = 8 };
    const char *line = arena_printf(out->text.arena, "case %d: %s; break;", kernel, call);
    if (strlen(line) + INDENT > LONGEST_LINE)
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
            write_case(row, call_text(e, step->kernels.at[row], rows, fold, row, 0), &lines);
    write_line(&lines, "}");
    write_fold(folds, &lines, out);
}

void write_kernel_choice(Emitter *e, Writer *out) {
    const Phase step = kernels_of_step(e);
    RowTable rows = calls_of(e, &step);
    const Folds folds = table_loops(&rows);
    write_line(out, "// row `kernel` of kernel_table");
    write_open(out, "static void run_one(const Tensors *t, const Batch *batch, int kernel) {");
    for (int f = 0, count; f < folds.count; f += count) {
        for (count = 1; f + count < folds.count && folds.at[f].times == 1 && folds.at[f + count].times == 1;)
            count++;
        write_choice_of(e, &step, &rows, &folds.at[f], count, out);
    }
    write_close(out, "}");
    write_blank(out);
}
