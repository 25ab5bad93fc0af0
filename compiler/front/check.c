/* Declarations: which blocks there are and what stands in them, duplicates, recursion. */
#include "front/data.h"
#include "front/habits.h"

/* --help is no row of the table of flags. */
static const ProgramFlag program_flags[] = {
#define FLAG(field, name, argument, ...) {name, argument},
#include "../../runtime/commands/flags.def"
    {"help", NULL}};
static const char *const train_keys[] = {
    "loss", "metric", "optimizer", "batch",      "epochs",  "seed",     "predict",   "clip_norm", "clip_value",
    "ema",  "freeze", "no_decay",  "accumulate", "monitor", "patience", "precision", "recompute", "example_weight"};

enum { MAX_PARAMS = 32, MAX_CALLS = 100 };

bool is_one_of(const char *const *names, int count, const char *name) {
    for (int i = 0; i < count; i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

const ProgramFlag *program_flag(const char *name) {
    for (int i = 0; i < COUNT(program_flags); i++)
        if (strcmp(program_flags[i].name, name) == 0)
            return &program_flags[i];
    return NULL;
}

void report_unknown(Diag *diag, Arena *arena, const char *what, Name name, const char *const *names, int count) {
    diag_error(diag, name.span, "unknown %s '%s'%s", what, name.text, suggestion(arena, name.text, names, count));
    diag_note(diag, name.span, "valid here: %s", name_list(arena, names, count));
}

void report_duplicate(Diag *diag, const char *what, Name name, Span first) {
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
                report_duplicate(diag, "param", p->name, ast->params.at[k]->name.span);
                break;
            }
        check_range(diag, p);
        if (program_flag(p->name.text))
            diag_error(diag, p->name.span, "--%s is a flag of every program; choose another name for this param",
                       p->name.text);
        if (i == MAX_PARAMS)
            diag_error(diag, p->name.span, "a model has at most %d params", MAX_PARAMS);
    }
}

/* ---- functions ---- */

/* A name of the library may be given to a function: what the library gets later breaks no file. */
static void check_fn_name(Diag *diag, const Ast *ast, const Fn *fn) {
    const Fn *first = ast_find_fn(ast, fn->name.text);
    if (first != fn)
        report_duplicate(diag, "function", fn->name, first->name.span);
}

static void report_cycle(Diag *diag, const Fn *fn, Expr *const *path, int length) {
    int start = length - 2;
    while (start >= 0 && path[start]->fn != fn)
        start--;
    diag_error(diag, path[length - 1]->span, "'%s' calls itself; a model has no recursion", fn->name.text);
    for (int i = start + 1; i < length - 1; i++)
        diag_note(diag, path[i]->span, "through this call of '%s'", path[i]->name.text);
    if (is_of_library(fn->name.text))
        diag_note(diag, fn->name.span, "the library's '%s' is hidden by this one; to call it, choose another name",
                  fn->name.text);
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

/* ---- model and train ---- */

static bool has_fields(const Block *data) {
    for (int i = 0; i < data->body.count; i++)
        if (data->body.at[i]->kind == STMT_FIELD)
            return true;
    return false;
}

static void add_fields(Scope *scope, const Block *data) {
    for (int i = 0; i < data->body.count; i++) {
        Stmt *field = data->body.at[i];
        if (field->kind == STMT_FIELD && block_find(data, field->name.text) == field &&
            scope_add(scope, field->name, VARIABLE_FIELD))
            scope_mark(scope, field->name.text, &field->read);
    }
}

/* Its value is a word of the language, not a name of the model: `precision = bf16`. */
static bool takes_word(const char *key) {
    return strcmp(key, "precision") == 0;
}

const char *train_setting(const char *name) {
    return is_one_of(train_keys, COUNT(train_keys), name) ? name : habit(KEY, name, strlen(name));
}

static void report_setting(Diag *diag, Arena *arena, Name name) {
    const char *key = habit(KEY, name.text, strlen(name.text)), *advice = habit(SETTING, name.text, strlen(name.text));
    if (key)
        diag_error(diag, name.span, "unknown setting '%s'; it is called '%s' here", name.text, key);
    else if (advice)
        diag_error(diag, name.span, "unknown setting '%s'; %s", name.text, advice);
    else if (is_data_setting(name.text))
        diag_error(diag, name.span, "'%s' is a setting of the data block", name.text);
    else
        report_unknown(diag, arena, "setting", name, train_keys, COUNT(train_keys));
}

static void check_train_key(Diag *diag, Scope *scope, const Block *train, const Stmt *s) {
    if (s->kind != STMT_ASSIGN) {
        diag_error(diag, s->span, "a train block holds settings: loss = ..., optimizer = ..., batch = 64");
        return;
    }
    if (!takes_word(s->name.text))
        resolve_expr(scope, s->value);
    refuse_manner(scope, s);
    if (!is_one_of(train_keys, COUNT(train_keys), s->name.text))
        report_setting(diag, scope->arena, s->name);
    else if (block_find(train, s->name.text) != s)
        report_duplicate(diag, "setting", s->name, block_find(train, s->name.text)->name.span);
}

/* An unknown setting that may be meant for the key was reported. */
static bool is_misspelt(const Block *train, const char *key) {
    for (int i = 0; i < train->body.count; i++) {
        const char *name = train->body.at[i]->name.text;
        const char *usual = name ? habit(KEY, name, strlen(name)) : NULL;
        if (name && !is_one_of(train_keys, COUNT(train_keys), name) &&
            (nearest_name(name, &key, 1) || (usual && strcmp(usual, key) == 0)))
            return true;
    }
    return false;
}

/* What the program counts is a number in the train block, where the model gives the name to nothing else. */
static void add_running_numbers(Scope *scope) {
    for (int i = 0; i < running_number_count; i++)
        if (!scope_find(scope, running_numbers[i]))
            scope_add(scope, (Name){.text = running_numbers[i]}, VARIABLE_LOCAL);
}

/* A setting that the train block lacks may stand among the model's values. */
static void report_missing(Diag *diag, const Block *train, const Block *model, const char *key, const char *example) {
    const Stmt *misplaced = block_find(model, key);
    diag_error(diag, train->keyword.span, "the train block has no %s: %s = %s", key, key, example);
    if (misplaced)
        diag_note(diag, misplaced->name.span,
                  "here '%s' is a value of the model; the setting belongs in the train block", key);
}

static void check_train(Diag *diag, Scope *scope, const Block *model, const Block *train) {
    static const struct {
        const char *key, *example;
    } needed[] = {{"loss", "cross_entropy(logits, label)"}, {"optimizer", "adam(1e-3)"}};
    add_running_numbers(scope);
    for (int i = 0; i < train->body.count; i++)
        check_train_key(diag, scope, train, train->body.at[i]);
    for (int i = 0; i < COUNT(needed); i++)
        if (!block_find(train, needed[i].key) && !is_misspelt(train, needed[i].key))
            report_missing(diag, train, model, needed[i].key, needed[i].example);
}

static void check_model(Diag *diag, Ast *ast, const Block *data, const Block *model, const Block *train) {
    Scope scope = scope_new(diag, ast, NULL);
    add_fields(&scope, data);
    resolve_body(&scope, &model->body);
    if (train)
        check_train(diag, &scope, model, train);
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
    if (data && model && has_fields(data))
        check_model(diag, ast, data, model, train);
    if (diag_errors(diag) == errors)
        warn_unused(diag, ast);
    return diag_errors(diag) == errors;
}
