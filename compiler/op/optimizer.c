/* Optimizers: each weight's new value and states as maps of the weight, its gradient and its states. */
#include "op/compose.h"

#include <math.h>

static Node *state_of(Graph *g, int weight, const char *name) {
    return graph_state(g, module_state(g->module, weight, name));
}

static bool is_zero(const Node *scalar) {
    double value;
    return graph_constant_value(scalar, &value) && value == 0;
}

static Node *one_minus(Graph *g, Node *x) {
    return sub(g, graph_constant(g, 1), x);
}

/* A number of the signature: at least 0 and below the limit. */
typedef struct Setting {
    const char *what;
    double limit;
} Setting;

static bool read_settings(Call *call, Optimizer *optimizer, const Setting *settings, int count) {
    bool ok = true;
    for (int k = 0; k < count; k++) {
        optimizer->arg[k] = call_scalar(call, k);
        ok &= optimizer->arg[k] && check_below(call, k, settings[k].what, settings[k].limit);
    }
    return ok;
}

/* ---- sgd ---- */

enum { SGD_RATE, SGD_MOMENTUM, SGD_DECAY, SGD_NUMBERS, SGD_NESTEROV = SGD_NUMBERS };

/* g += decay w;  m = momentum m + g;  w -= rate m,  or with Nesterov w -= rate (g + momentum m) */
static void update_sgd(Graph *g, const Optimizer *o, int weight, Node *gradient) {
    Node *w = graph_weight(g, weight), *direction = gradient;
    if (!is_zero(o->arg[SGD_DECAY]))
        gradient = direction = add(g, gradient, mul(g, o->arg[SGD_DECAY], w));
    if (!is_zero(o->arg[SGD_MOMENTUM])) {
        Node *m = state_of(g, weight, "momentum");
        Node *next = graph_name(add(g, mul(g, o->arg[SGD_MOMENTUM], m), gradient), "momentum");
        direction = o->flag[0] ? add(g, gradient, mul(g, o->arg[SGD_MOMENTUM], next)) : next;
        graph_assign(g, m, next);
    }
    graph_assign(g, w, sub(g, w, mul(g, o->arg[SGD_RATE], direction)));
}

static Value build_sgd(Call *call) {
    static const Setting settings[] = {
        {"the learning rate", INFINITY}, {"momentum", INFINITY}, {"weight decay", INFINITY}};
    Optimizer *sgd = NEW(call->module->arena, Optimizer);
    *sgd = (Optimizer){.update = update_sgd, .src = call->src};
    bool ok = read_settings(call, sgd, settings, SGD_NUMBERS);
    sgd->flag[0] = call_bool(call, SGD_NESTEROV);
    return (Value){.kind = ok ? VALUE_OPTIMIZER : VALUE_ERROR, .optimizer = sgd, .src = call->src};
}

/* ---- adam ---- */

enum { ADAM_RATE, ADAM_BETA1, ADAM_BETA2, ADAM_EPS, ADAM_DECAY, ADAM_NUMBERS };

/* 1 - beta^t, accurate while t is small: -expm1(t log(beta)). */
static Node *bias_correction(Graph *g, Node *beta) {
    Node *power = mul(g, op0(g, "step", (Attr){0}), op1(g, "log", beta));
    Node *correction = op1(g, "neg", op1(g, "expm1", power));
    double value;
    if (correction && graph_constant_value(beta, &value))
        correction->meaning = arena_printf(g->arena, "1 - %g^step", value);
    return correction;
}

/* state = beta state + (1 - beta) value */
static Node *moving_average(Graph *g, int weight, const char *name, Node *beta, Node *value) {
    Node *state = state_of(g, weight, name);
    Node *next = graph_name(add(g, mul(g, beta, state), mul(g, one_minus(g, beta), value)), name);
    graph_assign(g, state, next);
    return next;
}

/* m = beta1 m + (1 - beta1) g;  v = beta2 v + (1 - beta2) g^2
 * w -= rate / (1 - beta1^t) m / (sqrt(v) / sqrt(1 - beta2^t) + eps)
 * Everything that is the same for all elements is computed as a number. */
static Node *adam_step(Graph *g, const Optimizer *o, int weight, Node *w, Node *gradient) {
    Node *m = moving_average(g, weight, "m", o->arg[ADAM_BETA1], gradient);
    Node *v = moving_average(g, weight, "v", o->arg[ADAM_BETA2], mul(g, gradient, gradient));
    Node *rate = graph_name(divide(g, o->arg[ADAM_RATE], bias_correction(g, o->arg[ADAM_BETA1])), "rate");
    Node *spread = op1(g, "sqrt", bias_correction(g, o->arg[ADAM_BETA2]));
    Node *correction = graph_name(divide(g, graph_constant(g, 1), spread), "correction");
    Node *deviation = graph_name(add(g, mul(g, op1(g, "sqrt", v), correction), o->arg[ADAM_EPS]), "deviation");
    return sub(g, w, mul(g, rate, divide(g, m, deviation)));
}

/* Decay as part of the gradient. */
static void update_adam(Graph *g, const Optimizer *o, int weight, Node *gradient) {
    Node *w = graph_weight(g, weight);
    if (!is_zero(o->arg[ADAM_DECAY]))
        gradient = add(g, gradient, mul(g, o->arg[ADAM_DECAY], w));
    graph_assign(g, w, adam_step(g, o, weight, w, gradient));
}

/* Decay apart from the gradient: w first shrinks by 1 - rate decay. */
static void update_adamw(Graph *g, const Optimizer *o, int weight, Node *gradient) {
    Node *w = graph_weight(g, weight), *shrunk = w;
    if (!is_zero(o->arg[ADAM_DECAY]))
        shrunk = mul(g, w, one_minus(g, mul(g, o->arg[ADAM_RATE], o->arg[ADAM_DECAY])));
    graph_assign(g, w, adam_step(g, o, weight, shrunk, gradient));
}

typedef void Update(Graph *g, const Optimizer *o, int weight, Node *gradient);

static Value adam_value(Call *call, Update *update) {
    static const Setting settings[] = {
        {"the learning rate", INFINITY}, {"beta1", 1}, {"beta2", 1}, {"eps", INFINITY}, {"weight decay", INFINITY}};
    Optimizer *adam = NEW(call->module->arena, Optimizer);
    *adam = (Optimizer){.update = update, .src = call->src};
    bool ok = read_settings(call, adam, settings, ADAM_NUMBERS);
    return (Value){.kind = ok ? VALUE_OPTIMIZER : VALUE_ERROR, .optimizer = adam, .src = call->src};
}

static Value build_adam(Call *call) {
    return adam_value(call, update_adam);
}

static Value build_adamw(Call *call) {
    return adam_value(call, update_adamw);
}

const OpDef op_sgd = {
    .name = "sgd",
    .cls = OP_LIBRARY,
    .doc = "Optimizer: g += weight_decay w; m = momentum m + g; w -= lr m. With nesterov: w -= lr (g + momentum m).",
    .example = "optimizer = sgd(0.1, momentum = 0.9)",
    .signature = "lr: number, momentum: number = 0, weight_decay: number = 0, nesterov: bool = false",
    .build = build_sgd,
};

const OpDef op_adam = {
    .name = "adam",
    .cls = OP_LIBRARY,
    .doc = "Optimizer: g += weight_decay w; m and v are moving averages of g and g^2; "
           "w -= lr / (1 - beta1^t) m / (sqrt(v / (1 - beta2^t)) + eps).",
    .example = "optimizer = adam(0.001)",
    .signature = "lr: number = 0.001, beta1: number = 0.9, beta2: number = 0.999, eps: number = 1e-8, "
                 "weight_decay: number = 0",
    .build = build_adam,
};

const OpDef op_adamw = {
    .name = "adamw",
    .cls = OP_LIBRARY,
    .doc = "Optimizer: Adam, with w shrunk by 1 - lr weight_decay instead of a decay in the gradient.",
    .example = "optimizer = adamw(0.001)",
    .signature = "lr: number = 0.001, beta1: number = 0.9, beta2: number = 0.999, eps: number = 1e-8, "
                 "weight_decay: number = 0.01",
    .build = build_adamw,
};
