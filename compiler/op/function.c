/* Functions of one number. */
#include "op/compose.h"

#include <math.h>

GRAD(exp) {
    din[0] = mul(g, dy, n);
}

GRAD(expm1) {
    din[0] = mul(g, dy, plus(g, n, 1));
}

GRAD(log) {
    din[0] = divide(g, dy, n->in[0]);
}

GRAD(log1p) {
    din[0] = divide(g, dy, plus(g, n->in[0], 1));
}

GRAD(sqrt) {
    din[0] = divide(g, scale(g, dy, 0.5), n);
}

GRAD(abs) {
    din[0] = mul(g, dy, op1(g, "sign", n->in[0]));
}

/* 2 / sqrt(pi) exp(-x^2) */
GRAD(erf) {
    Node *bell = op1(g, "exp", op1(g, "neg", mul(g, n->in[0], n->in[0])));
    din[0] = mul(g, dy, scale(g, bell, 1.1283791670955126));
}

FOLD(exp, exp(in[0]))
FOLD(expm1, expm1(in[0]))
FOLD(log, log(in[0]))
FOLD(log1p, log1p(in[0]))
FOLD(sqrt, sqrt(in[0]))
FOLD(abs, fabs(in[0]))
FOLD(sign, (in[0] > 0) - (in[0] < 0))
FOLD(erf, erf(in[0]))
FOLD(floor, floor(in[0]))
const OpDef op_exp = {
    FUNCTION(exp),
    .doc = "e to the power x.",
    .example = "y = exp(x)",
    .grad = grad_exp,
    .c = "exp($0)",
};

const OpDef op_expm1 = {
    FUNCTION(expm1),
    .doc = "exp(x) - 1, accurate near 0.",
    .example = "y = expm1(x)",
    .grad = grad_expm1,
    .c = "expm1($0)",
};

const OpDef op_log = {
    FUNCTION(log),
    .doc = "The natural logarithm.",
    .example = "y = log(x)",
    .grad = grad_log,
    .c = "log($0)",
};

const OpDef op_log1p = {
    FUNCTION(log1p),
    .doc = "log(1 + x), accurate near 0.",
    .example = "y = log1p(x)",
    .grad = grad_log1p,
    .c = "log1p($0)",
};

const OpDef op_sqrt = {
    FUNCTION(sqrt),
    .doc = "The square root.",
    .example = "y = sqrt(x)",
    .grad = grad_sqrt,
    .c = "sqrt($0)",
};

const OpDef op_abs = {
    FUNCTION(abs),
    .flags = OP_REAL | OP_CHEAP,
    .doc = "|x|. The gradient at 0 is 0.",
    .example = "y = abs(x)",
    .grad = grad_abs,
    .c = "fabs($0)",
};

const OpDef op_sign = {
    FUNCTION(sign),
    .flags = OP_REAL | OP_CHEAP | OP_NO_GRAD,
    .doc = "-1, 0 or 1.",
    .example = "y = sign(x)",
    .c = "sign($0)",
};

const OpDef op_erf = {
    FUNCTION(erf),
    .doc = "The error function, 2 / sqrt(pi) times the integral of exp(-t^2) from 0 to x.",
    .example = "y = erf(x)",
    .grad = grad_erf,
    .c = "erf($0)",
};

const OpDef op_floor = {
    FUNCTION(floor),
    .flags = OP_REAL | OP_CHEAP | OP_NO_GRAD,
    .doc = "The largest integer not above x.",
    .example = "y = floor(x)",
    .c = "floor($0)",
};

