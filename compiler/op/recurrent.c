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
