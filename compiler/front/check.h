/* Shared by check.c (blocks, declarations, recursion), check_data.c (the data block) and resolve.c (names in bodies and
 * expressions). */
#ifndef MTC_CHECK_H
#define MTC_CHECK_H

#include "front/arguments.h"

#define COUNT(array) (int)(sizeof(array) / sizeof *(array))

typedef enum VariableKind {
    VARIABLE_LOCAL,
    VARIABLE_PARAMETER,
    VARIABLE_LAYER,
    VARIABLE_INDEX,
    VARIABLE_FIELD,
    VARIABLE_PARAM,
    VARIABLE_UNKNOWN /* used without being introduced: reported once */
} VariableKind;

typedef struct Variable {
    Name name;
    VariableKind kind;
    bool read;
    Fn *layer;         /* LAYER */
    VEC(bool *) marks; /* `read` of what gives it a value: see scope_mark */
} Variable;

/* The names that a body can use so far: a block or a function sees the params of the file and its own names. */
typedef struct Scope {
    Diag *diag;
    Arena *arena;
    Ast *ast;
    Fn *fn; /* NULL in blocks */
    VEC(Variable) variables;
    bool in_layer;
    int branches; /* bodies around that may not be carried out */
} Scope;

Scope scope_new(Diag *diag, Ast *ast, Fn *fn);
/* False when the name is taken: reported. */
bool scope_add(Scope *scope, Name name, VariableKind kind);
Variable *scope_find(Scope *scope, const char *name);
/* A use of the name sets *read where lowering does not: in a branch that may not be taken, and, of a param, in a function
 * that may not be called. Otherwise lowering knows better which value was used. */
void scope_mark(Scope *scope, const char *name, bool *read);

void resolve_expr(Scope *scope, Expr *e);
void resolve_exprs(Scope *scope, const ExprList *list);
/* Reports "in order" behind what is no split. */
void refuse_manner(const Scope *scope, const Stmt *s);
/* Reports statements that have no place here: fields anywhere, `return` outside functions. */
void resolve_body(Scope *scope, const StmtList *body);
void resolve_fn(Diag *diag, Ast *ast, Fn *fn);

bool is_one_of(const char *const *names, int count, const char *name);
/* `unknown <what> 'nam'; did you mean 'name'?` and the list of the valid ones. */
void report_unknown(Diag *diag, Arena *arena, const char *what, Name name, const char *const *names, int count);
void report_duplicate(Diag *diag, const char *what, Name name, Span first);

/* Finds the next {name} in a string from *at on; "{{" stands for a brace. */
bool next_hole(const char **at, const char **name, size_t *length);

/* The function that lists the library for "did you mean": names of callable operators and of the file's functions. */
const char **callable_names(Arena *arena, const Ast *ast, int *count);

/* The setting of the train block that the name is, or is a habit's word for; NULL: none. */
const char *train_setting(const char *name);
bool is_data_setting(const char *name); /* check_data.c */

extern const char *const running_numbers[]; /* names of the train block: scalar leaves that are called the same */
extern const int running_number_count;

#endif
