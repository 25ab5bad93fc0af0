/* Breaking lines that are too long in the places where clang-format breaks them. */
#include "emit/index.h"
#include "emit/writer.h"

typedef struct Breaker {
    Writer *w;
    PutLine put;
} Breaker;

static int nesting(char c) {
    return strchr("([{", c) ? 1 : strchr(")]}", c) ? -1 : 0;
}

/* Behind the last "= " outside of all parentheses; NULL: no assignment. */
static const char *assigned(const char *text) {
    const char *last = NULL;
    int depth = 0;
    for (const char *at = text; *at; at++) {
        depth += nesting(*at);
        if (depth == 0 && at > text && strncmp(at, "= ", 2) == 0 && !strchr("<>!=", at[-1]))
            last = at + 2;
    }
    return last;
}

/* Bytes up to and with the last operator of strength `prec` that ends within `room`; 0: there is none. */
static size_t up_to_operator(const char *text, int prec, size_t room) {
    size_t end = 0;
    int depth = 0;
    for (const char *at = text; *at; at++) {
        depth += nesting(*at);
        size_t length = (size_t)(at + 1 - text) + strcspn(at + 1, " ");
        if (depth == 0 && *at == ' ' && infix_at(at + 1) == prec && length <= room)
            end = length;
    }
    return end;
}

/* Bytes before this operator. */
static size_t up_to_infix(const char *text, const char *infix) {
    int depth = 0;
    for (const char *at = text; *at; at++) {
        depth += nesting(*at);
        if (depth == 0 && at[0] == ' ' && at[1] == *infix && at[2] == ' ')
            return (size_t)(at + 1 - text);
    }
    ICE("'%s' has no %s", text, infix);
}

/* Bytes up to and with the last comma within `room` that stands directly in the parentheses opened at `open`. */
static size_t up_to_comma(const char *text, size_t open, size_t room) {
    size_t end = 0;
    int depth = 0;
    for (size_t k = open; text[k] && k < room; k++) {
        depth += nesting(text[k]);
        if (depth == 1 && text[k] == ',')
            end = k + 1;
    }
    return end;
}

/* Where the arguments of the last call of the expression begin: behind its "(". */
static size_t arguments(const char *text) {
    size_t length = strlen(text);
    int depth = 0;
    for (size_t k = length; k > 0; k--) {
        depth += nesting(text[k - 1]);
        if (depth == 0 && strchr("([{", text[k - 1]))
            return k;
    }
    return 0;
}

static void put(const Breaker *b, int columns, const char *text) {
    b->put(b->w, columns, text, strlen(text));
}

/* Every line but the first starts at `columns`; the first one has `before` in front. */
static bool break_arguments(const Breaker *b, int columns, const char *before, const char *text) {
    size_t open = arguments(text), lead = strlen(before), length;
    if (!open || text[open - 1] == '[' || !(length = up_to_comma(text, open - 1, LONGEST_LINE - (size_t)columns - lead)))
        return false;
    put(b, columns, arena_printf(b->w->text.arena, "%s%.*s", before, (int)length, text));
    int inner = columns + (int)(lead + open);
    text += length + 1;
    for (; inner + strlen(text) > LONGEST_LINE; text += length + 1) {
        length = up_to_comma(arena_printf(b->w->text.arena, "(%s", text), 0, LONGEST_LINE - (size_t)inner + 1);
        if (length < 2)
            break;
        length--;
        b->put(b->w, inner, text, length);
    }
    put(b, inner, text);
    return true;
}

/* "a ? b : c": clang-format puts its parts on lines of their own, below the condition and indented. */
static bool break_condition(const Breaker *b, int columns, const char *before, const char *text) {
    if (precedence(text) != PREC_COND)
        return false;
    size_t yes = up_to_infix(text, "?"), no = up_to_infix(text, ":");
    int inner = columns + (int)strlen(before) + 4;
    put(b, columns, arena_printf(b->w->text.arena, "%s%.*s", before, (int)yes - 1, text));
    b->put(b->w, inner, text + yes, no - yes - 1);
    put(b, inner, text + no);
    return true;
}

/* `before` and an expression whose further lines are aligned with its start. */
static void break_expression(const Breaker *b, int columns, const char *before, const char *text) {
    if (break_condition(b, columns, before, text))
        return;
    int prec = precedence(text), aligned = columns + (int)strlen(before);
    size_t length = aligned < LONGEST_LINE ? up_to_operator(text, prec, LONGEST_LINE - (size_t)aligned) : 0;
    if (!length) {
        if (!break_arguments(b, columns, before, text))
            put(b, columns, arena_printf(b->w->text.arena, "%s%s", before, text));
        return;
    }
    put(b, columns, arena_printf(b->w->text.arena, "%s%.*s", before, (int)length, text));
    text += length + 1;
    if (aligned + strlen(text) > LONGEST_LINE)
        break_expression(b, aligned, "", text);
    else
        put(b, aligned, text);
}

static bool pieces_fit(const char *text, int columns) {
    int prec = precedence(text);
    while (columns + strlen(text) > LONGEST_LINE) {
        size_t length = columns < LONGEST_LINE ? up_to_operator(text, prec, LONGEST_LINE - (size_t)columns) : 0;
        if (!length)
            return false;
        text += length + 1;
    }
    return true;
}

static void break_assignment(const Breaker *b, int columns, const char *line, const char *value) {
    const char *before = arena_strndup(b->w->text.arena, line, (size_t)(value - line));
    bool fits_below = columns + 4 + strlen(value) <= LONGEST_LINE;
    bool fits_aligned = pieces_fit(value, columns + (int)strlen(before));
    if (!fits_below && (fits_aligned || !pieces_fit(value, columns + 4))) {
        break_expression(b, columns, before, value);
        return;
    }
    b->put(b->w, columns, before, strlen(before) - 1);
    if (fits_below)
        put(b, columns + 4, value);
    else
        break_expression(b, columns + 4, "", value);
}

/* "auto out = [&](int i) { x; };" */
static bool break_lambda(const Breaker *b, int columns, const char *line) {
    const char *body = strstr(line, ") { ");
    size_t length = strlen(line);
    if (!body || strncmp(line, "auto ", 5) != 0 || strcmp(line + length - 3, " };") != 0)
        return false;
    b->put(b->w, columns, line, (size_t)(body + 3 - line));
    const char *statement = arena_strndup(b->w->text.arena, body + 4, length - 3 - (size_t)(body + 4 - line));
    break_line(b->w, columns + 4, statement, b->put);
    put(b, columns, "};");
    return true;
}

void break_line(Writer *w, int columns, const char *line, PutLine put_line) {
    Breaker b = {w, put_line};
    const char *value = assigned(line);
    bool fits = columns + strlen(line) <= LONGEST_LINE, comment = strncmp(line, "//", 2) == 0;
    if (fits || comment || *line == '{' || *line == '.')
        put(&b, columns, line);
    else if (break_lambda(&b, columns, line))
        return;
    else if (strncmp(line, "return ", 7) == 0)
        break_expression(&b, columns, "return ", line + 7);
    else if (value)
        break_assignment(&b, columns, line, value);
    else
        break_expression(&b, columns, "", line);
}
