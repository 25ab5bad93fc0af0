#include "emit/kernel/chains.h"

/* ---- marks ---- */

/* In the text of a line: MARK, the number of the chain, and an end that says whether it stands in parentheses, if it is no name. C
 * has no such bytes, and the names in equations neither. */
enum { MARK = '@', PLAIN_END = '$', PARENTHESES_END = '`' };

static bool is_divisor(const Tree *tree) {
    if (tree_is_infix(tree, "*"))
        return is_divisor(tree->part[0]) && is_divisor(tree->part[1]);
    return tree->value > 0;
}

static bool is_chain(const Tree *tree) {
    bool divides = tree_is_infix(tree, "/") || tree_is_infix(tree, "%");
    if (!divides || !is_divisor(tree->part[1]))
        return false;
    return is_chain(tree->part[0]) || tree_is_name(tree->part[0], "i");
}

static int find_or_add(Arena *arena, Chains *chains, const Tree *tree) {
    int k = 0;
    while (k < chains->at.count && !tree_same(chains->at.at[k].tree, tree))
        k++;
    if (k == chains->at.count)
        VEC_PUSH(arena, &chains->at, ((Chain){.tree = tree}));
    return k;
}

static bool print_mark(void *context, Text *out, const Tree *tree, bool parentheses) {
    Chains *chains = context;
    if (!is_chain(tree))
        return false;
    int k = find_or_add(out->arena, chains, tree);
    chains->at.at[k].count++;
    text_printf(out, "%c%d%c", MARK, k, parentheses ? PARENTHESES_END : PLAIN_END);
    return true;
}

const char *chains_marked(Arena *arena, Chains *chains, const Tree *tree) {
    return tree_text_by(arena, tree, print_mark, chains);
}

/* ---- digits ---- */

static int64_t divisor_value(const Tree *tree) {
    return tree->count ? divisor_value(tree->part[0]) * divisor_value(tree->part[1]) : tree->value;
}

bool chain_digits(const Tree *tree, Digits *digits) {
    if (tree->kind == TREE_NAME && !tree->value) {
        *digits = (Digits){tree, 1, INT64_MAX};
        return true;
    }
    bool divides = tree_is_infix(tree, "/") || tree_is_infix(tree, "%");
    if (!divides || !is_divisor(tree->part[1]) || !chain_digits(tree->part[0], digits))
        return false;
    int64_t by = divisor_value(tree->part[1]);
    if (tree_is_infix(tree, "/"))
        digits->unit *= by;
    else if (digits->end / by > digits->unit)
        digits->end = digits->unit * by;
    return true;
}

/* In the same system: units are multiples of each other's ends. */
bool digits_overlap(const Digits *a, const Digits *b) {
    if (!tree_same(a->of, b->of))
        return false;
    return !(a->unit % b->end == 0 || b->unit % a->end == 0);
}

/* ---- names ---- */

static int64_t chain_value(const Tree *tree, int64_t i) {
    if (!tree->count)
        return i;
    int64_t of = chain_value(tree->part[0], i), by = divisor_value(tree->part[1]);
    return tree_is_infix(tree, "/") ? of / by : of % by;
}

static bool is_index_along(const Shape *rows, const Tree *chain, int64_t stride, int64_t extent) {
    int64_t elements = type_elements(&rows->type);
    for (int64_t k = 1; k < 8; k++) { /* at elements with little in common */
        int64_t i = k * 2654435761 % elements;
        if (chain_value(chain, i) != i / stride % extent)
            return false;
    }
    return extent > 1;
}

/* The axis along which the chain is the index; -1: none. */
static int axis_of_chain(const Shape *rows, const Tree *chain) {
    int64_t stride = 1;
    for (int axis = rows->type.rank - 1; axis >= 0; stride *= rows->type.dim[axis--])
        if (is_index_along(rows, chain, stride, rows->type.dim[axis]))
            return axis;
    return -1;
}

static const char *name_of_chain(Body *row, const Shape *rows, const Tree *chain) {
    static const char *const axes[] = {"n", "line", "column", "channel"};
    static const int first[] = {0, 0, 1, 0, 0}; /* by rank: of its axes */
    int rank = rows->type.rank, axis = rank <= 4 ? axis_of_chain(rows, chain) : -1;
    return names_claim(&row->names, axis < 0 ? "place" : axes[first[rank] + axis]);
}

/* ---- lines ---- */

/* The first time that the lines say a chain which they say again, it gets its name. */
static void replace_mark(Body *row, const Shape *rows, Chain *chain, bool parentheses, Text *out, Writer *names) {
    const char *text = tree_text(out->arena, chain->tree);
    if (!chain->name && chain->count > 1) {
        chain->name = name_of_chain(row, rows, chain->tree);
        write_line(names, "%s %s = %s;", index_type(chain->tree), chain->name, text);
    }
    if (chain->name)
        text_puts(out, chain->name);
    else
        text_printf(out, parentheses ? "(%s)" : "%s", text);
}

void chains_resolve(Body *row, const Shape *rows, Writer *lines) {
    Writer result = writer_like(lines), rest = *lines;
    rest.text = TEXT(row->e->arena);
    for (const char *at = text_string(&lines->text); *at; at++) {
        if (*at != MARK) {
            text_putc(&rest.text, *at);
            continue;
        }
        int k = 0;
        while (*++at != PLAIN_END && *at != PARENTHESES_END)
            k = 10 * k + *at - '0';
        replace_mark(row, rows, &row->chains->at.at[k], *at == PARENTHESES_END, &rest.text, &result);
    }
    write_all(&result, &rest);
    *lines = result;
}
