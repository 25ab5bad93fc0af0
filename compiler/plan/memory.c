/* The memory plan as a whole: weights and states, then the values of all programs, whose places place.c finds by their liveness
 * (liveness.c). main.c calls it behind schedule; plan_verify looks whether two buffers that live at once share bytes. print.c and svg.c
 * show it. */
#include "plan/place.h"

#include <stdlib.h>

/* ---- the plan ---- */

static int *no_rows(Arena *arena, int count) {
    int *rows = NEW_ARRAY(arena, int, count);
    for (int i = 0; i < count; i++)
        rows[i] = -1;
    return rows;
}

static bool name_taken(const Plan *plan, const char *name) {
    for (int i = 0; i < plan->buffers.count; i++)
        if (strcmp(plan->buffers.at[i].name, name) == 0)
            return true;
    return false;
}

/* `label` as a C identifier that no buffer has yet. */
static const char *unique_name(Arena *arena, const Plan *plan, const char *label) {
    char *name = arena_strdup(arena, label);
    for (char *c = name; *c; c++)
        if (!((*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || (*c >= '0' && *c <= '9')))
            *c = '_';
    const char *numbered = name;
    for (int i = 2; name_taken(plan, numbered); i++)
        numbered = arena_printf(arena, "%s_%d", name, i);
    return numbered;
}

static void add_tensor(Module *module, Plan *plan, BufferKind kind, int row, int64_t offset) {
    const Weight *tensor = kind == BUFFER_WEIGHT ? &module->weights.at[row] : &module->states.at[row];
    Buffer buffer = {.kind = kind,
                     .name = unique_name(module->arena, plan, tensor->name),
                     .label = tensor->name,
                     .index = row,
                     .program = -1,
                     .type = tensor->type,
                     .bytes = stored_bytes(&tensor->type, plan->real_bytes),
                     .offset = offset,
                     .flat = tensor->flat,
                     .within = tensor->within > 0,
                     .src = tensor->src};
    VEC_PUSH(module->arena, &plan->buffers, buffer);
}

static void add_tensors(Module *module, Plan *plan, BufferKind kind, int64_t *total) {
    int count = kind == BUFFER_WEIGHT ? module->weights.count : module->states.count;
    const Weight *tensors = kind == BUFFER_WEIGHT ? module->weights.at : module->states.at;
    for (int i = 0; i < count; i++) {
        if (tensors[i].replaced || tensors[i].within || tensors[i].parted)
            continue;
        add_tensor(module, plan, kind, i, plan->arena_bytes);
        plan->arena_bytes += aligned_bytes(plan->buffers.at[plan->buffers.count - 1].bytes);
        *total += aligned_bytes(plan->buffers.at[plan->buffers.count - 1].bytes);
    }
}

/* ---- flat tensors, and those in them ---- */

/* Where the first of the table's flat ones that are in the plan lies; -1: there is none. */
static int64_t first_flat(const Plan *plan, BufferKind kind, bool (*is_asked)(const Weight *), const Weight *tensors) {
    int64_t first = -1;
    for (int i = 0; i < plan->buffers.count; i++) {
        const Buffer *buffer = &plan->buffers.at[i];
        if (buffer->kind == kind && buffer->flat && is_asked(&tensors[buffer->index]) &&
            (first < 0 || buffer->offset < first))
            first = buffer->offset;
    }
    return first;
}

static bool is_summed(const Weight *tensor) {
    return tensor->summed;
}

static bool is_average(const Weight *tensor) {
    return !tensor->summed && !tensor->parted;
}

static int64_t flat_bytes(const Module *module, int real_bytes) {
    int64_t bytes = 0;
    for (int i = 0; i < module->weights.count; i++)
        bytes += module->weights.at[i].flat ? stored_bytes(&module->weights.at[i].type, real_bytes) : 0;
    return bytes;
}

/* The how manieth of its weight the state is, from 1, of those of which each process has a part. */
static int slot_of(const Module *module, int state) {
    int slot = 0;
    for (int i = 0; i <= state; i++)
        slot += module->states.at[i].parted && module->states.at[i].of == module->states.at[state].of;
    return slot;
}

static const Buffer *find_buffer(const Plan *plan, BufferKind kind, int row) {
    for (int i = 0; i < plan->buffers.count; i++)
        if (plan->buffers.at[i].kind == kind && plan->buffers.at[i].index == row)
            return &plan->buffers.at[i];
    ICE("row %d of the tensors is not in the plan", row);
}

/* Behind all else: in slot k the states number k, each where its weight is among the flat ones. */
static void add_parted_states(Module *module, Plan *plan) {
    PlanFlat *flat = &plan->flat;
    flat->states = plan->arena_bytes;
    for (int i = 0; i < module->states.count; i++) {
        const Weight *state = &module->states.at[i];
        if (!state->parted || state->within)
            continue;
        const int slot = slot_of(module, i);
        const int64_t place = find_buffer(plan, BUFFER_WEIGHT, state->of)->offset - flat->weights;
        add_tensor(module, plan, BUFFER_STATE, i, flat->states + (slot - 1) * flat->bytes + place);
        plan->buffers.at[plan->buffers.count - 1].slot = slot;
        flat->slots = slot > flat->slots ? slot : flat->slots;
    }
    plan->arena_bytes += flat->slots * flat->bytes;
    plan->unshared_bytes += flat->slots * flat->bytes;
    plan->floor_bytes += flat->slots * flat->bytes;
}

static void add_within(Module *module, Plan *plan, BufferKind kind, int count, const Weight *tensors) {
    for (int i = 0; i < count; i++) {
        if (!tensors[i].within)
            continue;
        const Buffer flat = *find_buffer(plan, kind, tensors[i].within - 1);
        add_tensor(module, plan, kind, i, flat.offset + tensors[i].at * plan->real_bytes);
        plan->buffers.at[plan->buffers.count - 1].slot = flat.slot;
    }
}

static void add_flat(Module *module, Plan *plan) {
    plan->flat.bytes = flat_bytes(module, plan->real_bytes);
    if (!plan->flat.bytes)
        return;
    plan->flat.weights = first_flat(plan, BUFFER_WEIGHT, is_average, module->weights.at);
    plan->flat.sums = first_flat(plan, BUFFER_STATE, is_summed, module->states.at);
    plan->flat.averages = first_flat(plan, BUFFER_STATE, is_average, module->states.at);
    add_parted_states(module, plan);
    add_within(module, plan, BUFFER_WEIGHT, module->weights.count, module->weights.at);
    add_within(module, plan, BUFFER_STATE, module->states.count, module->states.at);
}

/* The user's name; for what has none, what it is to a value that has, or the kernel's and the operator's; that of a leaf, which no kernel makes. Values of
 * other programs than train say so. */
static const char *value_label(Arena *arena, const Program *program, const Node *node, bool trains) {
    const char *label = node->name ? node->name : value_title(program, node);
    const Kernel *producer = program_producer(program, node);
    if (!label && producer)
        label = producer->call == node ? producer->name : arena_printf(arena, "%s_%s", producer->name, node->op->name);
    if (!label)
        label = node->op->name;
    return trains ? label : arena_printf(arena, "%s_%s", program->prefix, label);
}

/* What programs keep is the same leaf in each: the first of them places it. */
static const Buffer *placed_before(const Plan *plan, const Node *leaf) {
    for (int i = 0; i < plan->buffers.count; i++) {
        const Node *kept = plan->buffers.at[i].node;
        if (kept && is_kept(leaf) && kept->op == leaf->op && kept->attr.index == leaf->attr.index &&
            type_same_shape(&kept->type, &leaf->type))
            return &plan->buffers.at[i];
    }
    return NULL;
}

static int64_t place_among_values(const Plan *plan, const Buffer *buffer) {
    return buffer->offset - plan->weight_bytes - plan->state_bytes;
}

static bool lives_at(const Liveness *live, int64_t at) {
    for (int i = 0; i < live->values.count; i++)
        if (live->values.at[i].at == at)
            return true;
    return false;
}

/* A program that keeps something runs between runs of others that do: it leaves alone what these keep. */
static void find_kept(Arena *arena, const Plan *plan, const Program *program, Liveness *live) {
    bool keeps = false;
    for (int i = 0; i < live->values.count; i++) {
        LiveValue *value = &live->values.at[i];
        const Buffer *buffer = placed_before(plan, value->node);
        value->at = buffer ? place_among_values(plan, buffer) : -1;
        keeps |= is_kept(value->node);
    }
    for (int i = 0; i < plan->buffers.count && keeps; i++) {
        const Buffer *buffer = &plan->buffers.at[i];
        const int64_t at = place_among_values(plan, buffer);
        if (buffer->node && is_kept(buffer->node) && !lives_at(live, at))
            VEC_PUSH(arena, &live->values,
                     ((LiveValue){plan->programs[buffer->program]->graph->nodes.at[buffer->node->id], 0,
                                  program->phases.count - 1, -1, at}));
    }
}

static void add_values(Module *module, Plan *plan, int which, const Liveness *live, const Slots *slots) {
    int base = plan->buffers.count;
    for (int i = 0; i < live->values.count; i++) {
        const LiveValue *value = &live->values.at[i];
        if (value->at >= 0)
            continue;
        const char *label = value_label(module->arena, plan->programs[which], value->node, which == PROGRAM_TRAIN);
        Buffer buffer = {.kind = BUFFER_VALUE,
                         .name = unique_name(module->arena, plan, label),
                         .label = label,
                         .index = -1,
                         .node = value->node,
                         .program = which,
                         .type = value->node->type,
                         .bytes = stored_bytes(&value->node->type, plan->real_bytes),
                         .offset = plan->weight_bytes + plan->state_bytes + slots->all.at[slots->of_value[i]].offset,
                         .first = value->first,
                         .last = value->last,
                         .src = value->node->src};
        if (value->over >= 0)
            buffer.in_place_of = plan->buffers.at[base + value->over].name; /* they are added in the same order */
        plan->unshared_bytes += aligned_bytes(buffer.bytes);
        VEC_PUSH(module->arena, &plan->buffers, buffer);
    }
}

static int64_t max(int64_t a, int64_t b) {
    return a > b ? a : b;
}

static int by_offset(const void *a, const void *b) {
    const Buffer *x = a, *y = b;
    return x->offset != y->offset ? (x->offset > y->offset ? 1 : -1) : strcmp(x->name, y->name);
}

static void index_kept(Plan *plan, int which) {
    const Graph *g = plan->programs[which]->graph;
    for (int i = 0; i < g->nodes.count; i++) {
        const Buffer *buffer = placed_before(plan, g->nodes.at[i]);
        if (buffer)
            plan->of_node[which][i] = (int)(buffer - plan->buffers.at);
    }
}

static void index_buffers(Module *module, Plan *plan) {
    plan->of_weight = no_rows(module->arena, module->weights.count);
    plan->of_state = no_rows(module->arena, module->states.count);
    for (int i = 0; i < plan->program_count; i++)
        plan->of_node[i] = no_rows(module->arena, plan->programs[i]->graph->nodes.count);
    for (int i = 0; i < plan->buffers.count; i++) {
        const Buffer *buffer = &plan->buffers.at[i];
        int *rows = buffer->kind == BUFFER_WEIGHT  ? &plan->of_weight[buffer->index]
                    : buffer->kind == BUFFER_STATE ? &plan->of_state[buffer->index]
                                                   : &plan->of_node[buffer->program][buffer->node->id];
        *rows = i;
    }
    for (int i = 0; i < plan->program_count; i++)
        index_kept(plan, i);
}

Plan *plan_memory(Module *module, const Programs *programs, int real_bytes) {
    Arena *arena = module->arena;
    Plan *plan = NEW(arena, Plan);
    *plan = (Plan){.program_count = programs->count, .real_bytes = real_bytes};
    add_tensors(module, plan, BUFFER_WEIGHT, &plan->weight_bytes);
    add_tensors(module, plan, BUFFER_STATE, &plan->state_bytes);
    plan->unshared_bytes = plan->arena_bytes;
    int64_t busiest = 0;
    for (int i = 0; i < programs->count; i++) {
        plan->programs[i] = programs->at[i];
        Liveness live = liveness(arena, plan->programs[i], real_bytes);
        find_kept(arena, plan, plan->programs[i], &live);
        Slots slots = place_values(arena, &live, real_bytes);
        plan->value_bytes = max(plan->value_bytes, slots.bytes);
        busiest = max(busiest, busiest_phase(&slots, plan->programs[i]->phases.count));
        add_values(module, plan, i, &live, &slots);
    }
    plan->floor_bytes = plan->arena_bytes + busiest;
    plan->arena_bytes += plan->value_bytes;
    add_flat(module, plan);
    ENSURE(plan->buffers.at);
    qsort(plan->buffers.at, (size_t)plan->buffers.count, sizeof *plan->buffers.at, by_offset);
    index_buffers(module, plan);
    return plan;
}

const Buffer *plan_buffer(const Plan *plan, const Node *n) {
    int row = -1;
    if (n->op->table == TABLE_WEIGHT)
        row = plan->of_weight[n->attr.index];
    else if (n->op->table == TABLE_STATE)
        row = plan->of_state[n->attr.index];
    for (int i = 0; i < plan->program_count; i++) {
        const Program *program = plan->programs[i];
        if (n->id >= program->graph->nodes.count || program->graph->nodes.at[n->id] != n || row >= 0)
            continue;
        const Node *leaf = program_assigned(program, n);
        row = plan->of_node[i][n->id];
        if (row < 0 && leaf)
            return plan_buffer(plan, leaf);
    }
    return row < 0 ? NULL : &plan->buffers.at[row];
}

const Program *plan_program(const Plan *plan, const Graph *graph) {
    for (int i = 0; i < plan->program_count; i++)
        if (plan->programs[i]->graph == graph)
            return plan->programs[i];
    return NULL;
}

PlanSums plan_sums(const Plan *plan, const Module *module) {
    PlanSums sums = {INT64_MAX, 0};
    for (int i = 0; i < module->states.count; i++) {
        if (!module->states.at[i].summed)
            continue;
        const Buffer *buffer = &plan->buffers.at[plan->of_state[i]];
        sums.begin = buffer->offset < sums.begin ? buffer->offset : sums.begin;
        const int64_t end = buffer->offset + aligned_bytes(buffer->bytes);
        sums.end = end > sums.end ? end : sums.end;
    }
    return sums;
}

PlanSums plan_bucket(const Plan *plan, int b) {
    const Bucket *bucket = &plan->programs[PROGRAM_TRAIN]->buckets.at[b];
    const Buffer *first = &plan->buffers.at[plan->of_state[bucket->first]],
                 *last = &plan->buffers.at[plan->of_state[bucket->last]];
    return (PlanSums){first->offset, last->offset + aligned_bytes(last->bytes)};
}

bool kernel_waits_for_shards(const Kernel *kernel) {
    return kernel->cls == KERNEL_CALL && kernel->call->op->call->over_shards;
}

int plan_exchanges(const Plan *plan) {
    const Program *train = plan->programs[PROGRAM_TRAIN];
    int count = 0;
    for (int k = 0; k < train->kernels.count; k++)
        count += kernel_waits_for_shards(train->kernels.at[k]);
    return count;
}

int64_t plan_state_bytes(const Plan *plan) {
    return plan->state_bytes + plan->flat.slots * plan->flat.bytes;
}

bool plan_needs_all_sums(const Plan *plan, const Module *module) {
    const Program *update = plan_program(plan, module->update);
    bool any = false;
    for (int k = 0; k < update->kernels.count; k++)
        for (int i = 0; i < update->kernels.at[k]->loads.count; i++) {
            const Node *n = update->kernels.at[k]->loads.at[i];
            any |= n->op->table == TABLE_STATE && module->states.at[n->attr.index].summed &&
                   module->states.at[n->attr.index].within;
        }
    return any;
}

/* ---- verifying ---- */

static bool same_program(const Buffer *a, const Buffer *b) {
    return a->program == b->program || a->program < 0 || b->program < 0;
}

bool buffers_meet(const Buffer *a, const Buffer *b) {
    return a->offset < b->offset + b->bytes && b->offset < a->offset + a->bytes;
}

static bool overlap(const Buffer *a, const Buffer *b) {
    bool same_bytes = buffers_meet(a, b) && !(a->flat && b->within) && !(b->flat && a->within);
    bool same_time = a->program < 0 || b->program < 0 || (a->first <= b->last && b->first <= a->last);
    return same_bytes && same_time && same_program(a, b);
}

static bool takes_over(const Buffer *heir, const Buffer *from) {
    return heir->in_place_of && strcmp(heir->in_place_of, from->name) == 0 && heir->offset == from->offset &&
           heir->first == from->last;
}

/* Sums of flat weights are the last ones: those of all ranks come before. What belongs to a flat weight lies where the weight does among the flat ones; what lies in it, inside. */
static void verify_flat(const Plan *plan, const Module *module) {
    const PlanFlat *flat = &plan->flat;
    if (flat->bytes && plan_sums(plan, module).end != flat->sums + flat->bytes)
        ICE("sums lie behind those of flat weights");
    for (int i = 0; i < plan->buffers.count; i++) {
        const Buffer *b = &plan->buffers.at[i];
        if (b->kind == BUFFER_VALUE || !(b->flat || b->within))
            continue;
        const Weight *row = b->kind == BUFFER_WEIGHT ? &module->weights.at[b->index] : &module->states.at[b->index];
        const int of = b->kind == BUFFER_WEIGHT ? b->index : row->of;
        const int64_t base = b->kind == BUFFER_WEIGHT ? flat->weights
                             : row->summed            ? flat->sums
                             : row->parted            ? flat->states + (b->slot - 1) * flat->bytes
                                                      : flat->averages,
                      place = b->offset - base;
        if (place != plan->buffers.at[plan->of_weight[of]].offset - flat->weights || place + b->bytes > flat->bytes)
            ICE("buffer %s does not lie as its weight does", b->name);
    }
}

/* From the end of the sums on, one bucket begins where the one before it ends. */
static void verify_buckets(const Plan *plan, const Module *module) {
    const Program *train = plan->programs[PROGRAM_TRAIN];
    int64_t end = train->buckets.count ? plan_sums(plan, module).end : 0;
    for (int b = 0; b + 1 < train->buckets.count; b++) {
        const PlanSums part = plan_bucket(plan, b);
        if (part.end != end || part.begin >= part.end)
            ICE("bucket %d does not end where the one before it begins", b);
        end = part.begin;
    }
}

void plan_verify(const Plan *plan) {
    verify_buckets(plan, plan->programs[PROGRAM_TRAIN]->graph->module);
    verify_flat(plan, plan->programs[PROGRAM_TRAIN]->graph->module);
    for (int i = 0; i < plan->buffers.count; i++) {
        const Buffer *a = &plan->buffers.at[i];
        if (a->offset % ARENA_ALIGN)
            ICE("buffer %s is not aligned: offset %lld", a->name, (long long)a->offset);
        if (a->offset < 0 || a->offset + a->bytes > plan->arena_bytes)
            ICE("buffer %s lies outside the arena", a->name);
        for (int j = 0; j < i; j++) {
            const Buffer *b = &plan->buffers.at[j];
            if (overlap(a, b) && !takes_over(a, b) && !takes_over(b, a))
                ICE("buffers %s and %s overlap", a->name, b->name);
        }
    }
}
