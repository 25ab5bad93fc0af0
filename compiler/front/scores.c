/* Losses that take scores: what the scores mean, and whether they are taken twice. */
#include "front/lower.h"

const PredictionRule prediction_rules[] = {
    {"cross_entropy", NULL, "softmax", true},
    {"bce", "from_logits", "sigmoid", false},
};
const int prediction_rule_count = sizeof prediction_rules / sizeof *prediction_rules;

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
        bool twice = scores->made && strcmp(scores->made->name, prediction_rules[i].function) == 0;
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
