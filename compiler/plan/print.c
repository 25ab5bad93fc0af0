/* `--emit=plan`: the buffers of the memory plan (memory.c), and who shares bytes with whom. */
#include "plan/plan.h"

#include "kernels_lib/needs.h"

static const char *lifetime(Arena *arena, const Buffer *buffer) {
    if (buffer->program < 0)
        return "always";
    if (buffer->first == buffer->last)
        return arena_printf(arena, "%d", buffer->first + 1);
    return arena_printf(arena, "%d-%d", buffer->first + 1, buffer->last + 1);
}

static bool share_bytes(const Buffer *a, const Buffer *b) {
    return a != b && a->program == b->program && !(a->flat && b->within) && buffers_meet(a, b);
}

enum { SHARERS_NAMED = 4 };

static void print_sharers(const Plan *plan, const Buffer *buffer, Text *out) {
    if (buffer->in_place_of)
        text_printf(out, "  in place of %s", buffer->in_place_of);
    const char *before = buffer->in_place_of ? "; shares " : buffer->within ? "  part of " : "  shares ";
    int sharers = 0;
    for (int i = 0; i < plan->buffers.count; i++) {
        const Buffer *other = &plan->buffers.at[i];
        bool told = buffer->in_place_of && strcmp(buffer->in_place_of, other->name) == 0;
        if (!share_bytes(buffer, other) || told || ++sharers > SHARERS_NAMED)
            continue;
        text_printf(out, "%s%s", before, other->name);
        before = ", ";
    }
    if (sharers > SHARERS_NAMED)
        text_printf(out, " and %d more", sharers - SHARERS_NAMED);
}

static void print_buffer(const Plan *plan, const Buffer *buffer, Text *out) {
    text_printf(out, "  %12lld %12lld  %-20s %-8s %s", (long long)buffer->offset, (long long)buffer->bytes,
                type_graph_text(out->arena, &buffer->type), lifetime(out->arena, buffer), buffer->name);
    print_sharers(plan, buffer, out);
    text_putc(out, '\n');
}

static void print_section(const Plan *plan, const char *title, BufferKind kind, int program, Text *out) {
    bool any = false;
    for (int i = 0; i < plan->buffers.count; i++) {
        const Buffer *buffer = &plan->buffers.at[i];
        if (buffer->kind != kind || buffer->program != program)
            continue;
        if (!any)
            text_printf(out, "%s\n", title);
        any = true;
        print_buffer(plan, buffer, out);
    }
}

static void print_total(const char *what, int64_t bytes, Text *out) {
    text_printf(out, "  %-16s %12lld\n", what, (long long)bytes);
}

static double step_seconds(const Plan *plan) {
    const Program *train = plan->programs[PROGRAM_TRAIN];
    return train->estimate[train->schedule];
}

/* Weights and states, of which a snapshot has a copy: all but sums that each step makes anew. */
static size_t kept_bytes(const Plan *plan, const Module *module) {
    size_t kept = 0, end = 0;
    for (int i = 0; i < plan->buffers.count; i++) {
        const Buffer *buffer = &plan->buffers.at[i];
        const size_t begin = (size_t)buffer->offset;
        if (buffer->kind == BUFFER_VALUE || buffer->flat ||
            (buffer->kind == BUFFER_STATE && module->states.at[buffer->index].summed))
            continue;
        const bool parted = plan->flat.bytes && end <= (size_t)plan->flat.states && begin >= (size_t)plan->flat.states;
        kept += (size_t)buffer->bytes + (kept && mtc_copied_together(end, begin) && !parted ? begin - end : 0);
        end = begin + (size_t)buffer->bytes;
    }
    return kept;
}

/* What a session has on its device whatever its data are, in a single process. */
static MtcNeeds needs_of(const Plan *plan) {
    const Module *module = plan->programs[PROGRAM_TRAIN]->graph->module;
    const size_t reports = (size_t)(module->reports.count + (module->weight.name != NULL)),
                 rows = module->shards ? (size_t)module->shards : 1;
    MtcNeeds needs = {.arena = (size_t)plan->arena_bytes,
                      .reports = MTC_CLOCK_BYTES + reports * sizeof(double) + mtc_report_bytes(rows, reports)};
    const PlanSums sums = plan_sums(plan, module);
    needs.snapshots = mtc_snapshot_bytes(kept_bytes(plan, module));
    if (module->shards)
        needs.sums = (size_t)(mtc_waiting_levels(module->shards, plan_exchanges(plan) > 0) * (sums.end - sums.begin));
    if (plan_exchanges(plan)) /* each shard has its own where they wait for each other */
        needs.sums += (size_t)(module->shards * (sums.end - sums.begin + plan->value_bytes));
    for (int i = 0; i < module->fields.count; i++) {
        const Field *field = &module->fields.at[i];
        needs.batch += (size_t)(type_elements(&field->type) * dtype_info[field->stored].bytes);
    }
    return needs;
}

static void print_buckets(const Plan *plan, Text *out) {
    const Program *train = plan->programs[PROGRAM_TRAIN];
    if (train->buckets.count)
        text_puts(out, "buckets of sums, each complete with its phase\n");
    for (int b = 0; b + 1 < train->buckets.count; b++) {
        const PlanSums part = plan_bucket(plan, b);
        text_printf(out, "  %12lld %12lld  phase %d\n", (long long)part.begin, (long long)(part.end - part.begin),
                    train->buckets.at[b].phase + 1);
    }
}

static void print_needs(const Plan *plan, Text *out) {
    const MtcNeeds needs = needs_of(plan);
    text_puts(out, "device, beside the data\n");
    print_total("arena", (int64_t)needs.arena, out);
    print_total("batch", (int64_t)needs.batch, out);
    print_total("reports", (int64_t)needs.reports, out);
    print_total("snapshots", (int64_t)needs.snapshots, out);
    if (needs.sums)
        print_total("sums over shards", (int64_t)needs.sums, out);
    print_total("all", (int64_t)mtc_needed(&needs), out);
    if (plan->flat.slots)
        text_printf(out, "  of the arena %lld bytes are states of which each of N processes has 1/N\n",
                    (long long)(plan->flat.slots * plan->flat.bytes));
}

/* What memory for time gives, and what it takes. */
static void print_recompute(const Plan *plan, Text *out) {
    const Plan *kept = plan->kept;
    if (!kept)
        return;
    text_printf(out, "recompute: arena %lld instead of %lld (%.1f%%); a step about %.2f ms instead of %.2f (%+.1f%%)\n",
                (long long)plan->arena_bytes, (long long)kept->arena_bytes,
                100.0 * (double)plan->arena_bytes / (double)kept->arena_bytes, 1e3 * step_seconds(plan),
                1e3 * step_seconds(kept), 100 * (step_seconds(plan) / step_seconds(kept) - 1));
}

void plan_print(const Plan *plan, Text *out) {
    text_printf(out, "plan %s\n", plan->programs[PROGRAM_TRAIN]->graph->module->name);
    text_printf(out, "  %12s %12s  %-20s %-8s %s\n", "offset", "bytes", "type", "phases", "buffer");
    print_section(plan, "weights", BUFFER_WEIGHT, -1, out);
    print_section(plan, "optimizer state", BUFFER_STATE, -1, out);
    for (int i = 0; i < plan->program_count; i++)
        print_section(plan, arena_printf(out->arena, "%s: values", plan->programs[i]->prefix), BUFFER_VALUE, i, out);
    print_buckets(plan, out);
    text_puts(out, "total\n");
    print_total("weights", plan->weight_bytes, out);
    print_total("optimizer state", plan_state_bytes(plan), out);
    print_total("values", plan->value_bytes, out);
    print_total("arena", plan->arena_bytes, out);
    print_total("without sharing", plan->unshared_bytes, out);
    print_total("floor", plan->floor_bytes, out);
    print_needs(plan, out);
    print_recompute(plan, out);
}
