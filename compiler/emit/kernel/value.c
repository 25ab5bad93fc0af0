/* The values of terms: expressions, and the locals that they need. */
#include "emit/kernel/function.h"
#include "emit/kernel/term.h"

/* Names and operators of an operand that is still written where it is used. Counted, not measured in bytes: whether a name is long
 * must not decide what a kernel looks like, or equal layers would not have equal kernels. */
enum { MOST_PARTS = 13 };

static bool is_invariant(const Body *body, const Term *term, const Tree *value) {
    if (!body->outer || body_depends_on(body, value) || (term->stays && body_begins_assumption(body)))
        return false;
    return term->uniform || ((term->fixed || term->loaded) && may_load_around(body));
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

bool term_is_shared(const Term *term) {
    return !term->plain && (term->uses > 1 || term->overwritten);
}

static bool worth_a_local(const Body *body, const Term *term, const Tree *value) {
    bool read_outside = term->loaded && !term->guard && is_invariant(body, term, value);
    bool scattered = term->loaded && differs_by_lane(&body->lane, value);
    return term->pack || scattered || term_is_shared(term) || read_outside;
}

/* The operator or the text says what it is: a norm's mean. */
static bool is_called(const Node *n) {
    return n->name || n->hint;
}

/* What is the same for all elements, or for all that the body counts, as a norm's 1 / sqrt(...) of a row is, where its user is not. */
static bool is_repeated(const Term *user, const Term *operand) {
    if (operand->fixed && !user->fixed)
        return operand->costly || is_called(operand->node);
    return operand->uniform && !user->uniform && operand->costly;
}

/* An operand becomes a local when it would make the line too long, when it is the same for all elements but its user is
 * not, and when it would be loaded under a condition where that keeps a loop from being vector code. */
static bool stands_alone(const Body *body, const Term *user, const Term *operand, const Tree *value) {
    bool conditional = user->node->op->prec == PREC_COND && operand != user->operand[0];
    if (operand->loaded && !operand->guard && !operand->local && conditional && body->e->dialect->nest)
        return true;
    if (operand->plain || operand->loaded || operand->local)
        return false;
    return tree_nodes(value) > MOST_PARTS || is_repeated(user, operand);
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
           !term_is_shared(term);
}

/* The terms of a sum, the last first, if all are numbers of tensors at the same place; else none. */
static Terms summands(const Body *body, const Term *sum) {
    Terms terms = {0};
    for (const Term *at = sum;; at = at->operand[0]) {
        bool more = adds(at) && (at == sum || !term_is_shared(at));
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

/* ---- numbers ---- */

/* The number that the form of the term is, whatever it reads: a choice between equal ones is that, and nobody asks which. NULL: it is none. */
static const Tree *settled(const Term *term, const Tree *form) {
    if (form->kind == TREE_NUMBER)
        return form;
    if (form->kind == TREE_OPERAND) {
        const Term *operand = term->operand[*form->text - '0'];
        return settled(operand, operand->form);
    }
    const Tree *yes = form->kind == TREE_CHOICE ? settled(term, form->part[1]) : NULL;
    const Tree *no = yes ? settled(term, form->part[2]) : NULL;
    return no && tree_same(yes, no) ? yes : NULL;
}

const Tree *value_of(Body *body, Term *term) {
    const Tree *number = settled(term, term->form);
    if (number)
        return number;
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
