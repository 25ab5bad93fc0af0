/* Matching the arguments of a call with the parameters of what is called. */
#ifndef MTC_ARGUMENTS_H
#define MTC_ARGUMENTS_H

#include "front/ast.h"
#include "op/signature.h"

Signature *signature_of_fn(Arena *arena, const Fn *fn);

/* Sets call->bound and call->layer_name; reports what does not match and returns false. */
bool bind_call(Diag *diag, Arena *arena, Expr *call, const Signature *signature);

/* Reports a number where the parameter is true or false, and returns false. */
bool check_switch(Diag *diag, const Expr *call, int index, const Value *value);

/* "conv2d(x, 8, 3)" of conv2d(x, 1, 8, 3): what is meant where the size of the input was said. */
const char *without_input_size(Arena *arena, const Expr *call);

/* The argument that bind_call found for a parameter; NULL: left out, or there is no such parameter. */
Expr *bound_argument(const Expr *call, const char *parameter);

/* "; did you mean 'x'?", or "" when no candidate is near. */
const char *suggestion(Arena *arena, const char *name, const char *const *candidates, int count);
/* "'a', 'b' and 'c'" */
const char *name_list(Arena *arena, const char *const *names, int count);

extern const char *const builtin_names[]; /* calls that eval.c carries out itself */
extern const int builtin_count;
bool is_builtin(const char *name);
bool is_of_library(const char *name); /* it is called where the text has no function of that name */

/* How what is called so elsewhere is called here, "relu(x)" of "ReLU"; NULL: nothing is known of it. */
const char *call_advice(Arena *arena, const char *name);

#endif
