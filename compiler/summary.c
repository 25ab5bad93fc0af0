#include "summary.h"

/* A named value of the model, with what is computed for it after the named value before; or a weight that none has. */
typedef struct Layer {
    const char *name;
    Type type;
    Span src;
    int64_t parameters, flops, bytes;
} Layer;

typedef struct Summary {
    Arena *arena;
    const Plan *plan;
    const Module *module;
    VEC(Layer) layers; /* in the order of computation */
} Summary;

/* ---- gathering ---- */

static int64_t contracted(const Node *product) {
    const Type *a = &product->in[0]->type;
    return a->dim[a->rank - (product->attr.ta ? 2 : 1)];
}

/* Multiplications and additions of the whole batch; a map counts one operation for each element. */
static int64_t node_flops(const Node *n) {
    switch (n->op->cls) {
    case OP_MAP: return type_elements(&n->type);
    case OP_REDUCE: return type_elements(&n->in[0]->type);
    case OP_CONTRACT: return 2 * type_elements(&n->type) * contracted(n);
    case OP_CALL: return n->op->flags & OP_PART ? 0 : (int64_t)n->op->call->flops(n);
    default: return 0;
    }
}

static bool same_place(Span a, Span b) {
    return a.source == b.source && a.begin == b.begin;
}

/* As the text has it. */
static Type type_in_text(const Module *module, const Node *n) {
    for (int i = 0; i < module->named.count; i++) {
        const NamedValue *value = &module->named.at[i];
        if (strcmp(value->name, n->name) == 0 && same_place(value->src, n->src))
            return value->type;
    }
    return n->type;
}

/* Called after a weight, "h.weight.bf16": part of its layer. */
static bool is_of_weight(const Module *module, const char *name) {
    for (int i = 0; i < module->weights.count; i++) {
        const char *weight = module->weights.at[i].name;
        size_t length = strlen(weight);
        if (strncmp(name, weight, length) == 0 && name[length] == '.')
            return true;
    }
    return false;
}

/* Evaluation is the forward pass and nothing else. What a report needs is counted under the report's name. */
static void gather_layers(Summary *s) {
    const Graph *g = s->module->eval;
    int64_t flops = 0;
    for (int i = 0; i < g->nodes.count; i++) {
        const Node *n = g->nodes.at[i];
        if (n->op->table == TABLE_REPORT && s->layers.count)
            s->layers.at[s->layers.count - 1].name = s->module->reports.at[n->attr.index].name;
        if (n->op->cls == OP_LEAF || n->op->cls == OP_ROOT)
            continue;
        flops += node_flops(n);
        if (!n->name || is_of_weight(s->module, n->name))
            continue;
        Layer layer = {
            .name = n->name, .type = type_in_text(s->module, n), .src = n->src, .flops = flops / s->module->batch};
        VEC_PUSH(s->arena, &s->layers, layer);
        flops = 0;
    }
}

/* "h", "h.weight", "h.weight.m", "d_h" and "d_h.weight" belong to h. */
static bool belongs_to(const char *label, const Layer *layer) {
    size_t length = strlen(layer->name);
    if (strncmp(label, "d_", 2) == 0 && strncmp(layer->name, "d_", 2) != 0)
        label += 2;
    return strncmp(label, layer->name, length) == 0 && (label[length] == '\0' || label[length] == '.');
}

/* The layer with the longest name: "a.b.weight" is of "a.b", not of "a". */
static Layer *owner(Summary *s, const char *label) {
    Layer *best = NULL;
    for (int i = 0; i < s->layers.count; i++)
        if (belongs_to(label, &s->layers.at[i]) && (!best || strlen(s->layers.at[i].name) > strlen(best->name)))
            best = &s->layers.at[i];
    return best;
}

static void gather_memory(Summary *s) {
    for (int i = 0; i < s->plan->buffers.count; i++) {
        const Buffer *buffer = &s->plan->buffers.at[i];
        if (buffer->kind == BUFFER_WEIGHT && !owner(s, buffer->label)) {
            Type type = weight_type_in_files(&s->module->weights.at[buffer->index]);
            VEC_PUSH(s->arena, &s->layers, ((Layer){.name = buffer->label, .type = type, .src = buffer->src}));
        }
        Layer *layer = buffer->program <= PROGRAM_TRAIN ? owner(s, buffer->label) : NULL;
        if (!layer)
            continue;
        layer->bytes += buffer->bytes;
        if (buffer->kind == BUFFER_WEIGHT && s->module->weights.at[buffer->index].kind != WEIGHT_BUFFER)
            layer->parameters += type_elements(&buffer->type);
    }
}

/* ---- printing ---- */

static void print_row(Text *out, const char *line, const char *name, const char *shape, const Layer *layer) {
    Arena *arena = out->arena;
    text_printf(out, "  %5s  %-24s %-16s %14s %16s %10s\n", line, name, shape, text_grouped(arena, layer->parameters),
                text_grouped(arena, layer->flops), text_bytes(arena, layer->bytes));
}

static const char *line_text(Arena *arena, Span src) {
    int line, column;
    if (!src.source)
        return "";
    span_position(src, &line, &column);
    return arena_printf(arena, "%d", line);
}

static void print_layers(Summary *s, Text *out) {
    Layer total = {0};
    text_printf(out, "  %5s  %-24s %-16s %14s %16s %10s\n", "line", "value", "shape", "parameters", "FLOP/example",
                "memory");
    for (int i = 0; i < s->layers.count; i++) {
        const Layer *layer = &s->layers.at[i];
        print_row(out, line_text(s->arena, layer->src), layer->name, type_user_text(s->arena, &layer->type), layer);
        total.parameters += layer->parameters;
        total.flops += layer->flops;
        total.bytes += layer->bytes;
    }
    print_row(out, "", "total", "", &total);
}

static void print_knobs(Summary *s, Text *out) {
    for (int i = 0; i < s->module->knobs.count; i++) {
        const Knob *knob = &s->module->knobs.at[i];
        text_printf(out, "%s %s = ", i ? "            " : "  params    ", knob->name);
        text_number(out, knob->value);
        text_printf(out,
                    knob->fixed ? ", fixed when compiling (mtc --set %s=...)\n" : ", a flag of the program (--%s)\n",
                    knob->name);
    }
}

static void print_schedule(Summary *s, Text *out) {
    const Program *train = s->plan->programs[PROGRAM_TRAIN];
    const double *us = train->estimate;
    if (!train->machine->blocks) {
        text_printf(out, "  schedule   openmp: %d phases a step; no estimate of a processor's time\n",
                    train->phases.count);
        return;
    }
    text_printf(out, "  schedule   %s: %d phases a step, %.1f us estimated (graph %.1f us, persistent %.1f us)\n",
                train->schedule == SCHEDULE_PERSISTENT ? "persistent" : "graph", train->phases.count,
                1e6 * us[train->schedule], 1e6 * us[SCHEDULE_GRAPH], 1e6 * us[SCHEDULE_PERSISTENT]);
}

void summary_print(const Plan *plan, Text *out) {
    Summary s = {out->arena, plan, plan->programs[PROGRAM_TRAIN]->graph->module, {0}};
    gather_layers(&s);
    gather_memory(&s);
    text_printf(out, "%s\n\n", s.module->name);
    print_layers(&s, out);
    text_putc(out, '\n');
    print_knobs(&s, out);
    text_printf(out, "  batch      %lld, %d epochs\n", (long long)s.module->batch, s.module->epochs);
    text_printf(out, "  memory     %s: weights %s, optimizer state %s, values %s; %s without sharing\n",
                text_bytes(s.arena, plan->arena_bytes), text_bytes(s.arena, plan->weight_bytes),
                text_bytes(s.arena, plan->state_bytes), text_bytes(s.arena, plan->value_bytes),
                text_bytes(s.arena, plan->unshared_bytes));
    print_schedule(&s, out);
}
