/* Divisions by which a thread finds its place: "i / CHANNELS % COLUMNS", wherever they occur more than once, get names. */
#include "emit/text/chains.h"

#include <ctype.h>
#include <stdlib.h>

typedef struct Chain {
    const char *name, *text;
} Chain;

typedef struct Chains {
    Body *row;
    Shape rows; /* what i counts */
    VEC(Chain) named;
} Chains;

static bool is_name(char c) {
    return isalnum((unsigned char)c) || c == '_';
}

/* A size, a number, or several in parentheses: its length; 0: something else. */
static size_t divisor_at(const char *text) {
    if (*text != '(')
        return isupper((unsigned char)*text) || isdigit((unsigned char)*text)
                   ? strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789")
                   : 0;
    size_t length = strspn(text + 1, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789* ");
    return text[1 + length] == ')' ? length + 2 : 0;
}

/* Equations have an i of their own: an axis, not a row. */
static bool in_comment(const char *start, const char *text) {
    for (; text > start && text[-1] != '\n'; text--)
        if (text[-1] == '/' && text[0] == '/')
            return true;
    return false;
}

/* Length of the chain that begins here; 0: there is none. */
static size_t chain_at(const char *start, const char *text) {
    if (text[0] != 'i' || text[1] != ' ' || (text > start && (is_name(text[-1]) || text[-1] == '.')))
        return 0;
    if (in_comment(start, text))
        return 0;
    if (text - start >= 2 && strchr("*/%", text[-2]) && text[-1] == ' ')
        return 0;
    size_t length = 1, divisor;
    while ((strncmp(text + length, " / ", 3) == 0 || strncmp(text + length, " % ", 3) == 0) &&
           (divisor = divisor_at(text + length + 3)))
        length += 3 + divisor;
    return length > 1 ? length : 0;
}

static int occurrences(const char *text, const char *chain) {
    int count = 0;
    for (const char *at = text; *at; at++) {
        size_t length = chain_at(text, at);
        count += length == strlen(chain) && strncmp(at, chain, length) == 0;
    }
    return count;
}

/* ---- names ---- */

static int64_t divisor_value(const Sizes *sizes, const char *text, size_t length) {
    int64_t product = 1;
    for (const char *at = text; at < text + length;) {
        size_t word = strspn(at, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789");
        if (word)
            product *= isdigit((unsigned char)*at) ? strtoll(at, NULL, 10) : sizes_value(sizes, at, word);
        at += word ? word : 1;
    }
    return product;
}

static int64_t chain_value(const Sizes *sizes, const char *chain, int64_t i) {
    for (const char *at = chain + 1; *at;) {
        size_t length = divisor_at(at + 3);
        int64_t by = divisor_value(sizes, at + 3, length);
        if (by <= 0)
            return -1;
        i = at[1] == '/' ? i / by : i % by;
        at += 3 + length;
    }
    return i;
}

static bool is_index_along(const Chains *c, const char *chain, int64_t stride, int64_t extent) {
    int64_t elements = type_elements(&c->rows.type);
    for (int64_t k = 1; k < 8; k++) { /* at elements with little in common */
        int64_t i = k * 2654435761 % elements;
        if (chain_value(c->row->e->sizes, chain, i) != i / stride % extent)
            return false;
    }
    return extent > 1;
}

/* The axis along which the chain is the index; -1: none. */
static int axis_of_chain(const Chains *c, const char *chain) {
    int64_t stride = 1;
    for (int axis = c->rows.type.rank - 1; axis >= 0; stride *= c->rows.type.dim[axis--])
        if (is_index_along(c, chain, stride, c->rows.type.dim[axis]))
            return axis;
    return -1;
}

static const char *name_of_chain(Chains *c, const char *chain) {
    static const char *const axes[] = {"n", "line", "column", "channel"};
    static const int first[] = {0, 0, 1, 0, 0}; /* by rank: of its axes */
    int rank = c->rows.type.rank, axis = rank <= 4 ? axis_of_chain(c, chain) : -1;
    return names_claim(&c->row->names, axis < 0 ? "place" : axes[first[rank] + axis]);
}

static const char *find_name(const Chains *c, const char *chain, size_t length) {
    for (int k = 0; k < c->named.count; k++)
        if (strlen(c->named.at[k].text) == length && strncmp(c->named.at[k].text, chain, length) == 0)
            return c->named.at[k].name;
    return NULL;
}

static void find_chains(Chains *c, const char *text) {
    Arena *arena = c->row->e->arena;
    for (const char *at = text; *at; at++) {
        size_t length = chain_at(text, at);
        if (!length || find_name(c, at, length))
            continue;
        const char *chain = arena_strndup(arena, at, length);
        if (occurrences(text, chain) > 1)
            VEC_PUSH(arena, &c->named, ((Chain){.name = name_of_chain(c, chain), .text = chain}));
    }
}

/* ---- text ---- */

/* "(int)(i / N)" becomes "(int)n". */
static void replace(const Chains *c, const char *text, Text *out) {
    for (const char *at = text; *at;) {
        bool enclosed = at > text && at[-1] == ')' && *at == '(';
        size_t length = chain_at(text, at + enclosed);
        bool whole = !enclosed || at[1 + length] == ')';
        const char *name = length && whole ? find_name(c, at + enclosed, length) : NULL;
        if (name)
            text_puts(out, name);
        else
            text_putc(out, *at);
        at += name ? length + 2 * enclosed : 1;
    }
}

void name_chains(Body *row, const Shape *rows, Writer *lines) {
    Chains c = {.row = row, .rows = *rows};
    const char *text = text_string(&lines->text);
    find_chains(&c, text);
    Writer result = writer_like(lines), rest = *lines;
    rest.text = TEXT(row->e->arena);
    replace(&c, text, &rest.text);
    for (int k = 0; k < c.named.count; k++)
        write_line(&result, "int %s = %s;", c.named.at[k].name, c.named.at[k].text);
    write_all(&result, &rest);
    *lines = result;
}
