/* Losses that take scores: what the scores mean, and whether they are taken twice. */
#include "front/lower.h"

static const PredictionRule prediction_rules[] = {
    {"cross_entropy", NULL, "softmax", PREDICTS_CLASSES},
    {"bce", "from_logits", "sigmoid", PREDICTS_YES},
    {"bce", NULL, NULL, PREDICTS_YES},
};
static const int prediction_rule_count = sizeof prediction_rules / sizeof *prediction_rules;

static bool argument_true(Frame *frame, const Expr *call, const char *name) {
    for (int i = 0; i < call->signature->count; i++)
        if (strcmp(call->signature->at[i].name, name) == 0 && call->bound[i])
            return eval(frame, call->bound[i]).number != 0;
    return false;
}

const PredictionRule *prediction_rule(Frame *frame, const Expr *call) {
    for (int i = 0; i < prediction_rule_count; i++) {
        const PredictionRule *rule = &prediction_rules[i];
        if (strcmp(rule->loss, call->op->name) == 0 &&
            (!rule->condition || argument_true(frame, call, rule->condition)))
            return rule;
    }
    return NULL;
}

/* ---- what a loss compares ---- */

static bool compares(const Expr *loss) {
    return loss->kind == EXPR_CALL && loss->op && loss->signature->count >= 2 && loss->signature->at[1].required;
}

static bool is_operator(const Expr *e, const char *name) {
    return e->kind == EXPR_OPERATOR && strcmp(e->name.text, name) == 0 && e->args.count == 2;
}

/* The same function of the same value, whose scores mean the same. */
static bool agree(Frame *frame, const Expr *a, const Expr *b) {
    const Expr *x = a->bound[0], *y = b->bound[0];
    return a->op == b->op && x->kind == EXPR_NAME && y->kind == EXPR_NAME && strcmp(x->name.text, y->name.text) == 0 &&
           prediction_rule(frame, a) == prediction_rule(frame, b);
}

const Expr *loss_comparison(Frame *frame, const Expr *loss) {
    const bool sum = is_operator(loss, "add"), product = is_operator(loss, "mul");
    if (compares(loss))
        return loss;
    if (!sum && !product)
        return NULL;
    const Expr *a = loss_comparison(frame, loss->args.at[0].value);
    const Expr *b = loss_comparison(frame, loss->args.at[1].value);
    if (sum)
        return a && b && agree(frame, a, b) ? a : NULL;
    return a && b ? NULL : a ? a : b;
}

/* Has the loss, wherever, a call for which the function makes probabilities of scores? */
static bool has_rule(const Expr *loss, const PredictionRule *rule) {
    bool found = loss->kind == EXPR_CALL && loss->op && strcmp(loss->op->name, rule->loss) == 0;
    for (int i = 0; i < loss->args.count && !found; i++)
        found = has_rule(loss->args.at[i].value, rule);
    return found;
}

bool predicts_yes(const Expr *loss, const Value *prediction) {
    for (int i = 0; i < prediction_rule_count; i++) {
        const PredictionRule *rule = &prediction_rules[i];
        const bool made = rule->function && prediction->made && strcmp(prediction->made->name, rule->function) == 0;
        if (rule->predicts == PREDICTS_YES && made && has_rule(loss, rule))
            return true;
    }
    return false;
}

/* ---- scores that are taken twice ---- */

static bool rule_applies(const PredictionRule *rule, const Expr *call, const Value *args) {
    if (strcmp(rule->loss, call->op->name) != 0)
        return false;
    for (int i = 0; rule->condition && i < call->signature->count; i++)
        if (strcmp(call->signature->at[i].name, rule->condition) == 0)
            return args[i].number != 0;
    return true;
}

void doubt_scores(Lowering *l, const Expr *call, const Value *args) {
    const Value *scores = &args[0];
    for (int i = 0; i < prediction_rule_count; i++) {
        const char *own = prediction_rules[i].function;
        bool twice = own && scores->made && strcmp(scores->made->name, own) == 0;
        if (!twice || !rule_applies(&prediction_rules[i], call, args))
            continue;
        const char *function = scores->made->name;
        const char *text = arena_printf(l->arena,
                                        "this loss takes scores and applies %s itself, here for the second time: "
                                        "training is slow and may stall",
                                        function);
        const char *cure = arena_printf(l->arena, "leave out this %s; predictions go through it in any case", function);
        module_doubt(l->module, (Doubt){call->span, scores->made_at, text, cure});
    }
}
