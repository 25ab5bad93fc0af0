/* Images of the data seen from elsewhere: rotated, or a part of them at another size. Where each pixel looks is a number of rows
 * and one of columns, and its value is between those of the four pixels around that place:
 *
 *     y[c, i, j] = (1 - v) ((1 - u) x[c, r, s] + u x[c, r, s + 1]) + v ((1 - u) x[c, r + 1, s] + u x[c, r + 1, s + 1])
 *
 * for the place (r + v, s + u). The image is looked up where it lies; in evaluation nothing is left of it. */
#include "op/augment.h"
#include "op/window.h"

#include <math.h>

/* ---- pixels by number ---- */

/* y[n, i.., c] = x[n, c, place[n, i..]] */
INFER(pixels) {
    const Type *image = &n->in[0]->type, *place = &n->in[1]->type;
    n->type = *place;
    n->type.dtype = image->dtype;
    n->type.dim[n->type.rank++] = image->dim[CHANNELS];
    return image->rank == 3 && image->batched && place->batched && place->dtype == DT_I32;
}

static void view_pixels(UNUSED Arena *arena, const Node *n, const Tree *const *index, IndexMap *map) {
    map->index[0] = index[0];
    map->index[CHANNELS] = index[n->type.rank - 1];
    map->index[2] = index[n->type.rank];
}

/* Rows of [N, L, C] by numbers [N, M, 1], one of which says a row. */
TO_ONNX(pixels) {
    static const int pixels_first[] = {0, 2, 1};
    const Type *place = &n->in[1]->type;
    Type rows = type_make(DT_I32, true, 3, (int64_t[]){place->dim[0], type_extent(place, 1, place->rank), 1});
    const char *index = onnx_reshape(o, onnx_operand(o, n, 1), &rows);
    const char *in[] = {onnx_operand_in(o, n, 0, pixels_first), onnx_index(o, index)};
    return onnx_value(onnx_reshape(o, onnx_node(o, "GatherND", 2, in, 1, &ONNX_NUMBER("batch_dims", 1)), &n->type));
}

const OpDef op_pixels = {
    .name = "pixels",
    .cls = OP_VIEW,
    .flags = OP_LOOKUP | OP_NO_GRAD,
    .arity = 2,
    .doc = "Numbers of each example by their places: y[n, i.., c] = x[n, c, place[n, i..]].",
    .infer = infer_pixels,
    .view = view_pixels,
    .to_onnx = to_onnx_pixels,
};

/* ---- between pixels ---- */

/* Where each pixel [N, rows, columns] looks, and what it sees outside of the image; NULL: the nearest pixel inside. */
typedef struct Looks {
    Node *row, *column;
    Node *fill;
} Looks;

static Node *is_inside(Graph *g, Node *index, int64_t size) {
    return op2(g, "and", compare(g, "ge", index, 0), compare(g, "lt", index, (double)size));
}

static Node *whole_within(Graph *g, Node *index, int64_t size) {
    Node *whole = graph_cast(g, index, DT_I32);
    return graph_node(g, "clamped", (Attr){.index = (int)size}, 1, &whole);
}

/* The pixels [N, rows, columns, C] in rows and columns of such numbers. */
static Node *corner(Graph *g, Node *x, Node *row, Node *column, Node *fill) {
    int64_t rows = x->type.dim[ROWS], columns = x->type.dim[COLUMNS];
    Type lines = {x->type.dtype, 3, {x->type.dim[0], x->type.dim[CHANNELS], rows * columns}, true};
    Node *place = add(g, scale(g, whole_within(g, row, rows), (double)columns), whole_within(g, column, columns));
    Node *image = graph_reshape(g, x, &lines);
    Node *seen = graph_cast(g, graph_node(g, "pixels", (Attr){0}, 2, (Node *[]){image, place}), DT_F32);
    if (!fill)
        return seen;
    Node *inside = op2(g, "and", is_inside(g, row, rows), is_inside(g, column, columns));
    return select(g, along(g, &seen->type, 1u << 3, inside), seen, fill);
}

static Node *between(Graph *g, Node *a, Node *b, Node *part) {
    return add(g, a, mul(g, along(g, &a->type, 1u << 3, part), sub(g, b, a)));
}

/* The image as it is seen so. */
static Node *resampled(Graph *g, Node *x, const Looks *looks) {
    static const int channels_first[] = {0, 3, 1, 2};
    Node *row = op1(g, "floor", looks->row), *column = op1(g, "floor", looks->column), *line[2];
    Node *down = sub(g, looks->row, row), *right = sub(g, looks->column, column);
    for (int k = 0; k < 2; k++) {
        Node *at = plus(g, row, k);
        line[k] =
            between(g, corner(g, x, at, column, looks->fill), corner(g, x, at, plus(g, column, 1), looks->fill), right);
    }
    return graph_transpose(g, between(g, line[0], line[1], down), channels_first);
}

/* Of each pixel of [N, rows, columns], the index along that axis. */
static Node *pixel_index(Graph *g, const Type *grid, int axis) {
    return graph_cast(g, graph_iota(g, grid, axis), DT_F32);
}

/* A number of each example for its pixels. */
static Node *for_pixels(Graph *g, const Type *grid, Node *x) {
    return along(g, grid, 1u << 1 | 1u << 2, x);
}

/* ---- rotation ---- */

/* About the middle; a pixel looks back by the angle. */
static Looks turned(Graph *g, const Type *image, Node *angle, Node *fill) {
    Type grid = {DT_F32, 3, {image->dim[0], image->dim[ROWS], image->dim[COLUMNS]}, true};
    double middle[] = {(double)(grid.dim[1] - 1) / 2, (double)(grid.dim[2] - 1) / 2};
    Node *cosine = op1(g, "cos", angle), *sine = op1(g, "sin", angle);
    cosine->hint = "cosine";
    sine->hint = "sine";
    Node *c = for_pixels(g, &grid, cosine), *s = for_pixels(g, &grid, sine);
    Node *i = plus(g, pixel_index(g, &grid, 1), -middle[0]), *j = plus(g, pixel_index(g, &grid, 2), -middle[1]);
    Node *row = plus(g, add(g, mul(g, s, j), mul(g, c, i)), middle[0]);
    Node *column = plus(g, sub(g, mul(g, c, j), mul(g, s, i)), middle[1]);
    return (Looks){row, column, fill};
}

static Value build_rotate(Call *call) {
    Graph *g = call->g;
    Node *x = read_data(call, "rotate"), *degrees = call_scalar(call, 1), *fill = call_scalar(call, 2);
    if (!x || !degrees || !fill)
        return value_tensor(NULL);
    if (!g->training)
        return value_tensor(x);
    const double to_radians = acos(-1) / 180;
    Node *place = plus(g, scale(g, draw_for_example(g, &x->type), 2), -1);
    Node *angle = mul(g, place, scale(g, degrees, to_radians));
    angle->hint = "angle";
    Looks looks = turned(g, &x->type, angle, fill);
    return value_tensor(resampled(g, x, &looks));
}

const OpDef op_rotate = {
    .name = "rotate",
    .cls = OP_LIBRARY,
    .kind = KIND_AUGMENTATION,
    .doc = "In training, an image [C, H, W] of the data turned about its middle by an angle that is drawn for each "
           "example, from -degrees to degrees; counter-clockwise above 0. Between pixels it is linear, outside of the "
           "image `fill`. In evaluation the image.",
    .example = "y = rotate(image, 15)",
    .signature = "x: image, degrees: number in [0, 180], fill: number = 0",
    .build = build_rotate,
};

/* ---- a part of another size ---- */

/* A part of an image: where it begins and its size, of each example [N]. */
typedef struct Region {
    Node *first[2], *size[2];
} Region;

/* What is tried in turn, and whether it fits [N, tries]. */
typedef struct Tries {
    Node *size[2], *fits;
} Tries;

static Node *draw_in(Graph *g, const Type *shape, double low, double high) {
    Attr attr = attr_shape(shape);
    attr.index = next_stream(g);
    return plus(g, scale(g, op0(g, "random", attr), high - low), low);
}

static Tries draw_tries(Graph *g, const Type *shape, const int64_t *size, const Interval *scales,
                        const Interval *ratios) {
    Tries tries = {0};
    double pixels = (double)(size[0] * size[1]);
    Node *area = draw_in(g, shape, pixels * scales->low, pixels * scales->high);
    Node *ratio = op1(g, "exp", draw_in(g, shape, log(ratios->low), log(ratios->high)));
    tries.size[0] = op1(g, "round", op1(g, "sqrt", divide(g, area, ratio)));
    tries.size[1] = op1(g, "round", op1(g, "sqrt", mul(g, area, ratio)));
    for (int k = 0; k < 2; k++) {
        Node *fits =
            op2(g, "and", compare(g, "ge", tries.size[k], 1), compare(g, "le", tries.size[k], (double)size[k]));
        tries.fits = k ? op2(g, "and", tries.fits, fits) : fits;
    }
    return tries;
}

/* The whole image, or as much of it as keeps to the ratios of columns to rows. */
static void middle_size(const int64_t *size, const Interval *ratios, double *middle) {
    double rows = (double)size[0], columns = (double)size[1], ratio = columns / rows;
    middle[0] = ratio < ratios->low ? round(columns / ratios->low) : rows;
    middle[1] = ratio > ratios->high ? round(rows * ratios->high) : columns;
}

/* The first that fits of ten draws; where none does, the middle of the image. */
static Region draw_part(Graph *g, const Type *image, const Interval *scales, const Interval *ratios) {
    enum { TRIES = 10 };
    const int64_t size[] = {image->dim[ROWS], image->dim[COLUMNS]};
    const Type shape = {DT_F32, 2, {image->dim[0], TRIES}, true};
    double middle[2];
    Region part = {0};
    middle_size(size, ratios, middle);
    Tries tries = draw_tries(g, &shape, size, scales, ratios);
    Node *index = graph_cast(g, graph_iota(g, &shape, 1), DT_F32);
    Node *first = graph_reduce(g, "min", select(g, tries.fits, index, graph_constant(g, TRIES)), 1u << 1);
    Node *is_first = op2(g, "eq", index, along(g, &shape, 1u << 1, first));
    Node *none = compare(g, "eq", first, TRIES);
    for (int k = 0; k < 2; k++) {
        Node *found = graph_reduce(g, "sum", masked(g, is_first, tries.size[k]), 1u << 1);
        part.size[k] = select(g, none, graph_constant(g, middle[k]), found);
        Node *left = sub(g, graph_constant(g, (double)size[k]), part.size[k]);
        Node *drawn = op1(g, "floor", mul(g, draw_for_example(g, image), plus(g, left, 1)));
        part.first[k] = select(g, none, graph_constant(g, round(((double)size[k] - middle[k]) / 2)), drawn);
        part.first[k]->hint = k ? "first_column" : "first_row";
    }
    return part;
}

static Region whole_image(Graph *g, const Type *image) {
    Type each = {DT_F32, 1, {image->dim[0]}, true};
    Region part = {0};
    for (int k = 0; k < 2; k++) {
        part.first[k] = graph_expand(g, graph_constant(g, 0), &each);
        part.size[k] = graph_expand(g, graph_constant(g, (double)image->dim[ROWS + k]), &each);
    }
    return part;
}

/* Where the middle of pixel i of `size` lies in the part, and never beyond the middles of its first and last. */
static Node *look_into(Graph *g, const Type *grid, const Region *part, int k) {
    Node *first = for_pixels(g, grid, part->first[k]), *size = for_pixels(g, grid, part->size[k]);
    Node *share = scale(g, plus(g, pixel_index(g, grid, 1 + k), 0.5), 1.0 / (double)grid->dim[1 + k]);
    Node *at = plus(g, mul(g, share, size), -0.5);
    Node *within = op2(g, "minimum", op2(g, "maximum", at, graph_constant(g, 0)), plus(g, size, -1));
    return add(g, first, within);
}

static Value build_random_resized_crop(Call *call) {
    Graph *g = call->g;
    Node *x = read_data(call, "random_resized_crop");
    const Interval scales = call_interval(call, 2, (Interval){0.08, 1});
    const Interval ratios = call_interval(call, 3, (Interval){3.0 / 4, 4.0 / 3});
    int64_t size[2];
    if (!x || !call_pixels(call, &x->type.dim[ROWS], size))
        return value_tensor(NULL);
    if (!g->training && size[0] == x->type.dim[ROWS] && size[1] == x->type.dim[COLUMNS])
        return value_tensor(x);
    Type grid = {DT_F32, 3, {x->type.dim[0], size[0], size[1]}, true};
    Region part = g->training ? draw_part(g, &x->type, &scales, &ratios) : whole_image(g, &x->type);
    Looks looks = {look_into(g, &grid, &part, 0), look_into(g, &grid, &part, 1), NULL};
    return value_tensor(resampled(g, x, &looks));
}

const OpDef op_random_resized_crop = {
    .name = "random_resized_crop",
    .cls = OP_LIBRARY,
    .kind = KIND_AUGMENTATION,
    .doc =
        "In training, a part of an image [C, H, W] of the data at another size: `size` pixels, or [rows, columns], by "
        "default the image's own. The part is drawn for each example: its share of the image within `scale`, by "
        "default [0.08, 1], its columns for each row within `ratio`, by default [3 / 4, 4 / 3], and then its place; "
        "if ten draws do not fit the image, its middle. Between pixels it is linear. In evaluation the whole image at "
        "that "
        "size.",
    .example = "y = random_resized_crop(image, scale = [0.5, 1])",
    .signature = "x: image, size: pixels = none, scale: interval in (0, 1] = none, ratio: interval > 0 = none",
    .build = build_random_resized_crop,
};
