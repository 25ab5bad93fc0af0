/* Activations. Those with a slope that is best said in terms of their value are primitive, the others formulas. */
#include "op/compose.h"

#include <math.h>
#include <string.h>

/* ---- primitive ---- */

/* 0 at 0, as PyTorch has it; tested on the result, so that the operand need not be kept. */
GRAD(relu) {
    din[0] = masked(g, compare(g, "gt", n, 0), dy);
}

GRAD(sigmoid) {
    din[0] = mul(g, dy, mul(g, n, sub(g, graph_constant(g, 1), n)));
}

GRAD(tanh) {
    din[0] = mul(g, dy, sub(g, graph_constant(g, 1), mul(g, n, n)));
}

GRAD(softplus) {
    din[0] = mul(g, dy, op1(g, "sigmoid", n->in[0]));
}

FOLD(relu, in[0] < 0 ? 0 : in[0])
FOLD(sigmoid, 1 / (1 + exp(-in[0])))
FOLD(tanh, tanh(in[0]))
FOLD(softplus, fmax(in[0], 0) + log1p(exp(-fabs(in[0]))))

/*       name, kind, title, gradient, flags, in C, near it, meaning */
FUNCTION(relu, KIND_ACTIVATION, "ReLU", grad_relu, OP_CHEAP, "relu($0)", NULL, "Relu($0)",
         "max(x, 0). The gradient at 0 is 0.");
FUNCTION(sigmoid, KIND_ACTIVATION, NULL, grad_sigmoid, 0, "sigmoid($0)", NULL, "Sigmoid($0)", "1 / (1 + exp(-x))");
FUNCTION(tanh, KIND_ACTIVATION, NULL, grad_tanh, 0, "tanh($0)", NULL, "Tanh($0)", "The hyperbolic tangent.");
FUNCTION(softplus, KIND_ACTIVATION, NULL, grad_softplus, 0, "softplus($0)", NULL, "Softplus($0)",
         "log(1 + exp(x)), without overflow.");

/* ---- formulas ---- */

static Value build_silu(Call *call) {
    Node *x = call_tensor(call, 0);
    return value_tensor(mul(call->g, x, op1(call->g, "sigmoid", x)));
}

static Value build_leaky_relu(Call *call) {
    Graph *g = call->g;
    Node *x = graph_cast(g, call_tensor(call, 0), DT_F32), *slope = call_scalar(call, 1);
    if (!x || !slope)
        return value_tensor(NULL);
    return value_tensor(select(g, compare(g, "gt", x, 0), x, mul(g, slope, x)));
}

/* x where it is above 0, alpha (exp(x) - 1) elsewhere; the slope is 1 above 0 and alpha exp(x) from 0 downwards, so that it is
 * continuous where alpha is 1. exp is asked for no number above 0: an infinite one would make its gradient, 0 there, no number. */
static Value build_elu(Call *call) {
    Graph *g = call->g;
    Node *x = graph_cast(g, call_tensor(call, 0), DT_F32), *alpha = call_scalar(call, 1);
    if (!x || !alpha)
        return value_tensor(NULL);
    Node *above = compare(g, "gt", x, 0);
    Node *below = select(g, above, graph_constant(g, 0), x);
    return value_tensor(select(g, above, x, mul(g, alpha, op1(g, "expm1", below))));
}

/* x tanh(log(1 + exp(x))) */
static Value build_mish(Call *call) {
    Graph *g = call->g;
    Node *x = call_tensor(call, 0);
    return value_tensor(mul(g, x, op1(g, "tanh", op1(g, "softplus", x))));
}

/* x / 2 (1 + erf(x / sqrt(2))) */
static Node *gelu_exact(Graph *g, Node *x) {
    return mul(g, scale(g, x, 0.5), plus(g, op1(g, "erf", scale(g, x, sqrt(0.5))), 1));
}

/* x / 2 (1 + tanh(u)) with u = sqrt(2 / pi) (x + 0.044715 x^3), as x sigmoid(2 u), which is equal. */
static Node *gelu_tanh(Graph *g, Node *x) {
    const double slope = 2 * 0.7978845608028654;
    Node *twice_u = mul(g, x, plus(g, scale(g, mul(g, x, x), slope * 0.044715), slope));
    return mul(g, x, op1(g, "sigmoid", twice_u));
}

static Value build_gelu(Call *call) {
    Node *x = call_tensor(call, 0);
    if (!x)
        return value_tensor(NULL);
    return value_tensor(call_bool(call, 1) ? gelu_exact(call->g, x) : gelu_tanh(call->g, x));
}

static Value build_square(Call *call) {
    Node *x = call_tensor(call, 0);
    return value_tensor(mul(call->g, x, x));
}

/* The maximum is taken out before exp: no overflow, and no gradient through it, since it cancels. */
Node *build_shifted(Graph *g, Node *x, unsigned axes) {
    return sub(g, x, op1(g, "stop_gradient", graph_reduce_keep(g, "max", x, axes)));
}

static Node *softmax(Graph *g, Node *x, unsigned axes) {
    Node *powers = op1(g, "exp", build_shifted(g, x, axes));
    return divide(g, powers, graph_reduce_keep(g, "sum", powers, axes));
}

static bool is_op(const Node *n, const char *op) {
    return strcmp(n->op->name, op) == 0;
}

/* An expansion, along some axes, of the operand's fold along them. */
static bool is_kept_fold(const Node *n, const char *fold, const Node *of) {
    return is_op(n, "expand") && is_op(n->in[0], fold) && n->in[0]->in[0] == of && n->attr.axes == n->in[0]->attr.axes;
}

const Node *softmax_shift(const Node *quotient) {
    const Node *powers = quotient->in[0], *shift = is_op(powers, "exp") ? powers->in[0] : NULL;
    if (!shift || !is_op(shift, "sub") || !is_op(shift->in[1], "stop_gradient"))
        return NULL;
    const Node *largest = shift->in[1]->in[0], *sum = quotient->in[1];
    return is_kept_fold(largest, "max", shift->in[0]) && is_kept_fold(sum, "sum", powers) &&
                   largest->attr.axes == sum->attr.axes && __builtin_popcount(sum->attr.axes) == 1
               ? shift
               : NULL;
}

static Node *log_softmax(Graph *g, Node *x, unsigned axes) {
    Node *shifted = build_shifted(g, x, axes);
    return sub(g, shifted, op1(g, "log", graph_reduce_keep(g, "sum", op1(g, "exp", shifted), axes)));
}

static Value along_axis(Call *call, Node *(*function)(Graph *, Node *, unsigned)) {
    Node *x = graph_cast(call->g, call_tensor(call, 0), DT_F32);
    int axis = x ? call_axis(call, 1, x) : -1;
    return value_tensor(axis < 0 ? NULL : function(call->g, x, 1u << axis));
}

/* As the last layer of two classes, where a sigmoid is meant. */
static void doubt_softmax_of_one(Call *call, const Node *y, const char *result) {
    if (y->type.dim[call_axis(call, 1, y)] == 1)
        call_doubt(call, 0, call->src, arena_printf(call->g->arena, "softmax of one number is always 1%s", result),
                   "the probability of one score is sigmoid(x); there is a score for each of several classes");
}

static Value build_softmax(Call *call) {
    Value y = along_axis(call, softmax);
    if (y.node)
        doubt_softmax_of_one(call, y.node, "");
    return y;
}

static Value build_log_softmax(Call *call) {
    Value y = along_axis(call, log_softmax);
    if (y.node)
        doubt_softmax_of_one(call, y.node, ", its logarithm 0");
    return y;
}

const OpDef op_silu = {
    .name = "silu",
    .cls = OP_LIBRARY,
    .kind = KIND_ACTIVATION,
    .title = "SiLU",
    .doc = "x * sigmoid(x)",
    .example = "y = silu(x)",
    .signature = "x",
    .build = build_silu,
};

const OpDef op_leaky_relu = {
    .name = "leaky_relu",
    .cls = OP_LIBRARY,
    .kind = KIND_ACTIVATION,
    .title = "LeakyReLU",
    .doc = "x where it is above 0, slope * x elsewhere.",
    .example = "y = leaky_relu(x, 0.1)",
    .signature = "x, slope: number = 0.01",
    .build = build_leaky_relu,
};

const OpDef op_elu = {
    .name = "elu",
    .cls = OP_LIBRARY,
    .kind = KIND_ACTIVATION,
    .title = "ELU",
    .doc = "x where it is above 0, alpha (exp(x) - 1) elsewhere.",
    .example = "y = elu(x)",
    .signature = "x, alpha: number = 1",
    .build = build_elu,
};

const OpDef op_mish = {
    .name = "mish",
    .cls = OP_LIBRARY,
    .kind = KIND_ACTIVATION,
    .doc = "x * tanh(softplus(x))",
    .example = "y = mish(x)",
    .signature = "x",
    .build = build_mish,
};

const OpDef op_gelu = {
    .name = "gelu",
    .cls = OP_LIBRARY,
    .kind = KIND_ACTIVATION,
    .title = "GELU",
    .doc = "x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))); exact: x / 2 (1 + erf(x / sqrt(2))).",
    .example = "y = gelu(x, exact = true)",
    .signature = "x, exact: bool = false",
    .build = build_gelu,
};

const OpDef op_square = {
    .name = "square",
    .cls = OP_LIBRARY,
    .doc = "x * x",
    .example = "y = square(x)",
    .signature = "x",
    .build = build_square,
};

const OpDef op_softmax = {
    .name = "softmax",
    .cls = OP_LIBRARY,
    .kind = KIND_ACTIVATION,
    .doc = "exp(x - m) / sum(exp(x - m)) along an axis, m the maximum.",
    .example = "y = softmax(x)",
    .signature = "x, axis: axis = -1",
    .build = build_softmax,
};

const OpDef op_log_softmax = {
    .name = "log_softmax",
    .cls = OP_LIBRARY,
    .kind = KIND_ACTIVATION,
    .doc = "x - m - log(sum(exp(x - m))) along an axis, m the maximum.",
    .example = "y = log_softmax(x)",
    .signature = "x, axis: axis = -1",
    .build = build_log_softmax,
};
