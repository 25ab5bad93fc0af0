/* Forward products of a weight in fp8, the others in bf16, as precision.c has rounded them:
 *
 *     y[i, j] = sum over k of x[i, k] * w[j, k]
 *
 *     x.e4m3 = to_e4m3(to_float(to_bf16(x)))        beside the 16-bit value, which the gradient of w reads
 *     w.scale[j] = (max over k of |w[j, k]|) / E4M3_MOST
 *     w.e4m3 = to_e4m3(w * (1 / w.scale))           of the weights that the step begins with
 *     y[i, j] = (sum over k of x.e4m3[i, k] * w.e4m3[j, k]) * w.scale[j]
 *
 * The roundings are nodes of the graph, as those of precision.c are: x is rounded once more where it is made, by the kernel that has
 * it in registers; w is scaled and rounded by one pass over its rows, since a row's largest number is all that its scale needs; the
 * scale of a row is a factor of the product's epilogue. Of x there is no scale: it is what layers, norms and activations make, whose
 * numbers lie around 1, in the middle of e4m3's (2^-9 .. 448); and no epilogue knows the largest number of a row.
 *
 * Gradients are those of the product in bf16, as if the roundings to 8 bits were not there.
 *
 * Left as they are, since it does not pay, or might not be exact enough: products with few rows or outputs; those of gradients; of
 * what a call has stored (attention), which would be read again to be rounded; of what is made of data and constants alone, whose
 * numbers lie anywhere. */
#include "pass/float8.h"

#include "ir/op.h"
#include "pass/precision.h"

/* A product's time falls by 1e-15 s for each of its M N K terms, on an H200. Against that, x is stored once more, M K bytes, at 4 TB/s:
 * outputs pay for it from some 250 on. To read a weight again and to store it takes 5 N K bytes: rows pay for it from some 1200 on. */
enum { LEAST_ROWS = 2048, LEAST_OUTPUTS = 256, LEAST_DEPTH = 128, ALIGNED = 16 };

static const double E4M3_MOST = 448, LEAST_SCALE = 1e-30;

typedef struct Float8 {
    Graph *g;
    int count;    /* of the nodes that there were before */
    bool *told;   /* by node id: a report, a kept value or the prediction is made of it */
    bool *given;  /* made of data and constants alone */
    Node **eight; /* of a value of 16 bits: the same in 8 */
    /* Of a weight's matrix: a row for each output of products with it as it is, and of those with it transposed (attr.tb); their scales. */
    Node **rows[2], **scale[2];
} Float8;

/* ---- which products ---- */

static void find_told(Float8 *f) {
    for (int i = 0; i < f->g->roots.count; i++)
        if (f->g->roots.at[i]->op->table != TABLE_LAST && f->g->roots.at[i]->inputs == 1)
            f->told[f->g->roots.at[i]->in[0]->id] = true;
    for (int i = f->count - 1; i >= 0; i--)
        for (int k = 0; f->told[i] && k < f->g->nodes.at[i]->inputs; k++)
            f->told[f->g->nodes.at[i]->in[k]->id] = true;
}

static bool is_given(const Float8 *f, const Node *n) {
    if (n->op->cls == OP_LEAF)
        return n->op->table != TABLE_WEIGHT;
    bool all = n->op->cls == OP_VIEW || n->op->cls == OP_MAP;
    for (int k = 0; k < n->inputs; k++)
        all = all && f->given[n->in[k]->id];
    return all;
}

static void find_given(Float8 *f) {
    for (int i = 0; i < f->count; i++)
        f->given[i] = is_given(f, f->g->nodes.at[i]);
}

/* What is rounded to 16 bits by a map, below views of it; NULL: it is no such value. */
static const Node *rounded_below(const Node *operand) {
    while (is_looked_through(operand))
        operand = operand->in[0];
    return operand->op->cls == OP_MAP && operand->op->rounds ? operand : NULL;
}

/* It lies as what it is a view of does. Others leave places out, or have zeros of their own, which have no 8 bits. */
static bool lies_as_made(const Node *x) {
    while (is_looked_through(x) && x->op->flags & OP_CONTIGUOUS)
        x = x->in[0];
    return !is_looked_through(x);
}

static bool is_large(const Node *product) {
    const Type *x = &product->in[0]->type, *y = &product->type;
    return x->rank == 2 && y->dim[0] >= LEAST_ROWS && y->dim[1] >= LEAST_OUTPUTS && x->dim[1] >= LEAST_DEPTH &&
           x->dim[1] % ALIGNED == 0;
}

static bool is_chosen(const Float8 *f, const Node *n) {
    if (!(n->op->flags & OP_WHOLE) || !(n->op->attrs & ATTR_TRANSPOSED) || n->in[0]->type.dtype != DT_BF16)
        return false;
    const Node *x = rounded_below(n->in[0]), *w = rounded_below(n->in[1]);
    return f->told[n->id] && x && w && w->in[0]->op->table == TABLE_WEIGHT && n->in[0]->type.batched && !n->attr.ta &&
           n->in[1]->type.rank == 2 && is_large(n) && lies_as_made(n->in[0]) && !f->given[x->id];
}

/* ---- what they multiply ---- */

static const char *name_in_8_bits(Graph *g, const char *name) {
    return name ? arena_printf(g->arena, "%s.%s", name, dtype_info[DT_E4M3].name) : NULL;
}

static Node *input_in_8_bits(Float8 *f, Node *x) {
    if (is_looked_through(x))
        return same_view(f->g, x, input_in_8_bits(f, x->in[0]));
    Node **eight = &f->eight[x->id];
    if (!*eight)
        *eight = graph_name(op1(f->g, "to_e4m3", op1(f->g, "to_float", x)), name_in_8_bits(f->g, x->name));
    return *eight;
}

/* The views of the weight as it is, not rounded. */
static Node *exact(Graph *g, Node *w) {
    return is_looked_through(w) ? same_view(g, w, exact(g, w->in[0])) : w->in[0];
}

static const char *weight_name(const Node *w) {
    while (w->op->table != TABLE_WEIGHT)
        w = w->in[0];
    return w->name;
}

/* A row for each output. */
static Node *weight_in_8_bits(Float8 *f, const Node *product) {
    Graph *g = f->g;
    Node *w = product->in[1], **eight = &f->rows[product->attr.tb][w->id];
    if (*eight)
        return *eight;
    Node *rows = exact(g, w);
    if (!product->attr.tb)
        rows = graph_transpose(g, rows, (int[]){1, 0});
    const char *name = weight_name(rows);
    Node *largest = graph_reduce(g, "max", op1(g, "abs", rows), 1u << 1);
    Node *scale =
        op2(g, "maximum", op2(g, "mul", largest, graph_constant(g, 1 / E4M3_MOST)), graph_constant(g, LEAST_SCALE));
    f->scale[product->attr.tb][w->id] = graph_name(scale, name ? arena_printf(g->arena, "%s.scale", name) : NULL);
    Type by_row = {.dtype = DT_F32, .rank = 2, .dim = {rows->type.dim[0], 1}};
    Node *steps = graph_reshape(g, op2(g, "div", graph_constant(g, 1), scale), &by_row);
    return *eight = graph_name(op1(g, "to_e4m3", op2(g, "mul", rows, steps)), name_in_8_bits(g, name));
}

static Node *in_8_bits(Float8 *f, Node *product) {
    Graph *g = f->g;
    graph_at(g, product->src);
    Node *in[] = {input_in_8_bits(f, product->in[0]), weight_in_8_bits(f, product)};
    Node *sum = graph_node(g, product->op->name, (Attr){.tb = true}, 2, in);
    return op2(g, "mul", sum, f->scale[product->attr.tb][product->in[1]->id]);
}

/* Returns how many products there are. */
static int multiply_graph(Graph *g) {
    const int count = g->nodes.count;
    Float8 f = {.g = g,
                .count = count,
                .told = NEW_ARRAY(g->arena, bool, count),
                .given = NEW_ARRAY(g->arena, bool, count),
                .eight = NEW_ARRAY(g->arena, Node *, count)};
    int products = 0;
    for (int tb = 0; tb < 2; tb++) {
        f.rows[tb] = NEW_ARRAY(g->arena, Node *, count);
        f.scale[tb] = NEW_ARRAY(g->arena, Node *, count);
    }
    find_told(&f);
    find_given(&f);
    for (int i = 0; i < count; i++)
        if (is_chosen(&f, g->nodes.at[i])) {
            g->nodes.at[i]->replaced = in_8_bits(&f, g->nodes.at[i]);
            products++;
        }
    graph_compact(g);
    return products;
}

void multiply_in_8_bits(const Module *module) {
    const int products = multiply_graph(module->train) + multiply_graph(module->eval);
    if (!products)
        diag_warning(module->diag, (Span){0},
                     "fp8: no product of a weight gains by it, with %d rows, %d inputs and %d outputs or more and of "
                     "what is computed: all are in bf16",
                     LEAST_ROWS, LEAST_DEPTH, LEAST_OUTPUTS);
}
