/* Beyond the ends of a tensor, what a mirror in its first and its last element shows: 2 1 [0 1 2 3] 2 1. */
#include "op/compose.h"

/* The operand begins at attr.offset. */
static void view_reflect(Arena *arena, const Node *n, const Tree *const *index, IndexMap *map) {
    for (int k = 0; k < n->type.rank; k++) {
        const int64_t size = n->in[0]->type.dim[k];
        const Tree *const parts[] = {tree_shifted(arena, index[k], -n->attr.offset[k]), tree_number(arena, size)};
        map->index[k] = size == n->type.dim[k] ? index[k] : tree_form(arena, "reflected($0, $1)", parts, 2);
    }
}

INFER(reflect) {
    const Type *in = &n->in[0]->type;
    bool fits = in->rank == n->attr.rank;
    n->type = type_make(in->dtype, n->attr.batched, n->attr.rank, n->attr.dims);
    for (int k = 0; k < n->type.rank && fits; k++) {
        int64_t before = n->attr.offset[k], after = n->type.dim[k] - in->dim[k] - before;
        fits = before >= 0 && after >= 0 && before < in->dim[k] && after < in->dim[k];
    }
    return fits;
}

/* Where the one tensor begins in the other: at `at` along the axis. */
static Node *placed(Graph *g, const char *op, Node *x, const Type *shape, int axis, int64_t at) {
    int64_t offset[MAX_RANK] = {0};
    offset[axis] = at;
    return graph_node(g, op, attr_placed(shape, offset), 1, &x);
}

/* The elements begin .. end - 1 of x along the axis, from the last to the first, among zeros: from `at` on, of `size`. */
static Node *mirrored(Graph *g, Node *x, int axis, int64_t begin, int64_t end, int64_t at, int64_t size) {
    Type type = x->type;
    type.dim[axis] = end - begin;
    Node *part = placed(g, "slice", x, &type, axis, begin);
    Node *turned = graph_node(g, "flip", (Attr){.axes = 1u << axis}, 1, &part);
    type.dim[axis] = size;
    return placed(g, "pad", turned, &type, axis, at);
}

/* Along one axis: an element has the gradients of its images too. With `size` elements behind `before` images, images i and
 * before + size + i are those of elements before - i and size - 2 - i. */
static Node *unreflect(Graph *g, Node *dy, int axis, int64_t before, int64_t size) {
    Type type = dy->type;
    int64_t whole = type.dim[axis], end = before + size, after = whole - end;
    type.dim[axis] = size;
    Node *sum = placed(g, "slice", dy, &type, axis, before);
    if (before)
        sum = add(g, sum, mirrored(g, dy, axis, 0, before, 1, size));
    if (after)
        sum = add(g, sum, mirrored(g, dy, axis, end, whole, size - 1 - after, size));
    return sum;
}

GRAD(reflect) {
    din[0] = dy;
    for (int k = 0; k < n->type.rank; k++)
        if (n->in[0]->type.dim[k] != n->type.dim[k])
            din[0] = unreflect(g, din[0], k, n->attr.offset[k], n->in[0]->type.dim[k]);
}

bool call_reflects(Call *call, int arg, int64_t padding, int64_t size) {
    if (padding < size)
        return true;
    call_error(call, arg, "a mirror shows at most the %lld elements before the last, not %lld", (long long)size - 1,
               (long long)padding);
    return false;
}

TO_ONNX(reflect) {
    return onnx_padded(o, n, "reflect");
}

const OpDef op_reflect = {
    .name = "reflect",
    .cls = OP_VIEW,
    .flags = OP_MIRRORS,
    .arity = 1,
    .attrs = ATTR_DIMS | ATTR_OFFSET,
    .doc = "x, and beyond its ends what a mirror in its first and its last element shows.",
    .infer = infer_reflect,
    .range = range_as_input,
    .grad = grad_reflect,
    .view = view_reflect,
    .to_onnx = to_onnx_reflect,
};
