/* The module: tables from params and data, then the model and train blocks as two graphs over the same weights.
 *
 * Whether a param is a flag of the program or fixed when compiling shows only once a size asks for it. So the model is
 * lowered in rounds: each round finds params that decide a shape, and the next one takes them as constants. */
#include "front/check.h"
#include "front/data.h"

#include "op/normalize.h"
#include "op/table.h"

#include <ctype.h>
#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>

enum { DEFAULT_BATCH = 32, DEFAULT_EPOCHS = 10 };

/* ---- params ---- */

static int find_param(Diag *diag, const Ast *ast, const char *name) {
    const char **names = NEW_ARRAY(ast->arena, const char *, ast->params.count);
    for (int i = 0; i < ast->params.count; i++) {
        names[i] = ast->params.at[i]->name.text;
        if (strcmp(names[i], name) == 0)
            return i;
    }
    diag_error(diag, (Span){0}, "--set %s: the model has no param '%s'%s", name, name,
               suggestion(ast->arena, name, names, ast->params.count));
    if (ast->params.count)
        diag_note(diag, (Span){0}, "its params are %s", name_list(ast->arena, names, ast->params.count));
    return -1;
}

static void set_param(Diag *diag, const Param *p, const char *text, double *value) {
    char *end;
    double number = strtod(text, &end);
    if (end == text || *end || isspace((unsigned char)*text) || !isfinite(number))
        diag_error(diag, (Span){0}, "--set %s=%s: '%s' is not a number%s", p->name.text, text, text,
                   strchr(text, ',') ? "; decimals come after a point" : "");
    else if (p->integer && number != floor(number))
        diag_error(diag, p->value_span, "--set %s=%s: '%s' is a whole number", p->name.text, text, p->name.text);
    else if (p->has_range && (number < p->low || number > p->high))
        diag_error(diag, p->span, "--set %s=%s: outside the range %g..%g", p->name.text, text, p->low, p->high);
    else
        *value = number;
}

static double *param_values(Diag *diag, const Ast *ast, const FrontOptions *options) {
    double *values = NEW_ARRAY(ast->arena, double, ast->params.count);
    for (int i = 0; i < ast->params.count; i++)
        values[i] = ast->params.at[i]->value;
    for (int i = 0; i < options->setting_count; i++) {
        int index = find_param(diag, ast, options->settings[i].name);
        if (index >= 0)
            set_param(diag, ast->params.at[index], options->settings[i].value, &values[index]);
    }
    return values;
}

static void add_knobs(Lowering *l, const double *values) {
    for (int i = 0; i < l->ast->params.count; i++) {
        const Param *p = l->ast->params.at[i];
        Knob knob = {.name = p->name.text,
                     .value = values[i],
                     .integer = p->integer,
                     .has_range = p->has_range,
                     .low = p->low,
                     .high = p->high,
                     .src = p->span,
                     .help = p->help};
        knob.fixed = l->fixed >> i & 1;
        VEC_PUSH(l->arena, &l->module->knobs, knob);
    }
}

/* ---- settings ---- */

int64_t whole_setting(Frame *frame, const char *key, int64_t fallback, int64_t low, int64_t high) {
    Stmt *s = block_find(ast_find_block(frame->l->ast, "train"), key);
    int64_t value = fallback;
    if (s)
        eval_whole(frame, s->value, low, high, &value);
    return value;
}

/* Graphs are of a shard: the first ones have equally many examples, the last one what is left. */
static void cut_batch(Lowering *l) {
    Module *m = l->module;
    const int64_t shards = l->shards, rows = (m->batch + shards - 1) / shards, needed = (m->batch + rows - 1) / rows;
    if (needed < shards)
        diag_error(l->diag, (Span){0},
                   "--shards %lld: a batch of %lld examples is %lld shards of %lld and nothing is left for more; "
                   "--shards %lld or a larger --batch",
                   (long long)shards, (long long)m->batch, (long long)needed, (long long)rows, (long long)needed);
    m->whole_batch = m->batch;
    m->batch = rows;
    m->shards = (int)shards;
    m->parts_states = l->parts_states;
}

static void add_settings(Lowering *l, Frame *frame) {
    Module *m = l->module;
    m->batch = whole_setting(frame, "batch", DEFAULT_BATCH, 1, MAX_BATCH);
    m->batch_replaced = l->batch && l->batch != m->batch;
    m->batch = l->batch ? l->batch : m->batch;
    if (l->shards)
        cut_batch(l);
    m->epochs = (int)whole_setting(frame, "epochs", DEFAULT_EPOCHS, 1, 1 << 24);
    m->seed = (uint64_t)whole_setting(frame, "seed", 0, 0, (int64_t)1 << 53);
    m->patience = (int)whole_setting(frame, "patience", 0, 1, 1 << 24);
    const Block *train = ast_find_block(l->ast, "train");
    Precision precision = training_precision(l->diag, train);
    bool recompute = training_recompute(frame, train);
    m->precision = l->precision ? *l->precision : precision;
    m->recompute = l->recompute ? *l->recompute : recompute;
}

/* ---- prediction ---- */

/* A layer in the train block would be trained by no loss, or evaluated twice. */
Value eval_setting(Frame *frame, Expr *e) {
    Lowering *l = frame->l;
    int weights = l->weights;
    frame->statement = "";
    Value value = eval(frame, e);
    if (l->weights > weights && value.kind != VALUE_ERROR) {
        diag_error(l->diag, e->span, "this makes weights; layers belong in the model block");
        return value_error();
    }
    return value;
}

static Value derived_prediction(Frame *frame, const Expr *loss) {
    Lowering *l = frame->l;
    const Expr *call = loss_comparison(frame, loss);
    if (!call) {
        diag_error(l->diag, loss->span, "this loss does not tell what the model predicts; add: predict = ...");
        return value_error();
    }
    Value scores = eval_setting(frame, call->bound[0]);
    const PredictionRule *rule = prediction_rule(frame, call);
    if (!rule || scores.kind == VALUE_ERROR)
        return scores;
    l->module->prediction_is_classes = rule->predicts == PREDICTS_CLASSES;
    l->module->prediction_is_yes = rule->predicts == PREDICTS_YES;
    return rule->function ? call_library(frame, loss->span, rule->function, scores) : scores;
}

static void add_prediction(Frame *frame, const Block *train, Lowered *out) {
    Lowering *l = frame->l;
    const Stmt *predict = block_find(train, "predict");
    const Expr *loss = block_find(train, "loss")->value;
    Span at = predict ? predict->value->span : loss->span;
    Value value = predict ? eval_setting(frame, predict->value) : derived_prediction(frame, loss);
    if (value.kind == VALUE_ERROR)
        return;
    if (value.kind != VALUE_TENSOR || !value.node->type.batched) {
        diag_error(l->diag, at, "the prediction depends on the example, this is %s", value_kind_text(l->arena, &value));
        return;
    }
    Span before = graph_at(l->g, at);
    graph_output(l->g, graph_name(graph_cast(l->g, value.node, DT_F32), "prediction"));
    graph_at(l->g, before);
    if (graph_needs_batch(l->g, value.node))
        module_doubt(l->module,
                     (Doubt){at, at, "what is predicted for an example depends on the others of its batch",
                             "batch(x) belongs in a loss; predict = ... says what is made of the example alone"});
    l->module->prediction_is_yes |= predict && predicts_yes(loss, &value);
    const Expr *call = loss_comparison(frame, loss);
    out->prediction = value.node;
    out->target = call ? eval_setting(frame, call->bound[1]).node : NULL;
}

/* ---- graphs ---- */

static void bind_fields(Frame *frame) {
    Lowering *l = frame->l;
    const Block *data = ast_find_block(l->ast, "data");
    for (int i = 0; i < l->module->fields.count; i++) {
        const Field *field = &l->module->fields.at[i];
        graph_at(l->g, field->src);
        frame_bind(frame, field->name, value_tensor(graph_field(l->g, i)), block_find(data, field->name));
    }
}

static void finish_names(Lowering *l) {
    for (int i = 0; i < l->module->weights.count; i++)
        graph_weight(l->g, i)->name = l->module->weights.at[i].name;
    l->naming = false;
}

static void check_trainable(Lowering *l) {
    if (l->weights == 0)
        diag_error(l->diag, ast_find_block(l->ast, "model")->keyword.span,
                   "the model has no weights, there is nothing "
                   "to train");
}

static void lower_graph(Lowering *l, Graph *g, Lowered *out) {
    Frame frame = {.l = l, .path = "", .indices = "", .statement = ""};
    const Block *train = ast_find_block(l->ast, "train");
    int errors = diag_errors(l->diag);
    l->g = g;
    l->weights = l->steps = l->depth = 0;
    bind_fields(&frame);
    g->written = true;
    run_body(&frame, &ast_find_block(l->ast, "model")->body);
    if (l->naming && diag_errors(l->diag) == errors)
        check_trainable(l);
    if (diag_errors(l->diag) == errors)
        layers_complete(l);
    lower_example_weight(&frame, train);
    Node **known = g->training ? lower_known(l) : NULL;
    const int said = g->nodes.count;
    Node *loss = lower_reports(&frame, train);
    if (g->training) {
        out->train_loss = loss;
        out->training.weights = l->weight_sum;
        training_numbers(&frame, train, &out->training);
        use_known(l, known, said);
    } else {
        add_prediction(&frame, train, out);
    }
    if (l->naming && diag_errors(l->diag) == errors)
        finish_names(l);
    g->written = false;
    if (g->training && diag_errors(l->diag) == errors)
        training_names(&frame, train, &out->training);
}

/* The forward pass of a training step once more, for what print(x) shows, and nothing that changes the training. */
static void lower_watch(Lowering *l) {
    Frame frame = {.l = l, .path = "", .indices = "", .statement = ""};
    Graph *g = l->g = l->module->watch = graph_new(l->module, true);
    static const char *const computed[] = {"loss", "metric", "predict"};
    const Block *train = ast_find_block(l->ast, "train");
    int kept = 0;
    l->weights = l->steps = l->depth = 0;
    bind_fields(&frame);
    g->written = true;
    run_body(&frame, &ast_find_block(l->ast, "model")->body);
    for (size_t i = 0; i < sizeof computed / sizeof *computed; i++)
        if (block_find(train, computed[i]))
            eval_setting(&frame, block_find(train, computed[i])->value);
    g->written = false;
    if (!l->module->printed.count)
        diag_error(l->diag, l->module->prints, "print(x) shows values of the model, of loss, metric and predict alone");
    for (int i = 0; i < g->roots.count; i++)
        if (g->roots.at[i]->op->table == TABLE_PRINTED)
            g->roots.at[kept++] = g->roots.at[i];
    g->roots.count = kept;
    graph_compact(g);
}

/* ---- the module ---- */

static const char *model_name(Arena *arena, const char *path) {
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
    const char *dot = strrchr(base, '.');
    return arena_strndup(arena, base, dot && dot > base ? (size_t)(dot - base) : strlen(base));
}

static uint64_t fixed_mask(const Module *module) {
    uint64_t mask = 0;
    for (int i = 0; i < module->knobs.count; i++)
        mask |= (uint64_t)module->knobs.at[i].fixed << i;
    return mask;
}

/* Flags of the program, whose defaults have to be numbers there too. */
static void check_knobs(const Lowering *l) {
    for (int i = 0; i < l->module->knobs.count; i++) {
        const Knob *knob = &l->module->knobs.at[i];
        if (!knob->fixed && !number_computable(knob->value))
            diag_error(l->diag, knob->src, "'%s' is %g, and programs compute in f32, whose numbers end at %.2g",
                       knob->name, knob->value, FLT_MAX);
    }
}

static void lower_round(Lowering *l, const double *values, Lowered *out) {
    Module *m = module_new(l->arena, l->diag, &op_table);
    int errors = diag_errors(l->diag);
    *out = (Lowered){.module = m};
    l->module = m;
    m->source = l->ast->sources.at[0];
    m->name = model_name(l->arena, m->source->path);
    m->training = training_text(l, ast_find_block(l->ast, "train"));
    add_knobs(l, values);
    m->train = graph_new(m, true);
    m->eval = graph_new(m, false);
    l->g = m->eval;
    Frame frame = {.l = l, .path = "", .indices = "", .statement = ""};
    add_settings(l, &frame);
    add_data(l, &frame);
    if (diag_errors(l->diag) > errors)
        return;
    lower_graph(l, m->train, out);
    if (diag_errors(l->diag) == errors)
        lower_graph(l, m->eval, out);
    if (diag_errors(l->diag) == errors && m->prints.source)
        lower_watch(l);
    if (diag_errors(l->diag) == errors)
        layers_check(l);
    check_knobs(l);
    if (diag_errors(l->diag) == errors)
        m->measure = measure_graph(m);
}

/* ---- what is never used ---- */

/* Where a value that nobody uses would be one that everybody does. */
static const char *belongs(const char *name) {
    const char *key = train_setting(name);
    return key && strcmp(key, name) == 0 ? "; as a setting it belongs in the train block"
           : is_data_setting(name)       ? "; as a setting it belongs in the data block"
                                         : "";
}

static void warn_body(Diag *diag, const StmtList *body) {
    for (int i = 0; i < body->count; i++) {
        const Stmt *s = body->at[i];
        if (s->kind == STMT_ASSIGN && s->ran && !s->read)
            diag_warning(diag, s->name.span, "the value of '%s' is never used%s", s->name.text, belongs(s->name.text));
        if (s->kind == STMT_LAYER && !s->fn->called)
            diag_warning(diag, s->name.span, "layer '%s' is never called", s->name.text);
        warn_body(diag, &s->body);
        warn_body(diag, &s->other);
    }
}

static void warn_unused(Diag *diag, const Ast *ast) {
    const Block *data = ast_find_block(ast, "data");
    for (int i = 0; i < ast->params.count; i++)
        if (!ast->params.at[i]->read && ast->params.at[i]->span.source == ast->sources.at[0])
            diag_warning(diag, ast->params.at[i]->name.span, "param '%s' is never used", ast->params.at[i]->name.text);
    for (int i = 0; i < data->body.count; i++)
        if (data->body.at[i]->kind == STMT_FIELD && !data->body.at[i]->read)
            diag_warning(diag, data->body.at[i]->name.span, "field '%s' is never used", data->body.at[i]->name.text);
    for (int i = 0; i < ast->fns.count; i++)
        warn_body(diag, &ast->fns.at[i]->body);
    warn_body(diag, &ast_find_block(ast, "model")->body);
}

static void warn_doubts(Diag *diag, const Module *module) {
    for (int i = 0; i < module->doubts.count; i++) {
        const Doubt *doubt = &module->doubts.at[i];
        diag_warning(diag, doubt->at, "%s", doubt->text);
        diag_note(diag, doubt->cause, "%s", doubt->cure);
    }
}

bool front_lower(Diag *diag, Ast *ast, const FrontOptions *options, Lowered *out) {
    int errors = diag_errors(diag);
    double *values = param_values(diag, ast, options);
    uint64_t fixed = 0, found = 0;
    if (diag_errors(diag) > errors)
        return false;
    do {
        Lowering l = {.diag = diag,
                      .arena = ast->arena,
                      .ast = ast,
                      .precision = options->precision,
                      .recompute = options->recompute,
                      .batch = options->batch,
                      .shards = options->shards,
                      .parts_states = options->parts_states,
                      .fixed = found,
                      .made = -1,
                      .naming = true};
        fixed = found;
        lower_round(&l, values, out);
        found = fixed_mask(out->module);
    } while (found != fixed && diag_errors(diag) == errors);
    if (diag_errors(diag) > errors)
        return false;
    warn_unused(diag, ast);
    warn_doubts(diag, out->module);
    warn_leak(out->module, out->prediction, out->target);
    training_warn(diag, ast_find_block(ast, "train"), &out->training);
    return true;
}
