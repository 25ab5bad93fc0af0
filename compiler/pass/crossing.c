/* Updates overwrite what they read, an element at a time. Of another element nobody knows whether it is the old one still:
 *
 *     w[i] = w[i] - (w[i - 1] + w[i + 1])      ==>      d_w[i] = w[i - 1] + w[i + 1];  w[i] = w[i] - d_w[i]
 *
 * So what a view moves to the element is put in memory before, if it is made of the leaf that is overwritten, or of one whose own update
 * reads this leaf in turn: of two such updates neither could be first. A gradient that examples have a part in is in memory in any case,
 * as the sum over them; this is about penalties on weights, and batches of one example. */
#include "pass/fuse.h"

typedef struct Crossing {
    Fusion *f;
    const Node *leaf; /* that is overwritten */
    bool *crosses;
} Crossing;

/* Computed where it is read: other nodes are in memory. */
static bool passes_on(const Node *n) {
    return n->op->cls == OP_MAP || n->op->cls == OP_VIEW;
}

/* n is made of the leaf, or of another one whose update is. */
static bool leads_to(Fusion *f, const Node *n, const Node *leaf) {
    for (int k = 0; k < n->inputs; k++) {
        const Node *in = n->in[k], *next = f->program->next[in->id];
        if (in == leaf)
            return true;
        if (fusion_first_visit(f, in) &&
            ((passes_on(in) && leads_to(f, in, leaf)) || (next && leads_to(f, next, leaf))))
            return true;
    }
    return false;
}

/* The new value of `read` may have to come before that of `leaf`, as well as behind it. */
static bool in_circle(Fusion *f, const Node *read, const Node *leaf) {
    fusion_walk(f);
    return read == leaf || leads_to(f, f->program->next[read->id], leaf);
}

static bool is_own(const Node *n, const Access *at, const Node *leaf) {
    return type_same_shape(&n->type, &leaf->type) && rows_at_own(at, n->type.rank);
}

static Walk finds_crossing(void *context, Node *n, const Access *at) {
    const Crossing *crossing = context;
    if (passes_on(n))
        return WALK_DEEPER;
    if (is_own(n, at, crossing->leaf) || !crossing->f->program->next[n->id])
        return WALK_STOP;
    return crossing->f->updates_last || in_circle(crossing->f, n, crossing->leaf) ? WALK_FAIL : WALK_STOP;
}

static Walk marks_views(void *context, Node *n, const Access *at) {
    const Crossing *crossing = context;
    if (n->op->cls == OP_VIEW && !access_walk(crossing->f->arena, n, at, finds_crossing, context))
        crossing->crosses[n->id] = true;
    return n->op->cls == OP_MAP ? WALK_DEEPER : WALK_STOP;
}

bool *fusion_crossings(Fusion *f) {
    const Graph *g = f->graph;
    bool *crosses = NEW_ARRAY(f->arena, bool, g->nodes.count);
    const Access own = rows_own();
    for (int i = 0; i < g->nodes.count; i++) {
        Crossing crossing = {f, f->program->assigned[g->nodes.at[i]->id], crosses};
        if (crossing.leaf)
            access_walk(f->arena, g->nodes.at[i], &own, marks_views, &crossing);
    }
    return crosses;
}
