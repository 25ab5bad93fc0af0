/* Recurrent layers: rnn, gru, lstm. Weights have PyTorch's names, order and start. */
#include "op/recurrent.h"

#include <math.h>

enum {
    ARG_X,
    ARG_UNITS,
    ARG_LAYERS,
    ARG_BIDIRECTIONAL,
    ARG_REVERSE,
    ARG_BIAS,
    ARG_LENGTHS,
    ARG_START,
    ARG_INIT,
    ARG_OWN
};

enum { MOST_LAYERS = 64 };

/* What the call says, read once for all its layers and directions. */
typedef struct Stack {
    RecurrentCell cell;
    int64_t units;
    int layers;
    bool both, reversed, biased;
    Node *x, *start, *length; /* [B, T, features], [B, states * units], [B] */
    bool batched;             /* each example has its own x; else B is 1 */
    Init init;
} Stack;

static const char *shape_text(Call *call, const Node *x) {
    return type_user_text(call->g->arena, &x->type);
}

/* ---- arguments ---- */

static bool read_sequence(Call *call, Stack *s) {
    Node *x = graph_cast(call->g, call_tensor(call, ARG_X), DT_F32);
    if (!x)
        return false;
    if (x->type.rank - x->type.batched != 2) {
        call_error(call, ARG_X, "%s is over sequences [T, features], found %s", call->op->name, shape_text(call, x));
        return false;
    }
    s->x = x;
    return true;
}

static bool read_units(Call *call, Stack *s) {
    s->units = call_size(call, ARG_UNITS);
    if (s->units > LARGEST_STATE)
        call_error(call, ARG_UNITS, "a recurrent layer has at most %d units, not %lld", LARGEST_STATE,
                   (long long)s->units);
    return s->units > 0 && s->units <= LARGEST_STATE;
}

static bool read_directions(Call *call, Stack *s) {
    int64_t layers = call_int(call, ARG_LAYERS, 1, MOST_LAYERS);
    s->layers = (int)layers;
    s->both = call_bool(call, ARG_BIDIRECTIONAL);
    s->reversed = call_bool(call, ARG_REVERSE);
    s->biased = call_bool(call, ARG_BIAS);
    if (s->both && s->reversed)
        call_error(call, ARG_REVERSE, "with bidirectional = true there are both directions already");
    return layers > 0 && !(s->both && s->reversed);
}

static Node *constant_of_examples(Graph *g, const Stack *s, double value, int64_t width) {
    Type type = type_make(DT_F32, s->x->type.batched, width ? 2 : 1, (int64_t[]){s->x->type.dim[0], width});
    return graph_expand(g, graph_constant(g, value), &type);
}

/* A tensor of the example, of `width` numbers or, 0, a number; NULL after a user error. */
static Node *read_of_example(Call *call, int arg, const Stack *s, int64_t width) {
    Node *given = graph_cast(call->g, call_tensor(call, arg), DT_F32);
    Type wanted = type_make(DT_F32, s->x->type.batched, width ? 2 : 1, (int64_t[]){s->x->type.dim[0], width}), common;
    if (!given)
        return NULL;
    if (!s->batched && given->type.rank == (width > 0) && (!width || given->type.dim[0] == width))
        return graph_reshape(call->g, given, &wanted);
    if (graph_common_shape(&given->type, &wanted, &common) && type_same_shape(&common, &wanted))
        return graph_expand(call->g, given, &wanted);
    if (width)
        call_error(call, arg, "the state that %s begins with is f32[%lld], found %s", call->op->name, (long long)width,
                   shape_text(call, given));
    else
        call_error(call, arg, "how many steps an example has is a number, found %s", shape_text(call, given));
    return NULL;
}

static Node *read_state(Call *call, int arg, const Stack *s) {
    if (call->args[arg].kind == VALUE_NONE)
        return constant_of_examples(call->g, s, 0, s->units);
    if (s->layers == 1 && !s->both)
        return read_of_example(call, arg, s, s->units);
    call_error(call, arg, "of several layers or directions, each begins with a state of its own: call %s for each",
               call->op->name);
    return NULL;
}

static bool read_start(Call *call, Stack *s) {
    Node *parts[] = {read_state(call, ARG_START, s), NULL};
    if (s->cell == LSTM)
        parts[1] = read_state(call, ARG_OWN, s);
    if (!parts[0] || (s->cell == LSTM && !parts[1]))
        return false;
    s->start = s->cell == LSTM ? build_stack(call->g, parts, 2, 1) : parts[0];
    s->start->hint = "start";
    return true;
}

static bool read_length(Call *call, Stack *s) {
    bool given = call->args[ARG_LENGTHS].kind != VALUE_NONE;
    s->length = given ? read_of_example(call, ARG_LENGTHS, s, 0)
                      : constant_of_examples(call->g, s, (double)s->x->type.dim[1], 0);
    if (s->length)
        s->length->hint = "steps";
    return s->length;
}

/* With a batch where any of them has one; [1, T, features] where none has. */
static bool share_examples(Call *call, Stack *s) {
    Node *shared[] = {s->x, call->args[ARG_LENGTHS].node, call->args[ARG_START].node, NULL};
    if (s->cell == LSTM)
        shared[3] = call->args[ARG_OWN].node;
    for (int k = 1; k < 4; k++)
        s->batched |= shared[k] && shared[k]->type.batched;
    s->batched |= s->x->type.batched;
    if (s->batched)
        s->x = graph_of_each_example(call->g, s->x);
    else
        s->x = insert_axis(call->g, s->x, 0);
    return s->x;
}

static bool read_stack(Call *call, Stack *s) {
    return read_sequence(call, s) && read_units(call, s) && read_directions(call, s) && share_examples(call, s) &&
           read_start(call, s) && read_length(call, s) && read_init(call, ARG_INIT, s->units, s->units, &s->init);
}

/* ---- layers ---- */

/* "weight_ih_l0", "weight_ih_l0_reverse" */
static Node *weight_of(Call *call, const Stack *s, const char *what, int layer, bool reversed, int64_t columns) {
    static const int exchanged[] = {1, 0};
    const char *name = arena_printf(call->g->arena, "%s_l%d%s", what, layer, reversed ? "_reverse" : "");
    int64_t rows = recurrent_gates(s->cell) * s->units;
    bool of_state = strcmp(what, "weight_hh") == 0;
    Type matrix = type_make(DT_F32, false, 2, (int64_t[]){of_state ? columns : rows, of_state ? rows : columns});
    Type vector = type_make(DT_F32, false, 1, (int64_t[]){rows});
    return call_weight(call, name, columns ? &matrix : &vector, s->init, of_state ? exchanged : NULL);
}

/* PyTorch's order of weights: those of the input, of the state, then both biases. */
static Node *direction(Call *call, const Stack *s, Node *x, int layer, bool reversed) {
    Graph *g = call->g;
    Recurrence r = {.cell = s->cell, .reversed = reversed, .start = s->start, .length = s->length};
    Type none = type_make(DT_F32, false, 1, (int64_t[]){recurrent_gates(s->cell) * s->units});
    Node *weight = weight_of(call, s, "weight_ih", layer, reversed, x->type.dim[2]);
    r.weight = weight_of(call, s, "weight_hh", layer, reversed, s->units);
    Node *bias = s->biased ? weight_of(call, s, "bias_ih", layer, reversed, 0) : NULL;
    r.bias =
        s->biased ? weight_of(call, s, "bias_hh", layer, reversed, 0) : graph_expand(g, graph_constant(g, 0), &none);
    if (!weight || !r.weight || !r.bias || (s->biased && !bias))
        return NULL;
    r.gates = graph_matmul(g, x, weight, false, true);
    r.gates = bias ? add(g, r.gates, bias) : r.gates;
    r.gates->hint = "inputs";
    return build_recurrence(g, &r);
}

static Node *layer_of(Call *call, const Stack *s, Node *x, int layer) {
    Node *forward = s->reversed ? NULL : direction(call, s, x, layer, false);
    Node *backward = s->reversed || s->both ? direction(call, s, x, layer, true) : NULL;
    Node *parts[] = {forward, backward};
    if (s->both)
        return forward && backward ? build_stack(call->g, parts, 2, 2) : NULL;
    return s->reversed ? backward : forward;
}

static Value build_stack_of_layers(Call *call, RecurrentCell cell) {
    Stack s = {.cell = cell};
    if (!read_stack(call, &s))
        return value_tensor(NULL);
    Node *y = s.x;
    for (int layer = 0; y && layer < s.layers; layer++)
        y = layer_of(call, &s, y, layer);
    if (!y || s.batched)
        return value_tensor(y);
    Type rows = type_make(DT_F32, false, 2, y->type.dim + 1);
    return value_tensor(graph_reshape(call->g, y, &rows));
}

static Value build_rnn(Call *call) {
    static const RecurrentCell cells[] = {RNN_TANH, RNN_RELU}; /* as in the signature */
    return build_stack_of_layers(call, cells[call_word(call, ARG_OWN, 0)]);
}

static Value build_gru(Call *call) {
    return build_stack_of_layers(call, GRU);
}

static Value build_lstm(Call *call) {
    return build_stack_of_layers(call, LSTM);
}

#define LAYER_DOC                                                                                                      \
    " The layer goes over a sequence [T, features] and gives h of all steps, [T, units]; the last row is the last "    \
    "state. Weights have PyTorch's names, order and start: W is `weight_ih_l0` [gates * units, features], U is "       \
    "`weight_hh_l0` [gates * units, units], b and d are `bias_ih_l0` and `bias_hh_l0`, all evenly within "             \
    "1 / sqrt(units). layers: so many on top of each other, l0, l1. reverse: from the last step to the first, with "   \
    "weights `_l0_reverse`; the last state is the first row. bidirectional: both directions, beside each other in "    \
    "[T, 2 * units]. lengths: how many steps an example has; behind them its state stays. start: h[-1], 0 where it "   \
    "is "                                                                                                              \
    "not given. At most 1024 units."
#define LAYER_SIGNATURE                                                                                                \
    "x, units: size, layers: size = 1, bidirectional: bool = false, reverse: bool = false, bias: bool = true, "        \
    "lengths = none, start = none, init: init = none"

const OpDef op_rnn = {
    .name = "rnn",
    .cls = OP_LIBRARY,
    .title = "RNN",
    .doc = "h[t] = tanh(W x[t] + b + U h[t - 1] + d), or relu of it." LAYER_DOC,
    .example = "y = rnn(reshape(x, [3, 2]), 4)",
    .signature = LAYER_SIGNATURE ", activation: \"tanh\" or \"relu\" = \"tanh\"",
    .build = build_rnn,
};

const OpDef op_gru = {
    .name = "gru",
    .cls = OP_LIBRARY,
    .title = "GRU",
    .doc = "h[t] = (1 - z) n + z h[t - 1], where r and z are sigmoid(W x[t] + b + U h[t - 1] + d) and n is "
           "tanh(W x[t] + b + r (U h[t - 1] + d)), each with rows of its own, in the order r, z, n." LAYER_DOC,
    .example = "y = gru(reshape(x, [3, 2]), 4)",
    .signature = LAYER_SIGNATURE,
    .build = build_gru,
};

const OpDef op_lstm = {
    .name = "lstm",
    .cls = OP_LIBRARY,
    .title = "LSTM",
    .doc = "c[t] = f c[t - 1] + i g and h[t] = o tanh(c[t]), where i, f and o are sigmoid(W x[t] + b + U h[t - 1] + d) "
           "and g is tanh of it, each with rows of its own, in the order i, f, g, o." LAYER_DOC " cell: c[-1].",
    .example = "y = lstm(reshape(x, [3, 2]), 4)",
    .signature = LAYER_SIGNATURE ", cell = none",
    .build = build_lstm,
};
