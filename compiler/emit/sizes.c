#include "emit/sizes.h"

const char *const index_symbols[MAX_RANK] = {"$0", "$1", "$2", "$3", "$4", "$5", "$6", "$7"};

/* One axis of one node; a forest of them says which are the same size. */
typedef struct Axis {
    int parent;
    int64_t extent;
    const char *wanted; /* of the root: the name to ask for */
    const char *symbol; /* of the root: the name it got, once somebody asked */
} Axis;

struct Sizes {
    Arena *arena;
    Names *names;
    const Module *module;
    Axis *axes; /* MAX_RANK for each node of the module's graphs, one after the other */
    int count;
};

static int axis_of(const Sizes *s, const Node *n, int axis) {
    Graph *graphs[MAX_GRAPHS];
    int first = 0;
    for (int i = 0, count = module_graphs(s->module, graphs); i < count; first += graphs[i++]->nodes.count)
        if (n->id < graphs[i]->nodes.count && graphs[i]->nodes.at[n->id] == n)
            return (first + n->id) * MAX_RANK + axis;
    ICE("node %%%d is of no graph", n->id);
}

static int root_of(const Sizes *s, int axis) {
    for (; s->axes[axis].parent != axis; axis = s->axes[axis].parent)
        s->axes[axis].parent = s->axes[s->axes[axis].parent].parent;
    return axis;
}

/* The earlier root stays, so that numbering follows the text. */
static void tie(Sizes *s, const Node *a, int a_axis, const Node *b, int b_axis) {
    int p = root_of(s, axis_of(s, a, a_axis)), q = root_of(s, axis_of(s, b, b_axis));
    if (s->axes[p].extent != s->axes[q].extent)
        return;
    if (p < q)
        s->axes[q].parent = p;
    else
        s->axes[p].parent = q;
}

static void tie_view(Sizes *s, const Node *n) {
    IndexMap map = {0};
    n->op->view(s->arena, n, index_symbols, &map);
    for (int axis = 0; axis < n->in[0]->type.rank; axis++)
        for (int from = 0; from < n->type.rank; from++)
            if (map.index[axis] && strcmp(map.index[axis], index_symbols[from]) == 0)
                tie(s, n, from, n->in[0], axis);
}

static void tie_reduce(Sizes *s, const Node *n) {
    for (int axis = 0, kept = 0; axis < n->in[0]->type.rank; axis++)
        if (!(n->attr.axes >> axis & 1))
            tie(s, n, kept++, n->in[0], axis);
}

static void tie_contract(Sizes *s, const Node *n) {
    const Node *a = n->in[0], *b = n->in[1];
    int rank = n->type.rank, ra = a->type.rank, rb = b->type.rank;
    for (int axis = 0; axis < rank - 2; axis++) {
        if (ra == rank)
            tie(s, n, axis, a, axis);
        if (rb == rank)
            tie(s, n, axis, b, axis);
    }
    tie(s, n, rank - 2, a, n->attr.ta ? ra - 1 : ra - 2);
    tie(s, n, rank - 1, b, n->attr.tb ? rb - 2 : rb - 1);
    tie(s, a, n->attr.ta ? ra - 2 : ra - 1, b, n->attr.tb ? rb - 1 : rb - 2);
}

static void tie_axes(Sizes *s, const Node *n, const Node *m) {
    for (int axis = 0; axis < n->type.rank && m->type.rank == n->type.rank; axis++)
        tie(s, n, axis, m, axis);
}

static void tie_map(Sizes *s, const Node *n) {
    for (int k = 0; k < n->inputs; k++)
        tie_axes(s, n, n->in[k]);
}

static void tie_node(Sizes *s, const Node *n) {
    switch (n->op->cls) {
    case OP_VIEW: tie_view(s, n); break;
    case OP_REDUCE: tie_reduce(s, n); break;
    case OP_CONTRACT: tie_contract(s, n); break;
    default: tie_map(s, n);
    }
}

/* The same in two graphs: a weight, a field, a value that the text names. */
static bool corresponds(const Node *n, const Node *m) {
    bool buffer = n->op->flags & OP_BUFFER && n->attr.index == m->attr.index;
    bool value = n->name && m->name && strcmp(n->name, m->name) == 0;
    return n->op == m->op && (buffer || value) && type_same_shape(&n->type, &m->type);
}

static void tie_graphs(Sizes *s, const Graph *a, const Graph *b) {
    for (int p = 0; p < a->nodes.count; p++)
        for (int q = 0; q < b->nodes.count; q++)
            if (corresponds(a->nodes.at[p], b->nodes.at[q]))
                tie_axes(s, a->nodes.at[p], b->nodes.at[q]);
}

static void want(Sizes *s, const Node *n, int axis, const char *name) {
    Axis *root = &s->axes[root_of(s, axis_of(s, n, axis))];
    if (!root->wanted)
        root->wanted = name;
}

static bool is_field(const Node *n) {
    return n->op->cls == OP_LEAF && (n->op->flags & OP_BUFFER) && n->type.batched;
}

static const char *axis_name(const Sizes *s, const char *name, int axis, int rank) {
    if (rank == 1)
        return name;
    if (rank == 2)
        return arena_printf(s->arena, "%s_%s", name, axis == 0 ? "rows" : "columns");
    return arena_printf(s->arena, "%s_%d", name, axis);
}

static void want_value(Sizes *s, const Node *n, const char *name) {
    int first = n->type.batched ? 1 : 0, rank = n->type.rank - first;
    for (int axis = 0; axis < rank; axis++)
        want(s, n, first + axis, axis_name(s, name, axis, rank));
}

/* The axis that a whole field is flattened into bears the field's name. */
static void want_flattened(Sizes *s, const Node *n) {
    const Node *from = n->in[0];
    while (from->op->cls == OP_MAP)
        from = from->in[0];
    if (is_field(from) && n->type.batched && n->type.rank == 2 && from->type.rank > 2)
        want(s, n, 1, s->module->fields.at[from->attr.index].name);
}

static const char *leaf_name(const Module *module, const Node *n) {
    if (is_field(n))
        return module->fields.at[n->attr.index].name;
    return n->name;
}

/* First comes who names an axis best: a field, a vector that the text names, any value that it names, a hint, a weight. */
static void want_all(Sizes *s, const Graph *g) {
    for (int k = 0; k < g->nodes.count; k++)
        if (g->nodes.at[k]->op->flags & OP_CONTIGUOUS)
            want_flattened(s, g->nodes.at[k]);
    for (int leaves = 0; leaves < 2; leaves++)
        for (int most = 1; most <= MAX_RANK; most += MAX_RANK - 1)
            for (int k = 0; k < g->nodes.count; k++) {
                const Node *n = g->nodes.at[k];
                int rank = n->type.rank - n->type.batched;
                int weight = n->op->cls == OP_LEAF && !is_field(n);
                const char *name = leaf_name(s->module, n);
                if (weight == leaves && rank <= most && name)
                    want_value(s, n, name);
            }
}

static void add_graph(Sizes *s, const Graph *g) {
    for (int k = 0; k < g->nodes.count; k++)
        for (int axis = 0; axis < MAX_RANK; axis++) {
            const Type *type = &g->nodes.at[k]->type;
            s->axes[s->count] = (Axis){.parent = s->count, .extent = axis < type->rank ? type->dim[axis] : 0};
            s->count++;
        }
}

/* There is one batch size. */
static void tie_batches(Sizes *s, const Graph *g, const Node **first) {
    for (int k = 0; k < g->nodes.count; k++) {
        const Node *n = g->nodes.at[k];
        if (!n->type.batched)
            continue;
        *first = *first ? *first : n;
        tie(s, *first, 0, n, 0);
    }
}

static void tie_graph(Sizes *s, const Graph *g) {
    for (int k = 0; k < g->nodes.count; k++)
        tie_node(s, g->nodes.at[k]);
}

Sizes *sizes_new(Names *names, const Module *module) {
    Graph *graphs[MAX_GRAPHS];
    int count = module_graphs(module, graphs), nodes = 0;
    Sizes *s = NEW(names->arena, Sizes);
    *s = (Sizes){.arena = names->arena, .names = names, .module = module};
    for (int i = 0; i < count; i++)
        nodes += graphs[i]->nodes.count;
    s->axes = NEW_ARRAY(s->arena, Axis, nodes * MAX_RANK);
    for (int i = 0; i < count; i++)
        add_graph(s, graphs[i]);
    const Node *batched = NULL;
    for (int i = 0; i < count; i++) {
        tie_graph(s, graphs[i]);
        tie_batches(s, graphs[i], &batched);
        for (int k = 0; k < i; k++)
            tie_graphs(s, graphs[k], graphs[i]);
    }
    if (batched)
        s->axes[root_of(s, axis_of(s, batched, 0))].symbol = "BATCH";
    for (int i = count - 1; i >= 0; i--)
        want_all(s, graphs[i]); /* training last: the names of its gradients would only echo those of values */
    return s;
}

static const char *symbol_of(Sizes *s, int axis) {
    Axis *root = &s->axes[root_of(s, axis)];
    if (root->extent == 1)
        return "1";
    if (!root->symbol) {
        const char *size = arena_printf(s->arena, "size_%lld", (long long)root->extent);
        root->symbol = names_claim_constant(s->names, root->wanted ? root->wanted : size);
    }
    return root->symbol;
}

Shape sizes_shape(Sizes *s, const Node *n) {
    Shape shape = {.type = n->type};
    for (int axis = 0; axis < n->type.rank; axis++)
        shape.symbol[axis] = symbol_of(s, axis_of(s, n, axis));
    return shape;
}

const char *shape_product(Arena *arena, const Shape *shape, int first, int count) {
    const char *product = NULL;
    for (int axis = first; axis < first + count; axis++) {
        if (shape->type.dim[axis] == 1)
            continue;
        product = product ? arena_printf(arena, "%s * %s", product, shape->symbol[axis]) : shape->symbol[axis];
    }
    return product ? product : "1";
}

const char *sizes_example(Sizes *s, const Node *field) {
    const char *name = s->module->fields.at[field->attr.index].name;
    int64_t elements = type_elements(&field->type) / field->type.dim[0];
    for (int axis = 0; axis < s->count; axis++)
        if (s->axes[axis].wanted == name && s->axes[axis].extent == elements)
            return symbol_of(s, axis);
    Shape shape = sizes_shape(s, field);
    return shape_product(s->arena, &shape, 1, shape.type.rank - 1);
}

void sizes_write(const Sizes *s, const char *code, Writer *w) {
    VEC(const char *) constants = {0};
    for (int axis = 0; axis < s->count; axis++) {
        const Axis *a = &s->axes[axis];
        if (a->symbol && (strcmp(a->symbol, "BATCH") == 0 || has_word(code, a->symbol)))
            VEC_PUSH(s->arena, &constants, arena_printf(s->arena, "%s = %lld", a->symbol, (long long)a->extent));
    }
    write_enumeration(w, constants.at, constants.count);
}
