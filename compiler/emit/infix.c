/* Expressions are text with a space on both sides of every binary operator, so operators are found by looking. */
#include "emit/index.h"
#include "emit/writer.h"

#include <ctype.h>

typedef struct Infix {
    const char *text;
    int prec;
} Infix;

static const Infix infixes[] = {{"?", PREC_COND},     {":", PREC_COND},     {"||", PREC_OR},      {"&&", PREC_AND},
                                {"==", PREC_EQUAL},   {"!=", PREC_EQUAL},   {"<", PREC_RELATION}, {">", PREC_RELATION},
                                {"<=", PREC_RELATION}, {">=", PREC_RELATION}, {"+", PREC_SUM},      {"-", PREC_SUM},
                                {"*", PREC_PRODUCT},  {"/", PREC_PRODUCT},  {"%", PREC_PRODUCT}};

/* The strength of the operator in " op " at `at`, which points behind the first space; -1: none. */
static int infix_at(const char *at) {
    size_t length = strcspn(at, " ");
    for (size_t k = 0; k < sizeof infixes / sizeof *infixes; k++)
        if (at[length] == ' ' && strlen(infixes[k].text) == length && strncmp(infixes[k].text, at, length) == 0)
            return infixes[k].prec;
    return -1;
}

int precedence(const char *expression) {
    int weakest = PREC_PRIMARY, depth = 0;
    for (const char *at = expression; *at; at++) {
        depth += strchr("([{", *at) ? 1 : strchr(")]}", *at) ? -1 : 0;
        int prec = depth == 0 && *at == ' ' ? infix_at(at + 1) : -1;
        if (prec >= 0 && prec < weakest)
            weakest = prec;
    }
    bool cast = *expression == '(' && strchr(expression, ')') && expression[strlen(expression) - 1] != ')' &&
                isalpha((unsigned char)expression[1]);
    bool unary = cast || *expression == '-' || *expression == '!';
    return unary && weakest > PREC_UNARY ? PREC_UNARY : weakest;
}

const char *parenthesised(Arena *arena, const char *expression, int least) {
    return precedence(expression) < least ? arena_printf(arena, "(%s)", expression) : expression;
}

/* What the place of an operand, `length` bytes at `at` in `pattern`, asks of it. C groups from the left, so on the right
 * of an operator something stronger is needed. */
static int place_asks(const char *pattern, const char *at, size_t length) {
    int least = PREC_COMMA;
    if (at[length] == ' ') {
        int right = infix_at(at + length + 1);
        least = right == PREC_COND ? PREC_OR : right > least ? right : least;
    }
    if (at - pattern >= 3 && at[-1] == ' ') {
        const char *op = at - 2;
        while (op > pattern && op[-1] != ' ')
            op--;
        int left = infix_at(op);
        least = left == PREC_COND && least < PREC_COND ? PREC_COND : left >= least && left != PREC_COND ? left + 1 : least;
    }
    bool prefixed = at > pattern && strchr("-!)", at[-1]);
    bool postfixed = at[length] == '[' || at[length] == '.';
    return postfixed ? PREC_PRIMARY : prefixed ? PREC_UNARY : least;
}

const char *substitute(Arena *arena, const char *pattern, const char *const *operands, int count) {
    Text result = TEXT(arena);
    for (const char *at = pattern; *at;) {
        int operand = at[0] == '$' && isdigit((unsigned char)at[1]) ? at[1] - '0' : -1;
        if (operand < 0) {
            text_putc(&result, *at++);
            continue;
        }
        if (operand >= count)
            ICE("'%s' has no operand %d", pattern, operand);
        text_puts(&result, parenthesised(arena, operands[operand], place_asks(pattern, at, 2)));
        at += 2;
    }
    return text_string(&result);
}

/* ---- breaking lines ---- */

/* The last "= " outside of all parentheses, or NULL. */
static const char *last_assignment(const char *text) {
    const char *last = NULL;
    int depth = 0;
    for (const char *at = text; *at; at++) {
        depth += strchr("([{", *at) ? 1 : strchr(")]}", *at) ? -1 : 0;
        if (depth == 0 && strncmp(at, "= ", 2) == 0 && !strchr("<>!=", at[-1]))
            last = at;
    }
    return last;
}

/* Bytes of `text` up to and with the last operator of strength `prec` that ends within `room`; 0: none. */
static size_t up_to_operator(const char *text, int prec, size_t room) {
    size_t end = 0;
    int depth = 0;
    for (const char *at = text; *at && (size_t)(at - text) <= room; at++) {
        depth += strchr("([{", *at) ? 1 : strchr(")]}", *at) ? -1 : 0;
        if (depth == 0 && *at == ' ' && infix_at(at + 1) == prec) {
            size_t length = (size_t)(at + 1 - text) + strcspn(at + 1, " ");
            end = length <= room ? length : end;
        }
    }
    return end;
}

void write_statement(Writer *w, const char *statement) {
    const char *equals = last_assignment(statement);
    if (!equals || 4 * (size_t)w->indent + strlen(statement) <= LONGEST_LINE) {
        write_line(w, "%s", statement);
        return;
    }
    write_open(w, "%.*s", (int)(equals + 1 - statement), statement);
    const char *rest = equals + 2;
    size_t room = LONGEST_LINE - 4 * (size_t)w->indent;
    for (size_t length; strlen(rest) > room && (length = up_to_operator(rest, precedence(rest), room)); rest += length + 1)
        write_line(w, "%.*s", (int)length, rest);
    write_line(w, "%s", rest);
    w->indent--;
}
