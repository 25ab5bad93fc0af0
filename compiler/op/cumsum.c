/* Sums of all elements so far: a kernel of its own, for each of them is made of the one before.
 *
 *     y[i] = sum over k <= i of x[k],   dx[k] = sum over i >= k of dy[i]: the same from the other end */
#include "op/compose.h"

#include "kernels_lib/shared.h"

/* Along the axis of attr.axes; attr.index: from its end. */
static int axis_of(const Node *n) {
    return __builtin_ctz(n->attr.axes);
}

INFER(cumsum) {
    n->type = n->in[0]->type;
    return n->type.dtype == DT_F32 && n->attr.axes && !(n->attr.axes >> n->type.rank);
}

static Node *cumsum(Graph *g, Node *x, unsigned axes, bool reversed) {
    return graph_node(g, "cumsum", (Attr){.axes = axes, .index = reversed}, 1, &x);
}

GRAD(cumsum) {
    din[0] = cumsum(g, dy, n->attr.axes, !n->attr.index);
}

static Node *simplify_cumsum(UNUSED Graph *g, Node *n) {
    return n->type.dim[axis_of(n)] == 1 ? n->in[0] : NULL;
}

static const char *cumsum_arguments(Arena *arena, const Node *n) {
    int axis = axis_of(n);
    return arena_printf(arena, ".outer = %s, .length = $0%d, .inner = %s, .reversed = %s",
                        call_extents(arena, '0', &n->type, 0, axis), axis,
                        call_extents(arena, '0', &n->type, axis + 1, n->type.rank), n->attr.index ? "true" : "false");
}

static int64_t cumsum_tiles(const Node *n) {
    int axis = axis_of(n);
    int64_t inner = type_extent(&n->type, axis + 1, n->type.rank), lines = type_extent(&n->type, 0, axis) * inner;
    return (lines + cumsum_lines(inner) - 1) / cumsum_lines(inner);
}

static double cumsum_flops(const Node *n) {
    return (double)type_elements(&n->type);
}

static const char *cumsum_equation(Arena *arena, const Node *n) {
    Text place = TEXT(arena);
    for (int axis = 0; axis < n->type.rank; axis++)
        text_printf(&place, "%s%s", axis ? ", " : "", axis == axis_of(n) ? "%s" : "..");
    const char *own = arena_printf(arena, text_string(&place), "i"),
               *each = arena_printf(arena, text_string(&place), "k");
    return arena_printf(arena, "$r[%s] = sum over k %s i of $0[%s]", own, n->attr.index ? ">=" : "<=", each);
}

static const CallDef cumsum_call = {
    .header = "cumsum",
    .about = "sums of all elements so far",
    .shape = "CumSum",
    .meaning = "lines beside each other, their length, numbers of an element, from the end",
    .number = 0,
    .arguments = cumsum_arguments,
    .tiles = cumsum_tiles,
    .flops = cumsum_flops,
    .equation = cumsum_equation,
};

TO_ONNX(cumsum) {
    OnnxValue x = onnx_operand_any(o, n, 0);
    const int64_t axis = x.name ? onnx_axis(&x, axis_of(n)) : 0;
    const char *in[] = {x.name, onnx_table(o, 0, NULL, &axis)};
    return onnx_like(x, onnx_node(o, "CumSum", 2, in, 1, &ONNX_NUMBER("reverse", n->attr.index)));
}

static Value build_cumsum(Call *call) {
    Node *x = graph_cast(call->g, call_tensor(call, 0), DT_F32);
    int axis = x ? call_axis(call, 1, x) : -1;
    bool reversed = call_bool(call, 2);
    return value_tensor(axis < 0 ? NULL : cumsum(call->g, x, 1u << axis, reversed));
}

const OpDef op_cumsum = {
    .name = "cumsum",
    .cls = OP_CALL,
    .arity = 1,
    .attrs = ATTR_AXES | ATTR_INDEX,
    .doc = "Along an axis, the sum of all elements up to each; reversed, from each to the last.",
    .example = "y = cumsum(x)",
    .infer = infer_cumsum,
    .grad = grad_cumsum,
    .simplify = simplify_cumsum,
    .call = &cumsum_call,
    .to_onnx = to_onnx_cumsum,
    .signature = "x, axis: axis = -1, reversed: bool = false",
    .build = build_cumsum,
};
