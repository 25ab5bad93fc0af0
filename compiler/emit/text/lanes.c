#include "emit/text/lanes.h"

#include "ir/type.h"

/* An expression as a function of the lane: first + step * lane. */
typedef struct Linear {
    int64_t step;
    int64_t multiple; /* of this is the first */
    int64_t value;    /* of a number; else 0 */
    bool known;       /* false: no such function */
} Linear;

static const char lane_number[] = "v";
static const Linear unknown = {0};

/* Of a size, or of what else all lanes have: 0. */
static Linear same(int64_t value) {
    return (Linear){.multiple = value > 0 ? value : 1, .value = value, .known = true};
}

static Linear number_of(int64_t value) {
    return (Linear){.multiple = value, .value = value, .known = true};
}

/* A quotient of neighbours, and their remainder, where no multiple of the divisor lies between them. */
static Linear divided(const Lanes *lanes, const char *op, Linear a, int64_t by) {
    bool together = a.step == 1 && a.multiple % lanes->count == 0 && by > 0 && by % lanes->count == 0;
    if (!together)
        return unknown;
    if (*op == '%')
        return (Linear){.step = 1, .multiple = common_divisor(a.multiple, by), .known = true};
    return (Linear){.step = 0, .multiple = a.multiple % by ? 1 : a.multiple / by, .known = true};
}

/* Neighbours are on the same side of a multiple of their number. */
static bool are_on_one_side(const Lanes *lanes, const char *op, Linear a, Linear b) {
    bool together = a.step == 1 && a.multiple % lanes->count == 0, ends = b.value > 0 && b.value % lanes->count == 0;
    bool below = op[0] == '<' && op[1] == '\0', not_below = op[0] == '>' && op[1] == '=';
    return together && b.step == 0 && ends && (below || not_below);
}

static Linear combined(const Lanes *lanes, const char *op, Linear a, Linear b) {
    if (!a.known || !b.known)
        return unknown;
    if (are_on_one_side(lanes, op, a, b))
        return same(0);
    if (*op == '+' || *op == '-')
        return (Linear){.step = *op == '+' ? a.step + b.step : a.step - b.step,
                        .multiple = common_divisor(a.multiple, b.multiple),
                        .known = true};
    if (*op == '*' && (!a.step || !b.step))
        return (Linear){.step = a.step * b.value + b.step * a.value,
                        .multiple = a.multiple * b.multiple,
                        .value = a.value * b.value,
                        .known = (!a.step || b.value) && (!b.step || a.value)};
    if (!a.step && !b.step)
        return (Linear){.multiple = *op == '%' ? common_divisor(a.multiple, b.multiple) : 1, .known = true};
    return *op == '/' || *op == '%' ? divided(lanes, op, a, b.value) : unknown;
}

static Linear linear_of(const Lanes *lanes, const Tree *tree);

/* A call, an element, a comparison: the same in all lanes if what it depends on is. */
static Linear linear_if_same(const Lanes *lanes, const Tree *tree, int first) {
    bool same_in_all = true;
    for (int k = first; k < tree->count && same_in_all; k++) {
        Linear part = linear_of(lanes, tree->part[k]);
        same_in_all = part.known && part.step == 0;
    }
    return same_in_all ? same(0) : unknown;
}

/* v is the number of a lane, in what is a lane's already. */
static Linear linear_name(const Lanes *lanes, const Tree *tree) {
    if (tree_is_name(tree, lane_number))
        return unknown;
    if (tree_is_name(tree, lanes->variable))
        return (Linear){.step = 1, .multiple = lanes->count, .known = true};
    return same(tree->value);
}

static Linear linear_of(const Lanes *lanes, const Tree *tree) {
    switch (tree->kind) {
    case TREE_NUMBER: return tree->value < 0 ? same(0) : number_of(tree->value);
    case TREE_NAME: return linear_name(lanes, tree);
    case TREE_MEMBER: return same(0);
    case TREE_INFIX:
        return combined(lanes, tree->text, linear_of(lanes, tree->part[0]), linear_of(lanes, tree->part[1]));
    case TREE_CAST: return tree->wide ? linear_of(lanes, tree->part[1]) : linear_if_same(lanes, tree, 1);
    case TREE_ELEMENT: return linear_if_same(lanes, tree, 1);
    default: return linear_if_same(lanes, tree, 0);
    }
}

LaneStep lane_step(const Lanes *lanes, const Tree *tree) {
    Linear linear = linear_of(lanes, tree);
    if (linear.known && linear.step == 0)
        return LANES_SAME;
    bool together = linear.known && linear.step == 1 && linear.multiple % lanes->count == 0;
    return together ? LANES_NEIGHBOURS : LANES_SCATTERED;
}

bool differs_by_lane(const Lanes *lanes, const Tree *tree) {
    return lanes->count && tree_mentions(tree, lane_number);
}

/* Neighbours are the first and the lane's number; of anything else, each part is in its lane. */
const Tree *tree_in_lane(Arena *arena, const Lanes *lanes, const Tree *tree) {
    Linear linear = linear_of(lanes, tree);
    if (linear.known && linear.step == 0)
        return tree;
    if (linear.known && linear.step == 1)
        return tree_infix(arena, "+", tree, tree_name(arena, lane_number));
    const Tree **parts = NEW_ARRAY(arena, const Tree *, tree->count);
    for (int k = 0; k < tree->count; k++)
        parts[k] = tree_in_lane(arena, lanes, tree->part[k]);
    return tree_with_parts(arena, tree, parts);
}

const Tree *first_lane(const Tree *in_lane) {
    bool sum = tree_is_infix(in_lane, "+") && tree_is_name(in_lane->part[1], lane_number);
    return sum ? in_lane->part[0] : NULL;
}
