/* The text: each value is an expression that waits to be part of another, or a name. What is used once and short goes into the
 * expression that uses it; the rest becomes statements, in the order of need. */
#include "import/importer.h"

#include <math.h>

enum { LONGEST_PART = 60, DEEPEST_PART = 2, MOST_LITERAL = 64, MOST_WHOLE_LITERAL = 1024 };

/* ---- numbers ---- */

static const double LARGEST = 3.4028234663852886e38;

const char *number_text(Importer *im, double number) {
    Text text = TEXT(im->arena);
    if (isnan(number))
        refuse(im, "a constant is no number (NaN), which the language cannot write");
    if (isinf(number))
        warn_later(im, "a constant is infinite; the text has %s3.4028235e+38 instead, the largest number of 32 bits",
                   number < 0 ? "-" : "");
    text_number(&text, isinf(number) ? copysign(LARGEST, number) : number);
    return text_string(&text);
}

static const char *signed_text(Importer *im, double number, Strength strength) {
    const char *text = number_text(im, number);
    return *text == '-' && strength > SUM ? arena_printf(im->arena, "(%s)", text) : text;
}

/* As a literal has it. */
static double written_number(Importer *im, const Tensor *tensor, int64_t i) {
    const bool whole = tensor->element != REAL;
    if (whole && (tensor->whole[i] > INT32_MAX || tensor->whole[i] < -INT32_MAX))
        refuse(im, "a constant is %lld; whole numbers of the text have 32 bits", (long long)tensor->whole[i]);
    return decimal(tensor_number(tensor, i));
}

bool is_number(const Value *value, double *number) {
    const Tensor *known = value ? value->constant : NULL;
    if (!known || known->count != 1 || known->trained || known->element == CONDITION ||
        (known->batches && known->batches[0]))
        return false;
    *number = decimal(tensor_number(known, 0));
    return true;
}

static void add_level(Importer *im, Text *text, const Tensor *tensor, const Extents *extents, int axis, int64_t *next) {
    text_puts(text, "[");
    for (int64_t i = 0; i < extents->size[axis]; i++) {
        text_puts(text, i ? ", " : "");
        if (axis + 1 < extents->rank)
            add_level(im, text, tensor, extents, axis + 1, next);
        else
            text_puts(text, number_text(im, written_number(im, tensor, (*next)++)));
    }
    text_puts(text, "]");
}

/* 0, 1, 2, ... */
static bool counts_up(const Tensor *tensor) {
    for (int64_t i = 0; tensor->element == WHOLE && i < tensor->count; i++)
        if (tensor->whole[i] != i)
            return false;
    return tensor->element == WHOLE && tensor->count > 4;
}

static const char *literal(Importer *im, const Tensor *tensor, const Extents *extents) {
    Text text = TEXT(im->arena);
    int64_t next = 0;
    if (counts_up(tensor)) {
        const char *count = arena_printf(im->arena, "iota(%lld)", (long long)tensor->count);
        return extents->rank == 1 ? count : arena_printf(im->arena, "reshape(%s, %s)", count, sizes_text(im, extents));
    }
    add_level(im, &text, tensor, extents, 0, &next);
    return text_string(&text);
}

static void check_symbols(Importer *im, const Tensor *tensor) {
    for (int64_t i = 0; tensor->batches && i < tensor->count; i++)
        if (tensor->batches[i])
            refuse(im, "how many examples a batch has is computed with: the text speaks of one example");
}

static const char *number_or_list(Importer *im, const Value *value, const Extents *extents, Strength strength) {
    const Tensor *tensor = value->constant;
    const bool whole = tensor->element != REAL;
    check_symbols(im, tensor);
    if (tensor->count == 0)
        refuse(im, "'%s' has no elements: %s", shown(im, value->name), sizes_text(im, &tensor->extents));
    if (!tensor->trained && extents->rank == 0)
        return signed_text(im, written_number(im, tensor, 0), strength);
    if (!tensor->trained && tensor->count <= (whole ? MOST_WHOLE_LITERAL : MOST_LITERAL))
        return literal(im, tensor, extents);
    return weight_statement(im, tensor, extents, value->name);
}

/* A list of numbers becomes conditions by a comparison. */
static const char *constant_text(Importer *im, const Value *value, const Extents *extents, Strength strength) {
    const bool condition = value->constant->element == CONDITION;
    const char *text = number_or_list(im, value, extents, condition ? SUM : strength);
    if (condition && extents->rank == 0)
        return value->constant->whole[0] ? "true" : "false";
    return !condition ? text : arena_printf(im->arena, strength > COMPARED ? "(%s != 0)" : "%s != 0", text);
}

/* ---- statements ---- */

void state(Importer *im, const char *names, const char *expression) {
    const Statement statement = {.names = names, .before = expression, .node = -1};
    VEC_PUSH(im->arena, &im->statements, statement);
}

const char *statement_text(Importer *im, const Statement *s) {
    if (!s->call)
        return s->before;
    const char *name = strcmp(s->path, s->names) == 0 ? "" : arena_printf(im->arena, ", name = \"%s\"", s->path);
    return arena_printf(im->arena, "%s%s%s)%s", s->before, s->call, name, s->after);
}

static const char *maker_word(Importer *im, const Value *value) {
    char *word = arena_strdup(im->arena, value->maker ? value->maker->proto->op_type : "x");
    for (char *c = word; *c; c++)
        *c |= *c >= 'A' && *c <= 'Z' ? 32 : 0;
    return word;
}

const char *named(Importer *im, Value *value) {
    if (value->stated)
        return value->expression.before;
    Expression *e = &value->expression;
    const char *name = e->layer ? layer_identifier(im, e->layer) : NULL;
    if (!name)
        name = identifier(im, value->name, maker_word(im, value));
    Statement statement = {
        .names = name, .before = e->before, .after = e->after, .node = value->maker ? value->maker->number : -1};
    if (e->layer)
        layer_take(im, e->layer, &statement);
    VEC_PUSH(im->arena, &im->statements, statement);
    *e = (Expression){.before = name, .after = "", .strength = ATOM, .extents = e->extents};
    value->stated = true;
    return name;
}

/* Its expression may go into another one. */
static bool may_join(const Importer *im, const Value *value) {
    const Expression *e = &value->expression;
    const bool kept = value->maker && value->maker->number == im->keep;
    return !value->stated && !kept && value->uses == 1 && !value->output && e->depth < DEEPEST_PART &&
           strlen(e->before) + (e->layer ? strlen(e->layer->call) : 0) <= LONGEST_PART;
}

/* In the shape that it is computed in. */
static const char *raw_text(Importer *im, Value *value, Strength strength) {
    const Expression *e = &value->expression;
    if (e->layer || !may_join(im, value))
        return named(im, value);
    return e->strength < strength ? arena_printf(im->arena, "(%s)", e->before) : e->before;
}

static const char *reshaped(Importer *im, const char *text, const Extents *extents) {
    return extents->rank == 1 ? arena_printf(im->arena, "flatten(%s)", text)
                              : arena_printf(im->arena, "reshape(%s, %s)", text, sizes_text(im, extents));
}

const char *operand_as(Importer *im, Value *value, const Extents *extents, Strength strength) {
    if (value->constant)
        return constant_text(im, value, extents, strength);
    const bool same = extents_same(&value->expression.extents, extents);
    const char *text = raw_text(im, value, same ? strength : OR);
    return same ? text : reshaped(im, text, extents);
}

const char *operand(Importer *im, Value *value, Strength strength) {
    const Extents extents = text_extents(&value->shape);
    return operand_as(im, value, &extents, strength);
}

const char *operand_beside(Importer *im, Value *value, const Shape *result, Strength strength, Extents *extents) {
    const int before = result->all.rank - value->shape.all.rank;
    double number;
    *extents = (Extents){0};
    if (is_number(value, &number))
        return signed_text(im, written_number(im, value->constant, 0), strength);
    for (int i = 0; i < value->shape.all.rank; i++)
        if (i + before >= 0 && has_text_axis(result, i + before))
            extents->size[extents->rank++] = value->shape.all.size[i];
    return operand_as(im, value, extents, strength);
}

/* ---- expressions of one operand ---- */

static Expression wrapped(Importer *im, Value *value, const char *before, const char *after) {
    Expression e = value->expression;
    if (!may_join(im, value)) {
        named(im, value);
        e = value->expression;
    }
    e.before = arena_printf(im->arena, e.layer ? "%s%s" : "%s%s%s", before, e.before, after);
    e.after = e.layer ? arena_printf(im->arena, "%s%s", e.after, after) : "";
    e.strength = ATOM;
    e.depth++;
    return e;
}

Expression around_elements(Importer *im, Value *value, const char *before, const char *after) {
    if (!value->constant)
        return wrapped(im, value, before, after);
    Expression e = text_expression(im, ATOM, "%s%s%s", before, operand(im, value, OR), after);
    e.extents = text_extents(&value->shape);
    return e;
}

Expression around(Importer *im, Value *value, const char *before, const char *after) {
    const Extents extents = text_extents(&value->shape);
    if (!value->constant && extents_same(&value->expression.extents, &extents))
        return wrapped(im, value, before, after);
    return text_expression(im, ATOM, "%s%s%s", before, operand(im, value, OR), after);
}

Expression text_expression(Importer *im, Strength strength, const char *format, ...) {
    va_list args;
    va_start(args, format);
    Expression e = {.before = arena_vprintf(im->arena, format, args), .after = "", .strength = strength, .depth = 1};
    va_end(args);
    return e;
}

/* ---- results ---- */

void give_as(Importer *im, Node *node, int at, Element element, const Shape *shape, Expression expression) {
    if (at >= node->outputs || !node->output[at])
        return;
    Value *value = node->output[at];
    if (extents_count(im, &shape->all) == 0)
        refuse(im, "its result has no elements: %s", shape_text(im, shape));
    value->element = element;
    value->shape = *shape;
    value->expression = expression;
    value->known = true;
}

void give(Importer *im, Node *node, int at, Element element, const Shape *shape, Expression expression) {
    expression.extents = text_extents(shape);
    give_as(im, node, at, element, shape, expression);
}

void give_constant(Importer *im, Node *node, const Tensor *tensor) {
    Value *value = node->output[0];
    (void)im;
    value->element = tensor->element;
    value->shape = plain_shape(tensor->extents.rank, tensor->extents.size);
    value->constant = tensor;
    value->known = true;
}

void give_view(Importer *im, Node *node, Value *value, const Shape *shape) {
    Value *output = node->output[0];
    if (value->constant) {
        output->constant = tensor_as(im, value->constant, &shape->all);
        output->shape = *shape;
        output->element = value->element;
        output->known = true;
        return;
    }
    if (value->uses > 1 || value->output)
        named(im, value);
    give_as(im, node, 0, value->element, shape, value->expression);
    output->stated = value->stated;
}

void name_output(Importer *im, Value *value) {
    const Extents extents = text_extents(&value->shape);
    if (!value->constant && extents_same(&value->expression.extents, &extents)) {
        named(im, value);
        return;
    }
    const char *text = operand_as(im, value, &extents, OR), *name = identifier(im, value->name, maker_word(im, value));
    state(im, name, text);
    value->expression = (Expression){.before = name, .after = "", .strength = ATOM, .extents = extents};
    value->stated = true;
}
