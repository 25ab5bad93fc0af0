/* Names: every use is bound to something named before it, every call to a function and its parameters. */
#include "front/data.h"
#include "front/habits.h"
#include "op/table.h"

const char *const running_numbers[] = {
#define WORD(word, token)
#define RUNNING(word) word,
#include "support/words.def"
};
const int running_number_count = sizeof running_numbers / sizeof *running_numbers;

enum { MAX_LISTED = 12 };

Scope scope_new(Diag *diag, Ast *ast, Fn *fn) {
    Scope scope = {.diag = diag, .arena = ast->arena, .ast = ast, .fn = fn};
    for (int i = 0; i < ast->params.count; i++) {
        VEC_PUSH(scope.arena, &scope.variables, ((Variable){.name = ast->params.at[i]->name, .kind = VARIABLE_PARAM}));
        scope_mark(&scope, ast->params.at[i]->name.text, &ast->params.at[i]->read);
    }
    return scope;
}

Variable *scope_find(Scope *scope, const char *name) {
    for (int i = scope->variables.count - 1; i >= 0; i--)
        if (strcmp(scope->variables.at[i].name.text, name) == 0)
            return &scope->variables.at[i];
    return NULL;
}

void scope_mark(Scope *scope, const char *name, bool *read) {
    Variable *variable = scope_find(scope, name);
    VEC_PUSH(scope->arena, &variable->marks, read);
}

/* ---- introducing names ---- */

static bool taken(Scope *scope, Name name, const Variable *by) {
    static const char *const what[] = {
        [VARIABLE_LOCAL] = "a value",
        [VARIABLE_PARAMETER] = "a parameter of the function",
        [VARIABLE_LAYER] = "a layer",
        [VARIABLE_INDEX] = "the index of a repeat",
        [VARIABLE_FIELD] = "a field of the data",
        [VARIABLE_PARAM] = "a param of the file",
    };
    diag_error(scope->diag, name.span, "'%s' is already %s; choose another name", name.text, what[by->kind]);
    diag_note(scope->diag, by->name.span, "'%s' is introduced here", name.text);
    return false;
}

/* Values may be assigned again; a function's own names hide the params of the file. */
bool scope_add(Scope *scope, Name name, VariableKind kind) {
    Variable *old = scope_find(scope, name.text);
    bool hides = old && scope->fn && old->kind == VARIABLE_PARAM;
    bool again = old && (old->kind == VARIABLE_LOCAL || old->kind == VARIABLE_PARAMETER);
    if ((again && kind == VARIABLE_LOCAL) || (old && old->kind == VARIABLE_UNKNOWN))
        return true;
    if (old && !hides)
        return taken(scope, name, old);
    VEC_PUSH(scope->arena, &scope->variables, ((Variable){.name = name, .kind = kind}));
    return true;
}

/* The index of a repeat is gone after it; the values assigned in it stay. */
static void scope_remove(Scope *scope, const char *name) {
    Variable *variable = scope_find(scope, name), *end = scope->variables.at + scope->variables.count;
    memmove(variable, variable + 1, (size_t)(end - variable - 1) * sizeof *variable);
    scope->variables.count--;
}

/* ---- using names ---- */

static void unknown_name(Scope *scope, const Name *name) {
    const char **names = NEW_ARRAY(scope->arena, const char *, scope->variables.count);
    int count = 0;
    for (int i = 0; i < scope->variables.count; i++)
        if (scope->variables.at[i].kind != VARIABLE_UNKNOWN)
            names[count++] = scope->variables.at[i].name.text;
    bool function = ast_find_fn(scope->ast, name->text) || is_of_library(name->text);
    const char *word = habit(SYMBOL, name->text, strlen(name->text)); /* False, None */
    const char *near =
        word ? arena_printf(scope->arena, "; %s", word) : suggestion(scope->arena, name->text, names, count);
    diag_error(scope->diag, name->span, "unknown name '%s'%s", name->text, near);
    if (function && !*near)
        diag_note(scope->diag, name->span, "'%s' is a function; it is called as %s(...)", name->text, name->text);
    else if (is_one_of(running_numbers, running_number_count, name->text))
        diag_note(scope->diag, name->span, "'%s' is a number in the train block", name->text);
    else if (!*near && count && count <= MAX_LISTED)
        diag_note(scope->diag, name->span, "known here: %s", name_list(scope->arena, names, count));
    VEC_PUSH(scope->arena, &scope->variables, ((Variable){.name = *name, .kind = VARIABLE_UNKNOWN}));
}

static void use_name(Scope *scope, const Name *name) {
    Variable *variable = scope_find(scope, name->text);
    if (!variable) {
        unknown_name(scope, name);
        return;
    }
    variable->read = true;
    if (variable->kind == VARIABLE_LAYER)
        diag_error(scope->diag, name->span, "'%s' is a layer, whose values are made by calls of it: %s", name->text,
                   variable->layer->signature->text);
    if (scope->branches || variable->kind == VARIABLE_PARAM)
        for (int i = 0; i < variable->marks.count; i++)
            *variable->marks.at[i] = true;
}

bool next_hole(const char **at, const char **name, size_t *length) {
    for (const char *c = *at; *c; c++) {
        if (*c != '{')
            continue;
        if (c[1] == '{') {
            c++;
            continue;
        }
        *name = c + 1;
        *length = strcspn(*name, "}");
        *at = *name + *length;
        return true;
    }
    return false;
}

/* The names between braces in a message or a layer's name. */
static void use_holes(Scope *scope, const Expr *string) {
    const char *at = string->name.text, *name;
    size_t length;
    while (next_hole(&at, &name, &length)) {
        if (*at != '}') {
            diag_error(scope->diag, string->span, "a brace in this string is not closed; a brace itself is written {{");
            return;
        }
        Name hole = {arena_strndup(scope->arena, name, length), string->span};
        use_name(scope, &hole);
    }
}

/* ---- calls ---- */

const char **callable_names(Arena *arena, const Ast *ast, int *count) {
    const char **names = NEW_ARRAY(arena, const char *, op_table.count + ast->fns.count + builtin_count);
    *count = 0;
    for (int i = 0; i < op_table.count; i++)
        if (op_table.at[i]->signature)
            names[(*count)++] = op_table.at[i]->name;
    for (int i = 0; i < ast->fns.count; i++)
        names[(*count)++] = ast->fns.at[i]->name.text;
    for (int i = 0; i < builtin_count; i++)
        names[(*count)++] = builtin_names[i];
    return names;
}

/* The functions, and the layers of this place. */
static const char *nearest_callable(Scope *scope, const char *name) {
    int count;
    const char **names = callable_names(scope->arena, scope->ast, &count), **all;
    all = NEW_ARRAY(scope->arena, const char *, count + scope->variables.count);
    memcpy(all, names, (size_t)count * sizeof *all);
    for (int i = 0; i < scope->variables.count; i++)
        if (scope->variables.at[i].kind == VARIABLE_LAYER)
            all[count++] = scope->variables.at[i].name.text;
    return suggestion(scope->arena, name, all, count);
}

static void unknown_function(Scope *scope, const Expr *call) {
    const char *advice = call_advice(scope->arena, call->name.text),
               *near =
                   advice ? arena_printf(scope->arena, "; write %s", advice) : nearest_callable(scope, call->name.text);
    bool value = scope_find(scope, call->name.text),
         data = source_find(call->name.text) || field_source_find(call->name.text);
    if (data && !value)
        diag_error(scope->diag, call->name.span, "'%s' belongs in the data block", call->name.text);
    else if (value && !*near)
        diag_error(scope->diag, call->name.span, "'%s' is a value, not a function", call->name.text);
    else
        diag_error(scope->diag, call->name.span, "unknown function '%s'%s", call->name.text, near);
    if (!*near && !value && !data)
        diag_note(scope->diag, call->name.span, "'mtc --operators' lists the functions of the library");
}

/* A function of the text hides one of the library that has its name: there in the text, not inside of the library. */
static const Signature *callee(Scope *scope, Expr *call) {
    static const Parameter size_parameters[] = {{.name = "x", .required = true}, {.name = "axis", .required = true}};
    static const Signature size_signature = {"size(x, axis)", (Parameter *)size_parameters, 2};
    const Variable *variable = scope_find(scope, call->name.text);
    bool layer = variable && variable->kind == VARIABLE_LAYER;
    call->fn = layer ? variable->layer : ast_find_fn(scope->ast, call->name.text);
    if (call->fn)
        return call->fn->signature;
    if (is_builtin(call->name.text))
        return &size_signature;
    call->op = op_find(call->name.text);
    return call->op && call->op->signature ? signature_of_op(scope->arena, call->op) : NULL;
}

/* Its weights are made once, and called what its declaration says. */
static void check_layer_call(Scope *scope, const Expr *call) {
    if (scope->in_layer)
        diag_error(scope->diag, call->name.span, "a layer calls functions, and no other layer");
    else if (call->layer_name)
        diag_error(scope->diag, call->layer_name->span,
                   "the weights of '%s' are the same in all calls; they are named "
                   "where it is declared",
                   call->name.text);
    else
        return;
    diag_note(scope->diag, call->fn->span, "'%s' is declared here", call->name.text);
}

static void resolve_call(Scope *scope, Expr *call) {
    const Signature *signature = callee(scope, call);
    for (int i = 0; i < call->args.count; i++)
        resolve_expr(scope, call->args.at[i].value);
    if (!signature) {
        unknown_function(scope, call);
        return;
    }
    bind_call(scope->diag, scope->arena, call, signature);
    if (call->fn)
        call->fn->called = true;
    if (call->fn && call->fn->shares)
        check_layer_call(scope, call);
    if (call->fn && scope->fn)
        VEC_PUSH(scope->arena, &scope->fn->calls, call);
    if (call->layer_name && call->layer_name->kind == EXPR_STRING)
        use_holes(scope, call->layer_name);
    else if (call->layer_name)
        diag_error(scope->diag, call->layer_name->span, "a layer's name is a string: name = \"fc\"");
}

void resolve_expr(Scope *scope, Expr *e) {
    if (!e)
        return;
    if (e->kind == EXPR_NAME)
        use_name(scope, &e->name);
    if (e->kind == EXPR_CALL) {
        resolve_call(scope, e);
        return;
    }
    for (int i = 0; i < e->args.count; i++)
        resolve_expr(scope, e->args.at[i].value);
}

/* ---- statements ---- */

void resolve_exprs(Scope *scope, const ExprList *list) {
    for (int i = 0; i < list->count; i++)
        resolve_expr(scope, list->at[i]);
}

static void misplaced(Scope *scope, const Stmt *s) {
    if (s->kind == STMT_RETURN)
        diag_error(scope->diag, s->span, "'return' belongs in a function");
    else
        diag_error(scope->diag, s->span, "a field ('%s : %s') belongs in the data block", s->name.text, s->type.text);
}

static void resolve_parameters(Scope *scope, const Fn *fn);
static void warn_parameters(Scope *scope, const Fn *fn, int first);

void refuse_manner(const Scope *scope, const Stmt *s) {
    if (s->manner.text)
        diag_error(scope->diag, s->manner.span,
                   "only a split of the data block is 'in order': split = 80 / 20 in order");
}

/* A layer sees what stands above it; its parameters hide what has their names. */
static void resolve_layer(Scope *scope, Stmt *s) {
    const Fn *function = ast_find_fn(scope->ast, s->name.text);
    int outer = scope->variables.count;
    s->fn->signature = signature_of_fn(scope->arena, s->fn);
    scope->in_layer = true;
    resolve_parameters(scope, s->fn);
    resolve_expr(scope, s->fn->body.at[0]->value);
    warn_parameters(scope, s->fn, outer);
    scope->in_layer = false;
    scope->variables.count = outer;
    if (function)
        report_duplicate(scope->diag, "function", s->name, function->name.span);
    else if (scope_add(scope, s->name, VARIABLE_LAYER))
        scope_find(scope, s->name.text)->layer = s->fn;
}

static void introduce(Scope *scope, Stmt *s) {
    if (scope_add(scope, s->name, VARIABLE_LOCAL))
        scope_mark(scope, s->name.text, &s->read);
}

/* `a, b = f(x)`; what is called `_` is not used. */
static void introduce_several(Scope *scope, const StmtList *names) {
    for (int i = 0; i < names->count; i++) {
        Stmt *s = names->at[i];
        if (strcmp(s->name.text, "_") == 0)
            continue;
        for (int k = 0; k < i; k++)
            if (strcmp(names->at[k]->name.text, s->name.text) == 0)
                diag_error(scope->diag, s->name.span, "'%s' would have two of these values", s->name.text);
        introduce(scope, s);
    }
}

static void resolve_stmt(Scope *scope, Stmt *s) {
    if (s->kind == STMT_FIELD || (s->kind == STMT_RETURN && !scope->fn)) {
        misplaced(scope, s);
        return;
    }
    if (s->kind == STMT_LAYER) {
        resolve_layer(scope, s);
        return;
    }
    refuse_manner(scope, s);
    resolve_expr(scope, s->value);
    resolve_expr(scope, s->end);
    resolve_exprs(scope, &s->dims);
    if (s->message)
        use_holes(scope, s->message);
    if (s->kind == STMT_ASSIGN)
        introduce(scope, s);
    if (s->kind == STMT_SEVERAL) {
        introduce_several(scope, &s->body);
        return;
    }
    bool index = s->kind == STMT_REPEAT && scope_add(scope, s->name, VARIABLE_INDEX);
    scope->branches++;
    resolve_body(scope, &s->body);
    resolve_body(scope, &s->other);
    scope->branches--;
    if (index)
        scope_remove(scope, s->name.text);
}

void resolve_body(Scope *scope, const StmtList *body) {
    for (int i = 0; i < body->count; i++) {
        resolve_stmt(scope, body->at[i]);
        if (body->at[i]->kind == STMT_RETURN && i + 1 < body->count)
            diag_error(scope->diag, body->at[i + 1]->span, "nothing after 'return' is ever reached");
    }
}

/* ---- functions ---- */

static void resolve_shape(Scope *scope, const FnParam *param) {
    for (int i = 0; i < param->shape.count; i++) {
        const Expr *size = param->shape.at[i];
        if (size->kind == EXPR_NAME && strcmp(size->name.text, "_") != 0 && !scope_find(scope, size->name.text))
            scope_add(scope, size->name, VARIABLE_PARAMETER);
        if (size->kind == EXPR_NAME && scope_find(scope, size->name.text))
            scope_find(scope, size->name.text)->read = true;
        if (size->kind != EXPR_NAME && size->kind != EXPR_NUMBER)
            diag_error(scope->diag, size->span, "a size in a shape is a name, a number or _");
    }
}

static void add_parameter(Scope *scope, const Fn *fn, const Name *name) {
    if (fn->shares)
        VEC_PUSH(scope->arena, &scope->variables, ((Variable){.name = *name, .kind = VARIABLE_PARAMETER}));
    else
        scope_add(scope, *name, VARIABLE_PARAMETER);
}

static void resolve_parameters(Scope *scope, const Fn *fn) {
    for (int i = 0; i < fn->params.count; i++) {
        const FnParam *param = &fn->params.at[i];
        resolve_expr(scope, param->value);
        add_parameter(scope, fn, &param->name);
        resolve_shape(scope, param);
        if (i && !param->value && fn->params.at[i - 1].value)
            diag_error(scope->diag, param->name.span, "a parameter without a default stands after one with a default");
    }
}

static bool returns(const StmtList *body) {
    for (int i = 0; i < body->count; i++) {
        const Stmt *s = body->at[i];
        if (s->kind == STMT_RETURN || (s->kind == STMT_IF && returns(&s->body) && returns(&s->other)))
            return true;
    }
    return false;
}

static void warn_parameters(Scope *scope, const Fn *fn, int first) {
    for (int i = first; i < scope->variables.count; i++) {
        const Variable *v = &scope->variables.at[i];
        if (v->kind == VARIABLE_PARAMETER && !v->read)
            diag_warning(scope->diag, v->name.span, "parameter '%s' of '%s' is never used", v->name.text,
                         fn->name.text);
    }
}

void resolve_fn(Diag *diag, Ast *ast, Fn *fn) {
    Scope scope = scope_new(diag, ast, fn);
    int errors = diag_errors(diag);
    resolve_parameters(&scope, fn);
    resolve_body(&scope, &fn->body);
    if (!returns(&fn->body))
        diag_error(diag, fn->span, "'%s' does not end with a 'return'", fn->name.text);
    if (diag_errors(diag) == errors)
        warn_parameters(&scope, fn, 0);
}
