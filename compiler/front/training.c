/* The settings of the train block that say how gradients become updates, and which weights take part. */
#include "front/lower.h"

#include <math.h>

enum { MAX_ACCUMULATE = 1 << 20 };

/* ---- numbers ---- */

/* A number of the train block: a run-time scalar of the training graph. A param is judged by its default. */
static TrainNumber number_setting(Frame *frame, const Block *train, const char *key, Bounds bounds) {
    Lowering *l = frame->l;
    Stmt *s = block_find(train, key);
    TrainNumber number = {0};
    if (!s)
        return number;
    Value v = eval_setting(frame, s->value);
    if (v.kind == VALUE_ERROR)
        return number;
    if (v.kind != VALUE_NUMBER)
        diag_error(l->diag, s->value->span, "expected a number, not %s", value_kind_text(l->arena, &v));
    else if (!v.varies && !bounds_hold(&bounds, v.number))
        diag_error(l->diag, s->value->span, "%s", bounds_refusal(l->arena, key, &bounds, v.number));
    else {
        value_bind(l->module, &v, key, &bounds);
        Span before = graph_at(l->g, s->span);
        number = (TrainNumber){value_node(l->g, &v), s->span};
        graph_at(l->g, before);
    }
    return number;
}

/* One optimizer, or a list of them, each for some of the weights. */
static void optimizer_setting(Frame *frame, const Block *train, Training *out) {
    Lowering *l = frame->l;
    Expr *e = block_find(train, "optimizer")->value;
    Value value = eval_setting(frame, e);
    bool several = value.kind == VALUE_LIST && value.count;
    const Value *items = several ? value.items : &value;
    out->optimizer_count = several ? value.count : 1;
    out->optimizers = NEW_ARRAY(l->arena, const Optimizer *, out->optimizer_count);
    for (int i = 0; i < out->optimizer_count; i++) {
        if (items[i].kind != VALUE_OPTIMIZER && items[i].kind != VALUE_ERROR)
            diag_error(l->diag, several ? items[i].src : e->span, "expected an optimizer such as adam(1e-3), not %s",
                       value_kind_text(l->arena, &items[i]));
        out->optimizers[i] = items[i].kind == VALUE_OPTIMIZER ? items[i].optimizer : NULL;
    }
}

/* Those that optimizers have of their own. */
static void optimizer_losses(Lowering *l, Training *out) {
    out->losses = NEW_ARRAY(l->arena, Node *, out->optimizer_count);
    for (int i = 0; i < out->optimizer_count; i++)
        if (out->optimizers[i] && out->optimizers[i]->loss.kind != VALUE_NONE)
            out->losses[i] = per_batch(l, "loss", &out->optimizers[i]->loss, out->optimizers[i]->loss.src);
}

void training_numbers(Frame *frame, const Block *train, Training *out) {
    const Bounds above_0 = {0, INFINITY, .above = true};
    frame->l->scheduling = true;
    optimizer_setting(frame, train, out);
    optimizer_losses(frame->l, out);
    out->accumulate = whole_setting(frame, "accumulate", 1, 1, MAX_ACCUMULATE);
    out->clip_value = number_setting(frame, train, "clip_value", above_0);
    out->clip_norm = number_setting(frame, train, "clip_norm", above_0);
    out->ema = number_setting(frame, train, "ema", (Bounds){0, 1, .below = true});
    frame->l->scheduling = false;
}

/* ---- how it is compiled ---- */

Precision training_precision(Diag *diag, const Block *train) {
    const Stmt *s = block_find(train, "precision");
    if (!s)
        return PRECISION_FP32;
    const Expr *e = s->value;
    const char *word = e->kind == EXPR_NAME ? e->name.text : "";
    for (int i = 0; i < PRECISION_INT8; i++)
        if (strcmp(word, precision_names[i]) == 0)
            return (Precision)i;
    diag_error(diag, e->span, "precision is fp32, tf32, tf32x3, bf16, fp16 or fp8%s",
               suggestion(diag_arena(diag), word, precision_names, PRECISION_INT8));
    if (strcmp(word, precision_names[PRECISION_INT8]) == 0)
        diag_note(diag, e->span,
                  "nothing trains in int8: 'mtc --precision int8' makes a program that evaluates, "
                  "predicts and generates in it, with weights that another one has trained");
    return PRECISION_FP32;
}

bool training_recompute(Frame *frame, const Block *train) {
    Stmt *s = block_find(train, "recompute");
    if (!s)
        return false;
    Value v = eval_setting(frame, s->value);
    bool known = v.kind == VALUE_BOOL && !v.varies;
    if (!known && v.kind != VALUE_ERROR)
        diag_error(frame->l->diag, s->value->span, "recompute is true or false, not %s",
                   value_kind_text(frame->l->arena, &v));
    value_fix(frame->l->module, &v);
    return known && v.number != 0;
}

/* ---- which weights ---- */

static void freeze_weights(Lowering *l, const Block *train, const bool *frozen) {
    int trained = 0;
    for (int i = 0; frozen && i < l->module->weights.count; i++) {
        Weight *weight = &l->module->weights.at[i];
        if (frozen[i])
            weight->kind = WEIGHT_FROZEN;
        trained += weight->kind == WEIGHT_TRAINED;
    }
    if (frozen && !trained)
        diag_error(l->diag, block_find(train, "freeze")->span, "all weights are frozen, there is nothing to train");
}

/* ---- which optimizer updates them ---- */

/* A weight has one optimizer. False after reporting a second. */
static bool give_to(Lowering *l, const Training *training, int weight, int optimizer, int *updated_by) {
    const char *name = l->module->weights.at[weight].name;
    if (updated_by[weight] >= 0) {
        diag_error(l->diag, training->optimizers[optimizer]->weights.src,
                   "'%s' has another optimizer already; \"!%s\" leaves it out here", name, name);
        diag_note(l->diag, training->optimizers[updated_by[weight]]->weights.src, "it is chosen here");
        return false;
    }
    updated_by[weight] = optimizer;
    return true;
}

/* Gives an optimizer what its patterns choose. */
static void give_chosen(Lowering *l, const Training *training, int optimizer, int *updated_by) {
    bool *chosen = NEW_ARRAY(l->arena, bool, l->module->weights.count), once = true;
    match_patterns(l, &training->optimizers[optimizer]->weights, chosen);
    for (int i = 0; i < l->module->weights.count && once; i++)
        if (chosen[i] && l->module->weights.at[i].kind == WEIGHT_TRAINED)
            once = give_to(l, training, i, optimizer, updated_by);
}

/* The optimizer that says no patterns; -1: each says some. */
static int find_rest(Lowering *l, const Training *training) {
    int rest = -1;
    for (int i = 0; i < training->optimizer_count; i++) {
        if (training->optimizers[i]->weights.kind != VALUE_NONE)
            continue;
        if (rest >= 0) {
            diag_error(l->diag, training->optimizers[i]->src,
                       "a second optimizer for all weights; say which are its own: weights = \"h.*\"");
            diag_note(l->diag, training->optimizers[rest]->src, "the first one");
        } else {
            rest = i;
        }
    }
    return rest;
}

/* Gives the rest to the optimizer without patterns. */
static void give_rest(Lowering *l, const Training *training, int rest, int *updated_by) {
    for (int i = 0; i < l->module->weights.count; i++) {
        const Weight *weight = &l->module->weights.at[i];
        if (weight->kind != WEIGHT_TRAINED || updated_by[i] >= 0)
            continue;
        updated_by[i] = rest;
        if (rest < 0) {
            diag_error(l->diag, training->optimizers[0]->src,
                       "no optimizer updates '%s'; an optimizer without weights = ... is for those that are left, and "
                       "freeze = \"%s\" keeps it as it is",
                       weight->name, weight->name);
            return;
        }
    }
}

static const char *why_none(Lowering *l, const Optimizer *optimizer) {
    if (optimizer->weights.kind == VALUE_NONE)
        return "all have another one";
    bool *chosen = NEW_ARRAY(l->arena, bool, l->module->weights.count), any = false;
    match_patterns(l, &optimizer->weights, chosen);
    for (int i = 0; i < l->module->weights.count; i++)
        any |= chosen[i];
    return any ? "those that it chooses are frozen" : "its patterns choose none, such as \"*.bias\" would";
}

static void check_each_updates(Lowering *l, const Training *training) {
    for (int k = 0; k < training->optimizer_count; k++) {
        const Optimizer *optimizer = training->optimizers[k];
        bool any = false;
        for (int i = 0; i < l->module->weights.count; i++)
            any |= training->updated_by[i] == k;
        if (!any)
            diag_error(l->diag, optimizer->src, "this optimizer updates no weight: %s", why_none(l, optimizer));
    }
}

/* An optimizer of matrices is given no vectors. */
static void check_matrices(Lowering *l, const Training *training) {
    for (int k = 0; k < training->optimizer_count; k++) {
        const Optimizer *optimizer = training->optimizers[k];
        const char **vectors = NEW_ARRAY(l->arena, const char *, l->module->weights.count);
        int count = 0;
        for (int i = 0; i < l->module->weights.count && optimizer->matrices; i++)
            if (training->updated_by[i] == k && l->module->weights.at[i].type.rank < 2)
                vectors[count++] = l->module->weights.at[i].name;
        if (!count)
            continue;
        diag_error(l->diag, optimizer->src, "'%s' updates matrices; no matrix: %s", optimizer->name,
                   name_list(l->arena, vectors, count));
        diag_note(l->diag, optimizer->src,
                  "another optimizer takes them: optimizer = [%s(..., weights = [..., \"!%s\"]), adamw(1e-3)]",
                  optimizer->name, vectors[0]);
    }
}

static void give_optimizers(Lowering *l, Training *training) {
    int errors = diag_errors(l->diag);
    int *updated_by = NEW_ARRAY(l->arena, int, l->module->weights.count);
    for (int i = 0; i < l->module->weights.count; i++)
        updated_by[i] = -1;
    for (int i = 0; i < training->optimizer_count; i++)
        if (training->optimizers[i]->weights.kind != VALUE_NONE)
            give_chosen(l, training, i, updated_by);
    int rest = find_rest(l, training);
    if (diag_errors(l->diag) == errors)
        give_rest(l, training, rest, updated_by);
    training->updated_by = updated_by;
    if (diag_errors(l->diag) == errors)
        check_each_updates(l, training);
    if (diag_errors(l->diag) == errors)
        check_matrices(l, training);
}

/* ---- what is watched ---- */

static void find_monitor(Frame *frame, Stmt *s) {
    Lowering *l = frame->l;
    Module *m = l->module;
    Value v = eval_setting(frame, s->value);
    const char **names = NEW_ARRAY(l->arena, const char *, m->reports.count);
    for (int i = 0; i < m->reports.count; i++) {
        names[i] = m->reports.at[i].name;
        if (v.kind == VALUE_STRING && strcmp(v.string, names[i]) == 0) {
            m->monitor = i;
            return;
        }
    }
    if (v.kind == VALUE_STRING)
        diag_error(l->diag, s->value->span, "the model does not report '%s'%s", v.string,
                   suggestion(l->arena, v.string, names, m->reports.count));
    else if (v.kind != VALUE_ERROR)
        diag_error(l->diag, s->value->span, "expected the name of a metric, such as \"loss\", not %s",
                   value_kind_text(l->arena, &v));
    if (v.kind != VALUE_ERROR)
        diag_note(l->diag, s->value->span, "it reports %s", name_list(l->arena, names, m->reports.count));
}

void training_names(Frame *frame, const Block *train, Training *out) {
    Lowering *l = frame->l;
    int errors = diag_errors(l->diag);
    freeze_weights(l, train, chosen_weights(frame, train, "freeze"));
    const bool *spared = chosen_weights(frame, train, "no_decay");
    bool *decayed = NEW_ARRAY(l->arena, bool, l->module->weights.count);
    for (int i = 0; i < l->module->weights.count; i++)
        decayed[i] = !spared || !spared[i];
    out->decayed = decayed;
    if (diag_errors(l->diag) == errors)
        give_optimizers(l, out);
    if (block_find(train, "monitor"))
        find_monitor(frame, block_find(train, "monitor"));
}

static void warn_unminimised(Diag *diag, const Block *train, const Training *training) {
    for (int i = 0; i < training->optimizer_count; i++)
        if (!training->losses[i])
            return;
    diag_warning(diag, block_find(train, "loss")->value->span,
                 "no optimizer minimises this loss, each has another: it is only reported");
}

void training_warn(Diag *diag, const Block *train, const Training *training) {
    warn_unminimised(diag, train, training);
    const Stmt *s = block_find(train, "no_decay");
    bool decays = false;
    for (int i = 0; i < training->optimizer_count; i++) {
        const Optimizer *optimizer = training->optimizers[i];
        double decay;
        if (optimizer->decay)
            decays |= !graph_constant_value(optimizer->arg[optimizer->decay], &decay) || decay != 0;
    }
    if (s && !decays)
        diag_warning(diag, s->span, "%s no weight decay: no_decay changes nothing",
                     training->optimizer_count > 1 ? "the optimizers have" : "the optimizer has");
}

/* ---- for logs ---- */

/* What a flag of mtc says instead of the text; NULL: nothing. */
static const char *replaced(const Lowering *l, const char *key) {
    if (l->batch && strcmp(key, "batch") == 0)
        return arena_printf(l->arena, "%d", l->batch);
    if (l->precision && strcmp(key, "precision") == 0)
        return precision_names[*l->precision];
    if (l->recompute && strcmp(key, "recompute") == 0)
        return *l->recompute ? "true" : "false";
    return NULL;
}

const char *training_text(const Lowering *l, const Block *train) {
    Text out = TEXT(l->arena);
    for (int i = 0; i < train->body.count; i++) {
        const Stmt *s = train->body.at[i];
        const char *instead = replaced(l, s->name.text);
        text_printf(&out, "%s%s = ", i ? "\n" : "", s->name.text);
        text_flat(&out, instead ? instead : span_text(l->arena, s->value->span));
    }
    return text_string(&out);
}
