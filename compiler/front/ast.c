#include "front/ast.h"

static int deeper(int depth, const Expr *below) {
    return below && below->depth >= depth ? below->depth + 1 : depth;
}

Expr *expr_new(Arena *arena, ExprKind kind, Span span) {
    Expr *e = NEW(arena, Expr);
    e->kind = kind;
    e->span = span;
    e->depth = 1;
    return e;
}

Expr *expr_number(Arena *arena, Span span, double value, bool integer) {
    Expr *e = expr_new(arena, EXPR_NUMBER, span);
    e->number = value;
    e->integer = integer;
    return e;
}

Expr *expr_named(Arena *arena, ExprKind kind, Span span, Name name) {
    Expr *e = expr_new(arena, kind, span);
    e->name = name;
    return e;
}

Expr *expr_call(Arena *arena, Span span, Name callee, ArgList args) {
    Expr *e = expr_named(arena, EXPR_CALL, span, callee);
    e->args = args;
    for (int i = 0; i < args.count; i++)
        e->depth = deeper(e->depth, args.at[i].value);
    return e;
}

static void push_operand(Arena *arena, Expr *e, Expr *operand) {
    VEC_PUSH(arena, &e->args, ((Arg){.value = operand}));
    e->depth = deeper(e->depth, operand);
}

Expr *expr_list(Arena *arena, Span span, ExprList items) {
    Expr *e = expr_new(arena, EXPR_LIST, span);
    for (int i = 0; i < items.count; i++)
        push_operand(arena, e, items.at[i]);
    return e;
}

Expr *expr_several(Arena *arena, Span span, ExprList values) {
    if (values.count == 1)
        return values.at[0];
    Expr *e = expr_list(arena, span, values);
    e->kind = EXPR_SEVERAL;
    return e;
}

Expr *expr_index(Arena *arena, Span span, Expr *whole, ExprList places) {
    Expr *e = expr_new(arena, EXPR_INDEX, span);
    push_operand(arena, e, whole);
    for (int i = 0; i < places.count; i++)
        push_operand(arena, e, places.at[i]);
    return e;
}

Expr *expr_range(Arena *arena, Span span, Expr *begin, Expr *end) {
    Expr *e = expr_new(arena, EXPR_RANGE, span);
    push_operand(arena, e, begin ? begin : expr_new(arena, EXPR_NONE, span));
    push_operand(arena, e, end ? end : expr_new(arena, EXPR_NONE, span));
    return e;
}

Expr *expr_operator(Arena *arena, Span span, Name op, Expr *a, Expr *b) {
    Expr *e = expr_named(arena, EXPR_OPERATOR, span, op);
    push_operand(arena, e, a);
    if (b)
        push_operand(arena, e, b);
    return e;
}

Stmt *stmt_new(Arena *arena, StmtKind kind, Span span) {
    Stmt *s = NEW(arena, Stmt);
    s->kind = kind;
    s->span = span;
    s->depth = 1;
    return s;
}

Stmt *stmt_assign(Arena *arena, Span span, Name name, Expr *value) {
    Stmt *s = stmt_new(arena, STMT_ASSIGN, span);
    s->name = name;
    s->value = value;
    s->depth = deeper(1, value);
    return s;
}

Stmt *stmt_names(Arena *arena, Span span, NameList names, Expr *value) {
    if (names.count == 1)
        return stmt_assign(arena, span, names.at[0], value);
    Stmt *s = stmt_value(arena, STMT_SEVERAL, span, value, NULL);
    for (int i = 0; i < names.count; i++) {
        Stmt *assign = stmt_assign(arena, names.at[i].span, names.at[i], NULL);
        VEC_PUSH(arena, &s->body, assign);
    }
    return s;
}

Stmt *stmt_in(Arena *arena, Span span, NameList names, Expr *value, Name manner) {
    Stmt *s = stmt_names(arena, span, names, value);
    s->manner = manner;
    return s;
}

Stmt *stmt_value(Arena *arena, StmtKind kind, Span span, Expr *value, Expr *message) {
    Stmt *s = stmt_new(arena, kind, span);
    s->value = value;
    s->message = message;
    s->depth = deeper(1, value);
    return s;
}

Stmt *stmt_layer(Arena *arena, Span span, Name name, FnParamList params, Expr *value) {
    Stmt *s = stmt_new(arena, STMT_LAYER, span), *result = stmt_value(arena, STMT_RETURN, value->span, value, NULL);
    s->name = name;
    s->fn = NEW(arena, Fn);
    *s->fn = (Fn){.name = name, .span = span, .params = params, .shares = true};
    VEC_PUSH(arena, &s->fn->body, result);
    s->depth = result->depth + 1;
    return s;
}

static int deepest(int depth, const ExprList *list) {
    for (int i = 0; i < list->count; i++)
        depth = deeper(depth, list->at[i]);
    return depth;
}

Stmt *stmt_field(Arena *arena, Name type, ExprList dims, ExprList shape) {
    Stmt *s = stmt_new(arena, STMT_FIELD, type.span);
    s->type = type;
    s->dims = dims;
    s->shape = shape;
    s->depth = deepest(deepest(1, &dims), &shape);
    return s;
}

void field_from(Stmt *field, Span span, Name name, Expr *source) {
    field->span = span;
    field->name = name;
    field->value = source;
    field->depth = deeper(field->depth, source);
}

static void enclose(Stmt *s, const StmtList *body) {
    for (int i = 0; i < body->count; i++)
        if (body->at[i]->depth >= s->depth)
            s->depth = body->at[i]->depth + 1;
}

Stmt *stmt_repeat(Arena *arena, Span span, Name index, Expr *first, Expr *end, StmtList body) {
    Stmt *s = stmt_new(arena, STMT_REPEAT, span);
    s->name = index;
    s->value = first;
    s->end = end;
    s->body = body;
    s->depth = deeper(deeper(1, first), end);
    enclose(s, &body);
    return s;
}

Stmt *stmt_if(Arena *arena, Span span, Expr *condition, StmtList body, StmtList other) {
    Stmt *s = stmt_value(arena, STMT_IF, span, condition, NULL);
    s->body = body;
    s->other = other;
    enclose(s, &body);
    enclose(s, &other);
    return s;
}

void ast_param(Ast *ast, Param param) {
    Param *copy = NEW(ast->arena, Param);
    *copy = param;
    VEC_PUSH(ast->arena, &ast->params, copy);
    VEC_PUSH(ast->arena, &ast->items, ((Item){.kind = ITEM_PARAM, .param = copy}));
}

void ast_fn(Ast *ast, Span span, Name name, FnParamList params, StmtList body) {
    Fn *fn = NEW(ast->arena, Fn);
    *fn = (Fn){.name = name, .span = span, .params = params, .body = body};
    VEC_PUSH(ast->arena, &ast->fns, fn);
    VEC_PUSH(ast->arena, &ast->items, ((Item){.kind = ITEM_FN, .fn = fn}));
}

void ast_block(Ast *ast, Span span, Name keyword, StmtList body) {
    Block *block = NEW(ast->arena, Block);
    *block = (Block){.keyword = keyword, .span = span, .body = body};
    VEC_PUSH(ast->arena, &ast->blocks, block);
    VEC_PUSH(ast->arena, &ast->items, ((Item){.kind = ITEM_BLOCK, .block = block}));
}

Fn *ast_find_fn(const Ast *ast, const char *name) {
    for (int i = 0; i < ast->fns.count; i++)
        if (strcmp(ast->fns.at[i]->name.text, name) == 0)
            return ast->fns.at[i];
    return NULL;
}

Block *ast_find_block(const Ast *ast, const char *keyword) {
    for (int i = 0; i < ast->blocks.count; i++)
        if (strcmp(ast->blocks.at[i]->keyword.text, keyword) == 0)
            return ast->blocks.at[i];
    return NULL;
}

Stmt *block_find(const Block *block, const char *name) {
    for (int i = 0; block && i < block->body.count; i++)
        if (block->body.at[i]->name.text && strcmp(block->body.at[i]->name.text, name) == 0)
            return block->body.at[i];
    return NULL;
}
