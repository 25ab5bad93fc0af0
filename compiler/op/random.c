/* Chance inside the network. Every draw has a stream of its own, so that masks do not repeat each other. */
#include "op/compose.h"

#define DRAW(name_, c_, doc_)                                                                                          \
    .name = name_, .cls = OP_INDEX, .flags = OP_NO_GRAD | OP_DRAWS, .attrs = ATTR_DIMS | ATTR_INDEX, .doc = doc_,      \
    .infer = infer_shape_attr, .c = c_, .prec = PREC_PRIMARY

const OpDef op_random = {DRAW("random", "uniform(batch, $n, $l)",
                              "Uniform in [0, 1), by counters: seed, stream attr.index, step, element.")};
const OpDef op_noise = {DRAW("noise", "gaussian(batch, $n, $l)",
                             "Normally distributed, with mean 0 and deviation 1, by the same counters.")};
const OpDef op_set_random = {DRAW("set_random", "uniform_in_set(batch, $n, $l)",
                                  "As `random`, with the place of the batch in its set instead of the step.")};
const OpDef op_set_noise = {DRAW("set_noise", "gaussian_in_set(batch, $n, $l)",
                                 "As `noise`, with the place of the batch in its set instead of the step.")};

int next_stream(const Graph *g) {
    int streams = 0;
    for (int i = 0; i < g->nodes.count; i++)
        streams += !!(g->nodes.at[i]->op->flags & OP_DRAWS);
    return streams;
}

static Value build_dropout(Call *call) {
    Graph *g = call->g;
    Node *x = graph_cast(g, call_tensor(call, 0), DT_F32), *p = call_scalar(call, 1);
    if (!x || !p)
        return value_tensor(NULL);
    if (!g->training)
        return value_tensor(x);
    Attr attr = attr_shape(&x->type);
    attr.index = next_stream(g);
    Node *kept = op2(g, "ge", op0(g, "random", attr), p);
    Node *factor = divide(g, graph_constant(g, 1), sub(g, graph_constant(g, 1), p));
    return value_tensor(masked(g, kept, mul(g, x, factor)));
}

/* ---- numbers for the model ---- */

/* Of this type: by `op` in training, by `in_set` in evaluation where the argument asks for it; else NULL. */
static Node *drawn(Call *call, const char *op, const char *in_set, const Type *type, int in_evaluation) {
    Attr attr = attr_shape(type);
    attr.index = next_stream(call->g);
    bool draws = call_bool(call, in_evaluation) || call->g->training;
    return draws ? op0(call->g, call->g->training ? op : in_set, attr) : NULL;
}

/* A value of that shape for each example; false after a user error. */
static bool read_example_shape(Call *call, int arg, Type *type) {
    Type shape = {.dtype = DT_F32};
    if (!read_shape(call, arg, &shape))
        return false;
    if (shape.rank == MAX_RANK) {
        call_error(call, arg, "expected a list of at most %d sizes", MAX_RANK - 1);
        return false;
    }
    *type = type_make(DT_F32, true, 1, (int64_t[]){call->module->batch});
    memcpy(type->dim + 1, shape.dim, (size_t)shape.rank * sizeof *shape.dim);
    type->rank += shape.rank;
    return true;
}

static Value build_random_normal(Call *call) {
    Graph *g = call->g;
    Type type;
    Node *mean = call_scalar(call, 1), *deviation = call_scalar(call, 2);
    if (!mean || !deviation || !read_example_shape(call, 0, &type))
        return value_tensor(NULL);
    Node *noise = drawn(call, "noise", "set_noise", &type, 3);
    return value_tensor(noise ? add(g, mean, mul(g, deviation, noise)) : graph_expand(g, mean, &type));
}

static Value build_random_uniform(Call *call) {
    Graph *g = call->g;
    Type type;
    Node *low = call_scalar(call, 1), *high = call_scalar(call, 2);
    if (!low || !high || !read_example_shape(call, 0, &type))
        return value_tensor(NULL);
    if (call->args[1].number > call->args[2].number) {
        call_error(call, 1, "the low end %g is above the high end %g", call->args[1].number, call->args[2].number);
        return value_tensor(NULL);
    }
    Node *place = drawn(call, "random", "set_random", &type, 3);
    place = place ? place : graph_constant(g, 0.5);
    return value_tensor(graph_expand(g, add(g, low, mul(g, sub(g, high, low), place)), &type));
}

/* Of each element in the shape that the call names, or in p's own; NULL after a user error. */
static Node *read_probabilities(Call *call) {
    Graph *g = call->g;
    Node *p = graph_cast(g, call_tensor(call, 0), DT_F32);
    Type type, common;
    bool number = p && call->args[0].kind == VALUE_NUMBER;
    if (!p || (number && !call_within(call, 0, "the probability", (Bounds){0, 1, false, false})))
        return NULL;
    if (call->args[1].kind == VALUE_NONE)
        return graph_of_each_example(g, p);
    if (!read_example_shape(call, 1, &type))
        return NULL;
    if (graph_common_shape(&p->type, &type, &common) && type_same_shape(&common, &type))
        return graph_expand(g, p, &type);
    call_error(call, 1, "probabilities %s do not fill %s", type_user_text(g->arena, &p->type),
               type_user_text(g->arena, &type));
    return NULL;
}

/* 1 where a uniform number is below p, by which it has no gradient; p itself in evaluation. */
static Value build_bernoulli(Call *call) {
    Graph *g = call->g;
    Node *p = read_probabilities(call);
    if (!p)
        return value_tensor(NULL);
    Node *place = drawn(call, "random", "set_random", &p->type, 2);
    return value_tensor(place ? graph_cast(g, op2(g, "lt", place, p), DT_F32) : op1(g, "stop_gradient", p));
}

const OpDef op_dropout = {
    .name = "dropout",
    .cls = OP_LIBRARY,
    .doc = "In training 0 with probability p, else x / (1 - p); in evaluation x.",
    .example = "y = dropout(x, 0.5)",
    .signature = "x, p: number in [0, 1)",
    .build = build_dropout,
};

#define IN_EVALUATION                                                                                                  \
    "Drawn for each example, anew in each step of training. In evaluation it is the mean; with in_evaluation, it is "  \
    "drawn there too, by the example's place in the set: the same in each evaluation."

const OpDef op_random_normal = {
    .name = "random_normal",
    .cls = OP_LIBRARY,
    .doc = "Normally distributed numbers. " IN_EVALUATION,
    .example = "y = x + random_normal([6], std = 0.1)",
    .signature = "shape: list, mean: number = 0, std: number >= 0 = 1, in_evaluation: bool = false",
    .build = build_random_normal,
};

const OpDef op_random_uniform = {
    .name = "random_uniform",
    .cls = OP_LIBRARY,
    .doc = "Numbers evenly distributed in [low, high). " IN_EVALUATION,
    .example = "y = x * random_uniform([6], 0.9, 1.1)",
    .signature = "shape: list, low: number = 0, high: number = 1, in_evaluation: bool = false",
    .build = build_random_uniform,
};

const OpDef op_bernoulli = {
    .name = "bernoulli",
    .cls = OP_LIBRARY,
    .doc = "1 with probability p, else 0, for each element of p, or of `shape`. No gradient flows to p. " IN_EVALUATION,
    .example = "y = x * bernoulli(0.8, [6])",
    .signature = "p, shape: list = none, in_evaluation: bool = false",
    .build = build_bernoulli,
};
