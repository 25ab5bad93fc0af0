/* Making, sharing, rewriting and dropping nodes. The constructors that need shapes are in build.c. */
#include "ir/op.h"

enum { FIRST_CHAINS = 256 };

static void set_chains(Graph *g, int chains);

Graph *graph_new(Module *module, bool training) {
    Graph *g = NEW(module->arena, Graph);
    g->module = module;
    g->arena = module->arena;
    g->training = training;
    set_chains(g, FIRST_CHAINS);
    return g;
}

int64_t graph_examples(const Graph *g) {
    return g->examples ? g->examples : g->module->batch;
}

Span graph_at(Graph *g, Span src) {
    Span previous = g->at;
    g->at = src;
    return previous;
}

Node *graph_name(Node *n, const char *name) {
    if (n && !n->name)
        n->name = name;
    return n;
}

/* ---- value numbering ---- */

/* Symmetric in the inputs, so that a + b and b + a meet in one chain. */
static unsigned hash(const Node *n) {
    uint64_t h = (uint64_t)n->attr.index * 31 + n->attr.axes;
    for (const char *c = n->op->name; *c; c++)
        h = h * 31 + (unsigned char)*c;
    for (int k = 0; k < n->inputs; k++)
        h += (uint64_t)n->in[k]->id * 0x9E3779B97F4A7C15u;
    return (unsigned)(h >> 7 ^ h >> 33 ^ h);
}

static bool same_sweep(const Sweep *a, const Sweep *b) {
    return a->out == b->out && a->kernel == b->kernel && a->stride == b->stride && a->dilation == b->dilation &&
           a->pad == b->pad && a->spread == b->spread;
}

static bool same_heads(const Heads *a, const Heads *b) {
    return a->queries == b->queries && a->keys == b->keys && a->size == b->size && a->causal == b->causal &&
           a->window == b->window;
}

static bool same_attr(const Attr *a, const Attr *b) {
    if (memcmp(&a->value, &b->value, sizeof a->value) != 0) /* by bits: 0 is not -0 */
        return false;
    for (int k = 0; k < MAX_RANK; k++)
        if (a->dims[k] != b->dims[k] || a->offset[k] != b->offset[k])
            return false;
    return a->index == b->index && a->axes == b->axes && a->rank == b->rank && a->batched == b->batched &&
           a->ta == b->ta && a->tb == b->tb && a->dtype == b->dtype && same_sweep(&a->sweep[0], &b->sweep[0]) &&
           same_sweep(&a->sweep[1], &b->sweep[1]) && same_heads(&a->heads, &b->heads);
}

static bool same_inputs(const Node *a, const Node *b) {
    if (a->after != b->after)
        return false;
    if (a->op->flags & OP_COMMUTES && a->in[0] == b->in[1] && a->in[1] == b->in[0])
        return true;
    for (int k = 0; k < a->inputs; k++)
        if (a->in[k] != b->in[k])
            return false;
    return true;
}

static bool shareable(const Node *n) {
    return n->op->cls != OP_ROOT;
}

static Node **chain_of(const Graph *g, const Node *n) {
    return &g->shared[hash(n) % (unsigned)g->chains];
}

static Node *find_shared(const Graph *g, const Node *like) {
    if (!shareable(like))
        return NULL;
    for (Node *n = *chain_of(g, like); n; n = n->same_hash)
        if (n->op == like->op && same_inputs(n, like) && same_attr(&n->attr, &like->attr))
            return n;
    return NULL;
}

static void share(Graph *g, Node *n) {
    if (!shareable(n))
        return;
    Node **chain = chain_of(g, n);
    n->same_hash = *chain;
    *chain = n;
}

/* Passes clear the chains: there are no more of them than the graph asks for. */
static void set_chains(Graph *g, int chains) {
    g->chains = chains;
    g->shared = NEW_ARRAY(g->arena, Node *, chains);
    for (int i = 0; i < g->nodes.count; i++)
        share(g, g->nodes.at[i]);
}

static void append(Graph *g, Node *n) {
    n->id = g->nodes.count;
    n->replaced = NULL;
    if (g->nodes.count == g->chains)
        set_chains(g, 2 * g->chains);
    VEC_PUSH(g->arena, &g->nodes, n);
    share(g, n);
}

/* For a single example it would fit. */
static bool of_a_batch(const Graph *g, const Node *n) {
    int64_t rest = g->module->batch;
    Type one = n->type;
    for (int k = 0; k < one.rank; k++)
        if (rest > 1 && one.dim[k] % rest == 0) {
            one.dim[k] /= rest;
            rest = 1;
        }
    return rest == 1 && g->module->batch > 1 && type_fits(&one);
}

static bool check_size(Graph *g, const Node *n) {
    Module *module = g->module;
    if (type_fits(&n->type))
        return true;
    if (!of_a_batch(g, n))
        diag_error(module->diag, g->at, "%s: the result %s is too large", n->op->name,
                   type_user_text(g->arena, &n->type));
    else if (!module->batch_too_large)
        diag_error(module->diag, g->at, "in a batch of %lld, a value of this is too large: make the batch smaller",
                   (long long)module->batch);
    module->batch_too_large |= of_a_batch(g, n);
    return false;
}

/* Operands that do not fit are the user's fault, and reported, or ours. */
static bool infer(Graph *g, Node *n) {
    int errors = diag_errors(g->module->diag);
    bool fits = n->op->infer(g, n);
    if (!fits && diag_errors(g->module->diag) == errors)
        ICE("operands of '%s' do not fit", n->op->name);
    return fits;
}

/* Numbers of f32 are whole, and all there, up to 2^24. */
static Range range_in_type(const Node *n, Range range) {
    const Range exact = {-(1 << 24), 1 << 24};
    if (dtype_is_whole(n->type.dtype))
        return range_within(range, range_of_dtype(n->type.dtype)) ? range : range_of_dtype(n->type.dtype);
    return range_within(range, exact) ? range : range_unknown;
}

/* A view shows its operand's elements, or where it shows none, attr.value. */
static Range range_of_view(const Node *n) {
    return range_union(n->in[0]->range, range_of_number(n->attr.value));
}

static Range infer_range(const Graph *g, const Node *n) {
    if (n->op->range)
        return range_in_type(n, n->op->range(g, n));
    return range_in_type(n, n->op->cls == OP_VIEW ? range_of_view(n) : range_unknown);
}

Node *graph_node(Graph *g, const char *op, Attr attr, int inputs, Node *const *in) {
    const OpDef *def = operators_find(g->module->operators, op);
    if (!def || def->cls == OP_LIBRARY || def->arity != inputs)
        ICE("no graph operator '%s' of %d inputs", op, inputs);
    Node draft = {.op = def, .attr = attr, .inputs = inputs, .src = g->at};
    for (int k = 0; k < inputs; k++)
        if (!(draft.in[k] = in[k]))
            return NULL;
    Node *existing = find_shared(g, &draft);
    if (existing)
        return existing;
    if (!infer(g, &draft) || !check_size(g, &draft)) {
        if (g->module->given_up)
            longjmp(*g->module->given_up, 1);
        return NULL;
    }
    draft.range = infer_range(g, &draft);
    if (g->written && !graph_find_examples(g, &draft))
        return NULL;
    Node *n = NEW(g->arena, Node);
    *n = draft;
    append(g, n);
    if (def->cls == OP_ROOT)
        VEC_PUSH(g->arena, &g->roots, n);
    return n;
}

Node *graph_again(Graph *g, const Node *n, Node *const *in, Node *after) {
    Node draft = {.op = n->op, .type = n->type, .attr = n->attr, .inputs = n->inputs, .src = n->src, .after = after};
    draft.range = n->range;
    draft.of_mean = n->of_mean;
    for (int k = 0; k < n->inputs; k++)
        draft.in[k] = in[k];
    Node *existing = find_shared(g, &draft);
    if (existing) {
        existing->of_mean &= n->of_mean;
        return existing;
    }
    Node *again = NEW(g->arena, Node);
    *again = draft;
    append(g, again);
    return again;
}

static Node *import_into(Graph *g, Node *n, Node **made) {
    Node *in[MAX_INPUTS];
    if (made[n->id])
        return made[n->id];
    for (int k = 0; k < n->inputs; k++)
        in[k] = import_into(g, n->in[k], made);
    Node *copy = graph_again(g, n, in, NULL);
    copy->name = n->name;
    copy->hint = n->hint;
    copy->meaning = n->meaning;
    return made[n->id] = copy;
}

Node *graph_import(Graph *g, Node *n) {
    return import_into(g, n, NEW_ARRAY(g->arena, Node *, n->id + 1));
}

/* ---- rewriting ---- */

static void clear_nodes(Graph *g) {
    memset(&g->nodes, 0, sizeof g->nodes);
    memset(g->shared, 0, (size_t)g->chains * sizeof *g->shared);
}

static Node *resolve(Node *n) {
    while (n->replaced)
        n = n->replaced;
    return n;
}

/* n itself, now in the new list, or the equal node that is there already. */
static Node *readmit(Graph *g, Node *n) {
    for (int k = 0; k < n->inputs; k++)
        n->in[k] = resolve(n->in[k]);
    n->after = n->after ? resolve(n->after) : NULL;
    Node *existing = find_shared(g, n);
    if (!existing)
        append(g, n);
    return existing ? existing : n;
}

static int rewrite_node(Graph *g, Node *n, Rewriting *rule, const void *context) {
    int replacements = 0;
    Node *simple = readmit(g, n);
    g->at = n->src;
    for (Node *better; (better = rule(g, simple, context)); simple = better) {
        ENSURE(better->type.dtype == simple->type.dtype);
        replacements++;
    }
    if (simple != n) {
        graph_name(simple, n->name);
        simple->hint = simple->hint ? simple->hint : n->hint;
        simple->meaning = simple->meaning ? simple->meaning : n->meaning;
        simple->of_mean &= n->of_mean;
        n->replaced = simple;
    }
    return replacements;
}

int graph_rewrite(Graph *g, Rewriting *rule, const void *context) {
    int count = g->nodes.count, replacements = 0;
    Node **old = g->nodes.at;
    clear_nodes(g);
    for (int i = 0; i < count; i++)
        replacements += rewrite_node(g, old[i], rule, context);
    for (int i = 0; i < g->roots.count; i++)
        g->roots.at[i] = resolve(g->roots.at[i]);
    return replacements;
}

/* ---- dropping ---- */

enum { DEAD = -1, LIVE = -2 };

static void mark(Node *n) {
    if (n->id == LIVE)
        return;
    n->id = LIVE;
    for (int k = 0; k < n->inputs; k++)
        mark(n->in[k] = resolve(n->in[k]));
    if (n->after)
        mark(n->after = resolve(n->after));
}

static void place(Graph *g, Node *n) {
    if (n->id != LIVE)
        return;
    for (int k = 0; k < n->inputs; k++)
        place(g, n->in[k]);
    if (n->after)
        place(g, n->after);
    append(g, n);
}

/* Keeps the order of the nodes, except that a node moves in front of its first user. */
void graph_compact(Graph *g) {
    int count = g->nodes.count;
    Node **old = g->nodes.at;
    for (int i = 0; i < count; i++)
        old[i]->id = DEAD;
    for (int i = 0; i < g->roots.count; i++)
        mark(g->roots.at[i] = resolve(g->roots.at[i]));
    clear_nodes(g);
    for (int i = 0; i < count; i++)
        place(g, old[i]);
}
