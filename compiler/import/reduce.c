/* Sums, means and the like along axes, and what compares along one. */
#include "import/rules.h"

/* The axes of a reduction, marked; false: none is given, and that means none. */
static bool find_axes(Importer *im, Node *node, const Shape *shape, bool *marked) {
    int64_t axes[2 * MOST_RANK];
    const int count =
        node->inputs > 1 ? known_list(im, node, 1, "the axes", axes) : ints_attribute(im, node, "axes", axes);
    for (int i = 0; i < shape->all.rank; i++)
        marked[i] = count == 0;
    for (int i = 0; i < count; i++)
        marked[axis_from(im, axes[i], shape->all.rank, "an axis")] = true;
    return count > 0 || !int_attribute(im, node, "noop_with_empty_axes", 0);
}

static Shape reduced_shape(const Shape *shape, const bool *marked, bool keep) {
    Shape result = {.batch = -1, .ahead = shape->ahead};
    for (int i = 0; i < shape->all.rank; i++) {
        if (i == shape->batch)
            result.batch = result.all.rank;
        if (!marked[i] || keep)
            result.all.size[result.all.rank++] = marked[i] ? 1 : shape->all.size[i];
    }
    return result;
}

static const char *axes_text(Importer *im, const Shape *shape, const bool *marked) {
    int64_t axes[MOST_RANK];
    int count = 0;
    for (int i = 0; i < shape->all.rank; i++)
        if (marked[i])
            axes[count++] = text_axis(im, shape, i);
    return count == 1 ? arena_printf(im->arena, "%lld", (long long)axes[0]) : list_text(im, axes, count);
}

/* Of whole numbers ONNX has whole results, which of sums, products and extremes are the numbers' own. */
static Element reduced_element(Importer *im, const Node *node) {
    static const char *const kept[] = {"sum", "max", "min", "prod", "sum|abs", "sum|square"};
    const Element element = node->input[0]->element;
    for (size_t i = 0; i < sizeof kept / sizeof *kept && element == WHOLE; i++)
        if (strcmp(kept[i], node->operator->text) == 0)
            return WHOLE;
    if (element != REAL)
        refuse(im, "of %s mtc has no such operator", element == WHOLE ? "whole numbers" : "conditions");
    return REAL;
}

/* The function's name is before the bar in the row's text, what its operand and result become behind: "sqrt(@)|sum|square($)". */
void reduce_rule(Importer *im, Node *node) {
    Value *x = node->input[0];
    bool marked[MOST_RANK];
    const bool keep = int_attribute(im, node, "keepdims", 1) != 0, reduces = find_axes(im, node, &x->shape, marked);
    if (!reduces && strcmp(node->operator->text, "sum") != 0 && strcmp(node->operator->text, "mean") != 0)
        refuse(im, "it reduces no axis (noop_with_empty_axes), and is left out best");
    if (!reduces || x->shape.all.rank == 0) {
        give_view(im, node, x, &x->shape);
        return;
    }
    const Element element = reduced_element(im, node);
    const Shape shape = reduced_shape(&x->shape, marked, keep);
    const char *rest =
        arena_printf(im->arena, ", axis = %s%s)", axes_text(im, &x->shape, marked), keep ? ", keep = true" : "");
    char *function = arena_strdup(im->arena, node->operator->text), *inner = strchr(function, '|');
    if (inner)
        *inner++ = '\0';
    const char *text = inner ? arena_printf(im->arena, "%s(%s)", inner, operand(im, x, OR)) : operand(im, x, OR);
    char *outer = strchr(function, '(');
    if (outer)
        *outer++ = '\0';
    text = arena_printf(im->arena, "%s(%s%s", outer ? outer : function, text, rest);
    give(im, node, 0, element, &shape,
         outer ? text_expression(im, ATOM, "%s(%s)", function, text) : text_expression(im, ATOM, "%s", text));
}

/* argmax, or of the negative operand. */
void arg_rule(Importer *im, Node *node) {
    Value *x = node->input[0];
    const int axis = axis_from(im, int_attribute(im, node, "axis", 0), x->shape.all.rank, "attribute axis");
    bool marked[MOST_RANK] = {false};
    marked[axis] = true;
    const Shape shape = reduced_shape(&x->shape, marked, int_attribute(im, node, "keepdims", 1) != 0);
    const Shape without = without_axis(&x->shape, axis);
    const bool least = node->operator->text[0] == '-', last = int_attribute(im, node, "select_last_index", 0) != 0;
    const int at = text_axis(im, &x->shape, axis);
    const char *text = arena_printf(im->arena, "%s%s", least ? "-" : "", operand(im, x, least ? POWER : OR));
    Expression e = last ? text_expression(im, SUM, "%lld - argmax(flip(%s, axis = %d), axis = %d)",
                                          (long long)x->shape.all.size[axis] - 1, text, at, at)
                        : text_expression(im, ATOM, "argmax(%s, axis = %d)", text, at);
    e.extents = text_extents(&without);
    give_as(im, node, 0, WHOLE, &shape, e);
}

/* ---- along one axis ---- */

/* Before version 13 softmax works on all axes from one on, as one. */
static void softmax_from(Importer *im, Node *node, int axis) {
    Value *x = node->input[0];
    Extents flat = {0};
    int64_t behind = 1;
    for (int i = 0; i < x->shape.all.rank; i++) {
        behind *= i >= axis ? x->shape.all.size[i] : 1;
        if (i >= axis && i == x->shape.batch)
            text_axis(im, &x->shape, i);
        if (i < axis && has_text_axis(&x->shape, i))
            flat.size[flat.rank++] = x->shape.all.size[i];
    }
    flat.size[flat.rank++] = behind;
    Expression e = text_expression(im, ATOM, "%s(%s)", node->operator->text, operand_as(im, x, &flat, OR));
    e.extents = flat;
    give_as(im, node, 0, REAL, &x->shape, e);
}

void softmax_rule(Importer *im, Node *node) {
    Value *x = node->input[0];
    const int rank = x->shape.all.rank,
              axis = axis_from(im, int_attribute(im, node, "axis", im->version < 13 ? 1 : -1), rank, "attribute axis");
    if (node->output[0]->output && !x->constant)
        named(im, x); /* scores of classes, of which the loss is better computed */
    if (im->version < 13 && axis < rank - 1) {
        softmax_from(im, node, axis);
        return;
    }
    const Extents extents = text_extents(&x->shape);
    const int at = text_axis(im, &x->shape, axis);
    give(im, node, 0, REAL, &x->shape,
         around(im, x, arena_printf(im->arena, "%s(", node->operator->text),
                at == extents.rank - 1 ? ")" : arena_printf(im->arena, ", axis = %d)", at)));
}

void hardmax_rule(Importer *im, Node *node) {
    Value *x = node->input[0];
    const int rank = x->shape.all.rank,
              axis = axis_from(im, int_attribute(im, node, "axis", im->version < 13 ? 1 : -1), rank, "attribute axis");
    Shape keep = x->shape;
    if (im->version < 13 && axis != rank - 1)
        refuse(im, "before version 13 of the operators its axis is the last alone");
    keep.all.size[axis] = 1;
    const Extents kept = text_extents(&keep);
    Extents along = {.rank = kept.rank};
    const int at = text_axis(im, &x->shape, axis);
    for (int i = 0; i < along.rank; i++)
        along.size[i] = i == at ? x->shape.all.size[axis] : 1;
    give(im, node, 0, REAL, &x->shape,
         text_expression(im, ATOM, "where(reshape(argmax(%s, axis = %d), %s) == reshape(iota(%lld), %s), 1, 0)",
                         operand(im, x, OR), at, sizes_text(im, &kept), (long long)x->shape.all.size[axis],
                         sizes_text(im, &along)));
}

void cumsum_rule(Importer *im, Node *node) {
    Value *x = node->input[0];
    int64_t given[2 * MOST_RANK];
    if (known_list(im, node, 1, "the axis", given) != 1)
        refuse(im, "its axis is not one number");
    const int axis = text_axis(im, &x->shape, axis_from(im, given[0], x->shape.all.rank, "the axis"));
    const bool back = int_attribute(im, node, "reverse", 0) != 0;
    const int64_t size = x->shape.all.size[axis_from(im, given[0], x->shape.all.rank, "the axis")];
    const char *text =
        arena_printf(im->arena, "cumsum(%s, axis = %d%s)", operand(im, x, OR), axis, back ? ", reversed = true" : "");
    if (int_attribute(im, node, "exclusive", 0) && size > 1)
        text = arena_printf(im->arena, "pad(slice(%s, %d, %d, %lld), %d, %s = 1)", text, axis, back,
                            (long long)size - !back, axis, back ? "after" : "before");
    else if (int_attribute(im, node, "exclusive", 0))
        text = arena_printf(im->arena, "0 * %s", text);
    give(im, node, 0, x->element, &x->shape, text_expression(im, PRODUCT, "%s", text));
}

/* The k largest, and where they are; the smallest are the largest of the negative ones. */
void topk_rule(Importer *im, Node *node) {
    Value *x = node->input[0];
    const int axis = axis_from(im, int_attribute(im, node, "axis", -1), x->shape.all.rank, "attribute axis");
    int64_t k[2 * MOST_RANK];
    const bool least = !int_attribute(im, node, "largest", 1);
    if (node->inputs > 1 ? known_list(im, node, 1, "k", k) != 1 : !attribute(im, node, "k"))
        refuse(im, "its k is not one number");
    k[0] = node->inputs > 1 ? k[0] : int_attribute(im, node, "k", 1);
    if (k[0] < 1 || k[0] > x->shape.all.size[axis])
        refuse(im, "it asks for %lld of %lld elements", (long long)k[0], (long long)x->shape.all.size[axis]);
    const bool places = node->outputs > 1 && node->output[1] && (node->output[1]->uses || node->output[1]->output);
    const char *values = identifier(im, node->output[0]->name, "best"),
               *indices = places ? identifier(im, node->output[1]->name, "places") : "_";
    state(im, arena_printf(im->arena, "%s, %s", values, indices),
          arena_printf(im->arena, "topk(%s%s, %lld, axis = %d)", least ? "-" : "", operand(im, x, least ? POWER : OR),
                       (long long)k[0], text_axis(im, &x->shape, axis)));
    Shape shape = x->shape;
    shape.all.size[axis] = k[0];
    give(im, node, 0, x->element, &shape, text_expression(im, least ? SIGN : ATOM, "%s%s", least ? "-" : "", values));
    node->output[0]->stated = !least;
    give(im, node, 1, WHOLE, &shape, text_expression(im, ATOM, "%s", indices));
    if (places)
        node->output[1]->stated = true;
}
