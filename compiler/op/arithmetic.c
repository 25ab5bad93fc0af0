/* Arithmetic on two numbers. */
#include "op/compose.h"

#include <math.h>

GRAD(add) {
    din[0] = dy;
    din[1] = dy;
}

GRAD(sub) {
    din[0] = dy;
    din[1] = op1(g, "neg", dy);
}

GRAD(mul) {
    din[0] = mul(g, dy, n->in[1]);
    din[1] = mul(g, dy, n->in[0]);
}

GRAD(div) {
    din[0] = divide(g, dy, n->in[1]);
    din[1] = op1(g, "neg", mul(g, din[0], n));
}

GRAD(neg) {
    din[0] = op1(g, "neg", dy);
}

/* d a^b = b a^(b-1) da + a^b log(a) db. At b = 0 the first is 0, whatever a; where a <= 0 the second is taken as 0. */
GRAD(pow) {
    Node *a = n->in[0], *b = n->in[1];
    double exponent;
    if (graph_constant_value(b, &exponent)) {
        Node *slope = scale(g, op2(g, "pow", a, graph_constant(g, exponent - 1)), exponent);
        din[0] = exponent == 0 ? NULL : mul(g, dy, slope);
        return;
    }
    Node *slope = mul(g, b, op2(g, "pow", a, plus(g, b, -1)));
    din[0] = mul(g, dy, masked(g, compare(g, "ne", b, 0), slope));
    din[1] = mul(g, dy, masked(g, compare(g, "gt", a, 0), mul(g, n, op1(g, "log", a))));
}

GRAD(maximum) {
    Node *zero = graph_constant(g, 0), *first = op2(g, "ge", n->in[0], n->in[1]);
    din[0] = select(g, first, dy, zero);
    din[1] = select(g, first, zero, dy);
}

GRAD(minimum) {
    Node *zero = graph_constant(g, 0), *first = op2(g, "le", n->in[0], n->in[1]);
    din[0] = select(g, first, dy, zero);
    din[1] = select(g, first, zero, dy);
}

RANGE(add, range_sum(n->in[0]->range, n->in[1]->range))
RANGE(sub, range_difference(n->in[0]->range, n->in[1]->range))
RANGE(mul, range_product(n->in[0]->range, n->in[1]->range))
RANGE(neg, range_difference(range_of_number(0), n->in[0]->range))

FOLD(add, in[0] + in[1])
FOLD(sub, in[0] - in[1])
FOLD(mul, in[0] * in[1])
FOLD(div, in[0] / in[1])
FOLD(neg, -in[0])
FOLD(pow, pow(in[0], in[1]))
FOLD(maximum, fmax(in[0], in[1]))
FOLD(minimum, fmin(in[0], in[1]))

TO_ONNX(add) {
    OnnxValue stack = onnx_stack(o, n);
    return stack.name ? stack : onnx_map(o, n, n->op->onnx);
}

TO_ONNX(div) {
    const Node *shift = softmax_shift(n);
    if (!shift)
        return onnx_map(o, n, n->op->onnx);
    OnnxValue x = onnx_operand_any(o, shift, 0);
    const int axis = onnx_axis(&x, __builtin_ctz(n->in[1]->attr.axes));
    return onnx_like(x, onnx_node(o, "Softmax", 1, &x.name, 1, &ONNX_AXIS(axis)));
}

const OpDef op_add = {
    .name = "add",
    .cls = OP_MAP,
    .flags = OP_COMMUTES | OP_CHEAP,
    .arity = 2,
    .doc = "a + b",
    .example = "y = x + 1",
    .infer = infer_number,
    .range = range_add,
    .grad = grad_add,
    .simplify = simplify_add,
    .c = "$0 + $1",
    .prec = PREC_SUM,
    .fold = fold_add,
    .onnx = "Add($0, $1)",
    .to_onnx = to_onnx_add,
};

const OpDef op_sub = {
    .name = "sub",
    .cls = OP_MAP,
    .flags = OP_CHEAP,
    .arity = 2,
    .doc = "a - b",
    .example = "y = 1 - x",
    .infer = infer_number,
    .range = range_sub,
    .grad = grad_sub,
    .simplify = simplify_sub,
    .c = "$0 - $1",
    .prec = PREC_SUM,
    .fold = fold_sub,
    .onnx = "Sub($0, $1)",
};

const OpDef op_mul = {
    .name = "mul",
    .cls = OP_MAP,
    .flags = OP_COMMUTES | OP_CHEAP | OP_MULTIPLIES,
    .arity = 2,
    .doc = "a * b",
    .example = "y = x * x",
    .infer = infer_number,
    .range = range_mul,
    .grad = grad_mul,
    .simplify = simplify_mul,
    .c = "$0 * $1",
    .prec = PREC_PRODUCT,
    .fold = fold_mul,
    .onnx = "Mul($0, $1)",
};

const OpDef op_div = {
    .name = "div",
    .cls = OP_MAP,
    .flags = OP_CHEAP | OP_REAL,
    .arity = 2,
    .doc = "a / b, a real number for integers too. A divisor that is a constant, or broadcast, is inverted once and "
           "multiplied with: the result is within one unit in the last place.",
    .example = "y = x / 255",
    .infer = infer_real,
    .grad = grad_div,
    .simplify = simplify_div,
    .c = "$0 / $1",
    .prec = PREC_PRODUCT,
    .fold = fold_div,
    .onnx = "Div($0, $1)",
    .to_onnx = to_onnx_div,
};

const OpDef op_neg = {
    .name = "neg",
    .cls = OP_MAP,
    .flags = OP_CHEAP,
    .arity = 1,
    .doc = "-x",
    .example = "y = -x",
    .infer = infer_number,
    .range = range_neg,
    .grad = grad_neg,
    .simplify = simplify_neg,
    .c = "-$0",
    .prec = PREC_UNARY,
    .fold = fold_neg,
    .onnx = "Neg($0)",
};

const OpDef op_pow = {
    .name = "pow",
    .cls = OP_MAP,
    .flags = OP_REAL,
    .arity = 2,
    .doc = "a to the power b. The gradient of b is 0 where a <= 0.",
    .example = "y = pow(x, 3)",
    .infer = infer_real,
    .grad = grad_pow,
    .simplify = simplify_pow,
    .c = "pow($0, $1)",
    .prec = PREC_PRIMARY,
    .fold = fold_pow,
    .onnx = "Pow($0, $1)",
    .signature = "a, b",
};

const OpDef op_maximum = {
    .name = "maximum",
    .cls = OP_MAP,
    .flags = OP_CHEAP | OP_REAL,
    .arity = 2,
    .doc = "The larger of a and b. Where they are equal the gradient goes to a.",
    .example = "y = maximum(x, 0.5)",
    .infer = infer_real,
    .grad = grad_maximum,
    .c = "fmax($0, $1)",
    .prec = PREC_PRIMARY,
    .fold = fold_maximum,
    .onnx = "Max($0, $1)",
    .signature = "a, b",
};

const OpDef op_minimum = {
    .name = "minimum",
    .cls = OP_MAP,
    .flags = OP_CHEAP | OP_REAL,
    .arity = 2,
    .doc = "The smaller of a and b. Where they are equal the gradient goes to a.",
    .example = "y = minimum(x, 0.5)",
    .infer = infer_real,
    .grad = grad_minimum,
    .c = "fmin($0, $1)",
    .prec = PREC_PRIMARY,
    .fold = fold_minimum,
    .onnx = "Min($0, $1)",
    .signature = "a, b",
};
