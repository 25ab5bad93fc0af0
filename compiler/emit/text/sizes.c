#include "emit/text/sizes.h"

/* What an axis of an image is. */
typedef enum Role { ROLE_NONE, ROLE_ROWS, ROLE_COLUMNS, ROLE_TAPS } Role;

/* An axis that a reshape makes of several, or takes apart: BATCH * ROWS * COLUMNS. */
typedef struct Composite {
    int axis, count, factor[MAX_RANK];
} Composite;

/* One axis of one node; a forest of them says which are the same size. The rest is said of the root. */
typedef struct Axis {
    int parent;
    int64_t extent;
    Role role;
    const Composite *composite; /* or NULL */
    const char *wanted;         /* the name to ask for */
    bool shared;                /* with other sizes that are equal and want the same name */
    const char *symbol;         /* the name it got, once somebody asked */
    bool *printed;              /* that name was */
    bool owner;                 /* it got it first */
} Axis;

/* "c_fc" of "h.0.mlp.c_fc": good for all layers if it means one extent in all of them. */
typedef struct ShortName {
    const char *name;
    int64_t extent;
    bool ambiguous;
} ShortName;

struct Sizes {
    Arena *arena;
    Names *names;
    const Module *module;
    Axis *axes; /* MAX_RANK for each node of the module's graphs, one after the other */
    int count;
    VEC(Composite *) composites;
    VEC(int) named;        /* axes that have symbols */
    VEC(ShortName) shorts; /* names without the path to their layer */
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

/* The earlier root stays, so that numbering follows the text. False: they were tied already, or are different sizes. */
static bool tie_axis(Sizes *s, int a, int b) {
    int p = root_of(s, a), q = root_of(s, b);
    if (p == q || s->axes[p].extent != s->axes[q].extent)
        return false;
    int root = p < q ? p : q, other = p < q ? q : p;
    s->axes[other].parent = root;
    if (!s->axes[root].role)
        s->axes[root].role = s->axes[other].role;
    return true;
}

static void tie(Sizes *s, const Node *a, int a_axis, const Node *b, int b_axis) {
    tie_axis(s, axis_of(s, a, a_axis), axis_of(s, b, b_axis));
}

static void tie_view(Sizes *s, const Node *n) {
    IndexMap map = {0};
    n->op->view(s->arena, n, tree_operand, &map);
    for (int axis = 0; axis < n->in[0]->type.rank; axis++)
        for (int from = 0; from < n->type.rank; from++)
            if (map.index[axis] == tree_operand[from])
                tie(s, n, from, n->in[0], axis);
}

/* ---- axes of axes ---- */

/* The next axis of the node that has more than one element, from `axis` on. */
static int next_axis(const Node *n, int axis) {
    while (axis < n->type.rank && n->type.dim[axis] == 1)
        axis++;
    return axis;
}

/* Adds the axis to those of a segment. */
static void take_axis(Sizes *s, const Node *n, int *axis, int64_t *product, Composite *segment) {
    segment->factor[segment->count++] = axis_of(s, n, *axis);
    *product *= n->type.dim[*axis];
    *axis = next_axis(n, *axis + 1);
}

static void add_composite(Sizes *s, int axis, const Composite *of) {
    Composite *composite = NEW(s->arena, Composite);
    *composite = *of;
    composite->axis = axis;
    VEC_PUSH(s->arena, &s->composites, composite);
}

/* A reshape cuts both shapes into segments of as many elements; a segment that is one axis of one of them is the product
 * of the axes of the other. */
static void tie_reshape(Sizes *s, const Node *n) {
    const Node *from = n->in[0];
    for (int a = next_axis(from, 0), b = next_axis(n, 0); a < from->type.rank && b < n->type.rank;) {
        Composite left = {0}, right = {0};
        int64_t p = 1, q = 1;
        do {
            if (p <= q)
                take_axis(s, from, &a, &p, &left);
            else
                take_axis(s, n, &b, &q, &right);
        } while (p != q);
        if (left.count == 1 && right.count == 1)
            tie_axis(s, left.factor[0], right.factor[0]);
        else if (left.count == 1)
            add_composite(s, left.factor[0], &right);
        else if (right.count == 1)
            add_composite(s, right.factor[0], &left);
    }
}

static bool same_extents(const Sizes *s, const Composite *a, const Composite *b) {
    for (int k = 0; k < a->count && a->count == b->count; k++)
        if (s->axes[a->factor[k]].extent != s->axes[b->factor[k]].extent)
            return false;
    return a->count == b->count;
}

/* One size that is a product of sizes in two ways: the factors are the same sizes too. */
static bool tie_factors(Sizes *s) {
    bool tied = false;
    for (int k = 0; k < s->composites.count; k++) {
        const Composite *composite = s->composites.at[k];
        Axis *root = &s->axes[root_of(s, composite->axis)];
        if (!root->composite)
            root->composite = composite;
        if (same_extents(s, composite, root->composite))
            for (int f = 0; f < composite->count; f++)
                tied |= tie_axis(s, composite->factor[f], root->composite->factor[f]);
    }
    return tied;
}

/* ---- images ---- */

static void set_role(Sizes *s, const Node *n, int axis, Role role) {
    s->axes[root_of(s, axis_of(s, n, axis))].role = role;
}

/* Windows [N, OH, OW, KH, KW, ...] of images [N, H, W, ...]. With padding that keeps its size, an image has one. */
static void tie_windows(Sizes *s, const Node *n) {
    const Node *image = n->in[0];
    for (int axis = 1; axis <= 2; axis++) {
        Role role = axis == 1 ? ROLE_ROWS : ROLE_COLUMNS;
        tie(s, image, axis, n, axis);
        set_role(s, image, axis, role);
        set_role(s, n, axis, role);
        set_role(s, n, 2 + axis, ROLE_TAPS);
    }
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

/* Examples and positions, where operand and result have them. */
static void tie_call(Sizes *s, const Node *n) {
    for (int k = 0; k < n->inputs; k++)
        if (n->in[k]->type.batched == n->type.batched)
            tie_axes(s, n, n->in[k]);
}

/* The result has the axes of the index, then those of the table's rows. */
static void tie_lookup(Sizes *s, const Node *n) {
    for (int axis = 0; axis < n->in[1]->type.rank; axis++)
        tie(s, n, axis, n->in[1], axis);
}

static void tie_views(Sizes *s, const Node *n) {
    tie_view(s, n);
    if (n->op->flags & OP_LOOKUP)
        tie_lookup(s, n);
    if (n->op->attrs & ATTR_SWEEP)
        tie_windows(s, n);
    if (n->op->flags & OP_CONTIGUOUS)
        tie_reshape(s, n);
}

static void tie_node(Sizes *s, const Node *n) {
    switch (n->op->cls) {
    case OP_VIEW: tie_views(s, n); break;
    case OP_REDUCE: tie_reduce(s, n); break;
    case OP_CONTRACT: tie_contract(s, n); break;
    case OP_CALL: tie_call(s, n); break;
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

static void want(Sizes *s, const Node *n, int axis, const char *name, bool shared) {
    Axis *root = &s->axes[root_of(s, axis_of(s, n, axis))];
    if (root->wanted)
        return;
    root->wanted = name;
    root->shared = shared;
}

/* ---- params ---- */

static bool same_target(const NamedSize *a, const NamedSize *b) {
    return a->weight == b->weight && (!a->value || strcmp(a->value->name, b->value->name) == 0);
}

/* Another param has the same extent there. */
static bool is_ambiguous(const Module *module, const NamedSize *size) {
    for (int k = 0; k < module->sizes.count; k++) {
        const NamedSize *other = &module->sizes.at[k];
        bool named = !other->value || other->value->name;
        if (named && same_target(size, other) && size->extent == other->extent &&
            strcmp(size->param, other->param) != 0)
            return true;
    }
    return false;
}

/* The axis that has the extent, if there is one only; else below 0. */
static int only_axis(const Node *n, int64_t extent) {
    int found = -1;
    for (int axis = n->type.batched; axis < n->type.rank; axis++)
        if (n->type.dim[axis] == extent)
            found = found == -1 ? axis : -2;
    return found;
}

static bool is_target(const NamedSize *size, const Node *n) {
    if (size->weight >= 0)
        return n->op->table == TABLE_WEIGHT && n->attr.index == size->weight;
    return n->name && strcmp(n->name, size->value->name) == 0;
}

/* A size that the text gives by a param bears its name. */
static void want_param(Sizes *s, const NamedSize *size, const Graph *g) {
    for (int k = 0; k < g->nodes.count; k++) {
        const Node *n = g->nodes.at[k];
        int axis = is_target(size, n) ? only_axis(n, size->extent) : -1;
        if (axis >= 0)
            want(s, n, axis, size->param, true);
    }
}

static void want_params(Sizes *s, Graph *const *graphs, int count) {
    for (int k = 0; k < s->module->sizes.count; k++) {
        const NamedSize *size = &s->module->sizes.at[k];
        if ((size->value && !size->value->name) || is_ambiguous(s->module, size))
            continue;
        for (int i = 0; i < count; i++)
            want_param(s, size, graphs[i]);
    }
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

static bool is_side(Role role) {
    return role == ROLE_ROWS || role == ROLE_COLUMNS;
}

/* The axis of an image [N, H, W, C], or [N, C, H, W] at the ends of a network: "conv1_rows", or "conv1_side" where rows and
 * columns are one size; NULL: it is of no image. */
static const char *image_axis_name(const Sizes *s, const Node *n, const char *name, int axis) {
    static const char *const last[] = {"rows", "columns", "channels"}, *const first[] = {"channels", "rows", "columns"};
    if (!n->type.batched || n->type.rank != 4 || axis == 0)
        return NULL;
    int root[4];
    for (int k = 0; k < 4; k++)
        root[k] = root_of(s, axis_of(s, n, k));
    bool channels_last = is_side(s->axes[root[1]].role) && is_side(s->axes[root[2]].role);
    bool channels_first = is_side(s->axes[root[2]].role) && is_side(s->axes[root[3]].role);
    if (!channels_last && !channels_first)
        return NULL;
    int channels = channels_last ? 3 : 1;
    bool square = channels_last ? root[1] == root[2] : root[2] == root[3];
    const char *what = square && axis != channels ? "side" : channels_last ? last[axis - 1] : first[axis - 1];
    return arena_printf(s->arena, "%s_%s", name, what);
}

static bool is_weight(const Node *n) {
    return n->op->table == TABLE_WEIGHT;
}

static const char *wanted_name(const Sizes *s, const Node *n, const char *name, int axis) {
    int first = n->type.batched;
    if (is_weight(n) && n->type.rank == 4 && (axis == 0 || axis == 3)) /* [O, KH, KW, C] */
        return arena_printf(s->arena, "%s_%s", name, axis == 0 ? "filters" : "channels");
    const char *of_image = image_axis_name(s, n, name, axis);
    return of_image ? of_image : axis_name(s, name, axis - first, n->type.rank - first);
}

/* The axis that a whole field is flattened into bears the field's name. */
static void want_flattened(Sizes *s, const Node *n) {
    const Node *from = n->in[0];
    while (from->op->cls == OP_MAP)
        from = from->in[0];
    if (is_field(from) && n->type.batched && n->type.rank == 2 && from->type.rank > 2)
        want(s, n, 1, s->module->fields.at[from->attr.index].name, false);
}

static bool is_layer_vector(const Node *n, const char *name) {
    return is_weight(n) && n->type.rank <= 1 && strchr(name, '.');
}

/* A layer's vector is as long as the layer is wide: "h.0.ln_1" of "h.0.ln_1.bias". */
static const char *value_name(const Sizes *s, const Node *n) {
    const char *name = is_field(n) ? s->module->fields.at[n->attr.index].name : n->name;
    return name && is_layer_vector(n, name) ? arena_strndup(s->arena, name, (size_t)(strrchr(name, '.') - name)) : name;
}

/* ---- short names ---- */

static size_t last_part(const char *name, size_t length) {
    while (length > 0 && name[length - 1] != '.')
        length--;
    return length;
}

/* "c_fc" of "h.0.mlp.c_fc", "h" of "h.0", "c_fc.weight" of that weight; NULL: the name has no path, or is not of the text. */
static const char *short_name(const Sizes *s, const Node *n, const char *name) {
    size_t end = strlen(name), begin = last_part(name, end);
    while (begin > 0 && strspn(name + begin, "0123456789") >= end - begin) {
        end = begin - 1;
        begin = last_part(name, end);
    }
    if (is_weight(n) && n->type.rank > 1 && begin > 0)
        begin = last_part(name, begin - 1);
    bool whole = begin == 0 && end == strlen(name);
    return whole ? NULL : arena_strndup(s->arena, name + begin, end - begin);
}

static void add_short(Sizes *s, const char *name, int64_t extent) {
    for (int k = 0; k < s->shorts.count; k++)
        if (strcmp(s->shorts.at[k].name, name) == 0) {
            s->shorts.at[k].ambiguous |= s->shorts.at[k].extent != extent;
            return;
        }
    VEC_PUSH(s->arena, &s->shorts, ((ShortName){name, extent, false}));
}

static void gather_shorts(Sizes *s, const Graph *eval) {
    for (int k = 0; k < eval->nodes.count; k++) {
        const Node *n = eval->nodes.at[k];
        const char *name = value_name(s, n), *brief = name ? short_name(s, n, name) : NULL;
        for (int axis = n->type.batched; name && axis < n->type.rank; axis++)
            add_short(s, wanted_name(s, n, brief ? brief : name, axis), n->type.dim[axis]);
    }
}

static bool is_good_short(const Sizes *s, const char *name) {
    for (int k = 0; k < s->shorts.count; k++)
        if (strcmp(s->shorts.at[k].name, name) == 0)
            return !s->shorts.at[k].ambiguous;
    return false;
}

static void want_value(Sizes *s, const Node *n) {
    const char *name = value_name(s, n), *brief = short_name(s, n, name);
    for (int axis = n->type.batched; axis < n->type.rank; axis++) {
        const char *wanted = brief ? wanted_name(s, n, brief, axis) : NULL;
        bool good = wanted && is_good_short(s, wanted);
        want(s, n, axis, good ? wanted : wanted_name(s, n, name, axis), good);
    }
}

/* First comes who names an axis best: a field or a vector that the text names, any value that it names, a vector of a layer,
 * a value in it, a weight. */
enum { NONE = -1, PRIORITIES = 5 };

/* "h.weight.bf16", "h.weight.scale" */
static bool is_of_weight(const Node *n) {
    while (n->op->cls == OP_MAP || n->op->cls == OP_VIEW || n->op->cls == OP_REDUCE)
        n = n->in[0];
    return is_weight(n);
}

static int priority(const Node *n, const char *name) {
    bool of_weight = n->op->cls == OP_MAP && is_of_weight(n);
    bool vector = n->type.rank - n->type.batched <= 1, leaf = n->op->cls == OP_LEAF && !is_field(n);
    if (!leaf && !strchr(name, '.'))
        return vector ? 0 : 1;
    return of_weight ? NONE : vector ? 2 : leaf ? 4 : 3;
}

static void want_all(Sizes *s, const Graph *g) {
    for (int k = 0; k < g->nodes.count; k++)
        if (g->nodes.at[k]->op->flags & OP_CONTIGUOUS)
            want_flattened(s, g->nodes.at[k]);
    for (int turn = 0; turn < PRIORITIES; turn++)
        for (int k = 0; k < g->nodes.count; k++) {
            const char *name = value_name(s, g->nodes.at[k]);
            if (name && priority(g->nodes.at[k], name) == turn)
                want_value(s, g->nodes.at[k]);
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
    if (graph_examples(g) != g->module->batch)
        return;
    for (int k = 0; k < g->nodes.count; k++) {
        const Node *n = g->nodes.at[k];
        if (!n->type.batched || n->type.dim[0] != g->module->batch)
            continue;
        *first = *first ? *first : n;
        tie(s, *first, 0, n, 0);
    }
}

static void tie_graph(Sizes *s, const Graph *g) {
    for (int k = 0; k < g->nodes.count; k++)
        tie_node(s, g->nodes.at[k]);
}

static void name_axis(Sizes *s, int root, const char *symbol) {
    s->axes[root].symbol = symbol;
    s->axes[root].printed = NEW(s->arena, bool);
    s->axes[root].owner = true;
    VEC_PUSH(s->arena, &s->named, root);
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
    while (tie_factors(s))
        ;
    if (batched)
        name_axis(s, root_of(s, axis_of(s, batched, 0)), "BATCH");
    want_params(s, graphs, count);
    gather_shorts(s, module->eval);
    want_all(s, module->eval); /* the names of other graphs would only echo those of its values */
    return s;
}

static const Tree *size_of(Sizes *s, int axis);

/* "BATCH * CONV1_ROWS * CONV1_COLUMNS" */
static const Tree *product_of(Sizes *s, const Composite *composite) {
    const Tree *product = size_of(s, composite->factor[0]);
    for (int k = 1; k < composite->count; k++)
        product = tree_times(s->arena, product, size_of(s, composite->factor[k]));
    return product;
}

/* An equal size that wants the same name, and has it; NULL: there is none. */
static const Axis *namesake(const Sizes *s, const Axis *axis) {
    for (int k = 0; k < s->named.count; k++) {
        const Axis *other = &s->axes[s->named.at[k]];
        if (other->shared && other->extent == axis->extent && strcmp(other->wanted, axis->wanted) == 0)
            return other;
    }
    return NULL;
}

static const Tree *size_of(Sizes *s, int axis) {
    int root = root_of(s, axis);
    Axis *size = &s->axes[root];
    bool numbered = size->extent == 1 || size->role == ROLE_TAPS;
    if (!size->symbol && (numbered || !size->wanted))
        return !numbered && size->composite ? product_of(s, size->composite) : tree_number(s->arena, size->extent);
    const Axis *other = !size->symbol && size->shared ? namesake(s, size) : NULL;
    if (other) {
        size->symbol = other->symbol;
        size->printed = other->printed;
    }
    if (!size->symbol)
        name_axis(s, root, names_claim_constant(s->names, size->wanted));
    return tree_constant(s->arena, size->symbol, size->extent, size->printed);
}

int64_t sizes_value(const Sizes *s, const char *symbol, size_t length) {
    for (int k = 0; k < s->named.count; k++) {
        const Axis *axis = &s->axes[s->named.at[k]];
        if (strncmp(axis->symbol, symbol, length) == 0 && axis->symbol[length] == '\0')
            return axis->extent;
    }
    return 0;
}

Shape sizes_shape(Sizes *s, const Node *n) {
    Shape shape = {.type = n->type};
    for (int axis = 0; axis < n->type.rank; axis++)
        shape.size[axis] = size_of(s, axis_of(s, n, axis));
    return shape;
}

const Tree *sizes_example(Sizes *s, const Node *field) {
    const char *name = s->module->fields.at[field->attr.index].name;
    int64_t elements = type_elements(&field->type) / field->type.dim[0];
    for (int axis = 0; axis < s->count; axis++)
        if (s->axes[axis].wanted == name && s->axes[axis].extent == elements)
            return size_of(s, axis);
    Shape shape = sizes_shape(s, field);
    return shape_extent(s->arena, &shape, 1, shape.type.rank - 1);
}

void sizes_write(const Sizes *s, Writer *w) {
    VEC(const char *) constants = {0};
    for (int axis = 0; axis < s->count; axis++) {
        const Axis *a = &s->axes[axis];
        if (a->owner && (strcmp(a->symbol, "BATCH") == 0 || *a->printed))
            VEC_PUSH(s->arena, &constants, arena_printf(s->arena, "%s = %lld", a->symbol, (long long)a->extent));
    }
    write_enumeration(w, constants.at, constants.count);
}
