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

GRAD(sin) {
    din[0] = mul(g, dy, op1(g, "cos", n->in[0]));
}

GRAD(cos) {
    din[0] = op1(g, "neg", mul(g, dy, op1(g, "sin", n->in[0])));
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
FOLD(round, rint(in[0]))
FOLD(sin, sin(in[0]))
FOLD(cos, cos(in[0]))

/* Near 0 both lose their digits as they are written: exp(x) - 1 = tanh(x / 2) (exp(x) + 1), log(1 + x) = 2 atanh(x / (x + 2)). */
#define ONNX_EXPM1 "Mul(Tanh(Mul($0, 0.5)), Add(Exp($0), 1))"
#define ONNX_LOG1P "Where(Less(Abs($0), 0.5), Mul(Atanh(Div($0, Add($0, 2))), 2), Log(Add($0, 1)))"

/*       name, kind, title, gradient, flags, in C, near it, in ONNX, meaning */
FUNCTION(exp, KIND_FUNCTION, NULL, grad_exp, 0, "exp($0)", "near_exp($0)", "Exp($0)", "e to the power x.");
FUNCTION(expm1, KIND_FUNCTION, NULL, grad_expm1, 0, "expm1($0)", NULL, ONNX_EXPM1, "exp(x) - 1, accurate near 0.");
FUNCTION(log, KIND_FUNCTION, NULL, grad_log, 0, "log($0)", NULL, "Log($0)", "The natural logarithm.");
FUNCTION(log1p, KIND_FUNCTION, NULL, grad_log1p, 0, "log1p($0)", NULL, ONNX_LOG1P, "log(1 + x), accurate near 0.");
FUNCTION(sqrt, KIND_FUNCTION, NULL, grad_sqrt, OP_OWN_ON_GPU, "sqrt($0)", "root($0)", "Sqrt($0)", "The square root.");
FUNCTION(abs, KIND_FUNCTION, NULL, grad_abs, OP_CHEAP, "fabs($0)", NULL, "Abs($0)", "|x|. The gradient at 0 is 0.");
FUNCTION(sign, KIND_FUNCTION, NULL, NULL, OP_CHEAP | OP_NO_GRAD, "sign($0)", NULL, "Sign($0)", "-1, 0 or 1.");
FUNCTION(erf, KIND_FUNCTION, NULL, grad_erf, 0, "erf($0)", NULL, "Erf($0)",
         "The error function, 2 / sqrt(pi) times the integral of exp(-t^2) from 0 to x.");
FUNCTION(floor, KIND_FUNCTION, NULL, NULL, OP_CHEAP | OP_NO_GRAD, "floor($0)", NULL, "Floor($0)",
         "The largest integer not above x.");
FUNCTION(round, KIND_FUNCTION, NULL, NULL, OP_CHEAP | OP_NO_GRAD, "rint($0)", NULL, "Round($0)",
         "The integer nearest to x; of two equally near ones, the even one.");
FUNCTION(sin, KIND_FUNCTION, NULL, grad_sin, 0, "sin($0)", NULL, "Sin($0)", "The sine of an angle in radians.");
FUNCTION(cos, KIND_FUNCTION, NULL, grad_cos, 0, "cos($0)", NULL, "Cos($0)", "The cosine of an angle in radians.");
