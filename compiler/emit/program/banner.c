/* What a reader sees first. */
#include "emit/program/program.h"

#include "emit/kernel/function.h"
#include "emit/kernel/repeat.h"

/* "26.2 M" of a number, in steps of 1000 or 1024. */
static const char *scaled(Arena *arena, double value, double step, const char *unit) {
    static const char *const prefixes[] = {"", "K", "M", "G", "T", "P"};
    int prefix = 0;
    for (; value >= step && prefix < 5; prefix++)
        value /= step;
    return arena_printf(arena, prefix && value < 99.5 ? "%.1f %s%s" : "%.0f %s%s", value, prefixes[prefix], unit);
}

static const char *bytes(Arena *arena, int64_t value) {
    return scaled(arena, (double)value, 1024, "B");
}

/* "h_0_ln_1", "h_0_ln_1 for h_3_ln_1", "h_0_ln_1, 4 times": a function, and whose tensors it is given. */
static const char *group_title(const Emitter *e, const Phase *phase, const Group *group) {
    const char *name = group->function->name;
    if (group->count > 1)
        return arena_printf(e->arena, "%s, %d times", name, group->count);
    for (int k = 0; k < phase->kernels.count; k++) {
        const Function *own = function_of(e, phase->kernels.at[k]);
        if (written_function(e, phase->kernels.at[k]) == group->function && own != group->function)
            return arena_printf(e->arena, "%s for %s", name, own->name);
    }
    return name;
}

/* Longer titles than this do not move the column behind them. */
enum { WIDEST_TITLE = 64 };

static int title_width(Emitter *e, const Program *program) {
    int width = 0;
    for (int p = 0; p < program->phases.count; p++) {
        const Groups groups = groups_of(e, &program->phases.at[p]);
        for (int g = 0; g < groups.count; g++) {
            int length = (int)strlen(group_title(e, &program->phases.at[p], &groups.at[g]));
            width = length > width && length <= WIDEST_TITLE ? length : width;
        }
    }
    return width;
}

/* A line for each function that a phase of a training step calls. */
static void write_phases(Emitter *e, Writer *out) {
    const Program *train = e->programs[PROGRAM_TRAIN];
    const int width = title_width(e, train);
    for (int p = 0; p < train->phases.count; p++) {
        const Phase *phase = &train->phases.at[p];
        const Groups groups = groups_of(e, phase);
        for (int g = 0; g < groups.count; g++) {
            const Group *group = &groups.at[g];
            const char *number = g ? "" : arena_printf(e->arena, "phase %d", p + 1),
                       *title = group_title(e, phase, group);
            if (e->dialect->schedules)
                write_remark(out, "  %-9s %-*s  %s", number, width, title,
                             tile_text(e->arena, group->count * group->function->kernel->tiles));
            else
                write_remark(out, "  %-9s %s", number, title);
        }
    }
}

static const char *step_text(const Emitter *e) {
    const Program *train = e->programs[PROGRAM_TRAIN];
    const Precision precision = e->module->precision;
    return arena_printf(e->arena, "  step      %s in %d phase%s%s%s",
                        scaled(e->arena, program_flops(train), 1000, "FLOP"), train->phases.count,
                        train->phases.count == 1 ? "" : "s", precision == PRECISION_FP32 ? "" : ", products in ",
                        precision == PRECISION_FP32 ? "" : precision_names[precision]);
}

static void write_memory(const Emitter *e, Writer *out) {
    Arena *arena = e->arena;
    const Plan *plan = e->plan;
    write_comment(out, 12,
                  arena_printf(arena,
                               "  memory    %s arena (%s without sharing): weights %s, optimizer state %s, values %s",
                               bytes(arena, plan->arena_bytes), bytes(arena, plan->unshared_bytes),
                               bytes(arena, plan->weight_bytes), bytes(arena, plan->state_bytes),
                               bytes(arena, plan->value_bytes)));
    if (plan->kept)
        write_comment(out, 12,
                      arena_printf(arena, "  recompute the backward pass makes values again: %s arena without",
                                   bytes(arena, plan->kept->arena_bytes)));
}

static void write_schedule(Emitter *e, Writer *out) {
    const Program *train = e->programs[PROGRAM_TRAIN];
    if (!e->dialect->schedules)
        return;
    bool persistent = train->schedule == SCHEDULE_PERSISTENT;
    Schedule other = persistent ? SCHEDULE_GRAPH : SCHEDULE_PERSISTENT;
    write_comment(out, 10,
                  arena_printf(e->arena, "  schedule  %s: %.1f us a step estimated (%s: %.1f us)",
                               persistent ? "persistent" : "graph", 1e6 * train->estimate[train->schedule],
                               persistent ? "graph" : "persistent", 1e6 * train->estimate[other]));
}

void write_banner(Emitter *e, Writer *out) {
    Arena *arena = e->arena;
    write_comment(out, 0,
                  arena_printf(arena, "%s: a model of %s parameters, compiled by %s from %s", e->module->name,
                               text_grouped(arena, module_parameters(e->module)), e->options->command,
                               source_path(e->module)));
    write_line(out, "//");
    write_comment(out, 12, step_text(e));
    write_memory(e, out);
    write_schedule(e, out);
    write_line(out, "//");
    write_phases(e, out);
    write_line(out, "//");
    const char *measuring = e->module->measure ? "measuring; " : "", *decoding = e->module->decode ? "decoding; " : "";
    write_comment(out, 0,
                  arena_printf(arena,
                               "From top to bottom: sizes; tensors; one function per kernel, in the order of a "
                               "training step; the phases that group them; the step; evaluation; %s%stables for the "
                               "runtime; main.",
                               measuring, decoding));
    write_line(out, "//");
    write_comment(out, 0, e->dialect->execution(e));
}
