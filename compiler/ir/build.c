/* Constructors that fit shapes together: broadcasting, reductions, products, leaves, roots. */
#include "ir/op.h"

#include <stdlib.h>

/* ---- element types ---- */

/* The one rule for the types of arithmetic, as docs/language.md has it. Whole numbers are bytes, integers, classes, indices
 * and conditions, and beside them, numbers known when compiling that are whole. Where an operator can compute with whole
 * numbers (no OP_REAL) and its result always fits 32 bits, by the ranges of its operands, they are i32. Anything else is f32:
 * nothing wraps. */

static bool is_whole(const Node *n) {
    double value;
    return dtype_is_whole(n->type.dtype) ||
           (graph_constant_value(n, &value) && range_within(range_of_number(value), range_of_dtype(DT_I32)));
}

/* The type that the operands from `first` on are computed in. */
static DType common_dtype(const Graph *g, const OpDef *op, int inputs, Node *const *in, int first) {
    Node draft = {.op = op, .inputs = inputs};
    bool counted = false, fits = !(op->flags & OP_REAL);
    for (int k = 0; k < inputs; k++) {
        draft.in[k] = in[k];
        counted = counted || (k >= first && dtype_is_whole(in[k]->type.dtype));
        fits = fits && (k < first || is_whole(in[k]));
    }
    if (fits && counted && op->range)
        fits = range_within(op->range(g, &draft), range_of_dtype(DT_I32));
    return fits && counted ? DT_I32 : DT_F32;
}

static Node *as_dtype(Graph *g, Node *n, DType dtype) {
    double value;
    bool constant = dtype == DT_I32 && n->type.dtype == DT_F32 && graph_constant_value(n, &value);
    return constant ? graph_expand(g, graph_whole(g, (int32_t)value), &n->type) : graph_cast(g, n, dtype);
}

/* The operands as the operator wants them; the last two are those that must agree (`where` has a condition before). */
static void convert(Graph *g, const OpDef *op, int inputs, Node **in) {
    if (op->flags & OP_LOGIC)
        return;
    int first = inputs == 3 && !(op->flags & OP_REAL) ? 1 : 0;
    DType dtype = common_dtype(g, op, inputs, in, first);
    for (int k = first; k < inputs; k++)
        in[k] = as_dtype(g, in[k], dtype);
}

Node *graph_cast(Graph *g, Node *a, DType dtype) {
    if (!a || a->type.dtype == dtype)
        return a;
    return graph_node(g, "cast", (Attr){.dtype = dtype}, 1, &a);
}

/* ---- broadcasting ---- */

static int user_rank(const Type *type) {
    return type->rank - type->batched;
}

/* The size of user axis k counted from the last; 1 beyond the first. */
static int64_t size_from_last(const Type *type, int k) {
    return k < user_rank(type) ? type->dim[type->rank - 1 - k] : 1;
}

/* Aligned at the last axis, sizes equal or one of them 1. */
bool graph_common_shape(const Type *a, const Type *b, Type *common) {
    int rank = user_rank(a) > user_rank(b) ? user_rank(a) : user_rank(b);
    Type shape = {.batched = a->batched || b->batched};
    shape.rank = rank + shape.batched;
    if (shape.rank > MAX_RANK)
        return false;
    if (shape.batched)
        shape.dim[0] = a->batched ? a->dim[0] : b->dim[0];
    for (int k = 0; k < rank; k++) {
        int64_t size = size_from_last(a, k), other = size_from_last(b, k);
        if (size != other && size != 1 && other != 1)
            return false;
        shape.dim[shape.rank - 1 - k] = size == 1 ? other : size;
    }
    *common = shape;
    return true;
}

static bool broadcast(Graph *g, const OpDef *op, int inputs, Node **in) {
    Type shape = in[0]->type;
    for (int k = 1; k < inputs; k++) {
        if (graph_common_shape(&shape, &in[k]->type, &shape))
            continue;
        const char *call = op->signature ? arena_printf(g->arena, "%s: ", op->name) : "";
        diag_error(g->module->diag, g->at, "%s%s and %s do not fit together", call,
                   type_user_text(g->arena, &in[k - 1]->type), type_user_text(g->arena, &in[k]->type));
        diag_note(g->module->diag, in[k - 1]->src, "%s is made here", type_user_text(g->arena, &in[k - 1]->type));
        diag_note(g->module->diag, in[k]->src, "%s is made here", type_user_text(g->arena, &in[k]->type));
        return false;
    }
    for (int k = 0; k < inputs; k++)
        in[k] = graph_expand(g, in[k], &shape);
    return true;
}

/* `a` without the axes of size 1 that `shape` stretches. */
static Node *drop_stretched(Graph *g, Node *a, const Type *shape) {
    Type kept = {.dtype = a->type.dtype, .batched = a->type.batched};
    for (int k = 0; k < a->type.rank; k++) {
        bool batch_axis = a->type.batched && k == 0;
        if (batch_axis || a->type.dim[k] == shape->dim[k + shape->rank - a->type.rank])
            kept.dim[kept.rank++] = a->type.dim[k];
    }
    return graph_reshape(g, a, &kept);
}

Node *graph_expand(Graph *g, Node *a, const Type *shape) {
    if (!a || (type_same_shape(&a->type, shape) && a->type.batched == shape->batched))
        return a;
    Attr attr = attr_shape(shape);
    if (shape->batched && !a->type.batched)
        attr.axes = 1;
    for (int k = 0; k < user_rank(shape); k++)
        if (k >= user_rank(&a->type) || size_from_last(&a->type, k) != size_from_last(shape, k))
            attr.axes |= 1u << (shape->rank - 1 - k);
    Node *operand = drop_stretched(g, a, shape);
    return graph_node(g, "expand", attr, 1, &operand);
}

Node *graph_of_each_example(Graph *g, Node *a) {
    if (!a || a->type.batched)
        return a;
    Type type = {.dtype = a->type.dtype, .rank = a->type.rank + 1, .dim = {g->module->batch}, .batched = true};
    if (type.rank > MAX_RANK) {
        diag_error(g->module->diag, g->at, "%s for each example has more than %d axes",
                   type_user_text(g->arena, &a->type), MAX_RANK);
        return NULL;
    }
    memcpy(type.dim + 1, a->type.dim, (size_t)a->type.rank * sizeof *type.dim);
    return graph_expand(g, a, &type);
}

bool graph_share_batch(Graph *g, int count, Node **operands) {
    bool batched = false;
    for (int k = 0; k < count; k++)
        batched = batched || operands[k]->type.batched;
    for (int k = 0; k < count && batched; k++)
        if (!(operands[k] = graph_of_each_example(g, operands[k])))
            return false;
    return true;
}

Node *graph_repeated(Graph *g, const Node *expansion, unsigned axes) {
    const Type *type = &expansion->type;
    Type kept = {.dtype = type->dtype, .batched = type->batched && !(axes & 1)};
    unsigned repeated = 0;
    for (int k = 0; k < type->rank; k++)
        if (!(axes >> k & 1)) {
            repeated |= (expansion->attr.axes >> k & 1) << kept.rank;
            kept.dim[kept.rank++] = type->dim[k];
        }
    Attr attr = attr_shape(&kept);
    attr.axes = repeated;
    Node *operand = expansion->in[0];
    return repeated ? graph_node(g, expansion->op->name, attr, 1, &operand) : operand;
}

static Node *make(Graph *g, const char *name, int inputs, Node **in) {
    const OpDef *op = operators_find(g->module->operators, name);
    for (int k = 0; k < inputs; k++)
        if (!in[k])
            return NULL;
    if (op && op->cls == OP_MAP) {
        convert(g, op, inputs, in);
        if (!broadcast(g, op, inputs, in))
            return NULL;
    }
    return graph_node(g, name, (Attr){0}, inputs, in);
}

Node *op0(Graph *g, const char *op, Attr attr) {
    return graph_node(g, op, attr, 0, NULL);
}

Node *op1(Graph *g, const char *op, Node *a) {
    return make(g, op, 1, (Node *[]){a});
}

Node *op2(Graph *g, const char *op, Node *a, Node *b) {
    return make(g, op, 2, (Node *[]){a, b});
}

Node *op3(Graph *g, const char *op, Node *a, Node *b, Node *c) {
    return make(g, op, 3, (Node *[]){a, b, c});
}

/* ---- views ---- */

Attr attr_shape(const Type *shape) {
    Attr attr = {.rank = shape->rank, .batched = shape->batched};
    for (int k = 0; k < shape->rank; k++)
        attr.dims[k] = shape->dim[k];
    return attr;
}

Node *graph_reshape(Graph *g, Node *a, const Type *shape) {
    if (!a || (type_same_shape(&a->type, shape) && a->type.batched == shape->batched))
        return a;
    return graph_node(g, "reshape", attr_shape(shape), 1, &a);
}

Node *graph_transpose(Graph *g, Node *a, const int *permutation) {
    if (!a)
        return NULL;
    Attr attr = {.rank = a->type.rank};
    bool identity = true;
    for (int k = 0; k < a->type.rank; k++) {
        attr.dims[k] = permutation[k];
        identity = identity && permutation[k] == k;
    }
    return identity ? a : graph_node(g, "transpose", attr, 1, &a);
}

Node *graph_iota(Graph *g, const Type *shape, int axis) {
    Node *line = op0(g, "iota", (Attr){.rank = 1, .dims = {shape->dim[axis]}});
    Attr attr = attr_shape(shape);
    attr.axes = ((1u << shape->rank) - 1) & ~(1u << axis);
    return attr.axes ? graph_node(g, "expand", attr, 1, &line) : line;
}

/* ---- reductions ---- */

Node *graph_reduce(Graph *g, const char *op, Node *a, unsigned axes) {
    if (!a || !axes)
        return a;
    const OpDef *def = operators_find(g->module->operators, op);
    Node *operand = def->flags & OP_REAL ? graph_cast(g, a, DT_F32) : a;
    if (g->written)
        operand = graph_without_filler(g, operand, axes, strtod(def->identity, NULL));
    return graph_node(g, op, (Attr){.axes = axes}, 1, &operand);
}

Node *graph_reduce_keep(Graph *g, const char *op, Node *a, unsigned axes) {
    if (!a || !axes)
        return a;
    Node *reduced = graph_reduce(g, op, a, axes);
    Attr attr = attr_shape(&a->type);
    attr.axes = axes;
    return graph_node(g, "expand", attr, 1, &reduced);
}

/* One by how many there are; of the examples of a batch, as the program counts them. */
static Node *part_of_mean(Graph *g, const Node *a, unsigned axes) {
    double count = 1;
    Node *examples = NULL;
    for (int k = 0; k < a->type.rank; k++)
        if (axes & a->examples & 1u << k)
            examples = op2(g, "mul", examples ? examples : graph_constant(g, 1), op0(g, "examples", (Attr){0}));
        else
            count *= axes >> k & 1 ? (double)a->type.dim[k] : 1;
    if (examples)
        return op2(g, "div", graph_constant(g, 1 / count), examples);
    return count == 1 ? NULL : graph_mean_factor(g, count);
}

Node *graph_mean(Graph *g, Node *a, unsigned axes) {
    if (!a || !axes)
        return a;
    Node *total = graph_reduce(g, "sum", a, axes), *part = part_of_mean(g, a, axes);
    return part ? op2(g, "mul", total, part) : total;
}

Node *graph_batch_mean(Graph *g, Node *per_example) {
    if (per_example && !per_example->type.batched && g->training && g->module->shards)
        per_example = graph_of_each_example(g, per_example); /* each shard has its share */
    if (!per_example || !per_example->type.batched)
        return per_example;
    Node *share = op0(g, "share", (Attr){.rank = 1, .batched = true, .dims = {per_example->type.dim[0]}});
    return graph_reduce(g, "sum", op2(g, "mul", per_example, share), 1);
}

/* ---- products ---- */

/* [B, M, K] times one [K, N] is one product of [B M, K]. */
static Node *flattened_product(Graph *g, Node *a, Node *b, bool tb) {
    int last = a->type.rank - 1;
    Type flat = type_make(DT_F32, a->type.batched, 2,
                          (int64_t[]){type_elements(&a->type) / a->type.dim[last], a->type.dim[last]});
    Node *product = graph_matmul(g, graph_reshape(g, a, &flat), b, false, tb);
    if (!product)
        return NULL;
    Type shape = a->type;
    shape.dim[last] = product->type.dim[1];
    return graph_reshape(g, product, &shape);
}

/* Its axes are a's but for the last, whatever they are folded to on the way. */
static Node *flat_product(Graph *g, Node *a, Node *b, bool tb) {
    const bool written = g->written;
    const int last = a->type.rank - 1;
    g->written = false;
    Node *product = flattened_product(g, a, b, tb);
    g->written = written;
    if (product && written)
        product->examples = (a->examples & ~(1u << last)) | (b->examples >> !tb & 1) << last;
    return product;
}

/* a and b without the filler in what is summed. */
static void fold_real_examples(Graph *g, Node **a, Node **b, bool ta, bool tb) {
    if ((*a)->type.rank < 2 || (*b)->type.rank < 2)
        return;
    *a = graph_without_filler(g, *a, 1u << ((*a)->type.rank - (ta ? 2 : 1)), 0);
    *b = graph_without_filler(g, *b, 1u << ((*b)->type.rank - (tb ? 1 : 2)), 0);
}

Node *graph_matmul(Graph *g, Node *a, Node *b, bool ta, bool tb) {
    if (!a || !b)
        return NULL;
    a = graph_cast(g, a, DT_F32);
    b = graph_cast(g, b, DT_F32);
    if (g->written)
        fold_real_examples(g, &a, &b, ta, tb);
    if (a->type.rank > 2 && b->type.rank == 2 && !ta)
        return flat_product(g, a, b, tb);
    return graph_node(g, "matmul", (Attr){.ta = ta, .tb = tb}, 2, (Node *[]){a, b});
}

/* ---- leaves and roots ---- */

/* The node may be there already, as a factor of a mean: it is both now. */
Node *graph_constant(Graph *g, double value) {
    Node *n = op0(g, "const", (Attr){.value = value});
    n->of_mean = false;
    return n;
}

Node *graph_mean_factor(Graph *g, double count) {
    int before = g->nodes.count;
    Node *n = op0(g, "const", (Attr){.value = 1 / count});
    n->of_mean |= n->id >= before;
    return n;
}

Node *graph_whole(Graph *g, int32_t value) {
    return op0(g, "const", (Attr){.value = value, .dtype = DT_I32});
}

bool graph_constant_value(const Node *n, double *value) {
    while (n->op->flags & (OP_REPEATS | OP_CONTIGUOUS))
        n = n->in[0];
    *value = n->attr.value;
    return n->op->cls == OP_LEAF && n->op->attrs & ATTR_VALUE;
}

/* A leaf comes from where its row of the table was declared. */
static Node *table_leaf(Graph *g, const char *op, int index, const char *name, Span src) {
    Span before = graph_at(g, src);
    Node *leaf = graph_name(op0(g, op, (Attr){.index = index}), name);
    graph_at(g, before);
    return leaf;
}

Node *graph_weight(Graph *g, int index) {
    const Weight *weight = &g->module->weights.at[index];
    return table_leaf(g, "weight", index, weight->name, weight->src);
}

Node *graph_state(Graph *g, int index) {
    const Weight *state = &g->module->states.at[index];
    return table_leaf(g, "state", index, state->name, state->src);
}

Node *graph_field(Graph *g, int index) {
    const Field *field = &g->module->fields.at[index];
    return table_leaf(g, "field", index, field->name, field->src);
}

Node *graph_knob(Graph *g, int index) {
    const Knob *knob = &g->module->knobs.at[index];
    return table_leaf(g, "knob", index, knob->name, knob->src);
}

/* The place among the roots of what the leaf was assigned; -1: nothing. */
static int find_assign(const Graph *g, const Node *leaf) {
    for (int i = 0; i < g->roots.count; i++) {
        const Node *root = g->roots.at[i];
        if (root->inputs == 2 && root->in[0] == leaf)
            return i;
    }
    return -1;
}

Node *graph_latest(const Graph *g, Node *leaf) {
    int at = find_assign(g, leaf);
    return at < 0 ? leaf : g->roots.at[at]->in[1];
}

Node *graph_assign(Graph *g, Node *leaf, Node *value) {
    int before = find_assign(g, leaf);
    if (before >= 0)
        g->roots.at[before] = g->roots.at[--g->roots.count];
    return graph_node(g, "assign", (Attr){0}, 2, (Node *[]){leaf, value});
}

Node *graph_report(Graph *g, int index, Node *scalar) {
    const Report *report = module_report(g->module, index);
    Span before = graph_at(g, report->src);
    Node *root = graph_name(graph_node(g, "report", (Attr){.index = index}, 1, &scalar), report->name);
    if (scalar && scalar->inputs)
        graph_name(scalar->in[0], arena_printf(g->arena, "%s_part", report->name)); /* what each example adds to it */
    graph_at(g, before);
    return root;
}

Node *graph_output(Graph *g, Node *value) {
    return graph_node(g, "output", (Attr){0}, 1, &value);
}

int graph_keep(Graph *g, Node *value) {
    for (int i = 0; i < g->roots.count; i++)
        if (g->roots.at[i]->op->table == TABLE_KEPT && g->roots.at[i]->in[0] == value)
            return g->roots.at[i]->attr.index;
    Module *module = g->module;
    VEC_PUSH(g->arena, &module->kept, (Kept){type_extent(&value->type, 1, value->type.rank)});
    graph_node(g, "keep", (Attr){.index = module->kept.count - 1}, 1, &value);
    return module->kept.count - 1;
}
