/* Where values lie: an element of the data, of a tensor or of a row's vector; and through which view, at which index. */
#include "emit/kernel/element.h"

const Known *find_known(const Body *body, const Node *n, const Index *at) {
    for (; body; body = body->outer)
        for (int k = 0; k < body->known.count; k++) {
            const Known *known = &body->known.at[k];
            if (known->node == n && (!known->at || index_same(known->at, at)))
                return known;
        }
    return NULL;
}

/* ---- in memory ---- */

const Tree *once_in_row(const Body *body, const Tree *call) {
    for (; body; body = body->outer)
        for (int k = 0; body->per_row && k < body->per_row->count; k++) {
            const Read *once = &body->per_row->at[k];
            if (tree_same(once->value, call))
                return tree_name_for(body->e->arena, once->name, call);
        }
    return call;
}

/* The field [examples, elements] as it lies: windows of a text begin where the run says, not where others end. */
static Shape in_data_set(Emitter *e, const Node *field, const Shape *flat) {
    Shape lies = *flat;
    const char *stride = e->stride[field->attr.index];
    if (stride) {
        lies.type.dim[1] = 2; /* a stride counts, of windows of one token too */
        lies.size[1] = tree_member(e->arena, e->dialect->member, stride);
    }
    return lies;
}

/* t.image[row(batch, i) * IMAGE + j], t.window[row(batch, i) * t.window_stride + j] */
static const Tree *field_element(const Body *body, const Node *n, const Index *at, const Shape *shape) {
    Emitter *e = body->e;
    Arena *arena = e->arena;
    int64_t batch = shape->type.dim[0], elements = type_elements(&shape->type) / batch;
    Shape flat = {{.rank = 2, .dim = {batch, elements}}, {shape->size[0], sizes_example(e->sizes, n)}};
    Index index = index_reshape(arena, at, shape, &flat), rows = {0};
    index_push(&rows, 1, once_in_row(body, example_of_row(arena, index_axis(arena, &index, &flat, 0))));
    index_push(&rows, 1, index_axis(arena, &index, &flat, 1));
    const Tree *field = tree_member(arena, e->dialect->member, e->field[n->attr.index]);
    flat = in_data_set(e, n, &flat);
    return tree_element(arena, field, index_offset(arena, &rows, &flat));
}

const Tree *example_of_row(Arena *arena, const Tree *row) {
    return tree_as_wide(arena, tree_form(arena, "row(batch, $0)", &row, 1));
}

const Tree *stored_element(Emitter *e, const Node *n, const Index *at) {
    Shape shape = sizes_shape(e->sizes, n);
    const Tree *tensor = tree_member(e->arena, e->dialect->member, tensor_name(e, plan_buffer(e->plan, n)));
    return tree_element(e->arena, tensor, index_offset(e->arena, at, &shape));
}

const Tree *element_offset(const Tree *element) {
    return element->part[1];
}

const Tree *element_address(Arena *arena, const Tree *element) {
    const Tree *offset = element_offset(element);
    return tree_is_number(offset, 0) ? element->part[0] : tree_plus(arena, element->part[0], offset);
}

const Tree *loaded_element(const Body *body, const Node *n, const Index *at) {
    Shape shape = sizes_shape(body->e->sizes, n);
    return n->op->table == TABLE_FIELD ? field_element(body, n, at, &shape) : stored_element(body->e, n, at);
}

const Tree *vector_element(Emitter *e, const Known *known, const Index *at) {
    Shape domain = sizes_shape(e->sizes, known->node), shape = {0};
    Index inner = {0};
    for (int axis = 0; axis < domain.type.rank; axis++) {
        int first = axis;
        for (; known->inner >> axis & 1; axis++) {
            shape.type.dim[shape.type.rank] = domain.type.dim[axis];
            shape.size[shape.type.rank++] = domain.size[axis];
        }
        Index part = index_slice(e->arena, at, &domain, first, axis - first);
        index_append(&inner, &part);
    }
    return tree_element(e->arena, known->value, index_offset(e->arena, &inner, &shape));
}

const Tree *in_lane(Arena *arena, const Lanes *lanes, const Tree *tree) {
    return tree && lanes && lanes->count ? tree_in_lane(arena, lanes, tree) : tree;
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
static const char *form_of(const Emitter *e, const OpDef *op) {
    const Precision precision = e->module->precision;
    bool rounded = precision != PRECISION_FP32 && precision != PRECISION_TF32X3;
    bool near = (rounded || op->flags & OP_OWN_ON_GPU) && !e->mathematics;
    return op->near && e->dialect->near && near ? op->near : op->c;
}

/* Where a form is to be filled in. */
typedef struct Filling {
    Emitter *e;
    const Node *node;
    const Index *at;
    const Lanes *lanes;
} Filling;

static bool is_of_training(const Emitter *e, const Node *n) {
    const Graph *train = e->module->train;
    return n->id < train->nodes.count && train->nodes.at[n->id] == n;
}

/* Of the whole batch, whose examples do not know of shards. */
static const Tree *element_in_batch(const Filling *f, const Shape *shape) {
    Arena *arena = f->e->arena;
    const Node *n = f->node;
    const Tree *element = index_offset(arena, f->at, shape), *batch = tree_name(arena, "batch");
    if (!f->e->module->shards || !n->type.batched || !is_of_training(f->e, n))
        return element;
    const int64_t each = type_elements(&n->type) / f->e->module->batch;
    const Tree *before = tree_call(arena, "examples_of_shards_before", &batch, 1);
    return tree_plus(arena, tree_times(arena, before, tree_number(arena, each)), element);
}

/* For "v", "n", "t", "l", "i0" as ir/op.h says; NULL for operands, which stay. */
static const Tree *part_for(void *context, const Tree *place) {
    const Filling *f = context;
    Arena *arena = f->e->arena;
    const Node *n = f->node;
    Shape shape = sizes_shape(f->e->sizes, n);
    switch (place->text[0]) {
    case 'v': return number_tree(f->e, n);
    case 'n': return tree_number(arena, n->attr.index);
    case 't': return tree_name(arena, c_type(f->e, n->type.dtype));
    case 'l': return in_lane(arena, f->lanes, element_in_batch(f, &shape));
    case 'i': return in_lane(arena, f->lanes, index_axis(arena, f->at, &shape, place->text[1] - '0'));
    default: return NULL;
    }
}

const Tree *form_at(Emitter *e, const Node *n, const Index *at, const Lanes *lanes) {
    Filling filling = {e, n, at, lanes};
    return tree_filled(e->arena, tree_read(e->arena, form_of(e, n->op)), part_for, &filling);
}

/* ---- through operators ---- */

const Tree *through_view(Emitter *e, const Node *view, Index *at, const Tree *looked_up) {
    Shape shape = sizes_shape(e->sizes, view), operand = sizes_shape(e->sizes, view->in[0]);
    const Tree *guard = NULL;
    *at = view->op->flags & OP_CONTIGUOUS ? index_reshape(e->arena, at, &shape, &operand)
                                          : index_view(e->arena, view, at, &shape, looked_up, &guard);
    return guard;
}

Index lookup_index(Emitter *e, const Node *lookup, const Index *at) {
    Shape shape = sizes_shape(e->sizes, lookup);
    return index_slice(e->arena, at, &shape, 0, lookup->in[1]->type.rank);
}

const Tree *guarded(const Emitter *e, const Tree *guard, const Tree *value, double otherwise, DType dtype) {
    return tree_choice(e->arena, guard, value, literal_tree(e, otherwise, dtype));
}

const Tree *knob_member(const Emitter *e, const Node *knob) {
    return tree_member(e->arena, e->dialect->member, e->knob[knob->attr.index]);
}

/* ---- lookups ---- */

bool is_of_data(const Node *index) {
    while (index->op->cls == OP_VIEW && !(index->op->flags & OP_LOOKUP))
        index = index->in[0];
    return index->op->table == TABLE_FIELD;
}

static const Tree *plain_value(Body *body, const Node *n, const Index *at);

const Tree *lookup_value(Body *body, const Node *view, const Index *at) {
    if (!(view->op->flags & OP_LOOKUP))
        return NULL;
    Index index = lookup_index(body->e, view, at);
    return plain_value(body, view->in[1], &index);
}

static const Tree *plain_view(Body *body, const Node *view, const Index *at) {
    Index from = *at;
    const Tree *guard = through_view(body->e, view, &from, lookup_value(body, view, at));
    const Tree *value = plain_value(body, view->in[0], &from);
    return guard ? guarded(body->e, guard, value, view->attr.value, view->type.dtype) : value;
}

/* The value as one expression, for all lanes: a part of a place in memory, which lanes.c takes apart. */
static const Tree *plain_value(Body *body, const Node *n, const Index *at) {
    const Known *known = find_known(body, n, at);
    if (known)
        return known->inner ? vector_element(body->e, known, at) : known->value;
    if (is_loaded(body->kernel, n))
        return loaded_element(body, n, at);
    if (n->op->table == TABLE_KNOB)
        return knob_member(body->e, n);
    if (n->op->cls == OP_VIEW)
        return plain_view(body, n, at);
    ENSURE(n->op->c);
    const Tree *operands[MAX_INPUTS];
    for (int k = 0; k < n->inputs; k++)
        operands[k] = plain_value(body, n->in[k], at);
    return tree_with(body->e->arena, form_at(body->e, n, at, NULL), operands, n->inputs);
}
