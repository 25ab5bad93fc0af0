/* The functions of the data block, and the arguments of their calls. */
#include "front/data.h"

#define TABLE_PARAMETERS(separator, quote)                                                                             \
    "path: string, header: bool = true, columns: list = none, separator: string = \"" separator                        \
    "\", quote: string = \"" quote "\", stride: size = none"
#define WORD_OPTIONS "missing = \"error\", unseen: string = \"error\", from: size = none"
#define DATE_PARAMETERS "name: string, missing = \"error\", format: string = \"%Y-%m-%d\", from: size = none"

static const SourceDef sources[] = {
    {.name = "idx", .parameters = "paths...: string, stride: size = none", .format = "idx", .file_per_field = true},
    {.name = "npy", .parameters = "paths...: string, stride: size = none", .format = "npy", .file_per_field = true},
    {.name = "npz", .parameters = "path: string, stride: size = none", .format = "npz"},
    {.name = "tsv", .parameters = TABLE_PARAMETERS("\\t", ""), .format = "tsv", .columns = true, .separator = '\t'},
    {.name = "csv",
     .parameters = TABLE_PARAMETERS(",", "\\\""),
     .format = "csv",
     .columns = true,
     .separator = ',',
     .quote = '"'},
    {.name = "table", .parameters = "rows: list", .format = "rows"},
    {.name = "cifar10", .parameters = "folder: string, part: string", .format = "cifar10", .images = true},
    {.name = "images",
     .parameters = "folder: string, resize: bool = false",
     .format = "images",
     .images = true,
     .by_class = true},
    {.name = "text",
     .parameters = "path: string, level: string = \"char\", stride: size = none, tokenizer: string = none",
     .format = "characters",
     .windows = true},
    {.name = "tokens", .parameters = "path: string, stride: size = none", .format = "tokens", .windows = true},
};

static const FieldSourceDef field_sources[] = {
    {"column", "name: string, " WORD_OPTIONS, PART_VALUE, 0},
    {"columns", "names...: string, " WORD_OPTIONS, PART_VALUE, 0},
    {"day_of_year", DATE_PARAMETERS, PART_DAY_OF_YEAR, 366},
    {"month", DATE_PARAMETERS, PART_MONTH, 12},
    {"weekday", DATE_PARAMETERS, PART_WEEKDAY, 7},
};

const SourceDef *source_find(const char *name) {
    for (int i = 0; i < COUNT(sources); i++)
        if (strcmp(sources[i].name, name) == 0)
            return &sources[i];
    return NULL;
}

const FieldSourceDef *field_source_find(const char *name) {
    for (int i = 0; i < COUNT(field_sources); i++)
        if (strcmp(field_sources[i].name, name) == 0)
            return &field_sources[i];
    return NULL;
}

/* What a token of a text is, and the format that says so. */
static const struct {
    const char *level, *format;
} text_levels[] = {{"char", "characters"}, {"byte", "bytes"}, {"bpe", "pieces"}};

const char *source_format(const Expr *call) {
    const Expr *level = bound_argument(call, "level");
    for (int i = 0; level && i < COUNT(text_levels); i++)
        if (strcmp(level->name.text, text_levels[i].level) == 0)
            return text_levels[i].format;
    return source_find(call->name.text)->format;
}

static void unknown_source(Scope *scope, const Expr *call) {
    const char *names[COUNT(sources)];
    for (int i = 0; i < COUNT(sources); i++)
        names[i] = sources[i].name;
    report_unknown(scope->diag, scope->arena, "data format", call->name, names, COUNT(sources));
}

static void unknown_field_source(Scope *scope, const Expr *call) {
    const char *names[COUNT(field_sources)];
    for (int i = 0; i < COUNT(field_sources); i++)
        names[i] = field_sources[i].name;
    report_unknown(scope->diag, scope->arena, "source of a field", call->name, names, COUNT(field_sources));
}

/* ---- arguments ---- */

static bool is_string(Scope *scope, const Expr *e, const char *expected) {
    if (e->kind != EXPR_STRING)
        diag_error(scope->diag, e->span, "%s", expected);
    return e->kind == EXPR_STRING;
}

static void check_path(Scope *scope, Expr *e) {
    if (is_string(scope, e, "a file's path is a string in double quotes") && !*e->name.text)
        diag_error(scope->diag, e->span, "the path of a file is missing");
}

static void check_paths(Scope *scope, Expr *e) {
    if (e->kind != EXPR_LIST)
        diag_error(scope->diag, e->span, "'paths' is a list of files: [\"images\", \"labels\"]");
    for (int i = 0; i < e->args.count; i++)
        check_path(scope, e->args.at[i].value);
}

static void check_folder(Scope *scope, Expr *e) {
    if (is_string(scope, e, "a folder's path is a string in double quotes") && !*e->name.text)
        diag_error(scope->diag, e->span, "the path of a folder is missing");
}

static void check_part(Scope *scope, Expr *e) {
    static const char *const valid[] = {"train", "test"};
    if (is_string(scope, e, "the part of the set is \"train\" or \"test\"") &&
        !is_one_of(valid, COUNT(valid), e->name.text))
        report_unknown(scope->diag, scope->arena, "part of CIFAR-10", (Name){e->name.text, e->span}, valid,
                       COUNT(valid));
}

static void check_resize(Scope *scope, Expr *e) {
    if (e->kind != EXPR_BOOL)
        diag_error(scope->diag, e->span, "'resize' is true or false: whether images of other sizes are scaled");
}

static void check_header(Scope *scope, Expr *e) {
    if (e->kind != EXPR_BOOL)
        diag_error(scope->diag, e->span, "'header' is true or false: whether the first line names the columns");
}

static void check_column_name(Scope *scope, const Expr *e) {
    if (is_string(scope, e, "a column's name is a string in double quotes") && !*e->name.text)
        diag_error(scope->diag, e->span, "the name of a column is missing");
}

/* The first of the strings before `index` that is the same as that, or NULL. */
static const Expr *named_before(const Expr *list, int index) {
    const Expr *name = list->args.at[index].value;
    for (int i = 0; i < index && name->kind == EXPR_STRING; i++) {
        const Expr *other = list->args.at[i].value;
        if (other->kind == EXPR_STRING && strcmp(other->name.text, name->name.text) == 0)
            return other;
    }
    return NULL;
}

/* A list of names, in which only "_" may stand twice. */
static void check_column_names(Scope *scope, Expr *e) {
    if (e->kind != EXPR_LIST || e->args.count == 0)
        diag_error(scope->diag, e->span, "expected the names of columns: [\"date\", \"price\"]");
    for (int i = 0; e->kind == EXPR_LIST && i < e->args.count; i++) {
        const Expr *name = e->args.at[i].value, *first = named_before(e, i);
        check_column_name(scope, name);
        if (!first || strcmp(name->name.text, "_") == 0)
            continue;
        diag_error(scope->diag, name->span, "column '%s' is named twice", name->name.text);
        diag_note(scope->diag, first->span, "it is named here first");
    }
}

static void check_used_name(Scope *scope, Expr *e) {
    check_column_name(scope, e);
    if (e->kind == EXPR_STRING && strcmp(e->name.text, "_") == 0)
        diag_error(scope->diag, e->span, "'_' stands for columns that are not used");
}

static void check_used_names(Scope *scope, Expr *e) {
    check_column_names(scope, e);
    for (int i = 0; i < e->args.count; i++)
        if (e->args.at[i].value->kind == EXPR_STRING && *e->args.at[i].value->name.text)
            check_used_name(scope, e->args.at[i].value);
}

static bool is_character(const char *text, const char *not_these) {
    return text[0] > ' ' && text[0] < 0x7F && text[1] == '\0' && !strchr(not_these, text[0]);
}

static void check_separator(Scope *scope, Expr *e) {
    static const char expected[] = "a separator is one character that numbers and names do not have: \"\\t\", \";\"";
    static const char in_values[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+.\"";
    if (!is_string(scope, e, expected))
        return;
    const char *text = e->name.text;
    if (!is_character(text, in_values) && strcmp(text, "\t") != 0 && strcmp(text, " ") != 0)
        diag_error(scope->diag, e->span, expected);
}

static void check_quote(Scope *scope, Expr *e) {
    static const char expected[] = "'quote' is one character, \"\\\"\" or \"'\", or \"\" for none";
    if (is_string(scope, e, expected) && strcmp(e->name.text, "\"") != 0 && strcmp(e->name.text, "'") != 0 &&
        *e->name.text)
        diag_error(scope->diag, e->span, expected);
}

static void check_level(Scope *scope, Expr *e) {
    const char *valid[COUNT(text_levels)];
    for (int i = 0; i < COUNT(text_levels); i++)
        valid[i] = text_levels[i].level;
    if (is_string(scope, e, "'level' is \"char\", \"byte\" or \"bpe\": what a token of the text is") &&
        !is_one_of(valid, COUNT(valid), e->name.text))
        report_unknown(scope->diag, scope->arena, "level of a text", (Name){e->name.text, e->span}, valid,
                       COUNT(valid));
}

static void check_stride(Scope *scope, Expr *e) {
    if (e->kind == EXPR_STRING)
        diag_error(scope->diag, e->span, "'stride' is a whole number; another file is another set: validation = ...");
    else
        resolve_expr(scope, e);
}

static void check_rows(Scope *scope, Expr *e) {
    if (e->kind != EXPR_LIST || e->args.count == 0)
        diag_error(scope->diag, e->span, "expected rows of numbers: table([[0, 1], [1, 0]])");
    for (int i = 0; e->kind == EXPR_LIST && i < e->args.count; i++) {
        Expr *row = e->args.at[i].value;
        resolve_expr(scope, row);
        if (row->kind == EXPR_LIST)
            continue;
        diag_error(scope->diag, row->span, "row %d is no list; a row is written [0, 1]", i + 1);
        break;
    }
}

static void check_from(Scope *scope, Expr *e) {
    resolve_expr(scope, e);
}

/* A string is looked at when the type of the field is known. */
static void check_missing(Scope *scope, Expr *e) {
    if (e->kind == EXPR_BOOL || e->kind == EXPR_NONE || e->kind == EXPR_LIST)
        diag_error(scope->diag, e->span, "'missing' is \"error\", \"skip\", \"mean\", a number, or of words a word");
    else
        resolve_expr(scope, e);
}

static void check_unseen(Scope *scope, Expr *e) {
    static const char *const valid[] = {"error", "other"};
    if (is_string(scope, e, "'unseen' is \"error\" or \"other\"") && !is_one_of(valid, COUNT(valid), e->name.text))
        report_unknown(scope->diag, scope->arena, "value of unseen", (Name){e->name.text, e->span}, valid,
                       COUNT(valid));
}

/* Letters after % that a date is made of; each of them is needed, and stands once. */
static void check_format(Scope *scope, Expr *e) {
    static const char letters[] = "Ymd";
    int found[3] = {0};
    if (!is_string(scope, e, "the format of a date is a string such as \"%Y-%m-%d\""))
        return;
    for (const char *at = strchr(e->name.text, '%'); at; at = strchr(at + 1, '%')) {
        const char *letter = at[1] ? strchr(letters, at[1]) : NULL;
        if (!letter) {
            diag_error(scope->diag, e->span, "in a date, %% stands before Y (2024), m (1 to 12) or d (1 to 31)");
            return;
        }
        found[letter - letters]++;
    }
    for (int i = 0; i < COUNT(found); i++)
        if (found[i] != 1)
            diag_error(scope->diag, e->span, "the format has %s %%%c; year, month and day stand in it once each",
                       found[i] ? "more than one" : "no", letters[i]);
}

static const struct {
    const char *parameter;
    void (*check)(Scope *scope, Expr *e);
} arguments[] = {
    {"path", check_path},
    {"paths", check_paths},
    {"folder", check_folder},
    {"part", check_part},
    {"resize", check_resize},
    {"header", check_header},
    {"columns", check_column_names},
    {"quote", check_quote},
    {"separator", check_separator},
    {"level", check_level},
    {"tokenizer", check_path},
    {"stride", check_stride},
    {"rows", check_rows},
    {"name", check_used_name},
    {"names", check_used_names},
    {"missing", check_missing},
    {"unseen", check_unseen},
    {"format", check_format},
    {"from", check_from},
};

/* Matches the call with the parameters of what it calls, and checks each argument. */
static bool check_call(Scope *scope, Expr *call, const char *parameters) {
    int errors = diag_errors(scope->diag);
    if (!bind_call(scope->diag, scope->arena, call, signature_parse(scope->arena, call->name.text, parameters)))
        return false;
    if (call->layer_name)
        diag_error(scope->diag, call->layer_name->span, "'%s' has no parameter 'name'", call->name.text);
    for (int i = 0; i < COUNT(arguments); i++) {
        Expr *argument = bound_argument(call, arguments[i].parameter);
        if (argument)
            arguments[i].check(scope, argument);
    }
    return diag_errors(scope->diag) == errors;
}

const SourceDef *check_source_call(Scope *scope, Expr *call) {
    const SourceDef *source = source_find(call->name.text);
    if (!source)
        unknown_source(scope, call);
    return source && check_call(scope, call, source->parameters) ? source : NULL;
}

const FieldSourceDef *check_field_source_call(Scope *scope, Expr *call) {
    const FieldSourceDef *source = field_source_find(call->name.text);
    if (!source)
        unknown_field_source(scope, call);
    return source && check_call(scope, call, source->parameters) ? source : NULL;
}
