/* Views: an element of the result is an element of the operand, or 0; nothing is moved. */
#include "op/compose.h"

/* ---- index expressions ---- */

void view_requires(Arena *arena, const Tree **guard, const Tree *index, const char *relation, int64_t number) {
    const Tree *comparison = tree_infix(arena, relation, index, tree_number(arena, number));
    *guard = *guard ? tree_infix(arena, "&&", *guard, comparison) : comparison;
}

/* A run of axes [first, end) of a shape and their number of elements. */
typedef struct Run {
    int first, end;
    int64_t elements;
} Run;

static void extend(Run *run, const Type *t) {
    run->elements *= t->dim[run->end++];
}

/* The shortest runs from here on that hold equally many elements in both shapes. */
static void next_runs(const Type *to, Run *a, const Type *from, Run *b) {
    *a = (Run){a->end, a->end, 1};
    *b = (Run){b->end, b->end, 1};
    if (a->end < to->rank)
        extend(a, to);
    while (a->elements != b->elements || (b->end == b->first && b->end < from->rank))
        if (a->elements <= b->elements && a->end < to->rank)
            extend(a, to);
        else if (b->end < from->rank)
            extend(b, from);
        else
            break;
}

/* The position inside a run: i * 28 + j. */
static const Tree *run_position(Arena *arena, const Type *t, Run run, const Tree *const *index) {
    const Tree *position = NULL;
    for (int k = run.first; k < run.end; k++) {
        if (t->dim[k] == 1)
            continue;
        const Tree *before = position ? tree_infix(arena, "*", position, tree_number(arena, t->dim[k])) : NULL;
        position = tree_plus(arena, before, index[k]);
    }
    return position ? position : tree_number(arena, 0);
}

/* position / stride % size for each axis of the run. */
static void split_position(Arena *arena, const Tree *position, const Type *t, Run run, const Tree **index) {
    int64_t stride = run.elements;
    for (int k = run.first; k < run.end; k++) {
        int64_t outer = stride;
        stride /= t->dim[k];
        if (t->dim[k] == 1) {
            index[k] = tree_number(arena, 0);
            continue;
        }
        index[k] = position;
        if (stride > 1)
            index[k] = tree_infix(arena, "/", index[k], tree_number(arena, stride));
        if (outer < run.elements)
            index[k] = tree_infix(arena, "%", index[k], tree_number(arena, t->dim[k]));
    }
}

static void view_reshape(Arena *arena, const Node *n, const Tree *const *index, IndexMap *map) {
    const Type *from = &n->in[0]->type;
    Run to_run = {0}, from_run = {0};
    while (from_run.end < from->rank) {
        next_runs(&n->type, &to_run, from, &from_run);
        split_position(arena, run_position(arena, &n->type, to_run, index), from, from_run, map->index);
    }
}

static void view_expand(UNUSED Arena *arena, const Node *n, const Tree *const *index, IndexMap *map) {
    for (int k = 0, axis = 0; k < n->type.rank; k++)
        if (!(n->attr.axes >> k & 1))
            map->index[axis++] = index[k];
}

static void view_transpose(UNUSED Arena *arena, const Node *n, const Tree *const *index, IndexMap *map) {
    for (int k = 0; k < n->type.rank; k++)
        map->index[n->attr.dims[k]] = index[k];
}

static void view_slice(Arena *arena, const Node *n, const Tree *const *index, IndexMap *map) {
    for (int k = 0; k < n->type.rank; k++)
        map->index[k] = tree_shifted(arena, index[k], n->attr.offset[k]);
}

/* Where the operand lies along axis k of the result: "j >= 2 && j < 7". */
static void inside(Arena *arena, const Tree **guard, const Node *n, int k, const Tree *index) {
    int64_t begin = n->attr.offset[k], end = begin + n->in[0]->type.dim[k];
    if (begin > 0)
        view_requires(arena, guard, index, ">=", begin);
    if (end < n->type.dim[k])
        view_requires(arena, guard, index, "<", end);
}

static void view_pad(Arena *arena, const Node *n, const Tree *const *index, IndexMap *map) {
    for (int k = 0; k < n->type.rank; k++) {
        map->index[k] = tree_shifted(arena, index[k], -n->attr.offset[k]);
        inside(arena, &map->guard, n, k, index[k]);
    }
}

/* ---- types ---- */

static void set_shape(Node *n) {
    n->type = type_make(n->in[0]->type.dtype, n->attr.batched, n->attr.rank, n->attr.dims);
}

INFER(reshape) {
    set_shape(n);
    if (type_elements(&n->type) == type_elements(&n->in[0]->type))
        return true;
    int64_t examples = n->type.batched ? n->type.dim[0] : 1;
    diag_error(g->module->diag, n->src, "reshape: %s has %lld elements, %s would have %lld",
               type_user_text(g->arena, &n->in[0]->type), (long long)(type_elements(&n->in[0]->type) / examples),
               type_user_text(g->arena, &n->type), (long long)(type_elements(&n->type) / examples));
    return false;
}

/* The axes that are not new are the operand's, in order. */
INFER(expand) {
    const Type *in = &n->in[0]->type;
    int axis = 0;
    set_shape(n);
    for (int k = 0; k < n->type.rank; k++)
        if (!(n->attr.axes >> k & 1) && (axis >= in->rank || n->type.dim[k] != in->dim[axis++]))
            return false;
    return axis == in->rank;
}

INFER(transpose) {
    const Type *in = &n->in[0]->type;
    unsigned seen = 0;
    n->type = *in;
    for (int k = 0; k < in->rank; k++) {
        n->type.dim[k] = in->dim[n->attr.dims[k]];
        seen |= 1u << n->attr.dims[k];
    }
    return seen == (1u << in->rank) - 1 && (!in->batched || n->attr.dims[0] == 0);
}

static bool lies_within(const Type *small, const Type *large, const int64_t *offset) {
    for (int k = 0; k < large->rank; k++)
        if (offset[k] < 0 || offset[k] + small->dim[k] > large->dim[k])
            return false;
    return small->rank == large->rank;
}

INFER(slice) {
    set_shape(n);
    return lies_within(&n->type, &n->in[0]->type, n->attr.offset);
}

INFER(pad) {
    set_shape(n);
    return lies_within(&n->in[0]->type, &n->type, n->attr.offset);
}

/* ---- gradients ---- */

Attr attr_placed(const Type *shape, const int64_t *offset) {
    Attr attr = attr_shape(shape);
    memcpy(attr.offset, offset, sizeof attr.offset);
    return attr;
}

GRAD(reshape) {
    din[0] = graph_reshape(g, dy, &n->in[0]->type);
}

GRAD(expand) {
    din[0] = graph_reduce(g, "sum", dy, n->attr.axes);
}

GRAD(transpose) {
    int inverse[MAX_RANK];
    for (int k = 0; k < n->type.rank; k++)
        inverse[n->attr.dims[k]] = k;
    din[0] = graph_transpose(g, dy, inverse);
}

GRAD(slice) {
    din[0] = graph_node(g, "pad", attr_placed(&n->in[0]->type, n->attr.offset), 1, &dy);
}

GRAD(pad) {
    din[0] = graph_node(g, "slice", attr_placed(&n->in[0]->type, n->attr.offset), 1, &dy);
}

/* ---- in the language ---- */

/* The user's shape; one size may be -1: what remains. */
static bool read_sizes(Call *call, const Node *x, Type *shape) {
    Call items = call_items(call, 1);
    int64_t known = x->type.batched ? x->type.dim[0] : 1;
    int unknown = -1;
    for (int k = 0; k < items.count; k++) {
        int64_t size = call_int(&items, k, -1, INT32_MAX);
        if (size < -1)
            return false;
        if (size == 0 || (size == -1 && unknown >= 0)) {
            call_error(&items, k, size ? "only one size may be left open with -1" : "a size is at least 1");
            return false;
        }
        if (size < 0)
            unknown = shape->rank;
        known = size_product(known, size < 0 ? 1 : size);
        shape->dim[shape->rank++] = size;
    }
    if (unknown >= 0)
        shape->dim[unknown] = known > 0 && known <= type_elements(&x->type) ? type_elements(&x->type) / known : 1;
    return true;
}

static Value build_reshape(Call *call) {
    Node *x = call_tensor(call, 0);
    const Value *list = &call->args[1];
    if (!x || list->kind == VALUE_ERROR)
        return value_tensor(NULL);
    if (list->kind != VALUE_LIST || list->count + x->type.batched > MAX_RANK) {
        call_error(call, 1, "expected a list of at most %d sizes", MAX_RANK - 1);
        return value_tensor(NULL);
    }
    Type shape = {.dtype = x->type.dtype, .batched = x->type.batched, .rank = x->type.batched};
    shape.dim[0] = x->type.dim[0];
    return value_tensor(read_sizes(call, x, &shape) ? graph_reshape(call->g, x, &shape) : NULL);
}

static Value build_flatten(Call *call) {
    Node *x = call_tensor(call, 0);
    if (!x)
        return value_tensor(NULL);
    Type shape = {.dtype = x->type.dtype, .batched = x->type.batched, .rank = x->type.batched + 1};
    shape.dim[0] = x->type.dim[0];
    shape.dim[shape.rank - 1] = type_elements(&x->type) / (x->type.batched ? x->type.dim[0] : 1);
    return value_tensor(graph_reshape(call->g, x, &shape));
}

static Value build_transpose(Call *call) {
    Node *x = call_tensor(call, 0);
    int a = x ? call_axis(call, 1, x) : -1;
    int b = x ? call_axis(call, 2, x) : -1;
    if (a < 0 || b < 0)
        return value_tensor(NULL);
    int permutation[MAX_RANK];
    for (int k = 0; k < x->type.rank; k++)
        permutation[k] = k == a ? b : k == b ? a : k;
    return value_tensor(graph_transpose(call->g, x, permutation));
}

static Value build_slice(Call *call) {
    Node *x = call_tensor(call, 0);
    int axis = x ? call_axis(call, 1, x) : -1;
    if (axis < 0)
        return value_tensor(NULL);
    int64_t size = x->type.dim[axis];
    int64_t begin = call_int(call, 2, 0, size - 1);
    int64_t end = begin < 0 ? -1 : call_int(call, 3, begin + 1, size);
    if (begin < 0 || end <= begin)
        return value_tensor(NULL);
    Type shape = x->type;
    int64_t offset[MAX_RANK] = {0};
    shape.dim[axis] = end - begin;
    offset[axis] = begin;
    if (end - begin == size)
        return value_tensor(x);
    return value_tensor(graph_node(call->g, "slice", attr_placed(&shape, offset), 1, &x));
}

static Value build_pad(Call *call) {
    Node *x = call_tensor(call, 0);
    int axis = x ? call_axis(call, 1, x) : -1;
    if (axis < 0)
        return value_tensor(NULL);
    int64_t before = call_int(call, 2, 0, INT32_MAX);
    int64_t after = call_int(call, 3, 0, INT32_MAX - x->type.dim[axis] - (before < 0 ? 0 : before));
    if (before < 0 || after < 0)
        return value_tensor(NULL);
    bool reflects = call_word(call, 4, PAD_ZEROS) == PAD_REFLECT;
    if (reflects &&
        (!call_reflects(call, 2, before, x->type.dim[axis]) || !call_reflects(call, 3, after, x->type.dim[axis])))
        return value_tensor(NULL);
    Type shape = x->type;
    int64_t offset[MAX_RANK] = {0};
    shape.dim[axis] += before + after;
    offset[axis] = before;
    if (before + after == 0)
        return value_tensor(x);
    return value_tensor(graph_node(call->g, reflects ? "reflect" : "pad", attr_placed(&shape, offset), 1, &x));
}

static Value build_permute(Call *call) {
    Node *x = call_tensor(call, 0);
    Call items = call_items(call, 1);
    int order[MAX_RANK] = {0}, first = x ? x->type.batched : 0;
    unsigned seen = 0;
    if (!x || call->args[1].kind == VALUE_ERROR)
        return value_tensor(NULL);
    for (int k = 0; k < items.count && first + k < x->type.rank; k++) {
        if ((order[first + k] = call_axis(&items, k, x)) < 0)
            return value_tensor(NULL);
        seen |= 1u << order[first + k];
    }
    if (first + items.count == x->type.rank && seen == user_axes(x))
        return value_tensor(graph_transpose(call->g, x, order));
    call_error(call, 1, "expected a list of the %d axes of %s, each once, in the order that they get",
               x->type.rank - first, type_user_text(call->g->arena, &x->type));
    return value_tensor(NULL);
}

/* Equal but for the size of one axis. */
static bool stacks_on(const Type *a, const Type *b, int axis) {
    if (a->rank != b->rank)
        return false;
    for (int k = 0; k < a->rank; k++)
        if (k != axis && a->dim[k] != b->dim[k])
            return false;
    return true;
}

/* The parts lie one after the other in the sum of their paddings. */
Node *build_stack(Graph *g, Node *const *parts, int count, int axis) {
    Type shape = parts[0]->type;
    for (int i = 1; i < count; i++)
        shape.dim[axis] += parts[i]->type.dim[axis];
    int64_t offset[MAX_RANK] = {0};
    Node *whole = NULL;
    for (int i = 0; i < count; i++) {
        Node *part = graph_node(g, "pad", attr_placed(&shape, offset), 1, &parts[i]);
        whole = whole ? op2(g, "add", whole, part) : part;
        offset[axis] += parts[i]->type.dim[axis];
    }
    return whole;
}

Node *insert_axis(Graph *g, Node *x, int at) {
    Type shape = x->type;
    shape.rank++;
    for (int k = shape.rank - 1; k > at; k--)
        shape.dim[k] = shape.dim[k - 1];
    shape.dim[at] = 1;
    return graph_reshape(g, x, &shape);
}

/* Labels where numbers are wanted are a common mistake. */
static void note_classes(const Module *module, const Node *part) {
    const Field *field = part && part->op->table == TABLE_FIELD ? &module->fields.at[part->attr.index] : NULL;
    if (field && field->kind == FIELD_CLASS)
        diag_note(module->diag, field->src, "'%s' is a class label; as numbers: one_hot(%s, %d)", field->name,
                  field->name, field->classes);
}

/* The tensors of the list as f32, each of each example if one of them is; NULL after a user error. */
static Node **read_parts(Call *call, Call *items) {
    Graph *g = call->g;
    *items = call_items(call, 0);
    if (call->args[0].kind == VALUE_ERROR)
        return NULL;
    if (items->count == 0) {
        call_error(call, 0, "expected a list of tensors, like %s([a, b])", call->op->name);
        return NULL;
    }
    Node **parts = NEW_ARRAY(g->arena, Node *, items->count);
    for (int i = 0; i < items->count; i++)
        if (!(parts[i] = graph_cast(g, call_tensor(items, i), DT_F32)))
            return NULL;
    return graph_share_batch(g, items->count, parts) ? parts : NULL;
}

static Value build_concat(Call *call) {
    Graph *g = call->g;
    Call items;
    Node **parts = read_parts(call, &items);
    int axis = parts ? call_axis(call, 1, parts[0]) : -1;
    if (axis < 0)
        return value_tensor(NULL);
    for (int i = 1; i < items.count; i++)
        if (!stacks_on(&parts[0]->type, &parts[i]->type, axis)) {
            call_error(&items, i, "concat: %s does not continue %s along that axis",
                       type_user_text(g->arena, &parts[i]->type), type_user_text(g->arena, &parts[0]->type));
            note_classes(call->module, items.args[i].node);
            return value_tensor(NULL);
        }
    return value_tensor(items.count == 1 ? parts[0] : build_stack(g, parts, items.count, axis));
}

/* The parts along a new axis. */
static Value build_stacked(Call *call) {
    Graph *g = call->g;
    Call items;
    Node **parts = read_parts(call, &items);
    if (!parts)
        return value_tensor(NULL);
    if (parts[0]->type.rank == MAX_RANK) {
        call_error(call, 0, "%s has no room for one more axis", type_user_text(g->arena, &parts[0]->type));
        return value_tensor(NULL);
    }
    int axis = call_axis(call, 1, insert_axis(g, parts[0], parts[0]->type.batched));
    if (axis < 0)
        return value_tensor(NULL);
    for (int i = 1; i < items.count; i++)
        if (!type_same_shape(&parts[i]->type, &parts[0]->type)) {
            call_error(&items, i, "stack: %s does not lie beside %s, which has another shape",
                       type_user_text(g->arena, &parts[i]->type), type_user_text(g->arena, &parts[0]->type));
            return value_tensor(NULL);
        }
    for (int i = 0; i < items.count; i++)
        parts[i] = insert_axis(g, parts[i], axis);
    return value_tensor(build_stack(g, parts, items.count, axis));
}

/* ---- in ONNX ---- */

TO_ONNX(reshape) {
    return onnx_value(onnx_reshape(o, onnx_operand(o, n, 0), &n->type));
}

TO_ONNX(slice) {
    OnnxValue x = onnx_operand_any(o, n, 0);
    for (int k = 0; k < n->type.rank; k++)
        if (n->type.dim[k] != n->in[0]->type.dim[k])
            x.name = onnx_slice(o, x.name, onnx_axis(&x, k), n->attr.offset[k], n->attr.offset[k] + n->type.dim[k]);
    return x;
}

TO_ONNX(pad) {
    return onnx_padded(o, n, "constant");
}

const OpDef op_reshape = {
    .name = "reshape",
    .cls = OP_VIEW,
    .flags = OP_CHEAP | OP_CONTIGUOUS,
    .arity = 1,
    .attrs = ATTR_DIMS,
    .doc = "The same elements in the same order, in another shape. One size may be -1: what remains.",
    .example = "y = reshape(x, [2, 3])",
    .infer = infer_reshape,
    .grad = grad_reshape,
    .simplify = simplify_reshape,
    .view = view_reshape,
    .to_onnx = to_onnx_reshape,
    .signature = "x, shape: list",
    .build = build_reshape,
};

const OpDef op_expand = {
    .name = "expand",
    .cls = OP_VIEW,
    .flags = OP_CHEAP | OP_REPEATS,
    .arity = 1,
    .attrs = ATTR_DIMS | ATTR_AXES,
    .doc = "x repeated along the new axes attr.axes: what broadcasting writes.",
    .infer = infer_expand,
    .grad = grad_expand,
    .simplify = simplify_expand,
    .view = view_expand,
};

const OpDef op_transpose = {
    .name = "transpose",
    .cls = OP_VIEW,
    .flags = OP_CHEAP,
    .arity = 1,
    .attrs = ATTR_ORDER,
    .doc = "Two axes exchanged, by default the last two.",
    .example = "y = transpose(reshape(x, [2, 3]))",
    .infer = infer_transpose,
    .grad = grad_transpose,
    .simplify = simplify_transpose,
    .view = view_transpose,
    .signature = "x, a: axis = -2, b: axis = -1",
    .build = build_transpose,
};

const OpDef op_permute = {
    .name = "permute",
    .cls = OP_LIBRARY,
    .doc = "The axes in another order: axis k of the result is axis order[k] of x.",
    .example = "y = permute(image, [1, 2, 0])",
    .signature = "x, order: list",
    .build = build_permute,
};

const OpDef op_slice = {
    .name = "slice",
    .cls = OP_VIEW,
    .flags = OP_CHEAP,
    .arity = 1,
    .attrs = ATTR_DIMS | ATTR_OFFSET,
    .doc = "The elements begin .. end - 1 along an axis.",
    .example = "y = slice(x, 0, 1, 3)",
    .infer = infer_slice,
    .grad = grad_slice,
    .simplify = simplify_slice,
    .view = view_slice,
    .to_onnx = to_onnx_slice,
    .signature = "x, axis: axis, begin: int, end: int",
    .build = build_slice,
};

const OpDef op_pad = {
    .name = "pad",
    .cls = OP_VIEW,
    .flags = OP_CHEAP,
    .arity = 1,
    .attrs = ATTR_DIMS | ATTR_OFFSET,
    .doc =
        "Zeros before and after, along an axis; or, in the mode \"reflect\", what a mirror in the first and the last "
        "element shows.",
    .example = "y = pad(x, 0, before = 1, after = 2)",
    .infer = infer_pad,
    .grad = grad_pad,
    .simplify = simplify_pad,
    .view = view_pad,
    .to_onnx = to_onnx_pad,
    .signature = "x, axis: axis, before: int = 0, after: int = 0, " PADDING_MODE,
    .build = build_pad,
};

const OpDef op_flatten = {
    .name = "flatten",
    .cls = OP_LIBRARY,
    .doc = "All of an example's elements as one vector.",
    .example = "y = flatten(x)",
    .signature = "x",
    .build = build_flatten,
};

const OpDef op_concat = {
    .name = "concat",
    .cls = OP_LIBRARY,
    .doc = "The tensors one after the other along an axis.",
    .example = "y = concat([x, x], axis = 0)",
    .signature = "parts: list, axis: axis = 0",
    .build = build_concat,
};

const OpDef op_stack = {
    .name = "stack",
    .cls = OP_LIBRARY,
    .doc = "Tensors of one shape beside each other along a new axis, which is the result's `axis`.",
    .example = "y = stack([x, 2 * x], axis = 1)",
    .signature = "parts: list, axis: axis = 0",
    .build = build_stacked,
};
