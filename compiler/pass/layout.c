/* Functions of images put a transpose before and one after their work:
 *
 *     x -> last -> conv2d -> first -> relu -> last -> conv2d -> first       as the language says it
 *     x -> last -> conv2d -> relu -> conv2d -> first                        as it is computed
 *
 * Here each transpose to "channels first" sinks through what follows, through maps, reductions, slices, paddings and flips, until it
 * meets one to "channels last" and both are gone, or something that needs the order: flatten, at the end of a network. One
 * walk from the leaves to the roots is enough. */
#include "pass/layout.h"

#include "ir/op.h"

/* Axis k of the result is axis order(k) of the operand. */
static bool is_transpose(const Node *n) {
    return n->op->attrs & ATTR_ORDER;
}

/* [N, ..., C] as [N, C, ...] */
static bool is_channels_first(const Node *n) {
    if (!is_transpose(n) || !n->type.batched || n->type.rank < 4 || n->attr.dims[1] != n->type.rank - 1)
        return false;
    for (int k = 2; k < n->type.rank; k++)
        if (n->attr.dims[k] != k - 1)
            return false;
    return true;
}

/* The operand of a transpose, which takes over its name. */
static Node *below(Node *transpose) {
    Node *operand = transpose->in[0];
    return operand->op->cls == OP_LEAF || operand->op->cls == OP_INDEX ? operand : graph_name(operand, transpose->name);
}

/* The axes of the result as those of the operand. */
static unsigned axes_below(const Node *transpose, unsigned axes) {
    unsigned result = 0;
    for (int k = 0; k < transpose->type.rank; k++)
        result |= (axes >> k & 1) << transpose->attr.dims[k];
    return result;
}

/* The order of those axes of the result that are in `axes`, as they are among their kind in the operand. */
static void order_among(const Node *transpose, unsigned axes, int *order) {
    unsigned kept = axes_below(transpose, axes);
    for (int k = 0, count = 0; k < transpose->type.rank; k++)
        if (axes >> k & 1)
            order[count++] = __builtin_popcount(kept & ((1u << transpose->attr.dims[k]) - 1));
}

static void inverse(const int *order, int count, int *result) {
    for (int k = 0; k < count; k++)
        result[order[k]] = k;
}

/* ---- what is not transposed, as if it had been ---- */

/* What repeats along some axes does so along others; only what is repeated is transposed. */
static Node *expansion_below(Graph *g, const Node *n, const Node *transpose) {
    int order[MAX_RANK], back[MAX_RANK];
    unsigned own = ((1u << n->type.rank) - 1) & ~n->attr.axes;
    Attr attr = attr_shape(&transpose->in[0]->type);
    attr.axes = axes_below(transpose, n->attr.axes);
    order_among(transpose, own, order);
    inverse(order, n->in[0]->type.rank, back);
    Node *operand = graph_transpose(g, n->in[0], back);
    return graph_node(g, n->op->name, attr, 1, &operand);
}

static Node *as_below(Graph *g, Node *n, const Node *transpose);

/* A map, such as the mask of a dropout, whose operands cost nothing. */
static Node *map_below(Graph *g, const Node *n, const Node *transpose) {
    Node *in[MAX_INPUTS];
    Attr attr = n->attr;
    attr.axes = axes_below(transpose, n->attr.axes);
    for (int k = 0; k < n->inputs; k++)
        if (!(in[k] = as_below(g, n->in[k], transpose)))
            return NULL;
    return graph_name(graph_node(g, n->op->name, attr, n->inputs, in), n->name);
}

static Node *index_below(Graph *g, Node *n, const Node *transpose) {
    int order[MAX_RANK], back[MAX_RANK];
    order_among(transpose, ~0u, order);
    inverse(order, n->type.rank, back);
    return graph_transpose(g, n, back);
}

/* The node that has n's elements in the order of the transpose's operand, if that moves no memory; or NULL. */
static Node *as_below(Graph *g, Node *n, const Node *transpose) {
    if (is_channels_first(n))
        return below(n);
    if (n->op->flags & OP_REPEATS)
        return expansion_below(g, n, transpose);
    if (n->op->cls == OP_INDEX)
        return index_below(g, n, transpose);
    return n->op->cls == OP_MAP ? map_below(g, n, transpose) : NULL;
}

/* ---- sinking ---- */

static Node *transposed_like(Graph *g, const Node *transpose, Node *n) {
    return graph_node(g, transpose->op->name, transpose->attr, 1, &n);
}

static Node *sink_through_map(Graph *g, Node *n) {
    for (int k = 0; k < n->inputs; k++)
        if (is_channels_first(n->in[k])) {
            Node *map = map_below(g, n, n->in[k]);
            return map ? transposed_like(g, n->in[k], map) : NULL;
        }
    return NULL;
}

static Node *sink_through_reduction(Graph *g, Node *n) {
    Node *transpose = n->in[0];
    int order[MAX_RANK];
    unsigned kept = ((1u << transpose->type.rank) - 1) & ~n->attr.axes;
    Node *operand = below(transpose);
    Attr attr = n->attr;
    attr.axes = axes_below(transpose, n->attr.axes);
    order_among(transpose, kept, order);
    return graph_transpose(g, graph_node(g, n->op->name, attr, 1, &operand), order);
}

/* A slice or a padding. */
static Node *sink_through_placement(Graph *g, Node *n) {
    Node *transpose = n->in[0], *operand = below(transpose);
    Attr attr = n->attr;
    for (int k = 0; k < n->type.rank; k++) {
        attr.dims[transpose->attr.dims[k]] = n->attr.dims[k];
        attr.offset[transpose->attr.dims[k]] = n->attr.offset[k];
    }
    return transposed_like(g, transpose, graph_name(graph_node(g, n->op->name, attr, 1, &operand), n->name));
}

static Node *sink_through_reordering(Graph *g, Node *n) {
    Node *operand = below(n->in[0]);
    Attr attr = n->attr;
    attr.axes = axes_below(n->in[0], n->attr.axes);
    return transposed_like(g, n->in[0], graph_name(graph_node(g, n->op->name, attr, 1, &operand), n->name));
}

static Node *sink(Graph *g, Node *n, const void *context) {
    (void)context;
    if (n->op->cls == OP_MAP)
        return sink_through_map(g, n);
    if (!n->inputs || !is_channels_first(n->in[0]))
        return NULL;
    if (is_transpose(n)) {
        below(n->in[0]);
        return n->op->simplify(g, n);
    }
    if (n->op->cls == OP_REDUCE && n->op->attrs & ATTR_AXES)
        return sink_through_reduction(g, n);
    if (n->op->flags & OP_REORDERS)
        return sink_through_reordering(g, n);
    bool by_chance = n->op->flags & OP_DRAWS;
    return n->op->attrs & ATTR_OFFSET && !by_chance ? sink_through_placement(g, n) : NULL;
}

/* What evaluation computes, before the order of its axes is changed. */
static void keep_named(const Graph *g) {
    Module *module = g->module;
    for (int i = 0; i < g->nodes.count; i++) {
        const Node *n = g->nodes.at[i];
        if (n->name && n->op->cls != OP_LEAF)
            VEC_PUSH(g->arena, &module->named, ((NamedValue){n->name, n->src, n->type}));
    }
}

void layout(Graph *g) {
    if (g == g->module->eval)
        keep_named(g);
    graph_rewrite(g, sink, NULL);
}

Node *after_layout(Node *value) {
    while (value && value->replaced)
        value = value->replaced;
    return value;
}
