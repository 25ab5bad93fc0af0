/* Evaluation in int8: products of a weight become products of integers.
 *
 *     y[i, j] = sum over k of x[i, k] * w[j, k]
 *
 *     q[i, k] = to_i8(x[i, k] / input_scale)                     w[j, k] is about scale[j] * weight[j, k], an integer of 8 bits
 *     y[i, j] = (sum over k of q[i, k] * weight[j, k]) * (input_scale * scale[j])
 *
 * The roundings are nodes of the graph, as those of precision.c are: q is made where x is, by the epilogue of the product before,
 * and is all that is stored of x if nobody else reads it; the sum is exact, in i32; the scales are maps, and so a part of the
 * product's epilogue. Weights are integers in memory and in files, with their scales beside them; the runtime makes them of floats
 * once, before (session/scales.h).
 *
 * The input's scale is a number of the file too. It is found by looking at the values x of some training data: the graph `watch`
 * is the forward pass in f32, of the integers times their scales, and stores each x, as it does for print(x).
 *
 * Left as they are: weights that somebody else reads too (the table of an embedding, where it also makes the scores); products so
 * small that they belong to a row's kernel; sums of more than I8_DEEPEST terms, which 32 bits might not hold. */
#include "pass/quantize.h"

#include "ir/op.h"
#include "kernels_lib/shared.h"
#include "pass/kernel.h"

/* What becomes of the weights of floats, by their rows; `at` is NULL where a weight stays. */
typedef struct Quantization {
    Module *module;
    int weights; /* that there were before */
    Quantized **at;
} Quantization;

/* ---- which weights ---- */

/* A view that leaves the outputs along axis 0: of what else a filter has. */
static bool keeps_outputs(const Node *n) {
    bool places = n->op->flags & OP_CONTIGUOUS || (n->op->attrs & ATTR_OFFSET && !(n->op->flags & OP_DRAWS));
    return n->op->cls == OP_VIEW && places && n->type.rank && n->in[0]->type.rank &&
           n->type.dim[0] == n->in[0]->type.dim[0];
}

/* Row of the weight of floats that n is, or is such a view of; -1: of none. */
static int weight_row(const Node *n) {
    while (keeps_outputs(n))
        n = n->in[0];
    return n->op->table == TABLE_WEIGHT && n->type.dtype == DT_F32 ? n->attr.index : -1;
}

/* Operand 1 has a column for each output, as the text says matmul(x, w): it is stored with a row for each instead. */
static bool has_columns(const Node *product) {
    return product->op->attrs & ATTR_TRANSPOSED && !product->attr.tb;
}

static int64_t outputs_of(const Node *product) {
    const Type *w = &product->in[1]->type;
    return w->dim[has_columns(product) ? w->rank - 1 : 0];
}

/* The product can be one of integers. */
static bool is_quantizable(const Module *module, const Node *n) {
    if (!(n->op->flags & OP_WHOLE) || n->type.dtype != DT_F32 || !n->in[0]->type.batched || n->attr.ta)
        return false;
    const Node *w = n->in[1];
    const int row = weight_row(w);
    bool matrix = !(n->op->attrs & ATTR_TRANSPOSED) || (w->type.rank == 2 && w->op->table == TABLE_WEIGHT);
    return row >= 0 && matrix && module->weights.at[row].kind != WEIGHT_BUFFER && !product_is_thin(n) &&
           type_elements(&w->type) / outputs_of(n) <= I8_DEEPEST;
}

/* Marks the weights that such products read, and nobody else; all of one weight in the same way. */
static bool *find_weights(const Module *module) {
    const Graph *g = module->eval;
    bool *product = NEW_ARRAY(module->arena, bool, module->weights.count),
         *other = NEW_ARRAY(module->arena, bool, module->weights.count),
         *columns = NEW_ARRAY(module->arena, bool, module->weights.count);
    for (int i = 0; i < g->nodes.count; i++) {
        const Node *n = g->nodes.at[i];
        for (int k = 0; k < n->inputs; k++) {
            const int row = weight_row(n->in[k]);
            if (row < 0 || keeps_outputs(n))
                continue;
            bool fits = k == 1 && is_quantizable(module, n);
            other[row] |= !fits || (product[row] && columns[row] != has_columns(n));
            product[row] |= fits;
            columns[row] |= fits && has_columns(n);
        }
    }
    for (int row = 0; row < module->weights.count; row++)
        product[row] &= !other[row];
    return product;
}

/* ---- their rows ---- */

static int add_scale(Module *module, const Weight *of, const char *name, Type type, double start) {
    Weight scale = {.name = name,
                    .kind = WEIGHT_BUFFER,
                    .type = type,
                    .init = {.kind = INIT_CONSTANT, .a = start},
                    .src = of->src,
                    .of = -1};
    VEC_PUSH(module->arena, &module->weights, scale);
    return module->weights.count - 1;
}

static int add_integers(Module *module, const Weight *of, Type type, const int *file_order) {
    Weight whole = {
        .name = of->name, .kind = of->kind, .type = type, .file_order = file_order, .src = of->src, .of = -1};
    VEC_PUSH(module->arena, &module->weights, whole);
    return module->weights.count - 1;
}

/* "h.weight.scale", or where a weight is called so, "h.weight.scale.scale". */
static const char *name_beside(Module *module, const char *name, const char *what) {
    name = arena_printf(module->arena, "%s.%s", name, what);
    for (int i = 0; i < module->weights.count; i++)
        if (strcmp(module->weights.at[i].name, name) == 0)
            return name_beside(module, name, what);
    return name;
}

/* The axes of a matrix in files, where the one in memory is the other way round. */
static const int *other_order(Arena *arena, const int *order) {
    int *other = NEW_ARRAY(arena, int, 2);
    for (int k = 0; k < 2; k++)
        other[k] = 1 - (order ? order[k] : k);
    return other;
}

static Quantized *quantized_weight(Module *module, int row, bool columns) {
    const Weight w = module->weights.at[row];
    const char *scale = name_beside(module, w.name, "scale"), *input = name_beside(module, w.name, "input_scale");
    Type type = w.type;
    type.dtype = DT_I8;
    if (columns) {
        type.dim[0] = w.type.dim[1];
        type.dim[1] = w.type.dim[0];
    }
    Quantized *quantized = NEW(module->arena, Quantized);
    quantized->weight =
        add_integers(module, &w, type, columns ? other_order(module->arena, w.file_order) : w.file_order);
    quantized->scale = add_scale(module, &w, scale, type_make(DT_F32, false, 1, type.dim), 1);
    quantized->input_scale = add_scale(module, &w, input, type_scalar(DT_F32), 1);
    module->weights.at[row].replaced = true;
    return quantized;
}

/* ---- evaluation ---- */

static const Quantized *quantized_of(const Quantization *q, const Node *n) {
    const int row = n->op->flags & OP_WHOLE && n->inputs == 2 ? weight_row(n->in[1]) : -1;
    return row >= 0 && row < q->weights ? q->at[row] : NULL;
}

/* By the weights' rows: the only product of each; NULL: there are none, or several. */
static const Node **only_products(const Quantization *q) {
    const Graph *g = q->module->eval;
    const Node **only = NEW_ARRAY(g->arena, const Node *, q->weights);
    bool *met = NEW_ARRAY(g->arena, bool, q->weights);
    for (int i = 0; i < g->nodes.count; i++) {
        const Node *n = g->nodes.at[i];
        if (!quantized_of(q, n))
            continue;
        const int row = weight_row(n->in[1]);
        only[row] = met[row] ? NULL : n;
        met[row] = true;
    }
    return only;
}

/* Scales of inputs are found in the values alone: weights that are multiplied with the same value, and no other, have equal ones, and
 * products take the first one's, so that integers are made of the value once. */
static void share_input_scales(Quantization *q) {
    const Node **only = only_products(q);
    for (int row = 0; row < q->weights; row++) {
        int first = 0;
        while (first < row && !(only[row] && only[first] && only[first]->in[0] == only[row]->in[0]))
            first++;
        if (q->at[row])
            q->at[row]->taken_scale = q->at[first]->input_scale;
    }
}

/* The views of the weight as those of its integers. */
static Node *integers(Graph *g, const Node *w, int row) {
    if (w->op->table == TABLE_WEIGHT)
        return graph_weight(g, row);
    Node *below = integers(g, w->in[0], row);
    return graph_node(g, w->op->name, w->attr, 1, &below);
}

static Node *whole_product(Graph *g, Node *n, const void *context) {
    const Quantized *quantized = quantized_of((const Quantization *)context, n);
    if (!quantized)
        return NULL;
    Node *input_scale = graph_weight(g, quantized->taken_scale), *scale = graph_weight(g, quantized->scale);
    Node *steps = op2(g, "div", graph_constant(g, 1), input_scale);
    Node *in[] = {op1(g, "to_i8", op2(g, "mul", n->in[0], steps)), integers(g, n->in[1], quantized->weight)};
    Attr attr = n->attr;
    attr.tb = n->op->attrs & ATTR_TRANSPOSED;
    Node *sum = graph_cast(g, graph_node(g, n->op->name, attr, 2, in), DT_F32);
    return op2(g, "mul", sum, op2(g, "mul", scale, input_scale));
}

/* ---- what is watched ---- */

/* A row for each example of the batch. */
static Node *by_example(Graph *g, Node *x) {
    Type rows = {.dtype = x->type.dtype, .rank = 2, .batched = true, .dim = {g->module->batch}};
    rows.dim[1] = type_elements(&x->type) / rows.dim[0];
    return graph_reshape(g, x, &rows);
}

static void watch_input(Quantization *q, const Node *product, const Weight *weight) {
    Module *module = q->module;
    Graph *g = module->watch;
    Span before = graph_at(g, product->src);
    Node *x = by_example(g, graph_import(g, product->in[0]));
    graph_node(g, "show", (Attr){.index = module->printed.count}, 1, &x);
    graph_at(g, before);
    VEC_PUSH(module->arena, &module->printed,
             ((Printed){weight->name, type_user_text(module->arena, &x->type), product->src}));
}

static void watch_inputs(Quantization *q) {
    Module *module = q->module;
    const Graph *eval = module->eval;
    module->watch = graph_new(module, false);
    for (int row = 0; row < q->weights; row++) {
        if (!q->at[row])
            continue;
        Quantized quantized = *q->at[row];
        quantized.first_input = module->printed.count;
        for (int i = 0; i < eval->nodes.count; i++)
            if (quantized_of(q, eval->nodes.at[i]) == q->at[row])
                watch_input(q, eval->nodes.at[i], &module->weights.at[row]);
        quantized.inputs = module->printed.count - quantized.first_input;
        VEC_PUSH(module->arena, &module->quantized, quantized);
    }
}

/* A weight as the numbers that its integers stand for. */
static Node *as_floats(Graph *g, Node *n, const void *context) {
    const Quantization *q = (const Quantization *)context;
    if (n->op->table != TABLE_WEIGHT || n->attr.index >= q->weights || !q->at[n->attr.index])
        return NULL;
    const Quantized *quantized = q->at[n->attr.index];
    Node *whole = graph_cast(g, graph_weight(g, quantized->weight), DT_F32);
    Type by_output = {.dtype = DT_F32, .rank = whole->type.rank};
    for (int k = 0; k < by_output.rank; k++)
        by_output.dim[k] = k ? 1 : whole->type.dim[0];
    Node *floats = op2(g, "mul", whole, graph_reshape(g, graph_weight(g, quantized->scale), &by_output));
    return type_same_shape(&whole->type, &n->type) ? floats : graph_transpose(g, floats, (int[]){1, 0});
}

/* ---- no training ---- */

/* The step that the tables of a program have reports nothing. */
static Graph *idle_step(Module *module) {
    Graph *g = graph_new(module, true);
    for (int report = 0; report < module->means; report++)
        graph_report(g, report, graph_constant(g, 0));
    return g;
}

/* Of products; NULL: there are none. */
static const Weight *largest_weight(const Module *module) {
    const Graph *g = module->eval;
    const Weight *largest = NULL;
    for (int i = 0; i < g->nodes.count; i++) {
        const Node *n = g->nodes.at[i];
        const int row = n->op->flags & OP_WHOLE ? weight_row(n->in[1]) : -1;
        const Weight *w = row >= 0 ? &module->weights.at[row] : NULL;
        if (w && (!largest || type_elements(&w->type) > type_elements(&largest->type)))
            largest = w;
    }
    return largest;
}

static void refuse_to_quantize(const Module *module) {
    const Weight *largest = largest_weight(module);
    diag_error(
        module->diag, (Span){0},
        "--precision int8: no product of this model can be one of integers: of a weight that nothing else reads, "
        "and that has some 16,000 numbers or more, or meets a value at several positions");
    if (largest)
        diag_note(module->diag, largest->src,
                  "the largest weight of a product, '%s', has %lld numbers; bf16 and fp32 take any", largest->name,
                  (long long)type_elements(&largest->type));
}

bool quantize_products(Module *module) {
    if (module->shards) {
        diag_error(module->diag, (Span){0},
                   "--shards is for programs that train, and --precision int8 for those that do not");
        return false;
    }
    graph_compact(module->eval); /* what nothing needs multiplies nothing */
    const bool *chosen = find_weights(module);
    Quantization q = {.module = module, .weights = module->weights.count};
    q.at = NEW_ARRAY(module->arena, Quantized *, q.weights);
    const Graph *eval = module->eval;
    for (int i = 0; i < eval->nodes.count; i++) {
        const Node *n = eval->nodes.at[i];
        const int row = n->op->flags & OP_WHOLE ? weight_row(n->in[1]) : -1;
        if (row >= 0 && row < q.weights && chosen[row] && !q.at[row])
            q.at[row] = quantized_weight(module, row, has_columns(n));
    }
    module->printed.count = 0;
    share_input_scales(&q);
    watch_inputs(&q);
    if (!module->quantized.count) {
        refuse_to_quantize(module);
        return false;
    }
    graph_rewrite(module->watch, as_floats, &q);
    graph_rewrite(module->eval, whole_product, &q);
    graph_compact(module->watch);
    graph_compact(module->eval);
    module->train = idle_step(module);
    module->first_update = 1;
    module->recompute = false;
    return true;
}
