/* Order by comparisons. The rank of an element is how many come before it:
 *
 *     rank[i] = number of j with x[j] > x[i], or x[j] = x[i] and j < i          descending; ascending with <
 *     y[k]    = sum over i with rank[i] = k of x[i]                             one i, each has a rank of its own
 *
 * So the gradient of y[k] goes to the element that stands there, and nothing new is to be differentiated or emitted. It costs n^2
 * comparisons for n elements, which is little for some hundred and too much for a vocabulary: there is a limit. */
#include "op/compose.h"

enum { MOST_RANKED = 4096 };

typedef struct Ranking {
    Node *x, *rank; /* f32, of one shape */
    int axis;
} Ranking;

/* A value of the ranking's axes with an axis of `size` in front of the one that is ranked. */
static Type beside(const Ranking *r, int64_t size) {
    Type type = r->x->type;
    memmove(type.dim + r->axis + 1, type.dim + r->axis, (size_t)(type.rank - r->axis) * sizeof *type.dim);
    type.dim[r->axis] = size;
    type.rank++;
    return type;
}

/* A value of x's shape at all places of such a type: along the axis of x, or along the one in front. */
static Node *along(Graph *g, const Ranking *r, Node *value, const Type *type, bool in_front) {
    return graph_expand(g, insert_axis(g, value, in_front ? r->axis + 1 : r->axis), type);
}

static Node *ranks(Graph *g, const Ranking *r, bool descending) {
    Type pairs = beside(r, r->x->type.dim[r->axis]);
    Node *own = along(g, r, r->x, &pairs, true), *other = along(g, r, r->x, &pairs, false);
    Node *earlier = op2(g, "lt", graph_iota(g, &pairs, r->axis + 1), graph_iota(g, &pairs, r->axis));
    Node *tie = op2(g, "and", op2(g, "eq", other, own), earlier);
    Node *before = op2(g, "or", op2(g, descending ? "gt" : "lt", other, own), tie);
    Node *rank = graph_reduce(g, "sum", before, 1u << (r->axis + 1));
    rank->hint = "rank";
    return rank;
}

/* Of the elements with the ranks 0 .. count - 1, a value that has x's shape. */
static Node *in_order(Graph *g, const Ranking *r, int64_t count, Node *value) {
    Type places = beside(r, count);
    Node *rank = along(g, r, r->rank, &places, false), *place = graph_iota(g, &places, r->axis);
    Node *here = op2(g, "eq", rank, graph_cast(g, place, DT_F32));
    return graph_reduce(g, "sum", masked(g, here, along(g, r, value, &places, false)), 1u << (r->axis + 1));
}

/* Whole numbers below the size of the axis, as what is made of them may know. */
static Node *indices_in_order(Graph *g, const Ranking *r, int64_t count) {
    Node *index = graph_cast(g, graph_iota(g, &r->x->type, r->axis), DT_F32);
    Node *found = graph_cast(g, in_order(g, r, count, index), DT_I32);
    return graph_node(g, "clamped", (Attr){.index = (int)r->x->type.dim[r->axis]}, 1, &found);
}

/* False after a user error. */
static bool read_ranking(Call *call, int axis, bool descending, Ranking *r) {
    Node *x = r->x = graph_cast(call->g, call_tensor(call, 0), DT_F32);
    if (!x || (r->axis = call_axis(call, axis, x)) < 0 || !call_parts_no_batch(call, 0, x, 1u << r->axis))
        return false;
    int64_t size = x->type.dim[r->axis];
    if (size > MOST_RANKED)
        call_error(call, 0, "%s compares each element with each other, at most %d, not %lld; max and argmax take more",
                   call->op->name, MOST_RANKED, (long long)size);
    else if (x->type.rank == MAX_RANK)
        call_error(call, 0, "%s has no room for one more axis", type_user_text(call->g->arena, &x->type));
    else
        r->rank = ranks(call->g, r, descending);
    return size <= MOST_RANKED && x->type.rank < MAX_RANK;
}

static Value build_sort(Call *call) {
    Ranking r;
    if (!read_ranking(call, 1, call_bool(call, 2), &r))
        return value_tensor(NULL);
    return value_tensor(in_order(call->g, &r, r.x->type.dim[r.axis], r.x));
}

static Value build_argsort(Call *call) {
    Ranking r;
    if (!read_ranking(call, 1, call_bool(call, 2), &r))
        return value_tensor(NULL);
    return value_tensor(indices_in_order(call->g, &r, r.x->type.dim[r.axis]));
}

static Value build_topk(Call *call) {
    Ranking r;
    int64_t count = call_size(call, 1);
    if (count < 0 || !read_ranking(call, 2, true, &r))
        return value_tensor(NULL);
    if (count > r.x->type.dim[r.axis]) {
        call_error(call, 1, "the largest %lld of %lld elements: k is at most the size of the axis", (long long)count,
                   (long long)r.x->type.dim[r.axis]);
        return value_tensor(NULL);
    }
    Value *both = NEW_ARRAY(call->g->arena, Value, 2);
    both[0] = value_tensor(in_order(call->g, &r, count, r.x));
    both[1] = value_tensor(indices_in_order(call->g, &r, count));
    return (Value){.kind = VALUE_SEVERAL, .items = both, .count = 2};
}

#define COMPARED " Each element is compared with each other: an axis has at most 4096."

const OpDef op_sort = {
    .name = "sort",
    .cls = OP_LIBRARY,
    .doc = "The elements along an axis, from the smallest to the largest, or descending. The gradient goes to the "
           "element that stands there." COMPARED,
    .example = "y = sort(x)",
    .signature = "x, axis: axis = -1, descending: bool = false",
    .build = build_sort,
};

const OpDef op_argsort = {
    .name = "argsort",
    .cls = OP_LIBRARY,
    .doc = "The indices by which the elements along an axis are sorted, of equal ones the first first." COMPARED,
    .example = "y = x * argsort(x)",
    .signature = "x, axis: axis = -1, descending: bool = false",
    .build = build_argsort,
};

const OpDef op_topk = {
    .name = "topk",
    .cls = OP_LIBRARY,
    .doc = "Two values: the k largest elements along an axis, from the largest on, and their indices." COMPARED,
    .example = "y, index = topk(x, 2)",
    .signature = "x, k: size, axis: axis = -1",
    .build = build_topk,
};
