/* Expressions are text with a space on both sides of every binary operator, so operators are found by looking. */
#include "emit/text/infix.h"

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
