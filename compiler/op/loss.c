/* Losses and metrics: a number per example; training takes the mean over the batch. */
#include "op/compose.h"

#include <math.h>
#include <string.h>

/* ---- shapes of prediction and target ---- */

Node *mean_over_example(Graph *g, Node *x) {
    return x ? graph_mean(g, x, user_axes(x)) : NULL;
}

/* Sizes other than 1 agree in order: f32[1] matches a number, f32[2, 3] does not match f32[3, 2]. */
static bool match_but_for_ones(const Type *a, const Type *b) {
    int i = 0, j = 0;
    for (;;) {
        while (i < a->rank && a->dim[i] == 1)
            i++;
        while (j < b->rank && b->dim[j] == 1)
            j++;
        if (i == a->rank || j == b->rank)
            return i == a->rank && j == b->rank;
        if (a->dim[i++] != b->dim[j++])
            return false;
    }
}

/* The field that the value is, or is a part of; NULL: computed. */
static const Field *field_below(const Module *module, const Node *value) {
    while (value->op->cls == OP_VIEW)
        value = value->in[0];
    return value->op->table == TABLE_FIELD ? &module->fields.at[value->attr.index] : NULL;
}

bool is_learned(const Graph *g, const Node *root) {
    bool *needed = NEW_ARRAY(g->arena, bool, root->id + 1);
    needed[root->id] = true;
    for (int id = root->id; id >= 0; id--) {
        const Node *n = g->nodes.at[id];
        if (needed[id] && n->op->table == TABLE_WEIGHT && g->module->weights.at[n->attr.index].kind == WEIGHT_TRAINED)
            return true;
        for (int k = 0; needed[id] && k < n->inputs; k++)
            needed[n->in[k]->id] = true;
    }
    return false;
}

/* In other libraries the target comes first. */
static bool seems_swapped(const Graph *g, const Node *p, const Node *t) {
    return is_learned(g, t) && !is_learned(g, p);
}

static void doubt_order(Call *call, const Node *p, const Node *t) {
    const char *name = call->op->name;
    if (!seems_swapped(call->g, p, t))
        return;
    call_doubt(call, 0, call->src,
               arena_printf(call->g->arena,
                            "%s takes this for the prediction, and no weight is in it, but in its target: the two seem "
                            "to be swapped",
                            name),
               arena_printf(call->g->arena, "write %s(prediction, target)", name));
}

bool read_pair(Call *call, Node **prediction, Node **target) {
    Graph *g = call->g;
    Node *pair[] = {graph_cast(g, call_tensor(call, 0), DT_F32), graph_cast(g, call_tensor(call, 1), DT_F32)};
    if (!pair[0] || !pair[1] || !graph_share_batch(g, 2, pair))
        return false;
    Node *p = pair[0], *t = pair[1];
    if (!match_but_for_ones(&p->type, &t->type)) {
        call_error(call, 1, "the target is %s, but the prediction is %s", type_user_text(g->arena, &t->type),
                   type_user_text(g->arena, &p->type));
        diag_note(g->module->diag, p->src, "the prediction %s is made here", type_user_text(g->arena, &p->type));
        return false;
    }
    doubt_order(call, p, t);
    *prediction = p;
    *target = graph_reshape(g, t, &p->type);
    return true;
}

static Value build_mse(Call *call) {
    Node *p, *t;
    if (!read_pair(call, &p, &t))
        return value_tensor(NULL);
    Node *error = sub(call->g, p, t);
    return value_tensor(mean_over_example(call->g, mul(call->g, error, error)));
}

static Value build_mae(Call *call) {
    Node *p, *t;
    if (!read_pair(call, &p, &t))
        return value_tensor(NULL);
    return value_tensor(mean_over_example(call->g, op1(call->g, "abs", sub(call->g, p, t))));
}

/* With d = |p - t|:  d^2 / 2 up to delta, delta (d - delta / 2) beyond; its slope by d, min(d, delta), is continuous there. */
static Value build_huber(Call *call) {
    Graph *g = call->g;
    Node *p, *t, *delta = call_scalar(call, 2);
    if (!read_pair(call, &p, &t) || !delta)
        return value_tensor(NULL);
    Node *error = sub(g, p, t), *distance = op1(g, "abs", error);
    Node *near = scale(g, mul(g, error, error), 0.5);
    Node *far = mul(g, delta, sub(g, distance, scale(g, delta, 0.5)));
    return value_tensor(mean_over_example(g, select(g, op2(g, "le", distance, delta), near, far)));
}

/* ---- binary cross-entropy ---- */

/* log(x), at least -100; where it is cut off, log is not asked at all, so that its gradient stays finite. */
static Node *clamped_log(Graph *g, Node *x) {
    const double lowest = -100;
    Node *above = compare(g, "gt", x, exp(lowest));
    Node *safe = select(g, above, x, graph_constant(g, 1));
    return select(g, above, op1(g, "log", safe), graph_constant(g, lowest));
}

/* -(t log p + (1 - t) log(1 - p)) */
static Node *bce_of_probability(Graph *g, Node *p, Node *t) {
    Node *one = graph_constant(g, 1);
    Node *yes = mul(g, t, clamped_log(g, p));
    Node *no = mul(g, sub(g, one, t), clamped_log(g, sub(g, one, p)));
    return op1(g, "neg", add(g, yes, no));
}

/* With p = sigmoid(x):  softplus(x) - t x */
static Node *bce_of_logit(Graph *g, Node *x, Node *t) {
    return sub(g, op1(g, "softplus", x), mul(g, t, x));
}

/* A product, or a sum with one. */
static bool has_product(const Node *n, int depth) {
    while (n->op->cls == OP_VIEW)
        n = n->in[0];
    if (n->op->cls == OP_CONTRACT || depth == 0 || strcmp(n->op->name, "add") != 0)
        return n->op->cls == OP_CONTRACT;
    return has_product(n->in[0], depth - 1) || has_product(n->in[1], depth - 1);
}

bool is_of_layer(const Node *n) {
    enum { SUMS = 3 };
    return has_product(n, SUMS);
}

static void doubt_probability(Call *call, const Node *p) {
    if (is_of_layer(p))
        call_doubt(call, 0, call->src,
                   "bce takes probabilities, from 0 to 1, and this is what a layer gives, any number",
                   "add from_logits = true, for scores, or put sigmoid(...) around them");
}

static void doubt_target(Call *call, const Node *t) {
    const Field *field = field_below(call->module, t);
    if (!range_is_known(t->range) || range_within(t->range, range_of_dtype(DT_BOOL)))
        return;
    const char *text = arena_printf(call->g->arena,
                                    "bce takes targets from 0 to 1, and these may be from %lld to %lld: the loss of "
                                    "others has no lower end",
                                    (long long)t->range.low, (long long)t->range.high);
    const char *scaled = field && field->type.dtype == DT_U8 ? arena_printf(call->g->arena, "%s / 255", field->name)
                                                             : "divide them by the highest";
    const char *cure =
        arena_printf(call->g->arena, "scale them: %s; where they are only 0 and 1, a field is class[2]", scaled);
    call_doubt(call, 1, field ? field->src : call->src, text, cure);
}

static Value build_bce(Call *call) {
    Node *p, *t, *given = call_tensor(call, 1);
    bool from_logits = call_bool(call, 2);
    if (!read_pair(call, &p, &t))
        return value_tensor(NULL);
    doubt_target(call, given);
    if (!from_logits)
        doubt_probability(call, p);
    Node *loss = from_logits ? bce_of_logit(call->g, p, t) : bce_of_probability(call->g, p, t);
    return value_tensor(mean_over_example(call->g, loss));
}

/* ---- classes ---- */

Node *build_for_classes(Graph *g, Node *label, const Type *shape) {
    Attr attr = attr_shape(shape);
    attr.axes = 1u << (shape->rank - 1);
    return graph_node(g, "expand", attr, 1, &label);
}

/* f32, with a new last axis. */
static Node *one_hot(Graph *g, Node *label, int64_t classes) {
    Type shape = label->type;
    shape.dim[shape.rank++] = classes;
    Node *column = build_for_classes(g, label, &shape);
    return graph_cast(g, op2(g, "eq", column, graph_iota(g, &shape, shape.rank - 1)), DT_F32);
}

static const Field *class_field(const Module *module, const Node *label) {
    const Field *field = field_below(module, label);
    return field && field->kind == FIELD_CLASS ? field : NULL;
}

static Value build_one_hot(Call *call) {
    Node *label = call_tensor(call, 0);
    int64_t classes = call_size(call, 1);
    if (!label || classes < 0)
        return value_tensor(NULL);
    if (label->type.dtype != DT_I32 || label->type.rank == MAX_RANK) {
        call_error(call, 0, "one_hot needs class labels, found %s", type_user_text(call->g->arena, &label->type));
        return value_tensor(NULL);
    }
    const Field *field = class_field(call->module, label);
    if (field && classes < field->classes) {
        call_error(call, 1, "%lld classes, but '%s' is one of %d: the others would be all zeros", (long long)classes,
                   field->name, field->classes);
        diag_note(call->module->diag, field->src, "'%s' is declared here", field->name);
        return value_tensor(NULL);
    }
    return value_tensor(one_hot(call->g, label, classes));
}

/* Labels have the scores' shape without the last axis, which is the classes. */
static bool labels_fit(const Type *scores, const Type *label) {
    Type without_classes = *scores;
    without_classes.rank--;
    return label->dtype == DT_I32 && type_same_shape(&without_classes, label);
}

/* A field's labels know how many classes there are. Vocabularies of sequences may be padded. */
static bool classes_agree(Call *call, const Node *scores, const Node *label) {
    const Module *module = call->module;
    const Field *field = class_field(module, label);
    int64_t scored = scores->type.dim[last_axis(scores)];
    if (!field || scored == field->classes || (field->type.rank > 1 && scored > field->classes))
        return true;
    call_error(call, 0, "%s scores %lld classes, but '%s' is one of %d", type_user_text(call->g->arena, &scores->type),
               (long long)scored, field->name, field->classes);
    diag_note(module->diag, field->src, "'%s' is declared here", field->name);
    return false;
}

/* Integers of the data may be none of the classes: labels that nothing bounds are refused. What is computed has the bounds of
 * its operands. */
static bool labels_are_classes(Call *call, const Node *scores, const Node *label) {
    const Field *field = field_below(call->module, label);
    const long long classes = scores->type.dim[last_axis(scores)];
    if (label->range.low > INT32_MIN || label->range.high < INT32_MAX)
        return classes_agree(call, scores, label);
    if (!field) {
        call_error(call, 1, "these labels may be any integers; write minimum(maximum(label, 0), %lld)", classes - 1);
        return false;
    }
    call_error(call, 1, "'%s' is i32, any integer, and a label is one of the %lld classes from 0 on", field->name,
               classes);
    diag_note(call->module->diag, field->src, "write '%s' as class[%lld]: then the data are checked", field->name,
              classes);
    return false;
}

/* A score for each class; one class would always be the right one. */
static bool scores_classes(Call *call, const Node *scores) {
    if (user_axes(scores) && scores->type.dim[last_axis(scores)] > 1)
        return true;
    call_error(call, 0,
               user_axes(scores)
                   ? "this is one score, which is always the highest: a number is learned with mse(y, target), "
                     "two classes with bce(y, target, from_logits = true)"
                   : "expected a score for each class, found one number");
    return false;
}

/* Labels first, as in Keras and scikit-learn: they fit where the scores are asked for in no shape. */
static bool labels_come_first(Call *call, const Node *first, const Node *second) {
    Graph *g = call->g;
    const char *name = call->op->name;
    if (!user_axes(second) || type_same_shape(&first->type, &second->type) || !seems_swapped(g, first, second))
        return false;
    call_error(call, 0,
               "%s takes the scores first; in this %s no weight is, but in its target: write %s(scores, label)", name,
               type_user_text(g->arena, &first->type), name);
    return true;
}

/* A field that is compared as it stands in the data is looked at when a training begins. */
static void mark_distribution(Call *call, const Node *target) {
    if (target->op->table == TABLE_FIELD)
        call->module->fields.at[target->attr.index].distribution = true;
}

bool read_scores(Call *call, Node **scores, Node **target) {
    Graph *g = call->g;
    Node *pair[] = {graph_cast(g, call_tensor(call, 0), DT_F32), call_tensor(call, 1)};
    if (!pair[0] || !pair[1] || !graph_share_batch(g, 2, pair))
        return false;
    Node *s = pair[0], *t = pair[1];
    if (labels_come_first(call, call_tensor(call, 0), t) || !scores_classes(call, s))
        return false;
    doubt_order(call, s, t);
    bool distribution = type_same_shape(&s->type, &t->type);
    if (!distribution && !labels_fit(&s->type, &t->type)) {
        call_error(call, 1, "%s is neither a class for each of the scores %s nor a distribution of the same shape",
                   type_user_text(g->arena, &t->type), type_user_text(g->arena, &s->type));
        diag_note(g->module->diag, s->src, "the scores are made here%s",
                  t->type.dtype == DT_I32 && s->type.rank > t->type.rank + 1
                      ? "; for a score for each class, flatten what they are made of"
                      : "");
        return false;
    }
    *scores = s;
    if (distribution)
        mark_distribution(call, t);
    *target = distribution ? graph_cast(g, t, DT_F32) : t;
    return distribution || labels_are_classes(call, s, t);
}

static bool is_zero(const Node *n) {
    double value;
    return graph_constant_value(n, &value) && value == 0;
}

/* (1 - e) q + e / classes */
static Node *smoothed(Graph *g, Node *q, Node *smoothing, int64_t classes) {
    if (is_zero(smoothing))
        return q;
    Node *kept = mul(g, q, sub(g, graph_constant(g, 1), smoothing));
    return add(g, kept, scale(g, smoothing, 1 / (double)classes));
}

/* With s = x - max(x) and the target distribution q:  log(sum(exp(s))) sum(q) - sum(q s).
 * Its gradient is softmax(x) sum(q) - q, no reduction more; labels' q sums to 1. */
static Node *cross_entropy(Graph *g, Node *x, Node *q, bool sums_to_one) {
    unsigned classes = 1u << last_axis(x);
    Node *s = build_shifted(g, x, classes);
    Node *log_sum = op1(g, "log", graph_reduce(g, "sum", op1(g, "exp", s), classes));
    if (!sums_to_one)
        log_sum = mul(g, log_sum, graph_reduce(g, "sum", q, classes));
    Node *score = graph_reduce(g, "sum", mul(g, q, s), classes);
    score->hint = "target_score";
    return sub(g, log_sum, score);
}

static bool is_product(const Node *n) {
    while (n->op->flags & OP_CONTIGUOUS)
        n = n->in[0];
    return n->op->cls == OP_CONTRACT;
}

/* `wide` where it is a score, elsewhere a number far below any. A product's columns are all finite if the scores are, so that
 * the others can be lowered instead of replaced: their gradient is 0 as it is, and no element is asked for. */
static Node *lower_others(Graph *g, Node *wide, Node *is_score, double far_below) {
    Node *low = graph_constant(g, far_below);
    return is_product(wide) ? add(g, wide, select(g, is_score, graph_constant(g, 0), low))
                            : select(g, is_score, wide, low);
}

/* Scores that are the first of a few more, which a product has for tensor cores' sake (unembed): all of them, the others far
 * below any score. So what is read and the gradient that is written have the product's own rows. */
static Node *with_filler(Graph *g, Node *x) {
    enum { MOST_FILLER = 64 };
    const double far_below = -1e30; /* not infinite: it is multiplied by the target's 0 */
    int axis = last_axis(x);
    Node *wide = !strcmp(x->op->name, "slice") ? x->in[0] : x;
    int64_t filler = wide->type.dim[axis] - x->type.dim[axis];
    for (int k = 0; k < axis; k++)
        filler = wide->type.dim[k] == x->type.dim[k] ? filler : 0;
    if (filler <= 0 || filler >= MOST_FILLER || x->attr.offset[axis] != 0)
        return x;
    Node *count = graph_whole(g, (int32_t)x->type.dim[axis]);
    Node *is_score = op2(g, "lt", graph_iota(g, &wide->type, axis), count);
    return lower_others(g, wide, is_score, far_below);
}

/* A number for each class; false after a user error. */
static bool read_class_weights(Call *call, const Node *x, const Node *t, Node **weights) {
    int64_t classes = x->type.dim[last_axis(x)];
    if (call->args[3].kind == VALUE_NONE)
        return true;
    *weights = graph_cast(call->g, call_tensor(call, 3), DT_F32);
    if (!*weights)
        return false;
    const Type *type = &(*weights)->type;
    bool fits = !type->batched && type->rank == 1 && type->dim[0] == classes;
    if (t->type.dtype != DT_I32)
        call_error(call, 3, "class_weights are of labels, and the target is %s",
                   type_user_text(call->g->arena, &t->type));
    else if (!fits)
        call_error(call, 3, "class_weights are f32[%lld], a number for each class; this is %s%s", (long long)classes,
                   type_user_text(call->g->arena, type), type->batched ? " of each example" : "");
    return fits && t->type.dtype == DT_I32;
}

/* The weight of each label's class. */
static Node *weight_of_label(Graph *g, Node *label, Node *weights) {
    Node *q = one_hot(g, label, weights->type.dim[0]);
    return graph_reduce(g, "sum", mul(g, q, weights), 1u << last_axis(q));
}

/* Of scores and labels, or a distribution; `weights` of the classes, or NULL. */
static Node *loss_of_classes(Graph *g, Node *x, Node *t, Node *smoothing, Node *weights) {
    bool labels = t->type.dtype == DT_I32;
    x = labels && is_zero(smoothing) ? with_filler(g, x) : x;
    int64_t classes = x->type.dim[last_axis(x)];
    Node *q = smoothed(g, labels ? one_hot(g, t, classes) : t, smoothing, classes);
    Node *loss = cross_entropy(g, x, q, labels);
    return mean_over_example(g, weights ? mul(g, weight_of_label(g, t, weights), loss) : loss);
}

static Value build_cross_entropy(Call *call) {
    Node *x, *t, *smoothing = call_scalar(call, 2), *weights = NULL;
    if (!read_scores(call, &x, &t) || !smoothing || !read_class_weights(call, x, t, &weights))
        return value_tensor(NULL);
    if (!is_zero(smoothing) && !call_parts_no_batch(call, 2, x, 1u << last_axis(x)))
        return value_tensor(NULL);
    return value_tensor(loss_of_classes(call->g, x, t, smoothing, weights));
}

Node *build_plain_cross_entropy(Call *call) {
    Node *x, *t, *none = graph_constant(call->g, 0);
    return read_scores(call, &x, &t) ? loss_of_classes(call->g, x, t, none, NULL) : NULL;
}

static Value build_accuracy(Call *call) {
    Graph *g = call->g;
    Node *x, *t;
    if (!read_scores(call, &x, &t))
        return value_tensor(NULL);
    Node *label = t->type.dtype == DT_I32 ? t : build_arg_max(g, t, last_axis(t), "target");
    Node *right = op2(g, "eq", build_arg_max(g, x, last_axis(x), "predicted"), label);
    return value_tensor(mean_over_example(g, graph_cast(g, right, DT_F32)));
}

const OpDef op_mse = {
    .name = "mse",
    .cls = OP_LIBRARY,
    .kind = KIND_LOSS,
    .title = "MSE",
    .doc = "The mean over the example's elements of (prediction - target)^2.",
    .example = "loss = mse(y, target)",
    .signature = "prediction, target",
    .build = build_mse,
};

const OpDef op_mae = {
    .name = "mae",
    .cls = OP_LIBRARY,
    .kind = KIND_LOSS,
    .title = "MAE",
    .doc = "The mean over the example's elements of |prediction - target|.",
    .example = "loss = mae(y, target)",
    .signature = "prediction, target",
    .build = build_mae,
};

const OpDef op_huber = {
    .name = "huber",
    .cls = OP_LIBRARY,
    .kind = KIND_LOSS,
    .doc = "The mean over the example's elements of d^2 / 2 where d = |prediction - target| is at most delta, of "
           "delta (d - delta / 2) elsewhere.",
    .example = "loss = huber(y, target)",
    .signature = "prediction, target, delta: number > 0 = 1",
    .build = build_huber,
};

const OpDef op_bce = {
    .name = "bce",
    .cls = OP_LIBRARY,
    .kind = KIND_LOSS,
    .title = "BCE",
    .doc = "Binary cross-entropy: the mean of -(t log p + (1 - t) log(1 - p)), each log at least -100. "
           "With from_logits the prediction is x and p = sigmoid(x), computed as softplus(x) - t x.",
    .example = "loss = bce(y, target, from_logits = true)",
    .signature = "prediction, target, from_logits: bool = false",
    .build = build_bce,
};

const OpDef op_one_hot = {
    .name = "one_hot",
    .cls = OP_LIBRARY,
    .doc = "A new last axis: 1 at the label's class, 0 elsewhere.",
    .example = "y = one_hot(label, 3)",
    .signature = "label, classes: size",
    .build = build_one_hot,
};

const OpDef op_cross_entropy = {
    .name = "cross_entropy",
    .cls = OP_LIBRARY,
    .kind = KIND_LOSS,
    .doc = "-sum(q log_softmax(x)) over the last axis. The target is a class label, or a distribution over "
           "the classes. With label_smoothing e, q becomes (1 - e) q + e / classes. Further axes are averaged. "
           "class_weights, "
           "a number for each class, multiply it by that of the label; means are not divided by their sum.",
    .example = "loss = cross_entropy(logits, label)",
    .signature = "x, target, label_smoothing: number in [0, 1] = 0, class_weights = none",
    .build = build_cross_entropy,
};

const OpDef op_accuracy = {
    .name = "accuracy",
    .cls = OP_LIBRARY,
    .kind = KIND_METRIC,
    .flags = OP_RISES,
    .title = "accuracy_score",
    .doc = "1 where the largest score along the last axis is the target's class, else 0. Further axes are averaged.",
    .example = "metric = accuracy(logits, label)",
    .signature = "x, target",
    .build = build_accuracy,
};
