/* Declarations: which blocks there are and what stands in them, duplicates, recursion. */
#include "front/check.h"

static const char *const split_names[] = {"train", "test", "validation"};
static const char *const format_names[] = {"idx"};
static const char *const field_types[] = {"u8", "i32", "f32", "class"};
/* The generated program's own flags; a param may not take their names. --help is no row of that table. */
static const char *const program_flags[] = {
#define FLAG(field, name, ...) name,
#include "../../runtime/flags.def"
    "help"};
static const char *const train_keys[] = {"loss", "metric", "optimizer", "batch", "epochs", "seed", "predict"};

enum { MAX_FIELDS = 8, MAX_PARAMS = 32, MAX_CALLS = 100 };

#define COUNT(array) (int)(sizeof(array) / sizeof *(array))

static bool contains(const char *const *names, int count, const char *name) {
    for (int i = 0; i < count; i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

/* `unknown <what> 'nam'; did you mean 'name'?` and the list of the valid ones. */
static void unknown(Diag *diag, Arena *arena, const char *what, Name name, const char *const *names, int count) {
    diag_error(diag, name.span, "unknown %s '%s'%s", what, name.text, suggestion(arena, name.text, names, count));
    diag_note(diag, name.span, "valid here: %s", name_list(arena, names, count));
}

static void duplicate(Diag *diag, const char *what, Name name, Span first) {
    diag_error(diag, name.span, "%s '%s' is given twice", what, name.text);
    diag_note(diag, first, "it is given here first");
}

/* ---- params ---- */

static void check_range(Diag *diag, const Param *p) {
    if (!p->has_range)
        return;
    if (p->low > p->high)
        diag_error(diag, p->span, "the range of '%s' is empty: %g is above %g", p->name.text, p->low, p->high);
    else if (p->value < p->low || p->value > p->high)
        diag_error(diag, p->value_span, "'%s' is %g, outside its own range %g..%g", p->name.text, p->value, p->low,
                   p->high);
}

static void check_params(Diag *diag, const Ast *ast) {
    for (int i = 0; i < ast->params.count; i++) {
        const Param *p = ast->params.at[i];
        for (int k = 0; k < i; k++)
            if (strcmp(ast->params.at[k]->name.text, p->name.text) == 0) {
                duplicate(diag, "param", p->name, ast->params.at[k]->name.span);
                break;
            }
        check_range(diag, p);
        if (contains(program_flags, COUNT(program_flags), p->name.text))
            diag_error(diag, p->name.span, "--%s is a flag of every program; choose another name for this param",
                       p->name.text);
        if (i == MAX_PARAMS)
            diag_error(diag, p->name.span, "a model has at most %d params", MAX_PARAMS);
    }
}

/* ---- functions ---- */

static void check_fn_name(Diag *diag, const Ast *ast, const Fn *fn) {
    const OpDef *op = op_find(fn->name.text);
    const Fn *first = ast_find_fn(ast, fn->name.text);
    if (first != fn)
        duplicate(diag, "function", fn->name, first->name.span);
    else if ((op && op->signature) || contains(builtin_names, builtin_count, fn->name.text))
        diag_error(diag, fn->name.span, "'%s' is a function of the library; choose another name", fn->name.text);
}

static void report_cycle(Diag *diag, const Fn *fn, Expr *const *path, int length) {
    int start = length - 2;
    while (start >= 0 && path[start]->fn != fn)
        start--;
    diag_error(diag, path[length - 1]->span, "'%s' calls itself; a model has no recursion", fn->name.text);
    for (int i = start + 1; i < length - 1; i++)
        diag_note(diag, path[i]->span, "through this call of '%s'", path[i]->name.text);
}

/* Depth first; `path` holds the calls that lead to fn. */
static void visit(Diag *diag, Fn *fn, Expr **path, int length) {
    if (fn->visit == 1)
        report_cycle(diag, fn, path, length);
    if (fn->visit != 0)
        return;
    if (length == MAX_CALLS) {
        diag_error(diag, path[length - 1]->span, "functions call each other more than %d levels deep", MAX_CALLS);
        return;
    }
    fn->visit = 1;
    for (int i = 0; i < fn->calls.count; i++) {
        path[length] = fn->calls.at[i];
        visit(diag, fn->calls.at[i]->fn, path, length + 1);
    }
    fn->visit = 2;
}

static void check_fns(Diag *diag, Ast *ast) {
    Expr *path[MAX_CALLS + 1];
    for (int i = 0; i < ast->fns.count; i++) {
        check_fn_name(diag, ast, ast->fns.at[i]);
        ast->fns.at[i]->signature = signature_of_fn(ast->arena, ast->fns.at[i]);
    }
    for (int i = 0; i < ast->fns.count; i++)
        resolve_fn(diag, ast, ast->fns.at[i]);
    for (int i = 0; i < ast->fns.count; i++)
        visit(diag, ast->fns.at[i], path, 0);
}

/* ---- data ---- */

static int count_fields(const Block *data) {
    int count = 0;
    for (int i = 0; i < data->body.count; i++)
        count += data->body.at[i]->kind == STMT_FIELD;
    return count;
}

static void check_split(Diag *diag, const Ast *ast, const Block *data, const Stmt *s) {
    const Expr *source = s->value;
    if (!contains(split_names, COUNT(split_names), s->name.text))
        unknown(diag, ast->arena, "split", s->name, split_names, COUNT(split_names));
    if (source->kind != EXPR_CALL) {
        diag_error(diag, source->span, "a split is read from files: %s = idx(\"file\", ...)", s->name.text);
        return;
    }
    if (!contains(format_names, COUNT(format_names), source->name.text))
        unknown(diag, ast->arena, "data format", source->name, format_names, COUNT(format_names));
    for (int i = 0; i < source->args.count; i++)
        if (source->args.at[i].value->kind != EXPR_STRING || source->args.at[i].name.text)
            diag_error(diag, source->args.at[i].value->span, "a file's path is a string in double quotes");
    int fields = count_fields(data);
    if (source->args.count != fields)
        diag_error(diag, source->span, "'%s' lists %d file%s for %d field%s; each field has its own, in the same order",
                   s->name.text, source->args.count, source->args.count == 1 ? "" : "s", fields,
                   fields == 1 ? "" : "s");
}

static void check_field(Diag *diag, Scope *scope, const Stmt *s) {
    for (int i = 0; i < s->dims.count; i++)
        resolve_expr(scope, s->dims.at[i]);
    if (!contains(field_types, COUNT(field_types), s->type.text))
        unknown(diag, scope->arena, "field type", s->type, field_types, COUNT(field_types));
    else if (strcmp(s->type.text, "class") == 0 && s->dims.count != 1)
        diag_error(diag, s->span, "a class field says how many classes there are: %s : class[10]", s->name.text);
    else if (s->dims.count >= MAX_RANK)
        diag_error(diag, s->span, "a field has at most %d axes", MAX_RANK - 1);
}

static void check_data(Diag *diag, Ast *ast, const Block *data) {
    Scope scope = scope_new(diag, ast, NULL);
    for (int i = 0; i < data->body.count; i++) {
        const Stmt *s = data->body.at[i];
        if (s->kind == STMT_FIELD)
            check_field(diag, &scope, s);
        else if (s->kind == STMT_ASSIGN)
            check_split(diag, ast, data, s);
        else
            diag_error(diag, s->span, "a data block holds splits (train = idx(...)) and fields (image : u8[28, 28])");
        const Stmt *first = s->name.text ? block_find(data, s->name.text) : s;
        if (first != s)
            duplicate(diag, s->kind == STMT_FIELD ? "field" : "split", s->name, first->name.span);
    }
    if (count_fields(data) == 0)
        diag_error(diag, data->keyword.span, "the data block declares no field");
    if (count_fields(data) > MAX_FIELDS)
        diag_error(diag, data->keyword.span, "the data block declares more than %d fields", MAX_FIELDS);
    if (!block_find(data, "train"))
        diag_error(diag, data->keyword.span,
                   "the data block does not say where the training examples are: "
                   "train = idx(...)");
}

/* ---- model and train ---- */

static void add_fields(Scope *scope, const Block *data) {
    for (int i = 0; i < data->body.count; i++)
        if (data->body.at[i]->kind == STMT_FIELD && block_find(data, data->body.at[i]->name.text) == data->body.at[i])
            scope_add(scope, data->body.at[i]->name, VARIABLE_FIELD);
}

static void check_train_key(Diag *diag, Scope *scope, const Block *train, const Stmt *s) {
    if (s->kind != STMT_ASSIGN) {
        diag_error(diag, s->span, "a train block holds settings: loss = ..., optimizer = ..., batch = 64");
        return;
    }
    resolve_expr(scope, s->value);
    if (!contains(train_keys, COUNT(train_keys), s->name.text))
        unknown(diag, scope->arena, "setting", s->name, train_keys, COUNT(train_keys));
    else if (block_find(train, s->name.text) != s)
        duplicate(diag, "setting", s->name, block_find(train, s->name.text)->name.span);
}

/* An unknown setting that may be meant for the key was reported. */
static bool is_misspelt(const Block *train, const char *key) {
    for (int i = 0; i < train->body.count; i++) {
        const char *name = train->body.at[i]->name.text;
        if (name && !contains(train_keys, COUNT(train_keys), name) && nearest_name(name, &key, 1))
            return true;
    }
    return false;
}

static void check_train(Diag *diag, Scope *scope, const Block *train) {
    static const struct {
        const char *key, *example;
    } needed[] = {{"loss", "cross_entropy(logits, label)"}, {"optimizer", "adam(1e-3)"}};
    for (int i = 0; i < train->body.count; i++)
        check_train_key(diag, scope, train, train->body.at[i]);
    for (int i = 0; i < COUNT(needed); i++)
        if (!block_find(train, needed[i].key) && !is_misspelt(train, needed[i].key))
            diag_error(diag, train->keyword.span, "the train block has no %s: %s = %s", needed[i].key, needed[i].key,
                       needed[i].example);
}

static void check_model(Diag *diag, Ast *ast, const Block *data, const Block *model, const Block *train) {
    Scope scope = scope_new(diag, ast, NULL);
    add_fields(&scope, data);
    resolve_body(&scope, &model->body);
    if (train)
        check_train(diag, &scope, train);
}

/* ---- the whole ---- */

static void check_blocks(Diag *diag, const Ast *ast) {
    for (int i = 0; i < ast->blocks.count; i++) {
        const Block *block = ast->blocks.at[i], *first = ast_find_block(ast, block->keyword.text);
        if (first != block) {
            diag_error(diag, block->keyword.span, "a second %s block", block->keyword.text);
            diag_note(diag, first->keyword.span, "the first one is here");
        }
    }
}

static void check_blocks_present(Diag *diag, const Ast *ast) {
    static const char *const needed[] = {"data", "model", "train"};
    const Source *main = ast->sources.at[0];
    const char *missing[COUNT(needed)];
    int count = 0;
    for (int i = 0; i < COUNT(needed); i++)
        if (!ast_find_block(ast, needed[i]))
            missing[count++] = needed[i];
    if (count)
        diag_error(diag, (Span){main, 0, 0}, "a model has a data, a model and a train block; %s %s missing",
                   name_list(ast->arena, missing, count), count == 1 ? "is" : "are");
}

static void warn_unused(Diag *diag, const Ast *ast) {
    for (int i = 0; i < ast->fns.count; i++)
        if (!ast->fns.at[i]->called && ast->fns.at[i]->span.source == ast->sources.at[0])
            diag_warning(diag, ast->fns.at[i]->name.span, "function '%s' is never used", ast->fns.at[i]->name.text);
}

bool front_check(Diag *diag, Ast *ast) {
    int errors = diag_errors(diag);
    check_blocks(diag, ast);
    check_params(diag, ast);
    check_fns(diag, ast);
    check_blocks_present(diag, ast);
    Block *data = ast_find_block(ast, "data"), *model = ast_find_block(ast, "model"),
          *train = ast_find_block(ast, "train");
    if (data)
        check_data(diag, ast, data);
    if (data && model && count_fields(data))
        check_model(diag, ast, data, model, train);
    if (diag_errors(diag) == errors)
        warn_unused(diag, ast);
    return diag_errors(diag) == errors;
}
