/* Operators in a line of code, for who breaks it: they have a space on both sides. */
#ifndef MTC_INFIX_H
#define MTC_INFIX_H

#include "ir/op.h"

/* 1 where a parenthesis opens, -1 where one closes. */
int nesting(char c);
/* How strongly the weakest operator of the expression outside all parentheses binds (PREC_SUM ...). */
int precedence(const char *expression);
/* The strength of the operator that stands here, before a space; -1: none. */
int infix_at(const char *text);

#endif
