#include "emit/expr.h"

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
    bool plain;            /* a name or a constant: as short as a local would be */
    bool uniform;          /* the same number for each element of the kernel */
    bool costly;           /* worth computing once */
    const char *guard;     /* the condition under which its loads are in bounds; NULL: they always are */
    const char *own_guard; /* a view that reads under a condition: that */
    bool overwritten;      /* an earlier statement of the body writes over what this one loads */
    const char *local;
};

Body body_new(Emitter *e, const Kernel *kernel, const char *name, Writer *out) {
    return (Body){.e = e, .kernel = kernel, .name = name, .out = out, .names = {.arena = e->arena}};
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

static const Known *find_known(const Body *body, const Node *n, const char *key) {
    for (; body; body = body->outer)
        for (int k = 0; k < body->known.count; k++) {
            const Known *known = &body->known.at[k];
            if (known->node == n && (!known->key || strcmp(known->key, key) == 0))
                return known;
        }
    return NULL;
}

/* ---- where values lie ---- */

/* The name of what a row computes once, or the text itself. */
static const char *once_in_row(const Body *body, const char *text) {
    for (; body; body = body->outer)
        for (int k = 0; body->per_row && k < body->per_row->count; k++)
            if (strcmp(body->per_row->at[k].text, text) == 0)
                return body->per_row->at[k].name;
    return text;
}

/* "t.image[row(batch, i) * IMAGE + j]" */
static const char *field_element(const Body *body, const Node *n, const Index *at, const Shape *shape) {
    Emitter *e = body->e;
    Arena *arena = e->arena;
    int64_t batch = shape->type.dim[0], elements = type_elements(&shape->type) / batch;
    Shape flat = {{.rank = 2, .dim = {batch, elements}}, {shape->symbol[0], sizes_example(e->sizes, n)}};
    Index index = index_reshape(arena, at, shape, &flat), rows = {0};
    const char *row = arena_printf(arena, "row(batch, %s)", index_axis(arena, &index, &flat, 0));
    index_push(&rows, 1, once_in_row(body, row));
    index_push(&rows, 1, index_axis(arena, &index, &flat, 1));
    const char *name = e->field[n->attr.index];
    return arena_printf(arena, "%s%s[%s]", e->target->member, name, index_offset(arena, &rows, &flat));
}

const char *stored_element(Emitter *e, const Node *n, const Index *at) {
    Shape shape = sizes_shape(e->sizes, n);
    const char *name = tensor_name(e, plan_buffer(e->plan, n));
    return arena_printf(e->arena, "%s%s[%s]", e->target->member, name, index_offset(e->arena, at, &shape));
}

static const char *loaded_element(const Body *body, const Node *n, const Index *at) {
    Shape shape = sizes_shape(body->e->sizes, n);
    return n->op->table == TABLE_FIELD ? field_element(body, n, at, &shape) : stored_element(body->e, n, at);
}

/* The element of a row's vector: the index along the inner axes only. */
static const char *vector_element(Emitter *e, const Known *known, const Index *at) {
    Shape domain = sizes_shape(e->sizes, known->node), shape = {0};
    Index inner = {0};
    for (int axis = 0; axis < domain.type.rank; axis++) {
        int first = axis;
        for (; known->inner >> axis & 1; axis++) {
            shape.type.dim[shape.type.rank] = domain.type.dim[axis];
            shape.symbol[shape.type.rank++] = domain.symbol[axis];
        }
        Index part = index_slice(e->arena, at, &domain, first, axis - first);
        index_append(&inner, &part);
    }
    return arena_printf(e->arena, "%s[%s]", known->text, index_offset(e->arena, &inner, &shape));
}

/* ---- terms ---- */

static Term *term_of(Body *body, const Node *n, const Index *at, const char *guard);

static bool is_loaded(const Kernel *kernel, const Node *n) {
    if (n->op->flags & OP_BUFFER)
        return true;
    for (int k = 0; k < kernel->loads.count; k++)
        if (kernel->loads.at[k] == n)
            return true;
    return false;
}

const char *template_at(Emitter *e, const Node *n, const Index *at) {
    enum { FIRST = MAX_INPUTS };
    Arena *arena = e->arena;
    const char *values[10] = {"$0", "$1", "$2"};
    Text pattern = TEXT(arena);
    Shape shape = sizes_shape(e->sizes, n);
    int count = FIRST;
    for (const char *c = n->op->c; *c; c++) {
        if (c[0] != '$' || (c[1] >= '0' && c[1] <= '9')) {
            text_putc(&pattern, *c);
            continue;
        }
        switch (*++c) {
        case 'v': values[count] = literal(e, n->attr.value, n->type.dtype); break;
        case 'n': values[count] = arena_printf(arena, "%d", n->attr.index); break;
        case 't': values[count] = c_type(e, n->type.dtype); break;
        case 'l': values[count] = index_offset(arena, at, &shape); break;
        case 'i': values[count] = index_axis(arena, at, &shape, *++c - '0'); break;
        default: ICE("unknown '$%c' in the template of %s", *c, n->op->name);
        }
        text_printf(&pattern, "$%d", count++);
    }
    return substitute(arena, text_string(&pattern), values, count);
}

static void describe_map(Body *body, Term *term, const Index *at) {
    const Node *n = term->node;
    term->pattern = template_at(body->e, n, at);
    term->operands = n->inputs;
    for (int k = 0; k < n->inputs; k++)
        term->operand[k] = term_of(body, n->in[k], at, term->guard);
}

const char *through_view(Emitter *e, const Node *view, Index *at) {
    Shape shape = sizes_shape(e->sizes, view), operand = sizes_shape(e->sizes, view->in[0]);
    const char *guard = NULL;
    *at = view->op->flags & OP_CONTIGUOUS ? index_reshape(e->arena, at, &shape, &operand)
                                          : index_view(e->arena, view, at, &shape, &guard);
    return guard;
}

/* "a && b", "a || b" */
static const char *joined(Arena *arena, const char *a, const char *infix, const char *b) {
    return arena_printf(arena, "%s %s %s", parenthesised(arena, a, PREC_EQUAL), infix,
                        parenthesised(arena, b, PREC_EQUAL));
}

static const char *guarded(const Emitter *e, const char *guard, const char *text, DType dtype) {
    return arena_printf(e->arena, "%s ? %s : %s", parenthesised(e->arena, guard, PREC_OR),
                        parenthesised(e->arena, text, PREC_COND), literal(e, 0, dtype));
}

/* The condition under which the operands of a term are read, if the term itself is under `guard`. */
static const char *guard_below(Arena *arena, const Term *term, const char *guard) {
    if (!guard || !term->own_guard)
        return guard ? guard : term->own_guard;
    return joined(arena, guard, "&&", term->own_guard);
}

static void describe_guarded(Body *body, Term *term, const Index *from) {
    const char *guard = guard_below(body->e->arena, term, term->guard);
    term->operand[term->operands++] = term_of(body, term->node->in[0], from, guard);
    term->pattern = guarded(body->e, term->own_guard, "$0", term->node->type.dtype);
}

/* The term is also read under another condition, or without one. */
static void widen(Arena *arena, Term *term, const char *guard) {
    if (!term->guard || (guard && strstr(term->guard, guard)))
        return;
    term->guard = guard ? joined(arena, term->guard, "||", guard) : NULL;
    for (int k = 0; k < term->operands; k++)
        widen(arena, term->operand[k], guard_below(arena, term, term->guard));
}

static void describe_load(Body *body, Term *term, const Index *at) {
    const Node *n = term->node;
    Emitter *e = body->e;
    term->pattern = loaded_element(body, n, at);
    if (body->reads && !term->guard) {
        const char *name = names_claim(&body->names, local_name(e->arena, n));
        VEC_PUSH(e->arena, body->reads, ((Read){n, name, term->pattern}));
        term->pattern = arena_printf(e->arena, "%s%s", body->read_from, name);
        return;
    }
    term->buffer = n->op->table == TABLE_FIELD ? NULL : plan_buffer(e->plan, n);
    term->loaded = true;
    term->plain = false;
}

static void describe(Body *body, Term *term, const Known *known, const Index *at) {
    Emitter *e = body->e;
    const Node *n = term->node;
    term->plain = true;
    if (known) {
        term->pattern = known->inner ? vector_element(e, known, at) : known->text;
    } else if (is_loaded(body->kernel, n)) {
        describe_load(body, term, at);
    } else if (n->op->table == TABLE_KNOB) {
        term->pattern = arena_printf(e->arena, "%s%s", e->target->member, e->knob[n->attr.index]);
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

/* A view is the term of what it reads, unless it does so under a condition. */
static Term *term_of(Body *body, const Node *n, const Index *at, const char *guard) {
    const char *key = index_key(body->e->arena, at);
    const Known *known = find_known(body, n, key);
    Term *term = find_term(body, n, key);
    if (term) {
        widen(body->e->arena, term, guard);
    } else if (n->op->cls == OP_VIEW && !known && !is_loaded(body->kernel, n)) {
        Index from = *at;
        const char *own_guard = through_view(body->e, n, &from);
        if (!own_guard)
            return term_of(body, n->in[0], &from, guard);
        term = new_term(body, n, key, guard);
        term->own_guard = own_guard;
        describe_guarded(body, term, &from);
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

const char *local_name(Arena *arena, const Node *n) {
    if (!n->name && n->hint)
        return n->hint;
    const Node *from = n;
    while (!from->name && from->inputs) {
        int k = 0;
        while (k + 1 < from->inputs && !from->in[k]->name && !from->in[k]->inputs)
            k++;
        from = from->in[k];
    }
    return from == n    ? n->name ? n->name : n->op->name
           : from->name ? arena_printf(arena, "%s_%s", from->name, n->op->name)
                        : n->op->name;
}

static bool depends_on(const Body *body, const char *text) {
    for (int k = 0; body->variables[k]; k++)
        if (has_word(text, body->variables[k]))
            return true;
    return false;
}

/* A statement of the outermost body may run before what it would read is complete: see `schedules`. */
static bool may_load_around(const Body *body) {
    return !body->once && (body->outer->outer || !body->e->target->schedules);
}

static bool is_invariant(const Body *body, const Term *term, const char *text) {
    if (!body->outer || depends_on(body, text))
        return false;
    return term->uniform || (term->loaded && may_load_around(body));
}

static const char *keep(Body *body, Term *term, const char *text) {
    Body *owner = body;
    if (term->guard)
        text = guarded(body->e, term->guard, text, term->node->type.dtype);
    while (is_invariant(owner, term, text))
        owner = owner->outer;
    term->local = names_claim(&body->names, local_name(body->e->arena, term->node));
    if (owner != body)
        names_take(&owner->names, term->local);
    bool reads_data = term->loaded && !term->buffer;
    Writer *out = reads_data && owner->before_gate ? owner->before_gate : owner->out;
    out->at = term->node->src;
    write_line(out, "%s %s = %s;", c_type(body->e, term->node->type.dtype), term->local, text);
    if (owner != body && !term->guard)
        VEC_PUSH(body->e->arena, &owner->known, ((Known){term->node, term->key, term->local, 0}));
    return term->local;
}

static bool is_shared(const Term *term) {
    return !term->plain && (term->uses > 1 || term->overwritten);
}

static bool worth_a_local(const Body *body, const Term *term, const char *text) {
    bool read_outside = term->loaded && !term->guard && is_invariant(body, term, text);
    return is_shared(term) || read_outside;
}

/* An operand becomes a local when it would make the line too long, and when it is the same for all elements but its user
 * is not. */
static bool stands_alone(const Term *user, const Term *operand, const char *text) {
    if (operand->plain || operand->loaded || operand->local)
        return false;
    return strlen(text) > LONGEST_OPERAND || (operand->uniform && !user->uniform && operand->costly);
}

static const char *text_of(Body *body, Term *term) {
    if (term->local)
        return term->local;
    const char *operands[MAX_INPUTS], *text = term->pattern;
    for (int k = 0; k < term->operands; k++) {
        operands[k] = text_of(body, term->operand[k]);
        if (stands_alone(term, term->operand[k], operands[k]))
            operands[k] = keep(body, term->operand[k], operands[k]);
    }
    if (term->operands)
        text = substitute(body->e->arena, text, operands, term->operands);
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

static const char *statement(Arena *arena, const Output *output, const char *value) {
    if (output->fold)
        return substitute(arena, output->fold, &value, 1);
    return assignment(arena, output->to, value);
}

/* One statement carries out both this output and the one before. */
static bool joins(const Outputs *outputs, Term *const *terms, int k) {
    return k > 0 && terms[k] == terms[k - 1] && !outputs->at[k].fold && !outputs->at[k - 1].fold;
}

static void find_terms(Body *body, const Outputs *outputs, Term **terms) {
    for (int k = 0; k < outputs->count; k++) {
        terms[k] = term_of(body, outputs->at[k].node, &outputs->at[k].at, NULL);
        if (joins(outputs, terms, k))
            terms[k]->uses--;
    }
    for (int k = 0; k < outputs->count; k++)
        for (int later = k + 1; later < outputs->count && outputs->at[k].written; later++)
            if (terms[later] != terms[k])
                mark_overwritten(terms[later], outputs->at[k].written);
}

/* Outputs in a row of one value are one statement: a = b = value. */
void body_write(Body *body, const Outputs *outputs) {
    Arena *arena = body->e->arena;
    Term **terms = NEW_ARRAY(arena, Term *, outputs->count);
    const char **texts = NEW_ARRAY(arena, const char *, outputs->count);
    find_terms(body, outputs, terms);
    for (int k = 0; k < outputs->count; k++)
        texts[k] = text_of(body, terms[k]);
    for (int k = outputs->count - 1; k > 0; k--)
        if (joins(outputs, terms, k))
            texts[k - 1] = arena_printf(arena, "%s = %s", outputs->at[k].to, texts[k]);
    for (int k = 0; k < outputs->count; k++) {
        if (joins(outputs, terms, k))
            continue;
        body->out->at = outputs->at[k].node->src;
        write_line(body->out, "%s", statement(arena, &outputs->at[k], texts[k]));
    }
}
