/* Statements. */
#include "front/habits.h"
#include "front/lower.h"

bool eval_whole(Frame *frame, Expr *e, int64_t low, int64_t high, int64_t *result) {
    Value v = eval(frame, e);
    if (v.kind == VALUE_ERROR)
        return false;
    if (value_whole(frame->l->module, &v, low, high, result))
        return true;
    Text found = TEXT(frame->l->arena);
    if (v.kind == VALUE_NUMBER && !v.varies)
        text_number(&found, v.number);
    else
        text_puts(&found, value_kind_text(frame->l->arena, &v));
    diag_error(frame->l->diag, e->span, "expected a whole number from %lld to %lld, not %s", (long long)low,
               (long long)high, text_string(&found));
    return false;
}

/* The truth of a condition that decides what the model is; false after reporting. */
static bool eval_condition(Frame *frame, Expr *e, bool *truth) {
    Value v = eval(frame, e);
    value_fix(frame->l->module, &v);
    if (v.kind == VALUE_TENSOR)
        diag_error(frame->l->diag, e->span,
                   "this depends on the data; choose element by element with where(condition, "
                   "a, b)");
    else if (v.kind == VALUE_BOOL && v.varies)
        diag_error(frame->l->diag, e->span, "this is decided when compiling, but only the running program knows it");
    else if (v.kind != VALUE_BOOL && v.kind != VALUE_ERROR)
        diag_error(frame->l->diag, e->span, "expected a condition, not %s", value_kind_text(frame->l->arena, &v));
    *truth = v.kind == VALUE_BOOL && v.number != 0;
    return v.kind == VALUE_BOOL && !v.varies;
}

static const char *indexed(const Frame *frame, const char *name) {
    return arena_printf(frame->l->arena, "%s%s", name, frame->indices);
}

/* What the statement makes is called after `name`; returns what its layers are called. */
static const char *begin_naming(Frame *frame, const char *name) {
    const char *layers = indexed(frame, name);
    frame->statement = scope_join(frame->l->arena, frame->path, layers);
    return layers;
}

static void name_value(Frame *frame, Stmt *s, Value value) {
    if (value.kind == VALUE_TENSOR)
        graph_name(value.node, scope_join(frame->l->arena, frame->path, indexed(frame, s->name.text)));
    frame_bind(frame, s->name.text, value, s);
    s->ran = true;
}

static void run_assign(Frame *frame, Stmt *s) {
    const char *layers = begin_naming(frame, s->name.text);
    Value value = eval(frame, s->value);
    layers_name(frame, layers);
    name_value(frame, s, value);
}

/* ---- several names ---- */

static bool leaves_out(const Name *name) {
    return strcmp(name->text, "_") == 0;
}

/* The value that what the call makes is named after: the first that has a name. */
static const Name *first_name(const Stmt *s) {
    for (int i = 0; i < s->body.count; i++)
        if (!leaves_out(&s->body.at[i]->name))
            return &s->body.at[i]->name;
    return &s->body.at[0]->name;
}

static void wrong_count(Frame *frame, const Stmt *s, const Value *value) {
    Diag *diag = frame->l->diag;
    const Expr *call = s->value->kind == EXPR_CALL ? s->value : NULL;
    int names = s->body.count;
    if (!call || (!call->fn && value->kind != VALUE_SEVERAL))
        diag_error(diag, s->span, "%d names take as many values, or those that a function returns; this is %s", names,
                   value_kind_text(frame->l->arena, value));
    else if (value->kind != VALUE_SEVERAL)
        diag_error(diag, s->span, "'%s' returns one value, and here are %d names", call->name.text, names);
    else
        diag_error(diag, s->span, "'%s' returns %d values, and here are %d names", call->name.text, value->count,
                   names);
    if (call && call->fn)
        diag_note(diag, call->fn->returned, "it returns here");
    const char *one = call && call->op ? habit(VALUES, call->op->name, strlen(call->op->name)) : NULL;
    if (one)
        diag_note(diag, call->span, "%s", one);
}

/* `a, b = x, y`: each name has its value. All are computed before a name takes its own. */
static void run_each(Frame *frame, Stmt *s) {
    Lowering *l = frame->l;
    int count = s->body.count;
    bool fit = s->value->args.count == count;
    Value *values = NEW_ARRAY(l->arena, Value, count);
    if (!fit)
        diag_error(l->diag, s->span, "%d names, and %d values", count, s->value->args.count);
    for (int i = 0; i < count; i++) {
        const Name *name = &s->body.at[i]->name;
        const char *layers = begin_naming(frame, leaves_out(name) ? first_name(s)->text : name->text);
        values[i] = fit ? eval(frame, s->value->args.at[i].value) : value_error();
        layers_name(frame, layers);
    }
    for (int i = 0; i < count; i++)
        if (!leaves_out(&s->body.at[i]->name))
            name_value(frame, s->body.at[i], values[i]);
}

/* `a, b = f(x)` */
static void run_returned(Frame *frame, Stmt *s) {
    const char *layers = begin_naming(frame, first_name(s)->text);
    Value value = eval_values(frame, s->value);
    bool fit = value.kind == VALUE_SEVERAL && value.count == s->body.count;
    if (!fit && value.kind != VALUE_ERROR)
        wrong_count(frame, s, &value);
    layers_name(frame, layers);
    for (int i = 0; i < s->body.count; i++)
        if (!leaves_out(&s->body.at[i]->name))
            name_value(frame, s->body.at[i], fit ? value.items[i] : value_error());
}

static void run_several(Frame *frame, Stmt *s) {
    if (s->value->kind == EXPR_SEVERAL)
        run_each(frame, s);
    else
        run_returned(frame, s);
}

/* ---- other statements ---- */

static void run_return(Frame *frame, Stmt *s) {
    frame->statement = frame->path;
    frame->result = eval_values(frame, s->value);
    frame->result_at = s->value->span;
    frame->returned = true;
    layers_name(frame, "");
}

/* What a body would have named has no right value: later uses are no further mistakes. */
static void poison_body(Frame *frame, const StmtList *body) {
    for (int i = 0; i < body->count; i++) {
        if (body->at[i]->kind == STMT_ASSIGN)
            frame_bind(frame, body->at[i]->name.text, value_error(), body->at[i]);
        if (body->at[i]->kind == STMT_LAYER)
            frame_bind(frame, body->at[i]->name.text, value_error(), NULL);
        poison_body(frame, &body->at[i]->body);
        poison_body(frame, &body->at[i]->other);
    }
}

static void run_if(Frame *frame, Stmt *s) {
    bool truth;
    if (eval_condition(frame, s->value, &truth)) {
        run_body(frame, truth ? &s->body : &s->other);
    } else {
        poison_body(frame, &s->body);
        poison_body(frame, &s->other);
    }
}

static void run_assert(Frame *frame, Stmt *s) {
    bool truth;
    if (!eval_condition(frame, s->value, &truth) || truth)
        return;
    if (s->message)
        diag_error(frame->l->diag, s->value->span, "%s", fill_holes(frame, s->message));
    else
        diag_error(frame->l->diag, s->value->span, "this assertion does not hold");
}

static void run_repeat(Frame *frame, Stmt *s) {
    const char *indices = frame->indices;
    int64_t first, end;
    int errors = diag_errors(frame->l->diag);
    if (!eval_whole(frame, s->value, 0, INT32_MAX, &first) || !eval_whole(frame, s->end, 0, INT32_MAX, &end)) {
        poison_body(frame, &s->body);
        return;
    }
    if (end < first)
        diag_error(frame->l->diag, span_join(s->value->span, s->end->span),
                   "this repeat ends before it begins: %lld..%lld", (long long)first, (long long)end);
    for (int64_t i = first; i < end && !frame->returned && diag_errors(frame->l->diag) == errors; i++) {
        if (!within_limits(frame->l, s->span))
            break;
        frame->indices = arena_printf(frame->l->arena, "%s.%lld", indices, (long long)i);
        frame_bind(frame, s->name.text, value_number((double)i), NULL);
        run_body(frame, &s->body);
    }
    frame->indices = indices;
}

static void run_stmt(Frame *frame, Stmt *s) {
    static void (*const run[])(Frame *, Stmt *) = {
        [STMT_ASSIGN] = run_assign, [STMT_SEVERAL] = run_several, [STMT_LAYER] = run_layer,
        [STMT_REPEAT] = run_repeat, [STMT_IF] = run_if,           [STMT_ASSERT] = run_assert,
        [STMT_RETURN] = run_return,
    };
    run[s->kind](frame, s);
}

void run_body(Frame *frame, const StmtList *body) {
    for (int i = 0; i < body->count && !frame->returned && !frame->l->stopped; i++) {
        if (!frame->fn)
            frame->l->place = body->at[i]->span;
        run_stmt(frame, body->at[i]);
    }
}
