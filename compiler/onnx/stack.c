/* Paddings, and concatenations, which graphs have as sums of them (build_stack in op/view.c). */
#include "onnx/onnx.h"

OnnxValue onnx_padded(Onnx *o, const Node *n, const char *mode) {
    OnnxValue x = onnx_operand_any(o, n, 0);
    int64_t pads[2 * MAX_RANK];
    const int rank = n->type.rank;
    for (int k = 0; x.name && k < rank; k++) {
        const int axis = onnx_axis(&x, k);
        pads[axis] = n->attr.offset[k];
        pads[rank + axis] = n->type.dim[k] - n->attr.offset[k] - n->in[0]->type.dim[k];
    }
    const char *in[] = {x.name, x.name ? onnx_numbers(o, 2 * rank, pads) : NULL};
    const OnnxAttr how = {.name = "mode", .kind = ONNX_TEXT, .text = mode};
    return onnx_like(x, onnx_node(o, "Pad", 2, in, 1, &how));
}

/* The axis along which a padding adds elements; -1: none, or several. */
static int padded_axis(const Node *n) {
    int axis = -1;
    for (int k = 0; k < n->type.rank; k++)
        if (n->type.dim[k] != n->in[0]->type.dim[k])
            axis = axis < 0 ? k : MAX_RANK;
    return axis < MAX_RANK ? axis : -1;
}

static bool is_padding(const Node *n) {
    return n->op->attrs & ATTR_OFFSET && !(n->op->flags & OP_MIRRORS) && n->inputs == 1 &&
           type_elements(&n->type) > type_elements(&n->in[0]->type);
}

enum { MOST_PARTS = 256 };

/* The paddings that are added up, from the last to the first. 0: something else is. */
static int parts_of(const Node *sum, const Node **parts) {
    int count = 0;
    const OpDef *op = sum->op;
    for (; sum->op == op; sum = sum->in[0]) {
        if (!is_padding(sum->in[1]) || count + 2 > MOST_PARTS)
            return 0;
        parts[count++] = sum->in[1];
    }
    parts[count++] = sum;
    return is_padding(sum) ? count : 0;
}

/* Each begins where the one before ends, and together they are all. */
static bool lie_in_line(const Node *const *parts, int count, int axis) {
    int64_t end = 0;
    for (int i = count - 1; i >= 0; i--) {
        if (padded_axis(parts[i]) != axis || parts[i]->attr.offset[axis] != end)
            return false;
        end += parts[i]->in[0]->type.dim[axis];
    }
    return end == parts[0]->type.dim[axis];
}

OnnxValue onnx_stack(Onnx *o, const Node *n) {
    const Node *parts[MOST_PARTS];
    const char *names[MOST_PARTS];
    const int count = parts_of(n, parts), axis = count ? padded_axis(parts[0]) : -1;
    if (axis < 0 || !lie_in_line(parts, count, axis))
        return (OnnxValue){0};
    OnnxValue first = onnx_operand_any(o, parts[count - 1], 0);
    for (int i = 0; i < count; i++)
        names[i] = onnx_operand_in(o, parts[count - 1 - i], 0, first.order);
    return onnx_like(first, onnx_concat(o, count, names, onnx_axis(&first, axis)));
}
