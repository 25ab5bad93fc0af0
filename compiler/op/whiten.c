/* A first layer whose filters are no weights to learn: they are made of the training data, so that what comes out is not correlated.
 *
 *     y = W (p - mean) + bias,   W = V^T / sqrt(variance + eps mean(variance)) and below it -W
 *
 * for each patch p of K bytes, where V are the eigenvectors of the patches' covariance, and `variance` its eigenvalues. The device
 * sums the bytes and their products, session/whiten.c makes filters of the sums. All sums are whole numbers that f32 holds, in
 * whatever order they are added, so that every run and both targets have the same filters. */
#include "op/whiten.h"

#include "op/augment.h"
#include "op/window.h"

/* Bytes are read as numbers around 0, which bf16 holds too. */
enum { MIDDLE = 128, MOST_ELEMENTS = 256 };

/* Sums come as two digits: below BASE, and of BASE. Each is a sum of at most BASE numbers of at most BASE, which is 2^24. */
enum { BASE = 1 << 12, MOST_PATCHES = BASE * BASE / (MIDDLE * MIDDLE) };

/* Of so many patches a sum is below BASE^2: all of an image's, or a row's. */
static int64_t parts_of_example(const Sweep *sweep) {
    return sweep[0].out * sweep[1].out <= MOST_PATCHES ? 1 : sweep[0].out;
}

/* ---- in the language ---- */

enum { ARG_X, ARG_LIKE, ARG_KERNEL, ARG_STRIDE, ARG_EPS, ARG_BIAS, ARG_BIAS_INIT };

/* The images of the data that are to be whitened, a field of bytes; -1 after a user error. */
static int read_field_of_bytes(Call *call) {
    const Node *n = call_tensor(call, ARG_LIKE);
    bool images = n && n->op->table == TABLE_FIELD && n->type.dtype == DT_U8 && n->type.rank == IMAGE_RANK;
    if (n && !images)
        call_error(call, ARG_LIKE, "whiten measures a field of bytes, images u8[channels, rows, columns]; this is %s%s",
                   type_user_text(call->g->arena, &n->type),
                   n->op->table == TABLE_FIELD ? "" : " and no field of the data block");
    return images ? n->attr.index : -1;
}

/* The sweeps over the images of the field, and of x, which may be of another size; false after a user error. */
static bool read_sweeps(Call *call, const Type *x, const Type *field, Sweeps *seen, Sweeps *measured) {
    const SweepArgs args = {ARG_KERNEL, ARG_STRIDE, -1, -1};
    const Type images = {.rank = IMAGE_RANK,
                         .dim = {field->dim[0], field->dim[ROWS], field->dim[COLUMNS], field->dim[CHANNELS]}};
    if (!call_sweeps(call, &args, x, seen) || !call_sweeps(call, &args, &images, measured))
        return false;
    int64_t elements = measured->axis[0].kernel * measured->axis[1].kernel * field->dim[CHANNELS];
    if (x->dim[IMAGE_CHANNELS] != field->dim[CHANNELS])
        call_error(call, ARG_X, "%lld channels are not the %lld of the field", (long long)x->dim[IMAGE_CHANNELS],
                   (long long)field->dim[CHANNELS]);
    else if (elements > MOST_ELEMENTS)
        call_error(call, ARG_KERNEL, "a patch has %lld elements, and at most %d are whitened", (long long)elements,
                   MOST_ELEMENTS);
    else if (measured->axis[1].out > MOST_PATCHES || measured->axis[0].out > BASE)
        call_error(call, ARG_LIKE, "%lld x %lld patches of an image are more than are measured, %d x %d",
                   (long long)measured->axis[0].out, (long long)measured->axis[1].out, BASE, MOST_PATCHES);
    else
        return true;
    return false;
}

/* x is not on the scale of the field's bytes, by which the filters are made. */
static void doubt_scale(Call *call, const Node *x) {
    Colours colours;
    if (!find_colours(x, &colours) || (colours.low == 0 && colours.high == UINT8_MAX))
        return;
    call_doubt(call, ARG_X, call->src,
               arena_printf(call->g->arena, "these colours go from %g to %g, and those that are measured from 0 to %d",
                            colours.low, colours.high, UINT8_MAX),
               "whiten takes bytes as they are, and has the scale itself");
}

/* The filters [2 K, KH, KW, C], and the shift [2 K] of what they give: their initial values say how they are measured. */
static bool make_filters(Call *call, int field, const Sweeps *measured, int64_t channels, Node **filters,
                         Node **shift) {
    static const int file_order[] = {0, 3, 1, 2};
    const Sweep *sweep = measured->axis;
    Whitening made = {.field = field, .sweep = {sweep[0], sweep[1]}};
    const int64_t examples = BASE / parts_of_example(sweep); /* at a time */
    int64_t out = 2 * sweep[0].kernel * sweep[1].kernel * channels;
    Type type = type_make(DT_F32, false, IMAGE_RANK, (int64_t[]){out, sweep[0].kernel, sweep[1].kernel, channels});
    Type vector = type_make(DT_F32, false, 1, &out);
    Init of_filters = {INIT_WHITE, call_number(call, ARG_EPS), (double)(sweep[0].out * sweep[1].out)};
    Init of_shift = {INIT_WHITE, BASE, (double)examples};
    bool first = call->g == call->module->train && call->made < 0;
    *filters = call_statistic(call, "weight", &type, of_filters, file_order);
    *shift = *filters ? call_statistic(call, "shift", &vector, of_shift, NULL) : NULL;
    if (*shift && first) {
        made.filters = (*filters)->attr.index;
        made.shift = (*shift)->attr.index;
        VEC_PUSH(call->module->arena, &call->module->whitenings, made);
    }
    return *shift;
}

static Value build_whiten(Call *call) {
    Graph *g = call->g;
    Node *x = read_data(call, "whiten"), *filters, *shift;
    int field = x ? read_field_of_bytes(call) : -1;
    Sweeps seen, measured;
    if (field < 0)
        return value_tensor(NULL);
    doubt_scale(call, x);
    Node *image = image_of(g, sub(g, x, graph_constant(g, MIDDLE)));
    const Type *like = &call->module->fields.at[field].type;
    if (!read_sweeps(call, &image->type, like, &seen, &measured) ||
        !make_filters(call, field, &measured, like->dim[CHANNELS], &filters, &shift))
        return value_tensor(NULL);
    Node *y = add(g, build_convolution(g, &seen, image, filters), shift);
    Init init;
    const int64_t out = shift->type.dim[0];
    if (!call_bool(call, ARG_BIAS) || !read_init(call, ARG_BIAS_INIT, out / 2, out, &init))
        return value_tensor(image_value(g, y));
    return value_tensor(image_value(g, add(g, y, call_weight(call, "bias", &shift->type, init, NULL))));
}

const OpDef op_whiten = {
    .name = "whiten",
    .cls = OP_LIBRARY,
    .doc =
        "A first layer of images [C, H, W] of the data, on the scale of `like`, a field of bytes: for each patch of "
        "K = C KH KW numbers the 2 K numbers W (p - mean) and -W (p - mean) + `bias`. W = V^T / sqrt(v + eps mean(v)), "
        "where "
        "the columns of V are the eigenvectors of the covariance of all patches of `like` in the training examples, "
        "and v its "
        "eigenvalues, the largest first. Before the first step, they are computed and kept with the weights: `weight` "
        "[2 K, C, KH, KW], and as `shift` [2 K] what the filters make of 128 - mean, for they read x - 128. Only "
        "`bias` is "
        "trained.",
    .example = "y = whiten(random_flip(image), image, 2)",
    .signature =
        "x, like, kernel: sizes, stride: sizes = 1, eps: number > 0 = 5e-4, bias: bool = true, bias_init: init = none",
    .build = build_whiten,
};

/* ---- measuring ---- */

/* The patches of the field's images, [N, parts, patches of a part, K]. */
static Node *patches_of(Graph *g, const Whitening *whitening) {
    const Sweep *sweep = whitening->sweep;
    Node *field = graph_field(g, whitening->field);
    Node *image = image_of(g, sub(g, field, graph_constant(g, MIDDLE)));
    Node *seen = window(g, image, sweep, 0);
    int64_t parts = parts_of_example(sweep), patches = sweep[0].out * sweep[1].out / parts;
    int64_t elements = sweep[0].kernel * sweep[1].kernel * image->type.dim[IMAGE_CHANNELS];
    Type type = type_make(DT_F32, true, 4, (int64_t[]){image->type.dim[0], parts, patches, elements});
    return graph_reshape(g, seen, &type);
}

/* 1 for the real examples of the batch, 0 for filler; as each of the elements of x. */
static Node *real_rows(Graph *g, const Type *x) {
    Type rows = {.dtype = DT_I32, .rank = 1, .dim = {x->dim[0]}, .batched = true};
    Node *row = graph_cast(g, graph_reshape(g, graph_iota(g, &rows, 0), &rows), DT_F32);
    Node *is_real = op2(g, "lt", row, graph_expand(g, op0(g, "examples", (Attr){0}), &row->type));
    return along(g, x, ((1u << x->rank) - 1) & ~1u, is_real);
}

/* The sums over all parts of all examples, whole numbers each, in two digits: [2, ...]. */
static Node *digits(Graph *g, Node *parts) {
    Node *high = op1(g, "floor", scale(g, parts, 1.0 / BASE)), *low = sub(g, parts, scale(g, high, BASE));
    Node *real = real_rows(g, &parts->type), *sums[2];
    sums[0] = graph_reduce(g, "sum", masked(g, real, high), 3);
    sums[1] = graph_reduce(g, "sum", masked(g, real, low), 3);
    for (int k = 0; k < 2; k++)
        sums[k] = insert_axis(g, sums[k], 0);
    return build_stack(g, sums, 2, 0);
}

void measure_whitening(Graph *g, const Whitening *whitening) {
    Node *filters = graph_weight(g, whitening->filters), *shift = graph_weight(g, whitening->shift);
    graph_at(g, filters->src);
    Node *patches = patches_of(g, whitening);
    Node *moments = digits(g, graph_matmul(g, patches, patches, true, false));
    Node *sums = digits(g, graph_reduce(g, "sum", patches, 1u << 2));
    graph_assign(g, filters, graph_reshape(g, moments, &filters->type));
    graph_assign(g, shift, graph_reshape(g, sums, &shift->type));
}
