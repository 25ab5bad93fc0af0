/* The loss and the metrics: numbers of each example, of which programs report means, and metrics over a set of examples. */
#include "front/check.h"
#include "front/lower.h"

#include "mtc.h"
#include "op/table.h"

/* `loss = "mse"`, as Keras has it. */
static void note_called(Lowering *l, Span at, const char *name) {
    const OpDef *op = op_find(name);
    const char *advice = op ? signature_of_op(l->arena, op)->text : call_advice(l->arena, name);
    if (advice)
        diag_note(l->diag, at, "it is a call of a function: %s", advice);
    else
        diag_note(l->diag, at,
                  "it is a call of a function: mse(prediction, target), cross_entropy(scores, label), ...");
}

Node *per_batch(Lowering *l, const char *what, const Value *v, Span at) {
    if (v->kind == VALUE_ERROR)
        return NULL;
    Node *node = v->kind == VALUE_TENSOR ? v->node : NULL;
    if (!node) {
        diag_error(l->diag, at, "the %s is one number for each example, not %s", what, value_kind_text(l->arena, v));
        if (v->kind == VALUE_STRING)
            note_called(l, at, v->string);
        return NULL;
    }
    if (node->type.rank != node->type.batched) {
        diag_error(l->diag, at, "the %s is one number for each example, not %s; reduce it with mean(...) or sum(...)",
                   what, type_user_text(l->arena, &node->type));
        return NULL;
    }
    Span before = graph_at(l->g, at);
    Node *number = graph_cast(l->g, node, DT_F32);
    Node *mean = l->weight ? weighted_mean(l, number) : graph_batch_mean(l->g, number);
    graph_at(l->g, before);
    return mean;
}

static const char *report_name(const Expr *e) {
    while (e->kind == EXPR_CALL && e->op && e->op->flags & OP_SHOWS && e->bound[0])
        e = e->bound[0];
    return e->kind == EXPR_CALL || e->kind == EXPR_NAME ? e->name.text : "metric";
}

/* What is reported, under which name. */
typedef struct Metric {
    const char *name;
    const Expr *e;
    Value value;
} Metric;

static void name_report(Lowering *l, const Metric *metric) {
    const char *name = metric->name;
    Span src = metric->e->span;
    for (int i = 0; i < l->module->reports.count; i++)
        if (strcmp(l->module->reports.at[i].name, name) == 0) {
            diag_error(l->diag, src, "two metrics are called '%s'; give this one a name in the model block", name);
            diag_note(l->diag, l->module->reports.at[i].src, "the first one is here");
        }
    if (l->module->reports.count == MTC_MAX_REPORTS)
        diag_error(l->diag, src, "a model reports at most %d numbers", MTC_MAX_REPORTS);
    Report report = {.name = name, .rises = metric->value.rises, .src = src, .over_set = metric->value.metric};
    VEC_PUSH(l->arena, &l->module->reports, report);
    l->module->means += !report.over_set;
}

static Node *add_mean(Lowering *l, int index, const Metric *metric) {
    Node *mean = per_batch(l, index ? "metric" : "loss", &metric->value, metric->e->span);
    if (l->naming)
        name_report(l, metric);
    if (!mean || index >= l->module->reports.count)
        return NULL;
    Span before = graph_at(l->g, metric->e->span);
    graph_report(l->g, index, l->weight ? weighted_sum(l, graph_cast(l->g, metric->value.node, DT_F32)) : mean);
    graph_at(l->g, before);
    return mean;
}

/* What steps of a training report are means, and evaluation alone keeps values. */
static void keep_values(Lowering *l, Report *report, const Metric *metric) {
    if (l->g->training)
        return;
    Span before = graph_at(l->g, metric->e->span);
    for (int k = 0; k < metric->value.metric->values; k++)
        report->kept[k] = graph_keep(l->g, metric->value.metric->value[k]);
    graph_at(l->g, before);
}

static void add_over_set(Lowering *l, int index, const Metric *metric) {
    if (l->naming)
        name_report(l, metric);
    if (index < l->module->reports.count)
        keep_values(l, &l->module->reports.at[index], metric);
}

static void add_confusion(Lowering *l, const Metric *metric) {
    Report *confusion = &l->module->confusion;
    if (l->naming && confusion->name) {
        diag_error(l->diag, metric->e->span, "a model has one confusion matrix");
        diag_note(l->diag, confusion->src, "the first one is here");
    }
    if (l->naming)
        *confusion = (Report){.name = metric->name, .src = metric->e->span, .over_set = metric->value.metric};
    keep_values(l, confusion, metric);
}

/* Those over a set come behind the means. */
static void add_metrics(Frame *frame, const Stmt *setting) {
    Lowering *l = frame->l;
    Expr *all = setting ? setting->value : NULL;
    int count = !all ? 0 : all->kind == EXPR_LIST ? all->args.count : 1, index = 1, behind = 0;
    Metric *over_set = NEW_ARRAY(l->arena, Metric, count);
    for (int i = 0; i < count; i++) {
        Expr *e = all->kind == EXPR_LIST ? all->args.at[i].value : all;
        Metric metric = {report_name(e), e, eval_setting(frame, e)};
        if (metric.value.kind == VALUE_METRIC && metric.value.metric->table)
            add_confusion(l, &metric);
        else if (metric.value.kind == VALUE_METRIC)
            over_set[behind++] = metric;
        else
            add_mean(l, index++, &metric);
    }
    for (int i = 0; i < behind; i++)
        add_over_set(l, index++, &over_set[i]);
}

/* What the sums that are reported are divided by, behind them; and of each example, for metrics over a set. */
static void add_weight(Lowering *l) {
    Module *m = l->module;
    graph_report(l->g, m->means, l->weight_sum);
    if (m->kept.count)
        m->weight.kept[0] = graph_keep(l->g, l->weight);
}

Node *lower_reports(Frame *frame, const Block *train) {
    Lowering *l = frame->l;
    Expr *e = block_find(train, "loss")->value;
    Metric loss = {"loss", e, eval_setting(frame, e)};
    Node *mean = add_mean(l, 0, &loss);
    add_metrics(frame, block_find(train, "metric"));
    if (l->weight)
        add_weight(l);
    return mean;
}
