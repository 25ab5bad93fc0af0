/* Views that have the operand's elements in another order along some axes, each axis by itself. */
#include "op/compose.h"

/* ---- from the other end ---- */

static void view_flip(Arena *arena, const Node *n, const Tree *const *index, IndexMap *map) {
    for (int k = 0; k < n->type.rank; k++)
        map->index[k] =
            n->attr.axes >> k & 1 ? tree_infix(arena, "-", tree_number(arena, n->type.dim[k] - 1), index[k]) : index[k];
}

GRAD(flip) {
    din[0] = graph_node(g, "flip", n->attr, 1, &dy);
}

static Node *simplify_flip(UNUSED Graph *g, Node *n) {
    const Node *inner = n->in[0];
    return inner->op == n->op && inner->attr.axes == n->attr.axes ? inner->in[0] : NULL;
}

static Value build_flip(Call *call) {
    Node *x = call_tensor(call, 0);
    unsigned axes = x ? call_axes(call, 1, x) : 0;
    if (!axes) /* of a single number, or after a user error */
        return value_tensor(x && user_axes(x) ? NULL : x);
    return value_tensor(graph_node(call->g, "flip", (Attr){.axes = axes}, 1, &x));
}

/* ---- in a circle ---- */

/* Element i of the result is element i - attr.index, counted on from the other end where that is below 0. */
static void view_roll(Arena *arena, const Node *n, const Tree *const *index, IndexMap *map) {
    for (int k = 0; k < n->type.rank; k++) {
        int64_t size = n->type.dim[k];
        const Tree *moved = tree_shifted(arena, index[k], size - n->attr.index);
        map->index[k] = n->attr.axes >> k & 1 ? tree_infix(arena, "%", moved, tree_number(arena, size)) : index[k];
    }
}

/* `shift` may be negative, or pass the size. */
static Node *roll(Graph *g, Node *x, int axis, int64_t shift) {
    int64_t size = x->type.dim[axis], steps = (shift % size + size) % size;
    return steps ? graph_node(g, "roll", (Attr){.axes = 1u << axis, .index = (int)steps}, 1, &x) : x;
}

GRAD(roll) {
    din[0] = roll(g, dy, __builtin_ctz(n->attr.axes), -n->attr.index);
}

static Value build_roll(Call *call) {
    Node *x = call_tensor(call, 0);
    int axis = x ? call_axis(call, 2, x) : -1;
    int64_t shift = call_int(call, 1, -INT32_MAX, INT32_MAX);
    return value_tensor(axis < 0 || shift < -INT32_MAX ? NULL : roll(call->g, x, axis, shift));
}

/* ---- in ONNX ---- */

TO_ONNX(flip) {
    OnnxValue x = onnx_operand_any(o, n, 0);
    int64_t axes[MAX_RANK], starts[MAX_RANK], ends[MAX_RANK], steps[MAX_RANK];
    int count = 0;
    for (int k = 0; x.name && k < n->type.rank; k++)
        if (n->attr.axes >> k & 1) {
            axes[count] = onnx_axis(&x, k);
            starts[count] = steps[count] = -1;
            ends[count++] = INT64_MIN;
        }
    const char *in[] = {x.name, onnx_numbers(o, count, starts), onnx_numbers(o, count, ends),
                        onnx_numbers(o, count, axes), onnx_numbers(o, count, steps)};
    return onnx_like(x, onnx_node(o, "Slice", 5, in, 0, NULL));
}

TO_ONNX(roll) {
    OnnxValue x = onnx_operand_any(o, n, 0);
    int axis = __builtin_ctz(n->attr.axes);
    int64_t first = n->type.dim[axis] - n->attr.index;
    axis = x.name ? onnx_axis(&x, axis) : axis;
    const char *parts[] = {onnx_slice(o, x.name, axis, first, INT64_MAX), onnx_slice(o, x.name, axis, 0, first)};
    return onnx_like(x, onnx_concat(o, 2, parts, axis));
}

#define REORDERING .cls = OP_VIEW, .flags = OP_CHEAP | OP_REORDERS, .arity = 1, .infer = infer_as_input

const OpDef op_flip = {
    REORDERING,
    .name = "flip",
    .attrs = ATTR_AXES,
    .doc = "The elements from the last to the first along the axes, by default all.",
    .example = "y = flip(x, axis = 0)",
    .grad = grad_flip,
    .simplify = simplify_flip,
    .view = view_flip,
    .to_onnx = to_onnx_flip,
    .signature = "x, axis: axes = none",
    .build = build_flip,
};

const OpDef op_roll = {
    REORDERING,
    .name = "roll",
    .attrs = ATTR_AXES | ATTR_INDEX,
    .doc = "The elements moved on by `shift` places along an axis; those that pass the end come in at the other.",
    .example = "y = roll(x, 1, axis = 0)",
    .grad = grad_roll,
    .view = view_roll,
    .to_onnx = to_onnx_roll,
    .signature = "x, shift: int, axis: axis",
    .build = build_roll,
};
