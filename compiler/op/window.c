/* What a filter or a pool sees of an image, tap by tap, as views. Both have the same index arithmetic, along rows and columns:
 *
 *     p = o stride + k dilation - pad      in an image spread out by `spread`, of which only the multiples are there
 *
 *     window:   y[n, o, k, c] = x[n, p / spread, c]          the image under output o at tap k
 *     unwindow: y[n, o, k, c] = x[n, p / spread, k, c]       what output p / spread has at tap k; summed over k, the gradient
 *
 * With stride 2, kernel 3, pad 1 and spread 1, output 1 sees 1 2 3; the pixel 2 is seen by output 1 at tap 1; the pixel 3 by
 * output 1 at tap 2 and by output 2 at tap 0. */
#include "op/window.h"

/* ---- index expressions ---- */

/* What an axis of the result contributes to a position: "+ i * 2"; nothing where it has one element. */
static const Tree *plus_term(Arena *arena, const Tree *sum, const Tree *index, int64_t extent, int64_t factor) {
    if (extent == 1)
        return sum;
    int64_t times = factor < 0 ? -factor : factor;
    const Tree *term = times == 1 ? index : tree_infix(arena, "*", index, tree_number(arena, times));
    if (!sum && factor > 0)
        return term;
    return tree_infix(arena, factor < 0 ? "-" : "+", sum ? sum : tree_number(arena, 0), term);
}

/* The first and the last position that occur. */
static void reach(const Sweep *s, int64_t *first, int64_t *last) {
    int64_t taps = (s->kernel - 1) * s->dilation;
    *first = (taps < 0 ? taps : 0) - s->pad;
    *last = (s->out - 1) * s->stride + (taps > 0 ? taps : 0) - s->pad;
}

/* The operand's index along an axis of `size` elements; adds to the guard when it may be outside. */
static const Tree *swept_index(Arena *arena, const Sweep *s, int64_t size, const Tree *out, const Tree *tap,
                               const Tree **guard) {
    int64_t first, last;
    const Tree *position = plus_term(arena, NULL, out, s->out, s->stride);
    position = plus_term(arena, position, tap, s->kernel, s->dilation);
    position = tree_shifted(arena, position ? position : tree_number(arena, 0), -s->pad);
    reach(s, &first, &last);
    if (first < 0)
        view_requires(arena, guard, position, ">=", 0);
    if (last >= size * s->spread)
        view_requires(arena, guard, position, "<", size * s->spread);
    if (s->spread == 1)
        return position;
    const Tree *spread = tree_number(arena, s->spread);
    view_requires(arena, guard, tree_infix(arena, "%", position, spread), "==", 0);
    return tree_infix(arena, "/", position, spread);
}

static void sweep_both(Arena *arena, const Node *n, const Tree *const *index, IndexMap *map) {
    map->index[0] = index[0];
    for (int k = 0; k < 2; k++)
        map->index[1 + k] = swept_index(arena, &n->attr.sweep[k], n->in[0]->type.dim[1 + k], index[1 + k],
                                        index[TAP_ROWS + k], &map->guard);
}

static void view_window(Arena *arena, const Node *n, const Tree *const *index, IndexMap *map) {
    sweep_both(arena, n, index, map);
    map->index[IMAGE_CHANNELS] = index[n->type.rank - 1];
}

static void view_unwindow(Arena *arena, const Node *n, const Tree *const *index, IndexMap *map) {
    sweep_both(arena, n, index, map);
    for (int k = TAP_ROWS; k < n->type.rank; k++)
        map->index[k] = index[k];
}

/* ---- types ---- */

Type swept_type(const Type *image, const Sweep *sweep, int64_t channels) {
    int64_t dim[] = {image->dim[0], sweep[0].out, sweep[1].out, channels};
    return type_make(image->dtype, image->batched, IMAGE_RANK, dim);
}

static Type window_type(const Type *image, const Sweep *sweep, int64_t channels) {
    int64_t dim[] = {image->dim[0], sweep[0].out, sweep[1].out, sweep[0].kernel, sweep[1].kernel, channels};
    return type_make(image->dtype, image->batched, IMAGE_RANK + 2, dim);
}

INFER(window) {
    const Type *in = &n->in[0]->type;
    if (in->rank != IMAGE_RANK)
        return false;
    n->type = window_type(in, n->attr.sweep, in->dim[IMAGE_CHANNELS]);
    return true;
}

INFER(unwindow) {
    const Type *in = &n->in[0]->type;
    const Sweep *sweep = n->attr.sweep;
    if (in->rank != IMAGE_RANK + 2)
        return false;
    n->type = window_type(in, sweep, in->dim[in->rank - 1]);
    return in->dim[TAP_ROWS] == sweep[0].kernel && in->dim[TAP_COLUMNS] == sweep[1].kernel;
}

/* ---- gradients ---- */

static Attr swept(const Sweep *sweep, double fill) {
    return (Attr){.sweep = {sweep[0], sweep[1]}, .value = fill};
}

Node *window(Graph *g, Node *image, const Sweep *sweep, double fill) {
    return graph_node(g, "window", swept(sweep, fill), 1, &image);
}

/* p = o stride + k dilation - pad = q spread, solved for o. */
Sweeps sweeps_adjoint(const Sweep *sweep, const Type *image) {
    Sweeps adjoint;
    for (int k = 0; k < 2; k++)
        adjoint.axis[k] = (Sweep){.out = image->dim[1 + k],
                                  .kernel = sweep[k].kernel,
                                  .stride = sweep[k].spread,
                                  .dilation = -sweep[k].dilation,
                                  .pad = -sweep[k].pad,
                                  .spread = sweep[k].stride};
    return adjoint;
}

static Node *unwindow(Graph *g, const Node *n, Node *dy) {
    Sweeps adjoint = sweeps_adjoint(n->attr.sweep, &n->in[0]->type);
    return graph_node(g, "unwindow", swept(adjoint.axis, 0), 1, &dy);
}

GRAD(window) {
    din[0] = graph_reduce(g, "sum", unwindow(g, n, dy), TAP_AXES);
}

GRAD(unwindow) {
    din[0] = unwindow(g, n, dy);
}

/* ---- rewrites ---- */

static bool sees_own_pixel(const Sweep *s, int64_t size) {
    return s->out == size && s->kernel == 1 && s->stride == 1 && s->pad == 0 && s->spread == 1;
}

/* Each output sees its own pixel only: a 1 x 1 convolution is a plain product. */
static Node *simplify_window(Graph *g, Node *n) {
    const Type *in = &n->in[0]->type;
    bool own = sees_own_pixel(&n->attr.sweep[0], in->dim[1]) && sees_own_pixel(&n->attr.sweep[1], in->dim[2]);
    return own ? graph_reshape(g, n->in[0], &n->type) : NULL;
}

/* What is the same at all taps needs no axes for them: unwindow of it is a window of it. */
static Node *simplify_unwindow(Graph *g, Node *n) {
    Node *expansion = n->in[0];
    if (!(expansion->op->flags & OP_REPEATS) || (expansion->attr.axes & TAP_AXES) != TAP_AXES)
        return NULL;
    return window(g, graph_repeated(g, expansion, TAP_AXES), n->attr.sweep, 0);
}

/* ---- in ONNX ---- */

const int image_channels_first[IMAGE_RANK] = {0, IMAGE_CHANNELS, IMAGE_ROWS, IMAGE_COLUMNS};

bool onnx_sweep(const Sweep *sweep, const Type *image, OnnxSweep *result) {
    for (int k = 0; k < 2; k++) {
        const Sweep *s = &sweep[k];
        int64_t seen = (s->out - 1) * s->stride + (s->kernel - 1) * s->dilation + 1,
                left = image->dim[1 + k] + s->pad - seen;
        if (s->spread != 1 || s->dilation < 1 || s->pad < 0 || left >= s->stride)
            return false;
        result->kernel[k] = s->kernel;
        result->stride[k] = s->stride;
        result->dilation[k] = s->dilation;
        result->pads[k] = s->pad;
        result->pads[2 + k] = left < 0 ? -left : 0;
    }
    result->attr[0] = ONNX_NUMBERS("kernel_shape", 2, result->kernel);
    result->attr[1] = ONNX_NUMBERS("strides", 2, result->stride);
    result->attr[2] = ONNX_NUMBERS("dilations", 2, result->dilation);
    result->attr[3] = ONNX_NUMBERS("pads", 4, result->pads);
    return true;
}

/* Positions of outputs and taps in the image with its padding, along one axis: [out, kernel]. */
static const char *onnx_positions(Onnx *o, const Sweep *s, int64_t before) {
    int64_t *at = NEW_ARRAY(onnx_arena(o), int64_t, s->out * s->kernel);
    for (int64_t i = 0; i < s->out; i++)
        for (int64_t k = 0; k < s->kernel; k++)
            at[i * s->kernel + k] = i * s->stride + k * s->dilation - s->pad + before;
    return onnx_table(o, 2, (int64_t[]){s->out, s->kernel}, at);
}

/* The image with what the sweeps see around it, and then the lines that they see of it, along one axis after the other. */
TO_ONNX(window) {
    static const int taps_behind[] = {0, 1, 3, 2, 4, 5}; /* of [N, OH, KH, OW, KW, C] */
    const Sweep *sweep = n->attr.sweep;
    int64_t pads[2 * IMAGE_RANK] = {0}, last;
    for (int k = 0; k < 2; k++) {
        if (sweep[k].spread != 1)
            return onnx_refuse(o, n, "there is no form in ONNX's operators of a view of an image that is spread out");
        reach(&sweep[k], &pads[1 + k], &last);
        pads[1 + k] = pads[1 + k] < 0 ? -pads[1 + k] : 0;
        last -= n->in[0]->type.dim[1 + k] - 1;
        pads[IMAGE_RANK + 1 + k] = last > 0 ? last : 0;
    }
    const char *fill = onnx_number(o, n->type.dtype, n->attr.value);
    const char *x = onnx3(o, "Pad", onnx_operand(o, n, 0), onnx_numbers(o, 2 * IMAGE_RANK, pads), fill);
    for (int k = 1; k >= 0; k--) {
        const char *in[] = {x, onnx_positions(o, &sweep[k], pads[1 + k])};
        x = onnx_node(o, "Gather", 2, in, 1, &ONNX_AXIS(1 + k));
    }
    return onnx_value(onnx_transpose(o, x, 6, taps_behind));
}

OnnxValue onnx_pooled(Onnx *o, const Node *sum) {
    enum { OF_WINDOW = ATTR_SWEEP | ATTR_VALUE };
    const Node *seen = sum->in[0];
    OnnxSweep sweep;
    if (seen->op->cls != OP_VIEW || (seen->op->attrs & OF_WINDOW) != OF_WINDOW || seen->attr.value != 0 ||
        sum->attr.axes != TAP_AXES || !onnx_sweep(seen->attr.sweep, &seen->in[0]->type, &sweep) ||
        sweep.dilation[0] * sweep.dilation[1] != 1)
        return (OnnxValue){0};
    const OnnxAttr attr[] = {sweep.attr[0], sweep.attr[1], sweep.attr[3], ONNX_NUMBER("count_include_pad", 1)};
    const char *x = onnx_operand_in(o, seen, 0, image_channels_first);
    const char *mean = onnx_node(o, "AveragePool", 1, &x, 4, attr);
    const char *taps = onnx_real(o, (double)(sweep.kernel[0] * sweep.kernel[1]));
    return onnx_value_in(onnx2(o, "Mul", mean, taps), IMAGE_RANK, image_channels_first);
}

const OpDef op_window = {
    .name = "window",
    .cls = OP_VIEW,
    .flags = OP_CHEAP,
    .arity = 1,
    .attrs = ATTR_SWEEP | ATTR_VALUE,
    .doc = "Images [N, H, W, C] as what each output sees of them at each tap, [N, OH, OW, KH, KW, C]: the element at "
           "o stride + k dilation - pad of the image spread out by `spread`, or attr.value where there is none.",
    .infer = infer_window,
    .grad = grad_window,
    .simplify = simplify_window,
    .view = view_window,
    .to_onnx = to_onnx_window,
};

const OpDef op_unwindow = {
    .name = "unwindow",
    .cls = OP_VIEW,
    .flags = OP_CHEAP,
    .arity = 1,
    .attrs = ATTR_SWEEP,
    .doc = "For each pixel, what the outputs that see it at each tap have there, [N, H, W, KH, KW, C]; else 0. Summed "
           "over "
           "the taps, the gradient of `window`.",
    .infer = infer_unwindow,
    .grad = grad_unwindow,
    .simplify = simplify_unwindow,
    .view = view_unwindow,
};
