/* Metrics over a set of examples, which means of batches are not: evaluation keeps of each example what is compared, and the
 * runtime's function of the same name (runtime/session/metrics.c) computes the metric of all, as scikit-learn defines it. */
#include "op/compose.h"
#include "op/table.h"

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

static Value build_perplexity(Call *call) {
    Value args[] = {call->args[0], call->args[1], value_number(0)};
    Call loss = *call;
    loss.args = args;
    loss.count = 3;
    Value value = op_find("cross_entropy")->build(&loss);
    return metric_of(call, (SetMetric){.value = {value.node}, .values = 1});
}

const OpDef op_perplexity = {
    .name = "perplexity",
    .cls = OP_LIBRARY,
    .kind = KIND_METRIC,
    .doc = "Over a set of examples: exp of the mean of cross_entropy(x, target).",
    .example = "metric = perplexity(logits, label)",
    .signature = "x, target",
    .build = build_perplexity,
};
