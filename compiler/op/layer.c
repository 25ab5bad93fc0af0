/* Layers: functions with weights of their own. */
#include "op/compose.h"

static Value build_linear(Call *call) {
    Graph *g = call->g;
    Node *x = call_tensor(call, 0);
    int64_t out = call_size(call, 1);
    Init init, bias_init;
    if (!x || out < 0)
        return value_tensor(NULL);
    if (!user_axes(x) || x->type.rank < 2) {
        call_error(call, 0, "linear needs a vector per example, found %s", type_user_text(g->arena, &x->type));
        return value_tensor(NULL);
    }
    int64_t in = x->type.dim[last_axis(x)];
    if (!read_init(call, 3, in, out, &init) || !read_init(call, 4, in, out, &bias_init))
        return value_tensor(NULL);
    Type matrix = type_make(DT_F32, false, 2, (int64_t[]){out, in});
    Type vector = type_make(DT_F32, false, 1, (int64_t[]){out});
    Node *y = graph_matmul(g, x, call_weight(call, "weight", &matrix, init, NULL), false, true);
    if (!call_bool(call, 2))
        return value_tensor(y);
    return value_tensor(add(g, y, call_weight(call, "bias", &vector, bias_init, NULL)));
}

const OpDef op_linear = {
    .name = "linear",
    .cls = OP_LIBRARY,
    .doc = "x W^T + b over the last axis. W is `weight` [out, in], b is `bias` [out]; both start evenly within "
           "1 / sqrt(in).",
    .example = "y = linear(x, 3)",
    .signature = "x, out: size, bias: bool = true, init: init = none, bias_init: init = none",
    .build = build_linear,
};
