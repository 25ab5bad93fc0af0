/* Conditions under which something is read: alternatives a && b || c && d of comparisons. They come together from several
 * readers, which often say the same, or two halves of one thing. */
#include "emit/text/guard.h"

/* Comparisons that all hold. */
typedef struct Conjunction {
    VEC(const Tree *) at;
} Conjunction;
typedef VEC(Conjunction) Alternatives;

/* ---- reading ---- */

static bool has(const Conjunction *all, const Tree *comparison) {
    for (int k = 0; k < all->at.count; k++)
        if (tree_same(all->at.at[k], comparison))
            return true;
    return false;
}

static void add_comparisons(Arena *arena, Conjunction *all, const Tree *condition) {
    if (tree_is_infix(condition, "&&")) {
        add_comparisons(arena, all, condition->part[0]);
        add_comparisons(arena, all, condition->part[1]);
    } else if (!has(all, condition)) {
        VEC_PUSH(arena, &all->at, condition);
    }
}

static void add_alternatives(Arena *arena, Alternatives *all, const Tree *condition) {
    if (tree_is_infix(condition, "||")) {
        add_alternatives(arena, all, condition->part[0]);
        add_alternatives(arena, all, condition->part[1]);
        return;
    }
    Conjunction alternative = {0};
    add_comparisons(arena, &alternative, condition);
    VEC_PUSH(arena, all, alternative);
}

/* ---- simplifying ---- */

/* Where b holds, a does. */
static bool is_implied(const Conjunction *a, const Conjunction *b) {
    for (int k = 0; k < a->at.count; k++)
        if (!has(b, a->at.at[k]))
            return false;
    return true;
}

bool guards_are_opposite(const Tree *a, const Tree *b) {
    bool below = tree_is_infix(a, "<") && tree_is_infix(b, ">="),
         above = tree_is_infix(a, ">=") && tree_is_infix(b, "<");
    return (below || above) && tree_same(a->part[0], b->part[0]) && tree_same(a->part[1], b->part[1]);
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
    if (!guards_are_opposite(a->at.at[p], b->at.at[q]))
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

static const Tree *joined(Arena *arena, const char *op, const Tree *before, const Tree *next) {
    return before ? tree_infix(arena, op, before, next) : next;
}

/* NULL: always. */
static const Tree *conjunction_tree(Arena *arena, const Conjunction *all) {
    const Tree *tree = NULL;
    for (int k = 0; k < all->at.count; k++)
        tree = joined(arena, "&&", tree, all->at.at[k]);
    return tree;
}

/* NULL: always. */
static const Tree *simplified(Arena *arena, Alternatives *all) {
    const Tree *tree = NULL;
    while (simplify_once(all))
        ;
    for (int k = 0; k < all->count; k++) {
        const Tree *alternative = conjunction_tree(arena, &all->at[k]);
        if (!alternative)
            return NULL;
        tree = joined(arena, "||", tree, alternative);
    }
    return tree;
}

const Tree *guard_or(Arena *arena, const Tree *a, const Tree *b) {
    Alternatives all = {0};
    if (!a || !b)
        return NULL;
    add_alternatives(arena, &all, a);
    add_alternatives(arena, &all, b);
    return simplified(arena, &all);
}

const Tree *guard_and(Arena *arena, const Tree *a, const Tree *b) {
    Alternatives all = {0}, left = {0}, right = {0};
    if (!a || !b)
        return a ? a : b;
    add_alternatives(arena, &left, a);
    add_alternatives(arena, &right, b);
    for (int i = 0; i < left.count; i++)
        for (int k = 0; k < right.count; k++) {
            Conjunction both = {0};
            for (int n = 0; n < left.at[i].at.count; n++)
                add_comparisons(arena, &both, left.at[i].at.at[n]);
            for (int n = 0; n < right.at[k].at.count; n++)
                add_comparisons(arena, &both, right.at[k].at.at[n]);
            VEC_PUSH(arena, &all, both);
        }
    return simplified(arena, &all);
}
