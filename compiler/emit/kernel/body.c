/* Bodies: what they know, the text that is written to them, and names for what they say often. */
#include "emit/kernel/chains.h"

Body body_new(Emitter *e, const Kernel *kernel, const char *name, Writer *out) {
    Names names = {.arena = e->arena, .defined = e->dialect->defines, .ever = e->locals};
    return (Body){.e = e, .kernel = kernel, .name = name, .out = out, .names = names};
}

Body body_inside(Body *outer, Writer *out, const char *variable, const char *variable_2) {
    Body body = body_new(outer->e, outer->kernel, outer->name, out);
    body.outer = outer;
    body.above = outer->above;
    body.cases = outer->cases;
    body.assumption = outer->assumption;
    body.names.outer = &outer->names;
    body.variables[0] = variable;
    body.variables[1] = variable_2;
    return body;
}

bool body_begins_assumption(const Body *body) {
    return body->assumption && body->outer->assumption != body->assumption;
}

/* "x_min", of an element "sum[v]" its array; NULL: no name of the body's own. */
static const char *declared_name(const Tree *value) {
    while (value->kind == TREE_ELEMENT)
        value = value->part[0];
    return value->kind == TREE_NAME ? value->text : NULL;
}

void body_declare(Body *body, const Tree *value) {
    const char *name = declared_name(value);
    if (name)
        VEC_PUSH(body->e->arena, &body->declared, name);
}

void body_know(Body *body, const Node *n, const Tree *value) {
    body_declare(body, value);
    VEC_PUSH(body->e->arena, &body->known, ((Known){.node = n, .value = value}));
}

void body_know_vector(Body *body, const Node *n, const char *name, unsigned inner) {
    const Tree *vector = tree_name(body->e->arena, name);
    body_declare(body, vector);
    VEC_PUSH(body->e->arena, &body->known, ((Known){.node = n, .value = vector, .inner = inner}));
}

const char *body_text_for(Body *body, const Writer *out, const Tree *tree) {
    Chains *chains = NULL;
    bool early = false;
    for (Body *around = body; around; around = around->outer) {
        early |= out && out == around->before_gate;
        chains = chains ? chains : around->chains;
        around->divides |= tree_has_infix(tree, "%");
        for (int k = 0; around->per_row && k < around->per_row->count; k++)
            around->per_row->at[k].used |= tree_mentions(tree, around->per_row->at[k].name);
    }
    return chains && !early ? chains_marked(body->e->arena, chains, tree) : tree_text(body->e->arena, tree);
}

const char *body_text(Body *body, const Tree *tree) {
    return body_text_for(body, body->out, tree);
}

/* ---- names ---- */

bool body_depends_on(const Body *body, const Tree *tree) {
    for (int k = 0; body->variables[k]; k++)
        if (tree_mentions(tree, body->variables[k]))
            return true;
    for (int k = 0; k < body->declared.count; k++)
        if (tree_mentions(tree, body->declared.at[k]))
            return true;
    return false;
}

const Tree *body_name_outside(Body *body, const Tree *tree, const char *type, const char *wanted, bool reads_data) {
    Arena *arena = body->e->arena;
    Body *owner = body;
    while (owner->outer && owner->outer->outer && !body_depends_on(owner, tree) &&
           !(body->assuming && body_begins_assumption(owner)))
        owner = owner->outer;
    for (int k = 0; k < owner->named.count; k++)
        if (tree_same(owner->named.at[k].value, tree))
            return tree_name_for(arena, owner->named.at[k].name, tree);
    int variables = 0;
    while (owner->variables[variables])
        variables++;
    if (variables + 1 == MAX_VARIABLES)
        return tree;
    const char *name = names_claim(&body->names, wanted);
    names_take(&owner->names, name);
    Writer *out = reads_data && owner->before_gate ? owner->before_gate : owner->out;
    write_line(out, "%s %s = %s;", type, name, body_text_for(owner, out, tree));
    VEC_PUSH(arena, &owner->named, ((Read){.name = name, .value = tree}));
    owner->variables[variables] = name;
    return tree_name_for(arena, name, tree);
}

const Tree *body_named(Body *lane, const Tree *tree, int most, const char *type, const char *wanted) {
    if (!lane->lane.count || tree_nodes(tree) <= most || differs_by_lane(&lane->lane, tree))
        return tree;
    return body_name_outside(lane->outer, tree, type, wanted, false);
}

const Tree *lane_of_pack(Arena *arena, const Tree *pack) {
    return tree_element(arena, pack, tree_name(arena, "v"));
}

const char *whole_pack(const Tree *value) {
    bool element = value->kind == TREE_ELEMENT && value->part[0]->kind == TREE_NAME;
    bool of_lane = element && tree_is_name(value->part[1], "v");
    return of_lane ? value->part[0]->text : NULL;
}

const char *body_pack_type(const Body *body, DType dtype, int lanes) {
    return arena_printf(body->e->arena, "Pack<%s, %d>", c_type(body->e, dtype), lanes);
}
