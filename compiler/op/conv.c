/* Convolution. It stays one node until it is differentiated; then each of its three products reads windows of images as the
 * rows of a matrix (an implicit product: nobody stores the windows):
 *
 *     y  [N OH OW, O] = window(x)  [N OH OW, KH KW C]   times w  [O, KH KW C] transposed
 *     dx [N H W, C]   = window(dy) [N H W, KH KW O]     times w with its taps in front, [KH KW O, C]
 *     dw [O, KH KW C] = dy [N OH OW, O] transposed      times window(x) [N OH OW, KH KW C]
 *
 * A transposed convolution is the second of them as a forward pass: each pixel sends what it has to the outputs that see it. Its
 * gradients are the first and the third, with x and y exchanged.
 *
 * Filters are [O, KH, KW, C] in memory and [O, C, KH, KW] in files. */
#include "op/window.h"

static Type matrix_type(bool batched, int64_t rows, int64_t columns) {
    return type_make(DT_F32, batched, 2, (int64_t[]){rows, columns});
}

/* Images as the matrix of their pixels: [N H W, C]. */
static Node *pixels(Graph *g, Node *image) {
    int64_t channels = image->type.dim[IMAGE_CHANNELS];
    Type type = matrix_type(image->type.batched, type_elements(&image->type) / channels, channels);
    return graph_reshape(g, image, &type);
}

/* What each output sees of the images, as the matrix [N OH OW, KH KW C]. */
static Node *window_rows(Graph *g, Node *image, const Sweep *sweep) {
    Node *seen = window(g, image, sweep, 0);
    int64_t columns = sweep[0].kernel * sweep[1].kernel * image->type.dim[IMAGE_CHANNELS];
    Type type = matrix_type(image->type.batched, type_elements(&seen->type) / columns, columns);
    return graph_reshape(g, seen, &type);
}

static Node *filter_rows(Graph *g, Node *w) {
    Type type = matrix_type(false, w->type.dim[0], type_elements(&w->type) / w->type.dim[0]);
    return graph_reshape(g, w, &type);
}

/* [KH KW O, C]: what the outputs that see a pixel send back to its channels. */
static Node *filter_back(Graph *g, Node *w) {
    Node *taps = graph_transpose(g, w, (int[]){1, 2, 0, 3});
    int64_t channels = w->type.dim[3];
    Type type = matrix_type(false, type_elements(&w->type) / channels, channels);
    return graph_reshape(g, taps, &type);
}

INFER(conv2d) {
    const Type *x = &n->in[0]->type, *w = &n->in[1]->type;
    const Sweep *sweep = n->attr.sweep;
    if (x->rank != IMAGE_RANK || w->rank != IMAGE_RANK)
        return false;
    n->type = swept_type(x, sweep, w->dim[0]);
    n->type.dtype = contracted_dtype(x->dtype);
    return x->dim[IMAGE_CHANNELS] == w->dim[3] && w->dim[1] == sweep[0].kernel && w->dim[2] == sweep[1].kernel;
}

/* The gradients of the pixels, as those of the outputs that see them: [N H W, C]. */
static Node *sent_back(Graph *g, Node *dy, const Sweep *sweep, Node *w) {
    return graph_matmul(g, window_rows(g, dy, sweep), filter_back(g, w), false, false);
}

/* ---- the gradient behind a stride ---- */

/* Along an axis, the pixels at, at + stride, at + 2 stride ... are seen through the taps first, first + step, ... only: with
 * stride 2 and kernel 3, every other pixel through two taps and the rest through one. A product for each of these phases
 * multiplies no zeros between the outputs. */
typedef struct PixelPhase {
    Sweep outputs; /* over the outputs that see them */
    Sweep taps;    /* over the filter */
    Sweep place;   /* over the phase, where its pixels are in the image */
} PixelPhase;

enum { MOST_PHASES = 4 };

/* False: there are no such pixels, or nobody sees them. */
static bool find_phase(const Sweep *s, int64_t size, int64_t at, PixelPhase *phase) {
    int64_t first = 0, step = s->stride / common_divisor(s->stride, s->dilation);
    while (first < s->kernel && (at + s->pad - first * s->dilation) % s->stride)
        first++;
    if (first == s->kernel || at >= size)
        return false;
    int64_t taps = (s->kernel - first + step - 1) / step, pixels = (size - at + s->stride - 1) / s->stride;
    int64_t output = (at + s->pad - first * s->dilation) / s->stride; /* that sees pixel `at` through the tap `first` */
    phase->outputs = (Sweep){pixels, taps, 1, -step * s->dilation / s->stride, -output, 1};
    phase->taps = (Sweep){taps, 1, step, 1, -first, 1};
    phase->place = (Sweep){size, 1, 1, 1, at, s->stride};
    return true;
}

/* What a view of windows of a single tap shows, without axes for the tap. */
static Node *single_taps(Graph *g, Node *image, const Sweep *sweep) {
    Type type = swept_type(&image->type, sweep, image->type.dim[IMAGE_CHANNELS]);
    return graph_reshape(g, window(g, image, sweep, 0), &type);
}

/* In the shape of the image, 0 at the pixels of other phases. */
static Node *phase_gradient(Graph *g, const Type *image, Node *dy, Node *w, const PixelPhase *rows,
                            const PixelPhase *columns) {
    const Sweep outputs[] = {rows->outputs, columns->outputs}, taps[] = {rows->taps, columns->taps};
    const Sweep place[] = {rows->place, columns->place};
    Type type = swept_type(image, outputs, image->dim[IMAGE_CHANNELS]);
    return single_taps(g, graph_reshape(g, sent_back(g, dy, outputs, single_taps(g, w, taps)), &type), place);
}

static Node *strided_gradient(Graph *g, const Type *image, Node *dy, Node *w, const Sweep *sweep) {
    PixelPhase rows, columns;
    Node *sum = NULL;
    for (int64_t i = 0; i < sweep[0].stride; i++)
        for (int64_t j = 0; j < sweep[1].stride; j++) {
            if (!find_phase(&sweep[0], image->dim[1], i, &rows) || !find_phase(&sweep[1], image->dim[2], j, &columns))
                continue;
            Node *part = phase_gradient(g, image, dy, w, &rows, &columns);
            sum = sum ? add(g, sum, part) : part;
        }
    return sum;
}

/* On tensor cores one product over outputs spread out by the stride is better: cuda/tensor_walk.cuh leaves out the zeros. */
static Node *image_gradient(Graph *g, const Type *image, Node *dy, Node *w, const Sweep *sweep) {
    int64_t phases = sweep[0].stride * sweep[1].stride;
    if (phases > 1 && phases <= MOST_PHASES && g->module->precision == PRECISION_FP32)
        return strided_gradient(g, image, dy, w, sweep);
    Sweeps back = sweeps_adjoint(sweep, image);
    return graph_reshape(g, sent_back(g, dy, back.axis, w), image);
}

/* Of the filters by which `image` makes what has the gradients dy, [O, KH KW C]. */
static Node *filter_gradient(Graph *g, Node *image, Node *dy, const Sweep *sweep) {
    return graph_matmul(g, pixels(g, dy), window_rows(g, image, sweep), true, false);
}

GRAD(conv2d) {
    Node *x = n->in[0], *w = n->in[1];
    Node *dw = filter_gradient(g, x, dy, n->attr.sweep);
    din[0] = image_gradient(g, &x->type, dy, w, n->attr.sweep);
    din[1] = graph_reshape(g, dw, &w->type);
}

static Node *simplify_conv2d(Graph *g, Node *n) {
    Node *in[] = {window_rows(g, n->in[0], n->attr.sweep), filter_rows(g, n->in[1])};
    return graph_reshape(g, graph_node(g, "matmul", (Attr){.tb = true}, 2, in), &n->type);
}

/* ---- transposed ---- */

/* attr.sweep is that of the convolution which sees the result, an image of attr.dims, through the filters, and makes in[0]. */
INFER(conv_transpose2d) {
    const Type *x = &n->in[0]->type, *w = &n->in[1]->type;
    const Sweep *sweep = n->attr.sweep;
    n->type = type_make(DT_F32, n->attr.batched, n->attr.rank, n->attr.dims);
    if (x->rank != IMAGE_RANK || w->rank != IMAGE_RANK || n->type.rank != IMAGE_RANK)
        return false;
    Type seen = swept_type(&n->type, sweep, w->dim[0]);
    return type_same_shape(&seen, x) && n->type.dim[IMAGE_CHANNELS] == w->dim[3] && w->dim[1] == sweep[0].kernel &&
           w->dim[2] == sweep[1].kernel;
}

GRAD(conv_transpose2d) {
    Node *x = n->in[0], *w = n->in[1];
    Attr attr = {.sweep = {n->attr.sweep[0], n->attr.sweep[1]}};
    din[0] = graph_node(g, "conv2d", attr, 2, (Node *[]){dy, w});
    din[1] = graph_reshape(g, filter_gradient(g, dy, x, n->attr.sweep), &w->type);
}

static Node *simplify_conv_transpose2d(Graph *g, Node *n) {
    return image_gradient(g, &n->type, n->in[0], n->in[1], n->attr.sweep);
}

/* ---- a filter for each channel ---- */

/* Filters [KH, KW, 1, C] at all outputs. */
static Node *at_all_outputs(Graph *g, Node *w, const Type *windows) {
    Type taps = type_make(DT_F32, false, 3, (int64_t[]){w->type.dim[0], w->type.dim[1], w->type.dim[3]});
    return graph_expand(g, graph_reshape(g, w, &taps), windows);
}

/* sum over the taps of window(image) * w */
static Node *tap_by_tap(Graph *g, Node *image, const Sweep *sweep, Node *w) {
    Node *seen = window(g, image, sweep, 0);
    return graph_reduce(g, "sum", mul(g, seen, at_all_outputs(g, w, &seen->type)), TAP_AXES);
}

INFER(depthwise_conv2d) {
    const Type *x = &n->in[0]->type, *w = &n->in[1]->type;
    const Sweep *sweep = n->attr.sweep;
    if (x->rank != IMAGE_RANK || w->rank != IMAGE_RANK)
        return false;
    n->type = swept_type(x, sweep, w->dim[3]);
    return x->dim[IMAGE_CHANNELS] == w->dim[3] && w->dim[0] == sweep[0].kernel && w->dim[1] == sweep[1].kernel;
}

GRAD(depthwise_conv2d) {
    Node *x = n->in[0], *w = n->in[1], *seen = window(g, x, n->attr.sweep, 0);
    Sweeps back = sweeps_adjoint(n->attr.sweep, &x->type);
    Attr everywhere = attr_shape(&seen->type);
    everywhere.axes = TAP_AXES;
    Node *dw = graph_reduce(g, "sum", mul(g, seen, graph_node(g, "expand", everywhere, 1, &dy)), PIXEL_AXES);
    din[0] = tap_by_tap(g, dy, back.axis, w);
    din[1] = graph_reshape(g, dw, &w->type);
}

static Node *simplify_depthwise_conv2d(Graph *g, Node *n) {
    return tap_by_tap(g, n->in[0], n->attr.sweep, n->in[1]);
}

/* ---- in ONNX ---- */

/* The operand without the channels of zeros that `whole_fours` gave it. */
static const char *onnx_channels(Onnx *o, const Node *n, int k, bool padded) {
    return onnx_operand_in(o, padded ? n->in[k] : n, padded ? 0 : k, image_channels_first);
}

static bool has_more_channels(const Node *x) {
    return x->op->attrs & ATTR_OFFSET && !(x->op->flags & OP_MIRRORS) &&
           x->type.dim[IMAGE_CHANNELS] > x->in[0]->type.dim[IMAGE_CHANNELS] &&
           type_elements(&x->type) / x->type.dim[IMAGE_CHANNELS] ==
               type_elements(&x->in[0]->type) / x->in[0]->type.dim[IMAGE_CHANNELS];
}

static OnnxValue no_such_convolution(Onnx *o, const Node *n) {
    return onnx_refuse(o, n, "there is no form in ONNX's operators of this convolution");
}

TO_ONNX(conv2d) {
    const Node *x = n->in[0], *w = n->in[1];
    bool padded = has_more_channels(x) && has_more_channels(w) &&
                  x->in[0]->type.dim[IMAGE_CHANNELS] == w->in[0]->type.dim[IMAGE_CHANNELS] &&
                  x->attr.offset[IMAGE_CHANNELS] == w->attr.offset[IMAGE_CHANNELS];
    OnnxSweep sweep;
    if (!onnx_sweep(n->attr.sweep, &x->type, &sweep))
        return no_such_convolution(o, n);
    const char *in[] = {onnx_channels(o, n, 0, padded), onnx_channels(o, n, 1, padded)};
    return onnx_value_in(onnx_node(o, "Conv", 2, in, 4, sweep.attr), IMAGE_RANK, image_channels_first);
}

TO_ONNX(depthwise_conv2d) {
    static const int filters_first[] = {3, 2, 0, 1};
    OnnxSweep sweep;
    if (!onnx_sweep(n->attr.sweep, &n->in[0]->type, &sweep))
        return no_such_convolution(o, n);
    OnnxAttr attr[] = {sweep.attr[0], sweep.attr[1], sweep.attr[2], sweep.attr[3],
                       ONNX_NUMBER("group", n->type.dim[IMAGE_CHANNELS])};
    const char *in[] = {onnx_operand_in(o, n, 0, image_channels_first), onnx_operand_in(o, n, 1, filters_first)};
    return onnx_value_in(onnx_node(o, "Conv", 2, in, 5, attr), IMAGE_RANK, image_channels_first);
}

/* The pixels that nobody sends anything to, behind the last one that is sent to, are its output_padding. */
TO_ONNX(conv_transpose2d) {
    OnnxSweep sweep;
    int64_t more[2];
    if (!onnx_sweep(n->attr.sweep, &n->type, &sweep))
        return no_such_convolution(o, n);
    for (int k = 0; k < 2; k++) {
        const Sweep *s = &n->attr.sweep[k];
        int64_t sent = (s->out - 1) * s->stride + (s->kernel - 1) * s->dilation + 1;
        more[k] = n->type.dim[1 + k] + s->pad - sent;
        more[k] = more[k] > 0 ? more[k] : 0;
    }
    OnnxAttr attr[] = {sweep.attr[0], sweep.attr[1], sweep.attr[2], sweep.attr[3],
                       ONNX_NUMBERS("output_padding", 2, more)};
    const char *in[] = {onnx_operand_in(o, n, 0, image_channels_first), onnx_operand_in(o, n, 1, image_channels_first)};
    return onnx_value_in(onnx_node(o, "ConvTranspose", 2, in, 5, attr), IMAGE_RANK, image_channels_first);
}

/* ---- in the language ---- */

enum {
    ARG_X,
    ARG_OUT,
    ARG_KERNEL,
    ARG_STRIDE,
    ARG_PADDING,
    ARG_DILATION,
    ARG_GROUPS,
    ARG_BIAS,
    ARG_INIT,
    ARG_BIAS_INIT
};

typedef struct Conv {
    Node *x;                       /* [N, H, W, C] */
    int64_t out, groups, channels; /* channels: that one filter sees */
    Sweeps sweeps;
    Init init, bias_init;
    bool of_lines; /* conv1d: one row, and filters without an axis for rows */
} Conv;

static Node *convolve(Graph *g, const char *op, const Sweeps *sweeps, Node *x, Node *w) {
    Attr attr = {.sweep = {sweeps->axis[0], sweeps->axis[1]}};
    return graph_node(g, op, attr, 2, (Node *[]){x, w});
}

/* The elements [from, from + count) along an axis. */
static Node *part(Graph *g, Node *x, int axis, int64_t from, int64_t count) {
    Type shape = x->type;
    int64_t offset[MAX_RANK] = {0};
    shape.dim[axis] = count;
    offset[axis] = from;
    return graph_node(g, "slice", attr_placed(&shape, offset), 1, &x);
}

/* Filters of this type, whose axis `rows` is none of theirs where they are of lines: of size 1 here, and not in files. */
static Node *filters_of(Call *call, const Conv *c, const Type *type, int rows, const int *file_order) {
    if (!c->of_lines)
        return call_weight(call, "weight", type, c->init, file_order);
    Type kept = {.dtype = type->dtype};
    int *order = NEW_ARRAY(call->g->arena, int, IMAGE_RANK), axes = 0;
    for (int k = 0; k < IMAGE_RANK; k++) {
        if (k != rows)
            kept.dim[kept.rank++] = type->dim[k];
        if (file_order[k] != rows)
            order[axes++] = file_order[k] - (file_order[k] > rows);
    }
    return graph_reshape(call->g, call_weight(call, "weight", &kept, c->init, order), type);
}

/* Each group of channels has filters of its own. */
static Node *grouped(Call *call, const Conv *c, Node *w) {
    Graph *g = call->g;
    int64_t filters = c->out / c->groups;
    Node **parts = NEW_ARRAY(g->arena, Node *, c->groups);
    for (int i = 0; i < c->groups; i++)
        parts[i] = convolve(g, "conv2d", &c->sweeps, part(g, c->x, IMAGE_CHANNELS, i * c->channels, c->channels),
                            part(g, w, 0, i * filters, filters));
    return build_stack(g, parts, (int)c->groups, IMAGE_CHANNELS);
}

/* With zeros behind the last channel. */
static Node *with_channels(Graph *g, Node *x, int64_t channels) {
    Type type = x->type;
    type.dim[IMAGE_CHANNELS] = channels;
    return graph_node(g, "pad", attr_placed(&type, (int64_t[MAX_RANK]){0}), 1, &x);
}

/* Products read four neighbours at once where a pixel has a multiple of four channels: three, as of colours, become four. */
Node *build_convolution(Graph *g, const Sweeps *sweeps, Node *x, Node *w) {
    int64_t channels = x->type.dim[IMAGE_CHANNELS], fours = (channels + 3) / 4 * 4, added = fours - channels;
    if (!added || 3 * added > channels)
        return convolve(g, "conv2d", sweeps, x, w);
    return convolve(g, "conv2d", sweeps, with_channels(g, x, fours), with_channels(g, w, fours));
}

static Node *dense(Call *call, const Conv *c) {
    static const int file_order[] = {0, 3, 1, 2};
    const Sweep *sweep = c->sweeps.axis;
    Type filters = type_make(DT_F32, false, 4, (int64_t[]){c->out, sweep[0].kernel, sweep[1].kernel, c->channels});
    Node *w = filters_of(call, c, &filters, 1, file_order);
    if (!w)
        return NULL;
    return c->groups > 1 ? grouped(call, c, w) : build_convolution(call->g, &c->sweeps, c->x, w);
}

/* Each channel, as often as there are filters for it. */
static Node *channels_repeated(Graph *g, Node *x, int64_t times) {
    const int64_t *dim = x->type.dim;
    if (times == 1)
        return x;
    Type copies =
        type_make(DT_F32, x->type.batched, IMAGE_RANK + 1, (int64_t[]){dim[0], dim[1], dim[2], dim[3], times});
    Type image = type_make(DT_F32, x->type.batched, IMAGE_RANK, (int64_t[]){dim[0], dim[1], dim[2], dim[3] * times});
    Attr attr = attr_shape(&copies);
    attr.axes = 1u << IMAGE_RANK;
    return graph_reshape(g, graph_node(g, "expand", attr, 1, &x), &image);
}

static Node *depthwise(Call *call, const Conv *c) {
    static const int file_order[] = {3, 2, 0, 1};
    const Sweep *sweep = c->sweeps.axis;
    Type filters = type_make(DT_F32, false, 4, (int64_t[]){sweep[0].kernel, sweep[1].kernel, 1, c->out});
    Node *w = filters_of(call, c, &filters, 0, file_order);
    if (!w)
        return NULL;
    return convolve(call->g, "depthwise_conv2d", &c->sweeps, channels_repeated(call->g, c->x, c->out / c->groups), w);
}

static bool read_groups(Call *call, int arg, Conv *c) {
    int64_t channels = c->x->type.dim[IMAGE_CHANNELS];
    if ((c->groups = call_size(call, arg)) < 0)
        return false;
    if (channels % c->groups || c->out % c->groups) {
        call_error(call, arg, "%lld channels do not divide into %lld groups",
                   (long long)(channels % c->groups ? channels : c->out), (long long)c->groups);
        return false;
    }
    c->channels = channels / c->groups;
    return true;
}

/* The rest of the arguments, for the image that is there. */
static bool read_conv(Call *call, Conv *c) {
    const SweepArgs args = {ARG_KERNEL, ARG_STRIDE, ARG_PADDING, ARG_DILATION};
    c->out = call_size(call, ARG_OUT);
    if (!c->x || c->out < 0 || !read_groups(call, ARG_GROUPS, c) || !call_sweeps(call, &args, &c->x->type, &c->sweeps))
        return false;
    int64_t taps = c->sweeps.axis[0].kernel * c->sweeps.axis[1].kernel;
    bool (*read)(Call *, int, int64_t, int64_t, Init *) = c->groups == 1 ? read_filters_init : read_init;
    return read(call, ARG_INIT, taps * c->channels, taps * c->out, &c->init) &&
           read_init(call, ARG_BIAS_INIT, taps * c->channels, taps * c->out, &c->bias_init);
}

/* With the layer's bias, if the argument asks for one. */
static Node *biased(Call *call, const Conv *c, Node *y, int arg) {
    Type vector = type_make(DT_F32, false, 1, &c->out);
    return call_bool(call, arg) ? add(call->g, y, call_weight(call, "bias", &vector, c->bias_init, NULL)) : y;
}

static Node *convolution(Call *call, Conv *c) {
    if (!read_conv(call, c))
        return NULL;
    bool one_each = c->groups > 1 && c->channels == 1;
    Node *y = one_each ? depthwise(call, c) : dense(call, c);
    return image_value(call->g, biased(call, c, y, ARG_BIAS));
}

static Value build_conv2d(Call *call) {
    Conv c = {.x = call_image(call, ARG_X, "conv2d")};
    return value_tensor(convolution(call, &c));
}

/* ---- transposed, in the language ---- */

enum {
    BACK_X,
    BACK_OUT,
    BACK_KERNEL,
    BACK_STRIDE,
    BACK_PADDING,
    BACK_OUTPUT_PADDING,
    BACK_DILATION,
    BACK_GROUPS,
    BACK_BIAS,
    BACK_INIT,
    BACK_BIAS_INIT
};

/* The sweep along an axis that gives x its `size` out of the result's; false after a user error. */
static bool read_back_sweep(Call *call, int axis, int64_t size, Sweep *sweep, int64_t *result) {
    static const int args[] = {BACK_KERNEL, BACK_STRIDE, BACK_PADDING, BACK_OUTPUT_PADDING, BACK_DILATION};
    int64_t kernel[2], stride[2], padding[2], more[2], dilation[2],
        *pairs[] = {kernel, stride, padding, more, dilation};
    for (int k = 0; k < 5; k++) {
        bool from_0 = args[k] == BACK_PADDING || args[k] == BACK_OUTPUT_PADDING;
        if (!call_pair(call, args[k], !from_0, pairs[k]))
            return false;
    }
    *sweep = (Sweep){size, kernel[axis], stride[axis], dilation[axis], padding[axis], 1};
    *result = (size - 1) * stride[axis] + (kernel[axis] - 1) * dilation[axis] + 1 + more[axis] - 2 * padding[axis];
    if (more[axis] >= stride[axis] && more[axis] >= dilation[axis])
        call_error(call, BACK_OUTPUT_PADDING, "output_padding is below the stride or the dilation, %lld, not %lld",
                   (long long)(stride[axis] > dilation[axis] ? stride[axis] : dilation[axis]), (long long)more[axis]);
    else if (*result < 1)
        call_error(call, BACK_PADDING, "a padding of %lld leaves nothing of %lld %s", (long long)padding[axis],
                   (long long)(*result + 2 * padding[axis]), axis ? "columns" : "rows");
    else
        return true;
    return false;
}

/* Where each result lies: [N, H, W, out / groups]. */
static Node *sent_by_group(Graph *g, const Conv *c, const Type *result, int group, Node *w) {
    Attr attr = attr_shape(result);
    memcpy(attr.sweep, c->sweeps.axis, sizeof attr.sweep);
    Node *x = part(g, c->x, IMAGE_CHANNELS, group * c->channels, c->channels);
    return graph_node(g, "conv_transpose2d", attr, 2, (Node *[]){x, part(g, w, 0, group * c->channels, c->channels)});
}

/* Each group of channels sends to outputs of its own. */
static Node *sent_by_groups(Call *call, const Conv *c, int64_t rows, int64_t columns) {
    static const int file_order[] = {0, 3, 1, 2};
    Graph *g = call->g;
    const Type *x = &c->x->type;
    int64_t out = c->out / c->groups, *kernel = (int64_t[]){c->sweeps.axis[0].kernel, c->sweeps.axis[1].kernel};
    Type filters = type_make(DT_F32, false, 4, (int64_t[]){x->dim[IMAGE_CHANNELS], kernel[0], kernel[1], out});
    Type result = type_make(DT_F32, x->batched, IMAGE_RANK, (int64_t[]){x->dim[0], rows, columns, out});
    Node *w = call_weight(call, "weight", &filters, c->init, file_order);
    Node **parts = NEW_ARRAY(g->arena, Node *, c->groups);
    for (int i = 0; w && i < c->groups; i++)
        parts[i] = sent_by_group(g, c, &result, i, w);
    return w ? build_stack(g, parts, (int)c->groups, IMAGE_CHANNELS) : NULL;
}

static Value build_conv_transpose2d(Call *call) {
    Conv c = {.x = call_image(call, BACK_X, "conv_transpose2d"), .out = call_size(call, BACK_OUT)};
    int64_t size[2];
    if (!c.x || c.out < 0 || !read_groups(call, BACK_GROUPS, &c))
        return value_tensor(NULL);
    for (int k = 0; k < 2; k++)
        if (!read_back_sweep(call, k, c.x->type.dim[IMAGE_ROWS + k], &c.sweeps.axis[k], &size[k]))
            return value_tensor(NULL);
    int64_t taps = c.sweeps.axis[0].kernel * c.sweeps.axis[1].kernel;
    int64_t seen = taps * c.out / c.groups, sent = taps * c.x->type.dim[IMAGE_CHANNELS];
    if (!read_init(call, BACK_INIT, seen, sent, &c.init) || !read_init(call, BACK_BIAS_INIT, seen, sent, &c.bias_init))
        return value_tensor(NULL);
    Node *y = sent_by_groups(call, &c, size[0], size[1]);
    return value_tensor(y ? image_value(call->g, biased(call, &c, y, BACK_BIAS)) : NULL);
}

/* ---- of one row ---- */

/* A sequence [C, L] as an image of one row, [C, 1, L]; or back. */
static Node *with_rows(Graph *g, Node *x, bool rows) {
    Type type = x->type;
    int first = x->type.batched + 1;
    if (rows)
        return insert_axis(g, x, first);
    type.dim[first] = type.dim[first + 1];
    type.rank--;
    return graph_reshape(g, x, &type);
}

/* The argument along the columns of one row, as [along_rows, argument]. */
static void of_one_row(Call *call, int arg, int64_t along_rows) {
    Value *pair = NEW_ARRAY(call->g->arena, Value, 2);
    pair[0] = value_number((double)along_rows);
    pair[1] = call->args[arg];
    call->args[arg] = (Value){.kind = VALUE_LIST, .items = pair, .count = 2, .src = pair[1].src};
}

static Value build_conv1d(Call *call) {
    Node *x = call_tensor(call, ARG_X);
    if (x && x->type.rank - x->type.batched != 2) {
        call_error(call, ARG_X, "conv1d needs a sequence [channels, length], found %s",
                   type_user_text(call->g->arena, &x->type));
        return value_tensor(NULL);
    }
    const int sizes[] = {ARG_KERNEL, ARG_STRIDE, ARG_PADDING, ARG_DILATION};
    for (int k = 0; k < 4; k++)
        of_one_row(call, sizes[k], sizes[k] != ARG_PADDING);
    Conv c = {.x = x ? image_of(call->g, with_rows(call->g, x, true)) : NULL, .of_lines = true};
    Node *y = convolution(call, &c);
    return value_tensor(y ? with_rows(call->g, y, false) : NULL);
}

const OpDef op_conv2d = {
    .name = "conv2d",
    .cls = OP_CONTRACT,
    .flags = OP_WHOLE,
    .arity = 2,
    .attrs = ATTR_SWEEP,
    .doc =
        "Convolution of images [C, H, W] with `out` filters, `weight` [out, C / groups, KH, KW], and `bias` [out]: "
        "y[o, i, j] = bias[o] + sum over c, p, q of weight[o, c, p, q] * x[c, i stride + p dilation - padding, "
        "j stride + q dilation - padding], with 0 outside of x. kernel, stride, padding and dilation are a number, or "
        "[rows, columns]. With groups, the filters of each group see the channels of that group only; groups = C is a "
        "depthwise convolution. Weights start evenly within 1 / sqrt(inputs of a filter).",
    .example = "y = conv2d(image, 4, 3, padding = 1)",
    .infer = infer_conv2d,
    .grad = grad_conv2d,
    .simplify = simplify_conv2d,
    .to_onnx = to_onnx_conv2d,
    .signature = "x, out: size, kernel: sizes, stride: sizes = 1, padding: sizes = 0, dilation: sizes = 1, "
                 "groups: size = 1, bias: bool = true, init: init = none, bias_init: init = none",
    .build = build_conv2d,
};

const OpDef op_conv_transpose2d = {
    .name = "conv_transpose2d",
    .cls = OP_CONTRACT,
    .arity = 2,
    .attrs = ATTR_SWEEP | ATTR_DIMS,
    .doc = "The convolution that is the gradient of conv2d, by which images [C, H, W] get larger: each pixel adds x[c, "
           "i, j] "
           "* weight[c, o, p, q] to y[o, i stride + p dilation - padding, j stride + q dilation - padding]. `weight` "
           "is [C, "
           "out / groups, KH, KW], `bias` [out]; H becomes (H - 1) stride + (KH - 1) dilation + 1 + output_padding - 2 "
           "padding.",
    .example = "y = conv_transpose2d(image, 2, 2, stride = 2)",
    .infer = infer_conv_transpose2d,
    .grad = grad_conv_transpose2d,
    .simplify = simplify_conv_transpose2d,
    .to_onnx = to_onnx_conv_transpose2d,
    .signature = "x, out: size, kernel: sizes, stride: sizes = 1, padding: sizes = 0, output_padding: sizes = 0, "
                 "dilation: sizes = 1, groups: size = 1, bias: bool = true, init: init = none, bias_init: init = none",
    .build = build_conv_transpose2d,
};

const OpDef op_conv1d = {
    .name = "conv1d",
    .cls = OP_LIBRARY,
    .doc = "Convolution of sequences [C, L] with `out` filters, `weight` [out, C / groups, K], and `bias` [out]: as "
           "conv2d of an image with one row.",
    .example = "y = conv1d(reshape(image, [3, 16]), 4, 3, padding = 1)",
    .signature = "x, out: size, kernel: size, stride: size = 1, padding: int = 0, dilation: size = 1, "
                 "groups: size = 1, bias: bool = true, init: init = none, bias_init: init = none",
    .build = build_conv1d,
};

const OpDef op_depthwise_conv2d = {
    .name = "depthwise_conv2d",
    .cls = OP_CONTRACT,
    .arity = 2,
    .attrs = ATTR_SWEEP,
    .doc = "The convolution in which each channel has a filter of its own, which sees only that channel.",
    .infer = infer_depthwise_conv2d,
    .grad = grad_depthwise_conv2d,
    .simplify = simplify_depthwise_conv2d,
    .to_onnx = to_onnx_depthwise_conv2d,
};
