/* What is said of shapes whose sizes are known. */
#include "emit/text/sizes.h"

Shape shape_slice(const Shape *shape, int first, int count) {
    Shape slice = {.type = shape->type};
    slice.type.rank = count;
    for (int axis = 0; axis < count; axis++) {
        slice.type.dim[axis] = shape->type.dim[first + axis];
        slice.size[axis] = shape->size[first + axis];
    }
    return slice;
}

const Tree *shape_extent(Arena *arena, const Shape *shape, int first, int count) {
    const Tree *product = NULL;
    for (int axis = first; axis < first + count; axis++)
        if (shape->type.dim[axis] > 1)
            product = tree_times(arena, product, shape->size[axis]);
    return product ? product : tree_number(arena, 1);
}

const Tree *shape_count(Arena *arena, const Shape *shape, int first, int count) {
    const Tree *extent = shape_extent(arena, shape, first, count);
    return int_holds(type_extent(&shape->type, first, first + count)) ? extent : tree_widened(arena, extent);
}

const char *shape_product(Arena *arena, const Shape *shape, int first, int count) {
    return tree_text(arena, shape_count(arena, shape, first, count));
}

const char *shape_symbol(Arena *arena, const Shape *shape, int axis) {
    return tree_text(arena, shape->size[axis]);
}
