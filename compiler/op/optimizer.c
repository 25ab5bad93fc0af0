/* Optimizers: each weight's new value and states as maps of the weight, its gradient and its states. */
#include "op/optimizer.h"

#include "op/compose.h"

#include <math.h>

static Node *state_of(Graph *g, int weight, const char *name) {
    return graph_state(g, module_state(g->module, weight, name));
}

void update_assign(Graph *g, const Optimizer *o, Node *leaf, Node *value) {
    graph_assign(g, leaf, o->due ? select(g, o->due, value, leaf) : value);
}

static bool is_zero(const Node *scalar) {
    double value;
    return graph_constant_value(scalar, &value) && value == 0;
}

static Node *one_minus(Graph *g, Node *x) {
    return sub(g, graph_constant(g, 1), x);
}

/* state = beta state + (1 - beta) value */
static Node *moving_average(Graph *g, const Optimizer *o, int weight, const char *name, Node *beta, Node *value) {
    Node *state = state_of(g, weight, name);
    Node *next = graph_name(add(g, mul(g, beta, state), mul(g, one_minus(g, beta), value)), name);
    update_assign(g, o, state, next);
    return next;
}

/* Weight decay as part of the gradient: g + decay w. */
static Node *decayed_gradient(Graph *g, const Optimizer *o, Node *w, Node *gradient) {
    Node *decay = o->arg[o->decay];
    return is_zero(decay) ? gradient : add(g, gradient, mul(g, decay, w));
}

/* Weight decay apart from the gradient: w first shrinks by 1 - rate decay. */
static Node *shrunk_weight(Graph *g, const Optimizer *o, Node *w, Node *rate) {
    Node *decay = o->arg[o->decay];
    return is_zero(decay) ? w : mul(g, w, one_minus(g, mul(g, rate, decay)));
}

/* What each takes beside its own, last in its signature. */
enum { OWN_WEIGHTS, OWN_LOSS, OWN_EVERY, OWN_AT, OWN_COUNT, MOST_TURNS = 1024 };
#define OF_WEIGHTS ", weights: patterns = none, loss: loss = none, every: size = none, at: size = none"

/* In which of the training's updates it makes one; false after a user error. */
static bool read_turn(Call *call, int first, Optimizer *optimizer) {
    const bool turns = call->args[first + OWN_EVERY].kind != VALUE_NONE;
    const bool placed = call->args[first + OWN_AT].kind != VALUE_NONE;
    optimizer->every = turns ? call_int(call, first + OWN_EVERY, 1, MOST_TURNS) : 1;
    optimizer->at = optimizer->every;
    if (placed && !turns)
        call_error(call, first + OWN_AT, "'at' says which of so many updates is its own; say how many: every = 2");
    else if (placed && optimizer->every >= 1)
        optimizer->at = call_int(call, first + OWN_AT, 1, optimizer->every);
    return (turns || !placed) && optimizer->every >= 1 && optimizer->at >= 1;
}

/* The optimizer with the numbers of the call, which come first in the signature, and the condition after them if there
 * is one. */
static Value optimizer_value(Call *call, Optimizer optimizer, int count) {
    bool ok = true;
    for (int k = 0; k < count; k++)
        ok &= (optimizer.arg[k] = call_scalar(call, k)) != NULL;
    int shared = call->count - OWN_COUNT;
    optimizer.flag = shared > count && call_bool(call, count);
    optimizer.weights = call->args[shared + OWN_WEIGHTS];
    optimizer.loss = call->args[shared + OWN_LOSS];
    ok &= read_turn(call, shared, &optimizer);
    optimizer.name = call->op->name;
    optimizer.src = call->src;
    Optimizer *result = NEW(call->module->arena, Optimizer);
    *result = optimizer;
    return (Value){.kind = ok ? VALUE_OPTIMIZER : VALUE_ERROR, .optimizer = result, .src = call->src};
}

/* ---- sgd ---- */

enum { SGD_RATE, SGD_MOMENTUM, SGD_DECAY, SGD_NUMBERS };

/* g += decay w;  m = momentum m + g;  w -= rate m,  or with Nesterov w -= rate (g + momentum m) */
static Node *update_sgd(Graph *g, const Optimizer *o, int weight, Node *gradient) {
    Node *w = graph_weight(g, weight), *direction = gradient = decayed_gradient(g, o, w, gradient);
    if (!is_zero(o->arg[SGD_MOMENTUM])) {
        Node *m = state_of(g, weight, "momentum");
        Node *next = graph_name(add(g, mul(g, o->arg[SGD_MOMENTUM], m), gradient), "momentum");
        direction = o->flag ? add(g, gradient, mul(g, o->arg[SGD_MOMENTUM], next)) : next;
        update_assign(g, o, m, next);
    }
    return sub(g, w, mul(g, o->arg[SGD_RATE], direction));
}

static Value build_sgd(Call *call) {
    return optimizer_value(call, (Optimizer){.update = update_sgd, .decay = SGD_DECAY}, SGD_NUMBERS);
}

/* ---- adam ---- */

enum { ADAM_RATE, ADAM_BETA1, ADAM_BETA2, ADAM_EPS, ADAM_DECAY, ADAM_NUMBERS };

/* 1 - beta^t, accurate while t is small: -expm1(t log(beta)). */
static Node *bias_correction(Graph *g, const Optimizer *o, Node *beta, const char *log_name) {
    Node *rate = op1(g, "log", beta);
    if (rate)
        rate->hint = log_name;
    Node *power = mul(g, o->number, rate);
    Node *correction = op1(g, "neg", op1(g, "expm1", power));
    double value;
    if (correction && !o->due && graph_constant_value(beta, &value))
        correction->meaning = arena_printf(g->arena, "1 - %g^step", value);
    return correction;
}

/* m = beta1 m + (1 - beta1) g;  v = beta2 v + (1 - beta2) g^2
 * w -= rate / (1 - beta1^t) m / (sqrt(v) / sqrt(1 - beta2^t) + eps)
 * Everything that is the same for all elements is computed as a number. */
static Node *adam_step(Graph *g, const Optimizer *o, int weight, Node *w, Node *gradient) {
    Node *m = moving_average(g, o, weight, "m", o->arg[ADAM_BETA1], gradient);
    Node *v = moving_average(g, o, weight, "v", o->arg[ADAM_BETA2], mul(g, gradient, gradient));
    Node *rate =
        graph_name(divide(g, o->arg[ADAM_RATE], bias_correction(g, o, o->arg[ADAM_BETA1], "log_beta1")), "rate");
    Node *spread = op1(g, "sqrt", bias_correction(g, o, o->arg[ADAM_BETA2], "log_beta2"));
    Node *correction = graph_name(divide(g, graph_constant(g, 1), spread), "correction");
    Node *deviation = graph_name(add(g, mul(g, op1(g, "sqrt", v), correction), o->arg[ADAM_EPS]), "deviation");
    return sub(g, w, mul(g, rate, divide(g, m, deviation)));
}

static Node *update_adam(Graph *g, const Optimizer *o, int weight, Node *gradient) {
    Node *w = graph_weight(g, weight);
    return adam_step(g, o, weight, w, decayed_gradient(g, o, w, gradient));
}

static Node *update_adamw(Graph *g, const Optimizer *o, int weight, Node *gradient) {
    return adam_step(g, o, weight, shrunk_weight(g, o, graph_weight(g, weight), o->arg[ADAM_RATE]), gradient);
}

static Value build_adam(Call *call) {
    return optimizer_value(call, (Optimizer){.update = update_adam, .decay = ADAM_DECAY}, ADAM_NUMBERS);
}

static Value build_adamw(Call *call) {
    return optimizer_value(call, (Optimizer){.update = update_adamw, .decay = ADAM_DECAY}, ADAM_NUMBERS);
}

/* ---- rmsprop ---- */

enum { RMSPROP_RATE, RMSPROP_RHO, RMSPROP_EPS, RMSPROP_MOMENTUM, RMSPROP_DECAY, RMSPROP_NUMBERS };

/* g += decay w;  v = rho v + (1 - rho) g^2;  b = momentum b + g / (sqrt(v) + eps);  w -= rate b
 * Centred: a = rho a + (1 - rho) g, and v - a^2, the variance, stands for v. */
static Node *update_rmsprop(Graph *g, const Optimizer *o, int weight, Node *gradient) {
    Node *w = graph_weight(g, weight), *rho = o->arg[RMSPROP_RHO];
    gradient = decayed_gradient(g, o, w, gradient);
    Node *v = moving_average(g, o, weight, "v", rho, mul(g, gradient, gradient));
    if (o->flag) {
        Node *mean = moving_average(g, o, weight, "mean", rho, gradient);
        v = op2(g, "maximum", sub(g, v, mul(g, mean, mean)), graph_constant(g, 0));
    }
    Node *deviation = graph_name(add(g, op1(g, "sqrt", v), o->arg[RMSPROP_EPS]), "deviation");
    Node *direction = divide(g, gradient, deviation);
    if (!is_zero(o->arg[RMSPROP_MOMENTUM])) {
        Node *m = state_of(g, weight, "momentum");
        direction = graph_name(add(g, mul(g, o->arg[RMSPROP_MOMENTUM], m), direction), "momentum");
        update_assign(g, o, m, direction);
    }
    return sub(g, w, mul(g, o->arg[RMSPROP_RATE], direction));
}

static Value build_rmsprop(Call *call) {
    Optimizer rmsprop = {.update = update_rmsprop, .decay = RMSPROP_DECAY};
    return optimizer_value(call, rmsprop, RMSPROP_NUMBERS);
}

/* ---- adagrad ---- */

enum { ADAGRAD_RATE, ADAGRAD_EPS, ADAGRAD_DECAY, ADAGRAD_NUMBERS };

/* g += decay w;  s = s + g^2;  w -= rate g / (sqrt(s) + eps) */
static Node *update_adagrad(Graph *g, const Optimizer *o, int weight, Node *gradient) {
    Node *w = graph_weight(g, weight), *sum = state_of(g, weight, "sum");
    gradient = decayed_gradient(g, o, w, gradient);
    Node *next = graph_name(add(g, sum, mul(g, gradient, gradient)), "sum");
    update_assign(g, o, sum, next);
    Node *deviation = graph_name(add(g, op1(g, "sqrt", next), o->arg[ADAGRAD_EPS]), "deviation");
    return sub(g, w, mul(g, o->arg[ADAGRAD_RATE], divide(g, gradient, deviation)));
}

static Value build_adagrad(Call *call) {
    return optimizer_value(call, (Optimizer){.update = update_adagrad, .decay = ADAGRAD_DECAY}, ADAGRAD_NUMBERS);
}

/* ---- lion ---- */

enum { LION_RATE, LION_BETA1, LION_BETA2, LION_DECAY, LION_NUMBERS };

/* w -= rate (sign(beta1 m + (1 - beta1) g) + decay w);  m = beta2 m + (1 - beta2) g */
static Node *update_lion(Graph *g, const Optimizer *o, int weight, Node *gradient) {
    Node *m = state_of(g, weight, "m"), *beta1 = o->arg[LION_BETA1];
    Node *mixed = add(g, mul(g, beta1, m), mul(g, one_minus(g, beta1), gradient));
    Node *direction = graph_name(op1(g, "sign", mixed), "direction");
    moving_average(g, o, weight, "m", o->arg[LION_BETA2], gradient);
    return sub(g, shrunk_weight(g, o, graph_weight(g, weight), o->arg[LION_RATE]),
               mul(g, o->arg[LION_RATE], direction));
}

static Value build_lion(Call *call) {
    return optimizer_value(call, (Optimizer){.update = update_lion, .decay = LION_DECAY}, LION_NUMBERS);
}

/* ---- matrices ---- */

/* [rows, columns]: the first axis, and all others as one. */
static Node *as_matrix(Graph *g, Node *x) {
    Type shape = {.dtype = DT_F32, .rank = 2, .dim = {x->type.dim[0], type_extent(&x->type, 1, x->type.rank)}};
    return graph_reshape(g, x, &shape);
}

/* First of each row, then of their sums. */
static Node *sum_of_squares(Graph *g, Node *x) {
    Node *squares = mul(g, x, x);
    if (x->type.rank > 1)
        squares = graph_reduce(g, "sum", squares, 1u << 1);
    return squares->type.rank ? graph_reduce(g, "sum", squares, 1) : squares;
}

/* Of a vector or a matrix. */
static Node *root_mean_square(Graph *g, Node *x) {
    Node *factor = graph_mean_factor(g, (double)type_elements(&x->type));
    return op1(g, "sqrt", mul(g, sum_of_squares(g, x), factor));
}

/* ---- muon ---- */

enum { MUON_RATE, MUON_MOMENTUM, MUON_DECAY, MUON_NUMBERS };

/* X = a X + b A X + c A^2 X with A = X X^T: each singular value s of X becomes a s + b s^3 + c s^5. Of a tall X the same with
 * A = X^T X on the right, which is smaller. The coefficients are Keller Jordan's: steepest at 0, between 0.7 and 1.2 around 1. */
static Node *newton_schulz_step(Graph *g, Node *x, bool tall) {
    const double a = 3.4445, b = -4.7750, c = 2.0315;
    Node *gram = graph_matmul(g, x, x, tall, !tall);
    Node *square = graph_matmul(g, gram, gram, false, false);
    Node *polynomial = add(g, scale(g, gram, b), scale(g, square, c));
    Node *product = tall ? graph_matmul(g, x, polynomial, false, false) : graph_matmul(g, polynomial, x, false, false);
    return add(g, scale(g, x, a), product);
}

/* About U V^T of the singular value decomposition x = U S V^T. */
static Node *orthogonal(Graph *g, Node *x, int64_t steps) {
    bool tall = x->type.dim[0] > x->type.dim[1];
    Node *length = op1(g, "sqrt", sum_of_squares(g, x));
    x = graph_name(divide(g, x, plus(g, length, 1e-7)), "direction");
    for (int64_t i = 0; i < steps; i++)
        x = graph_name(newton_schulz_step(g, x, tall), "orthogonal");
    return x;
}

/* The weight in the length of a matrix whose rows have length 1: sqrt(rows) w / |w|. */
static Node *in_unit_rows(Graph *g, Node *w) {
    Node *length = op1(g, "sqrt", sum_of_squares(g, as_matrix(g, w))), *least = graph_constant(g, 1e-7);
    Node *divisor = graph_name(op2(g, "maximum", length, least), "length");
    return mul(g, w, divide(g, graph_constant(g, sqrt((double)w->type.dim[0])), divisor));
}

/* w = sqrt(rows) w / |w| if it keeps that length
 * m = momentum m + (1 - momentum) g;  u = m,  or with Nesterov  momentum m + (1 - momentum) g
 * w -= rate (decay w + sqrt(max(1, rows / columns)) orthogonal(u)) */
static Node *update_muon(Graph *g, const Optimizer *o, int weight, Node *gradient) {
    Node *w = graph_weight(g, weight), *beta = o->arg[MUON_MOMENTUM];
    Node *next = moving_average(g, o, weight, "momentum", beta, gradient);
    Node *u = o->flag ? add(g, mul(g, beta, next), mul(g, one_minus(g, beta), gradient)) : next;
    Node *matrix = as_matrix(g, u);
    double shape = (double)matrix->type.dim[0] / (double)matrix->type.dim[1];
    Node *direction = orthogonal(g, matrix, o->iterations);
    if (shape > 1)
        direction = scale(g, direction, sqrt(shape));
    Node *step = mul(g, o->arg[MUON_RATE], graph_reshape(g, direction, &w->type));
    w = o->keeps_length ? in_unit_rows(g, w) : w;
    return sub(g, shrunk_weight(g, o, w, o->arg[MUON_RATE]), step);
}

static Value build_muon(Call *call) {
    int64_t iterations = call_int(call, MUON_NUMBERS + 1, 1, 20);
    Optimizer muon = {
        .update = update_muon, .decay = MUON_DECAY, .iterations = iterations, .matrices = true, .whole = true};
    muon.keeps_length = call_bool(call, MUON_NUMBERS + 2);
    Value value = optimizer_value(call, muon, MUON_NUMBERS);
    return iterations < 1 ? value_error() : value;
}

/* ---- adafactor ---- */

enum { ADAFACTOR_RATE, ADAFACTOR_POWER, ADAFACTOR_EPS, ADAFACTOR_CLIP, ADAFACTOR_DECAY, ADAFACTOR_NUMBERS };

/* The mean over the axis of the squares of a matrix: state += t^-power (mean - state). */
static Node *mean_of_squares(Graph *g, const Optimizer *o, int weight, const char *name, Node *squares, int axis) {
    Type type = {.dtype = DT_F32, .rank = 1, .dim = {squares->type.dim[1 - axis]}};
    Node *state = graph_state(g, module_state_like(g->module, weight, name, &type));
    Node *factor = graph_mean_factor(g, (double)squares->type.dim[axis]);
    Node *mean = mul(g, graph_reduce(g, "sum", squares, 1u << axis), factor);
    Node *part = op2(g, "pow", o->number, op1(g, "neg", o->arg[ADAFACTOR_POWER]));
    Node *next = graph_name(add(g, state, mul(g, part, sub(g, mean, state))), name);
    update_assign(g, o, state, next);
    return next;
}

/* The gradient by its deviation. Of a matrix r c^T / mean(r) stands for the moving average of the squares. */
static Node *factored(Graph *g, const Optimizer *o, int weight, Node *x) {
    const double least = 1e-30;
    Node *squares = plus(g, mul(g, x, x), least);
    if (x->type.rank == 1) {
        Node *row = insert_axis(g, squares, 0);
        return divide(g, x, op1(g, "sqrt", mean_of_squares(g, o, weight, "v", row, 0)));
    }
    Node *rows = mean_of_squares(g, o, weight, "rows", squares, 1);
    Node *columns = mean_of_squares(g, o, weight, "columns", squares, 0);
    Node *mean = mul(g, graph_reduce(g, "sum", rows, 1), graph_mean_factor(g, (double)rows->type.dim[0]));
    Node *share = op1(g, "sqrt", divide(g, rows, mean));
    return divide(g, divide(g, x, insert_axis(g, share, 1)), op1(g, "sqrt", columns));
}

/* u = g / deviation;  u /= max(1, rms(u) / clip);  w -= max(eps, rms(w)) min(rate, 1 / sqrt(t)) u, after the decay */
static Node *update_adafactor(Graph *g, const Optimizer *o, int weight, Node *gradient) {
    Node *w = graph_weight(g, weight);
    bool vector = w->type.rank < 2;
    Type line = {.dtype = DT_F32, .rank = 1, .dim = {type_elements(&w->type)}};
    Node *x = vector ? graph_reshape(g, gradient, &line) : as_matrix(g, gradient);
    Node *values = vector ? graph_reshape(g, w, &line) : as_matrix(g, w);
    Node *u = graph_name(factored(g, o, weight, x), "direction");
    Node *excess = op2(g, "maximum", divide(g, root_mean_square(g, u), o->arg[ADAFACTOR_CLIP]), graph_constant(g, 1));
    Node *scale = op2(g, "maximum", root_mean_square(g, values), o->arg[ADAFACTOR_EPS]);
    Node *fall = divide(g, graph_constant(g, 1), op1(g, "sqrt", o->number));
    Node *rate = mul(g, scale, op2(g, "minimum", o->arg[ADAFACTOR_RATE], fall));
    Node *step = graph_reshape(g, mul(g, divide(g, rate, excess), u), &w->type);
    return sub(g, shrunk_weight(g, o, w, o->arg[ADAFACTOR_RATE]), step);
}

static Value build_adafactor(Call *call) {
    Optimizer adafactor = {.update = update_adafactor, .decay = ADAFACTOR_DECAY, .whole = true};
    return optimizer_value(call, adafactor, ADAFACTOR_NUMBERS);
}

/* ---- documentation ---- */

const OpDef op_sgd = {
    .name = "sgd",
    .cls = OP_LIBRARY,
    .kind = KIND_OPTIMIZER,
    .title = "SGD",
    .doc = "Optimizer: g += weight_decay w; m = momentum m + g; w -= lr m. With nesterov: w -= lr (g + momentum m).",
    .example = "optimizer = sgd(0.1, momentum = 0.9)",
    .signature = "lr: number >= 0 = 0.01, momentum: number in [0, 1) = 0, weight_decay: number >= 0 = 0, nesterov: "
                 "bool = false" OF_WEIGHTS,
    .build = build_sgd,
};

const OpDef op_adam = {
    .name = "adam",
    .cls = OP_LIBRARY,
    .kind = KIND_OPTIMIZER,
    .doc = "Optimizer: g += weight_decay w; m and v are moving averages of g and g^2; "
           "w -= lr / (1 - beta1^t) m / (sqrt(v / (1 - beta2^t)) + eps).",
    .example = "optimizer = adam(0.001)",
    .signature = "lr: number >= 0 = 0.001, beta1: number in [0, 1) = 0.9, beta2: number in [0, 1) = 0.999, eps: number "
                 "> 0 = 1e-8, "
                 "weight_decay: number >= 0 = 0" OF_WEIGHTS,
    .build = build_adam,
};

const OpDef op_adamw = {
    .name = "adamw",
    .cls = OP_LIBRARY,
    .kind = KIND_OPTIMIZER,
    .title = "AdamW",
    .doc = "Optimizer: Adam, with w shrunk by 1 - lr weight_decay instead of a decay in the gradient.",
    .example = "optimizer = adamw(0.001)",
    .signature = "lr: number >= 0 = 0.001, beta1: number in [0, 1) = 0.9, beta2: number in [0, 1) = 0.999, eps: number "
                 "> 0 = 1e-8, "
                 "weight_decay: number >= 0 = 0.01" OF_WEIGHTS,
    .build = build_adamw,
};

const OpDef op_rmsprop = {
    .name = "rmsprop",
    .cls = OP_LIBRARY,
    .kind = KIND_OPTIMIZER,
    .title = "RMSProp",
    .doc =
        "Optimizer: g += weight_decay w; v is the moving average of g^2, with the factor rho; "
        "d = g / (sqrt(v) + eps); b = momentum b + d; w -= lr b. With centered, v - a^2 stands in place of v, where a "
        "is the moving average of g.",
    .example = "optimizer = rmsprop(0.001, momentum = 0.9)",
    .signature = "lr: number >= 0 = 0.01, rho: number in [0, 1) = 0.99, eps: number > 0 = 1e-8, momentum: number in "
                 "[0, 1) = 0, "
                 "weight_decay: number >= 0 = 0, centered: bool = false" OF_WEIGHTS,
    .build = build_rmsprop,
};

const OpDef op_adagrad = {
    .name = "adagrad",
    .cls = OP_LIBRARY,
    .kind = KIND_OPTIMIZER,
    .doc = "Optimizer: g += weight_decay w; s is the sum of g^2 over all steps; w -= lr g / (sqrt(s) + eps).",
    .example = "optimizer = adagrad(0.01)",
    .signature = "lr: number >= 0 = 0.01, eps: number > 0 = 1e-10, weight_decay: number >= 0 = 0" OF_WEIGHTS,
    .build = build_adagrad,
};

const OpDef op_lion = {
    .name = "lion",
    .cls = OP_LIBRARY,
    .kind = KIND_OPTIMIZER,
    .doc = "Optimizer: w -= lr (sign(beta1 m + (1 - beta1) g) + weight_decay w); then m = beta2 m + (1 - beta2) g.",
    .example = "optimizer = lion(1e-4, weight_decay = 0.1)",
    .signature = "lr: number >= 0 = 1e-4, beta1: number in [0, 1) = 0.9, beta2: number in [0, 1) = 0.99, weight_decay: "
                 "number >= 0 = 0" OF_WEIGHTS,
    .build = build_lion,
};

const OpDef op_muon = {
    .name = "muon",
    .cls = OP_LIBRARY,
    .kind = KIND_OPTIMIZER,
    .doc = "Optimizer of matrices, beside another one for the rest: m is the moving average of g with the factor "
           "momentum; u = m, or with nesterov momentum m + (1 - momentum) g; "
           "w -= lr (weight_decay w + sqrt(max(1, rows / columns)) o), where o is u with all singular values near 1: "
           "u / |u| after so many iterations of Newton-Schulz, x = 3.4445 x - 4.775 x x^T x + 2.0315 x x^T x x^T x. A "
           "weight of more than two axes is the matrix of the first and all others. With keep_length, w becomes "
           "sqrt(rows) w / |w| before each step, so that its rows have length 1 on the average: for layers in front of "
           "a norm, to which the length of a weight makes no difference. The products are in the model's precision.",
    .example = "optimizer = [muon(0.02, weights = \"*.weight\"), adamw(0.001)]",
    .signature = "lr: number >= 0 = 0.02, momentum: number in [0, 1) = 0.95, weight_decay: number >= 0 = 0, nesterov: "
                 "bool = true, iterations: size = 5, keep_length: bool = false" OF_WEIGHTS,
    .build = build_muon,
};

const OpDef op_adafactor = {
    .name = "adafactor",
    .cls = OP_LIBRARY,
    .kind = KIND_OPTIMIZER,
    .doc = "Optimizer: of a matrix, r and c are moving averages of the means of g^2 + 1e-30 over each row and each "
           "column, with the factor 1 - t^-beta2_decay, and v = r c^T / mean(r); of a vector, v is that of g^2 itself. "
           "u = g / sqrt(v), u /= max(1, rms(u) / clip); w -= lr weight_decay w + max(eps, rms(w)) min(lr, 1 / "
           "sqrt(t)) u, with the root of the mean of squares as rms. A weight of more than two axes is the matrix of "
           "the first and all others.",
    .example = "optimizer = adafactor()",
    .signature = "lr: number >= 0 = 0.01, beta2_decay: number > 0 = 0.8, eps: number > 0 = 1e-3, clip: number > 0 = 1, "
                 "weight_decay: number >= 0 = 0" OF_WEIGHTS,
    .build = build_adafactor,
};
