/* Chance inside the network. Every draw has a stream of its own, so that masks do not repeat each other. */
#include "op/compose.h"

const OpDef op_random = {
    .name = "random",
    .cls = OP_INDEX,
    .flags = OP_NO_GRAD | OP_DRAWS,
    .attrs = ATTR_DIMS | ATTR_INDEX,
    .doc = "Uniform in [0, 1), by counters: seed, stream attr.index, step, element.",
    .infer = infer_shape_attr,
    .c = "uniform(batch, $n, $l)",
    .prec = PREC_PRIMARY,
};

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

const OpDef op_dropout = {
    .name = "dropout",
    .cls = OP_LIBRARY,
    .doc = "In training 0 with probability p, else x / (1 - p); in evaluation x.",
    .example = "y = dropout(x, 0.5)",
    .signature = "x, p: number in [0, 1)",
    .build = build_dropout,
};
