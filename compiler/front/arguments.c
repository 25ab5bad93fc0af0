#include "front/arguments.h"

#include "front/habits.h"
#include "op/table.h"

const char *const builtin_names[] = {"size"};
const int builtin_count = 1;

bool is_builtin(const char *name) {
    for (int i = 0; i < builtin_count; i++)
        if (strcmp(builtin_names[i], name) == 0)
            return true;
    return false;
}

bool is_of_library(const char *name) {
    const OpDef *op = op_find(name);
    return (op && op->signature) || is_builtin(name);
}

const char *suggestion(Arena *arena, const char *name, const char *const *candidates, int count) {
    const char *near = nearest_name(name, candidates, count);
    return near ? arena_printf(arena, "; did you mean '%s'?", near) : "";
}

const char *name_list(Arena *arena, const char *const *names, int count) {
    Text out = TEXT(arena);
    for (int i = 0; i < count; i++)
        text_printf(&out, "%s'%s'", i == 0 ? "" : i == count - 1 ? " and " : ", ", names[i]);
    return text_string(&out);
}

/* ---- signatures ---- */

Signature *signature_of_fn(Arena *arena, const Fn *fn) {
    Signature *s = NEW(arena, Signature);
    Text text = TEXT(arena);
    s->at = NEW_ARRAY(arena, Parameter, fn->params.count);
    s->count = fn->params.count;
    text_printf(&text, "%s(", fn->name.text);
    for (int i = 0; i < s->count; i++) {
        const FnParam *param = &fn->params.at[i];
        s->at[i] = (Parameter){.name = param->name.text, .required = !param->value};
        text_printf(&text, "%s%s", i ? ", " : "", param->name.text);
        if (param->value)
            text_printf(&text, " = %s", span_text(arena, param->value->span));
    }
    text_putc(&text, ')');
    s->text = text_string(&text);
    return s;
}

const char *call_advice(Arena *arena, const char *name) {
    const char *advice = habit(CALL, name, strlen(name));
    for (int i = 0; i < op_table.count && !advice; i++)
        if (op_table.at[i]->signature && same_letters(name, strlen(name), op_table.at[i]->name))
            advice = arena_printf(arena, "%s(%s)", op_table.at[i]->name, op_table.at[i]->signature);
    return advice;
}

/* ---- binding ---- */

typedef struct Binder {
    Diag *diag;
    Arena *arena;
    Expr *call;
    const Signature *signature;
    int positional; /* parameters taken by position so far */
    ExprList rest;
    bool ok;
} Binder;

static void show_signature(Binder *b) {
    const Fn *fn = b->call->fn;
    diag_note(b->diag, b->call->name.span, "it is called as %s", b->signature->text);
    if (fn && is_of_library(fn->name.text))
        diag_note(b->diag, fn->name.span, "this '%s' hides the library's", fn->name.text);
    b->ok = false;
}

static void bind_to(Binder *b, int parameter, const Arg *arg) {
    Expr **slot = &b->call->bound[parameter];
    if (!*slot) {
        *slot = arg->value;
        return;
    }
    diag_error(b->diag, arg->value->span, "'%s' of '%s' is given twice", b->signature->at[parameter].name,
               b->call->name.text);
    diag_note(b->diag, (*slot)->span, "it is given here too");
    b->ok = false;
}

static int find_parameter(const Signature *signature, const char *name) {
    for (int i = 0; i < signature->count; i++)
        if (strcmp(signature->at[i].name, name) == 0)
            return i;
    return -1;
}

const char *without_input_size(Arena *arena, const Expr *call) {
    Text text = TEXT(arena);
    text_printf(&text, "%s(%s", call->name.text, span_text(arena, call->args.at[0].value->span));
    for (int i = 2; i < call->args.count; i++) {
        const Arg *arg = &call->args.at[i];
        const char *name = arg->name.text;
        text_printf(&text, ", %s%s%s", name ? name : "", name ? " = " : "", span_text(arena, arg->value->span));
    }
    text_putc(&text, ')');
    return text_string(&text);
}

/* `linear(x, 784, 32)`: PyTorch says the size of the input too, so that the size of the output comes a place too late. */
bool check_switch(Diag *diag, const Expr *call, int index, const Value *value) {
    const Signature *signature = call->signature;
    const Parameter *parameter = &signature->at[index];
    const Expr *given = call->bound[index];
    if (parameter->required || parameter->fallback.kind != VALUE_BOOL || !given || value->kind != VALUE_NUMBER)
        return true;
    bool by_position = index < call->args.count && !call->args.at[index].name.text;
    const char *number = span_text(diag_arena(diag), given->span);
    diag_error(diag, given->span, "'%s' of '%s' is true or false, not %s", parameter->name, call->name.text, number);
    if (by_position && index > 1 && (find_parameter(signature, "out") == 1 || find_parameter(signature, "units") == 1))
        diag_note(diag, given->span, "the size of the input is not said, it is that of the argument: %s",
                  without_input_size(diag_arena(diag), call));
    diag_note(diag, call->name.span, "it is called as %s", signature->text);
    return false;
}

static void bind_positional(Binder *b, const Arg *arg) {
    int index = b->positional;
    if (index < b->signature->count && b->signature->at[index].rest) {
        VEC_PUSH(b->arena, &b->rest, arg->value);
    } else if (index < b->signature->count) {
        bind_to(b, index, arg);
        b->positional++;
    } else if (b->positional++ == b->signature->count) {
        diag_error(b->diag, arg->value->span, "'%s' takes %d argument%s, this is one too many", b->call->name.text,
                   b->signature->count, b->signature->count == 1 ? "" : "s");
        show_signature(b);
    }
}

/* The signature's parameter that is meant, or what there is to say of a foreign name. */
static const char *advice_on(const Binder *b, const char *name) {
    for (int i = 0; i < b->signature->count; i++)
        if (habit_is(RENAMED, name, b->signature->at[i].name))
            return arena_printf(b->arena, "; it is called '%s' here", b->signature->at[i].name);
    const char *advice = habit(PARAMETER, name, strlen(name));
    if (advice)
        return arena_printf(b->arena, "; %s", advice);
    const char **names = NEW_ARRAY(b->arena, const char *, b->signature->count);
    for (int i = 0; i < b->signature->count; i++)
        names[i] = b->signature->at[i].name;
    return suggestion(b->arena, name, names, b->signature->count);
}

static void unknown_parameter(Binder *b, const Name *name) {
    diag_error(b->diag, name->span, "'%s' has no parameter '%s'%s", b->call->name.text, name->text,
               advice_on(b, name->text));
    show_signature(b);
}

static void bind_named(Binder *b, const Arg *arg) {
    int index = find_parameter(b->signature, arg->name.text);
    if (index >= 0)
        bind_to(b, index, arg);
    else if (strcmp(arg->name.text, "name") == 0)
        b->call->layer_name = arg->value;
    else
        unknown_parameter(b, &arg->name);
}

/* The arguments of the parameter that takes any number of them, as one list. */
static void bind_rest(Binder *b) {
    int at = 0;
    while (at < b->signature->count && !b->signature->at[at].rest)
        at++;
    if (at == b->signature->count || (b->call->bound[at] && !b->rest.count))
        return;
    Span span = b->rest.count ? span_join(b->rest.at[0]->span, b->rest.at[b->rest.count - 1]->span) : b->call->span;
    Arg list = {.value = expr_list(b->arena, span, b->rest)};
    bind_to(b, at, &list);
}

static void report_missing(Binder *b) {
    for (int i = 0; i < b->signature->count && b->ok; i++) {
        if (b->call->bound[i] || !b->signature->at[i].required)
            continue;
        diag_error(b->diag, b->call->span, "'%s' needs '%s'", b->call->name.text, b->signature->at[i].name);
        show_signature(b);
    }
}

bool bind_call(Diag *diag, Arena *arena, Expr *call, const Signature *signature) {
    Binder b = {.diag = diag, .arena = arena, .call = call, .signature = signature, .ok = true};
    bool named = false;
    call->signature = signature;
    call->bound = NEW_ARRAY(arena, Expr *, signature->count);
    for (int i = 0; i < call->args.count; i++) {
        const Arg *arg = &call->args.at[i];
        if (arg->name.text) {
            bind_named(&b, arg);
            named = true;
        } else if (named) {
            diag_error(diag, arg->value->span, "an argument without a name stands after one with a name");
            show_signature(&b);
        } else {
            bind_positional(&b, arg);
        }
    }
    bind_rest(&b);
    report_missing(&b);
    return b.ok;
}

Expr *bound_argument(const Expr *call, const char *parameter) {
    int index = find_parameter(call->signature, parameter);
    return index < 0 ? NULL : call->bound[index];
}
