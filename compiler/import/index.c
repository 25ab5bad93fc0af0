/* Parts of tensors, and tensors of parts. */
#include "import/fold.h"
#include "import/rules.h"

/* ---- concat and split ---- */

/* All but the axis agree, and the batch is one axis of all that have it. */
static Shape joined_shape(Importer *im, const Node *node, int axis) {
    Shape shape = node->input[0]->shape;
    for (int i = 1; i < node->inputs; i++)
        if (node->input[i]->shape.batch >= 0)
            shape.batch = node->input[i]->shape.batch;
    for (int i = 0; i < node->inputs; i++) {
        Shape part = node->input[i]->shape;
        const bool fits = part.all.rank == shape.all.rank && (part.batch < 0 || part.batch == shape.batch);
        const int64_t own = fits ? part.all.size[axis] : 0;
        if (fits)
            part.all.size[axis] = shape.all.size[axis];
        if (!fits || !extents_same(&part.all, &shape.all) || own > INT32_MAX - (i ? shape.all.size[axis] : 0))
            refuse(im, "input %d is %s, beside %s", i, shape_text(im, &node->input[i]->shape),
                   shape_text(im, &node->input[0]->shape));
        shape.all.size[axis] = (i ? shape.all.size[axis] : 0) + own;
    }
    return shape;
}

void concat_rule(Importer *im, Node *node) {
    const int axis =
        axis_from(im, int_attribute(im, node, "axis", 1), node->input[0]->shape.all.rank, "attribute axis");
    const Shape shape = joined_shape(im, node, axis);
    const int at = text_axis(im, &shape, axis);
    Text text = TEXT(im->arena);
    if (node->inputs == 1) {
        give_view(im, node, node->input[0], &shape);
        return;
    }
    for (int i = 0; i < node->inputs; i++) {
        Shape beside = node->input[i]->shape;
        beside.batch = shape.batch;
        const Extents extents = text_extents(&beside);
        text_printf(&text, i ? ", %s" : "%s", operand_as(im, node->input[i], &extents, OR));
    }
    give(im, node, 0, node->input[0]->element, &shape,
         text_expression(im, ATOM, at ? "concat([%s], axis = %d)" : "concat([%s])", text_string(&text), at));
}

/* "x[:, 1:3]" */
static const char *range_text(Importer *im, const char *x, int axis, int64_t begin, int64_t end) {
    Text text = TEXT(im->arena);
    text_printf(&text, "%s[", x);
    for (int i = 0; i < axis; i++)
        text_puts(&text, ":, ");
    text_printf(&text, "%lld:%lld]", (long long)begin, (long long)end);
    return text_string(&text);
}

static const char *part_text(Importer *im, Value *x, int axis, int64_t begin, int64_t end) {
    return range_text(im, operand(im, x, ATOM), text_axis(im, &x->shape, axis), begin, end);
}

/* The sizes of the parts: given, or as equal as they can be. */
static void split_sizes(Importer *im, Node *node, int64_t whole, int64_t *size) {
    const bool has_input = node->inputs > 1 && node->input[1];
    const Tensor *sizes = has_input ? known_wholes(im, node, 1, "the sizes of the parts") : NULL;
    const AttributeProto *a = attribute(im, node, "split");
    const int64_t parts = node->outputs, most = (whole + parts - 1) / parts;
    if ((sizes && sizes->count != parts) || (a && a->n_ints != (size_t)parts))
        refuse(im, "there are %lld parts, and another number of sizes", (long long)parts);
    if (!sizes && !a && int_attribute(im, node, "num_outputs", parts) != parts)
        refuse(im, "attribute num_outputs is not the number of its outputs");
    int64_t left = whole;
    for (int64_t i = 0; i < parts; i++) {
        size[i] = sizes ? sizes->whole[i] : a ? a->ints[i] : i + 1 < parts ? most : left;
        if (size[i] < 1 || size[i] > left)
            refuse(im, "part %lld has %lld of %lld elements", (long long)i, (long long)size[i], (long long)whole);
        left -= size[i];
    }
    if (left)
        refuse(im, "the parts have not all of %lld elements", (long long)whole);
}

void split_rule(Importer *im, Node *node) {
    Value *x = node->input[0];
    const int axis = axis_from(im, int_attribute(im, node, "axis", 0), x->shape.all.rank, "attribute axis");
    int64_t *size = NEW_ARRAY(im->arena, int64_t, node->outputs + 1), begin = 0;
    split_sizes(im, node, x->shape.all.size[axis], size);
    for (int i = 0; i < node->outputs; begin += size[i++]) {
        const Value *part = node->output[i];
        Shape shape = x->shape;
        shape.all.size[axis] = size[i];
        if (!part || !(part->uses || part->output))
            continue;
        if (!x->constant)
            named(im, x);
        give(im, node, i, x->element, &shape,
             text_expression(im, ATOM, "%s", part_text(im, x, axis, begin, begin + size[i])));
    }
}

/* ---- slice ---- */

typedef struct Range {
    int axis;
    int64_t begin, step, count;
} Range;

static int64_t within(int64_t at, int64_t low, int64_t high) {
    return at < low ? low : at > high ? high : at;
}

/* As ONNX takes begin : end : step of an axis: as NumPy, but that from behind a beginning ahead of the first element is the first. */
static Range range_of(Importer *im, int64_t begin, int64_t end, int64_t step, int64_t size) {
    Range range = {.step = step};
    if (step == 0 || step < -INT32_MAX || step > INT32_MAX)
        refuse(im, "a step is %lld", (long long)step);
    if (size == 0)
        return range;
    begin = begin < 0 && begin >= -size ? begin + size : begin;
    end = end < 0 && end >= -size ? end + size : end;
    begin = within(begin, 0, step > 0 ? size : size - 1);
    end = step > 0 ? within(end, 0, size) : within(end, -1, size - 1);
    const int64_t length = step > 0 ? end - begin : begin - end, apart = step > 0 ? step : -step;
    range.begin = begin;
    range.count = length > 0 ? (length + apart - 1) / apart : 0;
    return range;
}

static int read_list(Importer *im, Node *node, int input, const char *name, int64_t *at) {
    return im->version >= 10 ? known_list(im, node, input, arena_printf(im->arena, "the %s", name), at)
                             : ints_attribute(im, node, name, at);
}

static int read_ranges(Importer *im, Node *node, Range *range) {
    const Shape *x = &node->input[0]->shape;
    int64_t begin[2 * MOST_RANK], end[2 * MOST_RANK], axis[2 * MOST_RANK], step[2 * MOST_RANK];
    bool seen[MOST_RANK] = {false};
    const int count = read_list(im, node, 1, "starts", begin), ends = read_list(im, node, 2, "ends", end);
    const int axes = read_list(im, node, 3, "axes", axis),
              steps = im->version >= 10 ? read_list(im, node, 4, "steps", step) : 0;
    if (count != ends || (axes && axes != count) || (steps && steps != count) || count > x->all.rank)
        refuse(im, "it has %d starts, %d ends, %d axes and %d steps", count, ends, axes, steps);
    for (int i = 0; i < count; i++) {
        const int at = axis_from(im, axes ? axis[i] : i, x->all.rank, "an axis");
        const int64_t size = x->all.size[at] * (at == x->batch && im->examples ? im->examples : 1);
        if (seen[at])
            refuse(im, "axis %d is given twice", at);
        seen[at] = true;
        range[i] = range_of(im, begin[i], end[i], steps ? step[i] : 1, size);
        range[i].axis = at;
        if (at == x->batch && (range[i].count != size || range[i].step != 1))
            text_axis(im, x, at);
    }
    return count;
}

/* From behind where the step is negative; then each step-th of neighbouring elements, by an axis of the steps. */
static const char *stepped_text(Importer *im, const char *x, int axis, const Range *range, Extents *extents) {
    const int64_t size = extents->size[axis], apart = range->step < 0 ? -range->step : range->step;
    const int64_t begin = range->step < 0 ? size - 1 - range->begin : range->begin,
                  last = begin + (range->count - 1) * apart;
    const char *text = range->step < 0 ? arena_printf(im->arena, "flip(%s, axis = %d)", x, axis) : x;
    if (begin > 0 || last + 1 < size)
        text = range_text(im, text, axis, begin, last + 1);
    extents->size[axis] = range->count;
    if (apart == 1 || range->count == 1)
        return text;
    Extents steps = *extents;
    if (steps.rank == MOST_RANK)
        refuse(im, "a step needs an axis more than %d", MOST_RANK);
    for (int i = steps.rank++; i > axis + 1; i--)
        steps.size[i] = steps.size[i - 1];
    steps.size[axis + 1] = apart;
    text = arena_printf(im->arena, "reshape(pad(%s, %d, after = %lld), %s)", text, axis, (long long)apart - 1,
                        sizes_text(im, &steps));
    text = range_text(im, text, axis + 1, 0, 1);
    return arena_printf(im->arena, "reshape(%s, %s)", text, sizes_text(im, extents));
}

static const Tensor *sliced(Importer *im, const Tensor *tensor, const Range *range, int count) {
    for (int i = 0; i < count; i++)
        tensor = fold_slice_axis(im, tensor, range[i].axis, range[i].begin, range[i].step, range[i].count);
    return tensor;
}

void slice_rule(Importer *im, Node *node) {
    Value *x = node->input[0];
    Range range[MOST_RANK];
    const int count = read_ranges(im, node, range);
    Shape shape = x->shape;
    if (x->constant && !x->constant->trained && x->shape.batch < 0) {
        give_constant(im, node, sliced(im, x->constant, range, count));
        return;
    }
    Extents extents = text_extents(&shape);
    const char *text = NULL;
    for (int i = 0; i < count; i++) {
        if (range[i].axis == shape.batch || (range[i].count == shape.all.size[range[i].axis] && range[i].step == 1))
            continue;
        shape.all.size[range[i].axis] = range[i].count;
        if (range[i].count == 0)
            refuse(im, "its result has no elements: %s", shape_text(im, &shape));
        text = stepped_text(im, text ? text : operand(im, x, ATOM), text_axis(im, &shape, range[i].axis), &range[i],
                            &extents);
    }
    if (text)
        give(im, node, 0, x->element, &shape, text_expression(im, ATOM, "%s", text));
    else
        give_view(im, node, x, &shape);
}

/* ---- gather ---- */

static Shape gathered_shape(Importer *im, const Shape *x, const Shape *index, int axis) {
    Shape shape = without_axis(x, axis);
    if (x->batch >= 0 && index->batch >= 0)
        refuse(im, "both the table and the indices are of each example");
    if (shape.all.rank + index->all.rank > MOST_RANK)
        refuse(im, "its result would have more than %d axes", MOST_RANK);
    for (int i = 0; i < index->all.rank; i++)
        shape = with_axis(im, &shape, axis + i, index->all.size[i]);
    if (index->batch >= 0)
        shape.batch = axis + index->batch;
    return shape;
}

/* "x[:, 3]", and the list of such. */
static const char *picked_text(Importer *im, Node *node, int at, int64_t row, int64_t size, bool keep) {
    if (row < -size || row >= size)
        refuse(im, "index %lld is outside of the %lld elements along its axis", (long long)row, (long long)size);
    row += row < 0 ? size : 0;
    if (keep)
        return range_text(im, operand(im, node->input[0], ATOM), at, row, row + 1);
    Text text = TEXT(im->arena);
    text_printf(&text, "%s[", operand(im, node->input[0], ATOM));
    for (int i = 0; i < at; i++)
        text_puts(&text, ":, ");
    text_printf(&text, "%lld]", (long long)row);
    return text_string(&text);
}

/* Of known indices: parts. */
static void give_picked(Importer *im, Node *node, int axis, const Shape *shape) {
    Value *x = node->input[0];
    const Tensor *index = node->input[1]->constant;
    const int at = text_axis(im, &x->shape, axis);
    Text text = TEXT(im->arena);
    if (index->count == 0 || index->count > 64 || (index->batches && index->batches[0]))
        refuse(im, "it takes %lld known indices; mtc writes 1 to 64 of them", (long long)index->count);
    if (index->count > 1 && !x->constant)
        named(im, x);
    for (int64_t i = 0; i < index->count; i++)
        text_printf(&text, i ? ", %s" : "%s",
                    picked_text(im, node, at, index->whole[i], x->shape.all.size[axis], index->extents.rank > 0));
    Shape flat = x->shape;
    flat.all.size[axis] = index->count;
    Expression e =
        text_expression(im, ATOM, index->count > 1 ? "concat([%s], axis = %d)" : "%s", text_string(&text), at);
    const Shape result = index->extents.rank ? flat : *shape;
    e.extents = text_extents(&result);
    give_as(im, node, 0, x->element, shape, e);
}

static void count_look_up(Value *index, int64_t rows) {
    index->classes = index->look_ups == 0 || index->classes == rows ? rows : -1;
    index->look_ups++;
}

/* Data of classes are checked when they are read, and places of extremes are in the table. */
static void warn_of_rows_from_behind(Importer *im, const Value *index) {
    const char *maker = index->maker ? index->maker->proto->op_type : "";
    if (!index->is_field && strncmp(maker, "Arg", 3) != 0)
        warn_later(im, "its indices are computed: below 0, ONNX counts rows from behind, and the text takes the first");
}

void gather_rule(Importer *im, Node *node) {
    Value *x = node->input[0], *index = node->input[1];
    const int axis = axis_from(im, int_attribute(im, node, "axis", 0), x->shape.all.rank, "attribute axis");
    const Shape shape = gathered_shape(im, &x->shape, &index->shape, axis);
    if (index->element == REAL)
        refuse(im, "its indices are no whole numbers");
    if (index->constant) {
        give_picked(im, node, axis, &shape);
        return;
    }
    if (text_axis(im, &x->shape, axis) != 0)
        refuse(im, "it looks up along axis %d; mtc looks up rows, along the first", axis);
    if (index->is_field)
        count_look_up(index, x->shape.all.size[axis]);
    warn_of_rows_from_behind(im, index);
    const Tensor *table = x->constant;
    if (table && table->trained && table->uses == 1 && table->extents.rank == 2) {
        Layer *layer = layer_new(im, "embedding(%s, %lld, %lld", row_text(im, index, x->shape.all.size[0]),
                                 (long long)x->shape.all.size[0], (long long)x->shape.all.size[1]);
        layer_add(layer, "weight", table);
        give(im, node, 0, REAL, &shape, layer_expression(im, layer));
        return;
    }
    const char *rows = operand(im, x, OR);
    give(im, node, 0, x->element, &shape,
         text_expression(im, ATOM, "gather(%s, %s)", rows, row_text(im, index, x->shape.all.size[axis])));
}

/* ---- pad and tile ---- */

typedef struct Pads {
    int64_t before[MOST_RANK], after[MOST_RANK];
} Pads;

static Pads read_pads(Importer *im, Node *node) {
    const Shape *x = &node->input[0]->shape;
    int64_t given[2 * MOST_RANK], axes[2 * MOST_RANK];
    Pads pads = {0};
    const int count =
        im->version >= 11 ? known_list(im, node, 1, "the pads", given) : ints_attribute(im, node, "pads", given);
    const int named_axes = known_list(im, node, 3, "the axes", axes), rank = named_axes ? named_axes : x->all.rank;
    if (count != 2 * rank)
        refuse(im, "it has %d pads for %d axes, and not two for each", count, rank);
    for (int i = 0; i < rank; i++) {
        const int axis = named_axes ? axis_from(im, axes[i], x->all.rank, "an axis") : i;
        pads.before[axis] = given[i];
        pads.after[axis] = given[rank + i];
        const int64_t size = x->all.size[axis], most = INT32_MAX - size;
        if (given[i] > most || given[rank + i] > most || given[i] < -size || given[rank + i] < -size)
            refuse(im, "axis %d of %s is padded by %lld and %lld", axis, shape_text(im, x), (long long)given[i],
                   (long long)given[rank + i]);
        if (axis == x->batch && (given[i] || given[rank + i]))
            text_axis(im, x, axis);
    }
    return pads;
}

/* So many elements at an end: its neighbours in the mirror, or the last one again. */
static const char *edge_text(Importer *im, const char *x, const char *mode, int axis, int64_t size, int64_t count,
                             bool front) {
    const bool reflect = strcmp(mode, "reflect") == 0;
    if (reflect && count >= size)
        refuse(im, "%lld elements are mirrored into %lld", (long long)size, (long long)count);
    if (reflect)
        return arena_printf(im->arena, "flip(%s, axis = %d)",
                            range_text(im, x, axis, front ? 1 : size - 1 - count, front ? count + 1 : size - 1), axis);
    if (strcmp(mode, "wrap") == 0 && count <= size)
        return range_text(im, x, axis, front ? size - count : 0, front ? size : count);
    if (strcmp(mode, "edge") != 0 || count > 64)
        refuse(im, "attribute mode is \"%s\", by %lld elements, which mtc does not write", shown(im, mode),
               (long long)count);
    Text text = TEXT(im->arena);
    for (int64_t i = 0; i < count; i++)
        text_printf(&text, i ? ", %s" : "%s", range_text(im, x, axis, front ? 0 : size - 1, front ? 1 : size));
    return text_string(&text);
}

static const char *mirrored_text(Importer *im, Node *node, const char *mode, const char *x, int axis, int64_t size,
                                 int64_t before, int64_t after) {
    (void)node;
    Text text = TEXT(im->arena);
    if (before > 0)
        text_printf(&text, "%s, ", edge_text(im, x, mode, axis, size, before, true));
    text_puts(&text, x);
    if (after > 0)
        text_printf(&text, ", %s", edge_text(im, x, mode, axis, size, after, false));
    return arena_printf(im->arena, "concat([%s], axis = %d)", text_string(&text), axis);
}

/* Elements before and after that have a value: zeros, and that value where a place is outside. */
const char *padded_text(Importer *im, const char *x, int axis, int rank, int64_t size, int64_t before, int64_t after,
                        double value) {
    const char *ends =
        arena_printf(im->arena, "%s%s", before ? arena_printf(im->arena, ", before = %lld", (long long)before) : "",
                     after ? arena_printf(im->arena, ", after = %lld", (long long)after) : "");
    const char *text = arena_printf(im->arena, "pad(%s, %d%s)", x, axis, ends);
    if (value == 0)
        return text;
    Extents along = {.rank = rank - axis, .size = {before + size + after, 1, 1, 1, 1, 1, 1, 1}};
    const char *place = arena_printf(im->arena, "iota(%lld)", (long long)along.size[0]);
    if (along.rank > 1)
        place = arena_printf(im->arena, "reshape(%s, %s)", place, sizes_text(im, &along));
    return arena_printf(im->arena, "where(%s >= %lld and %s < %lld, %s, %s)", place, (long long)before, place,
                        (long long)(before + size), text, number_text(im, value));
}

/* Axes that lose elements. */
static const char *cropped_text(Importer *im, const char *x, int axis, int64_t size, int64_t *before, int64_t *after) {
    const int64_t begin = *before < 0 ? -*before : 0, end = size - (*after < 0 ? -*after : 0);
    if (begin == 0 && end == size)
        return x;
    if (begin >= end)
        refuse(im, "pads below 0 leave nothing of an axis of %lld", (long long)size);
    *before = *before < 0 ? 0 : *before;
    *after = *after < 0 ? 0 : *after;
    return range_text(im, x, axis, begin, end);
}

void pad_rule(Importer *im, Node *node) {
    Value *x = node->input[0];
    const char *mode = word_attribute(im, node, "mode", "constant");
    const double value = im->version >= 11 ? known_number(im, node, 2, 0, "the value of the pads")
                                           : real_attribute(im, node, "value", 0);
    Pads pads = read_pads(im, node);
    Shape shape = x->shape;
    const bool constant = strcmp(mode, "constant") == 0;
    const char *text = x->constant || constant ? operand(im, x, ATOM) : NULL;
    text = text                                                         ? text
           : text_extents(&x->shape).rank == x->expression.extents.rank ? named(im, x)
                                                                        : operand(im, x, ATOM);
    const int rank = text_extents(&x->shape).rank;
    for (int i = 0; i < shape.all.rank; i++) {
        int64_t size = shape.all.size[i];
        if (i == shape.batch || (pads.before[i] == 0 && pads.after[i] == 0))
            continue;
        const int axis = text_axis(im, &shape, i);
        shape.all.size[i] += pads.before[i] + pads.after[i];
        text = cropped_text(im, text, axis, size, &pads.before[i], &pads.after[i]);
        size = shape.all.size[i] - pads.before[i] - pads.after[i];
        if (pads.before[i] == 0 && pads.after[i] == 0)
            continue;
        text = constant ? padded_text(im, text, axis, rank, size, pads.before[i], pads.after[i], value)
                        : mirrored_text(im, node, mode, text, axis, size, pads.before[i], pads.after[i]);
    }
    give(im, node, 0, x->element, &shape, text_expression(im, ATOM, "%s", text));
}

void tile_rule(Importer *im, Node *node) {
    Value *x = node->input[0];
    int64_t times[2 * MOST_RANK];
    Shape shape = x->shape;
    if (known_list(im, node, 1, "the repeats", times) != shape.all.rank)
        refuse(im, "it has not one number of repeats for each axis of %s", shape_text(im, &shape));
    const char *text = x->constant ? operand(im, x, ATOM) : NULL;
    for (int i = 0; i < shape.all.rank; i++) {
        if (times[i] == 1)
            continue;
        if (times[i] < 1 || times[i] > 64)
            refuse(im, "axis %d is repeated %lld times; mtc writes 1 to 64", i, (long long)times[i]);
        const int axis = text_axis(im, &shape, i);
        shape.all.size[i] *= times[i];
        extents_count(im, &shape.all);
        state(im, identifier(im, node->output[0]->name, "tile"), text ? text : operand(im, x, ATOM));
        const char *part = im->statements.at[im->statements.count - 1].names;
        Text parts = TEXT(im->arena);
        for (int64_t k = 0; k < times[i]; k++)
            text_printf(&parts, k ? ", %s" : "%s", part);
        text = arena_printf(im->arena, "concat([%s], axis = %d)", text_string(&parts), axis);
    }
    if (text)
        give(im, node, 0, x->element, &shape, text_expression(im, ATOM, "%s", text));
    else
        give_view(im, node, x, &shape);
}

/* ---- by places ---- */

/* What is above the diagonal that k says, or below it; else 0. */
void trilu_rule(Importer *im, Node *node) {
    Value *x = node->input[0];
    const Extents extents = text_extents(&x->shape);
    const bool upper = int_attribute(im, node, "upper", 1) != 0;
    int64_t k[2 * MOST_RANK] = {0};
    if (known_list(im, node, 1, "k", k) > 1)
        refuse(im, "its k is not one number");
    k[0] = within(k[0], -INT32_MAX, INT32_MAX); /* beyond any axis */
    if (x->shape.all.rank < 2)
        refuse(im, "its operand is %s, and no matrix", shape_text(im, &x->shape));
    text_axis(im, &x->shape, x->shape.all.rank - 1);
    text_axis(im, &x->shape, x->shape.all.rank - 2);
    const int64_t rows = extents.size[extents.rank - 2], columns = extents.size[extents.rank - 1];
    give(im, node, 0, x->element, &x->shape,
         text_expression(im, ATOM, "where(iota(%lld) - reshape(iota(%lld), [%lld, 1]) %s %lld, %s, 0)",
                         (long long)columns, (long long)rows, (long long)rows, upper ? ">=" : "<=", (long long)k[0],
                         operand(im, x, OR)));
}

/* Indices below 0 count from behind. */
void one_hot_rule(Importer *im, Node *node) {
    Value *index = node->input[0];
    const double depth = known_number(im, node, 1, 0, "the depth");
    const Tensor *values = weight_of(node, 2);
    const int axis = axis_from(im, int_attribute(im, node, "axis", -1), index->shape.all.rank + 1, "attribute axis");
    if (!values || values->count != 2)
        refuse(im, "its values are not two known numbers");
    if (!(depth >= 1 && depth <= INT32_MAX) || depth != (double)(int64_t)depth)
        refuse(im, "its depth is %g", depth);
    const Shape shape = with_axis(im, &index->shape, axis, (int64_t)depth), one = with_axis(im, &index->shape, axis, 1);
    const Extents apart = text_extents(&one);
    Extents along = {.rank = apart.rank - text_axis(im, &shape, axis), .size = {(int64_t)depth, 1, 1, 1, 1, 1, 1, 1}};
    const char *place = arena_printf(im->arena, "iota(%lld)", (long long)depth);
    if (along.rank > 1)
        place = arena_printf(im->arena, "reshape(%s, %s)", place, sizes_text(im, &along));
    if (!index->constant)
        named(im, index);
    const char *text = operand_as(im, index, &apart, ATOM), *off = number_text(im, decimal(tensor_number(values, 0))),
               *on = number_text(im, decimal(tensor_number(values, 1)));
    give(im, node, 0, values->element, &shape,
         text_expression(im, ATOM, "where(%s == %s or %s + %lld == %s, %s, %s)", text, place, text, (long long)depth,
                         place, on, off));
}
