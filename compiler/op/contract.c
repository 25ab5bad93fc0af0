/* The matrix product, and its gradients as two more. */
#include "op/compose.h"

/* [leading..., M, K] as operand a is used, transposed or not. */
static int64_t rows_of(const Type *t, bool transposed) {
    return t->dim[t->rank - (transposed ? 1 : 2)];
}

static int64_t cols_of(const Type *t, bool transposed) {
    return t->dim[t->rank - (transposed ? 2 : 1)];
}

static bool same_leading(const Type *a, const Type *b) {
    for (int k = 0; k < a->rank - 2; k++)
        if (a->dim[k] != b->dim[k])
            return false;
    return a->rank == b->rank && a->batched == b->batched;
}

/* In a matrix the batch can be the rows of the result (a layer), or the inner axis (the gradient of its weight). */
static bool matrices_fit(const Type *a, const Type *b, bool ta, bool tb) {
    return b->batched ? a->batched && ta && !tb : !(a->batched && ta);
}

/* Matrices, or stacks of matrices; one matrix fits every stack. */
static bool operands_fit(const Type *a, const Type *b, bool ta, bool tb) {
    if (a->rank < 2 || b->rank < 2)
        return false;
    if (a->rank == 2 && b->rank == 2)
        return matrices_fit(a, b, ta, tb);
    return (a->rank == 2 && !a->batched) || (b->rank == 2 && !b->batched) || same_leading(a, b);
}

INFER(matmul) {
    const Type *a = &n->in[0]->type, *b = &n->in[1]->type;
    bool ta = n->attr.ta, tb = n->attr.tb, fit = operands_fit(a, b, ta, tb);
    if (!fit || cols_of(a, ta) != rows_of(b, tb)) {
        diag_error(g->module->diag, n->src, "matmul: %s%s and %s%s do not fit together%s", type_user_text(g->arena, a),
                   ta ? " transposed" : "", type_user_text(g->arena, b), tb ? " transposed" : "",
                   fit ? arena_printf(g->arena, ": the inner sizes are %lld and %lld", (long long)cols_of(a, ta),
                                      (long long)rows_of(b, tb))
                       : "");
        return false;
    }
    n->type = a->rank >= b->rank ? *a : *b;
    n->type.batched = n->type.rank > 2 ? n->type.batched : a->batched && !ta;
    n->type.dim[n->type.rank - 2] = rows_of(a, ta);
    n->type.dim[n->type.rank - 1] = cols_of(b, tb);
    n->type.dtype = contracted_dtype(a->dtype);
    return a->dtype == b->dtype && (dtype_is_real(a->dtype) || dtype_is_byte(a->dtype));
}

/* The gradient of a matrix that served a whole stack is the sum over the stack. */
static Node *as_operand(Graph *g, Node *gradient, const Node *operand) {
    int extra = gradient->type.rank - operand->type.rank;
    return graph_reduce(g, "sum", gradient, (1u << extra) - 1);
}

/* Y = A B:  dA = dY B^T, dB = A^T dY; with A or B stored transposed, the same products transposed. */
GRAD(matmul) {
    Node *a = n->in[0], *b = n->in[1];
    bool ta = n->attr.ta, tb = n->attr.tb;
    Node *da = ta ? graph_matmul(g, b, dy, tb, true) : graph_matmul(g, dy, b, false, !tb);
    Node *db = tb ? graph_matmul(g, dy, a, true, ta) : graph_matmul(g, a, dy, !ta, false);
    din[0] = as_operand(g, da, a);
    din[1] = as_operand(g, db, b);
}

/* ---- in the language: vectors too ---- */

static int user_rank(const Node *x) {
    return x->type.rank - x->type.batched;
}

static Node *remove_axis(Graph *g, Node *x, int at) {
    if (!x)
        return NULL;
    Type shape = x->type;
    shape.rank--;
    for (int k = at; k < shape.rank; k++)
        shape.dim[k] = shape.dim[k + 1];
    return graph_reshape(g, x, &shape);
}

/* Stacks of matrices meet as other operands do: NumPy's rule on the axes before the last two. One matrix alone needs none. */
static void share_stacks(Graph *g, Node **a, Node **b) {
    Type stacks[2], common;
    Node **operand[] = {a, b};
    for (int k = 0; k < 2; k++) {
        stacks[k] = (*operand[k])->type;
        stacks[k].rank -= 2;
        if (stacks[k].rank == 0)
            return;
    }
    if (!graph_common_shape(&stacks[0], &stacks[1], &common) || common.rank + 2 > MAX_RANK)
        return;
    for (int k = 0; k < 2; k++) {
        Type wanted = common;
        for (int axis = 2; axis > 0; axis--)
            wanted.dim[wanted.rank++] = (*operand[k])->type.dim[(*operand[k])->type.rank - axis];
        *operand[k] = graph_expand(g, *operand[k], &wanted);
    }
}

static Node *stacks_product(Graph *g, Node *a, Node *b, bool ta, bool tb) {
    share_stacks(g, &a, &b);
    return graph_matmul(g, a, b, ta, tb);
}

/* The batch's vectors are the rows of one matrix, unless each example has a matrix of its own. */
static Node *vector_times(Graph *g, Node *a, Node *b, bool tb) {
    if (user_rank(b) == 1)
        return graph_reduce(g, "sum", mul(g, a, b), 1u << (a->type.rank > b->type.rank ? last_axis(a) : last_axis(b)));
    if (a->type.batched && b->type.rank == 2)
        return graph_matmul(g, a, b, false, tb);
    Node *product = stacks_product(g, insert_axis(g, a, last_axis(a)), b, false, tb);
    return product ? remove_axis(g, product, last_axis(product) - 1) : NULL;
}

static Node *times_vector(Graph *g, Node *a, Node *b, bool ta) {
    if (b->type.batched && a->type.rank == 2)
        return graph_matmul(g, b, a, false, !ta);
    Node *product = stacks_product(g, a, insert_axis(g, b, last_axis(b) + 1), ta, false);
    return product ? remove_axis(g, product, last_axis(product)) : NULL;
}

Node *build_product(Graph *g, Node *a, Node *b, bool ta, bool tb) {
    if (user_rank(a) == 1)
        return vector_times(g, a, b, tb);
    if (user_rank(b) == 1)
        return times_vector(g, a, b, ta);
    return stacks_product(g, a, b, ta, tb);
}

static bool has_axes(Call *call, int arg, const Node *x) {
    if (x && !user_axes(x))
        call_error(call, arg, "expected a vector or a matrix, found %s", type_user_text(call->g->arena, &x->type));
    return x && user_axes(x);
}

static Value build_matmul(Call *call) {
    Node *a = call_tensor(call, 0), *b = call_tensor(call, 1);
    bool ta = call_bool(call, 2), tb = call_bool(call, 3);
    if (!has_axes(call, 0, a) || !has_axes(call, 1, b))
        return value_tensor(NULL);
    return value_tensor(build_product(call->g, a, b, ta, tb));
}

/* An operand with its last two axes exchanged, where it is stored so. */
static const char *onnx_factor(Onnx *o, const Node *n, int k, bool transposed) {
    const int last = n->in[k]->type.rank - 1;
    int order[MAX_RANK];
    for (int axis = 0; axis <= last; axis++)
        order[axis] = transposed && axis >= last - 1 ? 2 * last - 1 - axis : axis;
    return onnx_operand_in(o, n, k, order);
}

/* Of matrices, ONNX has a product that takes them as they are stored. */
TO_ONNX(matmul) {
    const bool ta = n->attr.ta, tb = n->attr.tb;
    const OnnxAttr stored[] = {ONNX_NUMBER("transA", ta), ONNX_NUMBER("transB", tb)};
    if (n->in[0]->type.rank == 2 && n->in[1]->type.rank == 2 && (ta || tb))
        return onnx_value(
            onnx_node(o, "Gemm", 2, (const char *[]){onnx_operand(o, n, 0), onnx_operand(o, n, 1)}, 2, stored));
    return onnx_value(onnx2(o, "MatMul", onnx_factor(o, n, 0, ta), onnx_factor(o, n, 1, tb)));
}

const OpDef op_matmul = {
    .name = "matmul",
    .cls = OP_CONTRACT,
    .flags = OP_WHOLE,
    .arity = 2,
    .attrs = ATTR_TRANSPOSED,
    .doc = "The matrix product, y[i, j] = sum over k of a[i, k] * b[k, j], of each pair in stacks of matrices, which "
           "broadcast. "
           "A vector on the left is a row, on the right a column. Operands in bf16 or e4m3 give sums in f32, operands "
           "in i8 exact ones in i32.",
    .example = "y = matmul(x, weight([6, 3]))",
    .infer = infer_matmul,
    .grad = grad_matmul,
    .simplify = simplify_matmul,
    .to_onnx = to_onnx_matmul,
    .signature = "a, b, transpose_a: bool = false, transpose_b: bool = false",
    .build = build_matmul,
};
