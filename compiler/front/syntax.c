/* Syntax errors in prose: what was found, what could stand there, what to write instead. */
#include "front/habits.h"
#include "front/parse.h"

#include <ctype.h>

/* ---- what could stand there ---- */

typedef struct Words {
    const char *at[64];
    int count;
} Words;

static bool has(const Words *words, const char *word) {
    for (int i = 0; i < words->count; i++)
        if (strcmp(words->at[i], word) == 0)
            return true;
    return false;
}

static void remove_all(Words *words, const char *const *group, int count) {
    Words kept = {.count = 0};
    for (int i = 0; i < words->count; i++) {
        bool drop = false;
        for (int k = 0; k < count; k++)
            drop = drop || strcmp(words->at[i], group[k]) == 0;
        if (!drop)
            kept.at[kept.count++] = words->at[i];
    }
    *words = kept;
}

#define REMOVE(words, ...)                                                                                             \
    remove_all(words, (const char *const[]){__VA_ARGS__},                                                              \
               (int)(sizeof((const char *const[]){__VA_ARGS__}) / sizeof(const char *)))

static void add_first(Words *words, const char *word) {
    memmove(words->at + 1, words->at, (size_t)words->count * sizeof *words->at);
    words->at[0] = word;
    words->count++;
}

/* Says "an expression", "a statement", "an operator" for the tokens that begin one, and leaves out what is possible but
 * not likely: another keyword as a name, a line end that would be skipped, the brace of a one-line block. */
static void summarise(Words *words) {
    bool name = has(words, "a name"), expression = has(words, "a number") && has(words, "'('");
    bool statement = has(words, "return"), operators = has(words, "'+'");
    if (name)
        REMOVE(words, "param", "include", "data", "model", "train", "layer");
    if (expression)
        REMOVE(words, "a name", "a number", "a string", "true", "false", "none", "not", "'('", "'['", "'-'");
    if (statement)
        REMOVE(words, "a name", "layer", "if", "repeat", "assert", "return", "end of line");
    if (operators)
        REMOVE(words, "'+'", "'-'", "'*'", "'/'", "'%'", "'^'", "'<'", "'>'", "<=", ">=", "==", "!=", "and", "or");
    if (words->count > 1)
        REMOVE(words, "end of file");
    if (has(words, "param"))
        REMOVE(words, "end of line");
    if (operators)
        REMOVE(words, "'('", "'['", "'='", "in"); /* only splits of the data have a manner */
    if (has(words, "'='") && has(words, "':'"))   /* a statement's first name; several are rare */
        REMOVE(words, "','");
    if (has(words, "end of line"))
        REMOVE(words, "'}'");
    if (operators)
        add_first(words, "an operator");
    if (statement)
        add_first(words, "a statement");
    if (expression)
        add_first(words, "an expression");
}

static void put_word(Text *out, const char *word) {
    bool literal = word[0] != '\'' && strncmp(word, "a ", 2) != 0 && strncmp(word, "an ", 3) != 0 &&
                   strncmp(word, "end of", 6) != 0;
    text_printf(out, literal ? "'%s'" : "%s", word);
}

static const char *list_of(Arena *arena, const Words *words) {
    Text out = TEXT(arena);
    for (int i = 0; i < words->count; i++) {
        text_puts(&out, i == 0 ? "" : i == words->count - 1 ? " or " : ", ");
        put_word(&out, words->at[i]);
    }
    return text_string(&out);
}

/* ---- the report ---- */

/* A line that ended is not what lacks something. */
static bool on_later_line(Span before, Span now) {
    return before.source && before.source->text[before.begin] != '\n' &&
           memchr(before.source->text + before.end, '\n', now.begin - before.end) != NULL;
}

static const char *hint_at(Span span) {
    return span.source ? habit(SYMBOL, span.source->text + span.begin, span.end - span.begin) : NULL;
}

static bool is_comparison(const char *text) {
    return *text == '<' || *text == '>' || ((*text == '=' || *text == '!') && text[1] == '=');
}

/* The bracket that is open where a line ends too early; the brace, where the file ends or a block begins. */
static const Token *unclosed(const Parser *parser, bool ended, char now) {
    int last = parser->open.count - 1 - (now == '{'); /* the brace just read is open too */
    const Token *open = last >= 0 ? &parser->open.at[last] : NULL;
    bool brace = open && open->kind == '{';
    return open && (brace ? now == '{' || now == '\0' : ended) ? open : NULL;
}

/* `betas = (0.9, 0.999)`: what is to be said of the parameter, else of a list. */
static void note_tuple(Parser *parser) {
    const Token *open = parser->open.count ? &parser->open.at[parser->open.count - 1] : NULL;
    const char *text = parser->source->text, *end = open ? text + open->span.begin : text;
    while (end > text && strchr(" =", end[-1]))
        end--;
    const char *word = end;
    while (word > text && (isalnum((unsigned char)word[-1]) || word[-1] == '_'))
        word--;
    const bool returned = end - word == 6 && memcmp(word, "return", 6) == 0;
    const char *advice = returned ? "several values are returned without parentheses: return a, b"
                                  : habit(PARAMETER, word, (size_t)(end - word));
    diag_note(parser->diag, parser->now.span, "%s", advice ? advice : "several values are a list: [0.9, 0.999]");
}

/* How a statement is written that begins otherwise; NULL: nothing is known of it. */
static const char *statement_advice(const Words *expected, char now) {
    const bool one = expected->count == 1;
    if (has(expected, "return") && (now == '(' || now == '['))
        return "names that take several values stand without brackets: a, b = f(x)";
    if (has(expected, "'='") && has(expected, "':'") && now == '[')
        return "a part of a tensor is not assigned; where(...), concat([...]) and scatter_add(...) make another tensor";
    if (one && has(expected, "'('") && now == '=')
        return "parameters stand behind the name: layer f(x) = linear(x, 8), fn f(x) { return 2 * x }";
    if (one && has(expected, "'='") && (now == '{' || now == '\n'))
        return "a layer is one expression, layer f(x) = linear(x, 8); several statements are a function that it calls";
    return NULL;
}

static void note_cause(Parser *parser, const Words *expected, bool ended) {
    const char *hint = hint_at(parser->now.span);
    if (!hint)
        hint = hint_at(parser->before.span);
    const char *now = parser->source->text + parser->now.span.begin;
    if (!hint)
        hint = statement_advice(expected, *now);
    const Token *open = unclosed(parser, ended, *now);
    const char *before = parser->before.span.source ? parser->source->text + parser->before.span.begin : "";
    if (hint)
        diag_note(parser->diag, parser->now.span, "%s", hint);
    else if (*before == ':' && isdigit((unsigned char)*now))
        diag_note(parser->diag, parser->before.span,
                  "':' stands before the type of a field; a value is given with '='");
    else if (has(expected, "end of line") && *now == ',')
        diag_note(parser->diag, parser->now.span, "a statement ends at the end of its line, without a comma");
    else if (has(expected, "':'") && has(expected, "'='") && *now == '(')
        diag_note(parser->diag, parser->now.span, "the result of a call is given a name: y = f(x)");
    else if (has(expected, "'+'") && is_comparison(now))
        diag_note(parser->diag, parser->now.span, "comparisons do not chain: write a < b and b < c");
    else if (has(expected, "'+'") && *now == '(')
        diag_note(parser->diag, parser->now.span,
                  "a value is not called; a layer is a function of its input: y = linear(x, 3)");
    else if (has(expected, "'+'") && *now == ',' && has(expected, "')'"))
        note_tuple(parser);
    else if (has(expected, "']'") && *now == ':')
        diag_note(parser->diag, parser->now.span, "a range has a beginning and an end, and no step");
    else if (open)
        diag_note(parser->diag, open->span, "this '%c' is not closed", open->kind);
    if (open && open->kind == '{')
        parser->blamed = true;
}

/* The end of the file, after an error that found its cause: a brace that is not closed. */
static bool known_already(const Parser *parser, bool at_end) {
    return at_end && parser->open.count && parser->blamed;
}

void syntax_error(Parser *parser, Span at, const char **expected, int count) {
    Words words = {.count = 0};
    for (int i = 0; i < count && i < 60; i++)
        words.at[words.count++] = expected[i];
    Words all = words;
    summarise(&words);
    const char *list = list_of(parser->arena, &words);
    bool at_end = at.begin == at.source->size, line_end = !at_end && at.source->text[at.begin] == '\n';
    bool ended = at_end || line_end || on_later_line(parser->before.span, at);
    if (known_already(parser, at_end))
        return;
    if (ended && parser->before.span.source)
        at.begin = at.end = parser->before.span.end;
    if (at_end)
        diag_error(parser->diag, at, "the file ends here; expected %s", list);
    else if (ended)
        diag_error(parser->diag, at, "expected %s before the end of the line", list);
    else
        diag_error(parser->diag, at, "unexpected '%s'; expected %s", span_text(parser->arena, at), list);
    note_cause(parser, &all, ended);
    parser_close_brackets(parser);
}
