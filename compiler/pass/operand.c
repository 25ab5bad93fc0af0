/* How a product's operand lies in memory. What is no matrix there is still read where it is, when it is windows of images
 * or a filter seen from its outputs:
 *
 *     [P, KH KW C] = reshape(window(reshape(image)))           rows (n, oh, ow), columns (kh, kw, c)
 *     [KH KW O, C] = reshape(transpose(reshape(filter)))       rows (kh, kw, o), of the filter [O, KH, KW, C]
 *
 * Everything else is stored first, as a matrix. */
#include "pass/fuse.h"

/* On tensor cores, if there are such. */
static Math math_of_floats(Precision precision) {
    return precision == PRECISION_TF32 ? MATH_TF32 : precision == PRECISION_TF32X3 ? MATH_TF32X3 : MATH_FP32;
}

static Node *through_reshapes(const Fusion *f, Node *n) {
    while (n->op->cls == OP_VIEW && (n->op->flags & OP_CONTIGUOUS) && !f->home[n->id])
        n = n->in[0];
    return n;
}

/* Numbers that tensor cores take are stored as such first. */
static bool is_of_field(const Fusion *f, const Node *value) {
    return value->type.dtype == DT_F32 && math_of_floats(f->graph->module->precision) == MATH_FP32 &&
           f->program->machine->computed_operands && !f->home[value->id] && value->type.batched &&
           f->field[value->id] && !f->graph->module->fields.at[f->field[value->id]->attr.index].windows;
}

/* A row, or an image as windows see it, is an example of the field. */
static bool has_examples(const Fusion *f, const Node *value) {
    return is_of_field(f, value) && value->type.dim[0] == f->field[value->id]->type.dim[0];
}

static bool computed_while_loading(const Fusion *f, const Node *value) {
    return value->type.rank == 2 && has_examples(f, value);
}

/* [.., rows, cols] has the axes of the view from `first_column` on as its columns. */
static bool columns_are(const Operand *operand, const Node *view, int first_column) {
    return operand->cols == type_extent(&view->type, first_column, view->type.rank);
}

/* Outside of the image is 0. */
static bool is_window(const Fusion *f, const Node *n) {
    unsigned attrs = ATTR_SWEEP | ATTR_VALUE;
    return n->op->cls == OP_VIEW && !f->home[n->id] && (n->op->attrs & attrs) == attrs && n->attr.value == 0;
}

static bool is_filter(const Fusion *f, const Node *n) {
    static const int64_t order[] = {1, 2, 0, 3};
    if (n->op->cls != OP_VIEW || f->home[n->id] || !(n->op->attrs & ATTR_ORDER) || n->type.rank != 4)
        return false;
    for (int k = 0; k < 4; k++)
        if (n->attr.dims[k] != order[k])
            return false;
    return true;
}

static OperandKind kind_of_view(const Fusion *f, const Operand *operand, const Node *base) {
    if (is_window(f, base) && columns_are(operand, base, 3))
        return OPERAND_WINDOW;
    if (is_filter(f, base) && columns_are(operand, base, 3) && !operand->batched)
        return OPERAND_FILTER;
    return OPERAND_MATRIX;
}

/* Of reshapes of it: the value itself, unless what lies below exists anyway, or is shared as it is by other readers. */
static Node *to_store(const Fusion *f, Node *value) {
    Node *base = through_reshapes(f, value);
    bool field = base->op->flags & OP_BUFFER && base->type.batched;
    bool leaf = base->op->flags & OP_BUFFER && !field;
    return f->home[base->id] || base->op->cls == OP_MAP || leaf ? base : value;
}

Node *fusion_stored_whole(Fusion *f, Node *value) {
    return fusion_in_memory(f, to_store(f, value));
}

/* Views move numbers that are rounded already. */
static bool is_rounded(const Node *value) {
    while (value->op->cls == OP_VIEW && !(value->op->flags & OP_LOOKUP))
        value = value->in[0];
    return value->op->flags & OP_FEEDS_TENSOR_CORES;
}

static Operand operand_of(Fusion *f, Node *contraction, int k) {
    Node *value = contraction->in[k];
    const Type *type = &value->type;
    Operand operand = {.value = value,
                       .batched = type_extent(type, 0, type->rank - 2) > 1,
                       .rounded = is_rounded(value),
                       .rows = type->dim[type->rank - 2],
                       .cols = type->dim[type->rank - 1],
                       .transposed = k == 0 ? contraction->attr.ta : contraction->attr.tb};
    Node *base = through_reshapes(f, value);
    operand.kind = kind_of_view(f, &operand, base);
    if (computed_while_loading(f, value)) {
        operand.kind = OPERAND_COMPUTED;
        operand.computed = true;
        operand.buffer = f->field[value->id];
    } else if (operand.kind == OPERAND_WINDOW && has_examples(f, base->in[0])) {
        operand.view = base;
        operand.computed = true;
        operand.buffer = f->field[base->in[0]->id];
    } else if (operand.kind == OPERAND_MATRIX) {
        operand.buffer = fusion_stored_whole(f, value);
        operand.lasts = f->lasts[operand.buffer->id];
    } else {
        operand.view = base;
        operand.buffer = fusion_stored_whole(f, base->in[0]);
    }
    return operand;
}

/* Sums that tensor cores would mostly fill with filler stay on the others, in full fp32 whatever would do. */
Math product_math(const Kernel *kernel, Precision precision) {
    bool computed = kernel->a.computed || kernel->b.computed;
    bool large =
        kernel->m >= LEAST_TENSOR_EXTENT && kernel->n >= LEAST_TENSOR_EXTENT && kernel->k >= LEAST_TENSOR_EXTENT;
    if (kernel->a.value->type.dtype != DT_F32)
        return math_of_dtype(kernel->a.value->type.dtype);
    return large && !computed ? math_of_floats(precision) : MATH_FP32;
}

Math call_math(const Node *n) {
    const CallDef *call = n->op->call;
    const DType dtype = n->in[call->number]->type.dtype;
    return call->on_tensor_cores && call->on_tensor_cores(n) ? math_of_dtype(dtype) : MATH_FP32;
}

void product_describe(Fusion *f, Kernel *kernel, Node *contraction) {
    const Type *out = &contraction->type;
    kernel->contraction = contraction;
    kernel->a = operand_of(f, contraction, 0);
    kernel->b = operand_of(f, contraction, 1);
    kernel->m = out->dim[out->rank - 2];
    kernel->n = out->dim[out->rank - 1];
    kernel->k = kernel->a.transposed ? kernel->a.rows : kernel->a.cols;
    kernel->batches = type_elements(out) / (kernel->m * kernel->n);
    kernel->math = product_math(kernel, f->graph->module->precision);
}
