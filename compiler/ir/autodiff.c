#include "ir/autodiff.h"

#include "ir/op.h"

typedef struct Tape {
    Graph *g;
    int count;         /* nodes that existed before: the forward ones */
    const Node *of;    /* with respect to this node; NULL: to trained weights */
    Node **gradient;   /* of the loss, with respect to node i; NULL: zero */
    bool *depends;     /* node i depends on that through differentiable operators */
    const char **user; /* name of the value that node i, itself unnamed, goes into; or NULL */
} Tape;

static void find_dependents(Tape *tape) {
    const Weight *weights = tape->g->module->weights.at;
    for (int i = 0; i < tape->count; i++) {
        const Node *n = tape->g->nodes.at[i];
        bool trained = n->op->table == TABLE_WEIGHT && weights[n->attr.index].kind == WEIGHT_TRAINED;
        tape->depends[i] = tape->of ? n == tape->of : trained;
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

/* What a kernel of its own computes for a gradient: the text has taken a gradient of it by `grad`. */
static void report_no_gradient(const Tape *tape, const Node *n) {
    diag_error(tape->g->module->diag, n->src,
               "this has a first derivative, which a kernel of its own computes (%s), and no second one, as a loss of "
               "grad(...) needs it",
               n->op->name);
}

static void send_back(Tape *tape, Node *n) {
    Node *din[MAX_INPUTS] = {0};
    if (!n->inputs)
        return;
    if (!n->op->grad) {
        report_no_gradient(tape, n);
        return;
    }
    n->op->grad(tape->g, n, tape->gradient[n->id], din);
    for (int k = 0; k < n->inputs; k++) {
        if (!tape->depends[n->in[k]->id])
            continue;
        accumulate(tape, n->in[k], din[k]);
        tape->user[n->in[k]->id] = n->name;
    }
}

static Tape new_tape(Graph *g, const Node *of) {
    Tape tape = {.g = g, .count = g->nodes.count, .of = of};
    tape.gradient = NEW_ARRAY(g->arena, Node *, tape.count);
    tape.depends = NEW_ARRAY(g->arena, bool, tape.count);
    tape.user = NEW_ARRAY(g->arena, const char *, tape.count);
    find_dependents(&tape);
    return tape;
}

/* Back from y, whose gradient is 1, to `first`. */
static void go_back(Tape *tape, Node *y, int first) {
    Graph *g = tape->g;
    Span before = graph_at(g, y->src);
    tape->gradient[y->id] = graph_expand(g, graph_constant(g, 1), &y->type);
    for (int i = y->id; i > first; i--) {
        Node *n = g->nodes.at[i];
        if (!tape->depends[i] || !tape->gradient[i])
            continue;
        graph_at(g, n->src);
        if (!tape->of)
            name_gradient(tape, n);
        send_back(tape, n);
    }
    graph_at(g, before);
}

void autodiff(Graph *g, Node *loss, Node **gradients) {
    Tape tape = new_tape(g, NULL);
    go_back(&tape, loss, -1);
    for (int i = 0; i <= loss->id; i++)
        if (g->nodes.at[i]->op->table == TABLE_WEIGHT && tape.depends[i] && tape.gradient[i])
            gradients[g->nodes.at[i]->attr.index] = tape.gradient[i];
}

/* ---- with respect to a value of each example ---- */

/* A value of the whole batch that y is made of, and that is made of x; NULL: there is none. */
static const Node *where_examples_mix(const Tape *tape, const Node *y) {
    bool *reaches = NEW_ARRAY(tape->g->arena, bool, tape->count);
    reaches[y->id] = true;
    for (int i = y->id; i > tape->of->id; i--) {
        const Node *n = tape->g->nodes.at[i];
        if (!reaches[i] || !tape->depends[i])
            continue;
        if (!n->type.batched)
            return n;
        for (int k = 0; k < n->inputs; k++)
            reaches[n->in[k]->id] = true;
    }
    return NULL;
}

Node *graph_gradient(Graph *g, Node *y, Node *x) {
    Diag *diag = g->module->diag;
    const int errors = diag_errors(diag);
    Tape tape = new_tape(g, x);
    if (!tape.depends[y->id]) {
        diag_error(diag, g->at, "what is differentiated does not depend on this value, or by comparisons alone");
        diag_note(diag, x->src, "the value is made here: one that is made once more is another");
        return NULL;
    }
    go_back(&tape, y, x->id);
    const Node *mixed = where_examples_mix(&tape, y);
    if (mixed) {
        diag_error(diag, g->at, "grad is of each example, and here each depends on the others of its batch");
        diag_note(diag, mixed->src, "this is of the whole batch (%s)", mixed->op->name);
    }
    return diag_errors(diag) == errors ? tape.gradient[x->id] : NULL;
}
