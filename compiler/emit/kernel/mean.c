/* The factor 1/N of a mean says so: "h_sum * (1.0f / WIDTH)", not "h_sum * 0.00130208333f". Which constants are such is known where
 * they are made (graph_mean_factor); what N is called, of the sum that they are multiplied with. */
#include "emit/kernel/element.h"

enum { DEEPEST = 4 }; /* maps and views between the factor and the sum */

static int64_t folded_elements(const Node *sum) {
    int64_t elements = 1;
    for (int axis = 0; axis < sum->in[0]->type.rank; axis++)
        elements *= sum->attr.axes >> axis & 1 ? sum->in[0]->type.dim[axis] : 1;
    return elements;
}

/* A sum of so many elements that n is computed from, through maps and views; NULL: there is none. */
static const Node *find_sum(const Node *n, int64_t elements, int depth) {
    if (n->op->cls == OP_REDUCE)
        return op_adds(n->op) && folded_elements(n) == elements ? n : NULL;
    if ((n->op->cls != OP_MAP && n->op->cls != OP_VIEW) || depth == DEEPEST)
        return NULL;
    const Node *found = NULL;
    for (int k = 0; k < n->inputs && !found; k++)
        found = find_sum(n->in[k], elements, depth + 1);
    return found;
}

static const Tree *folded_extent(Emitter *e, const Node *sum) {
    Shape shape = sizes_shape(e->sizes, sum->in[0]);
    const Tree *extent = NULL;
    for (int axis = 0; axis < shape.type.rank; axis++)
        if (sum->attr.axes >> axis & 1 && shape.type.dim[axis] > 1)
            extent = tree_times(e->arena, extent, shape.size[axis]);
    return extent;
}

/* What 1 / n is in the arithmetic of the program. */
static bool is_inverse(const Emitter *e, double value, int64_t n) {
    return e->options->f64 ? value == 1.0 / (double)n : (float)value == 1.0f / (float)n;
}

const Tree *mean_factor(Emitter *e, const Node *map, int k, const Tree *factor) {
    const Node *constant = map->in[k];
    while (constant->op->flags & (OP_REPEATS | OP_CONTIGUOUS))
        constant = constant->in[0];
    bool product = map->inputs == 2 && map->op->prec == PREC_PRODUCT && map->op->flags & OP_COMMUTES;
    if (!product || !constant->of_mean)
        return factor;
    double value = constant->attr.value;
    double inverse = 1 / value;
    int64_t elements = inverse <= INT32_MAX ? (int64_t)(inverse + 0.5) : 0; /* the product of sizes is an int */
    const Node *sum = elements && is_inverse(e, value, elements) ? find_sum(map->in[1 - k], elements, 0) : NULL;
    const Tree *extent = sum ? folded_extent(e, sum) : NULL;
    if (!extent || !tree_has_kind(extent, TREE_NAME))
        return factor;
    return tree_infix(e->arena, "/", literal_tree(e, 1, DT_F32), extent);
}
