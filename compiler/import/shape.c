/* Shapes: NumPy's rules, and where the batch is. */
#include "import/importer.h"

static const int64_t MOST_ELEMENTS = (int64_t)1 << 40, LONGEST_AXIS = INT32_MAX;

int64_t extents_count(Importer *im, const Extents *e) {
    int64_t count = 1;
    bool empty = false;
    for (int i = 0; i < e->rank; i++) { /* also of what is empty: parts of it are counted */
        empty |= e->size[i] == 0;
        if (e->size[i] > LONGEST_AXIS || e->size[i] > MOST_ELEMENTS / count)
            refuse(im, "the shape %s is too large: an axis has at most 2147483647 elements, a tensor 2^40",
                   sizes_text(im, e));
        count *= e->size[i] ? e->size[i] : 1;
    }
    return empty ? 0 : count;
}

bool extents_same(const Extents *a, const Extents *b) {
    return a->rank == b->rank && memcmp(a->size, b->size, (size_t)a->rank * sizeof *a->size) == 0;
}

bool has_text_axis(const Shape *shape, int axis) {
    return axis != shape->batch || shape->all.size[axis] != 1;
}

Extents text_extents(const Shape *shape) {
    Extents text = {0};
    for (int i = 0; i < shape->all.rank; i++)
        if (has_text_axis(shape, i))
            text.size[text.rank++] = shape->all.size[i];
    return text;
}

Shape plain_shape(int rank, const int64_t *size) {
    Shape shape = {.all = {.rank = rank}, .batch = -1};
    for (int i = 0; i < rank; i++)
        shape.all.size[i] = size[i];
    return shape;
}

int axis_from(Importer *im, int64_t axis, int rank, const char *what) {
    if (axis < -rank || axis >= rank)
        refuse(im, "%s is %lld, and there are %d axes", what, (long long)axis, rank);
    return (int)(axis < 0 ? axis + rank : axis);
}

int text_axis(Importer *im, const Shape *shape, int axis) {
    int before = 0;
    if (axis == shape->batch)
        refuse(im, "it works along axis %d of %s, the batch: the text speaks of one example", axis,
               shape_text(im, shape));
    for (int i = 0; i < axis; i++)
        before += has_text_axis(shape, i);
    return before;
}

/* The size of an axis, counted from the last, 1 where there is none. */
static int64_t size_from_last(const Shape *shape, int back) {
    return back < shape->all.rank ? shape->all.size[shape->all.rank - 1 - back] : 1;
}

static bool is_batch_from_last(const Shape *shape, int back) {
    return shape->batch >= 0 && shape->all.rank - 1 - back == shape->batch;
}

static int64_t stretched(Importer *im, const Shape *a, const Shape *b, int back) {
    const int64_t one = size_from_last(a, back), other = size_from_last(b, back);
    const bool batch_one = is_batch_from_last(a, back), batch_other = is_batch_from_last(b, back);
    const bool fits = one == other || one == 1 || other == 1;
    /* Beside an axis with the batch, one without it has one element for all examples, or as many as the file says that there are. */
    const int64_t beside = batch_one ? other : one;
    if (!fits || (batch_one != batch_other && beside != 1))
        refuse(im, "shapes %s and %s do not go together", shape_text(im, a), shape_text(im, b));
    return one == 1 ? other : one;
}

Shape broadcast(Importer *im, const Shape *a, const Shape *b) {
    Shape result = {.all = {.rank = a->all.rank > b->all.rank ? a->all.rank : b->all.rank}, .batch = -1};
    if (a->ahead && b->ahead && a->ahead != b->ahead)
        refuse(im, "the batch lies elsewhere in %s than in %s", shape_text(im, a), shape_text(im, b));
    result.ahead = a->ahead ? a->ahead : b->ahead;
    for (int back = 0; back < result.all.rank; back++) {
        const int axis = result.all.rank - 1 - back;
        result.all.size[axis] = stretched(im, a, b, back);
        if (!is_batch_from_last(a, back) && !is_batch_from_last(b, back))
            continue;
        if (result.batch >= 0)
            refuse(im, "the batch is another axis of %s than of %s", shape_text(im, a), shape_text(im, b));
        result.batch = axis;
    }
    return result;
}

Shape without_axis(const Shape *shape, int axis) {
    Shape result = {.batch = shape->batch > axis ? shape->batch - 1 : shape->batch, .ahead = shape->ahead};
    for (int i = 0; i < shape->all.rank; i++)
        if (i != axis)
            result.all.size[result.all.rank++] = shape->all.size[i];
    return result;
}

Shape with_axis(Importer *im, const Shape *shape, int axis, int64_t size) {
    Shape result = {.batch = shape->batch >= axis ? shape->batch + 1 : shape->batch, .ahead = shape->ahead};
    if (shape->all.rank == MOST_RANK)
        refuse(im, "the result would have more than %d axes", MOST_RANK);
    for (int i = 0; i <= shape->all.rank; i++)
        result.all.size[result.all.rank++] = i < axis ? shape->all.size[i] : i == axis ? size : shape->all.size[i - 1];
    return result;
}

const char *shape_text(Importer *im, const Shape *shape) {
    Text text = TEXT(im->arena);
    text_puts(&text, "[");
    for (int i = 0; i < shape->all.rank; i++) {
        text_puts(&text, i ? ", " : "");
        if (i == shape->batch && shape->all.size[i] == 1)
            text_puts(&text, "batch");
        else
            text_printf(&text, i == shape->batch ? "batch * %lld" : "%lld", (long long)shape->all.size[i]);
    }
    text_puts(&text, "]");
    return text_string(&text);
}

const char *list_text(Importer *im, const int64_t *at, int count) {
    Text text = TEXT(im->arena);
    text_puts(&text, "[");
    for (int i = 0; i < count; i++)
        text_printf(&text, i ? ", %lld" : "%lld", (long long)at[i]);
    text_puts(&text, "]");
    return text_string(&text);
}

const char *sizes_text(Importer *im, const Extents *e) {
    return list_text(im, e->size, e->rank);
}
