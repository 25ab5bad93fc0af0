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

/* The groups of each phase. */
static const Groups *groups_of_phases(Emitter *e, const Program *program) {
    Groups *groups = NEW_ARRAY(e->arena, Groups, program->phases.count);
    for (int p = 0; p < program->phases.count; p++)
        groups[p] = groups_of(e, &program->phases.at[p]);
    return groups;
}

static int title_width(const Emitter *e, const Program *program, const Groups *groups) {
    int width = 0;
    for (int p = 0; p < program->phases.count; p++)
        for (int g = 0; g < groups[p].count; g++) {
            int length = (int)strlen(group_title(e, &program->phases.at[p], &groups[p].at[g]));
            width = length > width && length <= WIDEST_TITLE ? length : width;
        }
    return width;
}

/* A line for each function that phase `p` calls. */
static void write_phase(const Emitter *e, int p, const Groups *groups, int width, Writer *out) {
    const Phase *phase = &e->programs[PROGRAM_TRAIN]->phases.at[p];
    for (int g = 0; g < groups->count; g++) {
        const Group *group = &groups->at[g];
        const char *number = g ? "" : arena_printf(e->arena, "phase %d", p + 1), *title = group_title(e, phase, group);
        if (e->dialect->schedules)
            write_remark(out, "  %-9s %-*s  %s", number, width, title,
                         tile_text(e->arena, group->count * group->function->kernel->tiles));
        else
            write_remark(out, "  %-9s %s", number, title);
    }
}

/* `count` phases that do, one after the other, what those `period` before them did. */
typedef struct Again {
    int period, count, lines;
} Again;

/* What comes again at phase `p`: the most lines. */
static Again again_at(const Groups *groups, int count, int p) {
    Again best = {0};
    for (int period = 1; period <= p; period++) {
        Again again = {.period = period};
        for (int at = p; at < count && same_groups(&groups[at - period], &groups[at]); at++) {
            again.lines += groups[at].count;
            again.count++;
        }
        best = again.lines > best.lines ? again : best;
    }
    return best;
}

/* "phase 5", "phases 12 to 70" */
static const char *phases_text(Arena *arena, int first, int count) {
    return count == 1 ? arena_printf(arena, "phase %d", first + 1)
                      : arena_printf(arena, "phases %d to %d", first + 1, first + count);
}

/* "phases 12 to 70: phases 5 to 11 again and again" */
static void write_again(const Emitter *e, int p, const Again *again, Writer *out) {
    const int source = again->count < again->period ? again->count : again->period;
    write_remark(out, "  %s: %s again%s, with tensors of their own", phases_text(e->arena, p, again->count),
                 phases_text(e->arena, p - again->period, source), again->count > again->period ? " and again" : "");
}

static void write_phases(Emitter *e, Writer *out) {
    enum { FEWEST_LINES = 4 };
    const Program *train = e->programs[PROGRAM_TRAIN];
    const Groups *groups = groups_of_phases(e, train);
    const int width = title_width(e, train, groups);
    for (int p = 0; p < train->phases.count;) {
        const Again again = again_at(groups, train->phases.count, p);
        if (again.lines < FEWEST_LINES) {
            write_phase(e, p, &groups[p], width, out);
            p++;
        } else {
            write_again(e, p, &again, out);
            p += again.count;
        }
    }
}

static const char *step_text(const Emitter *e) {
    const Program *train = e->programs[PROGRAM_TRAIN];
    const Precision precision = e->module->precision;
    return arena_printf(e->arena, "  %s     %s in %d phase%s%s%s", e->module->shards ? "shard" : "step ",
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
                               bytes(arena, plan->weight_bytes), bytes(arena, plan_state_bytes(plan)),
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
    const char *despite = train->despite ? arena_printf(e->arena, ", %s", train->despite) : "";
    write_comment(out, 12,
                  arena_printf(e->arena, "  schedule  %s: %.1f us a %s estimated (%s: %.1f us%s)",
                               persistent ? "persistent" : "graph", 1e6 * train->estimate[train->schedule],
                               e->module->shards ? "shard" : "step", persistent ? "graph" : "persistent",
                               1e6 * train->estimate[other], despite));
}

/* Of a library of the prediction alone. */
static void write_net_banner(Emitter *e, Writer *out) {
    const Plan *plan = e->plan;
    write_comment(
        out, 12,
        arena_printf(e->arena, "  %lld examples in %s; memory: weights %s, which nets share, values %s of each net",
                     (long long)e->module->batch,
                     scaled(e->arena, program_flops(e->programs[PROGRAM_EVAL]), 1000, "FLOP"),
                     bytes(e->arena, plan->weight_bytes + plan->state_bytes), bytes(e->arena, plan->value_bytes)));
    write_line(out, "//");
    write_comment(
        out, 0,
        "From top to bottom: sizes; tensors; one function per kernel of the prediction; the phases that group them; "
        "tables for runtime/embed/.");
}

void write_banner(Emitter *e, Writer *out) {
    Arena *arena = e->arena;
    write_comment(out, 0,
                  arena_printf(arena, "%s: a model of %s parameters, compiled by %s from %s", e->module->name,
                               text_grouped(arena, module_parameters(e->module)), e->options->command,
                               source_path(e->module)));
    write_line(out, "//");
    if (e->options->predicts) {
        write_net_banner(e, out);
        return;
    }
    write_comment(out, 12, step_text(e));
    write_memory(e, out);
    write_schedule(e, out);
    write_line(out, "//");
    write_phases(e, out);
    write_line(out, "//");
    const char *measuring = e->module->measure ? "measuring; " : "", *decoding = e->module->decode ? "decoding; " : "",
               *prefill = e->module->prefill ? "prefill; " : "";
    write_comment(out, 0,
                  arena_printf(arena,
                               "From top to bottom: sizes; tensors; one function per kernel, in the order of a "
                               "training step; the phases that group them; the step; evaluation; %s%s%stables for the "
                               "runtime; main.",
                               measuring, decoding, prefill));
    write_line(out, "//");
    write_comment(out, 0, e->dialect->execution(e));
}
