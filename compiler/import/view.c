/* The same elements in another shape or order, and constants made of shapes. */
#include "import/fold.h"
#include "import/rules.h"

/* ---- reshape ----
 *
 * The elements before the batch's axis, in the order of memory, are before the axis that gets the batch, too; so its axis is known
 * by the product of the sizes before it. It may take further axes of the example with it: [17, batch, 64] as [17, batch * 4, 16]. */

typedef struct Target {
    int rank;
    int64_t size[2 * MOST_RANK];
    int64_t
        batches[2 * MOST_RANK]; /* the size is this times the examples of a batch; 0: it is `size`, -1: what remains */
} Target;

static int64_t elements(const Shape *shape, int from, int to) {
    int64_t count = 1;
    for (int i = from; i < to; i++)
        count *= shape->all.size[i];
    return count;
}

/* Sizes of 0 are those of the operand. */
static void take_zeros(Importer *im, Node *node, const Shape *x, Target *target) {
    if (int_attribute(im, node, "allowzero", 0))
        return;
    for (int i = 0; i < target->rank; i++) {
        if (target->size[i] != 0 || target->batches[i])
            continue;
        if (i >= x->all.rank)
            refuse(im, "size %d of the new shape is that of an axis which %s has not", i, shape_text(im, x));
        target->size[i] = x->all.size[i];
        if (i == x->batch && !im->examples)
            target->batches[i] = x->all.size[i];
        else if (i == x->batch)
            target->size[i] *= im->examples;
    }
}

/* What is left for the size -1, of `count` elements of an example. Without a size with the batch, that one has it. */
static void take_rest(Importer *im, const Shape *x, Target *target, int64_t count) {
    int64_t others = 1;
    int rest = -1;
    bool has_batch = x->batch < 0 || im->examples;
    count *= x->batch >= 0 && im->examples ? im->examples : 1;
    for (int i = 0; i < target->rank; i++) {
        const int64_t size = target->batches[i] ? target->batches[i] : target->size[i];
        has_batch |= target->batches[i] != 0;
        if (target->size[i] == -1 && rest < 0 && !target->batches[i])
            rest = i;
        else if (size < 1 || size > count / others || (others *= size, count % others != 0))
            refuse(im, "%s does not become %s", shape_text(im, x), list_text(im, target->size, target->rank));
    }
    if (rest < 0 && others != count)
        refuse(im, "%s does not become %s", shape_text(im, x), list_text(im, target->size, target->rank));
    if (rest >= 0) {
        target->size[rest] = count / others;
        target->batches[rest] = has_batch ? 0 : count / others;
    }
}

/* The axis of the target that the batch is in, what it has of the example, and what of that lies ahead. Where the file fixes one
 * example, the batch between two axes may be of either: it goes to the one behind where axes are split, to the other where they
 * are joined. */
static int batch_axis(Importer *im, const Shape *x, const Target *target, int64_t *part, int64_t *ahead) {
    const int64_t before = elements(x, 0, x->batch) * (x->ahead ? x->ahead : 1);
    const bool joins = target->rank < x->all.rank - 1 && before > 1;
    int64_t so_far = 1;
    for (int i = 0; i < target->rank && so_far > 0 && so_far <= before; i++) {
        const int64_t size = target->batches[i] ? target->batches[i] : target->size[i];
        const bool can = im->examples ? size % im->examples == 0 : target->batches[i] != 0;
        *part = im->examples ? size / im->examples : size;
        *ahead = before % so_far == 0 ? before / so_far : 0;
        if (can && *ahead && *part % *ahead == 0 && (*ahead == 1 || !im->examples || *ahead < *part || joins))
            return i;
        if (target->batches[i])
            break;
        so_far *= size;
    }
    refuse(im, "%s becomes %s, which mixes the batch with other axes", shape_text(im, x),
           list_text(im, target->size, target->rank));
}

static void give_reshaped(Importer *im, Node *node, const Target *target) {
    const Shape *x = &node->input[0]->shape;
    Shape shape = {.all = {.rank = target->rank}, .batch = -1};
    int64_t part = 0, ahead = 1;
    if (target->rank > MOST_RANK)
        refuse(im, "the new shape has %d axes; at most %d are known", target->rank, MOST_RANK);
    if (x->batch >= 0)
        shape.batch = batch_axis(im, x, target, &part, &ahead);
    shape.ahead = ahead > 1 ? ahead : 0;
    for (int i = 0; i < target->rank; i++)
        shape.all.size[i] = i == shape.batch ? part : target->size[i];
    give_view(im, node, node->input[0], &shape);
}

static Target read_target(Importer *im, Node *node) {
    Target target = {0};
    if (im->version < 5 || node->inputs < 2)
        refuse(im, "its new shape is not given");
    const Tensor *sizes = known_wholes(im, node, 1, "the sizes of the new shape");
    if (sizes->extents.rank > 1 || sizes->count > MOST_RANK)
        refuse(im, "the new shape has %lld sizes; at most %d are known", (long long)sizes->count, MOST_RANK);
    for (int64_t i = 0; i < sizes->count; i++) {
        target.size[target.rank] = sizes->whole[i];
        target.batches[target.rank++] = sizes->batches ? sizes->batches[i] : 0;
        if ((sizes->whole[i] < -1) || (target.batches[target.rank - 1] && sizes->whole[i]))
            refuse(im, "size %lld of the new shape is %lld", (long long)i, (long long)sizes->whole[i]);
    }
    return target;
}

void reshape_rule(Importer *im, Node *node) {
    const Shape *x = &node->input[0]->shape;
    Target target = read_target(im, node);
    take_zeros(im, node, x, &target);
    take_rest(im, x, &target, extents_count(im, &x->all));
    give_reshaped(im, node, &target);
}

/* Two axes: those before one, and the rest. */
void flatten_rule(Importer *im, Node *node) {
    const Shape *x = &node->input[0]->shape;
    const int64_t given = int_attribute(im, node, "axis", 1);
    if (given < -x->all.rank || given > x->all.rank)
        refuse(im, "attribute axis is %lld, and there are %d axes", (long long)given, x->all.rank);
    const int axis = (int)(given < 0 ? given + x->all.rank : given);
    Target target = {.rank = 2, .size = {elements(x, 0, axis), elements(x, axis, x->all.rank)}};
    if (x->batch >= 0) {
        const int with = x->batch < axis ? 0 : 1;
        target.batches[with] = im->examples ? 0 : target.size[with];
        target.size[with] *= im->examples ? im->examples : 1;
    }
    give_reshaped(im, node, &target);
}

/* ---- axes of size 1 ---- */

static int read_axes(Importer *im, Node *node, int rank, bool *marked) {
    int64_t axes[2 * MOST_RANK];
    const int count =
        node->inputs > 1 ? known_list(im, node, 1, "the axes", axes) : ints_attribute(im, node, "axes", axes);
    for (int i = 0; i < count; i++) {
        const int axis = axis_from(im, axes[i], rank, "an axis");
        if (marked[axis])
            refuse(im, "axis %d is given twice", axis);
        marked[axis] = true;
    }
    return count;
}

void squeeze_rule(Importer *im, Node *node) {
    Shape shape = node->input[0]->shape;
    bool marked[MOST_RANK] = {false};
    const bool all = read_axes(im, node, shape.all.rank, marked) == 0;
    for (int i = shape.all.rank - 1; i >= 0; i--) {
        const bool is_batch = i == shape.batch;
        if (!marked[i] && !(all && shape.all.size[i] == 1 && !is_batch))
            continue;
        if (is_batch)
            text_axis(im, &shape, i);
        if (shape.all.size[i] != 1)
            refuse(im, "axis %d of %s is not of size 1", i, shape_text(im, &shape));
        shape = without_axis(&shape, i);
    }
    give_view(im, node, node->input[0], &shape);
}

void unsqueeze_rule(Importer *im, Node *node) {
    Shape shape = node->input[0]->shape;
    int64_t axes[2 * MOST_RANK];
    bool marked[MOST_RANK] = {false};
    const int count =
        node->inputs > 1 ? known_list(im, node, 1, "the axes", axes) : ints_attribute(im, node, "axes", axes);
    if (shape.all.rank + count > MOST_RANK)
        refuse(im, "the result would have more than %d axes", MOST_RANK);
    read_axes(im, node, shape.all.rank + count, marked);
    const int rank = shape.all.rank + count;
    for (int i = 0; i < rank; i++)
        if (marked[i])
            shape = with_axis(im, &shape, i, 1);
    give_view(im, node, node->input[0], &shape);
}

/* ---- the order of axes ---- */

static void read_order(Importer *im, Node *node, int rank, int *order) {
    int64_t given[2 * MOST_RANK];
    bool seen[MOST_RANK] = {false};
    const int count = ints_attribute(im, node, "perm", given);
    if (count && count != rank)
        refuse(im, "attribute perm has %d axes, and its operand %d", count, rank);
    for (int i = 0; i < rank; i++) {
        order[i] = count ? axis_from(im, given[i], rank, "an axis of perm") : rank - 1 - i;
        if (seen[order[i]])
            refuse(im, "attribute perm has axis %d twice", order[i]);
        seen[order[i]] = true;
    }
}

/* The order of the text's axes; false: it stays as it is. */
static bool text_order(Importer *im, const Shape *x, const int *order, int64_t *text) {
    int count = 0;
    bool moves = false;
    for (int i = 0; i < x->all.rank; i++) {
        if (!has_text_axis(x, order[i]))
            continue;
        int before = 0;
        for (int k = 0; k < order[i]; k++)
            before += has_text_axis(x, k);
        moves |= before != count;
        text[count++] = before;
    }
    (void)im;
    return moves;
}

static bool swaps_last(const int64_t *order, int rank) {
    for (int i = 0; i < rank - 2; i++)
        if (order[i] != i)
            return false;
    return rank >= 2 && order[rank - 2] == rank - 1;
}

void transpose_rule(Importer *im, Node *node) {
    Value *x = node->input[0];
    int order[MOST_RANK];
    int64_t text[MOST_RANK];
    read_order(im, node, x->shape.all.rank, order);
    Shape shape = {.all = {.rank = x->shape.all.rank}, .batch = -1, .ahead = x->shape.ahead};
    for (int i = 0; i < shape.all.rank; i++) {
        shape.all.size[i] = x->shape.all.size[order[i]];
        shape.batch = order[i] == x->shape.batch ? i : shape.batch;
    }
    if (x->constant && !x->constant->batches && !(x->constant->trained && x->constant->uses > 1)) {
        give_constant(im, node, tensor_permuted(im, x->constant, order));
        return;
    }
    const Extents extents = text_extents(&x->shape);
    if (!text_order(im, &x->shape, order, text))
        give_view(im, node, x, &shape);
    else if (swaps_last(text, extents.rank))
        give(im, node, 0, x->element, &shape, around(im, x, "transpose(", ")"));
    else
        give(im, node, 0, x->element, &shape,
             around(im, x, "permute(", arena_printf(im->arena, ", %s)", list_text(im, text, extents.rank))));
}

/* Blocks of pixels as channels, and back: reshape, permute, reshape. */
static void give_blocks(Importer *im, Node *node, const Extents *apart, const char *order, const Extents *together) {
    Value *x = node->input[0];
    Shape shape = x->shape;
    const Extents text = text_extents(&shape);
    if (text.rank != 3)
        refuse(im, "its operand is %s, and no image of each example", shape_text(im, &x->shape));
    for (int i = 0; i < 3; i++)
        shape.all.size[shape.all.rank - 3 + i] = together->size[i];
    Expression e = text_expression(im, ATOM, "permute(%s, %s)", operand_as(im, x, apart, OR), order);
    give(im, node, 0, x->element, &shape,
         text_expression(im, ATOM, "reshape(%s, %s)", e.before, sizes_text(im, together)));
}

static int64_t block_size(Importer *im, Node *node, const Shape *shape) {
    const int64_t block = int_attribute(im, node, "blocksize", 0);
    if (shape->all.rank != 4)
        refuse(im, "its operand is %s, and no image of each example", shape_text(im, shape));
    if (block < 1 || block > 1024)
        refuse(im, "attribute blocksize is %lld", (long long)block);
    return block;
}

/* Whether the channels are ahead of the places in a block. */
static bool has_mode_crd(Importer *im, Node *node) {
    const bool crd = strcmp(word_attribute(im, node, "mode", "DCR"), "CRD") == 0;
    if (!crd)
        only_word(im, node, "mode", "DCR");
    return crd;
}

void depth_to_space_rule(Importer *im, Node *node) {
    const Shape *x = &node->input[0]->shape;
    const int64_t b = block_size(im, node, x), c = x->all.size[1], h = x->all.size[2], w = x->all.size[3];
    const bool crd = has_mode_crd(im, node);
    if (c % (b * b))
        refuse(im, "%lld channels are no blocks of %lld x %lld", (long long)c, (long long)b, (long long)b);
    const Extents dcr = {5, {b, b, c / (b * b), h, w}}, columns = {5, {c / (b * b), b, b, h, w}},
                  result = {3, {c / (b * b), h * b, w * b}};
    give_blocks(im, node, crd ? &columns : &dcr, crd ? "[0, 3, 1, 4, 2]" : "[2, 3, 0, 4, 1]", &result);
}

void space_to_depth_rule(Importer *im, Node *node) {
    const Shape *x = &node->input[0]->shape;
    const int64_t b = block_size(im, node, x), c = x->all.size[1], h = x->all.size[2], w = x->all.size[3];
    if (h % b || w % b)
        refuse(im, "%lld x %lld pixels are no blocks of %lld x %lld", (long long)h, (long long)w, (long long)b,
               (long long)b);
    const Extents apart = {5, {c, h / b, b, w / b, b}}, result = {3, {c * b * b, h / b, w / b}};
    give_blocks(im, node, &apart, has_mode_crd(im, node) ? "[0, 2, 4, 1, 3]" : "[2, 4, 0, 1, 3]", &result);
}

/* ---- shapes as values ---- */

void shape_rule(Importer *im, Node *node) {
    const Shape *x = &node->input[0]->shape;
    int64_t begin = int_attribute(im, node, "start", 0), end = int_attribute(im, node, "end", x->all.rank);
    begin = begin < 0 ? begin + x->all.rank : begin;
    end = end < 0 ? end + x->all.rank : end;
    begin = begin < 0 ? 0 : begin > x->all.rank ? x->all.rank : begin;
    end = end > x->all.rank ? x->all.rank : end < begin ? begin : end;
    const Extents extents = {.rank = 1, .size = {end - begin}};
    Tensor *sizes = tensor_new(im, WHOLE, &extents);
    int64_t *batches = NEW_ARRAY(im->arena, int64_t, MOST_RANK);
    sizes->batches = batches;
    for (int64_t i = begin; i < end; i++) {
        const bool open = i == x->batch && !im->examples;
        tensor_wholes(im, sizes)[i - begin] = open ? 0 : x->all.size[i] * (i == x->batch ? im->examples : 1);
        batches[i - begin] = open ? x->all.size[i] : 0;
    }
    give_constant(im, node, sizes);
}

void size_rule(Importer *im, Node *node) {
    const Shape *x = &node->input[0]->shape;
    const Extents none = {0};
    Tensor *size = tensor_new(im, WHOLE, &none);
    const int64_t count = extents_count(im, &x->all);
    const bool open = x->batch >= 0 && !im->examples;
    int64_t *batches = NEW_ARRAY(im->arena, int64_t, 1);
    batches[0] = open ? count : 0;
    size->batches = batches;
    tensor_wholes(im, size)[0] = open ? 0 : count * (x->batch >= 0 ? im->examples : 1);
    give_constant(im, node, size);
}

/* ---- constants ---- */

static const Tensor *numbers_of(Importer *im, const AttributeProto *a, bool real, bool list) {
    const Extents extents = {.rank = list, .size = {(int64_t)(real ? a->n_floats : a->n_ints)}};
    Tensor *tensor = tensor_new(im, real ? REAL : WHOLE, &extents);
    for (int64_t i = 0; i < tensor->count; i++) {
        if (real)
            tensor_reals(im, tensor)[i] = list ? a->floats[i] : a->f;
        else
            tensor_wholes(im, tensor)[i] = list ? a->ints[i] : a->i;
    }
    return tensor;
}

void constant_rule(Importer *im, Node *node) {
    const NodeProto *proto = node->proto;
    const AttributeProto *a = proto->n_attribute == 1 ? proto->attribute[0] : NULL;
    if (!a)
        refuse(im, "a constant has one attribute, and this one %zu", proto->n_attribute);
    if (strcmp(a->name, "value") == 0 && a->t)
        give_constant(im, node, read_tensor(im, a->t, NULL));
    else if (strcmp(a->name, "value_float") == 0 || strcmp(a->name, "value_int") == 0)
        give_constant(im, node, numbers_of(im, a, a->name[6] == 'f', false));
    else if (strcmp(a->name, "value_floats") == 0 || strcmp(a->name, "value_ints") == 0)
        give_constant(im, node, numbers_of(im, a, a->name[6] == 'f', true));
    else
        refuse(im, "mtc does not know constants as attribute %s", shown(im, a->name));
}

/* Sizes without that of the batch, which its constants do not depend on. */
static Shape shape_of_sizes(Importer *im, const Tensor *sizes) {
    Shape shape = {.batch = -1};
    if (sizes->extents.rank != 1 || sizes->count > MOST_RANK)
        refuse(im, "a shape has at most %d sizes", MOST_RANK);
    for (int64_t i = 0; i < sizes->count; i++) {
        const int64_t batches = sizes->batches ? sizes->batches[i] : 0;
        if (batches && (shape.batch >= 0 || sizes->whole[i]))
            refuse(im, "the shape has the batch in it in a way that mtc does not follow");
        shape.batch = batches ? (int)i : shape.batch;
        shape.all.size[shape.all.rank++] = batches ? batches : sizes->whole[i];
        if (shape.all.size[i] < 0)
            refuse(im, "size %lld of the shape is %lld", (long long)i, (long long)sizes->whole[i]);
    }
    return shape;
}

void constant_of_shape_rule(Importer *im, Node *node) {
    const AttributeProto *a = attribute(im, node, "value");
    const Tensor *value = a && a->t ? read_tensor(im, a->t, NULL) : NULL,
                 *sizes = known_wholes(im, node, 0, "the sizes");
    const Extents one = {.rank = 1, .size = {1}};
    if (value && value->count != 1)
        refuse(im, "attribute value has %lld elements, and not one", (long long)value->count);
    const Shape shape = sizes->count ? shape_of_sizes(im, sizes) : plain_shape(0, NULL);
    Tensor *number = tensor_as(im, value ? value : filled(im, 1, 0), &one);
    give_constant(im, node, fold_expand(im, number, &shape.all));
    node->output[0]->shape.batch = shape.batch;
}

void expand_rule(Importer *im, Node *node) {
    Value *x = node->input[0];
    const Shape wanted = shape_of_sizes(im, known_wholes(im, node, 1, "the sizes"));
    Shape target = wanted;
    if (im->examples && x->shape.batch >= 0) {
        const int axis = x->shape.batch + target.all.rank - x->shape.all.rank;
        if (axis >= 0 && target.all.size[axis] == im->examples && x->shape.all.size[x->shape.batch] == 1)
            target.all.size[axis] = 1;
    }
    Shape other = target;
    other.batch = x->shape.batch >= 0 && other.batch >= 0 ? -1 : other.batch; /* it is the operand's */
    if (other.batch < 0 && target.batch >= 0)
        other.all.size[target.batch] = 1;
    const Shape shape = broadcast(im, &x->shape, &other);
    const Extents extents = text_extents(&shape);
    if (x->constant && !x->constant->trained && x->shape.batch < 0 && shape.batch < 0) {
        give_constant(im, node, fold_expand(im, x->constant, &shape.all));
        return;
    }
    give_expanded(im, node, x, &shape, &extents);
}

/* Stretched by adding zeros of its shape. */
void give_expanded(Importer *im, Node *node, Value *x, const Shape *shape, const Extents *extents) {
    Extents own;
    const char *text = operand_beside(im, x, shape, SUM, &own);
    if (extents_same(&own, extents)) {
        give(im, node, 0, x->element, shape, text_expression(im, SUM, "%s", text));
        return;
    }
    const int64_t count = extents_count(im, extents);
    give(im, node, 0, x->element, shape,
         extents->rank == 1 ? text_expression(im, SUM, "%s + 0 * iota(%lld)", text, (long long)count)
                            : text_expression(im, SUM, "%s + 0 * reshape(iota(%lld), %s)", text, (long long)count,
                                              sizes_text(im, extents)));
}
