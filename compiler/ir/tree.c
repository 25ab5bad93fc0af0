#include "ir/tree.h"

#include "support/diag.h"

#include <ctype.h>
#include <stdlib.h>

/* ---- operators ---- */

typedef struct Infix {
    const char *text;
    int prec;
} Infix;

static const Infix infixes[] = {
    {"||", PREC_OR},      {"&&", PREC_AND},      {"==", PREC_EQUAL},    {"!=", PREC_EQUAL}, {"<", PREC_RELATION},
    {">", PREC_RELATION}, {"<=", PREC_RELATION}, {">=", PREC_RELATION}, {"+", PREC_SUM},    {"-", PREC_SUM},
    {"*", PREC_PRODUCT},  {"/", PREC_PRODUCT},   {"%", PREC_PRODUCT}};

/* NULL: there is none of so many bytes. */
static const Infix *find_infix(const char *text, size_t length) {
    for (size_t k = 0; k < sizeof infixes / sizeof *infixes; k++)
        if (strlen(infixes[k].text) == length && strncmp(infixes[k].text, text, length) == 0)
            return &infixes[k];
    return NULL;
}

/* ---- making ---- */

static const Tree *make(Arena *arena, TreeKind kind, const char *text, int prec, const Tree *const *parts, int count) {
    Tree *e = NEW(arena, Tree);
    const Tree **part = count ? NEW_ARRAY(arena, const Tree *, count) : NULL;
    bool computes = kind == TREE_INFIX || kind == TREE_PREFIX || kind == TREE_CHOICE, wide = false;
    for (int k = 0; k < count; k++) {
        part[k] = parts[k];
        wide |= computes && parts[k]->wide;
    }
    *e = (Tree){.kind = kind, .text = text, .prec = prec, .count = count, .part = part, .wide = wide};
    return e;
}

static const Tree *make_valued(Arena *arena, TreeKind kind, const char *text, int64_t value) {
    Tree *e = NEW(arena, Tree);
    int prec = text[0] == '-' ? PREC_UNARY : PREC_PRIMARY;
    *e = (Tree){.kind = kind, .text = text, .prec = prec, .value = value};
    return e;
}

const Tree *tree_number(Arena *arena, int64_t value) {
    return make_valued(arena, TREE_NUMBER, arena_printf(arena, "%lld", (long long)value), value);
}

const Tree *tree_literal(Arena *arena, const char *text) {
    char *end;
    int64_t value = strtoll(text, &end, 10);
    return make_valued(arena, TREE_NUMBER, text, *end ? 0 : value);
}

const Tree *tree_name(Arena *arena, const char *name) {
    return make_valued(arena, TREE_NAME, name, 0);
}

const Tree *tree_constant(Arena *arena, const char *name, int64_t value, bool *printed) {
    Tree *e = NEW(arena, Tree);
    *e = (Tree){.kind = TREE_NAME, .text = name, .prec = PREC_PRIMARY, .value = value, .printed = printed};
    return e;
}

const Tree *tree_member(Arena *arena, const char *of, const char *name) {
    return make_valued(arena, TREE_MEMBER, arena_printf(arena, "%s%s", of, name), 0);
}

const Tree *tree_prefix(Arena *arena, const char *op, const Tree *a) {
    return make(arena, TREE_PREFIX, op, PREC_UNARY, &a, 1);
}

const Tree *tree_as_wide(Arena *arena, const Tree *e) {
    Tree *wide = NEW(arena, Tree);
    *wide = *e;
    wide->wide = true;
    return wide;
}

const Tree *tree_cast(Arena *arena, const char *type, const Tree *a) {
    return make(arena, TREE_CAST, NULL, PREC_UNARY, (const Tree *[]){tree_name(arena, type), a}, 2);
}

const Tree *tree_name_for(Arena *arena, const char *name, const Tree *value) {
    const Tree *named = tree_name(arena, name);
    return value->wide ? tree_as_wide(arena, named) : named;
}

const Tree *tree_widened(Arena *arena, const Tree *a) {
    if (a->kind == TREE_INFIX && a->prec == PREC_PRODUCT)
        return tree_infix(arena, a->text, tree_widened(arena, a->part[0]), a->part[1]);
    return a->wide ? a : tree_as_wide(arena, tree_cast(arena, "int64_t", a));
}

const Tree *tree_infix(Arena *arena, const char *op, const Tree *a, const Tree *b) {
    const Infix *infix = find_infix(op, strlen(op));
    ENSURE(infix);
    return make(arena, TREE_INFIX, infix->text, infix->prec, (const Tree *[]){a, b}, 2);
}

const Tree *tree_choice(Arena *arena, const Tree *condition, const Tree *yes, const Tree *no) {
    if (tree_same(yes, no))
        return yes;
    return make(arena, TREE_CHOICE, NULL, PREC_COND, (const Tree *[]){condition, yes, no}, 3);
}

const Tree *tree_call(Arena *arena, const char *function, const Tree *const *arguments, int count) {
    return make(arena, TREE_CALL, function, PREC_PRIMARY, arguments, count);
}

const Tree *tree_element_at(Arena *arena, const Tree *of, const Tree *const *at, int count) {
    const Tree **parts = NEW_ARRAY(arena, const Tree *, count + 1);
    parts[0] = of;
    for (int k = 0; k < count; k++)
        parts[k + 1] = at[k];
    return make(arena, TREE_ELEMENT, NULL, PREC_PRIMARY, parts, count + 1);
}

const Tree *tree_element(Arena *arena, const Tree *of, const Tree *at) {
    return tree_element_at(arena, of, &at, 1);
}

const Tree *tree_fold(Arena *arena, const char *what, const Tree *term) {
    return make(arena, TREE_FOLD, what, PREC_PRIMARY, &term, 1);
}

const Tree *tree_plus(Arena *arena, const Tree *a, const Tree *b) {
    if (!a)
        return b;
    if (b->kind != TREE_INFIX || b->prec != PREC_SUM)
        return tree_infix(arena, "+", a, b);
    return tree_infix(arena, b->text, tree_plus(arena, a, b->part[0]), b->part[1]);
}

const Tree *tree_times(Arena *arena, const Tree *a, const Tree *b) {
    if (!a)
        return b;
    if (!tree_is_infix(b, "*"))
        return tree_infix(arena, "*", a, b);
    return tree_infix(arena, "*", tree_times(arena, a, b->part[0]), b->part[1]);
}

static bool is_whole_number(const Tree *e) {
    return tree_is_number(e, e->value);
}

const Tree *tree_shifted(Arena *arena, const Tree *a, int64_t by) {
    if (is_whole_number(a))
        return tree_number(arena, a->value + by);
    return by ? tree_infix(arena, by < 0 ? "-" : "+", a, tree_number(arena, by < 0 ? -by : by)) : a;
}

const Tree *tree_summed(Arena *arena, const Tree *e) {
    const Tree **parts = e->count ? NEW_ARRAY(arena, const Tree *, e->count) : NULL;
    bool changed = false;
    for (int k = 0; k < e->count; k++) {
        parts[k] = tree_summed(arena, e->part[k]);
        changed |= parts[k] != e->part[k];
    }
    if (e->kind == TREE_INFIX && e->prec == PREC_SUM && is_whole_number(parts[0]) && is_whole_number(parts[1]))
        return tree_shifted(arena, parts[0], *e->text == '-' ? -parts[1]->value : parts[1]->value);
    return changed ? tree_with_parts(arena, e, parts) : e;
}

const Tree *tree_with_parts(Arena *arena, const Tree *e, const Tree *const *parts) {
    if (e->kind == TREE_CHOICE)
        return tree_choice(arena, parts[0], parts[1], parts[2]);
    const Tree *made = e->count ? make(arena, e->kind, e->text, e->prec, parts, e->count) : e;
    return e->wide && !made->wide ? tree_as_wide(arena, made) : made;
}

/* ---- forms ---- */

#define OPERAND(k)                                                                                                     \
    &(const Tree) {                                                                                                    \
        .kind = TREE_OPERAND, .text = #k, .prec = PREC_PRIMARY                                                         \
    }
const Tree *const tree_operand[TREE_OPERANDS] = {OPERAND(0), OPERAND(1), OPERAND(2), OPERAND(3), OPERAND(4),
                                                 OPERAND(5), OPERAND(6), OPERAND(7), OPERAND(8), OPERAND(9)};

/* Forms are ours, in tables of operators and in code: one that does not parse is a fault of the compiler. */
typedef struct Reader {
    Arena *arena;
    const char *form, *at;
} Reader;

static const Tree *read_weaker(Reader *r, int least);

static bool takes(Reader *r, const char *text) {
    size_t length = strlen(text);
    if (strncmp(r->at, text, length) != 0)
        return false;
    r->at += length;
    return true;
}

static void expect(Reader *r, const char *text) {
    if (!takes(r, text))
        ICE("'%s' is expected at '%s' of the form '%s'", text, r->at, r->form);
}

/* The bytes up to here from `start` on. */
static const char *taken(const Reader *r, const char *start) {
    return arena_strndup(r->arena, start, (size_t)(r->at - start));
}

static bool is_word(char c) {
    return isalnum((unsigned char)c) || c == '_';
}

static const Tree *read_call(Reader *r, const char *function) {
    const Tree *arguments[TREE_OPERANDS];
    int count = 0;
    while (!takes(r, ")")) {
        if (count)
            expect(r, ", ");
        ENSURE(count < TREE_OPERANDS);
        arguments[count++] = read_weaker(r, PREC_COND);
    }
    return tree_call(r->arena, function, arguments, count);
}

/* A point, the sign of an exponent, in equations a power. */
static bool continues_number(const char *at) {
    return *at == '.' || *at == '^' || (*at == '-' && at[-1] == 'e');
}

/* "i", "0.5f", "1e-05", "fmax(", "$i0"; in equations "0.9^step" */
static const Tree *read_word(Reader *r) {
    const char *start = r->at;
    bool place = takes(r, "$"), number = isdigit((unsigned char)*r->at);
    while (is_word(*r->at) || (number && continues_number(r->at)))
        r->at++;
    if (r->at == start + place)
        ICE("nothing is read at '%s' of the form '%s'", r->at, r->form);
    const char *word = taken(r, start + place);
    if (place)
        return make(r->arena, TREE_OPERAND, word, PREC_PRIMARY, NULL, 0);
    if (number)
        return tree_literal(r->arena, word);
    return takes(r, "(") ? read_call(r, word) : tree_name(r->arena, word);
}

/* "($t)$0": a type is a place of its own, in parentheses with something behind them. */
static const Tree *read_parentheses(Reader *r) {
    const Tree *inner = read_weaker(r, PREC_COND);
    expect(r, ")");
    bool cast = inner->kind == TREE_OPERAND && (*r->at == '$' || *r->at == '(' || is_word(*r->at));
    if (!cast)
        return inner;
    return make(r->arena, TREE_CAST, NULL, PREC_UNARY, (const Tree *[]){inner, read_weaker(r, PREC_UNARY)}, 2);
}

static const Tree *read_unary(Reader *r) {
    if (takes(r, "("))
        return read_parentheses(r);
    if (takes(r, "-"))
        return tree_prefix(r->arena, "-", read_unary(r));
    if (takes(r, "!"))
        return tree_prefix(r->arena, "!", read_unary(r));
    return read_word(r);
}

/* The operator that stands here between spaces, if it binds at least so strongly; NULL: none. */
static const Infix *infix_here(const Reader *r, int least) {
    if (*r->at != ' ')
        return NULL;
    const Infix *infix = find_infix(r->at + 1, strcspn(r->at + 1, " "));
    return infix && infix->prec >= least ? infix : NULL;
}

/* Up to an operator that binds less than `least`; equal ones group to the left. */
static const Tree *read_weaker(Reader *r, int least) {
    const Tree *e = read_unary(r);
    for (const Infix *infix; least < PREC_UNARY && (infix = infix_here(r, least));) {
        r->at += strlen(infix->text) + 2;
        e = tree_infix(r->arena, infix->text, e, read_weaker(r, infix->prec + 1));
    }
    if (least > PREC_COND || !takes(r, " ? "))
        return e;
    const Tree *yes = read_weaker(r, PREC_COND);
    expect(r, " : ");
    return tree_choice(r->arena, e, yes, read_weaker(r, PREC_COND));
}

const Tree *tree_read(Arena *arena, const char *form) {
    Reader r = {arena, form, form};
    const Tree *e = read_weaker(&r, PREC_COND);
    expect(&r, "");
    if (*r.at)
        ICE("'%s' is left of the form '%s'", r.at, form);
    return e;
}

const Tree *tree_filled(Arena *arena, const Tree *form, TreeFill *of, void *context) {
    const Tree *filled = form->kind == TREE_OPERAND ? of(context, form) : NULL;
    if (filled || !form->count)
        return filled ? filled : form;
    const Tree **parts = NEW_ARRAY(arena, const Tree *, form->count);
    bool changed = false;
    for (int k = 0; k < form->count; k++) {
        parts[k] = tree_filled(arena, form->part[k], of, context);
        changed |= parts[k] != form->part[k];
    }
    return changed ? tree_with_parts(arena, form, parts) : form;
}

typedef struct Operands {
    const Tree *const *at;
    int count;
} Operands;

static const Tree *operand_for(void *context, const Tree *place) {
    const Operands *operands = context;
    if (!isdigit((unsigned char)*place->text))
        return NULL;
    ENSURE(*place->text - '0' < operands->count);
    return operands->at[*place->text - '0'];
}

const Tree *tree_with(Arena *arena, const Tree *form, const Tree *const *operands, int count) {
    Operands all = {operands, count};
    return tree_filled(arena, form, operand_for, &all);
}

const Tree *tree_form(Arena *arena, const char *form, const Tree *const *operands, int count) {
    return tree_with(arena, tree_read(arena, form), operands, count);
}

/* ---- asking ---- */

static bool same_text(const char *a, const char *b) {
    return a == b || (a && b && strcmp(a, b) == 0);
}

bool tree_same(const Tree *a, const Tree *b) {
    if (a == b)
        return true;
    if (!a || !b || a->kind != b->kind || a->count != b->count || !same_text(a->text, b->text))
        return false;
    for (int k = 0; k < a->count; k++)
        if (!tree_same(a->part[k], b->part[k]))
            return false;
    return true;
}

bool tree_is_number(const Tree *e, int64_t value) {
    return e->kind == TREE_NUMBER && e->value == value && (value || same_text(e->text, "0"));
}

bool tree_is_name(const Tree *e, const char *name) {
    return e->kind == TREE_NAME && strcmp(e->text, name) == 0;
}

bool tree_is_infix(const Tree *e, const char *op) {
    return e->kind == TREE_INFIX && strcmp(e->text, op) == 0;
}

bool tree_mentions(const Tree *e, const char *name) {
    if (tree_is_name(e, name))
        return true;
    for (int k = 0; k < e->count; k++)
        if (tree_mentions(e->part[k], name))
            return true;
    return false;
}

bool tree_has_kind(const Tree *e, TreeKind kind) {
    bool has = e->kind == kind;
    for (int k = 0; k < e->count && !has; k++)
        has = tree_has_kind(e->part[k], kind);
    return has;
}

bool tree_has_infix(const Tree *e, const char *op) {
    bool has = tree_is_infix(e, op);
    for (int k = 0; k < e->count && !has; k++)
        has = tree_has_infix(e->part[k], op);
    return has;
}

int tree_nodes(const Tree *e) {
    int nodes = 1;
    for (int k = 0; k < e->count; k++)
        nodes += tree_nodes(e->part[k]);
    return nodes;
}

/* ---- printing ---- */

typedef struct Printer {
    Text text;
    TreePrint *print; /* NULL: nobody has a way of his own */
    void *context;
} Printer;

static void print(Printer *out, const Tree *e, int least);

static void print_list(Printer *out, const Tree *const *parts, int count) {
    for (int k = 0; k < count; k++) {
        text_puts(&out->text, k ? ", " : "");
        print(out, parts[k], PREC_COND);
    }
}

/* How strongly operand k has to bind. C groups from the left, so on the right something stronger is needed: then of conditions on
 * the left too, as in (a && b) && (c && d). Compilers warn of a || b && c. */
static int place_asks(const Tree *infix, int k) {
    int own = infix->part[k]->prec, right = infix->part[1]->prec, prec = infix->prec;
    if (prec == PREC_OR && own == PREC_AND)
        return PREC_EQUAL;
    bool pairs = prec <= PREC_AND && right == prec;
    return prec + (k == 1 || pairs);
}

static void print_infix(Printer *out, const Tree *e) {
    print(out, e->part[0], place_asks(e, 0));
    text_printf(&out->text, " %s ", e->text);
    print(out, e->part[1], place_asks(e, 1));
}

static void print_choice(Printer *out, const Tree *e) {
    print(out, e->part[0], PREC_OR);
    text_puts(&out->text, " ? ");
    print(out, e->part[1], PREC_OR);
    text_puts(&out->text, " : ");
    print(out, e->part[2], PREC_COND);
}

/* "--" is another operator. */
static bool begins_with_minus(const Tree *e) {
    return (e->kind == TREE_PREFIX || e->kind == TREE_NUMBER) && e->text[0] == '-';
}

static void print_plain(Printer *out, const Tree *e) {
    if (e->printed)
        *e->printed = true;
    switch (e->kind) {
    case TREE_NUMBER:
    case TREE_NAME:
    case TREE_MEMBER: text_puts(&out->text, e->text); break;
    case TREE_OPERAND: text_printf(&out->text, "$%s", e->text); break;
    case TREE_PREFIX:
        text_puts(&out->text, e->text);
        print(out, e->part[0], begins_with_minus(e->part[0]) ? PREC_PRIMARY : PREC_UNARY);
        break;
    case TREE_CAST:
        text_putc(&out->text, '(');
        print(out, e->part[0], PREC_COMMA);
        text_putc(&out->text, ')');
        print(out, e->part[1], PREC_UNARY);
        break;
    case TREE_INFIX: print_infix(out, e); break;
    case TREE_CHOICE: print_choice(out, e); break;
    case TREE_CALL:
        text_printf(&out->text, "%s(", e->text);
        print_list(out, e->part, e->count);
        text_putc(&out->text, ')');
        break;
    case TREE_ELEMENT:
        print(out, e->part[0], PREC_PRIMARY);
        text_putc(&out->text, '[');
        print_list(out, e->part + 1, e->count - 1);
        text_putc(&out->text, ']');
        break;
    case TREE_FOLD:
        text_printf(&out->text, "(%s of ", e->text);
        print(out, e->part[0], PREC_PRODUCT);
        text_putc(&out->text, ')');
        break;
    }
}

static void print(Printer *out, const Tree *e, int least) {
    bool parentheses = e->prec < least;
    if (out->print && out->print(out->context, &out->text, e, parentheses))
        return;
    if (parentheses)
        text_putc(&out->text, '(');
    print_plain(out, e);
    if (parentheses)
        text_putc(&out->text, ')');
}

const char *tree_text_by(Arena *arena, const Tree *e, TreePrint *print_part, void *context) {
    Printer out = {TEXT(arena), print_part, context};
    print(&out, e, PREC_COMMA);
    return text_string(&out.text);
}

const char *tree_text_at(Arena *arena, const Tree *e, int least) {
    Printer out = {.text = TEXT(arena)};
    print(&out, e, least);
    return text_string(&out.text);
}

const char *tree_text(Arena *arena, const Tree *e) {
    return tree_text_at(arena, e, PREC_COMMA);
}
