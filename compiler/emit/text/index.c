#include "emit/text/index.h"

const char *index_type(const Tree *at) {
    return at->wide ? "int64_t" : "int";
}

const Tree *index_counter(Arena *arena, const char *name, int64_t count) {
    const Tree *counter = tree_name(arena, name);
    return int_counts(count) ? counter : tree_as_wide(arena, counter);
}

Index index_linear(const Shape *shape, const Tree *at) {
    Index index = {0};
    if (shape->type.rank > 0)
        index_push(&index, shape->type.rank, at);
    return index;
}

Index index_along(const Tree *at) {
    Index index = {0};
    index_push(&index, 1, at);
    return index;
}

void index_push(Index *index, int axes, const Tree *at) {
    index->group[index->groups++] = (IndexGroup){axes, at, NULL};
}

void index_append(Index *index, const Index *more) {
    for (int g = 0; g < more->groups; g++)
        index->group[index->groups++] = more->group[g];
}

/* A group like another one, of the same elements. */
static void push_like(Index *index, int axes, const IndexGroup *group) {
    index_push(index, axes, group->at);
    index->group[index->groups - 1].merged = group->merged;
}

static int64_t extent(const Shape *shape, int first, int count) {
    int64_t product = 1;
    for (int axis = first; axis < first + count; axis++)
        product *= shape->type.dim[axis];
    return product;
}

/* The index over `count` axes from the `skip`-th on of a group that starts at axis `first`. */
static const Tree *part_of(Arena *arena, const IndexGroup *group, const Shape *shape, int first, int skip, int count) {
    int inner = group->axes - skip - count;
    if (extent(shape, first + skip, count) == 1)
        return tree_number(arena, 0);
    const Tree *at = group->at;
    if (extent(shape, first + skip + count, inner) > 1)
        at = tree_infix(arena, "/", at, shape_count(arena, shape, first + skip + count, inner));
    if (extent(shape, first, skip) > 1)
        at = tree_infix(arena, "%", at, shape_extent(arena, shape, first + skip, count));
    return at;
}

/* No group has more than one element on both sides of the axis. */
static bool cuts_nothing(const Index *index, const Shape *shape, int axis) {
    for (int g = 0, start = 0; g < index->groups; start += index->group[g++].axes) {
        int end = start + index->group[g].axes;
        if (start < axis && axis < end && extent(shape, start, axis - start) > 1 && extent(shape, axis, end - axis) > 1)
            return false;
    }
    return true;
}

/* `count` axes from the `skip`-th on of a group that starts at axis `first`, by what the group was merged of; false: that
 * has no such part. */
static bool push_merged(Arena *arena, Index *slice, const IndexGroup *group, const Shape *shape, int first, int skip,
                        int count) {
    if (!group->merged)
        return false;
    Shape own = shape_slice(shape, first, group->axes);
    Index whole = index_reshape(arena, &group->merged->index, &group->merged->shape, &own);
    if (!cuts_nothing(&whole, &own, skip) || !cuts_nothing(&whole, &own, skip + count))
        return false;
    Index part = index_slice(arena, &whole, &own, skip, count);
    index_append(slice, &part);
    return true;
}

Index index_slice(Arena *arena, const Index *index, const Shape *shape, int first, int count) {
    Index slice = {0};
    int last = first + count;
    for (int g = 0, start = 0; g < index->groups; start += index->group[g++].axes) {
        const IndexGroup *group = &index->group[g];
        int from = start < first ? first : start, to = start + group->axes < last ? start + group->axes : last;
        if (from >= to)
            continue;
        int64_t elements = extent(shape, from, to - from);
        if (elements > 1 && elements == extent(shape, start, group->axes))
            push_like(&slice, to - from, group);
        else if (elements == 1 || !push_merged(arena, &slice, group, shape, start, from - start, to - from))
            index_push(&slice, to - from, part_of(arena, group, shape, start, from - start, to - from));
    }
    return slice;
}

const Tree *index_axis(Arena *arena, const Index *index, const Shape *shape, int axis) {
    Index slice = index_slice(arena, index, shape, axis, 1);
    return slice.group[0].at;
}

/* a * SIZE without a factor of one; NULL for nothing. */
static const Tree *scaled(Arena *arena, const Tree *at, const Tree *stride) {
    if (tree_is_number(at, 0))
        return NULL;
    if (tree_is_number(at, 1))
        return stride;
    return tree_is_number(stride, 1) ? at : tree_times(arena, at, stride);
}

/* What may not fit an int is computed with 64 bits. */
static const Tree *widened(Arena *arena, const Tree *term, int64_t most) {
    return int_holds(most) ? term : tree_widened(arena, term);
}

static const Tree *offset_of(Arena *arena, const Index *index, const Shape *shape, int first, int count) {
    const Tree *sum = NULL;
    int64_t elements = extent(shape, first, count);
    for (int g = 0, start = first; g < index->groups; start += index->group[g++].axes) {
        int next = start + index->group[g].axes;
        const Tree *stride = shape_extent(arena, shape, next, first + count - next);
        const Tree *term = scaled(arena, index->group[g].at, stride);
        if (term && sum) /* which is wide if all of it may be */
            sum = tree_plus(arena, sum, widened(arena, term, extent(shape, start, first + count - start)));
        else if (term)
            sum = widened(arena, term, elements);
    }
    return sum ? sum : tree_number(arena, 0);
}

const Tree *index_offset(Arena *arena, const Index *index, const Shape *shape) {
    return offset_of(arena, index, shape, 0, shape->type.rank);
}

/* ---- the same memory in another shape ---- */

/* Axes of extent 1 have nothing to say; without them, equal products of extents are easily found. */
static Shape squeezed(const Shape *shape) {
    Shape result = {.type = shape->type};
    result.type.rank = 0;
    for (int axis = 0; axis < shape->type.rank; axis++)
        if (shape->type.dim[axis] > 1) {
            result.type.dim[result.type.rank] = shape->type.dim[axis];
            result.size[result.type.rank++] = shape->size[axis];
        }
    return result;
}

static Index squeezed_index(const Index *index, const Shape *shape) {
    Index result = {0};
    for (int g = 0, axis = 0; g < index->groups; g++) {
        int axes = 0;
        for (int end = axis + index->group[g].axes; axis < end; axis++)
            axes += shape->type.dim[axis] > 1;
        if (axes)
            push_like(&result, axes, &index->group[g]);
    }
    return result;
}

/* Each group takes the axes of extent 1 before it, the last one also those behind it. */
static Index unsqueezed_index(Arena *arena, const Index *index, const Shape *shape) {
    Index result = {0};
    for (int g = 0, axis = 0; g < index->groups; g++) {
        int first = axis;
        for (int axes = index->group[g].axes; axes; axis++)
            axes -= shape->type.dim[axis] > 1;
        push_like(&result, (g + 1 < index->groups ? axis : shape->type.rank) - first, &index->group[g]);
    }
    if (!index->groups && shape->type.rank)
        index_push(&result, shape->type.rank, tree_number(arena, 0));
    return result;
}

static bool ends_group(const Index *index, int axis) {
    int start = 0;
    for (int g = 0; g < index->groups && start < axis; g++)
        start += index->group[g].axes;
    return start == axis;
}

/* Extends both by the smallest numbers of axes that have the same number of elements and cut no group. */
static void extend_segment(const Index *index, const Shape *from, const Shape *to, int *f, int *t) {
    int64_t p = 1, q = 1;
    do {
        if (p <= q)
            p *= from->type.dim[(*f)++];
        else
            q *= to->type.dim[(*t)++];
    } while (p != q || !ends_group(index, *f));
}

/* One group of `axes` axes for the elements of `part`. */
static void push_merger(Arena *arena, Index *index, int axes, const Index *part, const Shape *from, int first,
                        int count) {
    if (part->groups == 1) {
        push_like(index, axes, &part->group[0]);
        return;
    }
    index_push(index, axes, offset_of(arena, part, from, first, count));
    Merged *merged = NEW(arena, Merged);
    *merged = (Merged){*part, shape_slice(from, first, count)};
    index->group[index->groups - 1].merged = merged;
}

static Index reshape_squeezed(Arena *arena, const Index *index, const Shape *from, const Shape *to) {
    Index result = {0};
    for (int f = 0, t = 0; t < to->type.rank;) {
        int f_end = f, t_end = t;
        extend_segment(index, from, to, &f_end, &t_end);
        Index part = index_slice(arena, index, from, f, f_end - f);
        push_merger(arena, &result, t_end - t, &part, from, f, f_end - f);
        f = f_end;
        t = t_end;
    }
    return result;
}

Index index_reshape(Arena *arena, const Index *index, const Shape *from, const Shape *to) {
    Shape from_squeezed = squeezed(from), to_squeezed = squeezed(to);
    Index inner = squeezed_index(index, from);
    inner = reshape_squeezed(arena, &inner, &from_squeezed, &to_squeezed);
    return unsqueezed_index(arena, &inner, to);
}

/* ---- views ---- */

/* Of the result, on which the index is; -1: it is something else. */
static int symbol_axis(const Tree *index) {
    for (int k = 0; k < TREE_OPERANDS; k++)
        if (index == tree_operand[k])
            return k;
    return -1;
}

/* Axes of the operand, from `axis` on, that are neighbouring axes of the result in the same order and of the same extents. */
static int passed_on(const IndexMap *map, const Shape *from, const Type *to, int axis) {
    int first = symbol_axis(map->index[axis]), count = 0;
    while (first >= 0 && first + count < from->type.rank && axis + count < to->rank &&
           symbol_axis(map->index[axis + count]) == first + count &&
           from->type.dim[first + count] == to->dim[axis + count])
        count++;
    return count;
}

static void axis_indices(Arena *arena, const Index *index, const Shape *shape, const Tree **at) {
    for (int axis = 0; axis < shape->type.rank; axis++)
        at[axis] = index_axis(arena, index, shape, axis);
}

Index index_view(Arena *arena, const Node *view, const Index *index, const Shape *shape, const Tree *looked_up,
                 const Tree **guard) {
    IndexMap map = {0};
    view->op->view(arena, view, tree_operand, &map);
    const Type *operand = &view->in[0]->type;
    const Tree *at[MAX_RANK + 1];
    axis_indices(arena, index, shape, at);
    at[shape->type.rank] = looked_up;
    Index result = {0};
    for (int axis = 0; axis < operand->rank;) {
        int count = passed_on(&map, shape, operand, axis);
        if (count > 0) {
            Index part = index_slice(arena, index, shape, symbol_axis(map.index[axis]), count);
            index_append(&result, &part);
        } else {
            const Tree *placed = tree_with(arena, map.index[axis], at, shape->type.rank + 1);
            index_push(&result, 1, tree_summed(arena, placed)); /* an axis of one element is at 0 */
        }
        axis += count > 0 ? count : 1;
    }
    *guard = map.guard ? tree_with(arena, map.guard, at, shape->type.rank) : NULL;
    return result;
}

bool index_same(const Index *a, const Index *b) {
    bool same = a->groups == b->groups;
    for (int g = 0; g < a->groups && same; g++)
        same = a->group[g].axes == b->group[g].axes && tree_same(a->group[g].at, b->group[g].at);
    return same;
}
