#include "emit/kernel/cases.h"

#include "emit/kernel/element.h"
#include "emit/text/guard.h"

/* ---- what is known ---- */

/* x < 3, or x >= 3 */
static bool is_bound(const Tree *comparison) {
    return (tree_is_infix(comparison, "<") || tree_is_infix(comparison, ">=")) && comparison->part[1]->value > 0;
}

/* What is known decides whether the number that both compare is below the limit of the other. */
static int decides(const Case *known, const Tree *comparison) {
    const Tree *fact = known->comparison;
    if (!tree_same(fact->part[0], comparison->part[0]))
        return -1;
    int64_t bound = fact->part[1]->value, limit = comparison->part[1]->value;
    bool below = tree_is_infix(fact, "<") == known->holds;
    if (below ? bound > limit : bound < limit)
        return -1;
    return below == tree_is_infix(comparison, "<");
}

static int comparison_decides(const Case *known, const Tree *comparison) {
    int decided = -1;
    for (; known && decided < 0 && is_bound(comparison); known = known->outer)
        decided = decides(known, comparison);
    return decided;
}

int case_decides(const Case *known, const Tree *condition) {
    if (!tree_is_infix(condition, "&&"))
        return comparison_decides(known, condition);
    int first = case_decides(known, condition->part[0]), second = case_decides(known, condition->part[1]);
    if (!first || !second)
        return 0;
    return first == 1 && second == 1 ? 1 : -1;
}

/* ---- what is asked ---- */

typedef struct Place {
    const Node *node;
    Index at;
} Place;

/* Through what the elements are computed of, down to what is in memory. */
typedef struct Walk {
    Body *body;
    const Case *known;
    Lanes warp;
    VEC(Place) seen;
    VEC(const Tree *) comparisons; /* under which views read, each of them the same for a warp */
} Walk;

static bool was_seen(const Walk *walk, const Node *n, const Index *at) {
    for (int k = 0; k < walk->seen.count; k++)
        if (walk->seen.at[k].node == n && index_same(&walk->seen.at[k].at, at))
            return true;
    return false;
}

static void add_comparisons(Walk *walk, const Tree *condition) {
    if (tree_is_infix(condition, "&&")) {
        add_comparisons(walk, condition->part[0]);
        add_comparisons(walk, condition->part[1]);
        return;
    }
    bool open = is_bound(condition) && comparison_decides(walk->known, condition) < 0;
    if (open && lane_step(&walk->warp, condition) == LANES_SAME)
        VEC_PUSH(walk->body->e->arena, &walk->comparisons, condition);
}

static void visit(Walk *walk, const Node *n, const Index *at) {
    Body *body = walk->body;
    if (was_seen(walk, n, at) || is_loaded(body->kernel, n) || find_known(body, n, at))
        return;
    VEC_PUSH(body->e->arena, &walk->seen, ((Place){n, *at}));
    Index from = *at;
    int operands = n->inputs;
    if (n->op->cls == OP_VIEW) {
        const Tree *guard = through_view(body->e, n, &from, lookup_value(body, n, at));
        if (guard && case_decides(walk->known, guard) == 0)
            return;
        if (guard)
            add_comparisons(walk, guard);
        operands = 1;
    }
    for (int k = 0; k < operands; k++)
        visit(walk, n->in[k], &from);
}

/* One that some view reads under where another reads under its opposite. */
const Tree *case_to_ask(Body *body, const Case *known, const Outputs *outputs) {
    const Kernel *kernel = body->kernel;
    if (kernel->team != TEAM_THREAD || kernel->lanes < 2)
        return NULL;
    Walk walk = {.body = body, .known = known, .warp = {"i", LANES * kernel->lanes}};
    for (int k = 0; k < outputs->count; k++)
        visit(&walk, outputs->at[k].node, &outputs->at[k].at);
    for (int k = 0; k < walk.comparisons.count; k++)
        for (int other = 0; other < walk.comparisons.count; other++)
            if (guards_are_opposite(walk.comparisons.at[k], walk.comparisons.at[other]))
                return walk.comparisons.at[k];
    return NULL;
}
