#include "summary.h"
#include "support/file.h"

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
    int *of_weight;    /* rows of layers, or NONE */
} Summary;

enum { NONE = -1 };

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

Type type_in_text(const Module *module, const Node *n) {
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

/* Evaluation is the forward pass and nothing else. What a report needs is counted under the report's name. Sets the row of
 * each node that is a layer. */
static void gather_layers(Summary *s, int *row) {
    const Graph *g = s->module->eval;
    int64_t flops = 0;
    for (int i = 0; i < g->nodes.count; i++) {
        const Node *n = g->nodes.at[i];
        row[i] = NONE;
        if (n->op->table == TABLE_REPORT && s->layers.count)
            s->layers.at[s->layers.count - 1].name = module_report(s->module, n->attr.index)->name;
        if (n->op->cls == OP_LEAF || n->op->cls == OP_ROOT)
            continue;
        flops += node_flops(n);
        if (!n->name || is_of_weight(s->module, n->name))
            continue;
        row[i] = s->layers.count;
        Layer layer = {
            .name = n->name, .type = type_in_text(s->module, n), .src = n->src, .flops = flops / s->module->batch};
        VEC_PUSH(s->arena, &s->layers, layer);
        flops = 0;
    }
}

/* Evaluation reads averages of weights where there are any. */
static int weight_of(const Module *module, const Node *n) {
    return n->op->table == TABLE_WEIGHT  ? n->attr.index
           : n->op->table == TABLE_STATE ? module->states.at[n->attr.index].of
                                         : NONE;
}

static int line_of(Span src) {
    int line = 0, column;
    if (src.source)
        span_position(src, &line, &column);
    return line;
}

static bool is_made_in(const Weight *weight, const Layer *layer) {
    const Span *made = &weight->src, *whole = &layer->src;
    if (!made->source || made->source != whole->source)
        return false;
    return (made->begin >= whole->begin && made->end <= whole->end) || line_of(*made) == line_of(*whole);
}

/* Of each node, the first layer that is computed with it: itself, or one of those who read it. `row`: of nodes that are layers. */
static int *first_layers(const Summary *s, const int *row) {
    const Graph *g = s->module->eval;
    int *first = NEW_ARRAY(s->arena, int, g->nodes.count);
    memcpy(first, row, (size_t)g->nodes.count * sizeof *first);
    for (int i = g->nodes.count - 1; i >= 0; i--)
        for (int k = 0; k < g->nodes.at[i]->inputs; k++) {
            int id = g->nodes.at[i]->in[k]->id;
            if (first[i] != NONE && row[id] == NONE && (first[id] == NONE || first[i] < first[id]))
                first[id] = first[i];
        }
    return first;
}

/* A weight is of the first layer that is computed with it, if the same line of the text makes both. */
static void gather_weights(Summary *s, const int *row) {
    const Graph *g = s->module->eval;
    const int *first = first_layers(s, row);
    s->of_weight = NEW_ARRAY(s->arena, int, s->module->weights.count);
    for (int w = 0; w < s->module->weights.count; w++)
        s->of_weight[w] = NONE;
    for (int i = 0; i < g->nodes.count; i++) {
        int weight = weight_of(s->module, g->nodes.at[i]);
        if (weight != NONE && first[i] != NONE && is_made_in(&s->module->weights.at[weight], &s->layers.at[first[i]]))
            s->of_weight[weight] = first[i];
    }
}

/* The others have rows of their own. */
static void add_weights(Summary *s) {
    for (int w = 0; w < s->module->weights.count; w++) {
        const Weight *weight = &s->module->weights.at[w];
        if (s->plan->of_weight[w] < 0 || s->of_weight[w] != NONE || weight->flat)
            continue;
        s->of_weight[w] = s->layers.count;
        Layer layer = {.name = weight->name, .type = weight_type_in_files(weight), .src = weight->src};
        VEC_PUSH(s->arena, &s->layers, layer);
    }
}

/* "h", "h.weight.bf16", "d_h" and "d_h.weight" are called after h. */
static size_t called_after(const char *label, const char *name) {
    size_t length = strlen(name);
    if (strncmp(label, "d_", 2) == 0 && strncmp(name, "d_", 2) != 0)
        label += 2;
    return strncmp(label, name, length) == 0 && (label[length] == '\0' || label[length] == '.') ? length : 0;
}

/* What a step stores belongs to the value or the weight that it is called after; the longest name counts. */
static int layer_of_value(const Summary *s, const char *label) {
    size_t longest = 0;
    int best = NONE;
    for (int i = 0; i < s->layers.count; i++) {
        size_t length = called_after(label, s->layers.at[i].name);
        best = length > longest ? i : best;
        longest = length > longest ? length : longest;
    }
    for (int w = 0; w < s->module->weights.count; w++) {
        size_t length = called_after(label, s->module->weights.at[w].name);
        best = length > longest ? s->of_weight[w] : best;
        longest = length > longest ? length : longest;
    }
    return best;
}

static int layer_of_buffer(const Summary *s, const Buffer *buffer) {
    if (buffer->kind == BUFFER_VALUE)
        return buffer->program == PROGRAM_TRAIN ? layer_of_value(s, buffer->label) : NONE;
    return s->of_weight[buffer->kind == BUFFER_WEIGHT ? buffer->index : s->module->states.at[buffer->index].of];
}

static void gather_memory(Summary *s) {
    for (int i = 0; i < s->plan->buffers.count; i++) {
        const Buffer *buffer = &s->plan->buffers.at[i];
        int row = layer_of_buffer(s, buffer);
        if (row == NONE || buffer->flat)
            continue;
        Layer *layer = &s->layers.at[row];
        layer->bytes += buffer->bytes;
        if (buffer->kind == BUFFER_WEIGHT && s->module->weights.at[buffer->index].kind != WEIGHT_BUFFER)
            layer->parameters += type_elements(&buffer->type);
    }
}

/* ---- printing ---- */

/* "31", "gpt.mt:31" in a file that is included. */
static const char *line_text(const Summary *s, Span src) {
    const Source *own = s->module->source;
    if (!src.source)
        return "";
    const char *file = src.source == own ? "" : arena_printf(s->arena, "%s:", path_beside(src.source->path, own->path));
    return arena_printf(s->arena, "%s%d", file, line_of(src));
}

static int line_width(const Summary *s) {
    size_t width = strlen(" line");
    for (int i = 0; i < s->layers.count; i++) {
        size_t length = strlen(line_text(s, s->layers.at[i].src));
        width = length > width ? length : width;
    }
    return (int)width;
}

static void print_row(Text *out, int width, const char *line, const char *name, const char *shape, const Layer *layer) {
    Arena *arena = out->arena;
    text_printf(out, "  %*s  %-24s %-16s %14s %16s %10s\n", width, line, name, shape,
                text_grouped(arena, layer->parameters), text_grouped(arena, layer->flops),
                text_bytes(arena, layer->bytes));
}

static void print_layers(Summary *s, Text *out) {
    Layer total = {0};
    int width = line_width(s);
    text_printf(out, "  %*s  %-24s %-16s %14s %16s %10s\n", width, "line", "value", "shape", "parameters",
                "FLOP/example", "memory");
    for (int i = 0; i < s->layers.count; i++) {
        const Layer *layer = &s->layers.at[i];
        print_row(out, width, line_text(s, layer->src), layer->name, type_user_text(s->arena, &layer->type), layer);
        total.parameters += layer->parameters;
        total.flops += layer->flops;
        total.bytes += layer->bytes;
    }
    print_row(out, width, "", "total", "", &total);
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
    text_printf(out, "  schedule   %s: %d phases a step, %.1f us estimated on %s (graph %.1f us, persistent %.1f us)\n",
                train->schedule == SCHEDULE_PERSISTENT ? "persistent" : "graph", train->phases.count,
                1e6 * us[train->schedule], train->machine->name, 1e6 * us[SCHEDULE_GRAPH],
                1e6 * us[SCHEDULE_PERSISTENT]);
}

void summary_print(const Plan *plan, Text *out) {
    Summary s = {out->arena, plan, plan->programs[PROGRAM_TRAIN]->graph->module, {0}, NULL};
    int *row = NEW_ARRAY(s.arena, int, s.module->eval->nodes.count);
    gather_layers(&s, row);
    gather_weights(&s, row);
    add_weights(&s);
    gather_memory(&s);
    text_printf(out, "%s\n\n", s.module->name);
    print_layers(&s, out);
    text_putc(out, '\n');
    print_knobs(&s, out);
    const char *shards = s.module->shards ? arena_printf(s.arena, " in %d shards", s.module->shards) : "";
    text_printf(out, "  batch      %lld%s, %d epochs\n", (long long)module_examples(s.module), shards,
                s.module->epochs);
    text_printf(out, "  memory     %s: weights %s, optimizer state %s, values %s; %s without sharing\n",
                text_bytes(s.arena, plan->arena_bytes), text_bytes(s.arena, plan->weight_bytes),
                text_bytes(s.arena, plan_state_bytes(plan)), text_bytes(s.arena, plan->value_bytes),
                text_bytes(s.arena, plan->unshared_bytes));
    print_schedule(&s, out);
}
