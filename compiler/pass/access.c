#include "pass/access.h"

const Tree *const ANY_INDEX = TREE_NAMED("*");

static Access through_map(const Node *n, const Access *at) {
    (void)n;
    return *at;
}

/* Where a lookup reads, only the running program knows: at no other index than the same lookup elsewhere. */
static const Tree *looked_up(Arena *arena, const Node *n, const Access *at) {
    const Tree *operand = tree_name(arena, arena_printf(arena, "%%%d", n->in[1]->id));
    return tree_element_at(arena, operand, at->index, n->in[1]->type.rank);
}

/* Operand 1, of a lookup, has the leading axes of the result. */
static Access through_view(Arena *arena, const Node *n, int k, const Access *at) {
    if (k == 1)
        return *at;
    IndexMap map = {0};
    const Tree *index[MAX_RANK + 1];
    memcpy(index, at->index, sizeof at->index);
    if (n->op->flags & OP_LOOKUP)
        index[n->type.rank] = looked_up(arena, n, at);
    n->op->view(arena, n, index, &map);
    Access result = {{0}};
    for (int axis = 0; axis < n->in[0]->type.rank; axis++)
        result.index[axis] = map.index[axis];
    return result;
}

static Access through_reduce(const Node *n, const Access *at) {
    Access result = {{0}};
    for (int axis = 0, kept = 0; axis < n->in[0]->type.rank; axis++)
        result.index[axis] = n->attr.axes >> axis & 1 ? ANY_INDEX : at->index[kept++];
    return result;
}

/* out[.., i, j] reads a[.., i, *] and b[.., *, j], each possibly stored transposed; an operand without batch axes has
 * only its own two. */
static Access through_contract(const Node *n, int k, const Access *at) {
    const Node *operand = n->in[k];
    int rank = n->type.rank, extra = operand->type.rank - 2;
    bool transposed = k == 0 ? n->attr.ta : n->attr.tb;
    Access result = {{0}};
    for (int axis = 0; axis < extra; axis++)
        result.index[axis] = at->index[axis];
    const Tree *own = k == 0 ? at->index[rank - 2] : at->index[rank - 1];
    bool own_first = (k == 0) != transposed;
    result.index[extra] = own_first ? own : ANY_INDEX;
    result.index[extra + 1] = own_first ? ANY_INDEX : own;
    return result;
}

/* All of it. */
static Access through_call(const Node *operand) {
    Access result = {{0}};
    for (int axis = 0; axis < operand->type.rank; axis++)
        result.index[axis] = ANY_INDEX;
    return result;
}

Access access_input(Arena *arena, const Node *n, int k, const Access *at) {
    switch (n->op->cls) {
    case OP_MAP:
    case OP_ROOT: return through_map(n, at);
    case OP_VIEW: return through_view(arena, n, k, at);
    case OP_REDUCE: return through_reduce(n, at);
    case OP_CONTRACT: return through_contract(n, k, at);
    case OP_CALL: return through_call(n->in[k]);
    default: ICE("%%%d %s has no inputs", n->id, n->op->name);
    }
}

Access access_own(Arena *arena, int rank) {
    Access at = {{0}};
    for (int axis = 0; axis < rank; axis++)
        at.index[axis] = tree_name(arena, arena_printf(arena, "i%d", axis));
    return at;
}

bool access_equal(const Access *a, const Access *b, int rank) {
    for (int axis = 0; axis < rank; axis++)
        if (!tree_same(a->index[axis], b->index[axis]))
            return false;
    return true;
}

typedef struct Seen {
    const Node *node;
    Access at;
} Seen;

typedef struct Walker {
    Arena *arena;
    WalkVisit visit;
    void *context;
    VEC(Seen) seen;
} Walker;

static bool first_time(Walker *walker, const Node *n, const Access *at) {
    for (int i = 0; i < walker->seen.count; i++) {
        const Seen *seen = &walker->seen.at[i];
        if (seen->node == n && access_equal(&seen->at, at, n->type.rank))
            return false;
    }
    VEC_PUSH(walker->arena, &walker->seen, ((Seen){n, *at}));
    return true;
}

static bool walk(Walker *walker, const Node *n, const Access *at) {
    for (int k = 0; k < n->inputs; k++) {
        Access read = access_input(walker->arena, n, k, at);
        if (!first_time(walker, n->in[k], &read))
            continue;
        Walk next = walker->visit(walker->context, n->in[k], &read);
        if (next == WALK_FAIL || (next == WALK_DEEPER && !walk(walker, n->in[k], &read)))
            return false;
    }
    return true;
}

bool access_walk(Arena *arena, Node *n, const Access *at, WalkVisit visit, void *context) {
    Walker walker = {.arena = arena, .visit = visit, .context = context};
    return walk(&walker, n, at);
}

/* The same number for every element; by node id, for what precedes n. */
static bool is_uniform(const Node *n, const bool *uniform) {
    if (n->op->cls == OP_LEAF)
        return !(n->op->flags & OP_BUFFER);
    if (n->op->cls != OP_MAP && n->op->cls != OP_VIEW)
        return false;
    for (int k = 0; k < n->inputs; k++)
        if (!uniform[n->in[k]->id])
            return false;
    return true;
}

static Node *single_field(Node *n, const bool *uniform, Node *const *fields) {
    if (n->op->cls == OP_LEAF)
        return n->op->flags & OP_BUFFER && n->type.batched ? n : NULL;
    bool keeps_order = n->op->cls == OP_MAP || n->op->flags & OP_CONTIGUOUS;
    Node *field = NULL;
    for (int k = 0; k < n->inputs; k++) {
        Node *below = fields[n->in[k]->id];
        if (uniform[n->in[k]->id])
            continue;
        if (!keeps_order || !below || (field && field != below))
            return NULL;
        field = below;
    }
    return field;
}

Node **access_single_fields(const Graph *g) {
    bool *uniform = NEW_ARRAY(g->arena, bool, g->nodes.count);
    Node **fields = NEW_ARRAY(g->arena, Node *, g->nodes.count);
    for (int i = 0; i < g->nodes.count; i++) {
        uniform[i] = is_uniform(g->nodes.at[i], uniform);
        fields[i] = single_field(g->nodes.at[i], uniform, fields);
    }
    return fields;
}
