/* Terms: values at indices, equal ones once, with what is known of them. */
#include "emit/kernel/term.h"
#include "emit/kernel/cases.h"
#include "emit/kernel/chains.h"
#include "emit/text/guard.h"

/* Names and operators of an index and of a condition that are still written where they are used: see value.c. */
enum { MOST_OF_PLACE = 11, MOST_OF_LOOKUP = 32, MOST_OF_CONDITION = 7 };

bool is_computed(const Body *body, const Node *n, const Index *at) {
    return !is_loaded(body->kernel, n) && !find_known(body, n, at);
}

/* Of a sum the operand that is something; a sum of nothing is nothing. */
static void leave_out_nothing(Term *term) {
    bool adds = term->operands == 2 && tree_is_infix(term->form, "+");
    for (int k = 0; k < 2 && adds; k++)
        if (term->operand[k]->nothing) {
            *term = (Term){.node = term->node,
                           .at = term->at,
                           .uses = term->uses,
                           .guard = term->guard,
                           .form = tree_operand[0],
                           .operand = {term->operand[1 - k]},
                           .operands = 1,
                           .stays = term->stays,
                           .nothing = term->operand[1 - k]->nothing};
            return;
        }
}

static Term *operand_of(Body *body, Term *term, const Node *n, const Index *at, const Tree *guard) {
    Term *operand = term_of(body, n, at, guard);
    term->stays |= body->relied || operand->stays;
    return operand;
}

/* In vector code, what is rounded to a narrower type and back does not pass through that. */
static void describe_map(Body *body, Term *term, const Index *at) {
    const Node *n = term->node, *narrow = n->op->flags & OP_WIDENS ? n->in[0] : NULL;
    bool rounds = narrow && narrow->op->rounds && body->lane.count && is_computed(body, narrow, at);
    term->form = rounds ? tree_read(body->e->arena, narrow->op->rounds) : form_at(body->e, n, at, &body->lane);
    n = rounds ? narrow : n;
    term->operands = n->inputs;
    for (int k = 0; k < n->inputs; k++)
        term->operand[k] = operand_of(body, term, n->in[k], at, term->guard);
    leave_out_nothing(term);
}

/* The condition under which the operands of a term are read, if the term itself is under `guard`. */
static const Tree *guard_below(Arena *arena, const Term *term, const Tree *guard) {
    return guard_and(arena, guard, term->own_guard);
}

static void describe_guarded(Body *body, Term *term, const Index *from) {
    const Tree *guard = guard_below(body->e->arena, term, term->guard);
    term->operand[term->operands++] = operand_of(body, term, term->node->in[0], from, guard);
    term->form = guarded(body->e, term->own_guard, tree_operand[0], term->node->attr.value, term->node->type.dtype);
}

void term_widen(Arena *arena, Term *term, const Tree *guard) {
    const Tree *wider = guard_or(arena, term->guard, guard);
    if (!term->guard || (wider && tree_same(wider, term->guard)))
        return;
    term->guard = wider;
    for (int k = 0; k < term->operands; k++)
        term_widen(arena, term->operand[k], guard_below(arena, term, term->guard));
}

bool is_pack(const Body *body, const Tree *element) {
    return body->lane.count && lane_step(&body->lane, element_offset(element)) == LANES_NEIGHBOURS;
}

static bool is_steady(const Body *body, const Tree *value) {
    for (int k = 0; k < 2; k++)
        if (body->varying[k] && tree_mentions(value, body->varying[k]))
            return false;
    return true;
}

/* What is read ahead of the body is a member of what that made. */
static void read_ahead(Body *body, Term *term, const Tree *value, int lanes) {
    Arena *arena = body->e->arena;
    const char *name = names_claim(&body->names, local_name(arena, term->node));
    const bool steady = body->steady_reads && is_steady(body, value);
    VEC_PUSH(arena, steady ? body->steady_reads : body->reads,
             ((Read){.node = term->node, .name = name, .value = value, .lanes = lanes}));
    const Tree *ahead = tree_member(arena, steady ? body->steady_from : body->read_from, name);
    term->form = lanes ? lane_of_pack(arena, ahead) : ahead;
}

/* t.h[at] for t.h[i * H + j] */
static const Tree *with_named_place(Body *lane, const Tree *element) {
    const Tree *offset = element_offset(element);
    const Tree *place = body_named(lane, offset, MOST_OF_PLACE, index_type(offset), "at");
    return tree_element(lane->e->arena, element->part[0], place);
}

/* Of an element of memory, or of a row that is held in shared memory. */
static void describe_load(Body *body, Term *term, const Tree *element) {
    const Node *n = term->node;
    Arena *arena = body->e->arena;
    bool pack = is_pack(body, element) && !(term->guard && differs_by_lane(&body->lane, term->guard));
    bool reads_place = tree_has_kind(element_offset(element), TREE_ELEMENT);
    if (pack && !body->reads && !(term->guard && reads_place))
        element = with_named_place(body, element);
    const Tree *value = in_lane(arena, &body->lane, element);
    if (body->e->options->f64 && n->op->table == TABLE_FIELD && n->type.dtype == DT_F32)
        value = tree_cast(arena, c_type(body->e, DT_F32), value); /* the data set has floats */
    if (pack) {
        const Tree *address = element_address(arena, element);
        value = tree_call(arena, arena_printf(arena, "load_pack<%d>", body->lane.count), &address, 1);
    }
    if (n->type.dtype == DT_BOOL && body->e->dialect->stored_condition)
        value = tree_form(arena, body->e->dialect->stored_condition, &value, 1);
    if (body->reads && !term->guard && !(!pack && differs_by_lane(&body->lane, value))) {
        read_ahead(body, term, value, pack ? body->lane.count : 0);
        return;
    }
    term->form = value;
    term->pack = pack;
    term->buffer = n->op->table == TABLE_FIELD ? NULL : plan_buffer(body->e->plan, n);
    term->loaded = true;
    term->plain = false;
}

static void describe(Body *body, Term *term, const Known *known, const Index *at) {
    Emitter *e = body->e;
    const Node *n = term->node;
    term->plain = true;
    if (known && known->inner && n == body->kernel->held) {
        describe_load(body, term, vector_element(e, known, at));
    } else if (known) {
        term->form = known->inner ? in_lane(e->arena, &body->lane, vector_element(e, known, at)) : known->value;
    } else if (is_loaded(body->kernel, n)) {
        describe_load(body, term, loaded_element(body, n, at));
    } else if (n->op->table == TABLE_KNOB) {
        term->form = knob_member(e, n);
    } else if (n->op->c) {
        describe_map(body, term, at);
        if (!term->operands)
            term->form = once_in_row(body, term->form);
        if (!term->operands && n->op->flags & OP_DRAWS && !body->reads)
            term->form = body_named(body, term->form, 0, c_type(e, n->type.dtype), local_name(e->arena, n));
        term->plain = n->op->cls == OP_LEAF || (n->op->cls == OP_INDEX && n->op->flags & OP_CHEAP);
    } else {
        ICE("%%%d %s is not complete where kernel %s reads it", n->id, n->op->name, body->kernel->name);
    }
}

static Term *find_term(const Body *body, const Node *n, const Index *at) {
    for (int k = 0; k < body->terms.count; k++)
        if (body->terms.at[k]->node == n && index_same(&body->terms.at[k]->at, at))
            return body->terms.at[k];
    return NULL;
}

static Term *new_term(Body *body, const Node *n, const Index *at, const Tree *guard) {
    Term *term = NEW(body->e->arena, Term);
    *term = (Term){.node = n, .at = *at, .guard = guard};
    VEC_PUSH(body->e->arena, &body->terms, term);
    return term;
}

bool may_load_around(const Body *body) {
    return !body->once && (body->outer->outer || !body->e->dialect->schedules);
}

/* The loop whose elements the body computes: around that over lanes, if it has any; NULL: it is in none of a row's. */
static const Body *loop_of(const Body *body) {
    const Body *loop = body->lane.count ? body->outer : body;
    return loop->outer && loop->variables[0] && !loop->once ? loop : NULL;
}

/* The form says nothing that the loop changes, and what it loads may be loaded before that. */
static bool is_fixed(const Body *body, const Term *term) {
    const Body *loop = loop_of(body);
    if (!loop || term->guard || body_depends_on(body, term->form) || body_depends_on(loop, term->form))
        return false;
    return may_load_around(loop);
}

/* The condition holds for the whole body: 1; it does not: 0; that depends: -1. */
static int assumed(const Body *body, const Tree *condition) {
    Assumption *assumption = body->assumption;
    int decided = case_decides(body->cases, condition);
    if (decided >= 0)
        return decided;
    if (!assumption || body_depends_on(body, condition))
        return -1;
    if (!assumption->condition && !assumption->wanted)
        assumption->wanted = condition;
    return assumption->condition && tree_same(assumption->condition, condition) ? assumption->holds : -1;
}

/* ---- lookups ---- */

/* What is loaded gets a name, where a statement can stand before and needs no condition. */
static const Tree *name_place(Body *body, const Node *index, const Tree *place) {
    bool lanes = body->lane.count, loads = tree_has_kind(place, TREE_ELEMENT);
    if (body->reads || !loads || (lanes && lane_step(&body->lane, place) != LANES_SAME))
        return place;
    const char *wanted = local_name(body->e->arena, index);
    return body_name_outside(lanes ? body->outer : body, place, "int", wanted, is_of_data(index));
}

/* A long place is a value like others, with names for what it is made of. */
static const Tree *long_place(Body *body, const Node *view, const Index *at) {
    Index index = lookup_index(body->e, view, at);
    Term *place = term_of(body, view->in[1], &index, NULL);
    place->uses++; /* as often as it is said in an index */
    body->relied |= place->stays;
    return value_of(body, place);
}

/* The tree with names for what it draws, where that is the same for all lanes. */
static const Tree *with_drawn(Body *lane, const Tree *tree) {
    Arena *arena = lane->e->arena;
    bool draws = tree->kind == TREE_CALL && tree->count && tree_is_name(tree->part[0], "batch");
    if (draws && lane_step(&lane->lane, tree) == LANES_SAME)
        return body_named(lane, tree, 0, "int", "drawn");
    if (!tree->count)
        return tree;
    const Tree **parts = NEW_ARRAY(arena, const Tree *, tree->count);
    for (int k = 0; k < tree->count; k++)
        parts[k] = with_drawn(lane, tree->part[k]);
    return tree_with_parts(arena, tree, parts);
}

/* Once for all lanes: a number that is drawn takes a hundred instructions. */
static const Tree *draw_once(Body *body, Index *at, const Tree *guard) {
    if (!body->lane.count || body->reads)
        return guard;
    for (int k = 0; k < at->groups; k++)
        at->group[k].at = with_drawn(body, at->group[k].at);
    return guard ? with_drawn(body, guard) : NULL;
}

/* What the view's result at `at` is an element of, and which. Returns the condition of that, or NULL. */
static const Tree *go_through(Body *body, const Node *view, Index *at, const Tree *guard) {
    const Tree *place = lookup_value(body, view, at);
    bool is_long = place && !body->lane.count && !body->reads && tree_nodes(place) > MOST_OF_LOOKUP;
    if (is_long && !guard)
        place = long_place(body, view, at);
    else if (place && !guard)
        place = name_place(body, view->in[1], place);
    const Tree *condition = through_view(body->e, view, at, place);
    if (view->op->flags & OP_DRAWS)
        condition = draw_once(body, at, condition);
    return in_lane(body->e->arena, &body->lane, condition);
}

/* ---- conditions that do not matter ---- */

/* What a name stands for that statements before have given it; else the tree itself. */
static const Tree *meaning_of(const Body *body, const Tree *tree) {
    for (; body && tree->kind == TREE_NAME; body = body->outer)
        for (int k = 0; k < body->named.count; k++)
            if (tree_is_name(tree, body->named.at[k].name))
                return body->named.at[k].value;
    return tree;
}

/* What it was made of is not said any more. */
static bool is_local(const Body *body, const Tree *tree) {
    for (; body && tree->kind == TREE_NAME; body = body->outer)
        for (int k = 0; k < body->declared.count; k++)
            if (tree_is_name(tree, body->declared.at[k]))
                return true;
    return false;
}

/* Something decides both about the place and about what is `of` a variable. */
static bool varies_with(const Body *body, const Tree *place, const Digits *of) {
    place = meaning_of(body, place);
    if (is_local(body, place))
        return true;
    Digits digits;
    if (chain_digits(place, &digits))
        return digits_overlap(&digits, of);
    bool varies = false;
    for (int k = 0; k < place->count && !varies; k++)
        varies = varies_with(body, place->part[k], of);
    return varies;
}

static bool have_in_common(const Body *body, const Tree *condition, const Tree *place) {
    condition = meaning_of(body, condition);
    if (is_local(body, condition))
        return true;
    Digits digits;
    if (chain_digits(condition, &digits))
        return varies_with(body, place, &digits);
    bool common = false;
    for (int k = 0; k < condition->count && !common; k++)
        common = have_in_common(body, condition->part[k], place);
    return common;
}

static bool is_about(const Body *body, const Tree *condition, const Index *at) {
    bool about = false;
    for (int k = 0; k < at->groups && !about; k++)
        about = have_in_common(body, condition, at->group[k].at);
    return about;
}

/* A loop decides about all of the condition, and says nothing of the place, which is one of memory without it too. */
static bool is_for_others(const Body *body, const Body *loop, const Tree *condition, const Index *at) {
    if (tree_is_infix(condition, "&&"))
        return is_for_others(body, loop, condition->part[0], at) && is_for_others(body, loop, condition->part[1], at);
    bool alternatives = tree_is_infix(condition, "||");
    return !alternatives && body_depends_on(loop, condition) && !is_about(body, condition, at);
}

/* The condition under which `n` is read. A channel's mean is there for what lies beside the image too: read under no condition, it is read
 * once for all of a window. */
static const Tree *guard_of_read(const Body *body, const Node *n, const Index *at, const Tree *guard) {
    const Body *loop = loop_of(body);
    return guard && loop && is_loaded(body->kernel, n) && is_for_others(body, loop, guard, at) ? NULL : guard;
}

static void judge(const Body *body, Term *term) {
    const OpDef *op = term->node->op;
    bool computed = !term->loaded && term->node->type.rank == 0 && op->cls == OP_MAP;
    term->uniform = computed || op->flags & OP_SCALAR;
    term->fixed = is_fixed(body, term);
    term->stays |= term->loaded && body->assuming && is_about(body, body->assuming, &term->at);
    term->costly = term->operands && !(op->flags & OP_CHEAP);
    for (int k = 0; k < term->operands; k++) {
        term->uniform &= term->operand[k]->uniform;
        term->fixed &= term->operand[k]->fixed;
        term->costly |= term->operand[k]->costly;
    }
}

/* What a view reads where its condition, if it has one, holds for the whole body. */
static Term *term_behind(Body *body, const Node *view, const Index *from, const Tree *condition, const Tree *guard) {
    const Node *n = view->in[0];
    const Tree *before = body->assuming;
    if (body->assumption && condition)
        body->assuming = guard_and(body->e->arena, before, condition);
    Term *term = term_of(body, n, from, guard_of_read(body, n, from, guard));
    body->assuming = before;
    body->relied |= condition != NULL;
    return term;
}

/* What an operator reads under a condition of its own. Nobody else reads it, and a pack of it has zeros where that does not hold. */
static void describe_conditional(Body *body, Term *term) {
    term->own_guard = tree_read(body->e->arena, term->node->op->reads_if);
    describe_guarded(body, term, &term->at);
    if (term->operand[0]->pack)
        term->form = tree_operand[0];
}

/* A view is the term of what it reads, unless it does so under a condition. */
Term *term_of(Body *body, const Node *n, const Index *at, const Tree *guard) {
    const Known *known = find_known(body, n, at);
    Term *term = find_term(body, n, at);
    if (term) {
        term_widen(body->e->arena, term, guard);
    } else if (n->op->cls == OP_VIEW && !known && !is_loaded(body->kernel, n)) {
        Index from = *at;
        body->relied = false;
        const Tree *own_guard = go_through(body, n, &from, guard);
        const bool placed = body->relied; /* the place is another one elsewhere */
        int holds = own_guard ? assumed(body, own_guard) : 1;
        if (holds == 1) {
            term = term_behind(body, n, &from, own_guard, guard);
            body->relied |= placed;
            return term;
        }
        term = new_term(body, n, at, guard);
        if (holds == 0) {
            term->form = literal_tree(body->e, n->attr.value, n->type.dtype);
            term->plain = true;
            term->nothing = n->attr.value == 0;
            term->stays = true;
        } else {
            term->own_guard = body_named(body, own_guard, MOST_OF_CONDITION, "bool", "inside");
            describe_guarded(body, term, &from);
        }
        term->stays |= placed;
        judge(body, term);
    } else {
        term = new_term(body, n, at, guard);
        if (n->op->reads_if && is_computed(body, n, at))
            describe_conditional(body, term);
        else
            describe(body, term, known, at);
        judge(body, term);
    }
    body->relied = false;
    term->uses++;
    return term;
}
