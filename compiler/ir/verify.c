#include "ir/op.h"

/* An invariant of node n; `after` names the pass that broke it. */
#define HOLDS(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition))                                                                                              \
            ICE("after %s: node %%%d (%s): %s does not hold", after, n->id, n->op->name, #condition);                  \
    } while (0)

static int table_rows(const Module *module, Table table) {
    const int rows[] = {[TABLE_NONE] = INT32_MAX,
                        [TABLE_WEIGHT] = module->weights.count,
                        [TABLE_STATE] = module->states.count,
                        [TABLE_FIELD] = module->fields.count,
                        [TABLE_KNOB] = module->knobs.count,
                        [TABLE_REPORT] = module_report_columns(module),
                        [TABLE_KEPT] = module->kept.count,
                        [TABLE_PRINTED] = module->printed.count,
                        [TABLE_LAST] = INT32_MAX};
    return rows[table];
}

static void verify_attr(const Graph *g, const Node *n, const char *after) {
    const Attr *a = &n->attr;
    unsigned reads = n->op->attrs;
    HOLDS(reads & ATTR_VALUE || a->value == 0);
    HOLDS(reads & ATTR_INDEX || a->index == 0);
    HOLDS(reads & ATTR_AXES || a->axes == 0);
    HOLDS(reads & (ATTR_DIMS | ATTR_ORDER) || a->rank == 0);
    HOLDS(reads & ATTR_TRANSPOSED || (!a->ta && !a->tb));
    HOLDS(reads & ATTR_SWEEP || !a->sweep[0].kernel);
    HOLDS(reads & ATTR_HEADS || !a->heads.queries);
    HOLDS(a->index >= 0 && a->index < table_rows(g->module, n->op->table));
    HOLDS(a->rank >= 0 && a->rank <= MAX_RANK);
}

static void verify_type(const Graph *g, const Node *n, const char *after) {
    HOLDS(n->type.rank >= 0 && n->type.rank <= MAX_RANK);
    HOLDS(!n->type.batched || (n->type.rank > 0 && n->type.dim[0] % graph_examples(g) == 0));
    int64_t elements = 1;
    for (int k = 0; k < n->type.rank; k++) {
        HOLDS(n->type.dim[k] > 0 && n->type.dim[k] <= INT32_MAX);
        elements = size_product(elements, n->type.dim[k]);
        HOLDS(elements > 0);
    }
}

/* The type that the operator infers is the type that the node has. `scratch` is a copy of the graph: infer reports through
 * it and changes nothing else. */
static void verify_inferred(Graph *scratch, const Node *n, const char *after) {
    Node again = *n;
    HOLDS(n->op->infer(scratch, &again));
    HOLDS(again.type.dtype == n->type.dtype);
    HOLDS(again.type.batched == n->type.batched);
    HOLDS(type_same_shape(&again.type, &n->type));
}

static void verify_inputs(const Graph *g, const Node *n, const char *after) {
    HOLDS(n->op->cls != OP_LIBRARY);
    HOLDS(n->inputs == n->op->arity);
    HOLDS(!n->after || (n->after->id >= 0 && n->after->id < n->id));
    for (int k = 0; k < n->inputs; k++) {
        const Node *in = n->in[k];
        HOLDS(in && in->id >= 0 && in->id < n->id && g->nodes.at[in->id] == in);
        HOLDS(in->op->cls != OP_ROOT);
        HOLDS(!(n->op->flags & OP_PART) || (in->op->cls == OP_CALL && !(in->op->flags & OP_PART)));
        HOLDS(n->op->cls != OP_MAP || (type_same_shape(&in->type, &n->type) && in->type.batched == n->type.batched));
    }
}

void graph_verify(const Graph *g, const char *after) {
    Graph scratch = *g; /* once: its table of values is large */
    for (int i = 0; i < g->nodes.count; i++) {
        const Node *n = g->nodes.at[i];
        HOLDS(n->id == i && !n->replaced);
        HOLDS(n->op == operators_find(g->module->operators, n->op->name));
        verify_inputs(g, n, after);
        verify_attr(g, n, after);
        verify_type(g, n, after);
        verify_inferred(&scratch, n, after);
    }
    for (int i = 0; i < g->roots.count; i++) {
        const Node *n = g->roots.at[i];
        HOLDS(n->op->cls == OP_ROOT && g->nodes.at[n->id] == n);
    }
}

void module_verify(const Module *module, const char *after) {
    Graph *graphs[MAX_GRAPHS];
    for (int i = 0, count = module_graphs(module, graphs); i < count; i++)
        graph_verify(graphs[i], after);
}
