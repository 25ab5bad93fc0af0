/* The equations above a kernel: h[i, j] = relu(sum over k of x[i, k] * h.weight[j, k] + h.bias[j]) */
#include "emit/program.h"

enum { DEEPEST = 6, LONGEST_EQUATION = 220 };

typedef struct Equation {
    Emitter *e;
    const Kernel *kernel;
    const Node *defined;
    int letters; /* index letters in use */
} Equation;

static const char *const letters[] = {"i", "j", "k", "l", "m", "n", "o", "p", "q", "r", "s"};
enum { LETTERS = sizeof letters / sizeof *letters };

static const char *letter(const Equation *q, int number) {
    return number < LETTERS ? letters[number] : arena_printf(q->e->arena, "i%d", number);
}

static const char *text_of(Equation *q, const Node *n, const Index *at, int depth);

static bool is_own(const Kernel *kernel, const Node *n) {
    for (int k = 0; k < kernel->nodes.count; k++)
        if (kernel->nodes.at[k] == n)
            return true;
    return false;
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
    if (n->op->cls == OP_REDUCE && is_own(q->kernel, n))
        return local_name(q->e->arena, n);
    if (n->op->cls == OP_INDEX || n->name)
        return n->op->cls == OP_INDEX ? NULL : n->name;
    const Buffer *buffer = plan_buffer(q->e->plan, n);
    return buffer && buffer->kind == BUFFER_VALUE ? buffer->label : NULL;
}

static const char *element(const Equation *q, const Node *n, const char *name, const Index *at) {
    Shape shape = sizes_shape(q->e->sizes, n);
    Text text = TEXT(q->e->arena);
    text_puts(&text, name);
    for (int axis = 0; axis < n->type.rank; axis++)
        text_printf(&text, "%s%s", axis ? ", " : "[", index_axis(q->e->arena, at, &shape, axis));
    if (n->type.rank)
        text_putc(&text, ']');
    return text_string(&text);
}

static const char *sum_over(Equation *q, const char *what, const Index *folded, const char *term) {
    Text text = TEXT(q->e->arena);
    text_printf(&text, "%s over ", what);
    for (int g = 0; g < folded->groups; g++)
        text_printf(&text, "%s%s", g ? ", " : "", folded->group[g].at);
    text_printf(&text, " of %s", parenthesised(q->e->arena, term, PREC_PRODUCT));
    return arena_printf(q->e->arena, "(%s)", text_string(&text));
}

static const char *reduction_text(Equation *q, const Node *n, const Index *at, int depth) {
    Shape shape = sizes_shape(q->e->sizes, n);
    Index inner = {0}, folded = {0};
    for (int axis = 0, kept = 0; axis < n->in[0]->type.rank; axis++) {
        bool folds = n->attr.axes >> axis & 1;
        index_push(&inner, 1, folds ? letter(q, q->letters++) : index_axis(q->e->arena, at, &shape, kept++));
        if (folds)
            folded.group[folded.groups++] = inner.group[axis];
    }
    return sum_over(q, n->op->name, &folded, text_of(q, n->in[0], &inner, depth));
}

static const char *product_text(Equation *q, const Node *n, const Index *at, int depth) {
    const char *k = letter(q, q->letters++);
    Index folded = {0}, a = operand_index(q->e, n, 0, at, k), b = operand_index(q->e, n, 1, at, k);
    index_push(&folded, 1, k);
    const char *factors[] = {text_of(q, n->in[0], &a, depth), text_of(q, n->in[1], &b, depth)};
    return sum_over(q, "sum", &folded, substitute(q->e->arena, "$0 * $1", factors, 2));
}

static const char *view_text(Equation *q, const Node *n, const Index *at, int depth) {
    Index from = *at;
    const char *guard = through_view(q->e, n, &from), *text = text_of(q, n->in[0], &from, depth);
    return guard ? arena_printf(q->e->arena, "(%s ? %s : 0)", guard, text) : text;
}

static bool is_conversion(const OpDef *op) {
    return op->c && strncmp(op->c, "($t)", 4) == 0;
}

static const char *text_of(Equation *q, const Node *n, const Index *at, int depth) {
    const char *name = value_name(q, n);
    if (name && n != q->defined)
        return element(q, n, name, at);
    if (n->meaning)
        return n->meaning;
    if (depth > DEEPEST)
        return "...";
    if (n->op->cls == OP_VIEW)
        return view_text(q, n, at, depth + 1);
    if (n->op->cls == OP_REDUCE)
        return reduction_text(q, n, at, depth + 1);
    if (n->op->cls == OP_CONTRACT)
        return product_text(q, n, at, depth + 1);
    if (is_conversion(n->op))
        return text_of(q, n->in[0], at, depth + 1);
    const char *operands[MAX_INPUTS];
    for (int k = 0; k < n->inputs; k++)
        operands[k] = text_of(q, n->in[k], at, depth + 1);
    return substitute(q->e->arena, template_at(q->e, n, at), operands, MAX_INPUTS);
}

/* Functions of the batch are functions of the row: "share(i)", "step". */
static const char *without_batch(Arena *arena, const char *text) {
    static const char *const said[] = {"(batch)", "batch, "};
    Text out = TEXT(arena);
    while (*text) {
        for (size_t k = 0; k < sizeof said / sizeof *said; k++)
            if (strncmp(text, said[k], strlen(said[k])) == 0)
                text += strlen(said[k]);
        if (*text)
            text_putc(&out, *text++);
    }
    return text_string(&out);
}

/* A sum that is the whole right side needs no parentheses. */
static const char *unwrapped(Arena *arena, const char *text) {
    size_t length = strlen(text);
    int depth = 0;
    for (size_t k = 0; k + 1 < length; k++) {
        depth += text[k] == '(' ? 1 : text[k] == ')' ? -1 : 0;
        if (depth == 0)
            return text;
    }
    return length > 2 ? arena_strndup(arena, text + 1, length - 2) : text;
}

static const char *defined_name(const Equation *q, const Node *n) {
    for (int k = 0; k < q->kernel->roots.count; k++)
        if (q->kernel->roots.at[k]->op->table == TABLE_REPORT && q->kernel->roots.at[k]->in[0] == n)
            return q->e->module->reports.at[q->kernel->roots.at[k]->attr.index].name;
    const char *name = value_name(q, n);
    const Buffer *buffer = name ? NULL : plan_buffer(q->e->plan, n);
    return buffer ? buffer->label : name;
}

static void write_equation(Emitter *e, const Kernel *kernel, const Node *n, Writer *out) {
    Equation q = {e, kernel, n, n->type.rank};
    const char *name = defined_name(&q, n);
    if (!name)
        return;
    Index at = {0};
    for (int axis = 0; axis < n->type.rank; axis++)
        index_push(&at, 1, n->type.dim[axis] == 1 ? "0" : letter(&q, axis));
    const char *right = without_batch(e->arena, unwrapped(e->arena, text_of(&q, n, &at, 0)));
    const char *equation = arena_printf(e->arena, "%s = %s", element(&q, n, name, &at), right);
    if (strlen(equation) <= LONGEST_EQUATION)
        write_comment(out, 8, arena_printf(e->arena, "%s%s", kernel->stages.count < 2 ? "    " : "", equation));
}

static bool is_stored(const Kernel *kernel, const Node *n) {
    for (int k = 0; k < kernel->stores.count; k++)
        if (kernel->stores.at[k] == n)
            return true;
    return false;
}

/* The equations of `n` and of what it comes from, in the order of computation, as far as they are not `written`. */
static void write_up_to(Emitter *e, const Kernel *kernel, const Node *n, bool *written, Writer *out) {
    bool own = is_own(kernel, n);
    if (written[n->id] || n->op->cls == OP_LEAF || (!own && plan_buffer(e->plan, n)))
        return;
    written[n->id] = true;
    for (int k = 0; k < n->inputs; k++)
        write_up_to(e, kernel, n->in[k], written, out);
    if (n->name || (own && (n->op->cls == OP_REDUCE || is_stored(kernel, n))))
        write_equation(e, kernel, n, out);
}

static Emitter mathematical(const Emitter *e) {
    Emitter plain = *e;
    plain.mathematics = true;
    return plain;
}

void write_equations(Emitter *e, const Kernel *kernel, Writer *out) {
    Emitter plain = mathematical(e);
    bool *written = NEW_ARRAY(e->arena, bool, program_of(e, kernel)->graph->nodes.count);
    write_line(out, "//");
    for (int k = 0; k < kernel->nodes.count; k++)
        write_up_to(&plain, kernel, kernel->nodes.at[k], written, out);
}

void write_stage_equations(const Body *row, const Stage *stage, Writer *out) {
    Emitter plain = mathematical(row->e);
    for (int k = 0; k < stage->reduces.count; k++)
        write_up_to(&plain, row->kernel, stage->reduces.at[k], row->written, out);
    for (int k = 0; k < stage->vectors.count; k++)
        write_up_to(&plain, row->kernel, stage->vectors.at[k], row->written, out);
    for (int k = 0; k < stage->stores.count; k++)
        write_up_to(&plain, row->kernel, stage->stores.at[k], row->written, out);
}
