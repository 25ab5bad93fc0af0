#include "pass/simplify.h"

#include "ir/op.h"

enum { MAX_ROUNDS = 100 };

/* A map of constants is a constant. */
static Node *fold_constants(Graph *g, Node *n) {
    double in[MAX_INPUTS];
    if (n->op->cls != OP_MAP || !n->op->fold || n->type.dtype != DT_F32)
        return NULL;
    for (int k = 0; k < n->inputs; k++)
        if (!graph_constant_value(n->in[k], &in[k]))
            return NULL;
    return graph_expand(g, graph_constant(g, n->op->fold(in)), &n->type);
}

/* The axes along which all operands only repeat themselves. */
static unsigned repeated_axes(const Node *n) {
    unsigned axes = ~0u;
    for (int k = 0; k < n->inputs; k++)
        axes &= n->in[k]->op->flags & OP_REPEATS ? n->in[k]->attr.axes : 0;
    return n->inputs ? axes : 0;
}

/* A map of expansions is the expansion of a smaller map. */
static Node *hoist_expansion(Graph *g, Node *n) {
    unsigned axes = n->op->cls == OP_MAP ? repeated_axes(n) : 0;
    if (!axes)
        return NULL;
    Node *in[MAX_INPUTS];
    for (int k = 0; k < n->inputs; k++)
        in[k] = graph_repeated(g, n->in[k], axes);
    Node *small = graph_node(g, n->op->name, n->attr, n->inputs, in);
    Attr attr = attr_shape(&n->type);
    attr.axes = axes;
    return graph_node(g, n->in[0]->op->name, attr, 1, &small);
}

static Node *simpler(Graph *g, Node *n, const void *context) {
    (void)context;
    Node *better = fold_constants(g, n);
    if (!better)
        better = hoist_expansion(g, n);
    if (!better && n->op->simplify)
        better = n->op->simplify(g, n);
    return better;
}

/* A root is carried out by the kernel that computes its value. What is a leaf is copied. */
static void copy_leaves(Graph *g) {
    for (int i = 0; i < g->roots.count; i++) {
        Node *root = g->roots.at[i], **value = &root->in[root->inputs - 1];
        graph_at(g, root->src);
        if ((*value)->op->cls == OP_LEAF)
            *value = graph_node(g, "cast", (Attr){.dtype = (*value)->type.dtype}, 1, value);
    }
}

void simplify(Graph *g) {
    int rounds = 0;
    g->copies = g->nodes.count;
    while (graph_rewrite(g, simpler, NULL)) {
        ENSURE(++rounds < MAX_ROUNDS);
        graph_compact(g);
    }
    copy_leaves(g);
    graph_compact(g);
}
