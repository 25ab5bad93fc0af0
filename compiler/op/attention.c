/* Attention: each position of a sequence is a mean of the values at positions that it looks at, weighted by softmax.
 *
 *     w[i, j] = softmax over j of scale (q[i] . k[j])        j: the positions that i sees
 *     y[i] = sum over j of w[i, j] v[j]
 *
 * for each head. One operand holds the rows of queries, keys and values, packed: what one linear layer makes. The weights w
 * are stored nowhere: kernels_lib computes them again for the gradient, from the logarithms of the softmax's sums. */
#include "op/compose.h"

#include "kernels_lib/shared.h"

/* ---- shapes ---- */

static int64_t width_of_queries(const Heads *h) {
    return h->queries * h->size;
}

static int64_t width_of_packed(const Heads *h) {
    return (h->queries + 2 * h->keys) * h->size;
}

static Type rows_like(const Type *rows, DType dtype, int64_t width) {
    Type type = *rows;
    type.dtype = dtype;
    type.dim[type.rank - 1] = width;
    return type;
}

/* [B, T, packed], of numbers that the kernels read. */
static bool is_packed(const Type *qkv, const Heads *h) {
    return qkv->rank == 3 && qkv->dim[2] == width_of_packed(h) && dtype_is_real(qkv->dtype);
}

INFER(attend) {
    const Type *qkv = &n->in[0]->type;
    n->type = rows_like(qkv, qkv->dtype, width_of_queries(&n->attr.heads));
    return is_packed(qkv, &n->attr.heads);
}

INFER(attend_sums) {
    const Node *call = n->in[0];
    n->type = rows_like(&call->type, DT_F32, call->attr.heads.queries);
    return call->op->attrs & ATTR_HEADS;
}

INFER(attend_grad) {
    const Type *qkv = &n->in[0]->type;
    const Heads *h = &n->attr.heads;
    Type a_head = rows_like(qkv, DT_F32, h->queries), result = rows_like(qkv, qkv->dtype, width_of_queries(h));
    n->type = *qkv;
    return is_packed(qkv, h) && type_same_shape(&n->in[1]->type, &a_head) && n->in[1]->type.dtype == DT_F32 &&
           type_same_shape(&n->in[2]->type, &a_head) && n->in[2]->type.dtype == DT_F32 &&
           type_same_shape(&n->in[3]->type, &result) && n->in[3]->type.dtype == qkv->dtype;
}

/* The products dy[i] . y[i] of each head: what the softmax's sum sends back. */
static Node *head_dots(Graph *g, Node *dy, Node *y, const Heads *h) {
    Type heads = y->type;
    heads.rank++;
    heads.dim[heads.rank - 2] = h->queries;
    heads.dim[heads.rank - 1] = h->size;
    Node *products = graph_reshape(g, mul(g, dy, y), &heads);
    Node *dots = graph_reduce(g, "sum", products, 1u << (heads.rank - 1));
    dots->hint = "dots";
    return dots;
}

GRAD(attend) {
    Node *sums = op1(g, "attend_sums", n);
    sums->hint = "sums";
    if (n->name)
        graph_name(sums, arena_printf(g->arena, "%s.sums", n->name));
    Node *in[] = {n->in[0], sums, head_dots(g, dy, n, &n->attr.heads), dy};
    din[0] = graph_node(g, "attend_grad", n->attr, 4, in);
}

/* ---- kernels ---- */

/* Of a query and a key that it sees, in one head of one example. */
static double seen_pairs(int64_t length, const Heads *h) {
    double pairs = 0;
    if (!h->causal)
        return (double)length * (double)length;
    for (int64_t i = 0; i < length; i++)
        pairs += (double)(h->window && h->window <= i ? h->window : i + 1);
    return pairs;
}

/* Multiplications and additions of `products` products of rows of a head for each pair. */
static double pair_flops(const Node *n, int products) {
    const Heads *h = &n->attr.heads;
    const Type *qkv = &n->in[0]->type;
    return 2.0 * products * (double)(qkv->dim[0] * h->queries * h->size) * seen_pairs(qkv->dim[1], h);
}

static double attend_flops(const Node *n) {
    return pair_flops(n, 2);
}

static double attend_grad_flops(const Node *n) {
    return pair_flops(n, 5);
}

static bool on_tensor_cores(const Node *n) {
    return head_fits_tensor_cores(n->attr.heads.size);
}

/* Every device has PLAIN_SMALL. */
static int attend_grad_shared(const Node *n) {
    return n->attr.heads.size > LARGEST_PLAIN_SMALL ? PLAIN_SHARED : 0;
}

enum { TILE_ROWS = 64 }; /* positions of one head that a tile computes */

static int64_t row_tiles(const Node *n, int64_t heads) {
    const Type *qkv = &n->in[0]->type;
    return qkv->dim[0] * heads * ((qkv->dim[1] + TILE_ROWS - 1) / TILE_ROWS);
}

static int64_t attend_tiles(const Node *n) {
    return row_tiles(n, n->attr.heads.queries);
}

static const char *shape_arguments(Arena *arena, const Node *n) {
    const Heads *h = &n->attr.heads;
    return arena_printf(
        arena, ".batch = $00, .length = $01, .queries = %lld, .keys = %lld, .size = %lld, .causal = %s, .window = %lld",
        (long long)h->queries, (long long)h->keys, (long long)h->size, h->causal ? "true" : "false",
        (long long)h->window);
}

/* "softmax over j <= i of 0.25 * (q[i] . k[j])" */
static const char *weights_text(Arena *arena, const Heads *h) {
    const char *from = h->window ? arena_printf(arena, "i - %lld < ", (long long)h->window) : "";
    return arena_printf(arena, "softmax over %sj%s of $v * (q[i] . k[j])", from, h->causal ? " <= i" : "");
}

/* "where q, k, v are heads in the rows of $0, 4 of q, 2 of k and v" */
static const char *heads_text(Arena *arena, const Heads *h) {
    const char *fewer = arena_printf(arena, "%lld of q, %lld of k and v", (long long)h->queries, (long long)h->keys);
    const char *alike = arena_printf(arena, "%lld of each", (long long)h->keys);
    return arena_printf(arena, "where q, k, v are heads in the rows of $0, %s", h->keys == h->queries ? alike : fewer);
}

static const char *attend_equation(Arena *arena, const Node *n) {
    const Heads *h = &n->attr.heads;
    return arena_printf(arena, "w[i, j] = %s\n$r[i] = sum over j of w[i, j] * v[j]\n%s", weights_text(arena, h),
                        heads_text(arena, h));
}

static const char *attend_grad_equation(Arena *arena, const Node *n) {
    const Heads *h = &n->attr.heads;
    return arena_printf(arena,
                        "w[i, j] = %s, from the sums\n"
                        "d[i, j] = $v * w[i, j] * ($3[i] . v[j] - $2[i])\n"
                        "dq[i] = sum over j of d[i, j] * k[j]\n"
                        "dk[j] = sum over i of d[i, j] * q[i]\n"
                        "dv[j] = sum over i of w[i, j] * $3[i]\n"
                        "%s; dq, dk, dv in those of $r",
                        weights_text(arena, h), heads_text(arena, h));
}

/* ---- in ONNX ---- */

/* Heads of queries, or of keys or of values, from column `from` of the packed rows: [B, heads of keys, queries that share one, T, size],
 * of keys with the last two axes exchanged. */
static const char *onnx_heads(Onnx *o, const Node *n, int64_t from, int64_t shared, bool exchanged) {
    static const int rows[] = {0, 2, 3, 1, 4}, columns[] = {0, 2, 3, 4, 1};
    const Heads *h = &n->attr.heads;
    const Type *qkv = &n->in[0]->type;
    int64_t dim[] = {qkv->dim[0], qkv->dim[1], h->keys, shared, h->size};
    Type heads = type_make(DT_F32, qkv->batched, 5, dim);
    const char *part = onnx_slice(o, onnx_operand(o, n, 0), 2, from, from + h->keys * shared * h->size);
    return onnx_transpose(o, onnx_reshape(o, part, &heads), 5, exchanged ? columns : rows);
}

/* Scores [.., T, T], minus infinity where a position does not see another. */
static const char *onnx_seen(Onnx *o, const Node *n, const char *scores) {
    const Heads *h = &n->attr.heads;
    const char *j = onnx_count(o, n->type.dim[1]), *i = onnx2(o, "Unsqueeze", j, onnx_numbers(o, 1, &(int64_t){1}));
    if (!h->causal)
        return scores;
    const char *seen = onnx2(o, "LessOrEqual", j, i);
    if (h->window)
        seen =
            onnx2(o, "And", seen, onnx2(o, "Less", onnx2(o, "Sub", i, j), onnx_number(o, DT_I32, (double)h->window)));
    return onnx3(o, "Where", seen, scores, onnx_real(o, -INFINITY));
}

TO_ONNX(attend) {
    static const int positions_first[] = {0, 3, 1, 2, 4};
    const Heads *h = &n->attr.heads;
    int64_t keys = width_of_queries(h), values = keys + h->keys * h->size;
    const char *q = onnx_heads(o, n, 0, h->queries / h->keys, false), *k = onnx_heads(o, n, keys, 1, true);
    const char *scores = onnx2(o, "Mul", onnx2(o, "MatMul", q, k), onnx_real(o, n->attr.value));
    scores = onnx_seen(o, n, scores);
    const char *weights = onnx_node(o, "Softmax", 1, &scores, 1, &ONNX_AXIS(-1));
    const char *y = onnx2(o, "MatMul", weights, onnx_heads(o, n, values, 1, false));
    return onnx_value(onnx_reshape(o, onnx_transpose(o, y, 5, positions_first), &n->type));
}

static const CallDef attend_call = {
    .header = "attention",
    .about = "softmax(scale q k^T) v of heads, and its gradient",
    .narrow = 1u << 0,
    .part = "attend_sums",
    .shape = "Attention",
    .meaning = "examples, positions, heads of queries, of keys, numbers of a head, causal, window",
    .arguments = shape_arguments,
    .tiles = attend_tiles,
    .flops = attend_flops,
    .on_tensor_cores = on_tensor_cores,
    .equation = attend_equation,
};

static const CallDef attend_grad_call = {
    .header = "attention",
    .about = "softmax(scale q k^T) v of heads, and its gradient",
    .narrow = 1u << 0 | 1u << 3,
    .shape = "Attention",
    .meaning = "examples, positions, heads of queries, of keys, numbers of a head, causal, window",
    .arguments = shape_arguments,
    .tiles = attend_tiles,
    .flops = attend_grad_flops,
    .on_tensor_cores = on_tensor_cores,
    .least_shared = attend_grad_shared,
    .equation = attend_grad_equation,
};

const OpDef op_attend = {
    .name = "attend",
    .cls = OP_CALL,
    .arity = 1,
    .attrs = ATTR_HEADS | ATTR_VALUE,
    .doc = "Attention over rows [B, T, queries, keys, values], packed: heads = [queries, keys, size]. For each head, "
           "y[i] = sum over j of w[i, j] v[j], where w[i, j] = softmax over j of value * (q[i] . k[j]). Causal: over "
           "j <= i only; with a window, i - j < window. Neighbouring queries share a key where there are fewer keys.",
    .infer = infer_attend,
    .grad = grad_attend,
    .call = &attend_call,
    .narrow = narrow_attend,
    .leave = leave_attend,
    .to_onnx = to_onnx_attend,
};

const OpDef op_attend_sums = {
    .name = "attend_sums",
    .cls = OP_CALL,
    .flags = OP_PART | OP_NO_GRAD,
    .arity = 1,
    .doc = "A second result of attend: log of the sum over j of exp(value * (q[i] . k[j])), for each head [B, T, "
           "queries].",
    .infer = infer_attend_sums,
    .call = &attend_call,
};

const OpDef op_attend_grad = {
    .name = "attend_grad",
    .cls = OP_CALL,
    .arity = 4,
    .attrs = ATTR_HEADS | ATTR_VALUE,
    .doc =
        "The gradient of attend's operand, packed like it, given that operand, attend_sums, the dot products dy . y of "
        "each head, and dy.",
    .infer = infer_attend_grad,
    .call = &attend_grad_call,
};

/* ---- in the language ---- */

enum { ARG_Q, ARG_K, ARG_V, ARG_HEADS, ARG_KV_HEADS, ARG_CAUSAL, ARG_SCALE, ARG_WINDOW };

typedef struct Attention {
    Node *in[3]; /* q, k, v */
    Heads heads;
    double scale;
} Attention;

static const char *shape_text(Call *call, const Node *x) {
    return type_user_text(call->g->arena, &x->type);
}

static bool is_sequence(const Node *x) {
    return x->type.rank - x->type.batched == 2;
}

static bool read_sequences(Call *call, Attention *a) {
    for (int k = 0; k < 3; k++)
        if (!(a->in[k] = graph_cast(call->g, call_tensor(call, ARG_Q + k), DT_F32)))
            return false;
    if (!graph_share_batch(call->g, 3, a->in))
        return false;
    for (int k = 0; k < 3; k++)
        if (!is_sequence(a->in[k])) {
            call_error(call, ARG_Q + k, "attention is over sequences [T, width], found %s", shape_text(call, a->in[k]));
            return false;
        }
    return true;
}

static bool read_heads(Call *call, Attention *a) {
    int64_t width = a->in[0]->type.dim[last_axis(a->in[0])];
    bool own_keys = call->args[ARG_KV_HEADS].kind != VALUE_NONE;
    a->heads.queries = call_size(call, ARG_HEADS);
    a->heads.keys = own_keys && a->heads.queries > 0 ? call_size(call, ARG_KV_HEADS) : a->heads.queries;
    if (a->heads.queries <= 0 || a->heads.keys <= 0)
        return false; /* reported */
    if (width % a->heads.queries) {
        call_error(call, ARG_HEADS, "a width of %lld does not divide into %lld heads", (long long)width,
                   (long long)a->heads.queries);
        return false;
    }
    if (a->heads.queries % a->heads.keys) {
        call_error(call, ARG_KV_HEADS, "%lld heads do not divide into groups for %lld heads of keys",
                   (long long)a->heads.queries, (long long)a->heads.keys);
        return false;
    }
    a->heads.size = width / a->heads.queries;
    if (a->heads.size > LARGEST_HEAD)
        call_error(call, ARG_HEADS, "a head has at most %d numbers; %lld in %lld heads are %lld", LARGEST_HEAD,
                   (long long)width, (long long)a->heads.queries, (long long)a->heads.size);
    return a->heads.size <= LARGEST_HEAD;
}

/* Keys and values have the positions of q, and the width of their heads. */
static bool sequences_fit(Call *call, const Attention *a) {
    const Heads *h = &a->heads;
    const Node *q = a->in[0];
    Type wanted = q->type;
    wanted.dim[wanted.rank - 1] = h->keys * h->size;
    for (int k = 1; k < 3; k++) {
        const Type *found = &a->in[k]->type;
        bool fits = true;
        for (int axis = 1; axis <= 2; axis++)
            fits = fits && found->dim[found->rank - axis] == wanted.dim[wanted.rank - axis];
        if (fits)
            continue;
        call_error(call, ARG_Q + k, "%s is %s; with q %s, %lld heads and %lld of keys, it must be %s",
                   k == 1 ? "k" : "v", shape_text(call, a->in[k]), shape_text(call, q), (long long)h->queries,
                   (long long)h->keys, type_user_text(call->g->arena, &wanted));
        return false;
    }
    return true;
}

static bool read_scale(Call *call, Attention *a) {
    a->scale = 1 / sqrt((double)a->heads.size);
    if (call->args[ARG_SCALE].kind == VALUE_NONE)
        return true;
    int errors = diag_errors(call->module->diag);
    a->scale = call_number(call, ARG_SCALE);
    bool fits = isfinite(a->scale) && a->scale > 0;
    if (!fits && diag_errors(call->module->diag) == errors)
        call_error(call, ARG_SCALE, "scale is a finite number above 0");
    return fits;
}

static bool read_seen(Call *call, Attention *a) {
    a->heads.causal = call_bool(call, ARG_CAUSAL);
    a->heads.window = call_int(call, ARG_WINDOW, 0, INT32_MAX);
    if (a->heads.window > 0 && !a->heads.causal)
        call_error(call, ARG_WINDOW, "a window is over the positions before: it needs causal = true");
    if (a->heads.window >= a->in[0]->type.dim[last_axis(a->in[0]) - 1])
        a->heads.window = 0; /* all are within it */
    return a->heads.window >= 0 && (a->heads.causal || !a->heads.window);
}

/* [B, T, width]; without a batch [1, T, width]. */
static Node *as_rows(Graph *g, Node *x) {
    Type rows = x->type;
    if (!x->type.batched)
        rows = type_make(DT_F32, false, 3, (int64_t[]){1, x->type.dim[0], x->type.dim[1]});
    return graph_reshape(g, x, &rows);
}

static Node *attend(Graph *g, const Attention *a) {
    Node *parts[3];
    for (int k = 0; k < 3; k++)
        parts[k] = as_rows(g, a->in[k]);
    Node *packed = build_stack(g, parts, 3, 2);
    Node *y = graph_node(g, "attend", (Attr){.value = a->scale, .heads = a->heads}, 1, &packed);
    return graph_reshape(g, y, &a->in[0]->type);
}

static Value build_attention(Call *call) {
    Attention a = {0};
    bool read = read_sequences(call, &a) && read_heads(call, &a) && sequences_fit(call, &a) && read_scale(call, &a) &&
                read_seen(call, &a);
    return value_tensor(read ? attend(call->g, &a) : NULL);
}

const OpDef op_attention = {
    .name = "attention",
    .cls = OP_LIBRARY,
    .doc =
        "Attention of a sequence to itself. q is [T, heads * size], k and v are [T, kv_heads * size]; for each head, "
        "y[i] = sum over j of w[i, j] v[j], where w[i, j] = softmax over j of scale * (q[i] . k[j]); y is like q. "
        "causal: position i sees j <= i only; window: of those the last so many, 0: all. heads / kv_heads neighbouring "
        "heads share a head of keys and values; kv_heads is heads if it is not given, and scale 1 / sqrt(size). A head "
        "has at most 256 numbers. Where q, k and v are neighbouring slices of one value, in this order, it is read as "
        "it lies.",
    .example = "y = attention(reshape(x, [3, 2]), reshape(x, [3, 2]), reshape(x, [3, 2]), heads = 2, causal = true)",
    .signature =
        "q, k, v, heads: size, kv_heads: size = none, causal: bool = false, scale: number = none, window: int = 0",
    .build = build_attention,
};
