/* Values of which an axis has the examples of the batch: what `batch(x)` gives, and what is made of it.
 *
 * A batch may hold fewer examples than its size; the rows that are left repeat the first example, so that what is computed of them is finite. Which
 * axes have the examples is known of each node while a graph is made of the text. There, whatever is folded along such an axis has
 * the fold's neutral element in the rows that fill up, so that each result is that of the examples alone; and an operator that would
 * part, mix or count them in another way is refused. Gradients need nothing: of what nobody folded they are 0. */
#include "ir/op.h"

#include <float.h>
#include <math.h>

/* ---- which axes ---- */

static bool refuse(const Graph *g, const Node *n) {
    diag_error(g->module->diag, n->src,
               "%s cannot be applied along the examples of a batch: how many there are is known when the program runs",
               n->op->name);
    return false;
}

/* Each such axis of the operand is one of the result, as long and in its order. */
static bool examples_of_view(Graph *g, Node *n) {
    const Node *operand = n->in[0];
    IndexMap map = {0};
    if (n->inputs == 2) {
        n->examples = n->in[1]->examples; /* of a lookup: whose axes come first */
        return !operand->examples || refuse(g, n);
    }
    if (!operand->examples)
        return true;
    n->op->view(g->arena, n, tree_operand, &map); /* places as indices: told apart by their addresses */
    for (int axis = 0; axis < operand->type.rank; axis++) {
        int k = 0;
        if (!(operand->examples >> axis & 1))
            continue;
        while (k < n->type.rank && map.index[axis] != tree_operand[k])
            k++;
        if (k == n->type.rank || n->type.dim[k] != operand->type.dim[axis])
            return refuse(g, n);
        n->examples |= 1u << k;
    }
    return true;
}

static void examples_of_reduction(Node *n) {
    for (int axis = 0, kept = 0; axis < n->in[0]->type.rank; axis++)
        if (!(n->attr.axes >> axis & 1))
            n->examples |= (n->in[0]->examples >> axis & 1) << kept++;
}

/* Of stacks of matrices [..., I, J] = [..., I, K] [..., K, J]. */
static void examples_of_product(Node *n) {
    const Node *a = n->in[0], *b = n->in[1];
    const int rank = n->type.rank, of_a = a->type.rank, of_b = b->type.rank;
    for (int axis = 0; axis < rank - 2; axis++) {
        n->examples |= of_a == rank ? a->examples & 1u << axis : 0;
        n->examples |= of_b == rank ? b->examples & 1u << axis : 0;
    }
    n->examples |= (a->examples >> (of_a - (n->attr.ta ? 1 : 2)) & 1) << (rank - 2);
    n->examples |= (b->examples >> (of_b - (n->attr.tb ? 2 : 1)) & 1) << (rank - 1);
}

static bool any_examples(const Node *n) {
    unsigned examples = 0;
    for (int k = 0; k < n->inputs; k++)
        examples |= n->in[k]->examples;
    return examples;
}

bool graph_find_examples(Graph *g, Node *n) {
    if (n->op->flags & OP_GATHERS_BATCH)
        n->examples = 1 | n->in[0]->examples; /* whose other axes may have them already */
    else if (!any_examples(n))
        return true;
    else if (n->op->cls == OP_MAP)
        for (int k = 0; k < n->inputs; k++)
            n->examples |= n->in[k]->examples;
    else if (n->op->cls == OP_VIEW)
        return examples_of_view(g, n);
    else if (n->op->cls == OP_REDUCE)
        examples_of_reduction(n);
    else if (n->op->cls == OP_CONTRACT && n->type.rank >= 2 && n->op->attrs & ATTR_TRANSPOSED)
        examples_of_product(n);
    else
        return refuse(g, n);
    return true;
}

bool graph_needs_batch(const Graph *g, const Node *n) {
    bool *needs = NEW_ARRAY(g->arena, bool, n->id + 1);
    for (int i = 0; i <= n->id; i++) {
        const Node *at = g->nodes.at[i];
        needs[i] = at->op->flags & OP_GATHERS_BATCH;
        for (int k = 0; k < at->inputs; k++)
            needs[i] |= needs[at->in[k]->id];
    }
    return needs[n->id];
}

/* ---- without filler ---- */

/* Whether a row of the batch is an example, at all elements of `like`, whose axis has the rows. */
static Node *is_example(Graph *g, const Type *like, int axis) {
    Node *share = op0(g, "share", (Attr){.rank = 1, .dims = {like->dim[axis]}});
    Node *is_real = op2(g, "gt", share, graph_constant(g, 0));
    Attr attr = attr_shape(like);
    attr.axes = ((1u << like->rank) - 1) & ~(1u << axis);
    return attr.axes ? graph_node(g, "expand", attr, 1, &is_real) : is_real;
}

Node *graph_without_filler(Graph *g, Node *a, unsigned axes, double neutral) {
    if (!a || !(axes & a->examples))
        return a;
    Node *finite = graph_constant(g, fmax(-FLT_MAX, fmin(neutral, FLT_MAX)));
    for (int k = 0; k < a->type.rank; k++)
        if (axes & a->examples & 1u << k)
            a = op3(g, "where", is_example(g, &a->type, k), a, finite);
    return a;
}
