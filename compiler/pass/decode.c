/* The evaluation of a causal language model, narrowed to one position p, which the running program knows:
 *
 *     tokens [B, T] -> x [B, T, E] -> ... -> prediction [B, T, V]        eval
 *     token         -> x [1, 1, E] -> ... -> prediction [1, 1, V]        decode
 *
 * It goes from the prediction down. Who is asked for its element p along an axis asks its operands for theirs: a map along
 * the same axis, a reshape along the axis that holds the same positions, an expansion for what it repeats, where the axis
 * is one of those that it makes. So it turns out on the way which axis of a value the positions lie on; that 64 positions
 * have 64 numbers each confuses nothing. A weight that is asked for element p is read there (position embeddings); iota
 * becomes p, the field of tokens the token. What is asked for whole, by a sum over positions for instance, and depends on
 * the example needs other positions: such a model generates no text. Attention reads them from a cache (op/attention_step.c).
 *
 * The batch axis stays, with an extent of 1, and nothing is batched in this graph.
 *
 * Of what earlier positions have left, the positions of a prompt leave theirs at once: the graph `prefill` is the evaluation of one
 * example, whole, as far as caches need it.
 *
 *     prompt [1, T] -> x [1, T, E] -> ... -> keys and values [T, ..] -> caches
 *
 * In the graph `texts` there are several texts, all at the same position, and that is as it is for one: they are the examples of a batch.
 *
 *     tokens [N, 1] -> x [N, 1, E] -> ... -> prediction [N, 1, V] */
#include "pass/decode.h"

#include "ir/op.h"

#include <stdarg.h>

/* Element `position + shift` along an axis; axis WHOLE: all elements. */
enum { WHOLE = -1 };
typedef struct Place {
    int axis;
    int64_t shift;
} Place;

static const Place whole = {WHOLE, 0};

typedef struct Narrowed {
    const Node *from;
    Place at;
    Node *node;
} Narrowed;

typedef struct Decoding {
    Module *module;
    Graph *g;
    bool whole;          /* all positions are computed */
    int64_t texts;       /* that are the batch; 0: there is none */
    const Field *tokens; /* NULL: not met yet */
    VEC(Narrowed) done;
    const char *why; /* NULL: all is well so far */
} Decoding;

static Node *narrow(Decoding *d, Node *n, Place at, const Node *reader);

/* ---- what cannot be narrowed ---- */

static Node *fail(Decoding *d, const Node *n, const char *format, ...) __attribute__((format(printf, 3, 4)));
static Node *fail(Decoding *d, const Node *n, const char *format, ...) {
    int line = 0, column;
    va_list args;
    va_start(args, format);
    const char *why = arena_vprintf(d->g->arena, format, args);
    va_end(args);
    if (n->src.source)
        span_position(n->src, &line, &column);
    d->why = line ? arena_printf(d->g->arena, "%s:%d: %s", n->src.source->path, line, why) : why;
    return NULL;
}

static Node *mixes(Decoding *d, const Node *n) {
    return fail(d, n, "%s: the value at one position needs those at others", n->op->name);
}

/* Who put the positions together, if a value that has no axis of them depends on the example. */
static const Node *who_mixed(const Node *value, const Node *reader) {
    for (const Node *n = value; n; n = n->inputs ? n->in[0] : NULL)
        if (n->op->cls == OP_REDUCE || n->op->cls == OP_CONTRACT || n->op->cls == OP_CALL)
            return n;
    return reader;
}

/* ---- types ---- */

static Type type_at(const Decoding *d, const Type *type, Place at) {
    Type narrow = *type;
    if (type->batched)
        narrow.dim[0] /= d->module->batch;
    if (at.axis != WHOLE)
        narrow.dim[at.axis] = 1;
    narrow.batched = type->batched && (d->whole || d->texts);
    if (narrow.batched && d->texts)
        narrow.dim[0] *= d->texts;
    return narrow;
}

/* Of an operator whose attributes are the shape of its result. */
static Attr attr_at(const Decoding *d, const Node *n, Place at) {
    Type type = type_at(d, &n->type, at);
    Attr shape = attr_shape(&type), attr = n->attr;
    memcpy(attr.dims, shape.dims, sizeof attr.dims);
    attr.batched = type.batched;
    return attr;
}

/* The run-time number position + shift: an index along an axis, so that it fits an i32, which the ranges do not say. */
static Node *position_at(Decoding *d, int64_t shift) {
    Node *position = op0(d->g, "position", (Attr){0});
    if (!shift)
        return position;
    Node *in[] = {position, graph_whole(d->g, (int32_t)shift)};
    return graph_node(d->g, "add", (Attr){0}, 2, in);
}

static Node *repeated(Decoding *d, Node *scalar, int rank) {
    Type ones = {.dtype = scalar->type.dtype, .rank = rank};
    for (int k = 0; k < rank; k++)
        ones.dim[k] = 1;
    return graph_expand(d->g, scalar, &ones);
}

/* ---- leaves ---- */

/* Row `position + shift` along the axis of a weight. */
static Node *row_of(Decoding *d, Node *weight, Place at) {
    int order[MAX_RANK] = {at.axis}, back[MAX_RANK] = {0};
    for (int k = 0, next = 1; k < weight->type.rank; k++)
        if (k != at.axis)
            order[next++] = k;
    for (int k = 0; k < weight->type.rank; k++)
        back[order[k]] = k;
    Node *row = op2(d->g, "gather", graph_transpose(d->g, weight, order), repeated(d, position_at(d, at.shift), 1));
    return graph_transpose(d->g, row, back);
}

static Node *token_at(Decoding *d, const Node *field, Place at) {
    const Field *f = &d->module->fields.at[field->attr.index];
    if (f->kind != FIELD_CLASS || field->type.rank != 2 || (d->tokens && d->tokens != f))
        return fail(d, field, "the prediction depends on '%s', which is no token", f->name);
    if (at.shift)
        return fail(d, field, "the prediction at position p reads token p + %lld of '%s', which is not known yet",
                    (long long)at.shift, f->name);
    d->tokens = f;
    Type type = type_at(d, &field->type, at);
    Attr attr = attr_shape(&type);
    attr.index = field->attr.index;
    return d->texts ? op0(d->g, "tokens", attr) : repeated(d, op0(d->g, "token", (Attr){0}), 2);
}

/* Of all positions: in place of the field's, those that the program is given. */
static Node *prompt(Decoding *d, const Node *field) {
    Type type = type_at(d, &field->type, whole);
    Attr attr = attr_shape(&type);
    attr.index = field->attr.index;
    return graph_name(op0(d->g, "prompt", attr), "prompt");
}

static Node *leaf_at(Decoding *d, const Node *n, Place at) {
    if (n->op->table == TABLE_FIELD)
        return d->whole ? prompt(d, n) : token_at(d, n, at);
    Node *leaf = graph_name(op0(d->g, n->op->name, n->attr), n->name);
    return at.axis == WHOLE ? leaf : row_of(d, leaf, at);
}

/* ---- views ---- */

static Node *view_at(Decoding *d, const Node *n, Attr attr, Place operand) {
    Node *in = narrow(d, n->in[0], operand, n);
    return in ? graph_node(d->g, n->op->name, attr, 1, &in) : NULL;
}

static Node *expansion_at(Decoding *d, const Node *n, Place at) {
    Place operand = whole;
    if (at.axis != WHOLE && !(n->attr.axes >> at.axis & 1))
        operand = (Place){at.axis - __builtin_popcount(n->attr.axes & ((1u << at.axis) - 1)), at.shift};
    return view_at(d, n, attr_at(d, n, at), operand);
}

/* The axis of the operand that holds the positions of an axis of the result. [B, T, E] and [B * T, E] hold them alike, for
 * there is one example. */
static int reshaped_axis(const Decoding *d, const Type *from, const Type *to, int axis) {
    int64_t batch = d->module->batch, before = type_extent(to, 0, axis), through = before * to->dim[axis];
    for (int k = 0; k < from->rank; k++) {
        int64_t outer = type_extent(from, 0, k);
        bool joins = axis == 0 && to->batched && outer == batch, parts = k == 0 && from->batched && before == batch;
        if ((outer == before || joins || parts) && outer * from->dim[k] == through && from->dim[k] > 1)
            return k;
    }
    return WHOLE;
}

/* A reduction whose result gets axes of extent 1 in front reduces a value that has them, so that maps behind it have its
 * rows, and fuse with it. */
static Node *reshaped(Graph *g, Node *n, const Type *to) {
    int extra = n ? to->rank - n->type.rank : 0;
    bool in_front = n && n->op->cls == OP_REDUCE && extra > 0 && type_extent(to, 0, extra) == 1;
    for (int k = 0; in_front && k < n->type.rank; k++)
        in_front = to->dim[extra + k] == n->type.dim[k];
    if (!in_front)
        return graph_reshape(g, n, to);
    Type operand = n->in[0]->type;
    operand.rank += extra;
    for (int k = 0; k < operand.rank; k++)
        operand.dim[k] = k < extra ? 1 : n->in[0]->type.dim[k - extra];
    return graph_reduce(g, n->op->name, graph_reshape(g, n->in[0], &operand), n->attr.axes << extra);
}

static Node *reshape_at(Decoding *d, const Node *n, Place at) {
    Place operand = at;
    if (at.axis != WHOLE)
        operand.axis = reshaped_axis(d, &n->in[0]->type, &n->type, at.axis);
    if (at.axis != WHOLE && operand.axis == WHOLE)
        return mixes(d, n);
    Node *in = narrow(d, n->in[0], operand, n);
    Type type = type_at(d, &n->type, at);
    return reshaped(d->g, in, &type);
}

/* A slice or a padding: the positions are moved, and all there. */
static Node *placement_at(Decoding *d, const Node *n, Place at) {
    Place operand = at;
    Attr attr = attr_at(d, n, at);
    if (at.axis == WHOLE)
        return view_at(d, n, attr, operand);
    if (n->in[0]->type.dim[at.axis] < n->type.dim[at.axis])
        return mixes(d, n);
    operand.shift += n->attr.offset[at.axis];
    attr.offset[at.axis] = 0;
    Node *in = narrow(d, n->in[0], operand, n);
    Type type = type_at(d, &n->type, at);
    return in && !type_same_shape(&in->type, &type) ? graph_node(d->g, n->op->name, attr, 1, &in) : in;
}

/* Another position is needed where the positions are in another order. */
static Node *reordering_at(Decoding *d, const Node *n, Place at) {
    bool moves = at.axis != WHOLE && n->attr.axes >> at.axis & 1;
    return moves ? mixes(d, n) : view_at(d, n, n->attr, at);
}

static Node *lookup_at(Decoding *d, const Node *n, Place at) {
    int indices = n->in[1]->type.rank;
    bool of_table = at.axis >= indices;
    Place table = of_table ? (Place){at.axis - indices + 1, at.shift} : whole;
    Node *in[] = {narrow(d, n->in[0], table, n), narrow(d, n->in[1], of_table ? whole : at, n)};
    return graph_node(d->g, n->op->name, n->attr, 2, in);
}

static Node *placed_view_at(Decoding *d, const Node *n, Place at) {
    if (n->op->flags & OP_LOOKUP)
        return lookup_at(d, n, at);
    if (n->op->flags & OP_REPEATS)
        return expansion_at(d, n, at);
    if (n->op->flags & OP_CONTIGUOUS)
        return reshape_at(d, n, at);
    if (n->op->flags & OP_REORDERS)
        return reordering_at(d, n, at);
    if (n->op->attrs & ATTR_ORDER)
        return view_at(d, n, n->attr, at.axis == WHOLE ? at : (Place){(int)n->attr.dims[at.axis], at.shift});
    if (n->op->attrs & ATTR_OFFSET && !(n->op->flags & (OP_DRAWS | OP_MIRRORS)))
        return placement_at(d, n, at);
    return mixes(d, n);
}

/* ---- what computes ---- */

static Node *map_at(Decoding *d, const Node *n, Place at) {
    Node *in[MAX_INPUTS];
    for (int k = 0; k < n->inputs; k++)
        if (!(in[k] = narrow(d, n->in[k], at, n)))
            return NULL;
    return graph_node(d->g, n->op->name, n->attr, n->inputs, in);
}

static Node *reduction_at(Decoding *d, const Node *n, Place at) {
    Place operand = at;
    if (n->in[0]->type.batched && n->attr.axes & 1)
        return fail(d, n, "%s over examples", n->op->name);
    for (int axis = 0, kept = 0; axis < n->in[0]->type.rank && at.axis != WHOLE; axis++)
        if (!(n->attr.axes >> axis & 1) && kept++ == at.axis)
            operand.axis = axis;
    return view_at(d, n, n->attr, operand);
}

Node *row_times_matrix(Graph *g, Node *row, Node *matrix, bool transposed) {
    int inner = transposed ? 2 : 1;
    Type terms = {.dtype = DT_F32, .rank = 3, .dim = {1, matrix->type.dim[0], matrix->type.dim[1]}};
    Attr again = attr_shape(&terms), once = again;
    again.axes = 1u << (3 - inner);
    once.axes = 1;
    Node *x = graph_node(g, "expand", again, 1, &row), *w = graph_node(g, "expand", once, 1, &matrix);
    return graph_reduce(g, "sum", op2(g, "mul", x, w), 1u << inner);
}

/* out[.., i, j] = sum over k of a[.., i, k] b[.., k, j] */
static Node *product_at(Decoding *d, const Node *n, Place at) {
    int rank = n->type.rank;
    Place a = whole, b = whole;
    int a_axes = n->in[0]->type.rank, b_axes = n->in[1]->type.rank;
    if (at.axis == rank - 2)
        a = (Place){n->attr.ta ? a_axes - 1 : a_axes - 2, at.shift};
    else if (at.axis == rank - 1)
        b = (Place){n->attr.tb ? b_axes - 2 : b_axes - 1, at.shift};
    else if (at.axis != WHOLE) {
        a = a_axes == rank ? at : whole;
        b = b_axes == rank ? at : whole;
    }
    Node *in[] = {narrow(d, n->in[0], a, n), narrow(d, n->in[1], b, n)};
    if (!in[0] || !in[1])
        return NULL;
    bool row =
        !d->texts && rank == 2 && at.axis == 0 && !n->attr.ta && in[1]->type.rank == 2 && n->type.dtype == DT_F32;
    return row ? row_times_matrix(d->g, in[0], in[1], n->attr.tb) : graph_node(d->g, n->op->name, n->attr, 2, in);
}

/* An operator that says itself how it is narrowed. */
static Node *narrowed_by_itself(Decoding *d, const Node *n, Place at) {
    Node *in[MAX_INPUTS];
    if (at.axis == WHOLE && (n->op->cls == OP_INDEX || d->whole))
        return map_at(d, n, at);
    if (!n->op->narrow || at.axis == WHOLE || (n->inputs && at.shift))
        return mixes(d, n);
    for (int k = 0; k < n->inputs; k++)
        if (!(in[k] = narrow(d, n->in[k], at, n)))
            return NULL;
    Node *result = n->op->narrow(d->g, n, at.axis, position_at(d, at.shift), in);
    return result ? result : mixes(d, n);
}

/* ---- the walk ---- */

static Node *node_at(Decoding *d, const Node *n, Place at) {
    switch (n->op->cls) {
    case OP_LEAF: return leaf_at(d, n, at);
    case OP_MAP: return map_at(d, n, at);
    case OP_VIEW: return placed_view_at(d, n, at);
    case OP_REDUCE: return reduction_at(d, n, at);
    case OP_CONTRACT: return product_at(d, n, at);
    default: return narrowed_by_itself(d, n, at);
    }
}

static Node *find(const Decoding *d, const Node *n, Place at) {
    for (int i = 0; i < d->done.count; i++) {
        const Narrowed *done = &d->done.at[i];
        if (done->from == n && done->at.axis == at.axis && done->at.shift == at.shift)
            return done->node;
    }
    return NULL;
}

/* n, in the graph of one position; `reader` asks for it. NULL: it cannot be. */
static Node *narrow(Decoding *d, Node *n, Place at, const Node *reader) {
    Node *known = find(d, n, at);
    if (known || d->why)
        return d->why ? NULL : known;
    if (at.axis == WHOLE && n->type.batched && !d->whole)
        return mixes(d, reader->op->flags & OP_REPEATS ? who_mixed(n, reader) : reader);
    Span before = graph_at(d->g, n->src);
    Node *result = node_at(d, n, at);
    graph_at(d->g, before);
    if (!result)
        return NULL;
    if (n->op->cls != OP_LEAF)
        graph_name(result, n->name);
    result->hint = result->hint ? result->hint : n->hint;
    result->meaning = result->meaning ? result->meaning : n->meaning;
    result->of_mean = n->of_mean;
    VEC_PUSH(d->g->arena, &d->done, ((Narrowed){n, at, result}));
    return result;
}

static Node *prediction_of(const Graph *g) {
    for (int k = 0; k < g->roots.count; k++)
        if (g->roots.at[k]->inputs == 1 && g->roots.at[k]->op->table == TABLE_NONE)
            return g->roots.at[k]->in[0];
    return NULL;
}

static bool has_windows(const Module *module) {
    for (int k = 0; k < module->fields.count; k++)
        if (module->fields.at[k].kind == FIELD_CLASS && module->fields.at[k].type.rank == 2)
            return true;
    return false;
}

/* The scores of the next token: [1, 1, V]. */
static Node *scores(Decoding *d, Node *prediction) {
    const Type *type = &prediction->type;
    if (!d->module->prediction_is_classes || type->rank != 3)
        return fail(d, prediction, "the prediction is not a distribution over tokens for each position");
    Node *result = narrow(d, prediction, (Place){1, 0}, prediction);
    if (!result)
        return NULL;
    if (!d->tokens || d->tokens->classes != type->dim[2])
        return fail(d, prediction, "the prediction is over %lld classes, and the tokens are %d",
                    (long long)type->dim[2], d->tokens ? d->tokens->classes : 0);
    return result;
}

/* What the positions of a prompt leave for those behind it. */
static void leave(Decoding *d, const Narrowed *step) {
    const Node *n = step->from;
    Node *in[MAX_INPUTS];
    for (int k = 0; k < n->inputs; k++)
        if (!(in[k] = narrow(d, n->in[k], whole, n)))
            return;
    graph_at(d->g, n->src);
    n->op->leave(d->g, step->node, in);
}

/* Where no position leaves anything, there is none. */
static Graph *prefill_graph(const Decoding *steps) {
    Decoding d = {.module = steps->module, .g = graph_new(steps->module, false), .whole = true};
    d.g->examples = 1;
    for (int i = 0; i < steps->done.count; i++)
        if (steps->done.at[i].from->op->leave)
            leave(&d, &steps->done.at[i]);
    graph_compact(d.g);
    return d.g->roots.count ? d.g : NULL;
}

/* What decode says of one text, of several. */
static Graph *texts_graph(Module *module, Node *prediction, int64_t texts) {
    Decoding d = {.module = module, .g = graph_new(module, false), .texts = texts};
    d.g->examples = texts;
    Node *result = narrow(&d, prediction, (Place){1, 0}, prediction);
    ENSURE(result);
    graph_at(d.g, prediction->src);
    graph_output(d.g, result);
    graph_compact(d.g);
    return d.g;
}

void add_decoding(Module *module, int64_t texts) {
    Decoding d = {.module = module, .g = graph_new(module, false)};
    Node *prediction = prediction_of(module->eval);
    if (!has_windows(module) || !prediction)
        return;
    Node *result = scores(&d, prediction);
    if (!result) {
        module->no_decode = d.why;
        return;
    }
    graph_at(d.g, prediction->src);
    graph_output(d.g, result);
    module->prefill = prefill_graph(&d);
    graph_compact(d.g);
    module->decode = d.g;
    module->texts = texts ? texts_graph(module, prediction, texts) : NULL;
    module->tokens = d.tokens;
    module->context = prediction->type.dim[1];
}
