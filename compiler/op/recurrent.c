/* All steps of one direction of a recurrent layer: a kernel of its own, for each step reads the one before.
 *
 *     rnn     h[t] = tanh(a[t]),                             a[t] = x[t] + h[t - 1] U + b; or relu of it
 *     gru     r, z = sigmoid of a[t],   n = tanh(x[t] + r (h[t - 1] U + b)),   h[t] = (1 - z) n + z h[t - 1]
 *     lstm    i, f, o = sigmoid and g = tanh of a[t],   c[t] = f c[t - 1] + i g,   h[t] = o tanh(c[t])
 *
 * where x is what the inputs give to the gates, one product for all steps, made outside. The kernel of the gradient goes the
 * steps back and gives d_x; what U and b get is a product over all steps again. Behind the length of an example its state stays. */
#include "op/recurrent.h"

/* attr.index: the cell, and from which end. */
static int index_of(RecurrentCell cell, bool reversed) {
    return 2 * (int)cell + reversed;
}

static RecurrentCell cell_of(const Node *n) {
    return (RecurrentCell)(n->attr.index / 2);
}

static bool is_reversed(const Node *n) {
    return n->attr.index % 2;
}

/* Operands. */
enum { IN_GATES, IN_WEIGHT, IN_BIAS, IN_START, IN_LENGTH, RECUR_INPUTS };
enum { GRAD_KEPT, GRAD_WEIGHT, GRAD_OUTPUT, GRAD_START, GRAD_LENGTH, GRAD_DY, GRAD_INPUTS };

static bool is_f32(const Type *type, int rank, const int64_t *dims) {
    bool same = type->dtype == DT_F32 && type->rank == rank;
    for (int k = 0; same && k < rank; k++)
        same = type->dim[k] == dims[k];
    return same;
}

static Type with_width(const Type *rows, int64_t width) {
    Type type = *rows;
    type.dim[type.rank - 1] = width;
    return type;
}

/* Of one number less for each example. */
static Type of_examples(const Type *rows, int64_t width) {
    return type_make(DT_F32, rows->batched, 2, (int64_t[]){rows->dim[0], width});
}

INFER(recur) {
    const Type *x = &n->in[IN_GATES]->type;
    RecurrentCell cell = cell_of(n);
    int64_t units = n->in[IN_WEIGHT]->type.dim[0], width = recurrent_gates(cell) * units;
    n->type = with_width(x, units);
    return x->rank == 3 && x->dtype == DT_F32 && x->dim[2] == width &&
           is_f32(&n->in[IN_WEIGHT]->type, 2, (int64_t[]){units, width}) &&
           is_f32(&n->in[IN_BIAS]->type, 1, (int64_t[]){width}) &&
           is_f32(&n->in[IN_START]->type, 2, (int64_t[]){x->dim[0], recurrent_states(cell) * units}) &&
           is_f32(&n->in[IN_LENGTH]->type, 1, (int64_t[]){x->dim[0]});
}

INFER(recur_gates) {
    const Node *call = n->in[0];
    n->type = with_width(&call->type, recurrent_kept(cell_of(call)) * call->type.dim[2]);
    return call->inputs == RECUR_INPUTS;
}

INFER(recur_grad) {
    const Type *y = &n->in[GRAD_OUTPUT]->type;
    int64_t width = recurrent_gates(cell_of(n)) * y->dim[2];
    n->type = with_width(y, width);
    return is_f32(&n->in[GRAD_WEIGHT]->type, 2, (int64_t[]){width, y->dim[2]}) &&
           is_f32(&n->in[GRAD_DY]->type, 3, y->dim);
}

INFER(recur_start) {
    const Node *call = n->in[0];
    n->type = of_examples(&call->type, recurrent_states(cell_of(call)) * call->in[GRAD_OUTPUT]->type.dim[2]);
    return call->inputs == GRAD_INPUTS;
}

/* ---- gradient ---- */

static Node *cut(Graph *g, Node *x, int axis, int64_t first, int64_t end) {
    int64_t offset[MAX_RANK] = {0};
    Type part = x->type;
    offset[axis] = first;
    part.dim[axis] = end - first;
    return graph_node(g, "slice", attr_placed(&part, offset), 1, &x);
}

/* The state that each step begins with: that behind the step before it. */
static Node *state_before(Graph *g, Node *n) {
    int64_t steps = n->type.dim[1];
    Type first = n->type;
    first.dim[1] = 1;
    Node *start = graph_reshape(g, cut(g, n->in[IN_START], 1, 0, n->type.dim[2]), &first);
    if (steps == 1)
        return start;
    Node *others = is_reversed(n) ? cut(g, n, 1, 1, steps) : cut(g, n, 1, 0, steps - 1);
    Node *forward[] = {start, others}, *backward[] = {others, start};
    return build_stack(g, is_reversed(n) ? backward : forward, 2, 1);
}

/* The gradient of h[t - 1] U + b: that of the gates; r multiplies a GRU's n. */
static Node *gradient_of_hidden(Graph *g, const Node *n, Node *gates, Node *kept) {
    int64_t units = n->type.dim[2];
    if (cell_of(n) != GRU)
        return gates;
    Node *parts[] = {cut(g, gates, 2, 0, 2 * units),
                     mul(g, cut(g, gates, 2, 2 * units, 3 * units), cut(g, kept, 2, 0, units))};
    return build_stack(g, parts, 2, 2);
}

static Node *as_matrix(Graph *g, Node *x) {
    Type rows = type_make(DT_F32, x->type.batched, 2, (int64_t[]){x->type.dim[0] * x->type.dim[1], x->type.dim[2]});
    return graph_reshape(g, x, &rows);
}

GRAD(recur) {
    static const int exchanged[] = {1, 0};
    Node *kept = op1(g, "recur_gates", n);
    kept->hint = "gates";
    if (n->name)
        graph_name(kept, arena_printf(g->arena, "%s.gates", n->name));
    Node *in[] = {kept, graph_transpose(g, n->in[IN_WEIGHT], exchanged), n, n->in[IN_START], n->in[IN_LENGTH], dy};
    Node *gates = graph_node(g, "recur_grad", n->attr, GRAD_INPUTS, in);
    Node *hidden = gradient_of_hidden(g, n, gates, kept);
    din[IN_GATES] = gates;
    din[IN_WEIGHT] = graph_matmul(g, as_matrix(g, state_before(g, n)), as_matrix(g, hidden), true, false);
    din[IN_BIAS] = graph_reduce(g, "sum", hidden, 3);
    din[IN_START] = op1(g, "recur_start", gates);
}

/* ---- kernels ---- */

static const char *cell_text(const Node *n) {
    static const char *const names[] = {
        [RNN_TANH] = "RNN_TANH", [RNN_RELU] = "RNN_RELU", [GRU] = "GRU", [LSTM] = "LSTM"};
    return names[cell_of(n)];
}

static const char *recur_arguments(Arena *arena, const Node *n) {
    return arena_printf(arena, ".examples = $00, .steps = $01, .units = $r2, .cell = %s, .reversed = %s", cell_text(n),
                        is_reversed(n) ? "true" : "false");
}

static const char *recur_grad_arguments(Arena *arena, const Node *n) {
    return arena_printf(arena, ".examples = $00, .steps = $01, .units = $22, .cell = %s, .reversed = %s", cell_text(n),
                        is_reversed(n) ? "true" : "false");
}

static int64_t tiles_of(const Type *y) {
    int64_t each = recurrent_examples(y->dim[0], y->dim[2]);
    return (y->dim[0] + each - 1) / each;
}

static int64_t recur_tiles(const Node *n) {
    return tiles_of(&n->type);
}

static int64_t recur_grad_tiles(const Node *n) {
    return tiles_of(&n->in[GRAD_OUTPUT]->type);
}

static int recur_blocks(const Node *n) {
    return recurrent_blocks(cell_of(n), n->type.dim[2]);
}

static int recur_grad_blocks(const Node *n) {
    return recurrent_blocks(cell_of(n), n->in[GRAD_OUTPUT]->type.dim[2]);
}

static double flops_of(const Node *n, const Type *y) {
    return 2.0 * recurrent_gates(cell_of(n)) * (double)type_elements(y) * (double)y->dim[2];
}

static double recur_flops(const Node *n) {
    return flops_of(n, &n->type);
}

static double recur_grad_flops(const Node *n) {
    return flops_of(n, &n->in[GRAD_OUTPUT]->type);
}

static const char *recur_equation(Arena *arena, const Node *n) {
    static const char *const lines[] = {
        [RNN_TANH] = "$r[t] = tanh($0[t] + before * $1 + $2)",
        [RNN_RELU] = "$r[t] = relu($0[t] + before * $1 + $2)",
        [GRU] = "r, z = sigmoid($0[t] + before * $1 + $2)\n"
                "n = tanh($0[t] + r * (before * $1 + $2))\n"
                "$r[t] = (1 - z) * n + z * before",
        [LSTM] = "i, f, o = sigmoid($0[t] + before * $1 + $2)\n"
                 "g = tanh($0[t] + before * $1 + $2)\n"
                 "c[t] = f * c[before t] + i * g\n"
                 "$r[t] = o * tanh(c[t])",
    };
    return arena_printf(arena, "%s\nfor %s t < $4; before is $r of the step before, at first $3", lines[cell_of(n)],
                        is_reversed(n) ? "falling" : "rising");
}

static const char *recur_grad_equation(Arena *arena, const Node *n) {
    return arena_printf(arena,
                        "$r[t] = ($5[t] + what the step behind sends back) through the gates $0[t]\nfor %s t < $4",
                        is_reversed(n) ? "rising" : "falling");
}

/* ---- in ONNX ---- */

/* The gates' rows of a tensor in the order that ONNX has them in, and an axis for the direction. */
static const char *onnx_gates(Onnx *o, const Node *n, const char *rows) {
    static const int orders[][4] = {[RNN_TANH] = {0}, [RNN_RELU] = {0}, [GRU] = {1, 0, 2}, [LSTM] = {0, 3, 1, 2}};
    const RecurrentCell cell = cell_of(n);
    const int gates = recurrent_gates(cell);
    const int64_t units = n->type.dim[2];
    const char *parts[4];
    for (int k = 0; k < gates; k++) {
        const int64_t from = orders[cell][k] * units;
        parts[k] = onnx_slice(o, rows, 0, from, from + units);
    }
    return onnx2(o, "Unsqueeze", onnx_concat(o, gates, parts, 0), onnx_numbers(o, 1, &(int64_t){0}));
}

/* The product with weights that the inputs' part of the gates is, and the vector that is added to it; NULL: it is something else. */
static const Node *product_of(const Node *gates, const Node **bias) {
    *bias = NULL;
    if (gates->op->cls == OP_MAP && gates->op->flags & OP_COMMUTES && gates->in[1]->op->flags & OP_REPEATS &&
        gates->in[1]->in[0]->type.rank == 1) {
        *bias = gates->in[1];
        gates = gates->in[0];
    }
    bool stored = gates->op->attrs & ATTR_TRANSPOSED && gates->attr.tb && !gates->attr.ta;
    return stored && gates->in[0]->type.rank == 3 && gates->in[1]->type.rank == 2 ? gates : NULL;
}

/* Ones where row and column are the same, as weights of inputs that are the gates themselves. */
static const char *onnx_identity(Onnx *o, int64_t size) {
    const char *column = onnx_count(o, size), *row = onnx2(o, "Unsqueeze", column, onnx_numbers(o, 1, &(int64_t){1}));
    return onnx_cast(o, onnx2(o, "Equal", row, column), DT_F32);
}

/* Part `which` of the state that the layer begins with, h or c: [1, B, units]. */
static const char *onnx_start(Onnx *o, const Node *n, int which) {
    const int64_t units = n->type.dim[2];
    const char *part = onnx_slice(o, onnx_operand(o, n, IN_START), 1, which * units, (which + 1) * units);
    return onnx2(o, "Unsqueeze", part, onnx_numbers(o, 1, &(int64_t){0}));
}

/* All steps of all examples, [B, T, units]; `length` "" where each example has them all. */
static const char *onnx_steps(Onnx *o, const Node *n, const char *length) {
    static const char *const ops[] = {[RNN_TANH] = "RNN", [RNN_RELU] = "RNN", [GRU] = "GRU", [LSTM] = "LSTM"};
    static const char *const bent[] = {[RNN_TANH] = "Tanh", [RNN_RELU] = "Relu"};
    static const int exchanged[] = {1, 0, 2}, weights_first[] = {1, 0};
    const RecurrentCell cell = cell_of(n);
    const Node *bias, *product = product_of(n->in[IN_GATES], &bias);
    const int64_t width = recurrent_gates(cell) * n->type.dim[2];
    const char *none = onnx2(o, "Expand", onnx_real(o, 0), onnx_numbers(o, 1, &width));
    const char *x = product ? onnx_operand(o, product, 0) : onnx_operand(o, n, IN_GATES);
    const char *w = product ? onnx_operand(o, product, 1) : onnx_identity(o, width);
    const char *biases[] = {onnx_gates(o, n, product && bias ? onnx_operand(o, bias, 0) : none),
                            onnx_gates(o, n, onnx_operand(o, n, IN_BIAS))};
    const char *in[] = {onnx_transpose(o, x, 3, exchanged),
                        onnx_gates(o, n, w),
                        onnx_gates(o, n, onnx_operand_in(o, n, IN_WEIGHT, weights_first)),
                        onnx_concat(o, 2, biases, 1),
                        length,
                        onnx_start(o, n, 0),
                        cell == LSTM ? onnx_start(o, n, 1) : ""};
    const OnnxAttr cells[] = {
        [RNN_TANH] = {.name = "activations", .kind = ONNX_TEXTS, .texts = &bent[RNN_TANH], .count = 1},
        [RNN_RELU] = {.name = "activations", .kind = ONNX_TEXTS, .texts = &bent[RNN_RELU], .count = 1},
        [GRU] = ONNX_NUMBER("linear_before_reset", 1),
        [LSTM] = ONNX_NUMBER("input_forget", 0)};
    const OnnxAttr attr[] = {ONNX_NUMBER("hidden_size", n->type.dim[2]),
                             {.name = "direction", .kind = ONNX_TEXT, .text = is_reversed(n) ? "reverse" : "forward"},
                             cells[cell]};
    const char *y = onnx_node(o, ops[cell], cell == LSTM ? 7 : 6, in, 3, attr);
    return onnx_transpose(o, onnx2(o, "Squeeze", y, onnx_numbers(o, 1, &(int64_t){1})), 3, exchanged);
}

/* How many steps each example has, a whole number from 0 to T: [B, 1]. */
static const char *onnx_lengths(Onnx *o, const Node *n) {
    const char *steps = onnx_cast(o, onnx1(o, "Ceil", onnx_operand(o, n, IN_LENGTH)), DT_I32);
    steps = onnx3(o, "Clip", steps, onnx_number(o, DT_I32, 0), onnx_number(o, DT_I32, (double)n->type.dim[1]));
    return onnx2(o, "Unsqueeze", steps, onnx_numbers(o, 1, &(int64_t){1}));
}

/* Behind the length the state stays: step t is step min(t, length - 1), where -1 is the start. */
static const char *onnx_held(Onnx *o, const Node *n) {
    static const int exchanged[] = {1, 0, 2};
    const char *ones = onnx_numbers(o, 1, &(int64_t){2}), *start = onnx_transpose(o, onnx_start(o, n, 0), 3, exchanged);
    const char *all[] = {start, onnx_steps(o, n, "")};
    const char *next = onnx2(o, "Add", onnx_count(o, n->type.dim[1]), onnx_number(o, DT_I32, 1));
    const char *at = onnx_index(o, onnx2(o, "Min", next, onnx_lengths(o, n)));
    const char *in[] = {onnx_concat(o, 2, all, 1), onnx2(o, "Unsqueeze", at, ones)};
    return onnx_node(o, "GatherND", 2, in, 1, &ONNX_NUMBER("batch_dims", 1));
}

/* From the last step on, those behind the length are the start. */
static const char *onnx_held_back(Onnx *o, const Node *n) {
    static const int exchanged[] = {1, 0, 2};
    const int64_t last = 2, second = 1;
    const char *length = onnx_lengths(o, n), *one = onnx_number(o, DT_I32, 1);
    const char *seen = onnx2(o, "Less", onnx_count(o, n->type.dim[1]), length);
    const char *steps = onnx2(o, "Squeeze", onnx2(o, "Max", length, one), onnx_numbers(o, 1, &second));
    return onnx3(o, "Where", onnx2(o, "Unsqueeze", seen, onnx_numbers(o, 1, &last)), onnx_steps(o, n, steps),
                 onnx_transpose(o, onnx_start(o, n, 0), 3, exchanged));
}

TO_ONNX(recur) {
    double length;
    if (graph_constant_value(n->in[IN_LENGTH], &length) && length >= (double)n->type.dim[1])
        return onnx_value(onnx_steps(o, n, ""));
    return onnx_value(is_reversed(n) ? onnx_held_back(o, n) : onnx_held(o, n));
}

static const char about[] = "all steps of a recurrent layer, and their gradient";
static const char meaning[] = "examples, steps, units, cell, from the last step to the first";

static const CallDef recur_call = {
    .header = "recurrent",
    .about = about,
    .part = "recur_gates",
    .shape = "Recurrence",
    .meaning = meaning,
    .number = IN_GATES,
    .arguments = recur_arguments,
    .tiles = recur_tiles,
    .blocks = recur_blocks,
    .flops = recur_flops,
    .equation = recur_equation,
};

static const CallDef recur_grad_call = {
    .header = "recurrent",
    .about = about,
    .part = "recur_start",
    .shape = "Recurrence",
    .meaning = meaning,
    .number = GRAD_KEPT,
    .arguments = recur_grad_arguments,
    .tiles = recur_grad_tiles,
    .blocks = recur_grad_blocks,
    .flops = recur_grad_flops,
    .equation = recur_grad_equation,
};

const OpDef op_recur = {
    .name = "recur",
    .cls = OP_CALL,
    .arity = RECUR_INPUTS,
    .attrs = ATTR_INDEX,
    .doc = "All steps of a recurrent layer: h [B, T, units], given what the inputs give to the gates [B, T, gates * "
           "units], weights [units, gates * units], their bias, the state that it begins with [B, units], of an LSTM h "
           "and c, and how many steps each example has.",
    .infer = infer_recur,
    .grad = grad_recur,
    .call = &recur_call,
    .to_onnx = to_onnx_recur,
};

const OpDef op_recur_gates = {
    .name = "recur_gates",
    .cls = OP_CALL,
    .flags = OP_PART | OP_NO_GRAD,
    .arity = 1,
    .doc = "A second result of recur: what its gradient reads of each step, [B, T, kept * units]. The gates; beside "
           "them c of an LSTM, of a GRU what r is multiplied by.",
    .infer = infer_recur_gates,
    .call = &recur_call,
};

const OpDef op_recur_grad = {
    .name = "recur_grad",
    .cls = OP_CALL,
    .arity = GRAD_INPUTS,
    .attrs = ATTR_INDEX,
    .doc = "The gradient of recur's first operand, given recur_gates, the transposed weights, h, the start, the "
           "lengths and dy.",
    .infer = infer_recur_grad,
    .call = &recur_grad_call,
};

const OpDef op_recur_start = {
    .name = "recur_start",
    .cls = OP_CALL,
    .flags = OP_PART | OP_NO_GRAD,
    .arity = 1,
    .doc = "A second result of recur_grad: the gradient of the state that recur begins with.",
    .infer = infer_recur_start,
    .call = &recur_grad_call,
};

Node *build_recurrence(Graph *g, const Recurrence *r) {
    Node *in[] = {r->gates, r->weight, r->bias, r->start, r->length};
    return graph_node(g, "recur", (Attr){.index = index_of(r->cell, r->reversed)}, RECUR_INPUTS, in);
}
