/* The dump of the syntax tree: a node a line, its place before it, what belongs to it indented under it.
 *
 *   16:3      assign h
 *   16:12       call relu
 *   16:17         call linear */
#include "front/ast.h"

typedef struct Printer {
    Text *out;
    int indent;
    bool plain; /* without what the program does not depend on: places, help texts */
    const Source *source;
} Printer;

static void print_expr(Printer *p, const Expr *e);
static void print_body(Printer *p, const char *title, const StmtList *body);

static void begin_line(Printer *p, Span at) {
    int line, column;
    if (p->plain) {
        text_printf(p->out, "%*s", 2 * p->indent, "");
        return;
    }
    if (at.source != p->source)
        text_printf(p->out, "# %s\n", at.source->path);
    p->source = at.source;
    span_position(at, &line, &column);
    size_t start = p->out->length;
    text_printf(p->out, "%d:%d ", line, column);
    while (p->out->length - start < 10 + 2 * (size_t)p->indent)
        text_putc(p->out, ' ');
}

static void print_number(Printer *p, double value, bool integer) {
    if (integer)
        text_printf(p->out, "%.0f", value);
    else
        text_number(p->out, value);
}

static void print_string(Printer *p, const char *string) {
    text_putc(p->out, '"');
    for (; *string; string++) {
        if (strchr("\"\\\n\t", *string))
            text_printf(p->out, "\\%c", *string == '\n' ? 'n' : *string == '\t' ? 't' : *string);
        else
            text_putc(p->out, *string);
    }
    text_putc(p->out, '"');
}

static void print_head(Printer *p, const Expr *e) {
    switch (e->kind) {
    case EXPR_NUMBER: print_number(p, e->number, e->integer); break;
    case EXPR_BOOL: text_puts(p->out, e->number != 0 ? "true" : "false"); break;
    case EXPR_STRING: print_string(p, e->name.text); break;
    case EXPR_NAME:
    case EXPR_OPERATOR: text_puts(p->out, e->name.text); break;
    case EXPR_CALL: text_printf(p->out, "call %s", e->name.text); break;
    case EXPR_NONE: text_puts(p->out, "none"); break;
    case EXPR_LIST: text_puts(p->out, "list"); break;
    case EXPR_SEVERAL: text_puts(p->out, "several"); break;
    case EXPR_INDEX: text_puts(p->out, "index"); break;
    case EXPR_RANGE: text_puts(p->out, "range"); break;
    }
}

static void print_under(Printer *p, const char *title, const Expr *e) {
    if (!e)
        return;
    p->indent++;
    begin_line(p, e->span);
    if (title)
        text_printf(p->out, "%s = ", title);
    print_expr(p, e);
    p->indent--;
}

static void print_expr(Printer *p, const Expr *e) {
    print_head(p, e);
    text_putc(p->out, '\n');
    for (int i = 0; i < e->args.count; i++)
        print_under(p, e->args.at[i].name.text, e->args.at[i].value);
}

static void print_exprs(Printer *p, const ExprList *list) {
    for (int i = 0; i < list->count; i++)
        print_under(p, NULL, list->at[i]);
}

static void print_fn_parts(Printer *p, const Fn *fn);

static void print_stmt(Printer *p, const Stmt *s) {
    static const char *const words[] = {"assign", "several", "layer", "field", "repeat", "if", "assert", "return"};
    begin_line(p, s->span);
    text_puts(p->out, words[s->kind]);
    if (s->name.text)
        text_printf(p->out, " %s", s->name.text);
    if (s->type.text)
        text_printf(p->out, " : %s", s->type.text);
    if (s->manner.text)
        text_printf(p->out, " in %s", s->manner.text);
    text_putc(p->out, '\n');
    if (s->fn)
        print_fn_parts(p, s->fn);
    print_exprs(p, &s->dims);
    print_exprs(p, &s->shape);
    print_under(p, s->kind == STMT_FIELD ? "from" : NULL, s->value);
    print_under(p, NULL, s->end);
    print_under(p, NULL, s->message);
    print_body(p, NULL, &s->body);
    print_body(p, "else", &s->other);
}

static void print_body(Printer *p, const char *title, const StmtList *body) {
    if (body->count && title) {
        begin_line(p, body->at[0]->span);
        text_printf(p->out, "%s\n", title);
    }
    p->indent++;
    for (int i = 0; i < body->count; i++)
        print_stmt(p, body->at[i]);
    p->indent--;
}

static void print_param(Printer *p, const Param *param) {
    begin_line(p, param->span);
    text_printf(p->out, "param %s = ", param->name.text);
    print_number(p, param->value, param->integer);
    if (param->has_range) {
        text_puts(p->out, " in ");
        text_number(p->out, param->low);
        text_puts(p->out, "..");
        text_number(p->out, param->high);
    }
    if (param->help && !p->plain)
        text_printf(p->out, "  # %s", param->help);
    text_putc(p->out, '\n');
}

static void print_fn_parts(Printer *p, const Fn *fn) {
    p->indent++;
    for (int i = 0; i < fn->params.count; i++) {
        const FnParam *param = &fn->params.at[i];
        begin_line(p, param->name.span);
        text_printf(p->out, "parameter %s%s\n", param->name.text, param->has_shape ? " of shape" : "");
        print_exprs(p, &param->shape);
        print_under(p, "default", param->value);
    }
    p->indent--;
    print_body(p, NULL, &fn->body);
}

static void print_fn(Printer *p, const Fn *fn) {
    begin_line(p, fn->span);
    text_printf(p->out, "fn %s\n", fn->name.text);
    print_fn_parts(p, fn);
}

static void print_items(Printer *p, const Ast *ast) {
    for (int i = 0; i < ast->items.count; i++) {
        const Item *item = &ast->items.at[i];
        if (item->kind == ITEM_PARAM) {
            print_param(p, item->param);
        } else if (item->kind == ITEM_FN) {
            print_fn(p, item->fn);
        } else {
            begin_line(p, item->block->span);
            text_printf(p->out, "%s\n", item->block->keyword.text);
            print_body(p, NULL, &item->block->body);
        }
    }
}

void front_print(const Ast *ast, Text *out) {
    Printer p = {.out = out, .source = ast->sources.at[0]};
    print_items(&p, ast);
}

void front_print_plain(const Ast *ast, Text *out) {
    Printer p = {.out = out, .plain = true};
    print_items(&p, ast);
}
