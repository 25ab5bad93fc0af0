/* Lines that are too long go on in further ones, as clang-format has them (layout.h). */
#include "emit/text/layout.h"
#include "emit/text/writer.h"

typedef struct Breaker {
    Writer *w;
    PutLine put;
    int columns; /* of the line */
} Breaker;

static bool is_bracket(const Lexeme *lexeme, LexemeKind kind, char bracket) {
    return lexeme->kind == kind && *lexeme->text == bracket;
}

/* Lexemes first .. last as they stand. */
static void put_lexemes(const Breaker *b, int columns, const Lexeme *first, const Lexeme *last) {
    b->put(b->w, columns, first->text, (size_t)(last->text + last->length - first->text));
}

static const Lexeme *last_of(const Lexemes *line) {
    return &line->at[line->count - 1];
}

static bool has_lexeme(const Lexemes *line, LexemeKind kind) {
    for (int k = 0; k < line->count; k++)
        if (line->at[k].kind == kind)
            return true;
    return false;
}

static bool assigns(const Lexemes *line) {
    for (int k = 0; k < line->count; k++)
        if (line->at[k].kind == LEXEME_INFIX && line->at[k].binds == BINDS_ASSIGNMENT && line->at[k].depth == 0)
            return true;
    return false;
}

/* "{.line = 3, .text = "..."}," */
static bool is_row_of_members(const Lexemes *line) {
    return is_bracket(line->at, LEXEME_OPEN, '{') && line->count > 1 && *line->at[1].text == '.';
}

/* A member a line. */
static void break_row(const Breaker *b, const Lexemes *line) {
    const Lexeme *first = line->at;
    for (const Lexeme *lexeme = first + 1; lexeme < last_of(line); lexeme++)
        if (lexeme->kind == LEXEME_COMMA && lexeme->depth == 1 && *lexeme[1].text == '.') {
            put_lexemes(b, b->columns + (first > line->at), first, lexeme);
            first = lexeme + 1;
        }
    put_lexemes(b, b->columns + (first > line->at), first, last_of(line));
}

/* "{NULL, 29, "h = relu(x)"}," */
static bool is_row_that_ends_with_text(const Lexemes *line) {
    int text = line->count - 3;
    return is_bracket(line->at, LEXEME_OPEN, '{') && text > 1 && line->at[text].kind == LEXEME_STRING;
}

/* The text on a line of its own, if it has room there; clang-format cuts others, which nobody could look for then. */
static void break_before_text(const Breaker *b, const Lexemes *line) {
    const Lexeme *text = last_of(line) - 2, *end = last_of(line);
    if (b->columns + 1 + (end->text + end->length - text->text) > LONGEST_LINE)
        text = line->at;
    else
        put_lexemes(b, b->columns, line->at, text - 1);
    put_lexemes(b, b->columns + (text > line->at), text, end);
}

/* "{ x; }" of "auto out = [&](int i) { x; };"; NULL: there is none. */
static const Lexeme *block_of(const Lexemes *line) {
    for (const Lexeme *lexeme = line->at + 1; lexeme < last_of(line); lexeme++)
        if (is_bracket(lexeme, LEXEME_OPEN, '{') && is_bracket(lexeme - 1, LEXEME_CLOSE, ')') && lexeme[1].spaced)
            return lexeme;
    return NULL;
}

static void break_lambda(const Breaker *b, const Lexemes *line, const Lexeme *block) {
    const Lexeme *end = last_of(line) - 1, *last = end - 1;
    put_lexemes(b, b->columns, line->at, block);
    const char *statement =
        arena_strndup(b->w->text.arena, block[1].text, (size_t)(last->text + last->length - block[1].text));
    break_line(b->w, b->columns + 4, statement, b->put);
    put_lexemes(b, b->columns, end, last_of(line));
}

static void break_statement(const Breaker *b, const Lexemes *line) {
    const LineStart *starts = lay_out(b->w->text.arena, line, b->columns, LONGEST_LINE);
    for (int k = 0, end; k < line->count; k = end) {
        for (end = k + 1; end < line->count && !starts[end].begins;)
            end++;
        put_lexemes(b, starts[k].column, &line->at[k], &line->at[end - 1]);
    }
}

/* Notes stand behind what they are of, strings in one lexeme, a member's value beside its name. */
static bool stays_whole(const Lexemes *line) {
    return (has_lexeme(line, LEXEME_COMMENT) && !assigns(line)) || has_lexeme(line, LEXEME_STRING) ||
           is_bracket(line->at, LEXEME_OPEN, '{') || *line->at->text == '.';
}

void break_line(Writer *w, int columns, const char *text, PutLine put_line) {
    Breaker b = {w, put_line, columns};
    const Lexemes line = lexemes_of(w->text.arena, text);
    const Lexeme *block = block_of(&line);
    if (columns + strlen(text) <= LONGEST_LINE)
        put_line(w, columns, text, strlen(text));
    else if (is_row_of_members(&line))
        break_row(&b, &line);
    else if (is_row_that_ends_with_text(&line))
        break_before_text(&b, &line);
    else if (stays_whole(&line))
        put_line(w, columns, text, strlen(text));
    else if (block)
        break_lambda(&b, &line, block);
    else
        break_statement(&b, &line);
}
