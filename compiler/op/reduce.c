/* Reductions over the axes attr.axes, which the result lacks. */
#include "op/compose.h"

INFER(reduce) {
    const Type *in = &n->in[0]->type;
    n->type = (Type){.dtype = in->dtype, .batched = in->batched && !(n->attr.axes & 1)};
    for (int k = 0; k < in->rank; k++)
        if (!(n->attr.axes >> k & 1))
            n->type.dim[n->type.rank++] = in->dim[k];
    return in->dtype == DT_F32 && n->attr.axes && !(n->attr.axes >> in->rank);
}

/* x, reduced over `axes`, stretched to the shape of `like` again. */
static Node *stretch(Graph *g, Node *x, const Node *like, unsigned axes) {
    Attr attr = attr_shape(&like->type);
    attr.axes = axes;
    return graph_node(g, "expand", attr, 1, &x);
}

GRAD(sum) {
    din[0] = stretch(g, dy, n->in[0], n->attr.axes);
}

/* The gradient is shared evenly by the elements that are equal to the extremum. */
GRAD(extremum) {
    unsigned axes = n->attr.axes;
    Node *extreme = op2(g, "eq", n->in[0], stretch(g, n, n->in[0], axes));
    Node *count = graph_reduce(g, "sum", extreme, axes);
    din[0] = masked(g, extreme, stretch(g, divide(g, dy, count), n->in[0], axes));
}

/* d x_i = dy times the product of the others: 0 where one of them is 0. The product of all elements but the zeros is made once;
 * for an element that is no zero it is divided by that, for a single zero it is the product of the others. */
GRAD(prod) {
    unsigned axes = n->attr.axes;
    Node *x = n->in[0], *zero = graph_cast(g, compare(g, "eq", x, 0), DT_F32);
    Node *factor = select(g, compare(g, "eq", x, 0), graph_constant(g, 1), x);
    Node *product = graph_reduce_keep(g, "prod", factor, axes);
    Node *other_zeros = sub(g, graph_reduce_keep(g, "sum", zero, axes), zero);
    Node *others = divide(g, mul(g, stretch(g, dy, x, axes), product), factor);
    din[0] = masked(g, compare(g, "eq", other_zeros, 0), others);
}

/* ---- in the language: reduction of the user's axes ---- */

bool call_folding(Call *call, Folding *folding) {
    Node *x = folding->x = graph_cast(call->g, call_tensor(call, 0), DT_F32);
    folding->axes = x ? call_axes(call, 1, x) : 0;
    return x && (folding->axes || !user_axes(x));
}

Node *folding_value(Call *call, const Folding *folding, Node *folded, int keep) {
    if (!folded || !call_bool(call, keep))
        return folded;
    Type kept = folding->x->type;
    for (int k = 0; k < kept.rank; k++)
        if (folding->axes >> k & 1)
            kept.dim[k] = 1;
    return graph_reshape(call->g, folded, &kept);
}

static Node *reduce(Call *call, const char *op) {
    Folding folding;
    if (!call_folding(call, &folding))
        return NULL;
    return folding_value(call, &folding, graph_reduce(call->g, op, folding.x, folding.axes), 2);
}

static Value build_sum(Call *call) {
    return value_tensor(reduce(call, "sum"));
}

static Value build_max(Call *call) {
    return value_tensor(reduce(call, "max"));
}

static Value build_min(Call *call) {
    return value_tensor(reduce(call, "min"));
}

static Value build_prod(Call *call) {
    return value_tensor(reduce(call, "prod"));
}

static Value build_mean(Call *call) {
    Folding f;
    if (!call_folding(call, &f))
        return value_tensor(NULL);
    return value_tensor(folding_value(call, &f, graph_mean(call->g, f.x, f.axes), 2));
}

/* Indices are compared as f32, which counts to 2^24. */
static bool can_count(Graph *g, const Node *x, int axis) {
    enum { MOST = 1 << 24 };
    if (x->type.dim[axis] <= MOST)
        return true;
    diag_error(g->module->diag, g->at,
               "the largest of %lld elements is looked for; argmax and accuracy take at most %d",
               (long long)x->type.dim[axis], MOST);
    return false;
}

/* The first index whose element is the largest: min over j of (j where x[j] is the maximum, else the size). */
Node *build_arg_max(Graph *g, Node *x, int axis, const char *hint) {
    if (!x || !can_count(g, x, axis))
        return NULL;
    unsigned axes = 1u << axis;
    Node *largest = op2(g, "eq", x, graph_reduce_keep(g, "max", x, axes));
    Node *index = graph_cast(g, graph_iota(g, &x->type, axis), DT_F32);
    Node *found = select(g, largest, index, graph_constant(g, (double)x->type.dim[axis]));
    Node *first = graph_reduce(g, "min", found, axes);
    first->hint = hint;
    return graph_cast(g, first, DT_I32);
}

static Value build_argmax(Call *call) {
    Node *x = call_tensor(call, 0);
    int axis = x ? call_axis(call, 1, x) : -1;
    return value_tensor(axis < 0 ? NULL : build_arg_max(call->g, graph_cast(call->g, x, DT_F32), axis, NULL));
}

/* ---- in ONNX ---- */

/* Which axes of the value are folded; and the order of those that are left, in *result. */
static int folded_axes(const Node *n, const OnnxValue *x, int64_t *axes, OnnxValue *result) {
    int count = 0, kept = 0;
    for (int k = 0; k < n->in[0]->type.rank; k++)
        if (n->attr.axes >> x->order[k] & 1)
            axes[count++] = k;
        else
            result->order[kept++] = x->order[k] - __builtin_popcount(n->attr.axes & ((1u << x->order[k]) - 1));
    return count;
}

/* Of sums the axes are an operand, of the others an attribute. */
TO_ONNX(sum) {
    OnnxValue pooled = onnx_pooled(o, n);
    if (pooled.name)
        return pooled;
    OnnxValue x = onnx_operand_any(o, n, 0), result = onnx_value(NULL);
    int64_t axes[MAX_RANK];
    const int count = folded_axes(n, &x, axes, &result);
    const char *in[] = {x.name, onnx_numbers(o, count, axes)};
    return onnx_like(result, onnx_node(o, n->op->onnx, 2, in, 1, &ONNX_NUMBER("keepdims", 0)));
}

TO_ONNX(fold) {
    OnnxValue x = onnx_operand_any(o, n, 0), result = onnx_value(NULL);
    int64_t axes[MAX_RANK];
    const int count = folded_axes(n, &x, axes, &result);
    const OnnxAttr attr[] = {ONNX_NUMBERS("axes", count, axes), ONNX_NUMBER("keepdims", 0)};
    return onnx_like(result, onnx_node(o, n->op->onnx, 1, &x.name, 2, attr));
}

const OpDef op_sum = {
    .name = "sum",
    .cls = OP_REDUCE,
    .flags = OP_REAL,
    .arity = 1,
    .attrs = ATTR_AXES,
    .doc = "The sum over the axes, by default all.",
    .example = "y = sum(x, axis = 0)",
    .infer = infer_reduce,
    .grad = grad_sum,
    .simplify = simplify_sum,
    .combine = "$0 + $1",
    .prec = PREC_SUM,
    .identity = "0",
    .onnx = "ReduceSum",
    .to_onnx = to_onnx_sum,
    .signature = AXES_SIGNATURE,
    .build = build_sum,
};

const OpDef op_max = {
    .name = "max",
    .cls = OP_REDUCE,
    .flags = OP_REAL | OP_SELECTS,
    .arity = 1,
    .attrs = ATTR_AXES,
    .doc = "The largest element over the axes. Its gradient is shared evenly by the elements that are the largest.",
    .example = "y = max(x, axis = 0)",
    .infer = infer_reduce,
    .range = range_as_input,
    .grad = grad_extremum,
    .simplify = simplify_reduce,
    .combine = "fmax($0, $1)",
    .prec = PREC_PRIMARY,
    .identity = "-INFINITY",
    .onnx = "ReduceMax",
    .to_onnx = to_onnx_fold,
    .signature = AXES_SIGNATURE,
    .build = build_max,
};

const OpDef op_min = {
    .name = "min",
    .cls = OP_REDUCE,
    .flags = OP_REAL | OP_SELECTS,
    .arity = 1,
    .attrs = ATTR_AXES,
    .doc = "The smallest element over the axes. Its gradient is shared evenly by the elements that are the smallest.",
    .example = "y = min(x, axis = 0)",
    .infer = infer_reduce,
    .range = range_as_input,
    .grad = grad_extremum,
    .simplify = simplify_reduce,
    .combine = "fmin($0, $1)",
    .prec = PREC_PRIMARY,
    .identity = "INFINITY",
    .onnx = "ReduceMin",
    .to_onnx = to_onnx_fold,
    .signature = AXES_SIGNATURE,
    .build = build_min,
};

const OpDef op_prod = {
    .name = "prod",
    .cls = OP_REDUCE,
    .flags = OP_REAL,
    .arity = 1,
    .attrs = ATTR_AXES,
    .doc = "The product over the axes, by default all. The gradient of an element is the product of the others, also "
           "where "
           "some of them are 0.",
    .example = "y = prod(x, axis = 0)",
    .infer = infer_reduce,
    .grad = grad_prod,
    .simplify = simplify_reduce,
    .combine = "$0 * $1",
    .prec = PREC_PRODUCT,
    .identity = "1",
    .onnx = "ReduceProd",
    .to_onnx = to_onnx_fold,
    .signature = AXES_SIGNATURE,
    .build = build_prod,
};

const OpDef op_mean = {
    .name = "mean",
    .cls = OP_LIBRARY,
    .doc = "The mean over the axes, by default all.",
    .example = "y = mean(x, axis = 0)",
    .signature = AXES_SIGNATURE,
    .build = build_mean,
};

const OpDef op_argmax = {
    .name = "argmax",
    .cls = OP_LIBRARY,
    .doc = "The index of the largest element along an axis; of equal ones, the first.",
    .example = "y = argmax(x)",
    .signature = "x, axis: axis = -1",
    .build = build_argmax,
};
