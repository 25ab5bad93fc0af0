/* Attention at one position: its query looks at the keys of the positions before it, which earlier runs left in a cache.
 *
 *     cache [T, keys, values]     row j: the key heads and the value heads of position j, written when j was decoded
 *
 * Of several texts at a position each has one: cache [N, T, keys, values].
 *
 * The cache is memory of the program that lasts from run to run, but no part of the model: it is in no checkpoint, and
 * what training leaves in its bytes is never read, for position p reads the rows up to p, which were written before. */
#include "op/compose.h"

#include "kernels_lib/shared.h"

extern const OpDef op_cache;

/* The caches of a graph are told apart by their numbers. */
static int next_cache(const Graph *g) {
    int count = 0;
    for (int i = 0; i < g->nodes.count; i++)
        count += g->nodes.at[i]->op == &op_cache;
    return count;
}

/* In the type of the keys and values that evaluation reads. */
static Node *cache_of(Graph *g, const Node *attend, const Node *in) {
    const Heads *h = &attend->attr.heads;
    Type rows = {
        .dtype = precision_dtype(g->module->precision), .rank = 2, .dim = {attend->type.dim[1], 2 * h->keys * h->size}};
    Type of_each = {.dtype = rows.dtype, .rank = 3, .dim = {in->type.dim[0], rows.dim[0], rows.dim[1]}};
    Attr attr = attr_shape(in->type.batched ? &of_each : &rows);
    attr.index = next_cache(g);
    attr.dtype = rows.dtype;
    const char *name = attend->name ? arena_printf(g->arena, "%s.cache", attend->name) : "cache";
    return graph_name(op0(g, "cache", attr), name);
}

Node *narrow_attend(Graph *g, const Node *n, int axis, Node *at, Node *const *in) {
    if (!n->attr.heads.causal || axis != 1)
        return NULL;
    Attr attr = {.heads = n->attr.heads, .value = n->attr.value};
    Node *step = graph_node(g, "attend_step", attr, 3, (Node *[]){in[0], cache_of(g, n, in[0]), at});
    return dtype_is_narrow(step->type.dtype) ? op1(g, "to_float", step) : step;
}

/* The heads of keys and of values lie one behind the other in a row of all. */
void leave_attend(Graph *g, const Node *step, Node *const *in) {
    const Node *cache = step->in[1];
    const Type *row = &in[0]->type;
    Type rows = {.dtype = row->dtype, .rank = 2, .dim = {row->dim[1], row->dim[2]}}, kept = cache->type;
    kept.dtype = row->dtype;
    const int64_t behind_queries[MAX_RANK] = {0, rows.dim[1] - kept.dim[1]};
    Node *packed = graph_reshape(g, in[0], &rows);
    Node *seen = graph_node(g, "slice", attr_placed(&kept, behind_queries), 1, &packed);
    const char *rounding = dtype_info[cache->type.dtype].rounding;
    Node *leaf = graph_name(op0(g, "cache", cache->attr), cache->name);
    graph_assign(g, leaf, dtype_is_narrow(cache->type.dtype) ? op1(g, rounding, seen) : seen);
}

INFER(cache) {
    n->type = type_make(n->attr.dtype, false, n->attr.rank, n->attr.dims);
    return true;
}

/* Of several texts, the result is rounded as that of `attend` is. */
INFER(attend_step) {
    const Heads *h = &n->attr.heads;
    const Type *qkv = &n->in[0]->type, *cache = &n->in[1]->type, *at = &n->in[2]->type;
    n->type = *qkv;
    n->type.dim[2] = h->queries * h->size;
    n->type.dtype = qkv->batched ? cache->dtype : qkv->dtype;
    const bool each = qkv->batched && cache->rank == 3 && cache->dim[0] == qkv->dim[0];
    return qkv->rank == 3 && qkv->dtype == DT_F32 && qkv->dim[2] == (h->queries + 2 * h->keys) * h->size &&
           (each || cache->rank == 2) && cache->dim[cache->rank - 1] == 2 * h->keys * h->size && at->rank == 0 &&
           at->dtype == DT_I32;
}

static int64_t positions_of(const Node *n) {
    const Type *cache = &n->in[1]->type;
    return cache->dim[cache->rank - 2];
}

static int64_t texts_of(const Node *n) {
    return n->type.dim[0];
}

static const char *step_arguments(Arena *arena, const Node *n) {
    const Heads *h = &n->attr.heads;
    return arena_printf(
        arena, ".length = $1%d, .queries = %lld, .keys = %lld, .size = %lld, .window = %lld, .texts = $00",
        n->in[1]->type.rank - 2, (long long)h->queries, (long long)h->keys, (long long)h->size, (long long)h->window);
}

static int64_t step_tiles(const Node *n) {
    const Heads *h = &n->attr.heads;
    int64_t length = positions_of(n), seen = h->window && h->window < length ? h->window : length;
    return texts_of(n) * h->keys * attention_step_parts(seen, texts_of(n) * h->keys);
}

/* At half of the positions, as the mean over all. */
static double step_flops(const Node *n) {
    const Heads *h = &n->attr.heads;
    int64_t length = positions_of(n), seen = h->window && h->window < length ? h->window : length / 2;
    return 4.0 * (double)(texts_of(n) * h->queries * h->size) * (double)seen;
}

static const char *step_equation(Arena *arena, const Node *n) {
    const Heads *h = &n->attr.heads;
    const char *from = h->window ? arena_printf(arena, "p - %lld < ", (long long)h->window) : "";
    return arena_printf(arena,
                        "$1[p] = k, v of position p\n"
                        "w[j] = softmax over %sj <= p of $v * (q . k[j])\n"
                        "$r = sum over j of w[j] * v[j]\n"
                        "for each of %lld heads; $0 is q, k, v of all heads, %lld numbers each",
                        from, (long long)h->queries, (long long)h->size);
}

/* The cache, of positions before this one, and which one that is. */
static unsigned step_ahead(const Node *n) {
    (void)n;
    return 1u << 1 | 1u << 2;
}

static const CallDef step_call = {
    .header = "attention_step",
    .about = "attention of one position, over a cache of those before it",
    .ahead = step_ahead,
    .shape = "AttentionStep",
    .meaning = "positions, heads of queries, of keys, size of a head, window, texts",
    .number = 1,
    .arguments = step_arguments,
    .tiles = step_tiles,
    .flops = step_flops,
    .equation = step_equation,
};

const OpDef op_cache = {
    .name = "cache",
    .cls = OP_LEAF,
    .flags = OP_BUFFER,
    .attrs = ATTR_INDEX | ATTR_DIMS | ATTR_DTYPE,
    .doc = "Keys and values of the positions that were decoded, a row each.",
    .infer = infer_cache,
};

const OpDef op_attend_step = {
    .name = "attend_step",
    .cls = OP_CALL,
    .flags = OP_NO_GRAD,
    .arity = 3,
    .attrs = ATTR_HEADS | ATTR_VALUE,
    .doc =
        "attend of the one row at a position (the third operand), packed as there. It writes the row's keys and values "
        "to the cache (the second), and looks at all that lie there up to itself.",
    .infer = infer_attend_step,
    .call = &step_call,
};
