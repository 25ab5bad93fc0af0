/* What works element by element. */
#include "import/rules.h"

#include <math.h>

/* ---- formulas ---- */

/* "{alpha=0.2}": the attribute, or what it is where the node does not give it. Returns what is behind it. */
static const char *add_attribute(Importer *im, Node *node, Text *text, const char *at) {
    const char *equals = strchr(at, '='), *end = strchr(at, '}');
    const char *name = arena_strndup(im->arena, at + 1, (size_t)(equals - at - 1));
    const double number = real_attribute(im, node, name, strtod(equals + 1, NULL));
    text_printf(text, number < 0 ? "(%s)" : "%s", number_text(im, number));
    return end + 1;
}

/* The formula with the operand in the place of each $. */
static const char *formula_text(Importer *im, Node *node, const char *formula, const char *operand) {
    Text text = TEXT(im->arena);
    for (const char *at = formula; *at;) {
        if (*at == '{') {
            at = add_attribute(im, node, &text, at);
        } else if (*at == '$') {
            text_puts(&text, operand);
            at++;
        } else {
            text_putc(&text, *at++);
        }
    }
    return text_string(&text);
}

static bool says_twice(const char *formula) {
    const char *first = strchr(formula, '$');
    return strchr(first + 1, '$') != NULL;
}

/* "relu($)": a call, of which the operand is all. */
static bool is_call(const char *formula) {
    const size_t name = strspn(formula, "abcdefghijklmnopqrstuvwxyz0123456789_");
    return name && strcmp(formula + name, "($)") == 0;
}

static void give_map(Importer *im, Node *node, Element element, const char *formula) {
    Value *x = node->input[0];
    if (is_call(formula)) {
        const char *before = arena_strndup(im->arena, formula, strlen(formula) - 2);
        give_as(im, node, 0, element, &x->shape, around_elements(im, x, before, ")"));
        return;
    }
    const char *operand_text = x->constant || !says_twice(formula) ? operand(im, x, ATOM) : NULL;
    if (operand_text) {
        give(im, node, 0, element, &x->shape,
             text_expression(im, OR, "%s", formula_text(im, node, formula, operand_text)));
        return;
    }
    Expression e = text_expression(im, OR, "%s", formula_text(im, node, formula, named(im, x)));
    e.extents = x->expression.extents;
    give_as(im, node, 0, element, &x->shape, e);
}

void map_rule(Importer *im, Node *node) {
    give_map(im, node, node->input[0]->element, node->operator->text);
}

void test_rule(Importer *im, Node *node) {
    give_map(im, node, CONDITION, node->operator->text);
}

void identity_rule(Importer *im, Node *node) {
    Value *x = node->input[0], *y = node->output[0];
    give_view(im, node, x, &x->shape);
    /* Exporters keep weights that are alike once, and give each its name so. */
    if (y->constant && x->constant->trained && *y->name != '/') {
        Tensor *renamed = tensor_as(im, x->constant, &x->constant->extents);
        renamed->name = y->name;
        renamed->uses = y->uses;
        y->constant = renamed;
    }
}

void gelu_rule(Importer *im, Node *node) {
    const char *how = word_attribute(im, node, "approximate", "none");
    if (strcmp(how, "none") != 0)
        only_word(im, node, "approximate", "tanh");
    give(im, node, 0, REAL, &node->input[0]->shape,
         around(im, node->input[0], "gelu(", strcmp(how, "none") == 0 ? ", exact = true)" : ")"));
}

/* ---- of two operands and more ---- */

typedef struct Infix {
    const char *sign;
    Strength own, left, right;
} Infix;

static const Infix *infix(const char *sign) {
    static const Infix signs[] = {{"+", SUM, SUM, PRODUCT},
                                  {"-", SUM, SUM, PRODUCT},
                                  {"*", PRODUCT, PRODUCT, POWER},
                                  {"/", PRODUCT, PRODUCT, POWER},
                                  {"^", POWER, ATOM, ATOM},
                                  {"==", COMPARED, SUM, SUM},
                                  {"!=", COMPARED, SUM, SUM},
                                  {"<", COMPARED, SUM, SUM},
                                  {"<=", COMPARED, SUM, SUM},
                                  {">", COMPARED, SUM, SUM},
                                  {">=", COMPARED, SUM, SUM},
                                  {"and", AND, AND, COMPARED},
                                  {"or", OR, OR, AND}};
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++)
        if (strcmp(signs[i].sign, sign) == 0)
            return &signs[i];
    return NULL;
}

/* What the language makes of operands of these shapes. */
static Extents stretched(const Extents *a, const Extents *b) {
    Extents result = {.rank = a->rank > b->rank ? a->rank : b->rank};
    for (int back = 0; back < result.rank; back++) {
        const int64_t one = back < a->rank ? a->size[a->rank - 1 - back] : 1,
                      other = back < b->rank ? b->size[b->rank - 1 - back] : 1;
        result.size[result.rank - 1 - back] = one == 1 ? other : one;
    }
    return result;
}

/* The text of `a sign b`, or of sign(a, b). */
static Expression pair_expression(Importer *im, const char *sign, const char *a, const char *b) {
    const Infix *between = infix(sign);
    const char *space = strcmp(sign, "^") == 0 ? "" : " ";
    return between ? text_expression(im, between->own, "%s%s%s%s%s", a, space, sign, space, b)
                   : text_expression(im, ATOM, "%s(%s, %s)", sign, a, b);
}

static void give_pair(Importer *im, Node *node, Element element, const char *sign, Value *a, Value *b) {
    const Infix *between = infix(sign);
    const Shape shape = broadcast(im, &a->shape, &b->shape);
    Extents one, other;
    const char *left = operand_beside(im, a, &shape, between ? between->left : OR, &one);
    const char *right = operand_beside(im, b, &shape, between ? between->right : OR, &other);
    Expression e = pair_expression(im, sign, left, right);
    e.extents = stretched(&one, &other);
    give_as(im, node, 0, element, &shape, e);
}

static bool is_computed_whole(const Value *value) {
    return value->element != REAL && !value->constant;
}

static void refuse_wholes(Importer *im, const Node *node) {
    for (int i = 0; i < node->inputs; i++)
        if (is_computed_whole(node->input[i]))
            refuse(im, "of whole numbers that are computed when the model runs mtc has no such operator");
}

/* A number for each output: along the last axis of a matrix's product, of filters along the axis of channels. */
static bool is_by_output(const Layer *layer, const Tensor *tensor, int product_rank) {
    const int rank = tensor->extents.rank, axis = strncmp(layer->call, "linear(", 7) == 0 ? product_rank - 1 : 1;
    const int place = axis - (product_rank - rank);
    return tensor->count == layer->outputs && rank <= product_rank && place >= 0 &&
           tensor->extents.size[place] == layer->outputs;
}

/* The bias of a layer is added to what it multiplies. */
static bool takes_bias(Importer *im, Value *product, const Value *bias) {
    Expression *e = &product->expression;
    const Tensor *tensor = bias->constant;
    if (!tensor || tensor->element != REAL || product->constant || !e->layer || product->uses > 1 || product->output ||
        *e->before || *e->after || !e->layer->may_bias || e->layer->has_bias ||
        !is_by_output(e->layer, tensor, product->shape.all.rank))
        return false;
    const Extents flat = {.rank = 1, .size = {e->layer->outputs}};
    layer_add(e->layer, "bias", tensor_as(im, tensor, &flat));
    return e->layer->has_bias = true;
}

void add_rule(Importer *im, Node *node) {
    for (int i = 0; i < 2; i++) {
        Value *product = node->input[i];
        if (takes_bias(im, product, node->input[1 - i])) {
            give_as(im, node, 0, REAL, &product->shape, product->expression);
            return;
        }
    }
    pair_rule(im, node);
}

void pair_rule(Importer *im, Node *node) {
    const char *sign = node->operator->text;
    const Element element = node->input[0]->element != REAL ? node->input[0]->element : node->input[1]->element;
    if (strcmp(sign, "/") == 0)
        refuse_wholes(im, node);
    give_pair(im, node, element, sign, node->input[0], node->input[1]);
}

void compare_rule(Importer *im, Node *node) {
    give_pair(im, node, CONDITION, node->operator->text, node->input[0], node->input[1]);
}

/* "maximum" of any number of operands. */
void several_rule(Importer *im, Node *node) {
    Value chain = *node->input[0];
    if (node->inputs == 1) {
        give_view(im, node, node->input[0], &node->input[0]->shape);
        return;
    }
    for (int i = 1; i < node->inputs; i++) {
        Value *so_far = i == 1 ? node->input[0] : &chain;
        give_pair(im, node, node->input[0]->element, node->operator->text, so_far, node->input[i]);
        chain = *node->output[0];
        chain.uses = 1;
        chain.output = false;
        if (i + 1 < node->inputs && chain.expression.depth >= 1)
            chain.expression.depth = 0;
    }
}

void mean_rule(Importer *im, Node *node) {
    several_rule(im, node);
    if (node->inputs < 2)
        return;
    Expression *e = &node->output[0]->expression;
    e->before = arena_printf(im->arena, "(%s) / %d", e->before, node->inputs);
    e->strength = PRODUCT;
}

void where_rule(Importer *im, Node *node) {
    Value *condition = node->input[0], *a = node->input[1], *b = node->input[2];
    const Shape beside = broadcast(im, &a->shape, &b->shape), shape = broadcast(im, &condition->shape, &beside);
    Extents extents[3];
    const char *text[3];
    for (int i = 0; i < 3; i++)
        text[i] = operand_beside(im, node->input[i], &shape, OR, &extents[i]);
    Expression e = text_expression(im, ATOM, "where(%s, %s, %s)", text[0], text[1], text[2]);
    e.extents = stretched(&extents[1], &extents[2]);
    e.extents = stretched(&extents[0], &e.extents);
    give_as(im, node, 0, a->element == REAL ? REAL : b->element, &shape, e);
}

/* x where it is above 0, else slope x. */
void prelu_rule(Importer *im, Node *node) {
    Value *x = node->input[0];
    const Shape shape = broadcast(im, &x->shape, &node->input[1]->shape);
    Extents one, other;
    named(im, x);
    const char *slope = operand_beside(im, node->input[1], &shape, PRODUCT, &other);
    const char *text = operand_beside(im, x, &shape, ATOM, &one);
    Expression e = text_expression(im, ATOM, "where(%s > 0, %s, %s * %s)", text, text, slope, text);
    e.extents = stretched(&one, &other);
    give_as(im, node, 0, REAL, &shape, e);
}

/* The remainder with the sign of the first operand, as C's fmod has it. */
void mod_rule(Importer *im, Node *node) {
    Value *a = node->input[0], *b = node->input[1];
    Extents one, other;
    refuse_wholes(im, node);
    only_int(im, node, "fmod", 1);
    const Shape shape = broadcast(im, &a->shape, &b->shape);
    if (!a->constant)
        named(im, a);
    if (!b->constant)
        named(im, b);
    const char *x = operand_beside(im, a, &shape, ATOM, &one), *y = operand_beside(im, b, &shape, ATOM, &other);
    Expression e = text_expression(im, SUM, "%s - %s * (sign(%s / %s) * floor(abs(%s / %s)))", x, y, x, y, x, y);
    e.extents = stretched(&one, &other);
    give_as(im, node, 0, REAL, &shape, e);
}

/* ---- bounds ---- */

/* Infinity of the sign `none` bounds nothing. */
static const char *bound_text(Importer *im, Node *node, int input, const char *name, const char *called, double none) {
    Value *value = input < node->inputs ? node->input[input] : NULL;
    double number;
    const bool known = is_number(value, &number);
    if (value && !known && value->shape.all.rank > 0)
        refuse(im, "its input %d, %s, is not one number", input, called);
    if (known && number == none)
        return "";
    if (value)
        return arena_printf(im->arena, ", %s = %s", called, operand(im, value, OR));
    if (!attribute(im, node, name))
        return "";
    const double bound = real_attribute(im, node, name, 0);
    return bound - bound == 0 && (bound > 3.4e38 || bound < -3.4e38)
               ? ""
               : arena_printf(im->arena, ", %s = %s", called, number_text(im, bound));
}

/* An attribute, as old versions have it, or an input. False: it is not known. */
static bool known_bound(Importer *im, Node *node, int input, const char *name, double *bound) {
    if (input < node->inputs && node->input[input])
        return is_number(node->input[input], bound);
    *bound = real_attribute(im, node, name, 0);
    return attribute(im, node, name) != NULL;
}

/* Bounds that are the wrong way round leave the upper one, whatever the operand: Min(max, Max(min, x)). */
static bool bounds_cross(Importer *im, Node *node) {
    double low, high;
    return known_bound(im, node, 1, "min", &low) && known_bound(im, node, 2, "max", &high) && low > high;
}

void clip_rule(Importer *im, Node *node) {
    const bool cross = bounds_cross(im, node);
    const char *low = cross ? bound_text(im, node, 2, "max", "low", INFINITY)
                            : bound_text(im, node, 1, "min", "low", -INFINITY),
               *high = bound_text(im, node, 2, "max", "high", INFINITY);
    if (!*low && !*high) {
        give_view(im, node, node->input[0], &node->input[0]->shape);
        return;
    }
    give_as(im, node, 0, node->input[0]->element, &node->input[0]->shape,
            around_elements(im, node->input[0], "clamp(", arena_printf(im->arena, "%s%s)", low, high)));
}

/* ---- types ---- */

void cast_rule(Importer *im, Node *node) {
    Value *x = node->input[0];
    const Element to = element_of(im, (int)int_attribute(im, node, "to", 0), "attribute to");
    if (to == CONDITION && x->element != CONDITION)
        give_map(im, node, CONDITION, "$ != 0");
    else if (to == WHOLE && x->element == REAL)
        give_map(im, node, WHOLE, "sign($) * floor(abs($))");
    else
        give_view(im, node, x, &x->shape);
    node->output[0]->element = to;
}

/* In training it drops; in evaluation, and in the file as a rule, it is its operand. */
void dropout_rule(Importer *im, Node *node) {
    Value *x = node->input[0];
    const double p = node->inputs > 1 && node->input[1] ? known_number(im, node, 1, 0.5, "the ratio")
                                                        : real_attribute(im, node, "ratio", 0.5);
    if (p < 0 || p >= 1)
        refuse(im, "its ratio is %g, which is not from 0 to below 1", p);
    if (x->constant || p == 0) {
        give_view(im, node, x, &x->shape);
        return;
    }
    give_as(im, node, 0, REAL, &x->shape,
            around_elements(im, x, "dropout(", arena_printf(im->arena, ", %s)", number_text(im, p))));
}
