/* Metrics over a set of examples, which means of batches are not: evaluation keeps of each example what is compared, and the
 * runtime's function of the same name (runtime/session/metrics.c) computes the metric of all, as scikit-learn defines it. */
#include "op/compose.h"

/* Of values of each example; NULL among them after a user error. */
static Value metric_of(Call *call, SetMetric metric) {
    for (int k = 0; k < metric.values; k++) {
        if (!metric.value[k])
            return value_error();
        if (!metric.value[k]->type.batched) {
            call_error(call, 0, "a metric compares examples, and this is the same for all of them");
            return value_error();
        }
    }
    SetMetric *made = NEW(call->g->arena, SetMetric);
    *made = metric;
    made->function = call->op->name;
    return (Value){.kind = VALUE_METRIC, .metric = made, .src = call->src};
}

/* ---- numbers ---- */

static Value build_of_numbers(Call *call) {
    Node *p, *t;
    if (!read_pair(call, &p, &t))
        return value_error();
    return metric_of(call, (SetMetric){.value = {p, t}, .values = 2});
}

const OpDef op_rmse = {
    .name = "rmse",
    .cls = OP_LIBRARY,
    .kind = KIND_METRIC,
    .title = "root_mean_squared_error",
    .doc =
        "Over a set of examples: the square root of the mean of (prediction - target)^2. Where an example has several "
        "numbers, the mean of each one's.",
    .example = "metric = rmse(y, target)",
    .signature = "prediction, target",
    .build = build_of_numbers,
};

const OpDef op_r2 = {
    .name = "r2",
    .cls = OP_LIBRARY,
    .kind = KIND_METRIC,
    .flags = OP_RISES,
    .title = "r2_score",
    .doc = "Over a set of examples: 1 - sum((target - prediction)^2) / sum((target - m)^2), m being the target's mean "
           "over "
           "the set: 1 is best, 0 is what predicting m would be. Of a target that is the same in all examples 0, or 1 "
           "where all is met. Where an example has several numbers, the mean of each one's.",
    .example = "metric = r2(y, target)",
    .signature = "prediction, target",
    .build = build_of_numbers,
};

const OpDef op_mape = {
    .name = "mape",
    .cls = OP_LIBRARY,
    .kind = KIND_METRIC,
    .title = "mean_absolute_percentage_error",
    .doc =
        "Over a set of examples: the mean of |prediction - target| / |target|, 0.1 being ten percent. A target below "
        "2.2e-16 counts as that, so that one of 0 makes it huge.",
    .example = "metric = mape(y, target)",
    .signature = "prediction, target",
    .build = build_of_numbers,
};

/* ---- scores ---- */

/* Scores of classes and their labels; or numbers and what they are compared with, each element a yes or no: classes is 0. */
typedef struct Compared {
    Node *x, *target;
    int classes;
} Compared;

static bool read_compared(Call *call, Compared *c) {
    const Node *x = call_tensor(call, 0), *t = call_tensor(call, 1);
    if (!x || !t)
        return false;
    int rank = x->type.rank - x->type.batched, labels = t->type.rank - t->type.batched;
    int64_t last = x->type.rank ? x->type.dim[x->type.rank - 1] : 1;
    bool classes = t->type.dtype == DT_I32 && rank == labels + 1 && last > 1;
    c->classes = classes ? (int)last : 0;
    return classes ? read_scores(call, &c->x, &c->target) : read_pair(call, &c->x, &c->target);
}

static bool is_given(const Call *call, int arg) {
    return call->args[arg].src.source;
}

/* Scores of classes become the class of the highest, numbers become 1 where they are above the threshold, else 0. A single
 * number for each example tells two classes apart. */
static bool read_classes(Call *call, int threshold, Compared *c) {
    Graph *g = call->g;
    Node *least = call_scalar(call, threshold);
    if (!read_compared(call, c) || !least)
        return false;
    if (c->classes && is_given(call, threshold)) {
        call_error(call, threshold, "of scores of classes, the highest is taken: there is no threshold");
        return false;
    }
    if (c->classes) {
        c->x = graph_cast(g, build_arg_max(g, c->x, last_axis(c->x), "predicted"), DT_F32);
        c->target = graph_cast(g, c->target, DT_F32);
        return true;
    }
    if (is_of_layer(c->x) && !is_given(call, threshold))
        call_doubt(call, 0, call->src, "this is what a layer gives, any number, and is compared with the threshold 0.5",
                   "write threshold = 0, for scores, or put sigmoid(...) around them");
    c->classes = type_extent(&c->x->type, 1, c->x->type.rank) == 1 ? 2 : 0;
    c->x = graph_cast(g, op2(g, "gt", c->x, least), DT_F32);
    c->target = graph_cast(g, compare(g, "gt", c->target, 0.5), DT_F32);
    return true;
}

static Value build_of_counts(Call *call) {
    enum { AVERAGE = 2, THRESHOLD };
    Compared c;
    if (!read_classes(call, THRESHOLD, &c))
        return value_error();
    const int average = call_word(call, AVERAGE, c.classes == 2 ? AVERAGE_BINARY : AVERAGE_MACRO);
    if (average == AVERAGE_BINARY && c.classes != 2) {
        call_error(call, AVERAGE, "\"binary\" is of two classes, the second being the one to be found%s",
                   c.classes ? arena_printf(call->g->arena, ", and there are %d", c.classes) : "");
        return value_error();
    }
    SetMetric metric = {.value = {c.x, c.target}, .values = 2, .classes = c.classes, .average = (Average)average};
    return metric_of(call, metric);
}

/* The words in the order of Average. */
#define COUNTS_SIGNATURE                                                                                               \
    "x, target, average: \"binary\" or \"macro\" or \"micro\" or \"weighted\" = none, threshold: number = 0.5"
#define COUNTS_DOC                                                                                                     \
    " The target is a class label, and the highest of the scores x the prediction; or x and the target are numbers, "  \
    "predicted where x is above the threshold, found where the target is above 0.5. Of two classes the second is "     \
    "meant (average \"binary\"), of more the mean of all that occur (\"macro\"), that of all counted together "        \
    "(\"micro\"), or the mean by how many examples each has (\"weighted\"). 0 where nothing is to be divided by."

const OpDef op_precision = {
    .name = "precision",
    .cls = OP_LIBRARY,
    .kind = KIND_METRIC,
    .flags = OP_RISES,
    .title = "precision_score",
    .doc = "Over a set of examples: how many of those predicted to be of a class are." COUNTS_DOC,
    .example = "metric = precision(logits, label)",
    .signature = COUNTS_SIGNATURE,
    .build = build_of_counts,
};

const OpDef op_recall = {
    .name = "recall",
    .cls = OP_LIBRARY,
    .kind = KIND_METRIC,
    .flags = OP_RISES,
    .title = "recall_score",
    .doc = "Over a set of examples: how many of a class's are predicted to be." COUNTS_DOC,
    .example = "metric = recall(logits, label)",
    .signature = COUNTS_SIGNATURE,
    .build = build_of_counts,
};

const OpDef op_f1 = {
    .name = "f1",
    .cls = OP_LIBRARY,
    .kind = KIND_METRIC,
    .flags = OP_RISES,
    .title = "f1_score",
    .doc = "Over a set of examples: 2 precision recall / (precision + recall) of a class." COUNTS_DOC,
    .example = "metric = f1(logits, label, average = \"macro\")",
    .signature = COUNTS_SIGNATURE,
    .build = build_of_counts,
};

static Value build_confusion(Call *call) {
    enum { THRESHOLD = 2, MOST_CLASSES = 1000 };
    Compared c;
    if (!read_classes(call, THRESHOLD, &c))
        return value_error();
    if (c.classes == 0 || c.classes > MOST_CLASSES) {
        call_error(call, 0, "a confusion matrix is of 2 to %d classes%s", MOST_CLASSES,
                   c.classes ? arena_printf(call->g->arena, ", and there are %d", c.classes)
                             : ", and this is several numbers, each a yes or no");
        return value_error();
    }
    return metric_of(call, (SetMetric){.value = {c.x, c.target}, .values = 2, .table = true, .classes = c.classes});
}

const OpDef op_confusion = {
    .name = "confusion",
    .cls = OP_LIBRARY,
    .kind = KIND_METRIC,
    .title = "confusion_matrix",
    .doc =
        "Over a set of examples, the confusion matrix: row i, column j is how many of class i are predicted to be of "
        "class j. A table beside the metrics, one in a model. x, target and threshold are as of precision.",
    .example = "metric = [accuracy(logits, label), confusion(logits, label)]",
    .signature = "x, target, threshold: number = 0.5",
    .build = build_confusion,
};

/* With s the target's score, scores that are higher, or as high and before it, are ahead: as for accuracy, which is the case
 * k = 1, the first of equal ones comes first. */
static Value build_top_k_accuracy(Call *call) {
    Graph *g = call->g;
    Node *x, *t;
    int64_t k = call_size(call, 2);
    if (k < 0 || !read_scores(call, &x, &t))
        return value_tensor(NULL);
    int axis = last_axis(x);
    if (k >= x->type.dim[axis]) {
        call_error(call, 2, "the target is among the top %lld of %lld classes always; write k = %lld, or less",
                   (long long)k, (long long)x->type.dim[axis], (long long)x->type.dim[axis] - 1);
        return value_tensor(NULL);
    }
    Node *label = t->type.dtype == DT_I32 ? t : build_arg_max(g, t, axis, "target");
    Node *place = graph_iota(g, &x->type, axis), *target = build_for_classes(g, label, &x->type);
    Node *own = masked(g, op2(g, "eq", place, target), x);
    Node *score = graph_reduce_keep(g, "sum", own, 1u << axis);
    Node *before = op2(g, "and", op2(g, "eq", x, score), op2(g, "lt", place, target));
    Node *ahead = graph_cast(g, op2(g, "or", op2(g, "gt", x, score), before), DT_F32);
    Node *found = compare(g, "lt", graph_reduce(g, "sum", ahead, 1u << axis), (double)k);
    return value_tensor(mean_over_example(g, graph_cast(g, found, DT_F32)));
}

const OpDef op_top_k_accuracy = {
    .name = "top_k_accuracy",
    .cls = OP_LIBRARY,
    .kind = KIND_METRIC,
    .flags = OP_RISES,
    .title = "top_k_accuracy_score",
    .doc = "1 where the target's class is among the k largest scores along the last axis, else 0; of equal scores the "
           "first come first. Further axes are averaged.",
    .example = "metric = top_k_accuracy(logits, label, k = 2)",
    .signature = "x, target, k: size = 5",
    .build = build_top_k_accuracy,
};

/* ---- ranks ---- */

/* Scores of several classes are compared with those of other examples, class by class. */
static Value build_of_ranks(Call *call) {
    Compared c;
    if (!read_compared(call, &c))
        return value_error();
    if (c.classes > 2 && is_of_layer(c.x))
        call_doubt(
            call, 0, call->src,
            "a class's scores are compared between examples, and what a layer gives compares only classes of one",
            "put softmax(...) around them");
    Node *target = c.classes ? graph_cast(call->g, c.target, DT_F32)
                             : graph_cast(call->g, compare(call->g, "gt", c.target, 0.5), DT_F32);
    return metric_of(call, (SetMetric){.value = {c.x, target}, .values = 2, .classes = c.classes});
}

#define RANKS_DOC                                                                                                      \
    " The target is a class label and p the probabilities of classes, or other scores that compare between examples: " \
    "of "                                                                                                              \
    "two classes p[1] - p[0] decides, of more the mean of each class against the others, by its own; or p and the "    \
    "target are numbers, the target found where it is above 0.5, and the mean is over these. Equal scores are at one " \
    "place. Classes without examples do not count; "

const OpDef op_roc_auc = {
    .name = "roc_auc",
    .cls = OP_LIBRARY,
    .kind = KIND_METRIC,
    .flags = OP_RISES,
    .title = "roc_auc_score",
    .doc =
        "Over a set of examples: the area under the curve of true over false positives, the probability that one to be "
        "found has a higher score than another." RANKS_DOC "if all examples are of one, there is no such number.",
    .example = "metric = roc_auc(softmax(logits), label)",
    .signature = "p, target",
    .build = build_of_ranks,
};

const OpDef op_average_precision = {
    .name = "average_precision",
    .cls = OP_LIBRARY,
    .kind = KIND_METRIC,
    .flags = OP_RISES,
    .title = "average_precision_score",
    .doc = "Over a set of examples: the sum over all thresholds, from high to low, of precision times what recall "
           "gains." RANKS_DOC "if there is nothing to be found, 0.",
    .example = "metric = average_precision(softmax(logits), label)",
    .signature = "p, target",
    .build = build_of_ranks,
};

static Value build_perplexity(Call *call) {
    return metric_of(call, (SetMetric){.value = {build_plain_cross_entropy(call)}, .values = 1});
}

const OpDef op_perplexity = {
    .name = "perplexity",
    .cls = OP_LIBRARY,
    .kind = KIND_METRIC,
    .title = "perplexity",
    .doc = "Over a set of examples: exp of the mean of cross_entropy(x, target).",
    .example = "metric = perplexity(logits, label)",
    .signature = "x, target",
    .build = build_perplexity,
};
