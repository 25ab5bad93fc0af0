/* Sums over the shards of a batch in the midst of a step: what a shard gives to one, and the whole that all read.
 *
 *     whole = over_shards(part_of_sum(x))     the sum of x over the shards
 *
 * Between the two, the runtime adds up what lies at the operand (MtcExchange): kernels before it end with a phase, and the call, which
 * copies, begins another. What a shard gives has memory of its own, which nobody else reads.
 *
 * Each whole is read by all shards, so that its gradient is their sum, and so is that of each part. */
#include "op/compose.h"

#include "kernels_lib/shared.h"

GRAD(part_of_sum) {
    din[0] = dy;
}

INFER(over_shards) {
    n->type = n->in[0]->type;
    return n->type.dtype == DT_F32 && !n->type.batched && strcmp(n->in[0]->op->name, "part_of_sum") == 0;
}

Node *over_shards(Graph *g, Node *x) {
    return op1(g, "over_shards", op1(g, "part_of_sum", x));
}

GRAD(over_shards) {
    din[0] = over_shards(g, dy);
}

static const char *over_shards_arguments(Arena *arena, const Node *n) {
    return arena_printf(arena, ".count = %s", call_extents(arena, '0', &n->type, 0, n->type.rank));
}

static int64_t over_shards_tiles(const Node *n) {
    return (type_elements(&n->type) + SHARD_SUM_TILE - 1) / SHARD_SUM_TILE;
}

static double over_shards_flops(UNUSED const Node *n) {
    return 0;
}

static const char *over_shards_equation(UNUSED Arena *arena, UNUSED const Node *n) {
    return "$r = sum over shards of $0";
}

static const CallDef over_shards_call = {
    .header = "over_shards",
    .about = "sums over the shards of a batch",
    .shape = "OverShards",
    .meaning = "numbers",
    .number = 0,
    .over_shards = true,
    .arguments = over_shards_arguments,
    .tiles = over_shards_tiles,
    .flops = over_shards_flops,
    .equation = over_shards_equation,
};

const OpDef op_part_of_sum = {
    .name = "part_of_sum",
    .cls = OP_MAP,
    .arity = 1,
    .doc = "What this shard of the batch gives to a sum over all of them that the step reads.",
    .infer = infer_as_input,
    .grad = grad_part_of_sum,
    .c = "$0",
    .prec = PREC_COMMA,
};

const OpDef op_over_shards = {
    .name = "over_shards",
    .cls = OP_CALL,
    .arity = 1,
    .doc = "The sum over all shards of the batch, of what each gives to it.",
    .infer = infer_over_shards,
    .grad = grad_over_shards,
    .call = &over_shards_call,
};
