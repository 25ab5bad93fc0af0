/* The syntax tree. Every node has the span of its text; check.c adds what names refer to. */
#ifndef MTC_AST_H
#define MTC_AST_H

#include "front/front.h"

typedef struct Expr Expr;
typedef struct Stmt Stmt;
typedef struct Fn Fn;
typedef struct Signature Signature;

/* A word of the text and where it stands. */
typedef struct Name {
    const char *text;
    Span span;
} Name;

/* An argument of a call; `name.text` is NULL when it is positional. */
typedef struct Arg {
    Name name;
    Expr *value;
} Arg;

typedef VEC(Name) NameList;
typedef VEC(Expr *) ExprList;
typedef VEC(Stmt *) StmtList;
typedef VEC(Arg) ArgList;

typedef enum ExprKind {
    EXPR_NUMBER,
    EXPR_BOOL,
    EXPR_NONE,
    EXPR_STRING,
    EXPR_NAME,
    EXPR_LIST,
    EXPR_SEVERAL,  /* the values of `return a, b` and of `x, y = a, b` */
    EXPR_INDEX,    /* a part of a tensor: what of, then an index or a range for each axis */
    EXPR_RANGE,    /* of an axis: `begin : end`; NONE where it is not said */
    EXPR_OPERATOR, /* infix or prefix; name.text is the function that it stands for: `+` is "add" */
    EXPR_CALL
} ExprKind;

struct Expr {
    ExprKind kind;
    Span span;
    int depth;     /* of the tree under it, itself included */
    double number; /* NUMBER, BOOL */
    bool integer;  /* NUMBER: written without fraction and exponent */
    Name name;     /* NAME, OPERATOR, CALL; STRING: its text without quotes and escapes */
    ArgList args;  /* LIST, SEVERAL, INDEX, RANGE, OPERATOR, CALL */

    /* CALL, set by check.c: what is called, its parameters, and the argument of each (NULL: the default). */
    Fn *fn;
    const OpDef *op;
    const Signature *signature;
    Expr **bound;
    Expr *layer_name; /* the `name = "..."` that any call accepts, or NULL */
};

typedef enum StmtKind {
    STMT_ASSIGN,
    STMT_SEVERAL, /* `a, b = f(x)`: its body has an assignment without a value for each name */
    STMT_LAYER,   /* `layer f(x) = linear(x, 8)` */
    STMT_FIELD,
    STMT_REPEAT,
    STMT_IF,
    STMT_ASSERT,
    STMT_RETURN
} StmtKind;

struct Stmt {
    StmtKind kind;
    Span span;
    int depth;      /* as in Expr */
    Name name;      /* ASSIGN, LAYER, FIELD, REPEAT */
    Name manner;    /* ASSIGN: "order" of `split = 80 / 20 in order`; else its text is NULL */
    Fn *fn;         /* LAYER: its parameters, and a body that returns its value */
    Name type;      /* FIELD: "u8", "class" */
    ExprList dims;  /* FIELD: its axes; of "class" the number of classes */
    ExprList shape; /* FIELD, "class": class[10][28, 28]: the axes */
    Expr *
        value; /* ASSIGN, SEVERAL, RETURN; source of FIELD, or NULL; condition of IF and ASSERT; first index of REPEAT */
    Expr *end;      /* REPEAT: the index after the last */
    Expr *message;  /* ASSERT: a string, or NULL */
    StmtList body;  /* SEVERAL, REPEAT, IF */
    StmtList other; /* IF: else */
    bool ran, read; /* ASSIGN: some value of it was made, was used (lower.c); FIELD: it was used */
};

typedef struct Param {
    Name name;
    Span span;
    double value;
    bool integer, has_range;
    double low, high;
    Span value_span;
    const char *help;
    bool read; /* it is named somewhere */
} Param;

/* A parameter of a function: name, the shape that it must have (each axis a size, a name or `_`), its default. */
typedef struct FnParam {
    Name name;
    bool has_shape;
    ExprList shape;
    Expr *value;
} FnParam;

typedef VEC(FnParam) FnParamList;

struct Fn {
    Name name;
    Span span;
    FnParamList params;
    StmtList body;

    /* check.c */
    Signature *signature;
    ExprList calls; /* of other functions */
    bool called;
    int visit;   /* 0 not yet, 1 being visited, 2 done */
    bool shares; /* a layer: all calls of it have the same weights */
    /* lower.c */
    bool failed;   /* a call of it was wrong: further ones are not looked at */
    Span returned; /* what its last call returned */
};

typedef struct Block {
    Name keyword;
    Span span;
    StmtList body;
} Block;

typedef enum ItemKind { ITEM_PARAM, ITEM_FN, ITEM_BLOCK } ItemKind;
typedef struct Item {
    ItemKind kind;
    Param *param;
    Fn *fn;
    Block *block;
} Item;

struct Ast {
    Arena *arena;
    VEC(const Source *) sources; /* the main file first */
    VEC(Item) items;             /* in the order of the text, includes in their place */
    VEC(Param *) params;
    VEC(Fn *) fns;
    VEC(Block *) blocks;
};

enum { MAX_DEPTH = 500 }; /* of expressions and of blocks, so that a walk over the tree cannot exhaust the stack */

Expr *expr_new(Arena *arena, ExprKind kind, Span span);
Expr *expr_number(Arena *arena, Span span, double value, bool integer);
Expr *expr_named(Arena *arena, ExprKind kind, Span span, Name name);
Expr *expr_call(Arena *arena, Span span, Name callee, ArgList args);
Expr *expr_list(Arena *arena, Span span, ExprList items);
/* One value is itself. */
Expr *expr_several(Arena *arena, Span span, ExprList values);
Expr *expr_index(Arena *arena, Span span, Expr *whole, ExprList places);
/* An end that is NULL is not said. */
Expr *expr_range(Arena *arena, Span span, Expr *begin, Expr *end);
/* `b` is NULL for a prefix operator. */
Expr *expr_operator(Arena *arena, Span span, Name op, Expr *a, Expr *b);

Stmt *stmt_new(Arena *arena, StmtKind kind, Span span);
Stmt *stmt_assign(Arena *arena, Span span, Name name, Expr *value);
/* `names = value`, of one name or several. */
Stmt *stmt_names(Arena *arena, Span span, NameList names, Expr *value);
/* `name = value in manner`. */
Stmt *stmt_in(Arena *arena, Span span, NameList names, Expr *value, Name manner);
Stmt *stmt_layer(Arena *arena, Span span, Name name, FnParamList params, Expr *value);
Stmt *stmt_value(Arena *arena, StmtKind kind, Span span, Expr *value, Expr *message);
/* `source` is NULL where the text does not say what the field is made of. */
Stmt *stmt_field(Arena *arena, Name type, ExprList dims, ExprList shape);
/* Completes it: the statement's place, the field's name, what it is made of or NULL. */
void field_from(Stmt *field, Span span, Name name, Expr *source);
Stmt *stmt_repeat(Arena *arena, Span span, Name index, Expr *first, Expr *end, StmtList body);
Stmt *stmt_if(Arena *arena, Span span, Expr *condition, StmtList body, StmtList other);

void ast_param(Ast *ast, Param param);
void ast_fn(Ast *ast, Span span, Name name, FnParamList params, StmtList body);
void ast_block(Ast *ast, Span span, Name keyword, StmtList body);

Fn *ast_find_fn(const Ast *ast, const char *name);
/* The first block with that keyword, or NULL. */
Block *ast_find_block(const Ast *ast, const char *keyword);
/* The first statement of the block that has that name, or NULL. */
Stmt *block_find(const Block *block, const char *name);

#endif
