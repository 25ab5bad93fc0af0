#include "emit/kernel/element.h"
#include "emit/kernel/function.h"
#include "emit/text/guard.h"

/* Names and operators of an operand, of an index and of a condition that are still written where they are used. Counted, not measured
 * in bytes: whether a name is long must not decide what a kernel looks like, or equal layers would not have equal kernels. */
enum { MOST_PARTS = 13, MOST_OF_PLACE = 11, MOST_OF_CONDITION = 7 };

/* The value of a node at an index. */
struct Term {
    const Node *node;
    Index at;
    const Tree *form; /* with $0 .. for the operands */
    Term *operand[MAX_INPUTS];
    int operands, uses;
    const Buffer *buffer; /* loaded from there; NULL: from a data field */
    bool loaded;
    bool pack;             /* the form loads it for all lanes */
    bool plain;            /* a name or a constant: as short as a local would be */
    bool uniform;          /* the same number for each element of the kernel */
    bool fixed;            /* the same number for all that the body counts, and read under no condition */
    bool costly;           /* worth computing once */
    const Tree *guard;     /* the condition under which its loads are in bounds; NULL: they always are */
    const Tree *own_guard; /* a view that reads under a condition: that */
    bool overwritten;      /* an earlier statement of the body writes over what this one loads */
    const Tree *local;
};

/* ---- terms ---- */

static Term *term_of(Body *body, const Node *n, const Index *at, const Tree *guard);

/* The kernel computes the value at the index; it has it from nowhere. */
static bool is_computed(const Body *body, const Node *n, const Index *at) {
    return !is_loaded(body->kernel, n) && !find_known(body, n, at);
}

/* In vector code, what is rounded to a narrower type and back does not pass through that. */
static void describe_map(Body *body, Term *term, const Index *at) {
    const Node *n = term->node, *narrow = n->op->flags & OP_WIDENS ? n->in[0] : NULL;
    bool rounds = narrow && narrow->op->rounds && body->lane.count && is_computed(body, narrow, at);
    term->form = rounds ? tree_read(body->e->arena, narrow->op->rounds) : form_at(body->e, n, at, &body->lane);
    n = rounds ? narrow : n;
    term->operands = n->inputs;
    for (int k = 0; k < n->inputs; k++)
        term->operand[k] = term_of(body, n->in[k], at, term->guard);
}

/* The condition under which the operands of a term are read, if the term itself is under `guard`. */
static const Tree *guard_below(Arena *arena, const Term *term, const Tree *guard) {
    return guard_and(arena, guard, term->own_guard);
}

static void describe_guarded(Body *body, Term *term, const Index *from) {
    const Tree *guard = guard_below(body->e->arena, term, term->guard);
    term->operand[term->operands++] = term_of(body, term->node->in[0], from, guard);
    term->form = guarded(body->e, term->own_guard, tree_operand[0], term->node->attr.value, term->node->type.dtype);
}

/* The term is also read under another condition, or without one. */
static void widen(Arena *arena, Term *term, const Tree *guard) {
    const Tree *wider = guard_or(arena, term->guard, guard);
    if (!term->guard || (wider && tree_same(wider, term->guard)))
        return;
    term->guard = wider;
    for (int k = 0; k < term->operands; k++)
        widen(arena, term->operand[k], guard_below(arena, term, term->guard));
}

/* The lanes' elements lie side by side. */
static bool is_pack(const Body *body, const Tree *element) {
    return body->lane.count && lane_step(&body->lane, element_offset(element)) == LANES_NEIGHBOURS;
}

/* What is read ahead of the body is a member of what that made. */
static void read_ahead(Body *body, Term *term, const Tree *value, int lanes) {
    Arena *arena = body->e->arena;
    const char *name = names_claim(&body->names, local_name(arena, term->node));
    VEC_PUSH(arena, body->reads, ((Read){.node = term->node, .name = name, .value = value, .lanes = lanes}));
    const Tree *ahead = tree_member(arena, body->read_from, name);
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
        term->form = known->inner ? vector_element(e, known, at) : known->value;
    } else if (is_loaded(body->kernel, n)) {
        describe_load(body, term, loaded_element(body, n, at));
    } else if (n->op->table == TABLE_KNOB) {
        term->form = knob_member(e, n);
    } else if (n->op->c) {
        describe_map(body, term, at);
        if (!term->operands)
            term->form = once_in_row(body, term->form);
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

/* A statement of the outermost body may run before what it would read is complete: see `schedules`. */
static bool may_load_around(const Body *body) {
    return !body->once && (body->outer->outer || !body->e->dialect->schedules);
}

/* The form says nothing that the body's loop changes, and what it loads may be loaded before that. nvcc finds that itself. */
static bool is_fixed(const Body *body, const Term *term) {
    bool loops = !body->e->dialect->schedules && body->outer && body->variables[0] && !body->once;
    bool loads_early = !term->loaded || may_load_around(body);
    return loops && loads_early && !term->guard && !body_depends_on(body, term->form);
}

static void judge(const Body *body, Term *term) {
    const OpDef *op = term->node->op;
    bool computed = !term->loaded && term->node->type.rank == 0 && op->cls == OP_MAP;
    term->uniform = computed || op->flags & OP_SCALAR;
    term->fixed = is_fixed(body, term);
    term->costly = term->operands && !(op->flags & OP_CHEAP);
    for (int k = 0; k < term->operands; k++) {
        term->uniform &= term->operand[k]->uniform;
        term->fixed &= term->operand[k]->fixed;
        term->costly |= term->operand[k]->costly;
    }
}

/* The condition holds for the whole body: 1; it does not: 0; that depends: -1. */
static int assumed(const Body *body, const Tree *condition) {
    Assumption *assumption = body->assumption;
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

/* What the view's result at `at` is an element of, and which. Returns the condition of that, or NULL. */
static const Tree *go_through(Body *body, const Node *view, Index *at, const Tree *guard) {
    const Tree *place = lookup_value(body, view, at);
    if (place && !guard)
        place = name_place(body, view->in[1], place);
    return in_lane(body->e->arena, &body->lane, through_view(body->e, view, at, place));
}

/* A view is the term of what it reads, unless it does so under a condition. */
static Term *term_of(Body *body, const Node *n, const Index *at, const Tree *guard) {
    const Known *known = find_known(body, n, at);
    Term *term = find_term(body, n, at);
    if (term) {
        widen(body->e->arena, term, guard);
    } else if (n->op->cls == OP_VIEW && !known && !is_loaded(body->kernel, n)) {
        Index from = *at;
        const Tree *own_guard = go_through(body, n, &from, guard);
        int holds = own_guard ? assumed(body, own_guard) : 1;
        if (holds == 1)
            return term_of(body, n->in[0], &from, guard);
        term = new_term(body, n, at, guard);
        if (holds == 0) {
            term->form = literal_tree(body->e, n->attr.value, n->type.dtype);
            term->plain = true;
        } else {
            term->own_guard = body_named(body, own_guard, MOST_OF_CONDITION, "bool", "inside");
            describe_guarded(body, term, &from);
        }
        judge(body, term);
    } else {
        term = new_term(body, n, at, guard);
        describe(body, term, known, at);
        judge(body, term);
    }
    term->uses++;
    return term;
}

/* ---- values ---- */

static bool is_invariant(const Body *body, const Term *term, const Tree *value) {
    if (!body->outer || body_depends_on(body, value))
        return false;
    return term->uniform || (term->fixed && term->costly) || (term->loaded && may_load_around(body));
}

static const Tree *guarded_local(const Body *body, const Term *term, const Tree *value) {
    Arena *arena = body->e->arena;
    if (!term->guard)
        return value;
    if (!term->pack)
        return guarded(body->e, term->guard, value, 0, term->node->type.dtype);
    const char *zeros = arena_printf(arena, "%s{}", body_pack_type(body, term->node->type.dtype, body->lane.count));
    return tree_choice(arena, term->guard, value, tree_name(arena, zeros));
}

static const Tree *keep(Body *body, Term *term, const Tree *value) {
    Body *owner = body;
    value = guarded_local(body, term, value);
    while (is_invariant(owner, term, value))
        owner = owner->outer;
    const char *name = names_claim(&body->names, local_name(body->e->arena, term->node));
    if (owner != body)
        names_take(&owner->names, name);
    bool reads_data = term->loaded && !term->buffer;
    Writer *out = reads_data && owner->before_gate ? owner->before_gate : owner->out;
    out->at = term->node->src;
    const char *type = c_type(body->e, term->node->type.dtype);
    term->local = tree_name(body->e->arena, name);
    if (term->pack) {
        type = body_pack_type(body, term->node->type.dtype, body->lane.count);
        term->local = lane_of_pack(body->e->arena, term->local);
    }
    body_declare(owner, term->local);
    write_line(out, "%s %s = %s;", type, name, body_text_for(owner, out, value));
    if (owner != body && !term->guard)
        VEC_PUSH(body->e->arena, &owner->known, ((Known){term->node, &term->at, term->local, 0}));
    return term->local;
}

static bool is_shared(const Term *term) {
    return !term->plain && (term->uses > 1 || term->overwritten);
}

static bool worth_a_local(const Body *body, const Term *term, const Tree *value) {
    bool read_outside = term->loaded && !term->guard && is_invariant(body, term, value);
    bool scattered = term->loaded && differs_by_lane(&body->lane, value);
    return term->pack || scattered || is_shared(term) || read_outside;
}

/* What is the same for all that the body counts, as a norm's 1 / sqrt(...) of a row is, where its user is not. */
static bool is_repeated(const Term *user, const Term *operand) {
    return (operand->uniform && !user->uniform) || (operand->fixed && !user->fixed);
}

/* An operand becomes a local when it would make the line too long, when it is the same for all elements but its user is
 * not, and when it would be loaded under a condition where that keeps a loop from being vector code. */
static bool stands_alone(const Body *body, const Term *user, const Term *operand, const Tree *value) {
    bool conditional = user->node->op->prec == PREC_COND && operand != user->operand[0];
    if (operand->loaded && !operand->guard && !operand->local && conditional && body->e->dialect->nest)
        return true;
    if (operand->plain || operand->loaded || operand->local)
        return false;
    return tree_nodes(value) > MOST_PARTS || (is_repeated(user, operand) && operand->costly);
}

/* window - j == v for window == j + v, of whole numbers: what the lanes have in common is computed once. */
static const Tree *compared(Body *body, const Term *term, const Tree *const *operands) {
    Arena *arena = body->e->arena;
    bool pair = term->operands == 2 && term->node->in[0]->type.dtype == DT_I32;
    bool compares = pair && term->node->op->prec == PREC_EQUAL;
    for (int k = 0; k < 2 && compares && body->lane.count; k++) {
        const Tree *first = first_lane(operands[k]), *other = operands[1 - k];
        if (first && !differs_by_lane(&body->lane, other)) {
            const Tree *difference = tree_infix(arena, "-", other, first);
            return tree_with(arena, term->form, (const Tree *[]){difference, tree_name(arena, "v")}, 2);
        }
    }
    return tree_with(arena, term->form, operands, term->operands);
}

/* ---- long sums ---- */

static bool adds(const Term *term) {
    return term->operands == 2 && !term->local && tree_is_infix(term->form, "+");
}

/* A number of a tensor, read under no condition and here alone. */
static bool is_summand(const Term *term) {
    return term->buffer && term->node->type.dtype == DT_F32 && !term->local && !term->pack && !term->guard &&
           !is_shared(term);
}

/* The terms of a sum, the last first, if all are numbers of tensors at the same place; else none. */
static Terms summands(const Body *body, const Term *sum) {
    Terms terms = {0};
    for (const Term *at = sum;; at = at->operand[0]) {
        bool more = adds(at) && (at == sum || !is_shared(at));
        Term *last = more ? at->operand[1] : (Term *)at;
        const Tree *place = terms.count ? element_offset(terms.at[0]->form) : NULL;
        if (!is_summand(last) || (place && !tree_same(place, element_offset(last->form))))
            return (Terms){0};
        VEC_PUSH(body->e->arena, &terms, last);
        if (!more)
            return terms;
    }
}

/* A local for a sum of so many tensors that a loop over them says it; NULL: it is none. */
static const Tree *summed_in_loop(Body *body, Term *term) {
    enum { FEWEST = 16 };
    const Emitter *e = body->e;
    bool may = e->dialect->long_sum && body->above && !body->lane.count &&
               !program_is_persistent(e, program_of(e, body->kernel));
    const Terms terms = may && adds(term) ? summands(body, term) : (Terms){0};
    if (terms.count < FEWEST)
        return NULL;
    const Buffer **tensors = NEW_ARRAY(e->arena, const Buffer *, terms.count);
    for (int k = 0; k < terms.count; k++)
        tensors[k] = terms.at[terms.count - 1 - k]->buffer;
    const char *name = names_claim(&body->names, local_name(e->arena, term->node));
    term->local = tree_name(e->arena, name);
    body_declare(body, term->local);
    e->dialect->long_sum(body, name, tensors, terms.count, element_offset(terms.at[0]->form));
    return term->local;
}

static const Tree *value_of(Body *body, Term *term) {
    const Tree *local = term->local ? term->local : summed_in_loop(body, term);
    if (local)
        return local;
    const Tree *operands[MAX_INPUTS], *value = term->form;
    for (int k = 0; k < term->operands; k++) {
        operands[k] = value_of(body, term->operand[k]);
        if (stands_alone(body, term, term->operand[k], operands[k]))
            operands[k] = keep(body, term->operand[k], operands[k]);
        if (term->operands == term->node->inputs)
            operands[k] = mean_factor(body->e, term->node, k, operands[k]);
    }
    if (term->operands)
        value = compared(body, term, operands);
    return worth_a_local(body, term, value) ? keep(body, term, value) : value;
}

const Tree *body_expression(Body *body, const Node *n, const Index *at) {
    return value_of(body, term_of(body, n, at, NULL));
}

/* ---- statements ---- */

/* Loads in the statement of `term` of what an earlier statement has `written` must come before that. */
static void mark_overwritten(Term *term, const Buffer *written) {
    if (is_shared(term))
        return;
    if (term->buffer && buffers_meet(term->buffer, written))
        term->overwritten = true;
    for (int k = 0; k < term->operands; k++)
        mark_overwritten(term->operand[k], written);
}

/* "w -= x;" for w = w - x. */
static const char *assignment(Body *body, const Tree *to, const Tree *value) {
    Arena *arena = body->e->arena;
    bool again = value->kind == TREE_INFIX && value->prec >= PREC_SUM && tree_same(value->part[0], to);
    const char *left = body_text(body, to);
    if (!again)
        return arena_printf(arena, "%s = %s;", left, body_text(body, value));
    const Tree *by = value->part[1];
    const char *form = by->prec > value->prec ? "%s %s= %s;" : "%s %s= (%s);";
    return arena_printf(arena, form, left, value->text, body_text(body, by));
}

/* "sum += x;" or "peak = fmax(peak, x);" */
static const char *folding(Body *body, const Node *reduction, const Tree *into, const Tree *value) {
    Arena *arena = body->e->arena;
    const Tree *combine = tree_read(arena, reduction->op->combine);
    const char *to = body_text(body, into);
    if (combine->kind == TREE_INFIX)
        return arena_printf(arena, "%s %s= %s;", to, combine->text, body_text(body, value));
    const Tree *both[] = {into, value};
    return arena_printf(arena, "%s = %s;", to, body_text(body, tree_with(arena, combine, both, 2)));
}

/* An output with the terms and the values of what it depends on. */
typedef struct Effect {
    const Output *output;
    Term *term, *condition;   /* condition NULL: there is none */
    const Tree *value, *test; /* test NULL */
    const char *chain;        /* "b = value": the same value is assigned to more; or NULL */
} Effect;
typedef VEC(Effect) Effects;

static const char *statement(Body *body, const Effect *effect) {
    Arena *arena = body->e->arena;
    const Output *output = effect->output;
    if (effect->chain)
        return arena_printf(arena, "%s = %s;", body_text(body, output->to), effect->chain);
    if (!output->fold)
        return assignment(body, output->to, effect->value);
    const char *fold = folding(body, output->fold, output->to, effect->value);
    return effect->test ? arena_printf(arena, "if (%s)\n    %s", body_text(body, effect->test), fold) : fold;
}

/* What a later effect loads of what an earlier one writes. */
static void mark_overwritten_by(Effect *later, const Effect *earlier) {
    if (later->term != earlier->term)
        mark_overwritten(later->term, earlier->output->written);
    if (later->condition)
        mark_overwritten(later->condition, earlier->output->written);
}

/* One statement carries out both this output and the one before. */
static bool joins(const Effects *effects, int k) {
    const Effect *effect = &effects->at[k];
    return k > 0 && effect->term == effect[-1].term && !effect->output->fold && !effect[-1].output->fold;
}

/* Where lanes read the rounded value, the pack is made of that: it rounds to itself, and a register less is in use. */
static void take_rounded(const Body *body, Effect *effect) {
    const PackStore *pack = effect->output->pack;
    for (int k = 0; pack && pack->rounded && k < body->terms.count; k++) {
        Term *term = body->terms.at[k];
        if (!(term->node->op->flags & OP_WIDENS) || term->node->in[0] != pack->rounded ||
            !index_same(&term->at, &effect->output->at))
            continue;
        effect->term->uses--;
        effect->term = term;
        term->uses++;
        widen(body->e->arena, term, NULL);
        return;
    }
}

static void find_terms(Body *body, const Outputs *outputs, Effects *effects) {
    for (int k = 0; k < outputs->count; k++) {
        const Output *output = &outputs->at[k];
        Effect effect = {.output = output};
        if (output->condition)
            effect.condition = term_of(body, output->condition, &output->at, NULL);
        effect.term = term_of(body, output->node, &output->at, NULL);
        VEC_PUSH(body->e->arena, effects, effect);
    }
    for (int k = 0; k < effects->count; k++) {
        take_rounded(body, &effects->at[k]);
        if (joins(effects, k))
            effects->at[k].term->uses--;
    }
    for (int k = 0; k < effects->count; k++)
        for (int later = k + 1; later < effects->count && outputs->at[k].written; later++)
            mark_overwritten_by(&effects->at[later], &effects->at[k]);
}

static void find_values(Body *body, Effects *effects) {
    for (int k = 0; k < effects->count; k++) {
        Effect *effect = &effects->at[k];
        effect->test = effect->condition ? value_of(body, effect->condition) : NULL;
        effect->value = value_of(body, effect->term);
    }
}

/* A pack that is there already needs no statement: takes it out. */
static void take_out_whole(Effects *effects) {
    int left = 0;
    for (int k = 0; k < effects->count; k++) {
        PackStore *pack = effects->at[k].output->pack;
        const char *there = pack ? whole_pack(effects->at[k].value) : NULL;
        if (there)
            *pack = (PackStore){pack->dtype, there, pack->to, false, pack->rounded};
        else
            effects->at[left++] = effects->at[k];
    }
    effects->count = left;
}

/* Outputs in a row of one value are one statement: a = b = value. */
static void write_statements(Body *body, const Outputs *outputs) {
    Arena *arena = body->e->arena;
    Effects effects = {0};
    find_terms(body, outputs, &effects);
    find_values(body, &effects);
    take_out_whole(&effects);
    for (int k = effects.count - 1; k > 0; k--)
        if (joins(&effects, k)) {
            const char *right = effects.at[k].chain ? effects.at[k].chain : body_text(body, effects.at[k].value);
            effects.at[k - 1].chain = arena_printf(arena, "%s = %s", body_text(body, effects.at[k].output->to), right);
        }
    for (int k = 0; k < effects.count; k++) {
        if (joins(&effects, k))
            continue;
        body->out->at = effects.at[k].output->node->src;
        write_line(body->out, "%s", statement(body, &effects.at[k]));
    }
}

/* Rounded as a pack, in half the instructions: lanes compute what is rounded. */
static bool is_rounded_whole(const Body *lane, const Output *output) {
    return output->node->op->rounds && is_computed(lane, output->node, &output->at);
}

/* What becomes of an output in each lane: it goes to an element of a pack, where the lanes' places are neighbours. */
static Output lane_output(Body *lane, const Output *output) {
    Arena *arena = lane->e->arena;
    Output result = *output;
    if (output->fold)
        return result;
    if (!is_pack(lane, output->to)) {
        result.to = in_lane(arena, &lane->lane, output->to);
        return result;
    }
    const Node *rounded = is_rounded_whole(lane, output) ? output->node : NULL;
    const char *name = names_claim(&lane->outer->names, local_name(arena, output->node));
    result.node = rounded ? rounded->in[0] : output->node;
    result.to = lane_of_pack(arena, tree_name(arena, name));
    result.written = NULL; /* only behind the loop */
    result.pack = NEW(arena, PackStore);
    *result.pack = (PackStore){result.node->type.dtype, name, element_address(arena, output->to), true, rounded};
    return result;
}

static void write_pack_store(Body *body, const PackStore *pack) {
    const char *conversion = pack->rounded ? pack->rounded->op->c : "$0";
    const Tree *name = tree_name(body->e->arena, pack->name);
    const Tree *value = tree_form(body->e->arena, conversion, &name, 1);
    write_line(body->out, "store_pack(%s, %s);", body_text(body, pack->to), body_text(body, value));
}

static void write_vector(Body *body, const Outputs *outputs) {
    Arena *arena = body->e->arena;
    Writer lines = writer_like(body->out);
    names_take(&body->names, "v");
    Body lane = body_inside(body, &lines, "v", NULL);
    lane.lane = (Lanes){body->along, body->lanes};
    lane.reads = body->reads;
    lane.read_from = body->read_from;
    Outputs of_lane = {0};
    VEC(PackStore *) packs = {0};
    for (int k = 0; k < outputs->count; k++) {
        Output output = lane_output(&lane, &outputs->at[k]);
        VEC_PUSH(arena, &of_lane, output);
        if (output.pack)
            VEC_PUSH(arena, &packs, output.pack);
    }
    write_statements(&lane, &of_lane);
    for (int k = 0; k < packs.count; k++)
        if (packs.at[k]->filled)
            write_line(body->out, "%s %s;", body_pack_type(body, packs.at[k]->dtype, body->lanes), packs.at[k]->name);
    if (lines.lines.count)
        write_block(body->out, arena_printf(arena, "for (int v = 0; v < %d; v++)", body->lanes), &lines);
    for (int k = 0; k < packs.count; k++)
        write_pack_store(body, packs.at[k]);
}

void body_write(Body *body, const Outputs *outputs) {
    if (body->lanes > 1)
        write_vector(body, outputs);
    else
        write_statements(body, outputs);
}
