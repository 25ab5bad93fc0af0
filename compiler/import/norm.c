/* Layers that normalize. Their weights are their own, also where a file keeps those that are alike once. */
#include "import/rules.h"

/* The weight that an input is, of so many numbers; others than known ones are refused. */
static const Tensor *vector_of(Importer *im, const Node *node, int input, int64_t count, const char *what) {
    const Tensor *tensor = weight_of(node, input);
    const Extents flat = {.rank = 1, .size = {count}};
    if (!tensor || tensor->element != REAL)
        refuse(im, "its input %d, %s, is computed when the model runs; mtc takes it as a weight", input, what);
    if (tensor->count != count)
        refuse(im, "its input %d, %s, is %s, where %lld numbers are expected", input, what,
               sizes_text(im, &tensor->extents), (long long)count);
    return tensor_as(im, tensor, &flat);
}

static const char *eps_text(Importer *im, Node *node, double usual) {
    const double eps = real_attribute(im, node, "epsilon", 1e-5);
    if (!(eps > 0))
        refuse(im, "attribute epsilon is %g; mtc knows it above 0", eps);
    return eps == usual ? "" : arena_printf(im->arena, ", eps = %s", number_text(im, eps));
}

/* The operand with channels first: a single image of a file without a batch loses the axis for it. */
static Extents channels_first(Importer *im, const Shape *shape) {
    Extents extents = text_extents(shape);
    if (shape->batch < 0 && extents.rank > 1 && extents.size[0] == 1) {
        for (int i = 1; i < extents.rank; i++)
            extents.size[i - 1] = extents.size[i];
        extents.rank--;
        return extents;
    }
    if (shape->batch != 0 || shape->all.size[0] != 1 || extents.rank < 1)
        refuse(im, "its operand is %s; mtc takes [batch, channels, ...]", shape_text(im, shape));
    return extents;
}

void batch_norm_rule(Importer *im, Node *node) {
    Value *x = node->input[0];
    const Extents extents = channels_first(im, &x->shape);
    const int64_t channels = extents.size[0];
    const double momentum = real_attribute(im, node, "momentum", 0.9);
    only_int(im, node, "training_mode", 0);
    only_int(im, node, "spatial", 1);
    if (!(momentum >= 0 && momentum <= 1))
        refuse(im, "attribute momentum is %g, which is not from 0 to 1", momentum);
    const char *text = operand_as(im, x, &extents, OR);
    const char *moves =
        momentum == 0.9 ? ""
                        : arena_printf(im->arena, ", momentum = %s", number_text(im, decimal((float)(1 - momentum))));
    Layer *layer = layer_new(im, "batch_norm(%s%s%s", text, moves, eps_text(im, node, 1e-5));
    layer_add(layer, "weight", vector_of(im, node, 1, channels, "the scale"));
    layer_add(layer, "bias", vector_of(im, node, 2, channels, "the bias"));
    layer_add(layer, "running_mean", vector_of(im, node, 3, channels, "the mean"));
    layer_add(layer, "running_var", vector_of(im, node, 4, channels, "the variance"));
    Expression e = layer_expression(im, layer);
    e.extents = extents;
    give_as(im, node, 0, REAL, &x->shape, e);
}

/* ---- over the last axes ---- */

static int64_t last_axes(Importer *im, Node *node, int *axes) {
    const Shape *x = &node->input[0]->shape;
    const int axis = axis_from(im, int_attribute(im, node, "axis", -1), x->all.rank, "attribute axis");
    int64_t count = 1;
    for (int i = axis; i < x->all.rank; i++) {
        text_axis(im, x, i);
        count *= x->all.size[i];
    }
    *axes = x->all.rank - axis;
    return count;
}

static const Tensor *shaped_like(Importer *im, const Node *node, int input, int axes, int64_t count, const char *what) {
    const Shape *x = &node->input[0]->shape;
    Extents extents = {.rank = axes};
    for (int i = 0; i < axes; i++)
        extents.size[i] = x->all.size[x->all.rank - axes + i];
    return tensor_as(im, vector_of(im, node, input, count, what), &extents);
}

/* Outputs of training: the mean and the inverse deviation. */
static void give_moments(Importer *im, Node *node, int axes) {
    Value *x = node->input[0];
    Shape shape = x->shape;
    int64_t which[MOST_RANK];
    for (int i = 0; i < axes; i++) {
        const int axis = shape.all.rank - axes + i;
        which[i] = text_axis(im, &x->shape, axis);
        shape.all.size[axis] = 1;
    }
    if (x->constant)
        refuse(im, "its operand is known when importing, and so its moments are of no use");
    const char *text = (named(im, x), operand(im, x, OR)), *list = list_text(im, which, axes),
               *eps = number_text(im, real_attribute(im, node, "epsilon", 1e-5));
    give(im, node, 1, REAL, &shape, text_expression(im, ATOM, "mean(%s, axis = %s, keep = true)", text, list));
    give(im, node, 2, REAL, &shape,
         text_expression(im, PRODUCT, "1 / sqrt(variance(%s, axis = %s, keep = true) + %s)", text, list, eps));
}

static bool needs_output(const Node *node, int at) {
    return at < node->outputs && node->output[at] && (node->output[at]->uses || node->output[at]->output);
}

void layer_norm_rule(Importer *im, Node *node) {
    Value *x = node->input[0];
    int axes;
    const int64_t count = last_axes(im, node, &axes);
    if (needs_output(node, 1) || needs_output(node, 2))
        give_moments(im, node, axes);
    const bool has_bias = node->inputs > 2 && node->input[2];
    const char *which = axes == 1 ? "" : arena_printf(im->arena, ", axes = %d", axes), *eps = eps_text(im, node, 1e-5);
    if (!has_bias) {
        Expression e = around(im, x, "layer_norm(", arena_printf(im->arena, "%s%s, affine = false)", which, eps));
        const char *scale = operand(im, node->input[1], POWER);
        shaped_like(im, node, 1, axes, count, "the scale");
        if (e.layer)
            e = text_expression(im, ATOM, "layer_norm(%s%s%s, affine = false)", named(im, x), which, eps);
        give(im, node, 0, REAL, &x->shape, text_expression(im, PRODUCT, "%s * %s", e.before, scale));
        return;
    }
    Layer *layer = layer_new(im, "layer_norm(%s%s%s", operand(im, x, OR), which, eps);
    layer_add(layer, "weight", shaped_like(im, node, 1, axes, count, "the scale"));
    layer_add(layer, "bias", shaped_like(im, node, 2, axes, count, "the bias"));
    give(im, node, 0, REAL, &x->shape, layer_expression(im, layer));
}

void rms_norm_rule(Importer *im, Node *node) {
    Value *x = node->input[0];
    int axes;
    const int64_t count = last_axes(im, node, &axes);
    Layer *layer = layer_new(im, "rms_norm(%s%s%s", operand(im, x, OR),
                             axes == 1 ? "" : arena_printf(im->arena, ", axes = %d", axes), eps_text(im, node, 1e-5));
    layer_add(layer, "weight", shaped_like(im, node, 1, axes, count, "the scale"));
    give(im, node, 0, REAL, &x->shape, layer_expression(im, layer));
}

/* ---- of images ---- */

/* [C, H, W], whatever axes are behind the channels. */
static Extents image_extents(Importer *im, const Shape *shape) {
    const Extents extents = channels_first(im, shape);
    Extents image = {.rank = 3, .size = {extents.size[0], 1, 1}};
    if (extents.rank < 2)
        refuse(im, "its operand is %s, and no image of each example", shape_text(im, shape));
    for (int i = 1; i < extents.rank; i++)
        image.size[i == extents.rank - 1 ? 2 : 1] *= extents.size[i];
    return image;
}

void instance_norm_rule(Importer *im, Node *node) {
    Value *x = node->input[0];
    const Extents image = image_extents(im, &x->shape);
    Layer *layer =
        layer_new(im, "instance_norm(%s%s, affine = true", operand_as(im, x, &image, OR), eps_text(im, node, 1e-5));
    layer_add(layer, "weight", vector_of(im, node, 1, image.size[0], "the scale"));
    layer_add(layer, "bias", vector_of(im, node, 2, image.size[0], "the bias"));
    Expression e = layer_expression(im, layer);
    e.extents = image;
    give_as(im, node, 0, REAL, &x->shape, e);
}

/* Before version 21 of the operators, one number for each group. */
static const Tensor *per_channel(Importer *im, Node *node, int input, int64_t channels, int64_t groups,
                                 const char *what) {
    const Tensor *given = vector_of(im, node, input, im->version < 21 ? groups : channels, what);
    if (im->version >= 21)
        return given;
    const Extents extents = {.rank = 1, .size = {channels}};
    Tensor *tensor = tensor_new(im, REAL, &extents);
    for (int64_t i = 0; i < channels; i++)
        tensor_reals(im, tensor)[i] = given->real[i / (channels / groups)];
    tensor->name = given->name;
    return tensor;
}

void group_norm_rule(Importer *im, Node *node) {
    Value *x = node->input[0];
    const Extents image = image_extents(im, &x->shape);
    const int64_t groups = int_attribute(im, node, "num_groups", 0);
    if (groups < 1 || image.size[0] % groups)
        refuse(im, "attribute num_groups is %lld, of %lld channels", (long long)groups, (long long)image.size[0]);
    Layer *layer = layer_new(im, "group_norm(%s, %lld%s", operand_as(im, x, &image, OR), (long long)groups,
                             eps_text(im, node, 1e-5));
    layer_add(layer, "weight", per_channel(im, node, 1, image.size[0], groups, "the scale"));
    layer_add(layer, "bias", per_channel(im, node, 2, image.size[0], groups, "the bias"));
    Expression e = layer_expression(im, layer);
    e.extents = image;
    give_as(im, node, 0, REAL, &x->shape, e);
}

/* x / (bias + alpha / size * (sum of the squares of neighbouring channels))^beta */
void lrn_rule(Importer *im, Node *node) {
    Value *x = node->input[0];
    const Extents image = image_extents(im, &x->shape);
    const int64_t size = int_attribute(im, node, "size", 0), before = (size - 1) / 2;
    const double alpha = real_attribute(im, node, "alpha", 1e-4), beta = real_attribute(im, node, "beta", 0.75),
                 bias = real_attribute(im, node, "bias", 1);
    if (size < 1 || size > 64)
        refuse(im, "attribute size is %lld; mtc writes 1 to 64", (long long)size);
    const char *operand_text =
        x->constant ? operand_as(im, x, &image, ATOM) : (named(im, x), operand_as(im, x, &image, ATOM));
    const char *squares = identifier(im, node->output[0]->name, "squares");
    state(im, squares,
          arena_printf(im->arena, "pad(square(%s), 0, before = %lld, after = %lld)", operand_text, (long long)before,
                       (long long)(size - 1 - before)));
    Text total = TEXT(im->arena);
    for (int64_t i = 0; i < size; i++)
        text_printf(&total, i ? " + %s[%lld:%lld]" : "%s[%lld:%lld]", squares, (long long)i,
                    (long long)(i + image.size[0]));
    Expression e = text_expression(im, PRODUCT, "%s / (%s + %s * (%s))^%s", operand_text, number_text(im, bias),
                                   number_text(im, alpha / (double)size), text_string(&total), number_text(im, beta));
    e.extents = image;
    give_as(im, node, 0, REAL, &x->shape, e);
}

/* (x - mean) / deviation over axes, as the operator's own definition has it. */
void mean_variance_rule(Importer *im, Node *node) {
    Value *x = node->input[0];
    int64_t axes[2 * MOST_RANK] = {0, 2, 3};
    const int given = ints_attribute(im, node, "axes", axes), count = given ? given : 3;
    for (int i = 0; i < count; i++)
        axes[i] = text_axis(im, &x->shape, axis_from(im, axes[i], x->shape.all.rank, "an axis"));
    if (!x->constant)
        named(im, x);
    const char *text = operand(im, x, OR), *list = list_text(im, axes, count);
    give(im, node, 0, REAL, &x->shape,
         text_expression(im, PRODUCT,
                         "(%s - mean(%s, axis = %s, keep = true)) / (std(%s, axis = %s, keep = true) + 1e-9)", text,
                         text, list, text, list));
}
