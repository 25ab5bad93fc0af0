/* What becomes of values: statements, and in vector code the loop over the lanes. */
#include "emit/kernel/term.h"

#include <stdlib.h>

/* Loads in the statement of `term` of what an earlier statement has `written` must come before that. */
static void mark_overwritten(Term *term, const Buffer *written) {
    if (term_is_shared(term))
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
        term_widen(body->e->arena, term, NULL);
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

/* 0 is added to a sum, which began with 0 and hence is never -0. */
static bool adds_nothing(const Effect *effect) {
    const Node *fold = effect->output->fold;
    return fold && op_adds(fold->op) && effect->value->kind == TREE_NUMBER && strtod(effect->value->text, NULL) == 0;
}

/* A pack that is there already needs no statement, nor does a 0 that is added: takes them out. */
static void take_out_needless(Effects *effects) {
    int left = 0;
    for (int k = 0; k < effects->count; k++) {
        PackStore *pack = effects->at[k].output->pack;
        const char *there = pack ? whole_pack(effects->at[k].value) : NULL;
        if (there)
            *pack = (PackStore){pack->dtype, there, pack->to, false, pack->rounded};
        else if (!adds_nothing(&effects->at[k]))
            effects->at[left++] = effects->at[k];
    }
    effects->count = left;
}

/* Outputs in a row of one value are one statement: a = b = value. Returns false where all are needless: then nobody reads the locals. */
static bool write_statements(Body *body, const Outputs *outputs) {
    Arena *arena = body->e->arena;
    Effects effects = {0};
    find_terms(body, outputs, &effects);
    find_values(body, &effects);
    take_out_needless(&effects);
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
    return effects.count > 0;
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
    if (output->to && !is_pack(lane, output->to)) {
        result.to = in_lane(arena, &lane->lane, output->to);
        return result;
    }
    const Node *rounded = is_rounded_whole(lane, output) ? output->node : NULL;
    const char *name = names_claim(&lane->outer->names, local_name(arena, output->node));
    result.node = rounded ? rounded->in[0] : output->node;
    result.to = lane_of_pack(arena, tree_name(arena, name));
    result.written = NULL; /* only behind the loop */
    result.pack = NEW(arena, PackStore);
    const Tree *address = output->to ? element_address(arena, output->to) : NULL;
    *result.pack = (PackStore){result.node->type.dtype, name, address, true, rounded};
    return result;
}

static void write_pack_store(Body *body, const PackStore *pack) {
    const char *conversion = pack->rounded ? pack->rounded->op->c : "$0";
    const Tree *name = tree_name(body->e->arena, pack->name);
    const Tree *value = tree_form(body->e->arena, conversion, &name, 1);
    if (!pack->to) {
        write_line(body->out, "return %s;", body_text(body, value));
        return;
    }
    write_line(body->out, "store_pack(%s, %s);", body_text(body, pack->to), body_text(body, value));
}

static bool are_integers(const Node *factor) {
    while (factor->op->flags & (OP_REPEATS | OP_CONTIGUOUS))
        factor = factor->in[0];
    return factor->op->flags & OP_WIDENS && factor->in[0]->type.dtype == DT_I8;
}

bool adds_integers(const Node *reduction) {
    const Node *terms = reduction->in[0];
    while (terms->op->flags & OP_CONTIGUOUS)
        terms = terms->in[0];
    return op_adds(reduction->op) && terms->op->flags & OP_MULTIPLIES && are_integers(terms->in[0]) &&
           are_integers(terms->in[1]);
}

/* "to_float(x[v])": x. */
static const char *widened_pack(const Tree *factor) {
    return factor->kind == TREE_CALL && factor->count == 1 ? whole_pack(factor->part[0]) : NULL;
}

/* "sum = add_products(a, b, sum);" behind what loads the packs, in place of a loop over the lanes. */
static bool write_products(Body *lane, const Outputs *outputs) {
    const Output *output = &outputs->at[0];
    if (lane->kernel->at_once < 2 || outputs->count > 1 || !output->fold || !adds_integers(output->fold))
        return false;
    Effects effects = {0};
    find_terms(lane, outputs, &effects);
    find_values(lane, &effects);
    const Tree *product = effects.at[0].value;
    const bool infix = product->kind == TREE_INFIX;
    const char *a = infix ? widened_pack(product->part[0]) : NULL, *b = infix ? widened_pack(product->part[1]) : NULL,
               *sum = body_text(lane, output->to);
    if (a && b)
        write_line(lane->outer->out, "%s = add_products(%s, %s, %s);", sum, a, b, sum);
    return a && b;
}

static void write_vector(Body *body, const Outputs *outputs) {
    Arena *arena = body->e->arena;
    Writer lines = writer_like(body->out);
    names_take(&body->names, "v");
    Body lane = body_inside(body, &lines, "v", NULL);
    lane.lane = (Lanes){body->along, body->lanes};
    lane.reads = body->reads;
    lane.read_from = body->read_from;
    lane.steady_reads = body->steady_reads;
    lane.steady_from = body->steady_from;
    memcpy(lane.varying, body->varying, sizeof lane.varying);
    Outputs of_lane = {0};
    VEC(PackStore *) packs = {0};
    for (int k = 0; k < outputs->count; k++) {
        Output output = lane_output(&lane, &outputs->at[k]);
        VEC_PUSH(arena, &of_lane, output);
        if (output.pack)
            VEC_PUSH(arena, &packs, output.pack);
    }
    if (write_products(&lane, &of_lane))
        return;
    const bool computes = write_statements(&lane, &of_lane);
    for (int k = 0; k < packs.count; k++)
        if (packs.at[k]->filled)
            write_line(body->out, "%s %s;", body_pack_type(body, packs.at[k]->dtype, body->lanes), packs.at[k]->name);
    if (computes)
        write_block(body->out, arena_printf(arena, "for (int v = 0; v < %d; v++)", body->lanes), &lines);
    for (int k = 0; k < packs.count; k++)
        write_pack_store(body, packs.at[k]);
}

void body_find(Body *body, const Outputs *outputs) {
    Effects effects = {0};
    find_terms(body, outputs, &effects);
}

bool body_write(Body *body, const Outputs *outputs) {
    if (body->lanes <= 1)
        return write_statements(body, outputs);
    write_vector(body, outputs);
    return true;
}
