/* Where values lie: an element of the data, of a tensor or of a row's vector as text; and through which view, at which index. */
#include "emit/kernel/element.h"

const Known *find_known(const Body *body, const Node *n, const char *key) {
    for (; body; body = body->outer)
        for (int k = 0; k < body->known.count; k++) {
            const Known *known = &body->known.at[k];
            if (known->node == n && (!known->key || strcmp(known->key, key) == 0))
                return known;
        }
    return NULL;
}

/* ---- in memory ---- */

const char *once_in_row(const Body *body, const char *text) {
    for (; body; body = body->outer)
        for (int k = 0; body->per_row && k < body->per_row->count; k++)
            if (strcmp(body->per_row->at[k].text, text) == 0)
                return body->per_row->at[k].name;
    return text;
}

/* The field [examples, elements] as it lies: windows of a text begin where the run says, not where others end. */
static Shape in_data_set(Emitter *e, const Node *field, const Shape *flat) {
    Shape lies = *flat;
    const char *stride = e->stride[field->attr.index];
    if (stride) {
        lies.type.dim[1] = 2; /* a stride counts, of windows of one token too */
        lies.symbol[1] = arena_printf(e->arena, "%s%s", e->dialect->member, stride);
    }
    return lies;
}

/* "t.image[row(batch, i) * IMAGE + j]", "t.window[row(batch, i) * t.window_stride + j]" */
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
    flat = in_data_set(e, n, &flat);
    return arena_printf(arena, "%s%s[%s]", e->dialect->member, name, index_offset(arena, &rows, &flat));
}

const char *stored_element(Emitter *e, const Node *n, const Index *at) {
    Shape shape = sizes_shape(e->sizes, n);
    const char *name = tensor_name(e, plan_buffer(e->plan, n));
    return arena_printf(e->arena, "%s%s[%s]", e->dialect->member, name, index_offset(e->arena, at, &shape));
}

const char *element_offset(Arena *arena, const char *element) {
    const char *from = strchr(element, '[') + 1;
    return arena_strndup(arena, from, strlen(from) - 1);
}

const char *element_address(Arena *arena, const char *element) {
    const char *offset = element_offset(arena, element);
    int name = (int)(strchr(element, '[') - element);
    return strcmp(offset, "0") == 0 ? arena_printf(arena, "%.*s", name, element)
                                    : arena_printf(arena, "%.*s + %s", name, element, offset);
}

const char *loaded_element(const Body *body, const Node *n, const Index *at) {
    Shape shape = sizes_shape(body->e->sizes, n);
    return n->op->table == TABLE_FIELD ? field_element(body, n, at, &shape) : stored_element(body->e, n, at);
}

const char *vector_element(Emitter *e, const Known *known, const Index *at) {
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

const char *in_lane(Arena *arena, const Lanes *lanes, const char *text) {
    return text && lanes && lanes->count ? lane_text(arena, lanes, text) : text;
}

bool is_loaded(const Kernel *kernel, const Node *n) {
    if (n->op->flags & OP_BUFFER)
        return true;
    for (int k = 0; k < kernel->loads.count; k++)
        if (kernel->loads.at[k] == n)
            return true;
    return false;
}

/* What meets rounded numbers need not be more exact than those. */
static const char *template_of(const Emitter *e, const OpDef *op) {
    bool rounded = e->module->precision != PRECISION_FP32 && !e->mathematics;
    return op->near && e->dialect->near && rounded ? op->near : op->c;
}

const char *template_at(Emitter *e, const Node *n, const Index *at, const Lanes *lanes) {
    enum { FIRST = MAX_INPUTS };
    Arena *arena = e->arena;
    const char *values[10] = {"$0", "$1", "$2"};
    Text pattern = TEXT(arena);
    Shape shape = sizes_shape(e->sizes, n);
    int count = FIRST;
    for (const char *c = template_of(e, n->op); *c; c++) {
        if (c[0] != '$' || (c[1] >= '0' && c[1] <= '9')) {
            text_putc(&pattern, *c);
            continue;
        }
        switch (*++c) {
        case 'v': values[count] = literal(e, n->attr.value, n->type.dtype); break;
        case 'n': values[count] = arena_printf(arena, "%d", n->attr.index); break;
        case 't': values[count] = c_type(e, n->type.dtype); break;
        case 'l': values[count] = in_lane(arena, lanes, index_offset(arena, at, &shape)); break;
        case 'i': values[count] = in_lane(arena, lanes, index_axis(arena, at, &shape, *++c - '0')); break;
        default: ICE("unknown '$%c' in the template of %s", *c, n->op->name);
        }
        text_printf(&pattern, "$%d", count++);
    }
    return substitute(arena, text_string(&pattern), values, count);
}

/* ---- through operators ---- */

const char *through_view(Emitter *e, const Node *view, Index *at, const char *looked_up) {
    Shape shape = sizes_shape(e->sizes, view), operand = sizes_shape(e->sizes, view->in[0]);
    const char *guard = NULL;
    *at = view->op->flags & OP_CONTIGUOUS ? index_reshape(e->arena, at, &shape, &operand)
                                          : index_view(e->arena, view, at, &shape, looked_up, &guard);
    return guard;
}

Index lookup_index(Emitter *e, const Node *lookup, const Index *at) {
    Shape shape = sizes_shape(e->sizes, lookup);
    return index_slice(e->arena, at, &shape, 0, lookup->in[1]->type.rank);
}

const char *guarded(const Emitter *e, const char *guard, const char *text, double otherwise, DType dtype) {
    return arena_printf(e->arena, "%s ? %s : %s", parenthesised(e->arena, guard, PREC_OR),
                        parenthesised(e->arena, text, PREC_COND), literal(e, otherwise, dtype));
}

const char *knob_member(const Emitter *e, const Node *knob) {
    return arena_printf(e->arena, "%s%s", e->dialect->member, e->knob[knob->attr.index]);
}

/* ---- lookups ---- */

static const char *plain_text(Body *body, const Node *n, const Index *at);

const char *lookup_value(Body *body, const Node *view, const Index *at) {
    if (!(view->op->flags & OP_LOOKUP))
        return NULL;
    Index index = lookup_index(body->e, view, at);
    return plain_text(body, view->in[1], &index);
}

static const char *plain_view(Body *body, const Node *view, const Index *at) {
    Index from = *at;
    const char *guard = through_view(body->e, view, &from, lookup_value(body, view, at));
    const char *text = plain_text(body, view->in[0], &from);
    return guard ? guarded(body->e, guard, text, view->attr.value, view->type.dtype) : text;
}

/* The value as one expression, for all lanes: a part of a place in memory, which lanes.c takes apart. */
static const char *plain_text(Body *body, const Node *n, const Index *at) {
    Arena *arena = body->e->arena;
    const Known *known = find_known(body, n, index_key(arena, at));
    if (known)
        return known->inner ? vector_element(body->e, known, at) : known->text;
    if (is_loaded(body->kernel, n))
        return loaded_element(body, n, at);
    if (n->op->table == TABLE_KNOB)
        return knob_member(body->e, n);
    if (n->op->cls == OP_VIEW)
        return plain_view(body, n, at);
    ENSURE(n->op->c);
    const char *operands[MAX_INPUTS];
    for (int k = 0; k < n->inputs; k++)
        operands[k] = plain_text(body, n->in[k], at);
    return substitute(arena, template_at(body->e, n, at, NULL), operands, MAX_INPUTS);
}
