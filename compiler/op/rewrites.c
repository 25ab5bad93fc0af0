/* Algebra: the equal, simpler node that may stand in place of a node, or NULL. The inputs are simple already. */
#include "op/compose.h"

extern const OpDef op_neg, op_add, op_mul, op_cast, op_not, op_expand, op_transpose, op_slice, op_pad;

/* The operand when n is `op` of one. */
static Node *operand_of(const Node *n, const OpDef *op) {
    return n->op == op ? n->in[0] : NULL;
}

static bool is_constant(const Node *n, double value) {
    double constant;
    return graph_constant_value(n, &constant) && constant == value;
}

static Node *constant_like(Graph *g, double value, const Node *like) {
    Attr attr = {.value = value, .dtype = like->type.dtype};
    Node *constant = op0(g, "const", attr);
    constant->of_mean = false;
    return graph_expand(g, constant, &like->type);
}

static Node *expand_again(Graph *g, const Node *expansion, Node *operand) {
    return graph_node(g, "expand", expansion->attr, 1, &operand);
}

/* y when n is -y, perhaps expanded. */
static Node *negated(Graph *g, const Node *n) {
    Node *expanded = operand_of(n, &op_expand);
    Node *positive = operand_of(expanded ? expanded : n, &op_neg);
    return expanded && positive ? expand_again(g, n, positive) : positive;
}

static bool same_type(const Node *a, const Node *b) {
    return a->type.batched == b->type.batched && type_same_shape(&a->type, &b->type);
}

/* ---- neighbours ---- */

/* The elements of `of` from `from` on, in the shape of the operand of a pad, which stand in its result from `to` on. */
typedef struct Piece {
    Node *of;
    Type shape;
    int64_t from[MAX_RANK], to[MAX_RANK];
} Piece;

static Piece piece_of(const Node *pad) {
    Node *part = pad->in[0];
    bool slice = part->op == &op_slice;
    Piece piece = {.of = slice ? part->in[0] : part, .shape = part->type};
    for (int k = 0; k < pad->type.rank; k++) {
        piece.from[k] = slice ? part->attr.offset[k] : 0;
        piece.to[k] = pad->attr.offset[k];
    }
    return piece;
}

/* The axis along which b goes on where a ends, in what both are of and in what both stand in; -1: it does not. */
static int continued_along(const Piece *a, const Piece *b) {
    int along = -1;
    for (int k = 0; k < a->shape.rank; k++) {
        int64_t step = b->from[k] - a->from[k];
        if (step != b->to[k] - a->to[k])
            return -1;
        if (step == 0 && a->shape.dim[k] == b->shape.dim[k])
            continue;
        if (step != a->shape.dim[k] || along >= 0)
            return -1;
        along = k;
    }
    return along;
}

/* The sum of two pads of neighbouring slices of a value, neighbours there too: the pad of one slice. */
static Node *joined(Graph *g, const Node *first, const Node *second) {
    Piece a = piece_of(first), b = piece_of(second);
    int axis = a.of == b.of ? continued_along(&a, &b) : -1;
    if (axis < 0)
        return NULL;
    a.shape.dim[axis] += b.shape.dim[axis];
    Node *whole = graph_node(g, "slice", attr_placed(&a.shape, a.from), 1, &a.of);
    return graph_node(g, "pad", attr_placed(&first->type, a.to), 1, &whole);
}

static Node *joined_neighbours(Graph *g, const Node *a, const Node *b) {
    if (a->op != &op_pad || b->op != &op_pad)
        return NULL;
    Node *pad = joined(g, a, b);
    return pad ? pad : joined(g, b, a);
}

/* ---- slices of what was put together ---- */

/* A concatenation is a sum of paddings with 0, one after the other. Its last padding; `*rest` is the sum without it, NULL where
 * there is nothing else. NULL: n is no concatenation. */
static Node *last_part(Node *n, Node **rest) {
    bool sum = n->op == &op_add;
    int last = sum && n->in[1]->op == &op_pad;
    Node *pad = sum ? n->in[last] : n;
    *rest = sum ? n->in[1 - last] : NULL;
    return pad->op == &op_pad && pad->attr.value == 0 ? pad : NULL;
}

/* Where a slice meets the operand of a pad: along each axis from `from` to before `to`, counted in the pad's result. */
typedef struct Meeting {
    int64_t from[MAX_RANK], to[MAX_RANK];
} Meeting;

/* False: the slice reads nothing but padding. */
static bool meets(const Node *slice, const Node *pad, Meeting *meeting) {
    for (int k = 0; k < slice->type.rank; k++) {
        int64_t begin = slice->attr.offset[k], first = pad->attr.offset[k];
        int64_t end = begin + slice->type.dim[k], last = first + pad->in[0]->type.dim[k];
        meeting->from[k] = begin > first ? begin : first;
        meeting->to[k] = end < last ? end : last;
        if (meeting->from[k] >= meeting->to[k])
            return false;
    }
    return true;
}

/* What the slice reads of the operand, where it reads it. */
static Node *met_part(Graph *g, const Node *slice, const Node *pad, const Meeting *meeting) {
    Type part = slice->type;
    int64_t of[MAX_RANK] = {0}, at[MAX_RANK] = {0};
    for (int k = 0; k < part.rank; k++) {
        part.dim[k] = meeting->to[k] - meeting->from[k];
        of[k] = meeting->from[k] - pad->attr.offset[k];
        at[k] = meeting->from[k] - slice->attr.offset[k];
    }
    Node *met = graph_node(g, "slice", attr_placed(&part, of), 1, (Node **)&pad->in[0]);
    return graph_node(g, "pad", attr_placed(&slice->type, at), 1, &met);
}

/* A slice of a concatenation reads those parts only that it meets. Without this, a value that is put together and taken apart
 * again at each of many steps would be read through all parts of all steps before. NULL: it meets all of them. */
static Node *slice_of_parts(Graph *g, const Node *slice) {
    Node *whole = slice->in[0], *met = NULL, *pad, *rest = NULL;
    bool misses = whole->op == &op_pad;
    for (Node *n = whole; n; n = rest) {
        Meeting meeting;
        if (!(pad = last_part(n, &rest)))
            return NULL;
        misses |= !meets(slice, pad, &meeting);
    }
    for (Node *n = misses ? whole : NULL; n; n = rest) {
        Meeting meeting;
        if (!meets(slice, (pad = last_part(n, &rest)), &meeting))
            continue;
        Node *part = met_part(g, slice, pad, &meeting);
        met = met ? add(g, part, met) : part;
    }
    return met || !misses ? met : constant_like(g, 0, slice);
}

/* A slice of a slice is one. */
Node *simplify_slice(Graph *g, Node *n) {
    Node *inner = operand_of(n->in[0], n->op);
    int64_t offset[MAX_RANK] = {0};
    if (same_type(n->in[0], n))
        return n->in[0];
    if (!inner)
        return slice_of_parts(g, n);
    for (int k = 0; k < n->type.rank; k++)
        offset[k] = n->attr.offset[k] + n->in[0]->attr.offset[k];
    return graph_node(g, "slice", attr_placed(&n->type, offset), 1, &inner);
}

Node *simplify_pad(Graph *g, Node *n) {
    (void)g;
    return same_type(n->in[0], n) ? n->in[0] : NULL;
}

/* ---- arithmetic ---- */

/* Whole numbers stay as they are written: a formula that is equal may pass their 32 bits on the way. */
static bool is_real(const Node *n) {
    return n->type.dtype == DT_F32;
}

/* x + 0 = x;  x + -y = x - y;  -x + y = y - x */
Node *simplify_add(Graph *g, Node *n) {
    Node *positive, *one = joined_neighbours(g, n->in[0], n->in[1]);
    if (one || !is_real(n))
        return one;
    if (is_constant(n->in[1], 0))
        return n->in[0];
    if (is_constant(n->in[0], 0))
        return n->in[1];
    if ((positive = negated(g, n->in[1])))
        return sub(g, n->in[0], positive);
    if ((positive = negated(g, n->in[0])))
        return sub(g, n->in[1], positive);
    return NULL;
}

/* x - 0 = x;  0 - x = -x;  x - -y = x + y */
Node *simplify_sub(Graph *g, Node *n) {
    Node *positive;
    if (!is_real(n))
        return NULL;
    if (is_constant(n->in[1], 0))
        return n->in[0];
    if (is_constant(n->in[0], 0))
        return op1(g, "neg", n->in[1]);
    if ((positive = negated(g, n->in[1])))
        return add(g, n->in[0], positive);
    return NULL;
}

/* x * 1 = x;  x * -1 = -x;  (x * c) * d = x * (c d) for constants c and d */
static Node *simplify_factor(Graph *g, Node *n, int factor) {
    Node *other = n->in[1 - factor];
    double c, d;
    if (!graph_constant_value(n->in[factor], &c))
        return NULL;
    if (c == 1)
        return other;
    if (c == -1)
        return op1(g, "neg", other);
    for (int k = 0; other->op == n->op && k < 2; k++)
        if (graph_constant_value(other->in[k], &d))
            return mul(g, other->in[1 - k], constant_like(g, c * d, n));
    return NULL;
}

/* The condition that n is as a number, perhaps expanded; NULL: it is none. */
static Node *as_condition(Graph *g, Node *n) {
    Node *expanded = operand_of(n, &op_expand);
    Node *condition = operand_of(expanded ? expanded : n, &op_cast);
    if (!condition || condition->type.dtype != DT_BOOL)
        return NULL;
    return expanded ? expand_again(g, n, condition) : condition;
}

/* ... and x * -y = -(x * y);  x * (1 if c, else 0) = c ? x : 0, which is 0 where x is no number, too */
Node *simplify_mul(Graph *g, Node *n) {
    Node *condition;
    for (int k = 0; k < 2 && is_real(n); k++) {
        Node *simple = simplify_factor(g, n, k), *positive;
        if (simple)
            return simple;
        if ((positive = negated(g, n->in[k])))
            return op1(g, "neg", mul(g, positive, n->in[1 - k]));
    }
    for (int k = 0; k < 2 && is_real(n); k++)
        if ((condition = as_condition(g, n->in[k])))
            return masked(g, condition, n->in[1 - k]);
    return NULL;
}

/* x / c = x * (1 / c), where c is a constant or the same for many elements;  -x / y = -(x / y) */
Node *simplify_div(Graph *g, Node *n) {
    double c;
    Node *positive, *repeated = operand_of(n->in[1], &op_expand);
    if (graph_constant_value(n->in[1], &c) && c != 0)
        return mul(g, n->in[0], constant_like(g, 1 / c, n));
    if (repeated)
        return mul(g, n->in[0], expand_again(g, n->in[1], divide(g, graph_constant(g, 1), repeated)));
    if ((positive = negated(g, n->in[0])))
        return op1(g, "neg", divide(g, positive, n->in[1]));
    return NULL;
}

/* -(-x) = x */
Node *simplify_neg(Graph *g, Node *n) {
    (void)g;
    return operand_of(n->in[0], n->op);
}

/* Small exponents are products and roots. */
Node *simplify_pow(Graph *g, Node *n) {
    Node *x = n->in[0];
    double exponent;
    if (!graph_constant_value(n->in[1], &exponent))
        return NULL;
    if (exponent == 0)
        return constant_like(g, 1, n);
    if (exponent == 1)
        return x;
    if (exponent == 2)
        return mul(g, x, x);
    if (exponent == 3)
        return mul(g, mul(g, x, x), x);
    if (exponent == 0.5)
        return op1(g, "sqrt", x);
    if (exponent == -1)
        return divide(g, constant_like(g, 1, n), x);
    return NULL;
}

/* ---- conditions and element types ---- */

/* A cast of a cast that lost nothing; f32 of a constant. */
Node *simplify_cast(Graph *g, Node *n) {
    Node *inner = operand_of(n->in[0], n->op);
    double value;
    if (n->in[0]->type.dtype == n->type.dtype)
        return n->in[0];
    if (n->type.dtype == DT_F32 && graph_constant_value(n->in[0], &value))
        return constant_like(g, value, n);
    if (!inner || (inner->type.dtype != DT_BOOL && inner->type.dtype != DT_U8))
        return NULL;
    return graph_cast(g, inner, n->type.dtype);
}

/* Integers that were converted in order to be compared are compared as they are. */
Node *simplify_compare(Graph *g, Node *n) {
    Node *a = operand_of(n->in[0], &op_cast), *b = operand_of(n->in[1], &op_cast);
    if (!a || !b || a->type.dtype != DT_I32 || b->type.dtype != DT_I32 || n->in[0]->type.dtype != DT_F32)
        return NULL;
    return op2(g, n->op->name, a, b);
}

/* c ? x : x = x;  not c ? x : y = c ? y : x */
Node *simplify_where(Graph *g, Node *n) {
    Node *opposite = operand_of(n->in[0], &op_not);
    if (n->in[1] == n->in[2])
        return n->in[1];
    return opposite ? select(g, opposite, n->in[2], n->in[1]) : NULL;
}

Node *simplify_stop_gradient(Graph *g, Node *n) {
    (void)g;
    return n->in[0];
}

/* ---- views ---- */

Node *simplify_reshape(Graph *g, Node *n) {
    Node *inner = operand_of(n->in[0], n->op);
    if (same_type(n->in[0], n))
        return n->in[0];
    return inner ? graph_reshape(g, inner, &n->type) : NULL;
}

/* An expansion of an expansion: the inner's new axes as the outer numbers them, and the outer's own. */
Node *simplify_expand(Graph *g, Node *n) {
    Node *inner = operand_of(n->in[0], n->op);
    if (!inner)
        return NULL;
    Attr attr = n->attr;
    for (int k = 0, axis = 0; k < n->type.rank; k++)
        if (!(n->attr.axes >> k & 1) && n->in[0]->attr.axes >> axis++ & 1)
            attr.axes |= 1u << k;
    return graph_node(g, "expand", attr, 1, &inner);
}

/* Only axes of size 1 change their places. */
static bool keeps_memory_order(const Node *transpose) {
    int64_t last = -1;
    for (int k = 0; k < transpose->type.rank; k++) {
        if (transpose->type.dim[k] == 1)
            continue;
        if (transpose->attr.dims[k] < last)
            return false;
        last = transpose->attr.dims[k];
    }
    return true;
}

Node *simplify_transpose(Graph *g, Node *n) {
    Node *inner = operand_of(n->in[0], n->op);
    int permutation[MAX_RANK];
    if (keeps_memory_order(n))
        return graph_reshape(g, n->in[0], &n->type);
    if (!inner)
        return NULL;
    for (int k = 0; k < n->type.rank; k++)
        permutation[k] = (int)n->in[0]->attr.dims[n->attr.dims[k]];
    return graph_transpose(g, inner, permutation);
}

/* ---- reductions ---- */

static bool sizes_are_one(const Type *t, unsigned axes) {
    for (int k = 0; k < t->rank; k++)
        if (axes >> k & 1 && t->dim[k] != 1)
            return false;
    return true;
}

/* Nothing is folded along axes of size 1. */
Node *simplify_reduce(Graph *g, Node *n) {
    return sizes_are_one(&n->in[0]->type, n->attr.axes) ? graph_reshape(g, n->in[0], &n->type) : NULL;
}

/* The sum of `count` equal elements. */
static Node *sum_of_expansion(Graph *g, Node *n) {
    double count = (double)type_elements(&n->in[0]->type) / (double)type_elements(&n->type);
    return scale(g, graph_repeated(g, n->in[0], n->attr.axes), count);
}

enum { DEEPEST_FACTOR = 16 };

/* A factor of the product, of products in it too, that is the same along all of `axes`, but is no constant; or NULL. `*depth`
 * becomes the number of products that it is a factor of. */
static Node *common_factor(Node *n, unsigned axes, int *depth) {
    double constant;
    if (n->op == &op_expand && !(axes & ~n->attr.axes) && !graph_constant_value(n, &constant))
        return n;
    Node *found = NULL;
    int above = *depth;
    for (int k = 0; k < 2 && n->op == &op_mul && above < DEEPEST_FACTOR && !found; k++) {
        *depth = above + 1;
        found = common_factor(n->in[k], axes, depth);
    }
    return found;
}

/* The product without one of its factors; NULL: nothing is left. */
static Node *without_factor(Graph *g, Node *n, const Node *factor) {
    if (n == factor)
        return NULL;
    if (n->op != &op_mul)
        return n;
    for (int k = 0; k < 2; k++) {
        Node *rest = without_factor(g, n->in[k], factor);
        if (rest != n->in[k])
            return rest ? mul(g, rest, n->in[1 - k]) : n->in[1 - k];
    }
    return n;
}

/* sum of a c over axes along which c only repeats itself = c times the sum of a: equal sums are found to be equal, and what is
 * folded does not wait for c. The products without c are copies, where others read those with c; along a chain of them, each sum
 * would have its own copy of the chain. */
static Node *sum_of_multiples(Graph *g, Node *n) {
    int depth = 0;
    Node *factor = n->in[0]->op == &op_mul ? common_factor(n->in[0], n->attr.axes, &depth) : NULL;
    if (!factor || depth > g->copies)
        return NULL;
    g->copies -= depth;
    Node *sum = graph_reduce(g, "sum", without_factor(g, n->in[0], factor), n->attr.axes);
    return mul(g, sum, graph_repeated(g, factor, n->attr.axes));
}

/* Sums of sums over all of their axes at once; sums along axes that were only broadcast. */
Node *simplify_sum(Graph *g, Node *n) {
    Node *x = n->in[0], *inner = operand_of(x, n->op);
    Node *simple = simplify_reduce(g, n);
    if (simple)
        return simple;
    if (operand_of(x, &op_expand) && !(n->attr.axes & ~x->attr.axes))
        return sum_of_expansion(g, n);
    if ((simple = sum_of_multiples(g, n)))
        return simple;
    if (!inner)
        return NULL;
    unsigned axes = x->attr.axes;
    for (int k = 0, axis = 0; k < inner->type.rank; k++)
        if (!(x->attr.axes >> k & 1) && n->attr.axes >> axis++ & 1)
            axes |= 1u << k;
    return graph_reduce(g, "sum", inner, axes);
}

/* ---- products ---- */

/* A matrix whose last two axes are exchanged, and no other. */
static Node *transposed_matrix(const Node *n) {
    int rank = n->type.rank;
    if (n->op != &op_transpose || n->attr.dims[rank - 1] != rank - 2)
        return NULL;
    for (int k = 0; k < rank - 2; k++)
        if (n->attr.dims[k] != k)
            return NULL;
    return n->in[0];
}

/* A product reads a transposed operand where it lies. */
Node *simplify_matmul(Graph *g, Node *n) {
    Node *a = transposed_matrix(n->in[0]), *b = transposed_matrix(n->in[1]);
    if (!a && !b)
        return NULL;
    return graph_matmul(g, a ? a : n->in[0], b ? b : n->in[1], n->attr.ta != !!a, n->attr.tb != !!b);
}
