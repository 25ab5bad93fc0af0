/* Normalisation by statistics of the values themselves. */
#include "op/window.h"

/* ---- (x - mean) / deviation ---- */

/* The part of an element in the mean over `axes`: examples that fill up a batch have none. `whole`: where that is a batch in shards, the
 * mean is over all of them. */
static Node *part_in_mean(Graph *g, const Type *type, unsigned axes, bool whole) {
    double count = 1;
    bool over_batch = type->batched && axes & 1;
    for (int k = over_batch; k < type->rank; k++)
        count *= axes >> k & 1 ? (double)type->dim[k] : 1;
    if (!over_batch)
        return graph_mean_factor(g, count);
    const char *part = g->training && g->module->shards && !whole ? "shard_share" : "share";
    Node *share = scale(g, op0(g, part, (Attr){.rank = 1, .batched = true, .dims = {type->dim[0]}}), 1 / count);
    Attr attr = attr_shape(type);
    attr.axes = ((1u << type->rank) - 1) & ~1u;
    return graph_node(g, "expand", attr, 1, &share);
}

/* The sum over `axes`, at all elements; `whole`: over all shards of the batch. */
static Node *sum_at_all(Graph *g, Node *x, unsigned axes, bool whole) {
    if (!whole)
        return graph_reduce_keep(g, "sum", x, axes);
    Attr attr = attr_shape(&x->type);
    attr.axes = axes;
    Node *sum = over_shards(g, graph_reduce(g, "sum", x, axes));
    return graph_node(g, "expand", attr, 1, &sum);
}

/* y = (x - mean) inverse, where mean and inverse are those of x: they move with each x, by its part w in them.
 *
 *     dx = inverse (dy - w sum(dy) - w y sum(dy y)) */
static Node *standardize_gradient(Graph *g, Node *n, Node *dy, bool whole) {
    unsigned axes = n->attr.axes;
    Node *level = sum_at_all(g, dy, axes, whole);
    Node *slope = mul(g, n, sum_at_all(g, mul(g, dy, n), axes, whole));
    Node *moved = mul(g, part_in_mean(g, &n->type, axes, whole), add(g, level, slope));
    return mul(g, n->in[2], sub(g, dy, moved));
}

GRAD(standardize) {
    din[0] = standardize_gradient(g, n, dy, false);
}

GRAD(standardize_whole) {
    din[0] = standardize_gradient(g, n, dy, true);
}

static Node *simplify_standardize(Graph *g, Node *n) {
    return mul(g, sub(g, n->in[0], n->in[1]), n->in[2]);
}

/* A value for each combination of the axes that are not in `axes`, at all elements of `like`. */
static Node *repeated(Graph *g, Node *value, const Type *like, unsigned axes) {
    Attr attr = attr_shape(like);
    attr.axes = axes;
    return value && axes ? graph_node(g, "expand", attr, 1, &value) : value;
}

/* 1 / sqrt(variance + eps) */
static Node *inverse_deviation(Graph *g, Node *variance, double eps) {
    return divide(g, graph_constant(g, 1), op1(g, "sqrt", plus(g, variance, eps)));
}

/* Mean and variance are those over `axes`. */
static Node *standardize(Graph *g, Node *x, Node *mean, Node *variance, double eps, unsigned axes, bool whole) {
    mean->hint = "mean";
    Node *inverse = inverse_deviation(g, variance, eps);
    inverse->hint = "inverse_deviation";
    Node *in[] = {x, repeated(g, mean, &x->type, axes), repeated(g, inverse, &x->type, axes)};
    return graph_node(g, whole ? "standardize_whole" : "standardize", (Attr){.axes = axes}, 3, in);
}

/* With the mean and the variance over `axes`, none of which is the batch. */
static Node *standardize_examples(Graph *g, Node *x, double eps, unsigned axes) {
    Node *part = part_in_mean(g, &x->type, axes, false);
    Node *mean = mul(g, graph_reduce(g, "sum", x, axes), part);
    Node *difference = sub(g, x, repeated(g, mean, &x->type, axes));
    Node *variance = mul(g, graph_reduce(g, "sum", mul(g, difference, difference), axes), part);
    return standardize(g, x, mean, variance, eps, axes, false);
}

const OpDef op_standardize = {
    .name = "standardize",
    .cls = OP_MAP,
    .flags = OP_REAL,
    .arity = 3,
    .attrs = ATTR_AXES,
    .doc = "(a - b) c, where b is the mean of a over attr.axes and c its inverse deviation: the gradient knows that "
           "they move "
           "with a.",
    .infer = infer_real,
    .grad = grad_standardize,
    .simplify = simplify_standardize,
    .onnx = "Mul(Sub($0, $1), $2)",
};

const OpDef op_standardize_whole = {
    .name = "standardize_whole",
    .cls = OP_MAP,
    .flags = OP_REAL,
    .arity = 3,
    .attrs = ATTR_AXES,
    .doc = "(a - b) c, where b and c are those of standardize over all shards of the batch.",
    .infer = infer_real,
    .grad = grad_standardize_whole,
    .simplify = simplify_standardize,
};

/* ---- what the three layers share ---- */

static Node *affine_weight(Call *call, const char *name, const Type *type, double initial) {
    return call_weight(call, name, type, (Init){.kind = initial == 0 ? INIT_ZEROS : INIT_CONSTANT, .a = initial}, NULL);
}

/* y * weight + bias, where weights have a value for each combination of the axes that are not in `axes`. */
static Node *affine(Call *call, Node *y, const Type *type, unsigned axes) {
    Graph *g = call->g;
    Node *weight = affine_weight(call, "weight", type, 1), *bias = affine_weight(call, "bias", type, 0);
    return add(g, mul(g, y, repeated(g, weight, &y->type, axes)), repeated(g, bias, &y->type, axes));
}

static Type vector_type(int64_t size) {
    return type_make(DT_F32, false, 1, &size);
}

/* A small positive number; NaN after a user error. */
static bool has_channels(Call *call, const Node *x, const char *function) {
    if (!user_axes(x))
        call_error(call, 0, "%s needs channels, found %s", function, type_user_text(call->g->arena, &x->type));
    return user_axes(x);
}

/* ---- batch norm ---- */

typedef struct BatchNorm {
    Node *x, *momentum;
    unsigned axes; /* all but the channels */
    double eps;
    bool affine, whole;                               /* of a batch in shards, statistics of all of them */
    Node *weight, *bias, *running_mean, *running_var; /* [C]; weight and bias NULL: none */
    Node *mean_leaf, *var_leaf; /* what keeps the running ones; of a layer that was called before, they have moved on */
} BatchNorm;

/* How many values of a channel the batch has, as the program counts them. */
static Node *values_of_channel(Graph *g, const BatchNorm *b) {
    const Type *type = &b->x->type;
    double pixels = (double)type_elements(type) / ((double)type->dim[0] * (double)type->dim[1]);
    return scale(g, op0(g, b->whole ? "examples_of_batch" : "examples", (Attr){0}), pixels);
}

/* The variance of all values that these are a sample of, as PyTorch keeps it. */
static Node *unbiased(Graph *g, Node *variance, const BatchNorm *b) {
    Node *count = values_of_channel(g, b), *one = graph_constant(g, 1);
    return mul(g, variance, divide(g, count, op2(g, "maximum", sub(g, count, one), one)));
}

static Node *weighted_sum(Graph *g, const BatchNorm *b, Node *x) {
    Node *sum = graph_reduce(g, "sum", mul(g, x, part_in_mean(g, &x->type, b->axes, b->whole)), b->axes);
    return b->whole ? over_shards(g, sum) : sum;
}

/* Numbers of a field come to n by a way that leads through no product, whose operands are rounded; or it takes too many steps to say. */
static bool has_unrounded_data(const Node *n, int *steps) {
    if (n->op->cls == OP_CONTRACT || n->op->cls == OP_CALL)
        return false;
    bool found = n->op->table == TABLE_FIELD || --*steps <= 0;
    for (int k = 0; k < n->inputs && !found; k++)
        found = has_unrounded_data(n->in[k], steps);
    return found;
}

static bool comes_from_rounded_products(const Graph *g, const Node *x) {
    int steps = 1000;
    Precision precision = g->module->precision;
    bool rounds = precision == PRECISION_TF32 || dtype_is_narrow(precision_dtype(precision));
    return rounds && !has_unrounded_data(x, &steps);
}

/* Mean and variance of x, from sums of d = x - running_mean with the parts w of the elements:
 *
 *     mean = running_mean + sum w d,  variance = sum w (x - mean)^2
 *
 * The variance is not of d - sum w d, which is the same: then d would be kept for a second pass, beside x that the result is of.
 *
 * What products of rounded numbers have made takes the variance from the same pass over x as the mean, sum w d^2 - (sum w d)^2. That loses
 * 2^-24 of (sum w d)^2 or a little more, before the running mean has come near the mean: what has lost all is taken for 2^-22 of it, not for
 * nothing. In bf16 x has lost more when it was rounded to 8 bits, in tf32 each number that it is a sum of was rounded to 11. Data that
 * nothing has rounded, such as a table's years, may be further from 0. */
static Node *shift_and_moments(Graph *g, const BatchNorm *b, Node **mean, Node **variance) {
    const Type *type = &b->x->type;
    Node *d = sub(g, b->x, repeated(g, b->running_mean, type, b->axes)), *shift = weighted_sum(g, b, d);
    *mean = add(g, b->running_mean, shift);
    if (comes_from_rounded_products(g, b->x)) {
        Node *square = weighted_sum(g, b, mul(g, d, d)), *distance = mul(g, shift, shift);
        *variance = op2(g, "maximum", sub(g, square, distance), scale(g, distance, 0x1p-22));
    } else {
        Node *difference = sub(g, b->x, repeated(g, *mean, type, b->axes));
        *variance = weighted_sum(g, b, mul(g, difference, difference));
    }
    return shift;
}

static Node *trained_batch_norm(Graph *g, const BatchNorm *b) {
    const Type *type = &b->x->type;
    Node *mean, *variance, *shift = shift_and_moments(g, b, &mean, &variance);
    Node *kept = sub(g, graph_constant(g, 1), b->momentum);
    Node *seen = mul(g, b->momentum, unbiased(g, variance, b));
    variance->hint = "variance";
    graph_assign(g, b->mean_leaf, add(g, b->running_mean, mul(g, b->momentum, shift)));
    graph_assign(g, b->var_leaf, add(g, mul(g, kept, b->running_var), seen));
    Node *y = standardize(g, b->x, mean, variance, b->eps, b->axes, b->whole);
    if (!b->weight)
        return y;
    return add(g, mul(g, y, repeated(g, b->weight, type, b->axes)), repeated(g, b->bias, type, b->axes));
}

/* x scale + shift, with one of each for a channel. */
static Node *applied_batch_norm(Graph *g, const BatchNorm *b) {
    const Type *type = &b->x->type;
    Node *factor = inverse_deviation(g, b->running_var, b->eps);
    factor = b->weight ? mul(g, factor, b->weight) : factor;
    Node *offset = mul(g, b->running_mean, factor);
    offset = b->bias ? sub(g, b->bias, offset) : op1(g, "neg", offset);
    factor->hint = "scale";
    offset->hint = "shift";
    return add(g, mul(g, b->x, repeated(g, factor, type, b->axes)), repeated(g, offset, type, b->axes));
}

static bool has_statistics(Call *call, const Node *x, bool whole) {
    if (whole || type_elements(&x->type) > x->type.dim[1])
        return true;
    call_error(call, 0, "batch_norm needs more than one value of each channel, and a batch of 1 example %s has one",
               type_user_text(call->g->arena, &x->type));
    return false;
}

static bool read_batch_norm(Call *call, BatchNorm *b) {
    b->x = graph_of_each_example(call->g, graph_cast(call->g, call_tensor(call, 0), DT_F32));
    b->momentum = call_scalar(call, 1);
    b->eps = call_number(call, 2);
    b->affine = call_bool(call, 3);
    b->whole = call_bool(call, 4) && call->g->training && call->g->module->shards > 1;
    if (!b->x || !b->momentum || isnan(b->eps) || !call_parts_no_batch(call, 0, b->x, ~0u))
        return false;
    return has_channels(call, b->x, "batch_norm") && has_statistics(call, b->x, b->whole);
}

static Value build_batch_norm(Call *call) {
    BatchNorm b = {0};
    if (!read_batch_norm(call, &b))
        return value_tensor(NULL);
    Type type = vector_type(b.x->type.dim[1]);
    b.axes = ((1u << b.x->type.rank) - 1) & ~2u;
    b.weight = b.affine ? affine_weight(call, "weight", &type, 1) : NULL;
    b.bias = b.affine ? affine_weight(call, "bias", &type, 0) : NULL;
    b.mean_leaf = call_statistic(call, "running_mean", &type, (Init){.kind = INIT_ZEROS}, NULL);
    b.var_leaf = call_statistic(call, "running_var", &type, (Init){.kind = INIT_CONSTANT, .a = 1}, NULL);
    if (!b.mean_leaf || !b.var_leaf)
        return value_tensor(NULL);
    b.running_mean = graph_latest(call->g, b.mean_leaf);
    b.running_var = graph_latest(call->g, b.var_leaf);
    return value_tensor(call->g->training ? trained_batch_norm(call->g, &b) : applied_batch_norm(call->g, &b));
}

/* ---- layer norm, RMS norm, group norm ---- */

/* A norm over the last axes of x, arguments (x, axes, eps, ...). */
typedef struct LastAxes {
    Node *x;
    unsigned leading, axes; /* the others, those */
    Type type;              /* of the weights: the extents of the last axes */
    double eps;
} LastAxes;

static bool read_last_axes(Call *call, const char *function, LastAxes *norm) {
    Node *x = norm->x = graph_cast(call->g, call_tensor(call, 0), DT_F32);
    if (!x || !has_channels(call, x, function))
        return false;
    int64_t last = call_int(call, 1, 1, x->type.rank - x->type.batched);
    norm->eps = call_number(call, 2);
    if (last < 1 || isnan(norm->eps))
        return false;
    int first = x->type.rank - (int)last;
    norm->type = type_make(DT_F32, false, (int)last, x->type.dim + first);
    norm->leading = (1u << first) - 1;
    norm->axes = ((1u << x->type.rank) - 1) & ~norm->leading;
    return call_parts_no_batch(call, 0, x, norm->axes);
}

static Value build_layer_norm(Call *call) {
    LastAxes norm = {0};
    if (!read_last_axes(call, "layer_norm", &norm))
        return value_tensor(NULL);
    Node *y = standardize_examples(call->g, norm.x, norm.eps, norm.axes);
    return value_tensor(call_bool(call, 3) ? affine(call, y, &norm.type, norm.leading) : y);
}

static Value build_rms_norm(Call *call) {
    LastAxes norm = {0};
    Graph *g = call->g;
    if (!read_last_axes(call, "rms_norm", &norm))
        return value_tensor(NULL);
    Node *x = norm.x, *part = part_in_mean(g, &x->type, norm.axes, false);
    Node *square = mul(g, graph_reduce(g, "sum", mul(g, x, x), norm.axes), part);
    Node *inverse = inverse_deviation(g, square, norm.eps);
    inverse->hint = "inverse_rms";
    Node *weight = affine_weight(call, "weight", &norm.type, 1);
    Node *y = mul(g, x, repeated(g, inverse, &x->type, norm.axes));
    return value_tensor(mul(g, y, repeated(g, weight, &x->type, norm.leading)));
}

/* [N, H, W, C] as [N, H, W, G, C / G], each group standardised. */
static Node *standardize_groups(Graph *g, Node *x, int64_t groups, double eps) {
    const int64_t *dim = x->type.dim;
    Type type = type_make(DT_F32, x->type.batched, 5, (int64_t[]){dim[0], dim[1], dim[2], groups, dim[3] / groups});
    unsigned axes = 1u << IMAGE_ROWS | 1u << IMAGE_COLUMNS | 1u << 4;
    return graph_reshape(g, standardize_examples(g, graph_reshape(g, x, &type), eps, axes), &x->type);
}

static Value build_group_norm(Call *call) {
    Node *x = call_image(call, 0, "group_norm");
    int64_t groups = call_size(call, 1), channels = x ? x->type.dim[IMAGE_CHANNELS] : 0;
    double eps = call_number(call, 2);
    if (!x || groups < 0 || isnan(eps))
        return value_tensor(NULL);
    if (channels % groups) {
        call_error(call, 1, "%lld channels do not divide into %lld groups", (long long)channels, (long long)groups);
        return value_tensor(NULL);
    }
    Type type = vector_type(channels);
    Node *y = standardize_groups(call->g, x, groups, eps);
    return value_tensor(image_value(call->g, call_bool(call, 3) ? affine(call, y, &type, PIXEL_AXES) : y));
}

static Value build_instance_norm(Call *call) {
    Node *x = call_image(call, 0, "instance_norm");
    double eps = call_number(call, 1);
    if (!x || isnan(eps))
        return value_tensor(NULL);
    int64_t channels = x->type.dim[IMAGE_CHANNELS];
    if (x->type.dim[IMAGE_ROWS] * x->type.dim[IMAGE_COLUMNS] == 1) {
        call_error(call, 0, "instance_norm needs more than one pixel of each channel, and %s has one",
                   type_user_text(call->g->arena, &call_tensor(call, 0)->type));
        return value_tensor(NULL);
    }
    Type type = vector_type(channels);
    Node *y = standardize_examples(call->g, x, eps, 1u << IMAGE_ROWS | 1u << IMAGE_COLUMNS);
    return value_tensor(image_value(call->g, call_bool(call, 2) ? affine(call, y, &type, PIXEL_AXES) : y));
}

const OpDef op_batch_norm = {
    .name = "batch_norm",
    .cls = OP_LIBRARY,
    .doc = "(x - mean) / sqrt(variance + eps) * weight + bias for each channel, the first axis. In training, mean and "
           "variance "
           "are those of the batch, over its examples and all other axes, and `running_mean` and `running_var` move "
           "towards "
           "them: running = (1 - momentum) running + momentum batch, with the unbiased variance. In evaluation the "
           "running "
           "ones are used. In a layer that is called several times, each call moves them in turn. Without affine, "
           "there are no `weight` and `bias`, which start as 1 and 0. Of a batch in shards (`mtc --shards`), each "
           "shard has "
           "its own mean and variance, and with sync = true those of the whole batch.",
    .example = "y = batch_norm(conv2d(image, 4, 3, bias = false))",
    .signature = "x, momentum: number in [0, 1] = 0.1, eps: number > 0 = 1e-5, affine: bool = true, sync: bool = false",
    .build = build_batch_norm,
};

const OpDef op_layer_norm = {
    .name = "layer_norm",
    .cls = OP_LIBRARY,
    .doc = "(x - mean) / sqrt(variance + eps) * weight + bias, with mean and variance of each example over its last "
           "`axes` "
           "axes; `weight` and `bias` have their shape, and start as 1 and 0.",
    .example = "y = layer_norm(x)",
    .signature = "x, axes: size = 1, eps: number > 0 = 1e-5, affine: bool = true",
    .build = build_layer_norm,
};

const OpDef op_rms_norm = {
    .name = "rms_norm",
    .cls = OP_LIBRARY,
    .doc = "x / sqrt(mean of x^2 + eps) * weight, with the mean of each example over its last `axes` axes; `weight` "
           "has their "
           "shape, and starts as 1.",
    .example = "y = rms_norm(x)",
    .signature = "x, axes: size = 1, eps: number > 0 = 1e-5",
    .build = build_rms_norm,
};

const OpDef op_group_norm = {
    .name = "group_norm",
    .cls = OP_LIBRARY,
    .doc = "(x - mean) / sqrt(variance + eps) * weight + bias of an image [C, H, W], with mean and variance of each "
           "example over "
           "the pixels of C / groups neighbouring channels; `weight` [C] and `bias` [C] start as 1 and 0.",
    .example = "y = group_norm(image, 3)",
    .signature = "x, groups: size, eps: number > 0 = 1e-5, affine: bool = true",
    .build = build_group_norm,
};

const OpDef op_instance_norm = {
    .name = "instance_norm",
    .cls = OP_LIBRARY,
    .doc = "(x - mean) / sqrt(variance + eps) of an image [C, H, W], with mean and variance of each channel of each "
           "example. With affine, times `weight` [C] plus `bias` [C], which start as 1 and 0; as in PyTorch, it is "
           "without.",
    .example = "y = instance_norm(image)",
    .signature = "x, eps: number > 0 = 1e-5, affine: bool = false",
    .build = build_instance_norm,
};
