/* Conditions under which something is read, as text: alternatives "a && b || c && d" of comparisons. They come together from
 * several readers, which often say the same, or two halves of one thing. */
#include "emit/text/guard.h"

/* Comparisons that all hold. */
typedef struct Conjunction {
    VEC(const char *) at;
} Conjunction;
typedef VEC(Conjunction) Alternatives;

/* ---- reading ---- */

/* Without parentheses around the whole of it. */
static const char *bare(Arena *arena, const char *text) {
    size_t length = strlen(text);
    int depth = 0;
    for (size_t k = 0; k < length; k++) {
        depth += nesting(text[k]);
        if (text[0] != '(' || (depth == 0 && k + 1 < length))
            return text;
    }
    return length ? bare(arena, arena_strndup(arena, text + 1, length - 2)) : text;
}

/* The operands of the infix, outside of parentheses. */
static Conjunction split(Arena *arena, const char *text, const char *infix) {
    Conjunction parts = {0};
    size_t length = strlen(infix);
    int depth = 0;
    const char *begin = text;
    for (const char *at = text; *at; at++) {
        depth += nesting(*at);
        if (depth == 0 && strncmp(at, infix, length) == 0) {
            VEC_PUSH(arena, &parts.at, bare(arena, arena_strndup(arena, begin, (size_t)(at - begin))));
            begin = at + length;
        }
    }
    VEC_PUSH(arena, &parts.at, bare(arena, begin));
    return parts;
}

static bool has(const Conjunction *all, const char *comparison) {
    for (int k = 0; k < all->at.count; k++)
        if (strcmp(all->at.at[k], comparison) == 0)
            return true;
    return false;
}

static void add_comparisons(Arena *arena, Conjunction *all, const char *text) {
    Conjunction parts = split(arena, text, " && ");
    for (int k = 0; k < parts.at.count; k++) {
        const char *part = parts.at.at[k];
        if (precedence(part) == PREC_AND)
            add_comparisons(arena, all, part);
        else if (!has(all, part))
            VEC_PUSH(arena, &all->at, part);
    }
}

static void add_alternatives(Arena *arena, Alternatives *all, const char *text) {
    Conjunction parts = split(arena, text, " || ");
    for (int k = 0; k < parts.at.count; k++) {
        const char *part = parts.at.at[k];
        if (precedence(part) == PREC_OR) {
            add_alternatives(arena, all, part);
            continue;
        }
        Conjunction alternative = {0};
        add_comparisons(arena, &alternative, part);
        VEC_PUSH(arena, all, alternative);
    }
}

/* ---- simplifying ---- */

/* Where b holds, a does. */
static bool is_implied(const Conjunction *a, const Conjunction *b) {
    for (int k = 0; k < a->at.count; k++)
        if (!has(b, a->at.at[k]))
            return false;
    return true;
}

/* "x < 3" and "x >= 3" */
static bool are_opposite(const char *a, const char *b) {
    const char *below = strstr(a, " < "), *above = strstr(b, " >= ");
    if (!below || !above || below - a != above - b)
        return false;
    return strncmp(a, b, (size_t)(below - a)) == 0 && strcmp(below + 3, above + 4) == 0;
}

/* Comparisons of a that b has not: how many, and the last of them. */
static int differences(const Conjunction *a, const Conjunction *b, int *last) {
    int count = 0;
    for (int k = 0; k < a->at.count; k++)
        if (!has(b, a->at.at[k])) {
            *last = k;
            count++;
        }
    return count;
}

static void remove_at(Conjunction *all, int at) {
    for (int k = at; k + 1 < all->at.count; k++)
        all->at.at[k] = all->at.at[k + 1];
    all->at.count--;
}

/* "a && x < 3 || a && x >= 3" is "a": drops the comparison from the first. */
static bool merge(Conjunction *a, const Conjunction *b) {
    int p = 0, q = 0;
    if (differences(a, b, &p) != 1 || differences(b, a, &q) != 1)
        return false;
    if (!are_opposite(a->at.at[p], b->at.at[q]) && !are_opposite(b->at.at[q], a->at.at[p]))
        return false;
    remove_at(a, p);
    return true;
}

/* Leaves out what another alternative says. */
static bool simplify_pair(Alternatives *all, int i, int k) {
    if (!merge(&all->at[i], &all->at[k]) && !is_implied(&all->at[i], &all->at[k]))
        return false;
    for (; k + 1 < all->count; k++)
        all->at[k] = all->at[k + 1];
    all->count--;
    return true;
}

static bool simplify_once(Alternatives *all) {
    for (int i = 0; i < all->count; i++)
        for (int k = 0; k < all->count; k++)
            if (i != k && simplify_pair(all, i, k))
                return true;
    return false;
}

/* ---- writing ---- */

static const char *conjunction_text(Arena *arena, const Conjunction *all) {
    const char *text = NULL;
    for (int k = 0; k < all->at.count; k++) {
        const char *part = parenthesised(arena, all->at.at[k], PREC_EQUAL);
        text = text ? arena_printf(arena, "%s && %s", text, part) : part;
    }
    return text;
}

/* NULL: always. */
static const char *alternatives_text(Arena *arena, const Alternatives *all) {
    const char *text = NULL;
    for (int k = 0; k < all->count; k++) {
        const char *part = conjunction_text(arena, &all->at[k]);
        if (!part)
            return NULL;
        part = all->count > 1 ? parenthesised(arena, part, PREC_EQUAL) : part;
        text = text ? arena_printf(arena, "%s || %s", text, part) : part;
    }
    return text;
}

const char *guard_or(Arena *arena, const char *a, const char *b) {
    Alternatives all = {0};
    if (!a || !b)
        return NULL;
    add_alternatives(arena, &all, a);
    add_alternatives(arena, &all, b);
    while (simplify_once(&all))
        ;
    return alternatives_text(arena, &all);
}

const char *guard_and(Arena *arena, const char *a, const char *b) {
    Alternatives all = {0}, left = {0}, right = {0};
    if (!a || !b)
        return a ? a : b;
    add_alternatives(arena, &left, a);
    add_alternatives(arena, &right, b);
    for (int i = 0; i < left.count; i++)
        for (int k = 0; k < right.count; k++) {
            Conjunction both = {0};
            add_comparisons(arena, &both, conjunction_text(arena, &left.at[i]));
            add_comparisons(arena, &both, conjunction_text(arena, &right.at[k]));
            VEC_PUSH(arena, &all, both);
        }
    while (simplify_once(&all))
        ;
    return alternatives_text(arena, &all);
}
