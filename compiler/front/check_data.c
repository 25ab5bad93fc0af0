/* The statements of the data block, as far as the text alone tells what is right. */
#include "front/data.h"
#include "front/habits.h"

#include "../../runtime/mtc.h"

enum { MAX_FIELDS = MTC_MAX_FIELDS };

static const char *const settings[] = {"train", "test", "validation", "examples", "split"};
static const char *const field_types[] = {"u8", "i32", "f32", "class"};

/* ---- sources ---- */

static int count_fields(const Block *data) {
    int count = 0;
    for (int i = 0; i < data->body.count; i++)
        count += data->body.at[i]->kind == STMT_FIELD;
    return count;
}

static void check_file_count(Scope *scope, const Block *data, const Stmt *s) {
    int fields = count_fields(data), files = bound_argument(s->value, "paths")->args.count;
    if (files != fields)
        diag_error(scope->diag, s->value->span,
                   "'%s' lists %d file%s for %d field%s; each field has its own, in the same order", s->name.text,
                   files, files == 1 ? "" : "s", fields, fields == 1 ? "" : "s");
}

/* Arguments that are right by themselves, and wrong together. */
static void check_together(Scope *scope, const Expr *call, const SourceDef *source) {
    const Expr *header = bound_argument(call, "header"), *columns = bound_argument(call, "columns");
    const Expr *separator = bound_argument(call, "separator"), *quote = bound_argument(call, "quote");
    if (header && header->number == 0 && !columns)
        diag_error(scope->diag, header->span, "without a header the columns need names: columns = [\"a\", \"b\"]");
    char between = separator ? *separator->name.text : source->separator;
    if (between == (quote ? *quote->name.text : source->quote))
        diag_error(scope->diag, (quote ? quote : separator)->span, "separator and quote are the same character");
}

static void check_source(Scope *scope, const Block *data, const Stmt *s) {
    Expr *call = s->value;
    if (call->kind != EXPR_CALL) {
        diag_error(scope->diag, call->span, "examples are read from files: %s = idx(\"file\", ...)", s->name.text);
        return;
    }
    const SourceDef *source = check_source_call(scope, call);
    if (source && source->file_per_field)
        check_file_count(scope, data, s);
    else if (source && source->columns)
        check_together(scope, call, source);
}

/* ---- fields ---- */

static void check_type(Scope *scope, const Stmt *s) {
    resolve_exprs(scope, &s->dims);
    resolve_exprs(scope, &s->shape);
    bool class = strcmp(s->type.text, "class") == 0;
    const char *advice = habit(TYPE, s->type.text, strlen(s->type.text));
    bool known = is_one_of(field_types, COUNT(field_types), s->type.text);
    if (!known && advice)
        diag_error(scope->diag, s->type.span, "there is no field type '%s'; %s", s->type.text, advice);
    else if (!known)
        report_unknown(scope->diag, scope->arena, "field type", s->type, field_types, COUNT(field_types));
    else if (class && s->dims.count != 1)
        diag_error(scope->diag, s->span, "a class field says how many classes there are: %s : class[10]", s->name.text);
    else if (!class && s->shape.count)
        diag_error(scope->diag, s->shape.at[0]->span, "only a class field has two lists of sizes: class[10][28, 28]");
    else if (s->dims.count >= MAX_RANK || s->shape.count >= MAX_RANK)
        diag_error(scope->diag, s->span, "a field has at most %d axes", MAX_RANK - 1);
}

/* The first set of examples that is no table with named columns, or NULL. */
static const Stmt *without_columns(const Block *data) {
    for (int i = 0; i < data->body.count; i++) {
        const Stmt *s = data->body.at[i];
        if (s->kind != STMT_ASSIGN || s->value->kind != EXPR_CALL)
            continue;
        const SourceDef *source = source_find(s->value->name.text);
        if (source && !source->columns)
            return s;
    }
    return NULL;
}

static void check_field_source(Scope *scope, const Block *data, const Stmt *s) {
    Expr *call = s->value;
    if (!call)
        return;
    if (call->kind != EXPR_CALL) {
        diag_error(scope->diag, call->span, "a field is made of columns: %s = column(\"name\")", s->name.text);
        return;
    }
    const Stmt *other = without_columns(data);
    if (check_field_source_call(scope, call) && other) {
        diag_error(scope->diag, call->span, "'%s' reads a table with named columns, and '%s' is none", call->name.text,
                   other->name.text);
        diag_note(scope->diag, other->value->span, "tsv(...) and csv(...) have named columns, this has not");
    }
}

/* ---- windows of a text ---- */

static bool reads_windows(const Stmt *s) {
    const SourceDef *source =
        s->kind == STMT_ASSIGN && s->value->kind == EXPR_CALL ? source_find(s->value->name.text) : NULL;
    return source && source->windows;
}

/* Tokens mean the same in all sets of examples. */
static void check_same_source(Scope *scope, const Stmt *windows, const Stmt *s) {
    if (s->kind != STMT_ASSIGN || strcmp(s->name.text, "split") == 0 || s->value->kind != EXPR_CALL ||
        !source_find(s->value->name.text) || strcmp(source_format(s->value), source_format(windows->value)) == 0)
        return;
    diag_error(scope->diag, s->value->span, "'%s' and '%s' are read in different ways: their tokens are not the same",
               windows->name.text, s->name.text);
    diag_note(scope->diag, windows->value->span, "'%s' is here", windows->name.text);
}

/* Where one set has windows of rows, all have: fields have as many rows of each. */
static void check_series(Scope *scope, const Block *data) {
    const Stmt *series = series_of(data);
    for (int i = 0; i < data->body.count && series; i++) {
        const Stmt *s = data->body.at[i];
        if (s->kind != STMT_ASSIGN || s->value->kind != EXPR_CALL || bound_argument(s->value, "stride"))
            continue;
        diag_error(scope->diag, s->value->span, "'%s' has windows of rows, and '%s' has none: say its stride too",
                   series->name.text, s->name.text);
        diag_note(scope->diag, series->value->span, "'%s' is here", series->name.text);
    }
}

static void check_windows(Scope *scope, const Block *data) {
    const Stmt *windows = NULL;
    for (int i = 0; i < data->body.count && !windows; i++)
        windows = reads_windows(data->body.at[i]) ? data->body.at[i] : NULL;
    for (int i = 0; i < data->body.count && windows; i++)
        check_same_source(scope, windows, data->body.at[i]);
}

const Stmt *series_of(const Block *data) {
    for (int i = 0; i < data->body.count; i++) {
        const Stmt *s = data->body.at[i];
        if (s->kind == STMT_ASSIGN && s->value->kind == EXPR_CALL && !reads_windows(s) &&
            bound_argument(s->value, "stride"))
            return s;
    }
    return NULL;
}

/* ---- splits ---- */

const Stmt *data_setting(const Block *data, const char *name) {
    for (int i = 0; i < data->body.count; i++)
        if (data->body.at[i]->kind == STMT_ASSIGN && strcmp(data->body.at[i]->name.text, name) == 0)
            return data->body.at[i];
    return NULL;
}

/* `(a / b) / c`, as opposed to `a / b / c`. */
static bool in_parentheses(const Expr *e) {
    return e->span.begin < e->args.at[0].value->span.begin;
}

static void gather_parts(Arena *arena, Expr *e, ExprList *parts) {
    bool divides = e->kind == EXPR_OPERATOR && strcmp(e->name.text, "div") == 0;
    if (!divides || in_parentheses(e)) {
        VEC_PUSH(arena, parts, e);
        return;
    }
    gather_parts(arena, e->args.at[0].value, parts);
    VEC_PUSH(arena, parts, e->args.at[1].value);
}

ExprList split_parts(Arena *arena, Expr *split) {
    ExprList parts = {0};
    gather_parts(arena, split, &parts);
    return parts;
}

/* The parts of `examples`, and what else the block reads, are different sets of examples. */
static void check_parts(Scope *scope, const Block *data, const Stmt *split) {
    const Stmt *test = data_setting(data, "test"), *validation = data_setting(data, "validation");
    const Stmt *given = test ? test : validation;
    int parts = split_parts(scope->arena, split->value).count;
    if (parts < 2 || parts > 3)
        diag_error(scope->diag, split->value->span,
                   "a split is written 80 / 20, train / test, or 80 / 10 / 10, train / validation / test");
    else if (test && validation) {
        diag_error(scope->diag, split->value->span,
                   "with 'test' and 'validation' of their own there is nothing to split off");
        diag_note(scope->diag, test->name.span, "write 'train' instead of 'examples', without 'split'");
    } else if (parts == 3 && given) {
        diag_error(scope->diag, split->value->span, "a split of three parts leaves no place for '%s'",
                   given->name.text);
        diag_note(scope->diag, given->name.span, "with '%s' of its own, 'split' is train / %s", given->name.text,
                  test ? "validation" : "test");
    }
}

static void check_manner(const Scope *scope, const Block *data, const Stmt *split) {
    const Stmt *examples = data_setting(data, "examples");
    bool calls = examples && examples->value && examples->value->kind == EXPR_CALL;
    const SourceDef *source = calls ? source_find(examples->value->name.text) : NULL;
    if (split->manner.text && strcmp(split->manner.text, "order") != 0) {
        diag_error(scope->diag, split->manner.span,
                   "a split is made at random, 80 / 20, or 80 / 20 in order, not 'in %s'", split->manner.text);
    } else if (split->manner.text && source && source->by_class) {
        diag_error(scope->diag, split->manner.span,
                   "the last part would be the last classes alone; leave 'in order' out, for a split at random");
        diag_note(scope->diag, examples->value->span, "its examples lie one class behind the other");
    }
}

static void check_examples(Scope *scope, const Block *data, const Stmt *examples) {
    const Stmt *train = data_setting(data, "train");
    if (!data_setting(data, "split"))
        diag_error(scope->diag, examples->name.span,
                   "'examples' is divided into training and test examples; say how: split = 80 / 20");
    if (train) {
        diag_error(scope->diag, train->name.span, "the training examples are a part of 'examples' already");
        diag_note(scope->diag, examples->name.span, "'examples' is here");
    }
}

static void check_splits(Scope *scope, const Block *data) {
    const Stmt *examples = data_setting(data, "examples"), *split = data_setting(data, "split");
    if (examples)
        check_examples(scope, data, examples);
    if (examples && split)
        check_parts(scope, data, split);
    else if (split)
        diag_error(scope->diag, split->name.span, "'split' divides 'examples': examples = tsv(\"file\")");
    else if (!examples && !data_setting(data, "train"))
        diag_error(scope->diag, data->keyword.span,
                   "the data block does not say where the training examples are: train = idx(...)");
}

/* ---- the block ---- */

bool is_data_setting(const char *name) {
    return is_one_of(settings, COUNT(settings), name);
}

static void report_data_setting(Scope *scope, Name name) {
    const char *key = train_setting(name.text);
    if (!key)
        report_unknown(scope->diag, scope->arena, "setting of the data", name, settings, COUNT(settings));
    else
        diag_error(scope->diag, name.span, "'%s' is a setting of the train block%s", name.text,
                   key == name.text ? "" : arena_printf(scope->arena, ", where it is called '%s'", key));
}

static void check_statement(Scope *scope, const Block *data, const Stmt *s) {
    if (s->kind == STMT_FIELD) {
        check_type(scope, s);
        check_field_source(scope, data, s);
    } else if (s->kind != STMT_ASSIGN) {
        diag_error(scope->diag, s->span,
                   "a data block holds splits (train = idx(...)) and fields (image : u8[28, 28])");
    } else if (!is_data_setting(s->name.text)) {
        report_data_setting(scope, s->name);
    } else if (strcmp(s->name.text, "split") == 0) {
        resolve_expr(scope, s->value);
        check_manner(scope, data, s);
    } else {
        check_source(scope, data, s);
        refuse_manner(scope, s);
    }
    const Stmt *first = s->name.text ? block_find(data, s->name.text) : s;
    if (first != s)
        report_duplicate(scope->diag, s->kind == STMT_FIELD ? "field" : "setting", s->name, first->name.span);
}

void check_data(Diag *diag, Ast *ast, const Block *data) {
    Scope scope = scope_new(diag, ast, NULL);
    int errors = diag_errors(diag);
    for (int i = 0; i < data->body.count; i++)
        check_statement(&scope, data, data->body.at[i]);
    if (count_fields(data) == 0)
        diag_error(diag, data->keyword.span, "the data block declares no field");
    if (count_fields(data) > MAX_FIELDS)
        diag_error(diag, data->keyword.span, "the data block declares more than %d fields", MAX_FIELDS);
    if (diag_errors(diag) == errors)
        check_windows(&scope, data);
    if (diag_errors(diag) == errors)
        check_series(&scope, data);
    check_splits(&scope, data);
}
