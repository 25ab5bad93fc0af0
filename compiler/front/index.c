/* Parts of tensors: x[0], x[-1], x[:, 1:3]. The axes are those of the example; a place is known when compiling. */
#include "front/lower.h"
#include "op/compose.h"

/* The part that is being read off: an extent and a beginning for each axis, which of them a single index leaves out. */
typedef struct PartOf {
    Lowering *l;
    const Type *whole;
    Type shape;
    int64_t offset[MAX_RANK];
    unsigned dropped;
} PartOf;

static const char *shape_text(const PartOf *part) {
    return type_user_text(part->l->arena, part->whole);
}

static void not_whole(const PartOf *part, const Expr *place, const Value *v) {
    Text found = TEXT(part->l->arena);
    if (v->kind == VALUE_NUMBER && !v->varies)
        text_number(&found, v->number);
    else
        text_puts(&found, value_kind_text(part->l->arena, v));
    diag_error(part->l->diag, place->span, "a place in an axis is a whole number known when compiling, not %s",
               text_string(&found));
    if (v->kind == VALUE_TENSOR)
        diag_note(part->l->diag, place->span, "rows that an example chooses are looked up: gather(table, index)");
}

/* A place from -size to `last`, counted from the beginning. */
static bool read_place(Frame *frame, const PartOf *part, int axis, Expr *place, int64_t last, int64_t *result) {
    static const int64_t FARTHEST = ((int64_t)1 << 53) - 1; /* a double tells it from its neighbours */
    int64_t size = part->whole->dim[axis];
    Value v = eval(frame, place);
    if (v.kind == VALUE_ERROR)
        return false;
    if (!value_whole(part->l->module, &v, -FARTHEST, FARTHEST, result)) {
        not_whole(part, place, &v);
        return false;
    }
    bool fits = *result >= -size && *result <= last;
    if (!fits)
        diag_error(part->l->diag, place->span,
                   "%lld is outside of axis %d of %s: it goes from 0 to %lld, or from -%lld", (long long)*result,
                   axis - part->whole->batched, shape_text(part), (long long)last, (long long)size);
    *result += *result < 0 ? size : 0;
    return fits;
}

static bool read_index(Frame *frame, PartOf *part, int axis, Expr *place) {
    part->shape.dim[axis] = 1;
    part->dropped |= 1u << axis;
    return read_place(frame, part, axis, place, part->whole->dim[axis] - 1, &part->offset[axis]);
}

static bool read_range(Frame *frame, PartOf *part, int axis, const Expr *range) {
    Expr *begin = range->args.at[0].value, *end = range->args.at[1].value;
    int64_t size = part->whole->dim[axis], from = 0, to = size;
    if ((begin->kind != EXPR_NONE && !read_place(frame, part, axis, begin, size, &from)) ||
        (end->kind != EXPR_NONE && !read_place(frame, part, axis, end, size, &to)))
        return false;
    part->offset[axis] = from;
    part->shape.dim[axis] = to - from;
    if (to <= from)
        diag_error(part->l->diag, range->span, "this range is empty: %lld to %lld of axis %d of %s", (long long)from,
                   (long long)to, axis - part->whole->batched, shape_text(part));
    return to > from;
}

static bool read_places(Frame *frame, PartOf *part, const Expr *e) {
    int axes = part->whole->rank - part->whole->batched, places = e->args.count - 1;
    bool fit = places <= axes;
    if (axes == 0)
        diag_error(part->l->diag, e->span, "%s is one number, which has no parts", shape_text(part));
    else if (!fit)
        diag_error(part->l->diag, e->span, "%s has %d ax%s, and here are %d places", shape_text(part), axes,
                   axes == 1 ? "is" : "es", places);
    for (int i = 0; i < places && places <= axes; i++) {
        Expr *place = e->args.at[i + 1].value;
        int axis = i + part->whole->batched;
        fit &= place->kind == EXPR_RANGE ? read_range(frame, part, axis, place) : read_index(frame, part, axis, place);
    }
    return fit;
}

static Node *cut(Graph *g, Node *x, const PartOf *part) {
    Type kept = {.dtype = x->type.dtype, .batched = x->type.batched};
    bool smaller = !type_same_shape(&part->shape, &x->type);
    Node *sliced = smaller ? graph_node(g, "slice", attr_placed(&part->shape, part->offset), 1, &x) : x;
    for (int k = 0; k < x->type.rank; k++)
        if (!(part->dropped >> k & 1))
            kept.dim[kept.rank++] = part->shape.dim[k];
    return part->dropped ? graph_reshape(g, sliced, &kept) : sliced;
}

static bool are_indices(const Expr *e) {
    for (int i = 1; i < e->args.count; i++)
        if (e->args.at[i].value->kind == EXPR_RANGE)
            return false;
    return true;
}

/* An element of a list is what stands there: a number that may be a size, or a tensor. */
static Value eval_element(Frame *frame, Value list, const Expr *e) {
    Value element = list;
    for (int i = 1; i < e->args.count; i++) {
        Expr *place = e->args.at[i].value;
        int64_t at;
        if (element.kind != VALUE_LIST) {
            diag_error(frame->l->diag, place->span, "this is one place too many: what is there is %s",
                       value_kind_text(frame->l->arena, &element));
            return value_error();
        }
        if (!eval_whole(frame, place, -element.count, element.count - 1, &at))
            return value_error();
        element = element.items[at < 0 ? at + element.count : at];
    }
    return element;
}

Value eval_index(Frame *frame, Expr *e) {
    Lowering *l = frame->l;
    Value whole = eval(frame, e->args.at[0].value);
    if (whole.kind == VALUE_ERROR)
        return whole;
    if (whole.kind == VALUE_LIST && are_indices(e))
        return eval_element(frame, whole, e);
    Node *x = value_node(l->g, &whole);
    if (!x && whole.kind == VALUE_LIST)
        return value_error();
    if (!x) {
        diag_error(l->diag, e->args.at[0].value->span, "a tensor has parts, and this is %s",
                   value_kind_text(l->arena, &whole));
        return value_error();
    }
    PartOf part = {.l = l, .whole = &x->type, .shape = x->type};
    if (!read_places(frame, &part, e))
        return value_error();
    Span before = graph_at(l->g, e->span);
    Value result = value_tensor(cut(l->g, x, &part));
    graph_at(l->g, before);
    result.made = whole.made;
    result.made_at = whole.made_at;
    return result;
}
