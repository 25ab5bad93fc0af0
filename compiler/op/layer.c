/* Layers: functions with weights of their own. */
#include "op/compose.h"

static Value build_linear(Call *call) {
    Graph *g = call->g;
    Node *x = call_tensor(call, 0);
    int64_t out = call_size(call, 1);
    Init init, bias_init;
    if (!x || out < 0)
        return value_tensor(NULL);
    if (!user_axes(x)) {
        call_error(call, 0, "linear needs a vector, found %s", type_user_text(g->arena, &x->type));
        return value_tensor(NULL);
    }
    int64_t in = x->type.dim[last_axis(x)];
    if (!read_filters_init(call, 3, in, out, &init) || !read_init(call, 4, in, out, &bias_init))
        return value_tensor(NULL);
    static const int in_rows[] = {1, 0};
    const int *file_order = call_bool(call, 5) ? in_rows : NULL;
    Type matrix = type_make(DT_F32, false, 2, (int64_t[]){out, in});
    Type vector = type_make(DT_F32, false, 1, (int64_t[]){out});
    Node *weight = call_weight(call, "weight", &matrix, init, file_order);
    Node *y = weight ? build_product(g, x, weight, false, true) : NULL;
    if (!call_bool(call, 2))
        return value_tensor(y);
    return value_tensor(add(g, y, call_weight(call, "bias", &vector, bias_init, NULL)));
}

/* ---- scores of a vocabulary ---- */

/* Tensor cores read 16 bytes at once, 8 numbers: rows of other lengths would go through the plain kernels. */
static int64_t padded_vocabulary(const Module *module, int64_t size) {
    enum { ALIGNED = 8, ROUND = 64 };
    bool fits = !dtype_is_narrow(precision_dtype(module->precision)) || size % ALIGNED == 0;
    return fits ? size : (size + ROUND - 1) / ROUND * ROUND;
}

static bool table_fits(Call *call, const Node *x, const Node *table) {
    Arena *arena = call->g->arena;
    bool vectors = user_axes(x), matrix = !table->type.batched && table->type.rank == 2;
    if (!vectors)
        call_error(call, 0, "unembed needs a vector, found %s", type_user_text(arena, &x->type));
    else if (!matrix || table->type.dim[1] != x->type.dim[last_axis(x)])
        call_error(call, 1, "the table is %s; for %s it must be f32[classes, %lld], the same for all examples",
                   type_user_text(arena, &table->type), type_user_text(arena, &x->type),
                   (long long)x->type.dim[last_axis(x)]);
    else
        return true;
    return false;
}

/* Zero rows give scores that are cut off again. */
static Node *unembed(Graph *g, Node *x, Node *table) {
    int64_t count = table->type.dim[0], padded = padded_vocabulary(g->module, count);
    int64_t origin[MAX_RANK] = {0};
    if (padded == count)
        return build_product(g, x, table, false, true);
    Type rows = table->type;
    rows.dim[0] = padded;
    Node *whole = graph_node(g, "pad", attr_placed(&rows, origin), 1, &table);
    Node *y = build_product(g, x, whole, false, true);
    Type scores = y->type;
    scores.dim[last_axis(y)] = count;
    return graph_node(g, "slice", attr_placed(&scores, origin), 1, &y);
}

static Value build_unembed(Call *call) {
    Node *x = graph_cast(call->g, call_tensor(call, 0), DT_F32),
         *table = graph_cast(call->g, call_tensor(call, 1), DT_F32);
    return value_tensor(x && table && table_fits(call, x, table) ? unembed(call->g, x, table) : NULL);
}

const OpDef op_linear = {
    .name = "linear",
    .cls = OP_LIBRARY,
    .doc = "x W^T + b over the last axis. W is `weight` [out, in], b is `bias` [out]; both start evenly within "
           "1 / sqrt(in). transposed: in files, `weight` is [in, out].",
    .example = "y = linear(x, 3)",
    .signature = "x, out: size, bias: bool = true, init: init = none, bias_init: init = none, transposed: bool = false",
    .build = build_linear,
};

const OpDef op_unembed = {
    .name = "unembed",
    .cls = OP_LIBRARY,
    .doc =
        "A score for each row of a table [classes, width]: its product with x over the last axis, x table^T. With the "
        "table "
        "of an embedding, the scores of a language model whose weights are tied. In bf16 the table is multiplied with "
        "rows of zeros up to a multiple of 64, if it needs them for tensor cores.",
    .example = "y = unembed(x, weight([3, 6]))",
    .signature = "x, table",
    .build = build_unembed,
};
