/* Initialisers. A rule that needs the fans of the layer is kept by name until the layer resolves it. */
#include "op/compose.h"

#include <math.h>

static Value init_value(Call *call, InitKind kind, double a, double b) {
    bool known = !isnan(a) && !isnan(b);
    return (Value){.kind = known ? VALUE_INIT : VALUE_ERROR, .init = {kind, a, b}, .src = call->src};
}

static Value build_zeros(Call *call) {
    return init_value(call, INIT_ZEROS, 0, 0);
}

static Value build_constant(Call *call) {
    return init_value(call, INIT_CONSTANT, call_number(call, 0), 0);
}

static Value build_uniform(Call *call) {
    double low = call_number(call, 0), high = call_number(call, 1);
    if (low <= high)
        return init_value(call, INIT_UNIFORM, low, high);
    if (low > high)
        call_error(call, 1, "the upper bound is below the lower bound");
    return (Value){.kind = VALUE_ERROR};
}

static Value build_normal(Call *call) {
    return init_value(call, INIT_NORMAL, call_number(call, 0), call_number(call, 1));
}

/* ---- rules that need the fans ---- */

/* The variance that a rule asks for, before gain^2. */
static double variance_default(double fan_in, double fan_out) {
    (void)fan_out;
    return 1 / (3 * fan_in);
}

static double variance_xavier(double fan_in, double fan_out) {
    return 2 / (fan_in + fan_out);
}

static double variance_he(double fan_in, double fan_out) {
    (void)fan_out;
    return 2 / fan_in;
}

typedef struct Rule {
    const char *name;
    InitKind kind;
    double (*variance)(double fan_in, double fan_out);
} Rule;

static const Rule rules[] = {
    {"default", INIT_UNIFORM, variance_default},     {"xavier_uniform", INIT_UNIFORM, variance_xavier},
    {"xavier_normal", INIT_NORMAL, variance_xavier}, {"he_uniform", INIT_UNIFORM, variance_he},
    {"he_normal", INIT_NORMAL, variance_he},         {"dirac", INIT_DIRAC, variance_default},
};

static const Rule *find_rule(const char *name) {
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (!strcmp(rules[i].name, name))
            return &rules[i];
    ICE("no initialiser '%s'", name);
}

/* A uniform distribution on [-b, b) has variance b^2 / 3. */
static Init apply_rule(const Rule *rule, double gain, int64_t fan_in, int64_t fan_out) {
    double deviation = gain * sqrt(rule->variance((double)fan_in, (double)fan_out));
    if (rule->kind == INIT_NORMAL)
        return (Init){INIT_NORMAL, 0, deviation};
    return (Init){rule->kind, -deviation * sqrt(3), deviation * sqrt(3)};
}

bool read_filters_init(Call *call, int arg, int64_t fan_in, int64_t fan_out, Init *init) {
    const Value *value = &call->args[arg];
    if (value->kind == VALUE_NONE)
        *init = apply_rule(find_rule("default"), 1, fan_in, fan_out);
    else if (value->kind == VALUE_INIT && value->init_rule)
        *init = apply_rule(find_rule(value->init_rule), value->init.b, fan_in, fan_out);
    else if (value->kind == VALUE_INIT)
        *init = value->init;
    else if (value->kind != VALUE_ERROR)
        call_error(call, arg, "expected an initialiser, such as zeros() or normal(0, 0.02)");
    return value->kind == VALUE_NONE || value->kind == VALUE_INIT;
}

bool read_init(Call *call, int arg, int64_t fan_in, int64_t fan_out, Init *init) {
    if (!read_filters_init(call, arg, fan_in, fan_out, init))
        return false;
    if (init->kind == INIT_DIRAC)
        call_error(call, arg,
                   "dirac() is of filters that see all channels: of conv2d and conv1d with one group, and of linear");
    return init->kind != INIT_DIRAC;
}

/* The gain waits in init.b for the fans. */
static Value rule_value(Call *call, const char *rule, double gain) {
    Value value = init_value(call, find_rule(rule)->kind, 0, gain);
    value.init.a = NAN;
    value.init_rule = rule;
    return value;
}

static Value build_default(Call *call) {
    return rule_value(call, "default", 1);
}

static Value build_xavier_uniform(Call *call) {
    return rule_value(call, "xavier_uniform", call_number(call, 0));
}

static Value build_xavier_normal(Call *call) {
    return rule_value(call, "xavier_normal", call_number(call, 0));
}

static Value build_he_uniform(Call *call) {
    return rule_value(call, "he_uniform", call_number(call, 0));
}

static Value build_he_normal(Call *call) {
    return rule_value(call, "he_normal", call_number(call, 0));
}

static Value build_dirac(Call *call) {
    return rule_value(call, "dirac", 1);
}

#define INITIALISER(name_) .name = #name_, .cls = OP_LIBRARY, .kind = KIND_INITIALISER, .build = build_##name_

const OpDef op_zeros = {
    INITIALISER(zeros),
    .doc = "Initialiser: 0.",
    .example = "y = linear(x, 3, bias_init = zeros())",
    .signature = "",
};

const OpDef op_constant = {
    INITIALISER(constant),
    .doc = "Initialiser: the value.",
    .example = "y = linear(x, 3, bias_init = constant(0.1))",
    .signature = "value: number",
};

const OpDef op_uniform = {
    INITIALISER(uniform),
    .doc = "Initialiser: evenly from low to high.",
    .example = "y = linear(x, 3, init = uniform(-0.1, 0.1))",
    .signature = "low: number, high: number",
};

const OpDef op_normal = {
    INITIALISER(normal),
    .doc = "Initialiser: the normal distribution with this mean and standard deviation.",
    .example = "y = linear(x, 3, init = normal(0, 0.02))",
    .signature = "mean: number = 0, std: number >= 0 = 1",
};

const OpDef op_default = {
    INITIALISER(default),
    .doc = "Initialiser: evenly within 1 / sqrt(fan_in), for weights and biases alike, as PyTorch's Linear has it.",
    .example = "y = linear(x, 3, init = default())",
    .signature = "",
};

const OpDef op_xavier_uniform = {
    INITIALISER(xavier_uniform),
    .doc = "Initialiser: evenly within gain sqrt(6 / (fan_in + fan_out)).",
    .example = "y = linear(x, 3, init = xavier_uniform())",
    .signature = "gain: number = 1",
};

const OpDef op_xavier_normal = {
    INITIALISER(xavier_normal),
    .doc = "Initialiser: normal with standard deviation gain sqrt(2 / (fan_in + fan_out)).",
    .example = "y = linear(x, 3, init = xavier_normal())",
    .signature = "gain: number = 1",
};

const OpDef op_he_uniform = {
    INITIALISER(he_uniform),
    .doc = "Initialiser: evenly within gain sqrt(6 / fan_in), for layers before a ReLU.",
    .example = "y = linear(x, 3, init = he_uniform())",
    .signature = "gain: number = 1",
};

const OpDef op_he_normal = {
    INITIALISER(he_normal),
    .doc = "Initialiser: normal with standard deviation gain sqrt(2 / fan_in), for layers before a ReLU.",
    .example = "y = linear(x, 3, init = he_normal())",
    .signature = "gain: number = 1",
};

const OpDef op_dirac = {
    INITIALISER(dirac),
    .doc = "Initialiser of filters: the first ones, as many as there are channels, pass a channel each on as it is, "
           "with 1 at the "
           "middle of filter i for channel i and 0 elsewhere; those behind them start as default() does. Of a linear "
           "layer, the "
           "first outputs are the inputs.",
    .example = "y = conv2d(image, 6, 3, init = dirac())",
    .signature = "",
};
