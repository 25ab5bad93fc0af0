/* Values that lie otherwise than their nodes: expansions that are left to broadcasting, transposes that are left to whoever reads. */
#include "onnx/order.h"
#include "onnx/inside.h"

static const int in_order[MAX_RANK] = {0, 1, 2, 3, 4, 5, 6, 7};

static bool is_order(const int *a, const int *b, int rank) {
    return memcmp(a, b, (size_t)rank * sizeof *a) == 0;
}

OnnxValue onnx_value(const char *name) {
    return onnx_value_in(name, MAX_RANK, in_order);
}

OnnxValue onnx_value_in(const char *name, int rank, const int *order) {
    OnnxValue value = {.name = name};
    memcpy(value.order, order, (size_t)rank * sizeof *order);
    return value;
}

OnnxValue onnx_like(OnnxValue value, const char *name) {
    value.name = name;
    return value;
}

int onnx_axis(const OnnxValue *value, int axis) {
    int at = 0;
    while (value->order[at] != axis)
        at++;
    return at;
}

/* ---- all axes there ---- */

/* The type of the node with its axes in that order, 1 along those in `ones`. The batch stays in front. */
static Type type_in_order(const Type *type, const int *order, unsigned ones) {
    Type result = *type;
    result.batched = type->batched && !(ones & 1);
    for (int k = 0; k < type->rank; k++)
        result.dim[k] = ones >> order[k] & 1 ? 1 : type->dim[order[k]];
    return result;
}

static bool is_single(const OnnxValue *value, const Type *type) {
    return value->lacks == type->rank;
}

/* Do those axes that it does not repeat along come one after the other as in that order? */
static bool keeps_sequence(const OnnxValue *value, const Type *type, const int *order) {
    int at = 0;
    for (int k = 0; k < type->rank; k++) {
        if (value->ones >> order[k] & 1)
            continue;
        while (value->ones >> value->order[at] & 1)
            at++;
        if (value->order[at++] != order[k])
            return false;
    }
    return true;
}

/* Its axes in that order, all there, with extent 1 where it repeats. A single number is left as it is. */
static OnnxValue arranged(Onnx *o, OnnxValue value, const Type *type, const int *order) {
    bool same = is_order(value.order, order, type->rank);
    if (!value.name || is_single(&value, type) || (same && !value.lacks))
        return value;
    OnnxValue result = onnx_value_in(value.name, type->rank, order);
    result.ones = value.ones;
    if (value.ones && keeps_sequence(&value, type, order)) {
        Type wanted = type_in_order(type, order, value.ones);
        result.name = onnx_reshape(o, value.name, &wanted);
        return result;
    }
    int axes[MAX_RANK];
    if (value.lacks)
        value = arranged(o, value, type, value.order);
    for (int k = 0; k < type->rank; k++)
        axes[k] = onnx_axis(&value, order[k]);
    result.name = onnx_transpose(o, value.name, type->rank, axes);
    return result;
}

/* Those along which there is more than one element. */
static unsigned long_axes(const Type *type) {
    unsigned axes = type->batched;
    for (int k = 0; k < type->rank; k++)
        axes |= (unsigned)(type->dim[k] > 1) << k;
    return axes;
}

OnnxValue onnx_ordered(Onnx *o, OnnxValue value, const Type *type, const int *order) {
    OnnxValue result = arranged(o, value, type, order);
    Type wanted = type_in_order(type, order, 0);
    if (result.name && result.ones & long_axes(type))
        result.name = onnx2(o, "Expand", result.name, onnx_shape(o, &wanted));
    else if (result.lacks)
        result.name = onnx_reshape(o, result.name, &wanted);
    return onnx_value_in(result.name, type->rank, order);
}

/* ---- operands ---- */

OnnxValue onnx_operand_thin(Onnx *o, const Node *n, int k) {
    return o->values[n->in[k]->id];
}

OnnxValue onnx_operand_any(Onnx *o, const Node *n, int k) {
    OnnxValue value = onnx_operand_thin(o, n, k);
    return onnx_ordered(o, value, &n->in[k]->type, value.order);
}

const char *onnx_operand_in(Onnx *o, const Node *n, int k, const int *order) {
    return onnx_ordered(o, onnx_operand_thin(o, n, k), &n->in[k]->type, order).name;
}

const char *onnx_operand(Onnx *o, const Node *n, int k) {
    return onnx_operand_in(o, n, k, in_order);
}

/* ---- maps ---- */

/* Whose order of axes the map takes: the first operand that is whole, else the one that repeats along the fewest axes. */
static const OnnxValue *leader(const OnnxValue *in, int count) {
    const OnnxValue *best = &in[0];
    for (int k = 1; k < count; k++)
        if (__builtin_popcount(in[k].ones) < __builtin_popcount(best->ones))
            best = &in[k];
    return best;
}

OnnxValue onnx_meet(Onnx *o, const Node *n, const char **in) {
    OnnxValue values[MAX_INPUTS] = {0};
    for (int k = 0; k < n->inputs; k++)
        values[k] = onnx_operand_thin(o, n, k);
    OnnxValue result = *leader(values, n->inputs);
    for (int k = 0; k < n->inputs; k++) {
        const bool same = is_order(values[k].order, result.order, n->type.rank);
        in[k] = (same ? values[k] : arranged(o, values[k], &n->type, result.order)).name;
        result.ones &= values[k].ones;
        result.lacks = values[k].lacks < result.lacks ? values[k].lacks : result.lacks;
    }
    return result;
}

/* ---- expansions and transposes ---- */

/* The first axis of the expansion that the operand has, and brings along. */
static int first_axis(const Node *n, int lacks) {
    int axis = 0;
    for (int left = lacks; axis < n->type.rank && (left || n->attr.axes >> axis & 1); axis++)
        left -= !(n->attr.axes >> axis & 1);
    return axis;
}

OnnxValue onnx_expansion(Onnx *o, const Node *n) {
    const Type *from = &n->in[0]->type;
    OnnxValue in = onnx_operand_thin(o, n, 0);
    if (!is_order(in.order, in_order, from->rank))
        in = arranged(o, in, from, in_order);
    OnnxValue result = onnx_value(in.name);
    int64_t added[MAX_RANK];
    int count = 0;
    result.lacks = first_axis(n, in.lacks);
    for (int k = 0, axis = 0; k < n->type.rank; k++)
        if (n->attr.axes >> k & 1) {
            result.ones |= 1u << k;
            if (k > result.lacks)
                added[count++] = k - result.lacks;
        } else {
            result.ones |= (in.ones >> axis++ & 1) << k;
        }
    if (count)
        result.name = onnx2(o, "Unsqueeze", in.name, onnx_numbers(o, count, added));
    return result;
}

OnnxValue onnx_exchange(Onnx *o, const Node *n) {
    const Type *from = &n->in[0]->type;
    OnnxValue in = onnx_operand_thin(o, n, 0);
    if (in.lacks && !is_single(&in, from))
        in = arranged(o, in, from, in.order);
    OnnxValue result = onnx_value(in.name);
    if (is_single(&in, from)) {
        result.lacks = in.lacks;
        result.ones = in.ones;
        return result;
    }
    for (int k = 0; k < from->rank; k++) {
        result.ones |= (in.ones >> n->attr.dims[k] & 1) << k;
        result.order[onnx_axis(&in, (int)n->attr.dims[k])] = k;
    }
    return result;
}
