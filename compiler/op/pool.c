/* Pooling: one number for what each output sees of a channel. */
#include "op/window.h"

/* ---- the largest ---- */

INFER(max_pool) {
    const Type *in = &n->in[0]->type;
    if (in->rank != IMAGE_RANK)
        return false;
    n->type = swept_type(in, n->attr.sweep, in->dim[IMAGE_CHANNELS]);
    return in->dtype == DT_F32;
}

static Node *largest(Graph *g, Node *x, const Sweep *sweep) {
    return graph_reduce(g, "max", window(g, x, sweep, -INFINITY), TAP_AXES);
}

/* Its taps counted from 0, in the shape of windows. */
static Node *tap_numbers(Graph *g, const Type *windows) {
    Type taps = type_make(DT_I32, false, 1, (int64_t[]){windows->dim[TAP_ROWS] * windows->dim[TAP_COLUMNS]});
    Type grid = type_make(DT_I32, false, 3, (int64_t[]){windows->dim[TAP_ROWS], windows->dim[TAP_COLUMNS], 1});
    return graph_expand(g, graph_reshape(g, graph_iota(g, &taps, 0), &grid), windows);
}

/* The number of the first tap that sees the largest element. */
static Node *first_largest(Graph *g, Node *n) {
    Node *seen = window(g, n->in[0], n->attr.sweep, -INFINITY);
    Attr everywhere = attr_shape(&seen->type);
    everywhere.axes = TAP_AXES;
    Node *is_largest = op2(g, "eq", seen, graph_node(g, "expand", everywhere, 1, &n));
    Node *number = graph_cast(g, tap_numbers(g, &seen->type), DT_F32);
    int64_t taps = seen->type.dim[TAP_ROWS] * seen->type.dim[TAP_COLUMNS];
    Node *first = graph_reduce(g, "min", select(g, is_largest, number, graph_constant(g, (double)taps)), TAP_AXES);
    first->hint = "first";
    return first;
}

/* In a byte, where there are few enough. */
static Node *compact(Graph *g, Node *number, const Sweep *sweep) {
    return sweep[0].kernel * sweep[1].kernel <= UINT8_MAX ? graph_cast(g, number, DT_U8) : number;
}

/* A pixel receives the gradients of the outputs whose largest element it is; of equal ones, the first tap's. */
GRAD(max_pool) {
    Sweeps back = sweeps_adjoint(n->attr.sweep, &n->in[0]->type);
    Node *first = compact(g, first_largest(g, n), n->attr.sweep);
    Node *winner = graph_cast(g, window(g, first, back.axis, 0), DT_F32), *sent = window(g, dy, back.axis, 0);
    Node *won = op2(g, "eq", winner, graph_cast(g, tap_numbers(g, &sent->type), DT_F32));
    din[0] = graph_reduce(g, "sum", masked(g, won, sent), TAP_AXES);
}

static Node *simplify_max_pool(Graph *g, Node *n) {
    return largest(g, n->in[0], n->attr.sweep);
}

TO_ONNX(max_pool) {
    const char *x = onnx_operand_in(o, n, 0, image_channels_first);
    OnnxSweep sweep;
    if (!onnx_sweep(n->attr.sweep, &n->in[0]->type, &sweep))
        return onnx_refuse(o, n, "there is no form in ONNX's operators of this pooling");
    return onnx_value_in(onnx_node(o, "MaxPool", 1, &x, 4, sweep.attr), IMAGE_RANK, image_channels_first);
}

/* Each output sees a pixel; false after a user error. */
static bool read_pool(Call *call, const SweepArgs *args, const Node *x, Sweeps *sweeps) {
    if (!x || !call_sweeps(call, args, &x->type, sweeps))
        return false;
    for (int k = 0; k < 2; k++)
        if (2 * sweeps->axis[k].pad > sweeps->axis[k].kernel) {
            call_error(call, args->padding, "the padding is at most half of the kernel, %lld",
                       (long long)sweeps->axis[k].kernel / 2);
            return false;
        }
    return true;
}

static Value build_max_pool(Call *call) {
    const SweepArgs args = {1, 2, 3, 4};
    Node *x = call_image(call, 0, "max_pool");
    Sweeps sweeps;
    if (!read_pool(call, &args, x, &sweeps))
        return value_tensor(NULL);
    Attr attr = {.sweep = {sweeps.axis[0], sweeps.axis[1]}};
    return value_tensor(image_value(call->g, graph_node(call->g, "max_pool", attr, 1, &x)));
}

/* ---- the mean ---- */

static Value build_avg_pool(Call *call) {
    const SweepArgs args = {1, 2, 3, -1};
    Node *x = call_image(call, 0, "avg_pool");
    Sweeps sweeps;
    if (!read_pool(call, &args, x, &sweeps))
        return value_tensor(NULL);
    Node *total = graph_reduce(call->g, "sum", window(call->g, x, sweeps.axis, 0), TAP_AXES);
    double taps = (double)(sweeps.axis[0].kernel * sweeps.axis[1].kernel);
    return value_tensor(image_value(call->g, mul(call->g, total, graph_mean_factor(call->g, taps))));
}

static Value build_global_avg_pool(Call *call) {
    Node *x = call_image(call, 0, "global_avg_pool");
    if (!x)
        return value_tensor(NULL);
    double pixels = (double)(x->type.dim[IMAGE_ROWS] * x->type.dim[IMAGE_COLUMNS]);
    Node *total = graph_reduce(call->g, "sum", x, 1u << IMAGE_ROWS | 1u << IMAGE_COLUMNS);
    return value_tensor(of_images(call->g, mul(call->g, total, graph_mean_factor(call->g, pixels))));
}

static Value build_global_max_pool(Call *call) {
    Node *x = call_image(call, 0, "global_max_pool");
    Node *peak = graph_reduce(call->g, "max", x, 1u << IMAGE_ROWS | 1u << IMAGE_COLUMNS);
    return value_tensor(of_images(call->g, peak));
}

/* The mean of x over its elements [from, to) along the axis, which stays, with size 1. */
static Node *mean_of_part(Graph *g, Node *x, int axis, int64_t from, int64_t to) {
    Type part = x->type, one = x->type;
    int64_t offset[MAX_RANK] = {0};
    part.dim[axis] = to - from;
    one.dim[axis] = 1;
    offset[axis] = from;
    Node *slice = graph_node(g, "slice", attr_placed(&part, offset), 1, &x);
    Node *total = graph_reduce(g, "sum", slice, 1u << axis);
    return graph_reshape(g, mul(g, total, graph_mean_factor(g, (double)(to - from))), &one);
}

/* Bins of equal size are an axis of their own. */
static Node *mean_of_bins(Graph *g, Node *x, int axis, int64_t bins) {
    Type split = x->type;
    int64_t size = x->type.dim[axis] / bins;
    split.rank++;
    memmove(split.dim + axis + 1, x->type.dim + axis, (size_t)(x->type.rank - axis) * sizeof *split.dim);
    split.dim[axis] = bins;
    split.dim[axis + 1] = size;
    Node *total = graph_reduce(g, "sum", graph_reshape(g, x, &split), 1u << (axis + 1));
    return mul(g, total, graph_mean_factor(g, (double)size));
}

/* Bin i has the elements from floor(i size / bins) to ceil((i + 1) size / bins): neighbours may overlap. */
static Node *adaptive_mean(Graph *g, Node *x, int axis, int64_t bins) {
    int64_t size = x->type.dim[axis];
    if (size % bins == 0)
        return mean_of_bins(g, x, axis, bins);
    Node **parts = NEW_ARRAY(g->arena, Node *, bins);
    for (int64_t i = 0; i < bins; i++)
        parts[i] = mean_of_part(g, x, axis, i * size / bins, ((i + 1) * size + bins - 1) / bins);
    return build_stack(g, parts, (int)bins, axis);
}

static Value build_adaptive_avg_pool(Call *call) {
    Node *x = call_image(call, 0, "adaptive_avg_pool");
    int64_t out[2];
    if (!x || !call_pixels(call, &x->type.dim[IMAGE_ROWS], out))
        return value_tensor(NULL);
    for (int k = 0; k < 2; k++)
        x = adaptive_mean(call->g, x, IMAGE_ROWS + k, out[k]);
    return value_tensor(image_value(call->g, x));
}

/* ---- larger again ---- */

/* Along the axis, the elements moved on by one, the element at the end twice: what is before each, or behind it. */
static Node *neighbours(Graph *g, Node *x, int axis, bool before) {
    int64_t size = x->type.dim[axis], offset[MAX_RANK] = {0};
    Type most = x->type, end = x->type;
    if (size == 1)
        return x;
    most.dim[axis] = size - 1;
    end.dim[axis] = 1;
    offset[axis] = before ? 0 : size - 1;
    Node *last = graph_node(g, "slice", attr_placed(&end, offset), 1, &x);
    offset[axis] = before ? 0 : 1;
    Node *rest = graph_node(g, "slice", attr_placed(&most, offset), 1, &x);
    Node *parts[] = {before ? last : rest, before ? rest : last};
    return build_stack(g, parts, 2, axis);
}

/* Each element of x `factor` times, the r-th of them lying (r + 1/2) / factor - 1/2 away from it: a mixture with its neighbour on that
 * side. Beyond the ends there is what is at the ends. */
static Node *interpolated(Graph *g, Node *x, int axis, int64_t factor) {
    if (factor == 1)
        return x;
    Type phases = {.dtype = DT_F32, .rank = 1, .dim = {factor}}, result = x->type;
    Node *zero = graph_constant(g, 0), *r = graph_cast(g, graph_iota(g, &phases, 0), DT_F32);
    Node *away = plus(g, scale(g, plus(g, r, 0.5), 1 / (double)factor), -0.5);
    Node *mixed = NULL;
    result.dim[axis] *= factor;
    for (int side = 0; side < 3; side++) {
        Node *share = side == 0   ? op2(g, "maximum", op1(g, "neg", away), zero)
                      : side == 1 ? sub(g, graph_constant(g, 1), op1(g, "abs", away))
                                  : op2(g, "maximum", away, zero);
        Node *of = side == 1 ? x : neighbours(g, x, axis, side == 0);
        Node *copies = insert_axis(g, of, axis + 1);
        for (int k = copies->type.rank - 1; k > axis + 1; k--)
            share = insert_axis(g, share, share->type.rank);
        Node *part = mul(g, copies, share);
        mixed = mixed ? add(g, mixed, part) : part;
    }
    return graph_reshape(g, mixed, &result);
}

static Value build_upsample(Call *call) {
    Node *x = call_image(call, 0, "upsample");
    int64_t factor[2];
    enum { NEAREST, BILINEAR }; /* as in the signature */
    if (!x || !call_pair(call, 1, 1, factor))
        return value_tensor(NULL);
    if (call_word(call, 2, NEAREST) == BILINEAR) {
        x = interpolated(call->g, x, IMAGE_ROWS, factor[0]);
        return value_tensor(image_value(call->g, interpolated(call->g, x, IMAGE_COLUMNS, factor[1])));
    }
    const int64_t *dim = x->type.dim;
    Type copies =
        type_make(DT_F32, x->type.batched, 6, (int64_t[]){dim[0], dim[1], factor[0], dim[2], factor[1], dim[3]});
    Type image =
        type_make(DT_F32, x->type.batched, 4, (int64_t[]){dim[0], dim[1] * factor[0], dim[2] * factor[1], dim[3]});
    Attr attr = attr_shape(&copies);
    attr.axes = 1u << 2 | 1u << 4;
    Node *y = graph_reshape(call->g, graph_node(call->g, "expand", attr, 1, &x), &image);
    return value_tensor(image_value(call->g, y));
}

const OpDef op_max_pool = {
    .name = "max_pool",
    .cls = OP_REDUCE,
    .arity = 1,
    .attrs = ATTR_SWEEP,
    .doc =
        "The largest element that each output sees of a channel of an image [C, H, W]; stride is `kernel` unless it is "
        "given. The gradient goes to the first of equal elements.",
    .example = "y = max_pool(image, 2)",
    .infer = infer_max_pool,
    .grad = grad_max_pool,
    .simplify = simplify_max_pool,
    .to_onnx = to_onnx_max_pool,
    .signature = "x, kernel: sizes, stride: sizes = none, padding: sizes = 0, dilation: sizes = 1",
    .build = build_max_pool,
};

const OpDef op_avg_pool = {
    .name = "avg_pool",
    .cls = OP_LIBRARY,
    .doc = "The mean of what each output sees of a channel of an image [C, H, W], padding counted as 0; stride is "
           "`kernel` "
           "unless it is given.",
    .example = "y = avg_pool(image, 2)",
    .signature = "x, kernel: sizes, stride: sizes = none, padding: sizes = 0",
    .build = build_avg_pool,
};

const OpDef op_global_avg_pool = {
    .name = "global_avg_pool",
    .cls = OP_LIBRARY,
    .doc = "The mean of each channel of an image [C, H, W]: a vector [C].",
    .example = "y = global_avg_pool(image)",
    .signature = "x",
    .build = build_global_avg_pool,
};

const OpDef op_global_max_pool = {
    .name = "global_max_pool",
    .cls = OP_LIBRARY,
    .doc = "The largest element of each channel of an image [C, H, W]: a vector [C]. The gradient is shared evenly by "
           "the "
           "elements that are the largest.",
    .example = "y = global_max_pool(image)",
    .signature = "x",
    .build = build_global_max_pool,
};

const OpDef op_adaptive_avg_pool = {
    .name = "adaptive_avg_pool",
    .cls = OP_LIBRARY,
    .doc = "An image [C, H, W] as one of `out` x `out` or [rows, columns] pixels, each the mean of its bin: rows "
           "floor(i H / out) "
           "up to ceil((i + 1) H / out).",
    .example = "y = adaptive_avg_pool(image, 2)",
    .signature = "x, out: pixels",
    .build = build_adaptive_avg_pool,
};

const OpDef op_upsample = {
    .name = "upsample",
    .cls = OP_LIBRARY,
    .doc = "An image [C, H, W] with `factor` times the rows and columns. Each pixel several times, the nearest "
           "neighbour; or, in the mode \"bilinear\", mixtures of the pixels around by their distance: PyTorch's, with "
           "align_corners = False.",
    .example = "y = upsample(image, 2)",
    .signature = "x, factor: sizes, mode: \"nearest\" or \"bilinear\" = \"nearest\"",
    .build = build_upsample,
};
