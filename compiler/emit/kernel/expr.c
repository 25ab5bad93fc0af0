#include "emit/kernel/element.h"
#include "emit/text/guard.h"

enum { LONGEST_OPERAND = 64 };

/* The value of a node at an index. */
struct Term {
    const Node *node;
    const char *key;     /* of the index */
    const char *pattern; /* C, with $0 .. for the operands */
    Term *operand[MAX_INPUTS];
    int operands, uses;
    const Buffer *buffer; /* loaded from there; NULL: from a data field */
    bool loaded;
    bool pack;             /* the pattern loads it for all lanes */
    bool plain;            /* a name or a constant: as short as a local would be */
    bool uniform;          /* the same number for each element of the kernel */
    bool costly;           /* worth computing once */
    const char *guard;     /* the condition under which its loads are in bounds; NULL: they always are */
    const char *own_guard; /* a view that reads under a condition: that */
    bool overwritten;      /* an earlier statement of the body writes over what this one loads */
    const char *local;
};

Body body_new(Emitter *e, const Kernel *kernel, const char *name, Writer *out) {
    Names names = {.arena = e->arena, .defined = e->dialect->defines};
    return (Body){.e = e, .kernel = kernel, .name = name, .out = out, .names = names};
}

Body body_inside(Body *outer, Writer *out, const char *variable, const char *variable_2) {
    Body body = body_new(outer->e, outer->kernel, outer->name, out);
    body.outer = outer;
    body.names.outer = &outer->names;
    body.variables[0] = variable;
    body.variables[1] = variable_2;
    return body;
}

void body_know(Body *body, const Node *n, const char *text) {
    VEC_PUSH(body->e->arena, &body->known, ((Known){.node = n, .text = text}));
}

void body_know_vector(Body *body, const Node *n, const char *text, unsigned inner) {
    VEC_PUSH(body->e->arena, &body->known, ((Known){.node = n, .text = text, .inner = inner}));
}

/* ---- terms ---- */

static Term *term_of(Body *body, const Node *n, const Index *at, const char *guard);

/* The kernel computes the value at the index; it has it from nowhere. */
static bool is_computed(const Body *body, const Node *n, const Index *at) {
    return !is_loaded(body->kernel, n) && !find_known(body, n, index_key(body->e->arena, at));
}

/* In vector code, what is rounded to a narrower type and back does not pass through that. */
static void describe_map(Body *body, Term *term, const Index *at) {
    const Node *n = term->node, *narrow = n->op->flags & OP_WIDENS ? n->in[0] : NULL;
    bool rounds = narrow && narrow->op->rounds && body->lane.count && is_computed(body, narrow, at);
    term->pattern = rounds ? narrow->op->rounds : template_at(body->e, n, at, &body->lane);
    n = rounds ? narrow : n;
    term->operands = n->inputs;
    for (int k = 0; k < n->inputs; k++)
        term->operand[k] = term_of(body, n->in[k], at, term->guard);
}

/* The condition under which the operands of a term are read, if the term itself is under `guard`. */
static const char *guard_below(Arena *arena, const Term *term, const char *guard) {
    return guard_and(arena, guard, term->own_guard);
}

static void describe_guarded(Body *body, Term *term, const Index *from) {
    const char *guard = guard_below(body->e->arena, term, term->guard);
    term->operand[term->operands++] = term_of(body, term->node->in[0], from, guard);
    term->pattern = guarded(body->e, term->own_guard, "$0", term->node->attr.value, term->node->type.dtype);
}

/* The term is also read under another condition, or without one. */
static void widen(Arena *arena, Term *term, const char *guard) {
    const char *wider = guard_or(arena, term->guard, guard);
    if (!term->guard || (wider && strcmp(wider, term->guard) == 0))
        return;
    term->guard = wider;
    for (int k = 0; k < term->operands; k++)
        widen(arena, term->operand[k], guard_below(arena, term, term->guard));
}

/* The lanes' elements lie side by side. */
static bool is_pack(const Body *body, const char *element) {
    return body->lane.count && lane_step(&body->lane, element_offset(body->e->arena, element)) == LANES_NEIGHBOURS;
}

static bool differs_by_lane(const Body *body, const char *text) {
    return body->lane.count && has_word(text, "v");
}

static bool depends_on(const Body *body, const char *text) {
    for (int k = 0; body->variables[k]; k++)
        if (has_word(text, body->variables[k]))
            return true;
    return false;
}

/* A local as far outside of what the body writes as the text is the same. A name is as much a matter of the body's variables as
 * its text. */
static const char *name_outside(Body *body, const char *text, const char *type, const char *wanted, bool reads_data) {
    Body *owner = body;
    while (owner->outer && owner->outer->outer && !depends_on(owner, text))
        owner = owner->outer;
    for (int k = 0; k < owner->named.count; k++)
        if (strcmp(owner->named.at[k].text, text) == 0)
            return owner->named.at[k].name;
    int variables = 0;
    while (owner->variables[variables])
        variables++;
    if (variables + 1 == MAX_VARIABLES)
        return text;
    const char *name = names_claim(&body->names, wanted);
    names_take(&owner->names, name);
    write_line(reads_data && owner->before_gate ? owner->before_gate : owner->out, "%s %s = %s;", type, name, text);
    VEC_PUSH(body->e->arena, &owner->named, ((Read){.name = name, .text = text}));
    owner->variables[variables] = name;
    return name;
}

/* Vector code says conditions and places often: those of more than `most` bytes get names. */
static const char *named(Body *lane, const char *text, size_t most, const char *type, const char *wanted) {
    if (!lane->lane.count || strlen(text) <= most || differs_by_lane(lane, text))
        return text;
    return name_outside(lane->outer, text, type, wanted, false);
}

/* What is read ahead of the body is a member of what that made. */
static void read_ahead(Body *body, Term *term, const char *text, int lanes) {
    Arena *arena = body->e->arena;
    const char *name = names_claim(&body->names, local_name(arena, term->node));
    VEC_PUSH(arena, body->reads, ((Read){term->node, name, text, lanes}));
    term->pattern = arena_printf(arena, "%s%s%s", body->read_from, name, lanes ? "[v]" : "");
}

/* "t.h[at]" for "t.h[i * H + j]" */
static const char *with_named_place(Body *lane, const char *element) {
    const char *offset = element_offset(lane->e->arena, element);
    const char *type = strstr(offset, "int64_t") || strstr(offset, "row(") ? "int64_t" : "int";
    int name = (int)(strchr(element, '[') - element);
    return arena_printf(lane->e->arena, "%.*s[%s]", name, element, named(lane, offset, 48, type, "at"));
}

/* Of an element of memory, or of a row that is held in shared memory. */
static void describe_load(Body *body, Term *term, const char *element) {
    const Node *n = term->node;
    Arena *arena = body->e->arena;
    bool pack = is_pack(body, element) && !(term->guard && differs_by_lane(body, term->guard));
    bool reads_place = strchr(element_offset(arena, element), '[');
    if (pack && !body->reads && !(term->guard && reads_place))
        element = with_named_place(body, element);
    const char *text = in_lane(arena, &body->lane, element);
    if (body->e->options->f64 && n->op->table == TABLE_FIELD && n->type.dtype == DT_F32)
        text = arena_printf(arena, "(%s)%s", c_type(body->e, DT_F32), text); /* the data set has floats */
    if (pack)
        text = arena_printf(arena, "load_pack<%d>(%s)", body->lane.count, element_address(arena, element));
    if (n->type.dtype == DT_BOOL && body->e->dialect->stored_condition)
        text = substitute(arena, body->e->dialect->stored_condition, &text, 1);
    if (body->reads && !term->guard && !(!pack && differs_by_lane(body, text))) {
        read_ahead(body, term, text, pack ? body->lane.count : 0);
        return;
    }
    term->pattern = text;
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
        term->pattern = known->inner ? vector_element(e, known, at) : known->text;
    } else if (is_loaded(body->kernel, n)) {
        describe_load(body, term, loaded_element(body, n, at));
    } else if (n->op->table == TABLE_KNOB) {
        term->pattern = knob_member(e, n);
    } else if (n->op->c) {
        describe_map(body, term, at);
        if (!term->operands)
            term->pattern = once_in_row(body, term->pattern);
        term->plain = n->op->cls == OP_LEAF || (n->op->cls == OP_INDEX && n->op->flags & OP_CHEAP);
    } else {
        ICE("%%%d %s is not complete where kernel %s reads it", n->id, n->op->name, body->kernel->name);
    }
}

static Term *find_term(const Body *body, const Node *n, const char *key) {
    for (int k = 0; k < body->terms.count; k++)
        if (body->terms.at[k]->node == n && strcmp(body->terms.at[k]->key, key) == 0)
            return body->terms.at[k];
    return NULL;
}

static Term *new_term(Body *body, const Node *n, const char *key, const char *guard) {
    Term *term = NEW(body->e->arena, Term);
    *term = (Term){.node = n, .key = key, .guard = guard};
    VEC_PUSH(body->e->arena, &body->terms, term);
    return term;
}

static void judge(Term *term) {
    const OpDef *op = term->node->op;
    bool computed = !term->loaded && term->node->type.rank == 0 && op->cls == OP_MAP;
    term->uniform = computed || op->flags & OP_SCALAR;
    term->costly = term->operands && !(op->flags & OP_CHEAP);
    for (int k = 0; k < term->operands; k++) {
        term->uniform &= term->operand[k]->uniform;
        term->costly |= term->operand[k]->costly;
    }
}

/* The condition holds for the whole body: 1; it does not: 0; that depends: -1. */
static int assumed(const Body *body, const char *condition) {
    Assumption *assumption = body->assumption;
    if (!assumption || depends_on(body, condition))
        return -1;
    if (!assumption->condition && !assumption->wanted)
        assumption->wanted = condition;
    return assumption->condition && strcmp(assumption->condition, condition) == 0 ? assumption->holds : -1;
}

/* ---- lookups ---- */

static bool is_of_data(const Node *index) {
    while (index->op->cls == OP_VIEW && !(index->op->flags & OP_LOOKUP))
        index = index->in[0];
    return index->op->table == TABLE_FIELD;
}

/* What is loaded gets a name, where a statement can stand before and needs no condition. */
static const char *name_place(Body *body, const Node *index, const char *text) {
    bool lanes = body->lane.count;
    if (body->reads || !strchr(text, '[') || (lanes && lane_step(&body->lane, text) != LANES_SAME))
        return text;
    const char *wanted = local_name(body->e->arena, index);
    return name_outside(lanes ? body->outer : body, text, "int", wanted, is_of_data(index));
}

/* What the view's result at `at` is an element of, and which. Returns the condition of that, or NULL. */
static const char *go_through(Body *body, const Node *view, Index *at, const char *guard) {
    const char *place = lookup_value(body, view, at);
    if (place && !guard)
        place = name_place(body, view->in[1], place);
    return in_lane(body->e->arena, &body->lane, through_view(body->e, view, at, place));
}

/* A view is the term of what it reads, unless it does so under a condition. */
static Term *term_of(Body *body, const Node *n, const Index *at, const char *guard) {
    const char *key = index_key(body->e->arena, at);
    const Known *known = find_known(body, n, key);
    Term *term = find_term(body, n, key);
    if (term) {
        widen(body->e->arena, term, guard);
    } else if (n->op->cls == OP_VIEW && !known && !is_loaded(body->kernel, n)) {
        Index from = *at;
        const char *own_guard = go_through(body, n, &from, guard);
        int holds = own_guard ? assumed(body, own_guard) : 1;
        if (holds == 1)
            return term_of(body, n->in[0], &from, guard);
        term = new_term(body, n, key, guard);
        if (holds == 0) {
            term->pattern = literal(body->e, n->attr.value, n->type.dtype);
            term->plain = true;
        } else {
            term->own_guard = named(body, own_guard, 24, "bool", "inside");
            describe_guarded(body, term, &from);
        }
        judge(term);
    } else {
        term = new_term(body, n, key, guard);
        describe(body, term, known, at);
        judge(term);
    }
    term->uses++;
    return term;
}

/* ---- text ---- */

/* A statement of the outermost body may run before what it would read is complete: see `schedules`. */
static bool may_load_around(const Body *body) {
    return !body->once && (body->outer->outer || !body->e->dialect->schedules);
}

static bool is_invariant(const Body *body, const Term *term, const char *text) {
    if (!body->outer || depends_on(body, text))
        return false;
    return term->uniform || (term->loaded && may_load_around(body));
}

static const char *pack_type(const Body *body, DType dtype, int lanes) {
    return arena_printf(body->e->arena, "Pack<%s, %d>", c_type(body->e, dtype), lanes);
}

static const char *guarded_local(const Body *body, const Term *term, const char *text) {
    if (!term->guard)
        return text;
    if (!term->pack)
        return guarded(body->e, term->guard, text, 0, term->node->type.dtype);
    return arena_printf(body->e->arena, "%s ? %s : %s{}", parenthesised(body->e->arena, term->guard, PREC_OR), text,
                        pack_type(body, term->node->type.dtype, body->lane.count));
}

static const char *keep(Body *body, Term *term, const char *text) {
    Body *owner = body;
    text = guarded_local(body, term, text);
    while (is_invariant(owner, term, text))
        owner = owner->outer;
    term->local = names_claim(&body->names, local_name(body->e->arena, term->node));
    if (owner != body)
        names_take(&owner->names, term->local);
    bool reads_data = term->loaded && !term->buffer;
    Writer *out = reads_data && owner->before_gate ? owner->before_gate : owner->out;
    out->at = term->node->src;
    const char *type = c_type(body->e, term->node->type.dtype), *name = term->local;
    if (term->pack) {
        type = pack_type(body, term->node->type.dtype, body->lane.count);
        term->local = arena_printf(body->e->arena, "%s[v]", name);
    }
    write_line(out, "%s %s = %s;", type, name, text);
    if (owner != body && !term->guard)
        VEC_PUSH(body->e->arena, &owner->known, ((Known){term->node, term->key, term->local, 0}));
    return term->local;
}

static bool is_shared(const Term *term) {
    return !term->plain && (term->uses > 1 || term->overwritten);
}

static bool worth_a_local(const Body *body, const Term *term, const char *text) {
    bool read_outside = term->loaded && !term->guard && is_invariant(body, term, text);
    bool scattered = term->loaded && differs_by_lane(body, text);
    return term->pack || scattered || is_shared(term) || read_outside;
}

/* An operand becomes a local when it would make the line too long, when it is the same for all elements but its user is
 * not, and when it would be loaded under a condition where that keeps a loop from being vector code. */
static bool stands_alone(const Body *body, const Term *user, const Term *operand, const char *text) {
    bool conditional = user->node->op->prec == PREC_COND && operand != user->operand[0];
    if (operand->loaded && !operand->guard && !operand->local && conditional && body->e->dialect->nest)
        return true;
    if (operand->plain || operand->loaded || operand->local)
        return false;
    return strlen(text) > LONGEST_OPERAND || (operand->uniform && !user->uniform && operand->costly);
}

/* "window - j == v" for "window == j + v", of whole numbers: what the lanes have in common is computed once. */
static const char *compared(Body *body, const Term *term, const char *const *operands) {
    Arena *arena = body->e->arena;
    bool compares = term->node->op->prec == PREC_EQUAL && term->node->in[0]->type.dtype == DT_I32;
    for (int k = 0; k < 2 && compares && body->lane.count; k++) {
        const char *first = first_lane(arena, operands[k]), *other = operands[1 - k];
        if (first && !differs_by_lane(body, other)) {
            const char *difference = substitute(arena, "$0 - $1", (const char *[]){other, first}, 2);
            return substitute(arena, term->pattern, (const char *[]){difference, "v"}, 2);
        }
    }
    return substitute(arena, term->pattern, operands, term->operands);
}

static const char *text_of(Body *body, Term *term) {
    if (term->local)
        return term->local;
    const char *operands[MAX_INPUTS], *text = term->pattern;
    for (int k = 0; k < term->operands; k++) {
        operands[k] = text_of(body, term->operand[k]);
        if (stands_alone(body, term, term->operand[k], operands[k]))
            operands[k] = keep(body, term->operand[k], operands[k]);
    }
    if (term->operands)
        text = compared(body, term, operands);
    return worth_a_local(body, term, text) ? keep(body, term, text) : text;
}

const char *body_expression(Body *body, const Node *n, const Index *at) {
    return text_of(body, term_of(body, n, at, NULL));
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

/* "w -= x" for "w = w - x". */
static const char *assignment(Arena *arena, const char *to, const char *value) {
    size_t length = strlen(to);
    const char *rest = value + length;
    bool again = strncmp(value, to, length) == 0 && rest[0] == ' ' && strchr("+-*/", rest[1]) && rest[2] == ' ';
    bool whole = again && precedence(value) == (strchr("+-", rest[1]) ? PREC_SUM : PREC_PRODUCT) &&
                 precedence(rest + 3) > precedence(value);
    return whole ? arena_printf(arena, "%s %c= %s;", to, rest[1], rest + 3)
                 : arena_printf(arena, "%s = %s;", to, value);
}

/* An output with the terms and the texts of what it depends on. */
typedef struct Effect {
    const Output *output;
    Term *term, *condition;  /* condition NULL: there is none */
    const char *text, *test; /* test NULL */
} Effect;
typedef VEC(Effect) Effects;

static const char *statement(Arena *arena, const Effect *effect) {
    if (!effect->output->fold)
        return assignment(arena, effect->output->to, effect->text);
    const char *fold = substitute(arena, effect->output->fold, &effect->text, 1);
    return effect->test ? arena_printf(arena, "if (%s)\n    %s", effect->test, fold) : fold;
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
    const char *key = index_key(body->e->arena, &effect->output->at);
    for (int k = 0; pack && pack->rounded && k < body->terms.count; k++) {
        Term *term = body->terms.at[k];
        if (!(term->node->op->flags & OP_WIDENS) || term->node->in[0] != pack->rounded || strcmp(term->key, key) != 0)
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

static void find_texts(Body *body, Effects *effects) {
    for (int k = 0; k < effects->count; k++) {
        Effect *effect = &effects->at[k];
        effect->test = effect->condition ? text_of(body, effect->condition) : NULL;
        effect->text = text_of(body, effect->term);
    }
}

/* "sum" for "sum[v]"; NULL: the text is something else, as "-sum[v]" is. */
static const char *whole_pack(Arena *arena, const char *text) {
    size_t name = strcspn(text, "[ (.-!");
    return strcmp(text + name, "[v]") == 0 ? arena_strndup(arena, text, name) : NULL;
}

/* A pack that is there already needs no statement: takes it out. */
static void take_out_whole(Body *body, Effects *effects) {
    int left = 0;
    for (int k = 0; k < effects->count; k++) {
        PackStore *pack = effects->at[k].output->pack;
        const char *there = pack ? whole_pack(body->e->arena, effects->at[k].text) : NULL;
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
    find_texts(body, &effects);
    take_out_whole(body, &effects);
    for (int k = effects.count - 1; k > 0; k--)
        if (joins(&effects, k))
            effects.at[k - 1].text = arena_printf(arena, "%s = %s", effects.at[k].output->to, effects.at[k].text);
    for (int k = 0; k < effects.count; k++) {
        if (joins(&effects, k))
            continue;
        body->out->at = effects.at[k].output->node->src;
        write_line(body->out, "%s", statement(arena, &effects.at[k]));
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
    result.to = arena_printf(arena, "%s[v]", name);
    result.written = NULL; /* only behind the loop */
    result.pack = NEW(arena, PackStore);
    *result.pack = (PackStore){result.node->type.dtype, name, element_address(arena, output->to), true, rounded};
    return result;
}

static void write_pack_store(Body *body, const PackStore *pack) {
    const char *conversion = pack->rounded ? pack->rounded->op->c : "$0";
    const char *value = substitute(body->e->arena, conversion, &pack->name, 1);
    write_line(body->out, "store_pack(%s, %s);", pack->to, value);
}

static void write_vector(Body *body, const Outputs *outputs) {
    Arena *arena = body->e->arena;
    Writer lines = writer_like(body->out);
    names_take(&body->names, "v");
    Body lane = body_inside(body, &lines, "v", NULL);
    lane.lane = (Lanes){body->e->sizes, body->along, body->lanes};
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
            write_line(body->out, "%s %s;", pack_type(body, packs.at[k]->dtype, body->lanes), packs.at[k]->name);
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
