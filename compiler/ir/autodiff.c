#include "ir/autodiff.h"

#include "ir/op.h"

typedef struct Tape {
    Graph *g;
    int count;         /* nodes that existed before: the forward ones */
    Node **gradient;   /* of the loss, with respect to node i; NULL: zero */
    bool *depends;     /* node i depends on a weight through differentiable operators */
    const char **user; /* name of the value that node i, itself unnamed, goes into; or NULL */
} Tape;

static void find_dependents(Tape *tape) {
    const Weight *weights = tape->g->module->weights.at;
    for (int i = 0; i < tape->count; i++) {
        const Node *n = tape->g->nodes.at[i];
        tape->depends[i] = n->op->table == TABLE_WEIGHT && weights[n->attr.index].kind == WEIGHT_TRAINED;
        for (int k = 0; k < n->inputs && !(n->op->flags & OP_NO_GRAD); k++)
            tape->depends[i] |= tape->depends[n->in[k]->id];
    }
}

/* The gradient of `h` is d_h; of what goes into the last operator of `h`, its ReLU for example, d_h_pre. */
static void name_gradient(Tape *tape, const Node *n) {
    const char *user = tape->user[n->id];
    Node *gradient = tape->gradient[n->id];
    bool was_there = gradient->id < tape->count || gradient->op->cls == OP_LEAF || gradient->op->cls == OP_INDEX;
    if (was_there)
        return;
    if (n->name)
        graph_name(gradient, arena_printf(tape->g->arena, "d_%s", n->name));
    else if (user && gradient->op->cls == OP_CALL)
        gradient->hint = arena_printf(tape->g->arena, "d_%s_pre", user); /* packed: it may be all of d_qkv */
    else if (user)
        graph_name(gradient, arena_printf(tape->g->arena, "d_%s_pre", user));
}

/* A value that is used twice receives the sum of what its uses send back. */
static void accumulate(Tape *tape, const Node *n, Node *part) {
    Node **sum = &tape->gradient[n->id];
    if (part)
        *sum = *sum ? op2(tape->g, "add", *sum, part) : part;
}

static void send_back(Tape *tape, Node *n) {
    Node *din[MAX_INPUTS] = {0};
    if (!n->inputs)
        return;
    if (!n->op->grad)
        ICE("operator '%s' has no gradient", n->op->name);
    n->op->grad(tape->g, n, tape->gradient[n->id], din);
    for (int k = 0; k < n->inputs; k++) {
        if (!tape->depends[n->in[k]->id])
            continue;
        accumulate(tape, n->in[k], din[k]);
        tape->user[n->in[k]->id] = n->name;
    }
}

void autodiff(Graph *g, Node *loss, Node **gradients) {
    Tape tape = {.g = g, .count = g->nodes.count};
    tape.gradient = NEW_ARRAY(g->arena, Node *, tape.count);
    tape.depends = NEW_ARRAY(g->arena, bool, tape.count);
    tape.user = NEW_ARRAY(g->arena, const char *, tape.count);
    find_dependents(&tape);
    Span before = graph_at(g, loss->src);
    tape.gradient[loss->id] = graph_expand(g, graph_constant(g, 1), &loss->type);
    for (int i = tape.count - 1; i >= 0; i--) {
        Node *n = g->nodes.at[i];
        if (!tape.depends[i] || !tape.gradient[i])
            continue;
        graph_at(g, n->src);
        name_gradient(&tape, n);
        send_back(&tape, n);
        if (n->op->table == TABLE_WEIGHT)
            gradients[n->attr.index] = tape.gradient[i];
    }
    graph_at(g, before);
}
