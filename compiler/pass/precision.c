/* Products in bf16, or another type of 16 bits: the roundings are nodes of the graph, so that every target, dump and test sees the same numbers.
 *
 *      h ----> matmul          h -> to_bf16 ----> matmul        only the 16-bit value is stored, and whoever reads h
 *       \                                \                      reads what the product reads
 *        `---> relu's mask                `-> to_float -> ..
 *
 * Rounded are the operands of products and those that a call's kernel takes so (`CallDef.narrow`), whose result is then a 16-bit
 * value too; and the batched results of products where they first have several readers, or are part of another
 * tensor: such a value (a batch norm's input, a residual block's gradient, keys beside queries, the scores of a large
 * vocabulary) is stored between the passes over it. Evaluation rounds where training does. Weights stay f32: their 16-bit copies
 * are values of the step. Products add up in f32. What thin products read is left alone. Sums over what windows
 * see, of a filter for each channel or of a pool's gradient, are products too, in bf16; but they read weights as they are. In fp16 a
 * pool's gradient, which is scaled, would have no room. */
#include "pass/precision.h"

#include "pass/kernel.h"

typedef struct Rounding {
    Graph *g;
    DType dtype;   /* what is rounded to */
    int count;     /* of the nodes that there were before */
    int *readers;  /* by node id */
    Node **reader; /* the last of them */
    Node **narrow; /* the value as that type, or NULL */
    bool *rounded; /* all readers read the 16-bit value */
} Rounding;

bool product_is_rounded(const Node *n) {
    if (n->op->cls != OP_CONTRACT || n->type.dtype != DT_F32 || product_is_thin(n))
        return false;
    const Type *a = &n->in[0]->type, *out = &n->type;
    int64_t k = a->dim[a->rank - (n->attr.ta ? 2 : 1)];
    return k >= LEAST_TENSOR_EXTENT && out->dim[out->rank - 2] >= LEAST_TENSOR_EXTENT &&
           out->dim[out->rank - 1] >= LEAST_TENSOR_EXTENT;
}

static void count_readers(Rounding *r) {
    for (int i = 0; i < r->count; i++) {
        Node *n = r->g->nodes.at[i];
        for (int k = 0; k < n->inputs; k++) {
            r->readers[n->in[k]->id]++;
            r->reader[n->in[k]->id] = n;
        }
    }
}

static Node *narrowed(Rounding *r, Node *n) {
    Node **narrow = &r->narrow[n->id];
    if (n->op->flags & OP_WIDENS && n->in[0]->type.dtype == r->dtype)
        *narrow = n->in[0];
    if (!*narrow) {
        bool kept = n->op->cls == OP_LEAF && n->name;
        graph_at(r->g, n->src);
        const DTypeInfo *info = &dtype_info[r->dtype];
        const char *name = kept ? arena_printf(r->g->arena, "%s.%s", n->name, info->name) : n->name;
        *narrow = graph_name(op1(r->g, info->rounding, n), name);
    }
    return *narrow;
}

bool is_looked_through(const Node *n) {
    return n->op->cls == OP_VIEW && !(n->op->flags & OP_LOOKUP);
}

Node *same_view(Graph *g, const Node *view, Node *operand) {
    graph_at(g, view->src);
    return graph_node(g, view->op->name, view->attr, 1, &operand);
}

/* All readers of the value may read it rounded: it is computed from the batch. The gradient of a largest element goes to those that
 * equal it, so that what it was selected from is rounded too, and the largest of that needs no rounding: none would equal it else. */
static bool may_be_rounded(Rounding *r, Node *n) {
    if (n->op->cls == OP_LEAF || !n->type.batched || n->type.dtype != DT_F32)
        return false;
    if (!(n->op->flags & OP_SELECTS))
        return true;
    Node *from = n->in[0];
    while (is_looked_through(from))
        from = from->in[0];
    if (!may_be_rounded(r, from))
        return false;
    narrowed(r, from);
    return r->rounded[from->id] = true;
}

/* The same views of the 16-bit value. What is looked up is rounded, not the whole table. */
static Node *narrow_operand(Rounding *r, Node *operand) {
    if (!is_looked_through(operand)) {
        r->rounded[operand->id] |= may_be_rounded(r, operand);
        return narrowed(r, operand);
    }
    return same_view(r->g, operand, narrow_operand(r, operand->in[0]));
}

/* The elements are read in another order, from memory. */
static bool is_moved(const Node *view) {
    return view->op->cls == OP_VIEW && !(view->op->flags & (OP_CONTIGUOUS | OP_REPEATS | OP_LOOKUP));
}

/* From a product through its epilogue, to where there is more than one reader, or one that moves elements. */
static Node *branch_point(const Rounding *r, Node *product) {
    Node *n = product;
    while (r->readers[n->id] == 1) {
        Node *next = r->reader[n->id];
        bool repeats = next->op->flags & (OP_REPEATS | OP_LOOKUP);
        bool sum = next->type.dtype == DT_F32 || next->type.dtype == product->type.dtype;
        if ((next->op->cls != OP_MAP && next->op->cls != OP_VIEW) || repeats || !sum)
            return NULL;
        if (is_moved(next))
            return n;
        n = next;
    }
    return n;
}

static void round_result(Rounding *r, Node *product) {
    Node *result = product->type.batched ? branch_point(r, product) : NULL;
    if (result && r->readers[result->id] && result->type.dtype == DT_F32)
        r->rounded[result->id] = narrowed(r, result);
}

static void round_product(Rounding *r, Node *product) {
    for (int k = 0; k < product->inputs; k++)
        product->in[k] = narrow_operand(r, product->in[k]);
    round_result(r, product);
}

/* n is made of what windows see. */
static bool is_swept(const Node *n, int depth) {
    bool swept = n->op->cls == OP_VIEW && n->op->attrs & ATTR_SWEEP;
    for (int k = 0; n->op->cls == OP_MAP && depth > 0 && k < n->inputs; k++)
        swept |= is_swept(n->in[k], depth - 1);
    return swept;
}

static bool sums_windows(const Node *n) {
    enum { DEEPEST = 4 }; /* a pool's gradient: where(first == tap, dy, 0) */
    return n->op->cls == OP_REDUCE && op_adds(n->op) && is_swept(n->in[0], DEEPEST);
}

static void round_swept(Rounding *r, Node *sum) {
    const Node *product = sum->in[0], *other;
    for (int k = 0; window_factor(product, &other) && k < 2; k++) {
        Node *factor = product->in[k];
        while (is_looked_through(factor))
            factor = factor->in[0];
        if (may_be_rounded(r, factor))
            r->rounded[factor->id] = narrowed(r, factor);
    }
    round_result(r, sum);
}

/* What a reader takes of the rounded value `n`. A further result of a call belongs to the call, which may be another now. */
static Node *read_instead(const Rounding *r, const Node *reader, Node *n, Node *const *wide) {
    if (n->id >= r->count || !wide[n->id])
        return n;
    if (!(reader->op->flags & OP_PART))
        return wide[n->id];
    return r->narrow[n->id]->op->cls == OP_CALL ? r->narrow[n->id] : n;
}

/* Each reader of a rounded value that was there before reads what is stored of it. */
static void round_readers(Rounding *r) {
    Node **wide = NEW_ARRAY(r->g->arena, Node *, r->count);
    for (int i = 0; i < r->count; i++)
        if (r->rounded[i])
            wide[i] = op1(r->g, "to_float", r->narrow[i]);
    for (int i = 0; i < r->count; i++) {
        Node *n = r->g->nodes.at[i];
        for (int k = 0; k < n->inputs; k++)
            n->in[k] = read_instead(r, n, n->in[k], wide);
    }
    for (int i = 0; i < r->count; i++)
        if (wide[i])
            r->g->nodes.at[i]->name = NULL; /* it is the stored value's now */
}

/* The call with the operands that its kernel takes so, and the result that it makes of them. */
static void round_call(Rounding *r, Node *call) {
    Node *in[MAX_INPUTS];
    for (int k = 0; k < call->inputs; k++)
        in[k] = call->op->call->narrow >> k & 1 ? narrow_operand(r, call->in[k]) : call->in[k];
    graph_at(r->g, call->src);
    Node *narrow = graph_name(graph_node(r->g, call->op->name, call->attr, call->inputs, in), call->name);
    narrow->hint = call->hint;
    if (narrow == call) /* of operands that were narrow before */
        return;
    r->rounded[call->id] = dtype_is_narrow(narrow->type.dtype);
    if (r->rounded[call->id])
        r->narrow[call->id] = narrow;
    else
        call->replaced = narrow;
}

DType dtype_beside_integers(const Module *module, const Machine *machine) {
    return module->precision == PRECISION_INT8 && machine->tensor && !machine->halves_only ? DT_BF16 : DT_F32;
}

/* One of integers, whose operands are rounded already. */
static bool is_whole(const Node *n) {
    return n->op->cls == OP_CONTRACT && n->in[0]->type.dtype == DT_I8;
}

void round_operands(Graph *g, DType dtype) {
    int count = g->nodes.count;
    Rounding r = {.g = g,
                  .dtype = dtype,
                  .count = count,
                  .readers = NEW_ARRAY(g->arena, int, count),
                  .reader = NEW_ARRAY(g->arena, Node *, count),
                  .narrow = NEW_ARRAY(g->arena, Node *, count),
                  .rounded = NEW_ARRAY(g->arena, bool, count)};
    if (!dtype_is_narrow(dtype) || g == g->module->measure)
        return;
    count_readers(&r);
    for (int i = 0; i < count; i++)
        if (product_is_rounded(g->nodes.at[i]))
            round_product(&r, g->nodes.at[i]);
        else if (is_whole(g->nodes.at[i]))
            round_result(&r, g->nodes.at[i]);
        else if (dtype == DT_BF16 && sums_windows(g->nodes.at[i]))
            round_swept(&r, g->nodes.at[i]);
        else if (g->nodes.at[i]->op->cls == OP_CALL && !(g->nodes.at[i]->op->flags & OP_PART))
            round_call(&r, g->nodes.at[i]);
    round_readers(&r);
    graph_compact(g);
}

/* What shows the inputs of a weight stays exact. */
void round_beside_integers(const Module *module, const Machine *machine) {
    Graph *graphs[MAX_GRAPHS];
    const int count = module_graphs(module, graphs);
    for (int i = 0; i < count; i++)
        if (graphs[i] != module->watch)
            round_operands(graphs[i], dtype_beside_integers(module, machine));
}
