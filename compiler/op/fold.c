/* Formulas that fold axes: what `sum` and `max` give, and a few operations on it. */
#include "op/compose.h"

#include <float.h>
#include <math.h>

/* How many elements become one. */
static double folded_count(const Folding *f) {
    double count = 1;
    for (int k = 0; k < f->x->type.rank; k++)
        count *= f->axes >> k & 1 ? (double)f->x->type.dim[k] : 1;
    return count;
}

/* The p-th root of a sum s >= 0. Its gradient is 0 where s is 0, not 0 times an infinite slope. */
static Node *finite_root(Graph *g, Node *s, double p) {
    Node *positive = compare(g, "gt", s, 0), *base = select(g, positive, s, graph_constant(g, 1));
    return masked(g, positive, p == 2 ? op1(g, "sqrt", base) : op2(g, "pow", base, graph_constant(g, 1 / p)));
}

/* ---- logsumexp ---- */

/* m + log(sum(exp(x - m))), whatever m: the largest element, where it is finite. Its gradient is exp(x) / sum(exp(x)). */
static Value build_logsumexp(Call *call) {
    Graph *g = call->g;
    Folding f;
    if (!call_folding(call, &f))
        return value_tensor(NULL);
    Node *largest = op1(g, "stop_gradient", graph_reduce(g, "max", f.x, f.axes));
    Node *peak = masked(g, compare(g, "le", op1(g, "abs", largest), FLT_MAX), largest);
    Attr everywhere = attr_shape(&f.x->type);
    everywhere.axes = f.axes;
    Node *shifted = sub(g, f.x, f.axes ? graph_node(g, "expand", everywhere, 1, &peak) : peak);
    Node *total = graph_reduce(g, "sum", op1(g, "exp", shifted), f.axes);
    return value_tensor(folding_value(call, &f, add(g, peak, op1(g, "log", total)), 2));
}

/* ---- variance and deviation ---- */

/* sum((x - mean)^2) / (n - correction); NULL after a user error. */
static Node *variance(Call *call, Folding *f) {
    Graph *g = call->g;
    double correction = call_number(call, 2);
    if (!call_folding(call, f) || isnan(correction) || !call_parts_no_batch(call, 0, f->x, f->axes))
        return NULL;
    double count = folded_count(f);
    if (correction >= count) {
        call_error(call, 2, "the correction %g leaves nothing of %g elements", correction, count);
        return NULL;
    }
    Node *total = graph_reduce_keep(g, "sum", f->x, f->axes);
    Node *difference = sub(g, f->x, mul(g, total, graph_mean_factor(g, count)));
    Node *squares = graph_reduce(g, "sum", mul(g, difference, difference), f->axes);
    return scale(g, squares, 1 / (count - correction));
}

static Value build_variance(Call *call) {
    Folding f;
    Node *value = variance(call, &f);
    return value_tensor(value ? folding_value(call, &f, value, 3) : NULL);
}

static Value build_std(Call *call) {
    Folding f;
    Node *value = variance(call, &f);
    return value_tensor(value ? folding_value(call, &f, finite_root(call->g, value, 2), 3) : NULL);
}

/* ---- norm ---- */

/* (sum |x|^p)^(1 / p). The slope of |x|^p at 0 is 0 for p > 1, and that of |x| is taken as 0. */
static Value build_norm(Call *call) {
    Graph *g = call->g;
    Folding f;
    double p = call_number(call, 2);
    if (!call_folding(call, &f) || isnan(p))
        return value_tensor(NULL);
    Node *size = op1(g, "abs", f.x);
    Node *power = p == 1 ? size : p == 2 ? mul(g, f.x, f.x) : op2(g, "pow", size, graph_constant(g, p));
    Node *total = graph_reduce(g, "sum", power, f.axes), *norm = p == 1 ? total : finite_root(g, total, p);
    norm->hint = "norm";
    return value_tensor(folding_value(call, &f, norm, 3));
}

/* ---- conditions ---- */

/* Some or all of them hold, as the largest or the smallest of 0 and 1 says. */
static Value condition_over_axes(Call *call, const char *extremum) {
    const Node *condition = call_tensor(call, 0);
    Folding f;
    if (condition && condition->type.dtype != DT_BOOL) {
        call_error(call, 0, "%s needs a condition such as x > 0, found %s", call->op->name,
                   type_user_text(call->g->arena, &condition->type));
        return value_tensor(NULL);
    }
    if (!call_folding(call, &f))
        return value_tensor(NULL);
    Node *decisive = graph_reduce(call->g, extremum, f.x, f.axes);
    return value_tensor(folding_value(call, &f, compare(call->g, "gt", decisive, 0), 2));
}

static Value build_any(Call *call) {
    return condition_over_axes(call, "max");
}

static Value build_all(Call *call) {
    return condition_over_axes(call, "min");
}

const OpDef op_logsumexp = {
    .name = "logsumexp",
    .cls = OP_LIBRARY,
    .doc = "log(sum(exp(x))) over the axes, by default all, without overflow. Where all elements are -infinity, so is "
           "the result.",
    .example = "y = logsumexp(x, axis = 0)",
    .signature = AXES_SIGNATURE,
    .build = build_logsumexp,
};

const OpDef op_variance = {
    .name = "variance",
    .cls = OP_LIBRARY,
    .doc = "The sum of (x - mean)^2 over the axes, by default all, divided by their n elements less `correction`: with "
           "0, as "
           "NumPy has it, the variance of these numbers; with 1, as PyTorch has it, that of what they are a sample of.",
    .example = "y = variance(x, axis = 0)",
    .signature = "x, axis: axes = none, correction: number >= 0 = 0, keep: bool = false",
    .build = build_variance,
};

const OpDef op_std = {
    .name = "std",
    .cls = OP_LIBRARY,
    .doc = "The root of `variance`, the standard deviation. The gradient is 0 where it is 0.",
    .example = "y = std(x, axis = 0)",
    .signature = "x, axis: axes = none, correction: number >= 0 = 0, keep: bool = false",
    .build = build_std,
};

const OpDef op_norm = {
    .name = "norm",
    .cls = OP_LIBRARY,
    .doc = "(sum of |x|^p)^(1 / p) over the axes, by default all: the Euclidean length for p = 2. The gradient is 0 "
           "where it "
           "is 0.",
    .example = "y = norm(x, axis = 0)",
    .signature = "x, axis: axes = none, p: number >= 1 = 2, keep: bool = false",
    .build = build_norm,
};

const OpDef op_any = {
    .name = "any",
    .cls = OP_LIBRARY,
    .doc = "Whether the condition holds somewhere along the axes, by default all: a condition.",
    .example = "y = where(any(x > 1), 0, x)",
    .signature = "condition, axis: axes = none, keep: bool = false",
    .build = build_any,
};

const OpDef op_all = {
    .name = "all",
    .cls = OP_LIBRARY,
    .doc = "Whether the condition holds everywhere along the axes, by default all: a condition.",
    .example = "y = where(all(x < 1), x, 0)",
    .signature = "condition, axis: axes = none, keep: bool = false",
    .build = build_all,
};
