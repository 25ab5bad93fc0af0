/* Images changed by chance, anew in each step of training. What is drawn depends on seed, stream, step and example only: nothing
 * is stored, and a run can be repeated. */
#include "op/augment.h"

#include <math.h>

/* ---- views that draw where they look ---- */

/* The image looks at the middle of its operand from `reach` pixels up to `reach` pixels down, and from left to right. */
static void view_random_crop(Arena *arena, const Node *n, const Tree *const *index, IndexMap *map) {
    memcpy(map->index, index, (size_t)n->type.rank * sizeof *index);
    for (int k = ROWS; k <= COLUMNS; k++) {
        const Tree *drawn = tree_shifted(arena, tree_form(arena, "$0 * 2", &index[0], 1), k - ROWS);
        const int64_t reach = n->attr.offset[k], size = n->in[0]->type.dim[k], before = (size - n->type.dim[k]) / 2;
        const Tree *const parts[] = {tree_shifted(arena, index[k], before), tree_number(arena, n->attr.index), drawn,
                                     tree_number(arena, reach)};
        map->index[k] = tree_form(arena, "$0 + random_shift(batch, $1, $2, $3)", parts, 4);
        if (reach <= before)
            continue;
        view_requires(arena, &map->guard, map->index[k], ">=", 0);
        view_requires(arena, &map->guard, map->index[k], "<", size);
    }
}

static void view_random_flip(Arena *arena, const Node *n, const Tree *const *index, IndexMap *map) {
    memcpy(map->index, index, (size_t)n->type.rank * sizeof *index);
    const Tree *const parts[] = {tree_number(arena, n->attr.index), index[0], index[COLUMNS],
                                 tree_number(arena, n->type.dim[COLUMNS])};
    map->index[COLUMNS] = tree_form(arena, "random_mirror(batch, $0, $1, $2, $3)", parts, 4);
}

/* Mirrored in one epoch and not in the next, by the example's place in its set. */
static void view_alternating_flip(Arena *arena, const Node *n, const Tree *const *index, IndexMap *map) {
    memcpy(map->index, index, (size_t)n->type.rank * sizeof *index);
    const Tree *const parts[] = {tree_number(arena, n->attr.index), index[0], index[COLUMNS],
                                 tree_number(arena, n->type.dim[COLUMNS])};
    map->index[COLUMNS] = tree_form(arena, "alternating_mirror(batch, $0, $1, $2, $3)", parts, 4);
}

INFER(augmented) {
    n->type = type_make(n->in[0]->type.dtype, true, n->attr.rank, n->attr.dims);
    return n->in[0]->type.batched && n->type.rank == 4;
}

#define BY_CHANCE(name_)                                                                                               \
    .name = #name_, .cls = OP_VIEW, .flags = OP_DRAWS | OP_NO_GRAD, .arity = 1,                                        \
    .attrs = ATTR_INDEX | ATTR_DIMS | ATTR_OFFSET, .infer = infer_augmented, .view = view_##name_

const OpDef op_alternating_flip = {
    BY_CHANCE(alternating_flip),
    .doc = "An image of the data, mirrored left to right where a bit drawn for the example, whatever the step, and the "
           "number of the epoch have an odd sum.",
};

/* ---- in the language ---- */

/* On a weight that is `statistic`: of a field, which normalize keeps with the weights; or on one of a layer. */
static bool depends_on(const Graph *g, const Node *x, bool statistic) {
    bool *depends = NEW_ARRAY(g->arena, bool, x->id + 1);
    for (int i = 0; i <= x->id; i++) {
        const Node *n = g->nodes.at[i];
        depends[i] = n->op->table == TABLE_WEIGHT && g->module->weights.at[n->attr.index].shared == statistic;
        for (int k = 0; k < n->inputs; k++)
            depends[i] |= depends[n->in[k]->id];
    }
    return depends[x->id];
}

bool is_data(Call *call, int arg, const Node *x, const char *function) {
    bool learned = depends_on(call->g, x, false), normalized = !learned && depends_on(call->g, x, true);
    if (learned)
        call_error(call, arg, "%s changes the data, before the first layer; this depends on weights", function);
    if (normalized)
        call_error(
            call, arg,
            "%s changes the data itself, before normalize, whose statistics are kept with the weights; scale with "
            "constants instead: %s(image / 255 - 0.5)",
            function, function);
    return !learned && !normalized;
}

Node *read_data(Call *call, const char *function) {
    Node *x = call_tensor(call, 0);
    if (!x || (x->type.batched && x->type.rank == 4))
        return x && is_data(call, 0, x, function) ? x : NULL;
    call_error(call, 0, "%s needs images [channels, rows, columns] of the data, found %s%s", function,
               type_user_text(call->g->arena, &x->type), x->type.batched ? "" : ", which is the same for all examples");
    return NULL;
}

/* With `reach` pixels more on each side. */
static Node *reflected(Graph *g, Node *x, int64_t reach) {
    const int64_t offset[MAX_RANK] = {[ROWS] = reach, [COLUMNS] = reach};
    Type shape = x->type;
    shape.dim[ROWS] += 2 * reach;
    shape.dim[COLUMNS] += 2 * reach;
    return graph_node(g, "reflect", attr_placed(&shape, offset), 1, &x);
}

/* In evaluation, the image as it is. */
static Value augmented(Call *call, const char *op, Node *x, int64_t reach, PaddingMode mode) {
    Attr attr = attr_placed(&x->type, (int64_t[MAX_RANK]){[ROWS] = reach, [COLUMNS] = reach});
    if (!call->g->training)
        return value_tensor(x);
    attr.index = next_stream(call->g);
    if (mode == PAD_REFLECT && reach)
        x = reflected(call->g, x, reach);
    return value_tensor(graph_node(call->g, op, attr, 1, &x));
}

/* Both sides of the image can show so much of it; else a user error. */
static bool is_reflected(Call *call, const Node *x, int64_t padding) {
    return call_reflects(call, 1, padding, x->type.dim[ROWS]) && call_reflects(call, 1, padding, x->type.dim[COLUMNS]);
}

static Value build_random_crop(Call *call) {
    Node *x = read_data(call, "random_crop");
    int64_t padding = x ? call_int(call, 1, 0, INT16_MAX) : -1;
    const PaddingMode mode = (PaddingMode)call_word(call, 2, PAD_ZEROS);
    if (padding < 0 || (mode == PAD_REFLECT && !is_reflected(call, x, padding)))
        return value_tensor(NULL);
    return augmented(call, "random_crop", x, padding, mode);
}

/* Has it images that are mirrored by turns already? What draws leaves columns columns, other views may not. */
static bool alternates(const Graph *g, const Node *x) {
    bool *turned = NEW_ARRAY(g->arena, bool, x->id + 1);
    for (int i = 0; i <= x->id; i++) {
        const Node *n = g->nodes.at[i];
        turned[i] = n->op == &op_alternating_flip;
        for (int k = 0; k < n->inputs && (n->op->cls == OP_MAP || n->op->flags & OP_DRAWS); k++)
            turned[i] |= turned[n->in[k]->id];
    }
    return turned[x->id];
}

static Value build_random_flip(Call *call) {
    Node *x = read_data(call, "random_flip");
    const bool alternate = call_bool(call, 1);
    const char *op = alternate ? "alternating_flip" : "random_flip";
    if (x && alternate && alternates(call->g, x)) {
        call_error(call, 0,
                   "these images are mirrored by turns already, and a second turn undoes the first: each would look "
                   "the same in every epoch; one alternate = true is enough");
        return value_tensor(NULL);
    }
    return x ? augmented(call, op, x, 0, PAD_ZEROS) : value_tensor(NULL);
}

Node *along(Graph *g, const Type *shape, unsigned axes, Node *x) {
    Attr attr = attr_shape(shape);
    attr.axes = axes;
    return graph_node(g, "expand", attr, 1, &x);
}

Node *draw_for_example(Graph *g, const Type *x) {
    Attr each = {.index = next_stream(g), .rank = 1, .batched = true, .dims = {x->dim[0]}};
    return op0(g, "random", each);
}

Node *is_between(Graph *g, const Type *image, int axis, Node *first, Node *end) {
    unsigned pixels = ((1u << image->rank) - 1) & ~1u;
    first->hint = "first";
    end->hint = "end";
    Node *index = graph_cast(g, graph_iota(g, image, axis), DT_F32);
    Node *not_before = op2(g, "ge", index, along(g, image, pixels, first));
    return op2(g, "and", not_before, op2(g, "lt", index, along(g, image, pixels, end)));
}

/* Whether a pixel's index along the axis is one of `size` around a random one. */
static Node *is_near(Graph *g, const Type *image, int axis, int64_t size) {
    int64_t half = size / 2;
    Node *centre = op1(g, "floor", scale(g, draw_for_example(g, image), (double)image->dim[axis]));
    Node *first = plus(g, centre, (double)-half), *end = plus(g, first, (double)size);
    return is_between(g, image, axis, first, end);
}

static Value build_cutout(Call *call) {
    Graph *g = call->g;
    Node *x = read_data(call, "cutout");
    int64_t size = x ? call_int(call, 1, 1, INT16_MAX) : 0;
    if (size < 1)
        return value_tensor(NULL);
    if (!g->training)
        return value_tensor(x);
    Node *rows = is_near(g, &x->type, ROWS, size), *columns = is_near(g, &x->type, COLUMNS, size);
    return value_tensor(select(g, op2(g, "and", rows, columns), graph_constant(g, 0), graph_cast(g, x, DT_F32)));
}

/* ---- colours ---- */

static const unsigned PIXELS = 1u << CHANNELS | 1u << ROWS | 1u << COLUMNS;

/* How bright a pixel is to the eye [N, H, W], as ITU-R BT.601 weighs red, green and blue; of other channels their mean. */
static Node *luma(Graph *g, Node *x) {
    enum { COLOURS = 3 };
    static const double weight[COLOURS] = {0.299, 0.587, 0.114};
    Node *sum = NULL;
    Type plane = {x->type.dtype, 3, {x->type.dim[0], x->type.dim[ROWS], x->type.dim[COLUMNS]}, true};
    if (x->type.dim[CHANNELS] != COLOURS)
        return scale(g, graph_reduce(g, "sum", x, 1u << CHANNELS), 1.0 / (double)x->type.dim[CHANNELS]);
    for (int k = 0; k < COLOURS; k++) {
        Type channel = x->type;
        channel.dim[CHANNELS] = 1;
        Attr attr = attr_placed(&channel, (int64_t[MAX_RANK]){[CHANNELS] = k});
        Node *part = scale(g, graph_reshape(g, graph_node(g, "slice", attr, 1, &x), &plane), weight[k]);
        sum = sum ? add(g, sum, part) : part;
    }
    sum->hint = "grey";
    return sum;
}

/* base + f (x - base), f uniform from 1 - strength to 1 + strength for each example; what is then no colour becomes the nearest. */
static Node *jittered(Graph *g, Node *x, Node *base, double strength, double white) {
    Node *drawn = plus(g, scale(g, draw_for_example(g, &x->type), 2 * strength), 1 - strength);
    Node *factor = along(g, &x->type, PIXELS, drawn);
    drawn->hint = "factor";
    Node *y = base ? add(g, base, mul(g, factor, sub(g, x, base))) : mul(g, factor, x);
    return op2(g, "minimum", op2(g, "maximum", y, graph_constant(g, 0)), graph_constant(g, white));
}

/* What is repeated, of operand k. */
static const Node *single_operand(const Node *n, int k) {
    const Node *operand = n->in[k];
    while (operand->op->flags & OP_REPEATS)
        operand = operand->in[0];
    return operand;
}

/* Of a map of x and constants, what it makes of a number in x's place. */
static double mapped(const Node *n, double x) {
    double in[MAX_INPUTS];
    for (int k = 0; k < n->inputs; k++)
        if (!graph_constant_value(single_operand(n, k), &in[k]))
            in[k] = x;
    return n->op->fold(in);
}

bool find_colours(const Node *n, Colours *colours) {
    const Node *from = NULL;
    double constant;
    for (int k = 0; k < n->inputs; k++) {
        const Node *operand = single_operand(n, k);
        if (graph_constant_value(operand, &constant))
            continue;
        if (from)
            return false;
        from = operand;
    }
    *colours = (Colours){0, UINT8_MAX};
    if (n->type.dtype == DT_U8)
        return true;
    if (!from || !find_colours(from, colours) || (n->op->cls == OP_MAP && !n->op->fold && n->inputs > 1))
        return false;
    if (n->op->cls == OP_MAP && n->op->fold)
        *colours = (Colours){mapped(n, colours->low), mapped(n, colours->high)};
    if (colours->low > colours->high)
        *colours = (Colours){colours->high, colours->low};
    return n->op->cls == OP_MAP || n->op->cls == OP_VIEW;
}

/* The image's colours go from elsewhere or to elsewhere: what is none would be cut off, or never reached. */
static void doubt_white(Call *call, const Node *x, double white) {
    Arena *arena = call->g->arena;
    Colours colours;
    const char *cure = "color_jitter takes colours from 0 on: shift them behind it";
    if (!find_colours(x, &colours) || (colours.low == 0 && fabs(colours.high - white) <= 1e-6 * white))
        return;
    if (colours.low == 0)
        cure = arena_printf(arena, "say what white is: color_jitter(..., white = %g)", colours.high);
    call_doubt(call, 0, call->src,
               arena_printf(arena, "these colours go from %g to %g, and color_jitter takes them for 0 to %g",
                            colours.low, colours.high, white),
               cure);
}

static Value build_color_jitter(Call *call) {
    Graph *g = call->g;
    Node *x = read_data(call, "color_jitter");
    if (!x)
        return value_tensor(NULL);
    const double brightness = call_number(call, 1), contrast = call_number(call, 2), saturation = call_number(call, 3);
    const double white = call_number(call, 4), pixels = (double)(x->type.dim[ROWS] * x->type.dim[COLUMNS]);
    if (brightness + contrast + saturation == 0) {
        call_error(
            call, 0,
            "color_jitter changes nothing here; say how much: brightness = 0.4, contrast = 0.4, saturation = 0.4");
        return value_tensor(NULL);
    }
    if (saturation > 0 && x->type.dim[CHANNELS] != 3) {
        call_error(call, 3, "saturation is of red, green and blue, and the image is %s",
                   type_user_text(g->arena, &x->type));
        return value_tensor(NULL);
    }
    doubt_white(call, x, white);
    if (!g->training || isnan(brightness + contrast + saturation + white))
        return value_tensor(x);
    Node *y = graph_cast(g, x, DT_F32);
    if (brightness > 0)
        y = jittered(g, y, NULL, brightness, white);
    if (contrast > 0) {
        Node *mean = scale(g, graph_reduce(g, "sum", luma(g, y), 1u << 1 | 1u << 2), 1 / pixels);
        y = jittered(g, y, along(g, &y->type, PIXELS, mean), contrast, white);
    }
    if (saturation > 0)
        y = jittered(g, y, along(g, &y->type, 1u << CHANNELS, luma(g, y)), saturation, white);
    return value_tensor(y);
}

const OpDef op_color_jitter = {
    .name = "color_jitter",
    .cls = OP_LIBRARY,
    .kind = KIND_AUGMENTATION,
    .doc = "In training, an image [C, H, W] of the data in other colours: brightness, contrast and saturation times "
           "numbers drawn for each example, from 1 - s to 1 + s for a strength s; in this order, and each from 0 to "
           "`white` "
           "afterwards. Contrast is the distance from the image's mean, saturation that from a pixel's own grey. In "
           "evaluation the image.",
    .example = "y = color_jitter(image, brightness = 0.4, contrast = 0.4)",
    .signature =
        "x: image, brightness: number in [0, 1] = 0, contrast: number in [0, 1] = 0, saturation: number in [0, 1] = 0, "
        "white: number > 0 = 255",
    .build = build_color_jitter,
};

/* ---- operators ---- */

#define AUGMENTATION(name_) BY_CHANCE(name_), .kind = KIND_AUGMENTATION, .build = build_##name_

const OpDef op_random_crop = {
    AUGMENTATION(random_crop),
    .doc = "In training, an image [C, H, W] of the data with `padding` zeros on each side, cut at a random place to "
           "its size again; in the mode \"reflect\" with what a mirror in its first and its last pixels shows. In "
           "evaluation the image.",
    .example = "y = random_crop(image, 1)",
    .signature = "x: image, padding: size, " PADDING_MODE,
};

const OpDef op_random_flip = {
    AUGMENTATION(random_flip),
    .doc = "In training, an image [C, H, W] of the data, mirrored left to right in half of all cases; or, with "
           "`alternate`, half of the examples in the first epoch, the others in the second, and so on by turns, of "
           "which an image has one: a second would undo it, and is refused. In evaluation the image.",
    .example = "y = random_flip(image)",
    .signature = "x: image, alternate: bool = false",
};

const OpDef op_cutout = {
    .name = "cutout",
    .cls = OP_LIBRARY,
    .kind = KIND_AUGMENTATION,
    .doc = "In training, an image [C, H, W] of the data with 0 in a square of `size` around a random pixel, as far as "
           "it lies "
           "inside; in evaluation the image.",
    .example = "y = cutout(image, 2)",
    .signature = "x: image, size: size",
    .build = build_cutout,
};
