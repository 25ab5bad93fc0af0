/* Examples of a batch in pairs: each is mixed with the one behind it, the last with the first of those that the batch has. Which two
 * meet is as random as the order of the epoch. What comes out has two targets and a share s of its own:
 *
 *     loss = s loss(y, target) + (1 - s) loss(y, other)
 *
 * s has the distribution Beta(a, a). Of uniform u and v, with q = u^(1 / a) and c = cos(2 pi v),
 *
 *     s = (1 + c sqrt((1 - q) / (q + (1 - q) c^2))) / 2
 *
 * In evaluation an example is itself, and s = 1. */
#include "op/augment.h"

#include <math.h>

/* ---- the other example ---- */

INFER(next_example) {
    n->type = n->in[0]->type;
    return n->type.batched;
}

static void view_next_example(Arena *arena, const Node *n, const Tree *const *index, IndexMap *map) {
    memcpy(map->index, index, (size_t)n->type.rank * sizeof *index);
    map->index[0] = tree_form(arena, "next_row(batch, $0)", &index[0], 1);
}

const OpDef op_next_example = {
    .name = "next_example",
    .cls = OP_VIEW,
    .flags = OP_NO_GRAD,
    .arity = 1,
    .doc = "What the example behind has; behind the last one of the batch comes the first.",
    .infer = infer_next_example,
    .range = range_as_input,
    .view = view_next_example,
};

static Node *next_example(Graph *g, Node *x) {
    return op1(g, "next_example", x);
}

/* ---- the share ---- */

static Node *draw_share(Graph *g, const Type *x, double alpha) {
    const double turn = 2 * acos(-1), least = 1e-30; /* of what is divided by */
    Node *u = sub(g, graph_constant(g, 1), draw_for_example(g, x));
    Node *q = alpha == 1 ? u : op2(g, "pow", u, graph_constant(g, 1 / alpha));
    Node *c = op1(g, "cos", scale(g, draw_for_example(g, x), turn));
    Node *rest = sub(g, graph_constant(g, 1), q);
    Node *divisor = add(g, q, mul(g, rest, mul(g, c, c)));
    Node *from_half = op1(g, "sqrt", divide(g, rest, op2(g, "maximum", divisor, graph_constant(g, least))));
    return plus(g, scale(g, mul(g, c, from_half), 0.5), 0.5);
}

/* ---- in the language ---- */

typedef struct Mix {
    Node *x, *target;
    double alpha;
} Mix;

static bool read_target(Call *call, const char *function, Node **target) {
    *target = call_tensor(call, 1);
    if (*target && !(*target)->type.batched)
        call_error(call, 1, "the target is of each example, and this is the same for all");
    return *target && (*target)->type.batched && is_data(call, 1, *target, function);
}

/* Labels of classes are no numbers between which others lie. */
static bool is_mixable(Call *call, const char *function, const Node *x) {
    while (x->op->cls == OP_VIEW)
        x = x->in[0];
    if (x->op->table != TABLE_FIELD || call->module->fields.at[x->attr.index].kind != FIELD_CLASS)
        return true;
    call_error(call, 0, "%s mixes numbers, and these are classes; the data come first: %s(image, label)", function,
               function);
    return false;
}

/* Argument 0 is x. */
static bool read_mix(Call *call, const char *function, Node *x, Mix *mix) {
    const char *what = arena_printf(call->g->arena, "%s mixes the examples", function);
    mix->x = x;
    mix->alpha = call_number(call, 2);
    return x && is_mixable(call, function, x) && read_target(call, function, &mix->target) && !isnan(mix->alpha) &&
           call_sees_batch(call, what);
}

static Value several(Graph *g, Node *x, Node *other, Node *share) {
    Value *values = NEW_ARRAY(g->arena, Value, 3);
    values[0] = value_tensor(x);
    values[1] = value_tensor(other);
    values[2] = value_tensor(share);
    return (Value){.kind = VALUE_SEVERAL, .items = values, .count = 3};
}

static Value unmixed(Graph *g, const Mix *mix) {
    Type each = {DT_F32, 1, {mix->x->type.dim[0]}, true};
    return several(g, graph_cast(g, mix->x, DT_F32), mix->target, graph_expand(g, graph_constant(g, 1), &each));
}

static Value build_mixup(Call *call) {
    Graph *g = call->g;
    Node *x = call_tensor(call, 0);
    Mix mix;
    if (x && !x->type.batched)
        call_error(call, 0, "mixup mixes examples of the data, and this is the same for all");
    if (!x || !x->type.batched || !is_data(call, 0, x, "mixup") || !read_mix(call, "mixup", x, &mix))
        return value_tensor(NULL);
    if (!g->training)
        return unmixed(g, &mix);
    x = graph_cast(g, x, DT_F32);
    Node *share = draw_share(g, &x->type, mix.alpha), *other = next_example(g, x);
    Node *part = along(g, &x->type, ((1u << x->type.rank) - 1) & ~1u, share);
    Node *mixed = add(g, other, mul(g, part, sub(g, x, other)));
    return several(g, mixed, next_example(g, mix.target), share);
}

/* Where along an axis a box of the reach to both sides of a random pixel begins and ends inside of the image. */
static void draw_box(Graph *g, const Type *image, int axis, Node *reach, Node **first, Node **end) {
    double size = (double)image->dim[axis];
    Node *half = op1(g, "floor", scale(g, reach, size));
    Node *centre = op1(g, "floor", scale(g, draw_for_example(g, image), size));
    *first = op2(g, "maximum", sub(g, centre, half), graph_constant(g, 0));
    *end = op2(g, "minimum", add(g, centre, half), graph_constant(g, size));
}

static Value build_cutmix(Call *call) {
    Graph *g = call->g;
    Node *x = read_data(call, "cutmix"), *first[2], *end[2];
    Mix mix;
    if (!x || !read_mix(call, "cutmix", x, &mix))
        return value_tensor(NULL);
    if (!g->training)
        return unmixed(g, &mix);
    x = graph_cast(g, x, DT_F32);
    const double pixels = (double)(x->type.dim[ROWS] * x->type.dim[COLUMNS]);
    Node *rest = sub(g, graph_constant(g, 1), draw_share(g, &x->type, mix.alpha));
    Node *reach = scale(g, op1(g, "sqrt", rest), 0.5);
    for (int k = 0; k < 2; k++)
        draw_box(g, &x->type, ROWS + k, reach, &first[k], &end[k]);
    Node *box = mul(g, sub(g, end[0], first[0]), sub(g, end[1], first[1]));
    Node *share = sub(g, graph_constant(g, 1), scale(g, box, 1 / pixels));
    Node *inside = op2(g, "and", is_between(g, &x->type, ROWS, first[0], end[0]),
                       is_between(g, &x->type, COLUMNS, first[1], end[1]));
    return several(g, select(g, inside, next_example(g, x), x), next_example(g, mix.target), share);
}

#define MIX .cls = OP_LIBRARY, .kind = KIND_MIXTURE

#define RESULTS                                                                                                        \
    " Gives three values: what is learned from, the other's target, and the share s, drawn for each example from "     \
    "Beta(alpha, alpha), for a loss s loss(y, target) + (1 - s) loss(y, other). In evaluation x, its target and 1."

const OpDef op_mixup = {
    MIX,
    .name = "mixup",
    .title = "MixUp",
    .signature = "x, target, alpha: number > 0 = 1",
    .doc = "In training, s times x, data of any shape, and 1 - s times that of the next example of the batch." RESULTS,
    .example = "y, other, s = mixup(image, label, 0.2)",
    .build = build_mixup,
};

const OpDef op_cutmix = {
    MIX,
    .name = "cutmix",
    .title = "CutMix",
    .signature = "x: image, target, alpha: number > 0 = 1",
    .doc = "In training, an image [C, H, W] of the data with a box of that of the next example of the batch, around a "
           "random pixel; 1 - s is the box's share of the pixels." RESULTS,
    .example = "y, other, s = cutmix(image, label)",
    .build = build_cutmix,
};
