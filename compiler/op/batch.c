/* The other examples of a batch: an axis that has them all, and where in it an example is. */
#include "op/compose.h"

/* A view of x that has no batch any more. */
INFER(batch) {
    n->type = n->in[0]->type;
    n->type.batched = false;
    return n->in[0]->type.batched;
}

static void view_batch(UNUSED Arena *arena, const Node *n, const Tree *const *index, IndexMap *map) {
    for (int k = 0; k < n->type.rank; k++)
        map->index[k] = index[k];
}

GRAD(batch) {
    din[0] = graph_reshape(g, dy, &n->in[0]->type);
}

static Node *simplify_batch(Graph *g, Node *n) {
    return graph_reshape(g, n->in[0], &n->type);
}

bool call_sees_batch(Call *call, const char *what) {
    const Module *module = call->module;
    if (!module->shards && module->batch > 1)
        return true;
    diag_error(module->diag, call->src, "%s of a batch, and %s", what,
               module->shards ? "with --shards each part of it knows its own alone" : "a batch of 1 has no others");
    return false;
}

static bool has_whole_batch(Call *call) {
    return call_sees_batch(call, "batch(x) has all examples");
}

static Value build_batch(Call *call) {
    Node *x = call_tensor(call, 0);
    if (!x || !has_whole_batch(call))
        return value_tensor(NULL);
    x = graph_of_each_example(call->g, x);
    return value_tensor(x ? graph_node(call->g, "batch", (Attr){0}, 1, &x) : NULL);
}

static Value build_batch_place(Call *call) {
    Attr rows = {.rank = 1, .batched = true, .dims = {call->module->batch}};
    return value_tensor(has_whole_batch(call) ? op0(call->g, "iota", rows) : NULL);
}

const OpDef op_batch = {
    .name = "batch",
    .cls = OP_VIEW,
    .flags = OP_CONTIGUOUS | OP_GATHERS_BATCH,
    .arity = 1,
    .doc = "x of all examples of the batch, in a new first axis. Reductions and products over this axis are of the "
           "examples that "
           "there are, also where a batch has fewer than its size.",
    .example = "y = matmul(flatten(x), batch(flatten(x)), transpose_b = true)",
    .infer = infer_batch,
    .range = range_as_input,
    .grad = grad_batch,
    .simplify = simplify_batch,
    .view = view_batch,
    .signature = "x",
    .build = build_batch,
};

const OpDef op_batch_place = {
    .name = "batch_place",
    .cls = OP_LIBRARY,
    .doc = "The place of the example along the first axis of batch(x): a whole number, 0 for the first.",
    .example = "y = cross_entropy(matmul(flatten(x), batch(flatten(x)), transpose_b = true), batch_place())",
    .signature = "",
    .build = build_batch_place,
};
