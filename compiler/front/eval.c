/* Expressions and calls. */
#include "front/check.h"
#include "front/lower.h"
#include "op/table.h"

enum { MAX_STEPS = 1000000, MAX_NODES = 20000, MAX_NESTING = 1000 };

Binding *frame_find(Frame *frame, const char *name) {
    for (int i = frame->bindings.count - 1; i >= 0; i--)
        if (strcmp(frame->bindings.at[i].name, name) == 0)
            return &frame->bindings.at[i];
    return NULL;
}

void frame_bind(Frame *frame, const char *name, Value value, Stmt *by) {
    Binding *old = frame_find(frame, name);
    if (old)
        *old = (Binding){name, value, by};
    else
        VEC_PUSH(frame->l->arena, &frame->bindings, ((Binding){name, value, by}));
}

/* ---- names ---- */

static int find_knob(const Module *module, const char *name) {
    for (int i = 0; i < module->knobs.count; i++)
        if (strcmp(module->knobs.at[i].name, name) == 0)
            return i;
    return -1;
}

static Value eval_param(Lowering *l, int index) {
    const Knob *knob = &l->module->knobs.at[index];
    Value value = value_number(knob->value);
    value.param = knob->name;
    if (l->fixed >> index & 1)
        return value;
    value.knobs = 1ull << index;
    value.node = graph_knob(l->g, index);
    return value;
}

/* A number that the program counts. */
static Value eval_running(Graph *g, const Expr *e) {
    Span before = graph_at(g, e->span);
    Node *number = op0(g, e->name.text, (Attr){0});
    graph_at(g, before);
    return value_varying(number);
}

static Value eval_name(Frame *frame, const Expr *e) {
    Binding *binding = frame_find(frame, e->name.text);
    if (binding) {
        if (binding->by)
            binding->by->read = true;
        return binding->value;
    }
    int knob = find_knob(frame->l->module, e->name.text);
    if (knob >= 0)
        return eval_param(frame->l, knob);
    if (is_one_of(running_numbers, running_number_count, e->name.text))
        return eval_running(frame->l->g, e);
    diag_error(frame->l->diag, e->span, "'%s' has no value here: the statement that gives it one was not carried out",
               e->name.text);
    return value_error();
}

static void put_value(Text *out, const Value *v) {
    if (v->kind == VALUE_NUMBER && !v->varies)
        text_number(out, v->number);
    else if (v->kind == VALUE_BOOL && !v->varies)
        text_puts(out, v->number != 0 ? "true" : "false");
    else if (v->kind == VALUE_STRING)
        text_puts(out, v->string);
    else if (v->kind == VALUE_TENSOR)
        text_puts(out, type_user_text(out->arena, &v->node->type));
    else
        text_puts(out, value_kind_text(out->arena, v));
}

static void put_literal(Text *out, const char *from, const char *to) {
    for (; from < to; from++) {
        text_putc(out, *from);
        if (from + 1 < to && ((from[0] == '{' && from[1] == '{') || (from[0] == '}' && from[1] == '}')))
            from++;
    }
}

const char *fill_holes(Frame *frame, const Expr *string) {
    Text out = TEXT(frame->l->arena);
    const char *at = string->name.text, *from = at, *name;
    size_t length;
    while (next_hole(&at, &name, &length)) {
        put_literal(&out, from, name - 1);
        Expr hole = {.span = string->span, .name = {arena_strndup(frame->l->arena, name, length), string->span}};
        Value value = eval_name(frame, &hole);
        value_fix(frame->l->module, &value);
        put_value(&out, &value);
        from = ++at;
    }
    put_literal(&out, from, from + strlen(from));
    return text_string(&out);
}

/* ---- calls of the library ---- */

static Value build_default(const OpDef *op, Call *call) {
    Node *in[MAX_INPUTS] = {0};
    for (int i = 0; i < call->count; i++)
        if (!(in[i] = call_tensor(call, i)))
            return value_error();
    Graph *g = call->g;
    return value_tensor(call->count == 1   ? op1(g, op->name, in[0])
                        : call->count == 2 ? op2(g, op->name, in[0], in[1])
                                           : op3(g, op->name, in[0], in[1], in[2]));
}

/* Evaluation knows no step of a training: it would compute something else than what was trained. */
static bool varies_out_of_place(Lowering *l, Span at, const OpDef *op, const Value *value) {
    if (!value->varies || l->scheduling)
        return false;
    diag_error(l->diag, at, "%s changes from step to step; it belongs in the optimizer: optimizer = adam(%s(...))",
               op->name, op->name);
    return true;
}

static bool has_extent(const Node *n, int64_t extent) {
    for (int axis = n->type.batched; axis < n->type.rank; axis++)
        if (n->type.dim[axis] == extent)
            return true;
    return false;
}

/* What a call makes of a param has its size, unless it comes from another argument that has the same. */
static void note_size(Lowering *l, const Call *call, const Value *result, int first_weight, const Value *size) {
    Module *module = l->module;
    if (size->kind != VALUE_NUMBER || !size->param || size->number < 2)
        return;
    NamedSize named = {-1, NULL, (int64_t)size->number, size->param};
    for (int i = 0; i < call->count; i++)
        if (call->args[i].kind == VALUE_TENSOR && has_extent(call->args[i].node, named.extent))
            return;
    for (named.weight = first_weight; named.weight < l->weights; named.weight++)
        VEC_PUSH(l->arena, &module->sizes, named);
    named.weight = -1;
    named.value = result->node;
    if (result->kind == VALUE_TENSOR && has_extent(result->node, named.extent))
        VEC_PUSH(l->arena, &module->sizes, named);
}

static void note_sizes(Lowering *l, const Call *call, const Value *result, int first_weight) {
    for (int i = 0; i < call->count; i++) {
        const Value *arg = &call->args[i];
        note_size(l, call, result, first_weight, arg);
        for (int k = 0; arg->kind == VALUE_LIST && k < arg->count; k++)
            note_size(l, call, result, first_weight, &arg->items[k]);
    }
}

/* A view of a value was made by what made the value. */
static void note_maker(Value *value, const OpDef *op, Span at, const Value *args) {
    const Node *from = args && args[0].kind == VALUE_TENSOR ? args[0].node : NULL;
    bool same = from && value->node && (value->node == from || value->node->op->cls == OP_VIEW);
    value->made = same ? args[0].made : op;
    value->made_at = same ? args[0].made_at : at;
}

/* Each argument that is not what the signature says is reported. */
static bool all_fit(Call *call) {
    bool fit = true;
    for (int i = 0; i < call->count; i++)
        fit &= call_fits(call, i);
    return fit;
}

static Value build_op(Frame *frame, Span at, Span callee, const char *scope, const OpDef *op, Value *args,
                      const Signature *signature) {
    Lowering *l = frame->l;
    int count = signature->count;
    Call call = {l->g, l->module, at, count, args, scope, &l->weights, op, l->made, false, signature};
    if (!all_fit(&call))
        return value_error();
    if (op->cls == OP_MAP && !op->build && op->fold) {
        Value mapped = value_apply(l, at, (Name){op->name, callee}, args, count);
        note_maker(&mapped, op, at, count ? args : NULL);
        return mapped;
    }
    Span before = graph_at(l->g, at);
    int first_weight = l->weights;
    Value value = op->build ? op->build(&call) : build_default(op, &call);
    value.rises = op->flags & OP_RISES;
    note_maker(&value, op, at, count ? args : NULL);
    graph_at(l->g, before);
    note_sizes(l, &call, &value, first_weight);
    return varies_out_of_place(l, at, op, &value) ? value_error() : value;
}

static Value call_op(Frame *frame, Expr *e, const char *scope, LayerRange *made) {
    int count = e->signature->count;
    Value *args = NEW_ARRAY(frame->l->arena, Value, count);
    bool ok = true;
    for (int i = 0; i < count; i++) {
        args[i] = e->bound[i] ? eval(frame, e->bound[i]) : e->signature->at[i].fallback;
        ok = ok && args[i].kind != VALUE_ERROR && check_switch(frame->l->diag, e, i, &args[i]);
    }
    if (ok && count) {
        doubt_scores(frame->l, e, args);
        doubt_input_size(frame->l, e, args);
    }
    made->begin = frame->l->weights;
    Value value = ok ? build_op(frame, e->span, e->name.span, scope, e->op, args, e->signature) : value_error();
    made->end = frame->l->weights;
    layers_match(frame->l, *made);
    return value;
}

Value call_library(Frame *frame, Span at, const char *name, Value argument) {
    const OpDef *op = op_find(name);
    const Signature *signature = signature_of_op(frame->l->arena, op);
    Value *args = NEW_ARRAY(frame->l->arena, Value, signature->count);
    for (int i = 0; i < signature->count; i++)
        args[i] = i ? signature->at[i].fallback : argument;
    return build_op(frame, at, at, "", op, args, signature);
}

static Value call_size_of(Frame *frame, Expr *e) {
    Value args[] = {eval(frame, e->bound[0]), eval(frame, e->bound[1])};
    Lowering *l = frame->l;
    Call call = {l->g, l->module, e->span, 2, args, "", &l->weights, NULL, l->made, false, NULL};
    if (args[0].kind == VALUE_ERROR || args[1].kind == VALUE_ERROR)
        return value_error();
    const Node *x = call_tensor(&call, 0);
    int axis = x ? call_axis(&call, 1, x) : -1;
    return axis < 0 ? value_error() : value_number((double)x->type.dim[axis]);
}

/* ---- calls of functions ---- */

static bool wrong_axis(Frame *callee, const FnParam *param, int axis, Span at, const Value *expected, int64_t found) {
    const Expr *size = param->shape.at[axis];
    Lowering *l = callee->l;
    Text text = TEXT(l->arena);
    put_value(&text, expected);
    if (size->kind == EXPR_NAME)
        diag_error(l->diag, at, "axis %d of '%s' has size %lld, but '%s' is %s", axis, param->name.text,
                   (long long)found, size->name.text, text_string(&text));
    else
        diag_error(l->diag, at, "axis %d of '%s' has size %lld, not %s", axis, param->name.text, (long long)found,
                   text_string(&text));
    diag_note(l->diag, size->span, "'%s' declares it here", callee->fn->name.text);
    return false;
}

/* A name in a shape stands for the size that it meets first, and must agree from then on. */
static bool match_axis(Frame *callee, const FnParam *param, int axis, Span at, int64_t size) {
    Expr *pattern = param->shape.at[axis];
    Module *module = callee->l->module;
    const char *name = pattern->kind == EXPR_NAME ? pattern->name.text : NULL;
    if (name && strcmp(name, "_") == 0)
        return true;
    if (name && find_knob(module, name) < 0 && !frame_find(callee, name)) {
        frame_bind(callee, name, value_number((double)size), NULL);
        return true;
    }
    Value expected = eval(callee, pattern);
    value_fix(module, &expected);
    if (expected.kind == VALUE_NUMBER && expected.number == (double)size)
        return true;
    return expected.kind != VALUE_ERROR && wrong_axis(callee, param, axis, at, &expected, size);
}

static bool match_shape(Frame *callee, const FnParam *param, const Value *value, Span at) {
    Lowering *l = callee->l;
    if (!param->has_shape)
        return true;
    const Type *type = value->kind == VALUE_TENSOR ? &value->node->type : NULL;
    if (!type || type->rank - type->batched != param->shape.count) {
        diag_error(l->diag, at, "'%s' of '%s' is a tensor of %d ax%s, this is %s", param->name.text,
                   callee->fn->name.text, param->shape.count, param->shape.count == 1 ? "is" : "es",
                   value_kind_text(l->arena, value));
        diag_note(l->diag, param->name.span, "'%s' declares it here", callee->fn->name.text);
        return false;
    }
    for (int i = 0; i < param->shape.count; i++)
        if (!match_axis(callee, param, i, at, type->dim[i + type->batched]))
            return false;
    return true;
}

bool bind_arguments(Frame *caller, Frame *callee, Expr *e) {
    Value *given = NEW_ARRAY(caller->l->arena, Value, e->signature->count);
    for (int i = 0; i < e->signature->count; i++)
        if (e->bound[i] && (given[i] = eval(caller, e->bound[i])).kind == VALUE_ERROR)
            return false;
    for (int i = 0; i < e->signature->count; i++) {
        const FnParam *param = &e->fn->params.at[i];
        Value value = e->bound[i] ? given[i] : eval(callee, param->value);
        if (value.kind == VALUE_LIST && param->has_shape)
            value = value_tensor(value_node(caller->l->g, &value));
        if (value.kind == VALUE_ERROR)
            return false;
        frame_bind(callee, param->name.text, value, NULL);
        if (!match_shape(callee, param, &value, e->bound[i] ? e->bound[i]->span : e->span))
            return false;
    }
    return true;
}

static Value call_fn(Frame *frame, Expr *e, const char *scope, LayerRange *made) {
    Lowering *l = frame->l;
    Frame callee = {.l = l, .fn = e->fn, .path = scope, .indices = "", .statement = scope};
    int errors = diag_errors(l->diag);
    callee.result = value_error();
    if (e->fn->failed || !bind_arguments(frame, &callee, e))
        return value_error();
    int inside = diag_errors(l->diag);
    made->begin = l->weights;
    run_body(&callee, &e->fn->body);
    if (diag_errors(l->diag) > inside) {
        e->fn->failed = true;
        diag_note(l->diag, e->span, "in this call of '%s'", e->name.text);
    }
    made->end = l->weights;
    e->fn->returned = callee.result_at;
    return diag_errors(l->diag) > errors ? value_error() : callee.result;
}

/* ---- calls ---- */

static bool valid_layer_name(const char *name) {
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
    for (;;) {
        size_t length = strspn(name, letters);
        if (length == 0)
            return false;
        name += length;
        if (*name == '\0')
            return true;
        if (*name++ != '.')
            return false;
    }
}

/* Names grow with the calls that they are made in; the work on a line that has one, with the square of its length. */
static bool scope_fits(Frame *frame, const Expr *call, const char *scope) {
    enum { LONGEST_SCOPE = 1000 };
    if (strlen(scope) <= LONGEST_SCOPE)
        return true;
    diag_error(frame->l->diag, call->layer_name ? call->layer_name->span : call->span,
               "what is made here would have a name of more than %d characters", LONGEST_SCOPE);
    return false;
}

/* The path that `name = "fc"` gives to a layer, or NULL; repetitions are told apart by their index. */
static const char *explicit_path(Frame *frame, const Expr *layer_name) {
    const char *name = fill_holes(frame, layer_name);
    if (!valid_layer_name(name)) {
        diag_error(frame->l->diag, layer_name->span, "a layer's name is made of letters, digits, '_' and '.'");
        return NULL;
    }
    bool holes = strchr(layer_name->name.text, '{') != NULL;
    return holes ? name : arena_printf(frame->l->arena, "%s%s", name, frame->indices);
}

/* The weights that a call made: named at once, or with the others of the statement. */
static void add_layers(Frame *frame, LayerRange made, const char *name) {
    Lowering *l = frame->l;
    while (l->places.count < l->module->weights.count)
        VEC_PUSH(l->arena, &l->places, l->place);
    if (name)
        layers_prefix(l, made, name);
    else if (made.end > made.begin)
        VEC_PUSH(l->arena, &frame->layers, made);
}

static Value eval_call(Frame *frame, Expr *e) {
    if (e->fn && e->fn->shares)
        return call_layer(frame, e);
    const char *name = e->layer_name ? explicit_path(frame, e->layer_name) : NULL;
    if (e->layer_name && !name)
        return value_error();
    const char *scope = name ? scope_join(frame->l->arena, frame->path, name) : frame->statement;
    if (!scope_fits(frame, e, scope))
        return value_error();
    LayerRange made = {0};
    Value value = e->fn   ? call_fn(frame, e, scope, &made)
                  : e->op ? call_op(frame, e, scope, &made)
                          : call_size_of(frame, e);
    if (name && made.begin == made.end && value.kind != VALUE_ERROR) {
        diag_error(frame->l->diag, e->layer_name->span, "'%s' makes no weights that could have a name", e->name.text);
        return value_error();
    }
    add_layers(frame, made, name);
    return value;
}

/* ---- expressions ---- */

static Value eval_list(Frame *frame, Expr *e) {
    Value *items = NEW_ARRAY(frame->l->arena, Value, e->args.count);
    for (int i = 0; i < e->args.count; i++)
        if ((items[i] = eval(frame, e->args.at[i].value)).kind == VALUE_ERROR)
            return value_error();
    return (Value){.kind = VALUE_LIST, .items = items, .count = e->args.count};
}

static Value eval_several(Frame *frame, Expr *e) {
    Value values = eval_list(frame, e);
    if (values.kind == VALUE_LIST)
        values.kind = VALUE_SEVERAL;
    return values;
}

/* `a and b` when a is false, `a or b` when a is true: b does not matter, and may be wrong. */
static bool decides(const Expr *e, const Value *first) {
    bool truth = first->kind == VALUE_BOOL && first->number != 0;
    return first->kind == VALUE_BOOL && !first->node &&
           ((strcmp(e->name.text, "and") == 0 && !truth) || (strcmp(e->name.text, "or") == 0 && truth));
}

static Value eval_operator(Frame *frame, Expr *e) {
    Value operands[2] = {eval(frame, e->args.at[0].value)};
    if (e->args.count == 2 && decides(e, &operands[0]))
        return operands[0];
    if (e->args.count == 2)
        operands[1] = eval(frame, e->args.at[1].value);
    return value_apply(frame->l, e->span, e->name, operands, e->args.count);
}

static Value eval_kind(Frame *frame, Expr *e) {
    switch (e->kind) {
    case EXPR_NUMBER: return value_number(e->number);
    case EXPR_BOOL: return value_bool(e->number != 0);
    case EXPR_NONE: return (Value){.kind = VALUE_NONE};
    case EXPR_STRING: return (Value){.kind = VALUE_STRING, .string = e->name.text};
    case EXPR_NAME: return eval_name(frame, e);
    case EXPR_LIST: return eval_list(frame, e);
    case EXPR_SEVERAL: return eval_several(frame, e);
    case EXPR_INDEX: return eval_index(frame, e);
    case EXPR_RANGE: break; /* index.c reads its ends */
    case EXPR_OPERATOR: return eval_operator(frame, e);
    case EXPR_CALL: return eval_call(frame, e);
    }
    return value_error();
}

bool within_limits(Lowering *l, Span at) {
    if (l->stopped)
        return false;
    l->stopped = ++l->steps > MAX_STEPS || l->g->nodes.count > MAX_NODES || l->depth > MAX_NESTING;
    if (l->depth > MAX_NESTING)
        diag_error(l->diag, at, "calls and expressions are nested more than %d levels deep", MAX_NESTING);
    else if (l->stopped)
        diag_error(l->diag, at, "the model unrolls into more than %d operations", MAX_NODES);
    return !l->stopped;
}

Value eval_values(Frame *frame, Expr *e) {
    Lowering *l = frame->l;
    if (!within_limits(l, e->span))
        return value_error();
    l->depth++;
    Value value = eval_kind(frame, e);
    l->depth--;
    value.src = e->span;
    return value;
}

Value eval(Frame *frame, Expr *e) {
    Value value = eval_values(frame, e);
    if (value.kind != VALUE_SEVERAL)
        return value;
    diag_error(frame->l->diag, e->span,
               "'%s' returns %d values; each has a name: a, b = %s(...), or _ where it is not used", e->name.text,
               value.count, e->name.text);
    if (e->fn)
        diag_note(frame->l->diag, e->fn->returned, "they are returned here");
    return value_error();
}
