/* Products of one value with several weights, whose results are put side by side, as queries, keys and values are for attention:
 *
 *      x --+--> matmul wq --.                       x --> matmul [wq wk wv] --+--> slice --.
 *          +--> matmul wk ---+--> concat    ==>                               +--> slice ---+--> concat
 *          `--> matmul wv --'                                                 `--> slice --'
 *
 * One product has more tiles and reads x once, and its gradients follow: that of x is one product over all columns, in place of several
 * that are added up in memory; that of the weights is one, whose slices are theirs. The results are rounded where they are made and
 * read from memory in any case, so that they are the numbers that they were. */
#include "pass/abreast.h"

#include "op/compose.h"
#include "pass/kernel.h"
#include "pass/precision.h"

typedef VEC(Node *) Nodes;

/* What becomes of a value. */
typedef enum Fate {
    FATE_OPEN,   /* nobody has asked */
    FATE_UNUSED, /* nothing that is needed */
    FATE_PLACED, /* maps and views of it are put beside other values, and that is all */
    FATE_OTHER
} Fate;

typedef struct Abreast {
    Nodes *readers;    /* by node id, as it was */
    Fate *fates;       /* likewise */
    VEC(Nodes) groups; /* of products that become one */
} Abreast;

/* ---- which ---- */

static Nodes *readers_of(const Graph *g) {
    Nodes *readers = NEW_ARRAY(g->arena, Nodes, g->nodes.count);
    for (int i = 0; i < g->nodes.count; i++)
        for (int k = 0; k < g->nodes.at[i]->inputs; k++)
            VEC_PUSH(g->arena, &readers[g->nodes.at[i]->in[k]->id], g->nodes.at[i]);
    return readers;
}

/* A view that puts the value among other elements. */
static bool places(const Node *n) {
    bool larger = n->inputs && type_elements(&n->type) > type_elements(&n->in[0]->type);
    return is_looked_through(n) && n->op->attrs & ATTR_OFFSET && larger;
}

static Fate fate_of(const Abreast *a, const Node *value) {
    Fate *fate = &a->fates[value->id];
    const Nodes *readers = &a->readers[value->id];
    if (*fate != FATE_OPEN)
        return *fate;
    *fate = FATE_UNUSED;
    for (int i = 0; i < readers->count && *fate != FATE_OTHER; i++) {
        const Node *reader = readers->at[i];
        bool passes = reader->op->cls == OP_MAP || is_looked_through(reader);
        Fate next = places(reader) ? FATE_PLACED : passes ? fate_of(a, reader) : FATE_OTHER;
        *fate = next > *fate ? next : *fate;
    }
    return *fate;
}

/* Nothing is computed of the product before it is rounded (precision.c): several read it, or one that moves its elements. */
static bool is_rounded_as_it_is(const Abreast *a, const Node *product) {
    const Nodes *readers = &a->readers[product->id];
    while (readers->count == 1 && is_looked_through(readers->at[0]) && readers->at[0]->op->flags & OP_CONTIGUOUS)
        readers = &a->readers[readers->at[0]->id];
    bool moves = readers->count == 1 && is_looked_through(readers->at[0]) && !(readers->at[0]->op->flags & OP_REPEATS);
    return readers->count > 1 || moves;
}

static bool may_be_joined(const Abreast *a, const Node *n) {
    bool product = product_is_rounded(n) && n->type.rank == 2 && n->type.batched && !n->attr.ta;
    return product && n->in[1]->op->table == TABLE_WEIGHT && is_rounded_as_it_is(a, n) && fate_of(a, n) == FATE_PLACED;
}

static bool go_together(const Node *a, const Node *b) {
    return a->in[0] == b->in[0] && a->attr.tb == b->attr.tb;
}

static void find_groups(Abreast *a, const Graph *g) {
    for (int i = 0; i < g->nodes.count; i++) {
        Node *n = g->nodes.at[i];
        int k = 0;
        if (!may_be_joined(a, n))
            continue;
        while (k < a->groups.count && !go_together(a->groups.at[k].at[0], n))
            k++;
        if (k == a->groups.count)
            VEC_PUSH(g->arena, &a->groups, (Nodes){0});
        VEC_PUSH(g->arena, &a->groups.at[k], n);
    }
}

/* ---- joining ---- */

/* The weight's axis along which the outputs lie. */
static int output_axis(const Node *product) {
    return product->attr.tb ? 0 : 1;
}

/* "attn.q_to_v.weight" of attn.q.weight, ... and attn.v.weight. */
static const char *name_of_all(Arena *arena, const char *first, const char *last) {
    const char *own = strrchr(first, '.'), *end = strrchr(last, '.');
    bool alike = own && end && strcmp(own, end) == 0;
    size_t same = 0, length = alike ? (size_t)(own - first) : strlen(first);
    for (size_t k = 0; first[k] && first[k] == last[k]; k++)
        same = first[k] == '.' ? k + 1 : same;
    return arena_printf(arena, "%.*s_to_%s", (int)length, first, last + same);
}

static Node *product_of_all(Graph *g, const Node *n, const Nodes *group) {
    Node **weights = NEW_ARRAY(g->arena, Node *, group->count);
    for (int i = 0; i < group->count; i++)
        weights[i] = graph_weight(g, group->at[i]->in[1]->attr.index);
    Node *abreast = build_stack(g, weights, group->count, output_axis(n));
    graph_name(abreast, name_of_all(g->arena, weights[0]->name, weights[group->count - 1]->name));
    return graph_matmul(g, n->in[0], abreast, false, n->attr.tb);
}

/* The columns of the product of all. */
static Node *columns_of(Graph *g, const Node *n, const Nodes *group) {
    int64_t offset[MAX_RANK] = {0};
    for (int i = 0; group->at[i] != n; i++)
        offset[1] += group->at[i]->type.dim[1];
    Node *all = product_of_all(g, n, group);
    return graph_node(g, "slice", attr_placed(&n->type, offset), 1, &all);
}

static Node *joined(Graph *g, Node *n, const void *context) {
    const Abreast *a = context;
    for (int k = 0; k < a->groups.count; k++)
        for (int i = 0; i < a->groups.at[k].count; i++)
            if (a->groups.at[k].at[i] == n && a->groups.at[k].count > 1)
                return columns_of(g, n, &a->groups.at[k]);
    return NULL;
}

void products_abreast(Graph *g) {
    if (!dtype_is_narrow(precision_dtype(g->module->precision)))
        return;
    Abreast a = {.readers = readers_of(g), .fates = NEW_ARRAY(g->arena, Fate, g->nodes.count)};
    find_groups(&a, g);
    if (a.groups.count)
        graph_rewrite(g, joined, &a);
}
