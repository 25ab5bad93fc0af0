/* Shared by check.c (blocks, declarations, recursion) and resolve.c (names in bodies and expressions). */
#ifndef MTC_CHECK_H
#define MTC_CHECK_H

#include "front/bind.h"

typedef enum VariableKind {
    VARIABLE_LOCAL,
    VARIABLE_PARAMETER,
    VARIABLE_INDEX,
    VARIABLE_FIELD,
    VARIABLE_PARAM,
    VARIABLE_UNKNOWN /* used without being introduced: reported once */
} VariableKind;

typedef struct Variable {
    Name name;
    VariableKind kind;
    bool read;
} Variable;

/* The names that a body can use so far: a block or a function sees the params of the file and its own names. */
typedef struct Scope {
    Diag *diag;
    Arena *arena;
    Ast *ast;
    Fn *fn; /* NULL in blocks */
    VEC(Variable) variables;
} Scope;

Scope scope_new(Diag *diag, Ast *ast, Fn *fn);
/* False when the name is taken: reported. */
bool scope_add(Scope *scope, Name name, VariableKind kind);
Variable *scope_find(Scope *scope, const char *name);

void resolve_expr(Scope *scope, Expr *e);
/* Reports statements that have no place here: fields anywhere, `return` outside functions. */
void resolve_body(Scope *scope, const StmtList *body);
void resolve_fn(Diag *diag, Ast *ast, Fn *fn);

/* Finds the next {name} in a string from *at on; "{{" stands for a brace. */
bool next_hole(const char **at, const char **name, size_t *length);

/* The function that lists the library for "did you mean": names of callable operators and of the file's functions. */
const char **callable_names(Arena *arena, const Ast *ast, int *count);

extern const char *const builtin_names[]; /* calls that lower.c carries out itself */
extern const int builtin_count;

#endif
