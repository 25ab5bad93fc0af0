/* Expressions are text with a space on both sides of every binary operator, so operators are found by looking. */
#include "emit/text/index.h"

#include <ctype.h>

typedef struct Infix {
    const char *text;
    int prec;
} Infix;

static const Infix infixes[] = {
    {"?", PREC_COND},   {":", PREC_COND},     {"||", PREC_OR},      {"&&", PREC_AND},      {"==", PREC_EQUAL},
    {"!=", PREC_EQUAL}, {"<", PREC_RELATION}, {">", PREC_RELATION}, {"<=", PREC_RELATION}, {">=", PREC_RELATION},
    {"+", PREC_SUM},    {"-", PREC_SUM},      {"*", PREC_PRODUCT},  {"/", PREC_PRODUCT},   {"%", PREC_PRODUCT}};

/* The strength of the operator in " op " at `at`, which points behind the first space; -1: none. */
int infix_at(const char *at) {
    size_t length = strcspn(at, " ");
    for (size_t k = 0; k < sizeof infixes / sizeof *infixes; k++)
        if (at[length] == ' ' && strlen(infixes[k].text) == length && strncmp(infixes[k].text, at, length) == 0)
            return infixes[k].prec;
    return -1;
}

int nesting(char c) {
    switch (c) {
    case '(':
    case '[':
    case '{': return 1;
    case ')':
    case ']':
    case '}': return -1;
    default: return 0;
    }
}

int precedence(const char *expression) {
    int weakest = PREC_PRIMARY, depth = 0;
    for (const char *at = expression; *at; at++) {
        depth += nesting(*at);
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
        least = left == PREC_COND && least < PREC_COND ? PREC_COND
                : left >= least && left != PREC_COND   ? left + 1
                                                       : least;
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
        int least = place_asks(pattern, at, 2), own = precedence(operands[operand]);
        bool mixed = own == PREC_AND && (least == PREC_OR || least == PREC_OR + 1); /* compilers warn of a || b && c */
        text_puts(&result, parenthesised(arena, operands[operand], mixed ? PREC_EQUAL : least));
        at += 2;
    }
    return text_string(&result);
}
