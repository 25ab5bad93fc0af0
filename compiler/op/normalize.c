/* Fields brought to mean 0 and standard deviation 1, and the graph that finds out those of the training data. */
#include "op/normalize.h"

#include "op/compose.h"
#include "op/whiten.h"

/* ---- in the language ---- */

/* The field that an expression is, converted to f32 or reshaped perhaps; NULL: it is something else. */
static const Node *find_field(const Node *n) {
    while (n->inputs && (n->op->flags & OP_CONTIGUOUS || (n->op->attrs & ATTR_DTYPE && n->type.dtype == DT_F32)))
        n = n->in[0];
    return n->op->table == TABLE_FIELD ? n : NULL;
}

/* The field that the argument is; NULL after a user error. */
static const Field *read_field(Call *call, int arg, const char *function) {
    const Node *n = call_tensor(call, arg), *leaf = n ? find_field(n) : NULL;
    const Field *field = leaf ? &call->module->fields.at[leaf->attr.index] : NULL;
    if (n && !field)
        call_error(call, arg, "%s needs a field of the data block, this is %s", function,
                   call->args[arg].kind == VALUE_NUMBER ? "a number" : "a value computed by the model");
    if (!field || field->kind != FIELD_CLASS)
        return field;
    call_error(call, arg, "%s needs numbers; '%s' is class[%d], whose values have no order", function, field->name,
               field->classes);
    diag_note(call->module->diag, field->src, "'%s' is declared here", field->name);
    return NULL;
}

static Type statistic_type(const Field *field) {
    const Type *type = &field->type;
    return type_make(DT_F32, false, type->rank - 1, type->dim + 1);
}

static const char *statistic_name(Arena *arena, const Field *field, const char *statistic) {
    return arena_printf(arena, "%s.%s", field->name, statistic);
}

/* A statistic of the field, in the shape of one example of `like`. */
static Node *statistic(Call *call, const Field *field, const char *name, double initial, const Node *like) {
    Type type = statistic_type(field);
    Type shape = type_make(DT_F32, false, like->type.rank - 1, like->type.dim + 1);
    Init init = {.kind = initial == 0 ? INIT_ZEROS : INIT_CONSTANT, .a = initial};
    Node *buffer = call_buffer(call, statistic_name(call->g->arena, field, name), &type, init);
    return graph_reshape(call->g, buffer, &shape);
}

static Node *mean_of(Call *call, const Field *field, const Node *like) {
    return statistic(call, field, "mean", 0, like);
}

/* The standard deviation; 1 where the field is the same in all examples, which nothing can be divided by. */
static Node *scale_of(Call *call, const Field *field, const Node *like) {
    Node *std = statistic(call, field, "std", 1, like);
    return select(call->g, compare(call->g, "gt", std, 0), std, graph_constant(call->g, 1));
}

static Value build_normalize(Call *call) {
    const Field *field = read_field(call, 0, "normalize");
    if (!field)
        return value_tensor(NULL);
    Node *x = call_tensor(call, 0), *centred = sub(call->g, x, mean_of(call, field, x));
    return value_tensor(divide(call->g, centred, scale_of(call, field, x)));
}

static Value build_denormalize(Call *call) {
    Node *y = call_tensor(call, 0);
    const Field *field = read_field(call, 1, "denormalize");
    if (!y || !field)
        return value_tensor(NULL);
    const Node *like = call->args[1].node;
    y = graph_of_each_example(call->g, y); /* `denormalize(0, x)` predicts the mean */
    Node *mean = mean_of(call, field, like);
    return value_tensor(add(call->g, mul(call->g, y, scale_of(call, field, like)), mean));
}

const OpDef op_normalize = {
    .name = "normalize",
    .cls = OP_LIBRARY,
    .doc = "(x - mean) / std of a field x of numbers, for each element. Before the first step, mean and standard "
           "deviation of the training examples are computed; they are kept with the weights, as `x.mean` and `x.std`. "
           "A std of 0 counts as 1.",
    .example = "y = normalize(input)",
    .signature = "x",
    .build = build_normalize,
};

const OpDef op_denormalize = {
    .name = "denormalize",
    .cls = OP_LIBRARY,
    .doc = "y std + mean, with mean and standard deviation of the field `like`: undoes normalize(like).",
    .example = "answer = denormalize(logits, target)",
    .signature = "y, like",
    .build = build_denormalize,
};

/* ---- measuring ---- */

/* What generated code calls the value. */
static Node *called(Node *n, const char *hint) {
    n->hint = hint;
    return n;
}

/* Row 0 of each batch is a real example. Differences from it are exactly 0 where the field is constant, and do not cost
 * the digits of a mean that is large. */
static Node *first_example(Graph *g, Node *x) {
    Type rows = {.dtype = DT_I32, .rank = 1, .dim = {x->type.dim[0]}, .batched = true};
    Node *row = graph_reshape(g, graph_iota(g, &rows, 0), &rows);
    return called(graph_reduce(g, "sum", masked(g, compare(g, "eq", row, 0), x), 1), "first");
}

/* A statistic over the examples before this batch; 0 in front of the first. */
static Node *before(Graph *g, Node *statistic, const char *hint) {
    Node *some = called(compare(g, "gt", op0(g, "examples_before", (Attr){0}), 0), "some_before");
    return called(masked(g, some, statistic), hint);
}

/* The part that this batch has in all examples so far. */
static Node *part_of_all(Graph *g) {
    Node *rows = op0(g, "examples", (Attr){0});
    return called(divide(g, rows, add(g, op0(g, "examples_before", (Attr){0}), rows)), "part");
}

/* Takes the mean m and the variance v of a batch, which has the part p of all examples, into mean and std (Chan, Golub and
 * LeVeque):
 *
 *     mean' = mean + p (m - mean)
 *     std'^2 = std^2 + c,  c = p (v - std^2 + (1 - p) (m - mean)^2)
 *
 * Thousands of batches must not lose a rounding of a square root each, so std' is a sum too: std + c / (std + std'). */
static void merge(Graph *g, Node *mean, Node *std, Node *m, Node *v) {
    Node *part = part_of_all(g), *rest = sub(g, graph_constant(g, 1), part);
    Node *old_mean = before(g, mean, "mean_before"), *old_std = before(g, std, "std_before");
    Node *variance = called(mul(g, old_std, old_std), "variance"), *shift = called(sub(g, m, old_mean), "shift");
    Node *spread = add(g, sub(g, v, variance), mul(g, rest, mul(g, shift, shift)));
    Node *change = called(mul(g, part, spread), "change");
    Node *both = called(add(g, old_std, op1(g, "sqrt", add(g, variance, change))), "both_std");
    Node *divisor = select(g, compare(g, "gt", both, 0), both, graph_constant(g, 1));
    graph_assign(g, mean, add(g, old_mean, mul(g, part, shift)));
    graph_assign(g, std, add(g, old_std, divide(g, change, divisor)));
}

static void measure_field(Graph *g, int index, Node *mean, Node *std) {
    const char *name = g->module->fields.at[index].name;
    Node *x = graph_cast(g, graph_field(g, index), DT_F32), *first = first_example(g, x);
    Node *m = add(g, first, called(graph_batch_mean(g, sub(g, x, first)), "offset"));
    graph_name(m, arena_printf(g->arena, "%s_batch_mean", name));
    Node *difference = called(sub(g, x, m), "difference");
    merge(g, mean, std, m, called(graph_batch_mean(g, mul(g, difference, difference)), "batch_variance"));
}

static Node *find_statistic(Graph *g, const Field *field, const char *statistic) {
    const Module *module = g->module;
    const char *name = statistic_name(g->arena, field, statistic);
    for (int i = 0; i < module->weights.count; i++)
        if (module->weights.at[i].shared && strcmp(module->weights.at[i].name, name) == 0)
            return graph_weight(g, i);
    return NULL;
}

Graph *measure_graph(Module *module) {
    Graph *g = graph_new(module, false);
    for (int i = 0; i < module->fields.count; i++) {
        const Field *field = &module->fields.at[i];
        Node *mean = find_statistic(g, field, "mean"), *std = find_statistic(g, field, "std");
        if (!mean)
            continue;
        graph_at(g, mean->src);
        measure_field(g, i, mean, std);
    }
    for (int i = 0; i < module->whitenings.count; i++)
        measure_whitening(g, &module->whitenings.at[i]);
    graph_compact(g);
    return g->roots.count ? g : NULL;
}
