#include "emit/text/lanes.h"

#include "emit/text/index.h"

#include <ctype.h>
#include <stdlib.h>

/* An expression as a function of the lane: first + step * lane. */
typedef struct Linear {
    int64_t step;
    int64_t multiple; /* of this is the first */
    int64_t value;    /* of a number; else 0 */
    bool known;       /* false: no such function */
} Linear;

static const Linear unknown = {0};

/* Of a size, or of what else all lanes have: 0. */
static Linear same(int64_t value) {
    return (Linear){.multiple = value > 0 ? value : 1, .value = value, .known = true};
}

static Linear number_of(int64_t value) {
    return (Linear){.multiple = value, .value = value, .known = true};
}

static Linear linear_of(const Lanes *lanes, const char *text, size_t length);

/* The last operator of the given strength outside of all parentheses, behind its space; NULL: none. */
static const char *last_operator(const char *text, size_t length, int strength) {
    const char *found = NULL;
    int depth = 0;
    for (const char *at = text; at < text + length; at++) {
        depth += nesting(*at);
        if (depth == 0 && *at == ' ' && infix_at(at + 1) == strength)
            found = at + 1;
    }
    return found;
}

/* A quotient of neighbours, and their remainder, where no multiple of the divisor lies between them. */
static Linear divided(const Lanes *lanes, char op, Linear a, int64_t by) {
    bool together = a.step == 1 && a.multiple % lanes->count == 0 && by > 0 && by % lanes->count == 0;
    if (!together)
        return unknown;
    if (op == '%')
        return (Linear){.step = 1, .multiple = common_divisor(a.multiple, by), .known = true};
    return (Linear){.step = 0, .multiple = a.multiple % by ? 1 : a.multiple / by, .known = true};
}

static Linear combined(const Lanes *lanes, char op, Linear a, Linear b) {
    if (!a.known || !b.known)
        return unknown;
    if (op == '+' || op == '-')
        return (Linear){.step = op == '+' ? a.step + b.step : a.step - b.step,
                        .multiple = common_divisor(a.multiple, b.multiple),
                        .known = true};
    if (op == '*' && (!a.step || !b.step))
        return (Linear){.step = a.step * b.value + b.step * a.value,
                        .multiple = a.multiple * b.multiple,
                        .value = a.value * b.value,
                        .known = (!a.step || b.value) && (!b.step || a.value)};
    if (!a.step && !b.step)
        return (Linear){.multiple = op == '%' ? common_divisor(a.multiple, b.multiple) : 1, .known = true};
    return strchr("/%", op) ? divided(lanes, op, a, b.value) : unknown;
}

/* A call or an element: the same in all lanes if what it depends on is. */
static Linear called(const Lanes *lanes, const char *text, size_t length) {
    int depth = 0;
    bool same_in_all = true;
    const char *start = text;
    for (const char *at = text; at < text + length; at++) {
        bool opens = strchr("([{", *at), closes = strchr(")]}", *at);
        if (opens && depth++ == 0)
            start = at + 1;
        if ((depth == 1 && *at == ',') || (closes && --depth == 0)) {
            Linear argument = linear_of(lanes, start, (size_t)(at - start));
            same_in_all &= argument.known && argument.step == 0;
            start = at + 2;
        }
    }
    return same_in_all ? same(0) : unknown;
}

/* v is the number of a lane, in what is a lane's already. */
static Linear name_of(const Lanes *lanes, const char *text, size_t length) {
    if (length == 1 && *text == 'v')
        return unknown;
    if (strlen(lanes->variable) == length && strncmp(text, lanes->variable, length) == 0)
        return (Linear){.step = 1, .multiple = lanes->count, .known = true};
    return same(sizes_value(lanes->sizes, text, length));
}

/* The bracket that closes the one at text[0], if it is the last character. */
static bool is_enclosed(const char *text, size_t length) {
    int depth = 0;
    for (size_t k = 0; k < length; k++) {
        depth += text[k] == '(' ? 1 : text[k] == ')' ? -1 : 0;
        if (depth == 0)
            return text[0] == '(' && k + 1 == length;
    }
    return false;
}

static Linear primary(const Lanes *lanes, const char *text, size_t length) {
    static const char wide[] = "(int64_t)";
    if (is_enclosed(text, length))
        return linear_of(lanes, text + 1, length - 2);
    if (strncmp(text, wide, sizeof wide - 1) == 0)
        return primary(lanes, text + sizeof wide - 1, length - (sizeof wide - 1));
    if (isdigit((unsigned char)*text))
        return number_of(strtoll(text, NULL, 10));
    if (*text == '-' || *text == '!')
        return combined(lanes, '<', linear_of(lanes, text + 1, length - 1), same(0));
    return memchr(text, '(', length) || memchr(text, '[', length) ? called(lanes, text, length)
                                                                  : name_of(lanes, text, length);
}

static Linear linear_of(const Lanes *lanes, const char *text, size_t length) {
    for (int strength = PREC_COND; strength <= PREC_PRODUCT; strength++) {
        const char *op = last_operator(text, length, strength);
        if (!op)
            continue;
        const char *right = op + strcspn(op, " ") + 1;
        Linear a = linear_of(lanes, text, (size_t)(op - 1 - text));
        return combined(lanes, *op, a, linear_of(lanes, right, (size_t)(text + length - right)));
    }
    return primary(lanes, text, length);
}

LaneStep lane_step(const Lanes *lanes, const char *expression) {
    Linear linear = linear_of(lanes, expression, strlen(expression));
    if (linear.known && linear.step == 0)
        return LANES_SAME;
    bool together = linear.known && linear.step == 1 && linear.multiple % lanes->count == 0;
    return together ? LANES_NEIGHBOURS : LANES_SCATTERED;
}

static const char *part_in_lane(Arena *arena, const Lanes *lanes, const char *text, size_t length) {
    return lane_text(arena, lanes, arena_strndup(arena, text, length));
}

/* "f(a, b)", "t.h[a]": each argument in its lane. */
static const char *called_in_lane(Arena *arena, const Lanes *lanes, const char *text) {
    Text result = TEXT(arena);
    int depth = 0;
    const char *start = NULL; /* of an argument */
    for (const char *at = text; *at; at++) {
        depth -= strchr(")]}", *at) != NULL;
        if (start && depth <= 1 && (depth == 0 || *at == ',')) {
            text_puts(&result, part_in_lane(arena, lanes, start, (size_t)(at - start)));
            start = *at == ',' ? at + 2 : NULL;
            text_puts(&result, *at == ',' ? ", " : "");
        }
        if (depth == 0)
            text_putc(&result, *at);
        if (strchr("([{", *at) && depth++ == 0)
            start = at + 1;
    }
    return text_string(&result);
}

static const char *primary_in_lane(Arena *arena, const Lanes *lanes, const char *text) {
    static const char wide[] = "(int64_t)";
    size_t length = strlen(text), prefix = strncmp(text, wide, sizeof wide - 1) == 0 ? sizeof wide - 1 : 0;
    prefix += *text == '-' || *text == '!';
    if (is_enclosed(text, length))
        return part_in_lane(arena, lanes, text + 1, length - 2);
    if (!prefix)
        return called_in_lane(arena, lanes, text);
    const char *rest = lane_text(arena, lanes, text + prefix);
    return arena_printf(arena, "%.*s%s", (int)prefix, text, parenthesised(arena, rest, PREC_UNARY));
}

/* Neighbours are the first and the lane's number; of anything else, each operand is in its lane. */
const char *lane_text(Arena *arena, const Lanes *lanes, const char *expression) {
    size_t length = strlen(expression);
    Linear linear = linear_of(lanes, expression, length);
    if (linear.known && linear.step == 0)
        return expression;
    if (linear.known && linear.step == 1)
        return arena_printf(arena, "%s + v", parenthesised(arena, expression, PREC_SUM));
    for (int strength = PREC_COND; strength <= PREC_PRODUCT; strength++) {
        const char *op = last_operator(expression, length, strength);
        if (!op)
            continue;
        size_t width = strcspn(op, " ");
        const char *a = part_in_lane(arena, lanes, expression, (size_t)(op - 1 - expression));
        const char *b = lane_text(arena, lanes, op + width + 1);
        return arena_printf(arena, "%s %.*s %s", parenthesised(arena, a, strength), (int)width, op,
                            parenthesised(arena, b, strength + 1));
    }
    return primary_in_lane(arena, lanes, expression);
}

const char *first_lane(Arena *arena, const char *in_lane) {
    static const char lane[] = " + v";
    size_t length = strlen(in_lane), end = sizeof lane - 1;
    bool sum = length > end && strcmp(in_lane + length - end, lane) == 0 && precedence(in_lane) == PREC_SUM;
    return sum ? arena_strndup(arena, in_lane, length - end) : NULL;
}
