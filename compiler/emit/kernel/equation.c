/* The equations above a kernel: h[i, j] = relu(sum over k of x[i, k] * h.weight[j, k] + h.bias[j]) */
#include "emit/kernel/kernel_text.h"

#include "emit/kernel/element.h"
#include "emit/kernel/function.h"

#include <ctype.h>

enum { DEEPEST = 6, LONGEST_EQUATION = 220 };

typedef struct Equation {
    Emitter *e;
    const Kernel *kernel;
    const Node *defined;
    int letters; /* index letters in use */
    Body *row;   /* that the equations stand in; NULL: above the kernel */
} Equation;

static const char *const letters[] = {"i", "j", "k", "l", "m", "n", "o", "p", "q", "r", "s"};
enum { LETTERS = sizeof letters / sizeof *letters };

static const Tree *letter(const Equation *q, int number) {
    Arena *arena = q->e->arena;
    return tree_name(arena, number < LETTERS ? letters[number] : arena_printf(arena, "i%d", number));
}

static const Tree *right_of(Equation *q, const Node *n, const Index *at, int depth);

static bool is_own(const Kernel *kernel, const Node *n) {
    for (int k = 0; k < kernel->nodes.count; k++)
        if (kernel->nodes.at[k] == n)
            return true;
    return false;
}

/* "h_1" is an identifier for "h.1". */
static bool spells(const char *identifier, const char *name) {
    for (; *identifier && *name; identifier++, name++)
        if (isalnum((unsigned char)*name) ? tolower((unsigned char)*identifier) != tolower((unsigned char)*name)
                                          : *identifier != '_')
            return false;
    return *identifier == *name;
}

static bool has_namesake(const Plan *plan, const Buffer *buffer) {
    int count = 0;
    for (int k = 0; k < plan->buffers.count; k++)
        count += strcmp(plan->buffers.at[k].label, buffer->label) == 0;
    return count > 1;
}

/* As the model calls it, where that is said of nothing else; else as the code does. */
static const char *stored_name(const Equation *q, const Buffer *buffer, const Node *n) {
    const char *member = tensor_name(q->e, buffer);
    if (!spells(member, buffer->label) && has_namesake(q->e->plan, buffer))
        return member;
    return n->name && buffer->kind == BUFFER_VALUE ? n->name : buffer->label;
}

/* "momentum[i]" of each of the weights that the kernel updates. */
static bool names_several(const Kernel *kernel, const Node *n) {
    int count = 0;
    for (int k = 0; k < kernel->nodes.count && n->name; k++) {
        const Node *other = kernel->nodes.at[k];
        count += other->name && strcmp(other->name, n->name) == 0 && other->type.rank == n->type.rank;
    }
    return count > 1;
}

static const char *folded_name(const Equation *q, const Node *reduction) {
    if (q->row)
        return fold_name(q->row, reduction);
    for (int k = 0; k < q->e->folds.count; k++)
        if (q->e->folds.at[k].node == reduction)
            return q->e->folds.at[k].name;
    return local_name(q->e->arena, reduction);
}

static const char *value_name(const Equation *q, const Node *n) {
    const Module *module = q->e->module;
    switch (n->op->table) {
    case TABLE_WEIGHT: return module->weights.at[n->attr.index].name;
    case TABLE_STATE: return module->states.at[n->attr.index].name;
    case TABLE_FIELD: return module->fields.at[n->attr.index].name;
    case TABLE_KNOB: return module->knobs.at[n->attr.index].name;
    default: break;
    }
    if (n->op->cls == OP_INDEX)
        return NULL;
    const Buffer *buffer = plan_buffer(q->e->plan, n);
    if (buffer && (buffer->kind == BUFFER_VALUE || names_several(q->kernel, n)))
        return stored_name(q, buffer, n);
    return !n->name && n->op->cls == OP_REDUCE && is_own(q->kernel, n) ? folded_name(q, n) : n->name;
}

/* A value is no name like those of the forms: it may be called batch. */
static const Tree *element(const Equation *q, const Node *n, const char *name, const Index *at) {
    Shape shape = sizes_shape(q->e->sizes, n);
    const Tree *of = tree_member(q->e->arena, "", name), *place[MAX_RANK];
    for (int axis = 0; axis < n->type.rank; axis++)
        place[axis] = index_axis(q->e->arena, at, &shape, axis);
    return n->type.rank ? tree_element_at(q->e->arena, of, place, n->type.rank) : of;
}

static const Tree *sum_over(Equation *q, const char *what, const Index *folded, const Tree *term) {
    Text text = TEXT(q->e->arena);
    text_printf(&text, "%s over ", what);
    for (int g = 0; g < folded->groups; g++)
        text_printf(&text, "%s%s", g ? ", " : "", tree_text(q->e->arena, folded->group[g].at));
    return tree_fold(q->e->arena, text_string(&text), term);
}

static const Tree *reduction_right(Equation *q, const Node *n, const Index *at, int depth) {
    Shape shape = sizes_shape(q->e->sizes, n);
    Index inner = {0}, folded = {0};
    for (int axis = 0, kept = 0; axis < n->in[0]->type.rank; axis++) {
        bool folds = n->attr.axes >> axis & 1;
        index_push(&inner, 1, folds ? letter(q, q->letters++) : index_axis(q->e->arena, at, &shape, kept++));
        if (folds)
            folded.group[folded.groups++] = inner.group[axis];
    }
    return sum_over(q, n->op->name, &folded, right_of(q, n->in[0], &inner, depth));
}

/* The axis of `value`, its first or its last; of windows, the axes that a reshape made it of. */
static Shape axis_parts(Equation *q, const Node *value, int axis) {
    Shape shape = sizes_shape(q->e->sizes, value), whole = shape_slice(&shape, axis, 1);
    while (value->op->cls == OP_MAP && value->inputs == 1)
        value = value->in[0];
    if (!(value->op->flags & OP_CONTIGUOUS) || !(value->in[0]->op->attrs & ATTR_SWEEP))
        return whole;
    Shape from = sizes_shape(q->e->sizes, value->in[0]);
    int rank = from.type.rank, count = 0;
    int64_t product = 1;
    while (product < whole.type.dim[0] && count < rank)
        product *= from.type.dim[axis == 0 ? count++ : rank - ++count];
    return product == whole.type.dim[0] ? shape_slice(&from, axis == 0 ? 0 : rank - count, count) : whole;
}

/* What is folded, in as many axes as either operand has for it. */
static Shape folded_axes(Equation *q, const Node *n) {
    const Node *a = n->in[0], *b = n->in[1];
    if (n->type.rank > 2 || a->type.rank > 2)
        return axis_parts(q, a, n->attr.ta ? a->type.rank - 2 : a->type.rank - 1);
    Shape of_a = axis_parts(q, a, n->attr.ta ? 0 : 1), of_b = axis_parts(q, b, n->attr.tb ? 1 : 0);
    return of_a.type.rank >= of_b.type.rank ? of_a : of_b;
}

static const Tree *product_right(Equation *q, const Node *n, const Index *at, int depth) {
    Shape shape = folded_axes(q, n), line = {.type = {.rank = 1, .dim = {type_elements(&shape.type)}}};
    line.size[0] = shape_extent(q->e->arena, &shape, 0, shape.type.rank);
    Index folded = {0}, counted = {0};
    for (int axis = 0; axis < shape.type.rank; axis++) {
        bool counts = shape.type.dim[axis] > 1 || shape.type.rank == 1;
        index_push(&counted, 1, counts ? letter(q, q->letters++) : tree_number(q->e->arena, 0));
        if (counts)
            folded.group[folded.groups++] = counted.group[axis];
    }
    Index k = index_reshape(q->e->arena, &counted, &shape, &line);
    Index a = operand_index(q->e, n, 0, at, &k), b = operand_index(q->e, n, 1, at, &k);
    const Tree *left = right_of(q, n->in[0], &a, depth), *right = right_of(q, n->in[1], &b, depth);
    return sum_over(q, "sum", &folded, tree_infix(q->e->arena, "*", left, right));
}

/* What windows see outside of an image goes without saying. */
static const Tree *view_right(Equation *q, const Node *n, const Index *at, int depth) {
    Index from = *at;
    const Tree *looked_up = NULL;
    if (n->op->flags & OP_LOOKUP) {
        Index index = lookup_index(q->e, n, at);
        looked_up = right_of(q, n->in[1], &index, depth);
    }
    const Tree *guard = through_view(q->e, n, &from, looked_up);
    const Tree *read = right_of(q, n->in[0], &from, depth);
    if (!guard || n->op->attrs & ATTR_SWEEP)
        return read;
    return tree_choice(q->e->arena, guard, read, literal_tree(q->e, n->attr.value, n->type.dtype));
}

static bool is_conversion(const Equation *q, const OpDef *op) {
    return op->flags & OP_WIDENS || op->rounds || (op->c && tree_read(q->e->arena, op->c)->kind == TREE_CAST);
}

static const Tree *right_of(Equation *q, const Node *n, const Index *at, int depth) {
    const char *name = value_name(q, n);
    if (name && n != q->defined)
        return element(q, n, name, at);
    if (n->meaning)
        return tree_read(q->e->arena, n->meaning);
    if (depth > DEEPEST)
        return tree_name(q->e->arena, "...");
    if (n->op->cls == OP_VIEW)
        return view_right(q, n, at, depth + 1);
    if (n->op->cls == OP_REDUCE)
        return reduction_right(q, n, at, depth + 1);
    if (n->op->cls == OP_CONTRACT)
        return product_right(q, n, at, depth + 1);
    if (is_conversion(q, n->op))
        return right_of(q, n->in[0], at, depth + 1);
    const Tree *operands[MAX_INPUTS];
    for (int k = 0; k < n->inputs; k++)
        operands[k] = mean_factor(q->e, n, k, right_of(q, n->in[k], at, depth + 1));
    return tree_with(q->e->arena, form_at(q->e, n, at, NULL), operands, n->inputs);
}

/* Functions of the batch are functions of the row: "share(i)", "step". */
static const Tree *without_batch(Arena *arena, const Tree *tree) {
    if (!tree->count)
        return tree;
    const Tree **parts = NEW_ARRAY(arena, const Tree *, tree->count);
    for (int k = 0; k < tree->count; k++)
        parts[k] = without_batch(arena, tree->part[k]);
    bool of_batch = tree->kind == TREE_CALL && tree_is_name(parts[0], "batch");
    if (!of_batch)
        return tree_with_parts(arena, tree, parts);
    return tree->count == 1 ? tree_name(arena, tree->text) : tree_call(arena, tree->text, parts + 1, tree->count - 1);
}

/* A sum that is the whole right side needs no parentheses. */
static const char *right_text(Arena *arena, const Tree *right) {
    if (right->kind != TREE_FOLD)
        return tree_text(arena, right);
    return arena_printf(arena, "%s of %s", right->text, tree_text_at(arena, right->part[0], PREC_PRODUCT));
}

static const char *defined_name(const Equation *q, const Node *n) {
    for (int k = 0; k < q->kernel->roots.count; k++)
        if (q->kernel->roots.at[k]->op->table == TABLE_REPORT && q->kernel->roots.at[k]->in[0] == n)
            return module_report(q->e->module, q->kernel->roots.at[k]->attr.index)->name;
    const char *name = value_name(q, n);
    const Buffer *buffer = name ? NULL : plan_buffer(q->e->plan, n);
    return buffer ? stored_name(q, buffer, n) : name;
}

static void write_equation(Emitter *e, const Kernel *kernel, Body *row, const Node *n, Writer *out) {
    Equation q = {e, kernel, n, n->type.rank, row};
    const char *name = defined_name(&q, n);
    if (!name)
        return;
    Index at = {0};
    for (int axis = 0; axis < n->type.rank; axis++)
        index_push(&at, 1, n->type.dim[axis] == 1 ? tree_number(e->arena, 0) : letter(&q, axis));
    const Tree *right = without_batch(e->arena, right_of(&q, n, &at, 0));
    const char *left = tree_text(e->arena, element(&q, n, name, &at));
    const char *equation = arena_printf(e->arena, "%s = %s", left, right_text(e->arena, right));
    if (strlen(equation) <= LONGEST_EQUATION)
        write_comment(out, 8, arena_printf(e->arena, "%s%s", kernel->stages.count < 2 ? "    " : "", equation));
}

static bool is_stored(const Kernel *kernel, const Node *n) {
    for (int k = 0; k < kernel->stores.count; k++)
        if (kernel->stores.at[k] == n)
            return true;
    return false;
}

/* A number for all of a step, such as its learning rate, which each kernel computes for itself: the first of them says how. */
static bool is_said(const Emitter *e, const Kernel *kernel, const Node *n) {
    if (n->type.rank || is_stored(kernel, n) || n->op->cls == OP_REDUCE)
        return false;
    for (int k = 0; k < e->said->count; k++)
        if (e->said->at[k] == n)
            return true;
    VEC_PUSH(e->arena, e->said, n);
    return false;
}

/* The equations of `n` and of what it comes from, in the order of computation, as far as they are not `written`. */
static void write_up_to(Emitter *e, const Kernel *kernel, Body *row, const Node *n, bool *written, Writer *out) {
    bool own = is_own(kernel, n);
    if (written[n->id] || n->op->cls == OP_LEAF || (!own && plan_buffer(e->plan, n)))
        return;
    written[n->id] = true;
    for (int k = 0; k < n->inputs; k++)
        write_up_to(e, kernel, row, n->in[k], written, out);
    bool named = n->name && !is_said(e, kernel, n);
    if (named || (own && (n->op->cls == OP_REDUCE || is_stored(kernel, n))))
        write_equation(e, kernel, row, n, out);
}

static Emitter mathematical(const Emitter *e) {
    Emitter plain = *e;
    plain.mathematics = true;
    return plain;
}

void write_equations(Emitter *e, const Kernel *kernel, Writer *out) {
    Emitter plain = mathematical(e);
    bool *written = NEW_ARRAY(e->arena, bool, program_of(e, kernel)->graph->nodes.count);
    for (int k = 0; k < kernel->nodes.count; k++)
        write_up_to(&plain, kernel, NULL, kernel->nodes.at[k], written, out);
}

void write_stage_equations(Body *row, const Stage *stage, Writer *out) {
    Emitter plain = mathematical(row->e);
    for (int k = 0; k < stage->reduces.count; k++)
        write_up_to(&plain, row->kernel, row, stage->reduces.at[k], row->written, out);
    for (int k = 0; k < stage->vectors.count; k++)
        write_up_to(&plain, row->kernel, row, stage->vectors.at[k], row->written, out);
    for (int k = 0; k < stage->stores.count; k++)
        write_up_to(&plain, row->kernel, row, stage->stores.at[k], row->written, out);
}
