/* Positions of a sequence, as waves of falling frequency: at position p, wave k has the angle p base^(-k / count). */
#include "op/compose.h"

#include <math.h>

static Node *angles(Graph *g, const Type *shape, double base, double count) {
    Node *position = graph_cast(g, graph_iota(g, shape, 0), DT_F32),
         *wave = graph_cast(g, graph_iota(g, shape, 1), DT_F32);
    Node *angle = mul(g, position, op1(g, "exp", scale(g, wave, -log(base) / count)));
    angle->hint = "angle";
    return angle;
}

/* ---- added to a sequence ---- */

/* Waves lie in pairs, sine and cosine [length, pairs, 2]; of an odd width the last cosine is cut off. */
static Node *sinusoid(Graph *g, int64_t length, int64_t width) {
    int64_t pairs = (width + 1) / 2, origin[MAX_RANK] = {0};
    Type waves = type_make(DT_F32, false, 3, (int64_t[]){length, pairs, 2});
    Type row = type_make(DT_F32, false, 2, (int64_t[]){length, 2 * pairs}), wanted = row;
    Node *angle = angles(g, &waves, 1e4, 0.5 * (double)width);
    Node *even = compare(g, "eq", graph_cast(g, graph_iota(g, &waves, 2), DT_F32), 0);
    Node *y = graph_reshape(g, select(g, even, op1(g, "sin", angle), op1(g, "cos", angle)), &row);
    wanted.dim[1] = width;
    return width == row.dim[1] ? y : graph_node(g, "slice", attr_placed(&wanted, origin), 1, &y);
}

static Value build_sinusoid(Call *call) {
    int64_t length = call_size(call, 0), width = length < 0 ? -1 : call_size(call, 1);
    return value_tensor(width < 0 ? NULL : sinusoid(call->g, length, width));
}

/* ---- rotations of queries and keys ---- */

typedef struct Rotary {
    Node *x; /* [.., T, heads * size] */
    int64_t heads, size;
    double base;
} Rotary;

/* The first or second halves of the heads in [.., T, heads, 2, size / 2]. */
static Node *halves(Graph *g, Node *pairs, int which) {
    Type half = pairs->type;
    int64_t offset[MAX_RANK] = {0};
    half.dim[half.rank - 2] = 1;
    offset[half.rank - 2] = which;
    return graph_node(g, "slice", attr_placed(&half, offset), 1, &pairs);
}

/* A pair of numbers a = x[i], b = x[i + size / 2] is turned: (a cos - b sin, b cos + a sin). */
static Node *rotated(Graph *g, const Rotary *r) {
    int64_t half = r->size / 2, length = r->x->type.dim[last_axis(r->x) - 1];
    Type shape = r->x->type, turns = type_make(DT_F32, false, 2, (int64_t[]){length, half});
    Type column = type_make(DT_F32, false, 4, (int64_t[]){length, 1, 1, half});
    int axis = shape.rank - 1;
    shape.dim[axis++] = r->heads;
    shape.dim[axis++] = 2;
    shape.dim[axis++] = half;
    shape.rank = axis;
    Node *pairs = graph_reshape(g, r->x, &shape), *a = halves(g, pairs, 0), *b = halves(g, pairs, 1);
    Node *angle = graph_reshape(g, angles(g, &turns, r->base, (double)half), &column);
    Node *sine = op1(g, "sin", angle), *cosine = op1(g, "cos", angle);
    Node *turned[] = {sub(g, mul(g, a, cosine), mul(g, b, sine)), add(g, mul(g, b, cosine), mul(g, a, sine))};
    return graph_reshape(g, build_stack(g, turned, 2, shape.rank - 2), &r->x->type);
}

static bool read_heads(Call *call, Rotary *r) {
    int64_t width = r->x->type.dim[last_axis(r->x)];
    r->heads = call_size(call, 1);
    if (r->heads < 0)
        return false;
    r->size = width / r->heads;
    bool fits = width % r->heads == 0 && r->size % 2 == 0;
    if (!fits)
        call_error(call, 1, "a width of %lld does not divide into %lld heads of an even size each", (long long)width,
                   (long long)r->heads);
    return fits;
}

static Value build_rotary(Call *call) {
    Rotary r = {.x = graph_cast(call->g, call_tensor(call, 0), DT_F32), .base = call_number(call, 2)};
    if (!r.x || isnan(r.base))
        return value_tensor(NULL);
    if (r.x->type.rank - r.x->type.batched != 2)
        call_error(call, 0, "rotary turns a sequence [T, width], found %s", type_user_text(call->g->arena, &r.x->type));
    else if (read_heads(call, &r))
        return value_tensor(rotated(call->g, &r));
    return value_tensor(NULL);
}

const OpDef op_sinusoid = {
    .name = "sinusoid",
    .cls = OP_LIBRARY,
    .doc =
        "The positions of \"Attention Is All You Need\" [length, width]: y[p, 2 k] = sin(p / 10000^(2 k / width)), and "
        "y[p, 2 k + 1] the cosine of the same angle.",
    .example = "y = reshape(x, [3, 2]) + sinusoid(3, 2)",
    .signature = "length: size, width: size",
    .build = build_sinusoid,
};

const OpDef op_rotary = {
    .name = "rotary",
    .cls = OP_LIBRARY,
    .doc = "Rotary positions of queries or keys [T, heads * size], before attention. In each head at position p, the "
           "numbers "
           "a = x[i] and b = x[i + size / 2] become a cos(w) - b sin(w) and b cos(w) + a sin(w), with "
           "w = p base^(-2 i / size).",
    .example = "y = rotary(reshape(x, [3, 2]), heads = 1)",
    .signature = "x, heads: size, base: number > 1 = 10000",
    .build = build_rotary,
};
