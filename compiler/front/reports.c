/* The loss and the metrics: numbers of each example, of which programs report means. */
#include "front/check.h"
#include "front/lower.h"

#include "op/table.h"

enum { MAX_REPORTS = 8 };

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

/* The mean over the batch of a value that is one number per example; NULL after reporting. */
static Node *per_batch(Lowering *l, const char *what, const Value *v, Span at) {
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
    Node *mean = graph_batch_mean(l->g, graph_cast(l->g, node, DT_F32));
    graph_at(l->g, before);
    return mean;
}

static const char *report_name(const Expr *e) {
    return e->kind == EXPR_CALL || e->kind == EXPR_NAME ? e->name.text : "metric";
}

static void name_report(Lowering *l, const char *name, bool rises, Span src) {
    for (int i = 0; i < l->module->reports.count; i++)
        if (strcmp(l->module->reports.at[i].name, name) == 0) {
            diag_error(l->diag, src, "two metrics are called '%s'; give this one a name in the model block", name);
            diag_note(l->diag, l->module->reports.at[i].src, "the first one is here");
        }
    if (l->module->reports.count == MAX_REPORTS)
        diag_error(l->diag, src, "a model reports at most %d numbers", MAX_REPORTS);
    VEC_PUSH(l->arena, &l->module->reports, ((Report){name, rises, src}));
}

static Node *add_report(Frame *frame, int index, const char *name, Expr *e) {
    Lowering *l = frame->l;
    Value value = eval_setting(frame, e);
    Node *mean = per_batch(l, index ? "metric" : "loss", &value, e->span);
    if (l->naming)
        name_report(l, name, value.rises, e->span);
    if (!mean || index >= l->module->reports.count)
        return NULL;
    Span before = graph_at(l->g, e->span);
    graph_report(l->g, index, mean);
    graph_at(l->g, before);
    return mean;
}

static void add_metrics(Frame *frame, const Stmt *metric) {
    if (!metric)
        return;
    if (metric->value->kind != EXPR_LIST) {
        add_report(frame, 1, report_name(metric->value), metric->value);
        return;
    }
    for (int i = 0; i < metric->value->args.count; i++) {
        Expr *e = metric->value->args.at[i].value;
        add_report(frame, i + 1, report_name(e), e);
    }
}

Node *lower_reports(Frame *frame, const Block *train) {
    Node *loss = add_report(frame, 0, "loss", block_find(train, "loss")->value);
    add_metrics(frame, block_find(train, "metric"));
    return loss;
}
