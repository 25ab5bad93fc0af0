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

static const Optimizer *optimizer_setting(Frame *frame, const Block *train) {
    Expr *e = block_find(train, "optimizer")->value;
    Value value = eval_setting(frame, e);
    if (value.kind != VALUE_OPTIMIZER && value.kind != VALUE_ERROR)
        diag_error(frame->l->diag, e->span, "expected an optimizer such as adam(1e-3), not %s",
                   value_kind_text(frame->l->arena, &value));
    return value.kind == VALUE_OPTIMIZER ? value.optimizer : NULL;
}

void training_numbers(Frame *frame, const Block *train, Training *out) {
    const Bounds above_0 = {0, INFINITY, .above = true};
    frame->l->scheduling = true;
    out->optimizer = optimizer_setting(frame, train);
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
    for (int i = 0; i < PRECISIONS; i++)
        if (strcmp(word, precision_names[i]) == 0)
            return (Precision)i;
    diag_error(diag, e->span, "precision is fp32, tf32 or bf16%s",
               suggestion(diag_arena(diag), word, precision_names, PRECISIONS));
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
    freeze_weights(l, train, chosen_weights(frame, train, "freeze"));
    const bool *spared = chosen_weights(frame, train, "no_decay");
    bool *decayed = NEW_ARRAY(l->arena, bool, l->module->weights.count);
    for (int i = 0; i < l->module->weights.count; i++)
        decayed[i] = !spared || !spared[i];
    out->decayed = decayed;
    if (block_find(train, "monitor"))
        find_monitor(frame, block_find(train, "monitor"));
}

void training_warn(Diag *diag, const Block *train, const Training *training) {
    const Optimizer *optimizer = training->optimizer;
    const Stmt *s = block_find(train, "no_decay");
    double decay;
    if (s && graph_constant_value(optimizer->arg[optimizer->decay], &decay) && decay == 0)
        diag_warning(diag, s->span, "the optimizer has no weight decay: no_decay changes nothing");
}

/* ---- for logs ---- */

/* One line of what stands in the text: a comment or space of any kind is one space, strings stay. */
static void add_flat(Text *out, const char *text) {
    bool in_string = false, pending = false;
    for (; *text; text++) {
        if (!in_string && *text == '#')
            text += strcspn(text, "\n");
        if (!*text)
            return;
        if (!in_string && strchr(" \t\r\n", *text)) {
            pending = true;
            continue;
        }
        in_string ^= *text == '"';
        text_puts(out, pending ? " " : "");
        text_putc(out, *text);
        pending = false;
    }
}

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
        add_flat(&out, instead ? instead : span_text(l->arena, s->value->span));
    }
    return text_string(&out);
}
