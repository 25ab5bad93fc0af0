/* Kernels are named after what they store: `h`, `d_h_weight`, `logits_to_d_h`, `update_w`, `report_loss`. What the text does not
 * name is called after what it is made for: `d_h_bias_partial`, `to_logits`. */
#include "pass/fuse.h"

#include <ctype.h>

static const char *identifier(Arena *arena, const char *name) {
    char *id = arena_strdup(arena, name);
    for (char *c = id; *c; c++)
        if (!isalnum((unsigned char)*c))
            *c = '_';
    return isdigit((unsigned char)*id) ? arena_printf(arena, "_%s", id) : id;
}

static const char *leaf_name(const Program *program, const Node *leaf) {
    return leaf->name ? leaf->name : program->graph->module->name;
}

/* A kernel that only carries out roots of one kind is named by the effect; one that measures, by the field, which is what
 * "price.mean" begins with. */
static const char *effect_name(const Program *program, const Kernel *kernel) {
    const Node *root = kernel->roots.at[0];
    if (program->graph == program->graph->module->measure)
        return arena_strndup(program->arena, root->in[0]->name, strcspn(root->in[0]->name, "."));
    if (root->inputs == 2)
        return arena_printf(program->arena, "update_%s", leaf_name(program, root->in[0]));
    const char *what = root->name ? root->name : root->in[0]->name;
    return arena_printf(program->arena, "%s_%s", root->op->name, what ? what : program->prefix);
}

static bool is_update(const Program *program, const Node *n) {
    return program_assigned(program, n) != NULL;
}

/* Of a value, or of what it is a view of; NULL: it has none. */
static const char *viewed_name(const Node *n) {
    while (!n->name && n->op->cls == OP_VIEW)
        n = n->in[0];
    return n->name;
}

/* The first value with a name that is made of n, or NULL; `views`: through views alone, so that it is n in another shape. */
static const char *served_name(const Program *program, const Node *n, bool views) {
    const Graph *g = program->graph;
    bool *serves = NEW_ARRAY(program->arena, bool, g->nodes.count);
    serves[n->id] = true;
    for (int i = n->id + 1; i < g->nodes.count; i++) {
        const Node *user = g->nodes.at[i];
        for (int k = 0; k < user->inputs; k++)
            serves[i] |= serves[user->in[k]->id] && (views ? user->op->cls == OP_VIEW : user->op->cls != OP_ROOT);
        if (serves[i] && user->name)
            return user->name;
    }
    return NULL;
}

const char *value_title(const Program *program, const Node *n) {
    bool whole_name = n->op->cls == OP_CONTRACT || (n->op->cls == OP_CALL && !(n->op->flags & OP_PART));
    bool view = n->op->cls == OP_VIEW;
    if (n->name || whole_name)
        return NULL;
    const char *of = n->hint ? served_name(program, n, false) : view ? viewed_name(n) : NULL;
    return of ? arena_printf(program->arena, "%s.%s", of, n->hint ? n->hint : n->op->name) : NULL;
}

/* Of a value without a name: what it is in another shape; else what it is for, "to_d_fc"; or NULL. */
static const char *purpose_name(const Program *program, const Node *n) {
    const char *same = served_name(program, n, true), *served = same ? same : served_name(program, n, false);
    return same || !served ? same : arena_printf(program->arena, "to_%s", served);
}

/* "q_times_k": a product that the text does not name. */
static const char *factors_name(const Program *program, const Node *product) {
    const char *a = viewed_name(product->in[0]), *b = viewed_name(product->in[1]);
    const char *purpose = a && b ? NULL : purpose_name(program, product);
    if (a && b)
        return arena_printf(program->arena, "%s_times_%s", a, b);
    return purpose ? purpose : product->op->name;
}

/* "conv1" of "conv1.weight", or of its copy "conv1.weight.bf16"; NULL: the operand is no layer's weight. */
static const char *layer_name(const Program *program, const Operand *operand) {
    const char *name = operand->buffer->name, *weight = name ? strstr(name, ".weight") : NULL;
    return weight ? arena_strndup(program->arena, name, (size_t)(weight - name)) : NULL;
}

/* The product's name, that of a reshape of it which the epilogue reads, or what it is to be called; or NULL. */
static const char *own_name(const Kernel *kernel) {
    const Node *product = kernel->contraction;
    for (int i = 0; i < kernel->nodes.count && !product->name; i++)
        for (int k = 0; k < kernel->nodes.at[i]->inputs; k++) {
            const Node *in = kernel->nodes.at[i]->in[k];
            if (in->op->flags & OP_CONTIGUOUS && in->in[0] == kernel->contraction && in->name)
                return in->name;
        }
    return product->name ? product->name : product->hint;
}

/* A product that stores nothing the text names: the gradient of a weight, `d_conv1_weight`; what a layer makes of its input,
 * `conv1_layer`; what its gradient makes of that of its output, `d_conv1_input`. */
static const char *product_name(const Program *program, const Kernel *kernel) {
    const char *name = own_name(kernel), *layer = layer_name(program, &kernel->b);
    if (name || !layer)
        return name ? name : factors_name(program, kernel->contraction);
    return arena_printf(program->arena, kernel->b.transposed ? "%s_layer" : "d_%s_input", layer);
}

static const char *contract_name(const Program *program, const Kernel *kernel) {
    for (int i = kernel->stores.count - 1; i >= 0; i--) {
        const Node *n = kernel->stores.at[i];
        if (n->name && !is_update(program, n) && !kernel_stores_side(kernel, n))
            return n->name;
    }
    return product_name(program, kernel);
}

static const char *call_name(const Node *call) {
    return call->name ? call->name : call->hint ? call->hint : call->op->name;
}

/* Of a kernel that computes nothing with a name: what one of the stored values is, or is for; else the operation. */
static const char *stored_name(const Program *program, const Kernel *kernel) {
    const char *name = NULL;
    for (int i = 0; i < kernel->stores.count && !name; i++)
        name = value_title(program, kernel->stores.at[i]);
    for (int i = 0; i < kernel->stores.count && !name; i++)
        name = purpose_name(program, kernel->stores.at[i]);
    return name ? name : kernel->nodes.at[kernel->nodes.count - 1]->op->name;
}

/* Bytes of the scopes that both names begin with, "h.0.mlp."; 0 where what is left of the second would be a number. */
static size_t common_scope(const char *a, const char *b) {
    size_t scope = 0;
    for (size_t k = 0; a[k] && a[k] == b[k]; k++)
        scope = a[k] == '.' ? k + 1 : scope;
    return isdigit((unsigned char)b[scope]) ? 0 : scope;
}

/* Bytes of the last part that names of a scope both have, ".weight". */
static size_t common_part(const char *a, const char *b, size_t scope) {
    const char *end = strrchr(a + scope, '.'), *other = strrchr(b + scope, '.');
    return scope && end && other && strcmp(end, other) == 0 ? strlen(end) : 0;
}

enum { LONGEST_RANGE = 64 }; /* "a_to_b" of longer names says less than it takes to read */

/* What both names have is said once: "h.0.c_fc_to_c_proj.weight", "h.0.ln_1.weight_to_bias". */
static const char *range_name(Arena *arena, const char *first, const char *last) {
    size_t scope = common_scope(first, last), part = common_part(first, last, scope);
    const char *name = arena_printf(arena, "%.*s_to_%s", (int)(strlen(first) - part), first, last + scope);
    bool alone = strcmp(first, last) == 0 || strlen(name) > LONGEST_RANGE;
    return alone ? first : name;
}

static const char *loop_name(const Program *program, const Kernel *kernel) {
    const char *first = NULL, *last = NULL;
    for (int i = 0; i < kernel->nodes.count; i++) {
        const Node *n = kernel->nodes.at[i];
        bool big = n->op->cls == OP_CONTRACT || kernel->nodes.count == 1 || i + 1 == kernel->nodes.count;
        if (!n->name || is_update(program, n))
            continue;
        if (!first)
            first = n->name;
        if (big || !last)
            last = n->name;
    }
    if (!first)
        return stored_name(program, kernel);
    return range_name(program->arena, first, last);
}

static const char *base_name(const Program *program, const Kernel *kernel) {
    if (kernel->cls == KERNEL_CONTRACT)
        return contract_name(program, kernel);
    if (kernel->cls == KERNEL_CALL)
        return call_name(kernel->call);
    bool only_effects = kernel->roots.count > 0 && kernel->stores.count <= kernel->roots.count;
    return only_effects ? effect_name(program, kernel) : loop_name(program, kernel);
}

static bool is_taken(const Program *program, int before, const char *name) {
    for (int i = 0; i < before; i++)
        if (strcmp(program->kernels.at[i]->name, name) == 0)
            return true;
    return false;
}

void kernel_names(Program *program) {
    for (int i = 0; i < program->kernels.count; i++) {
        Kernel *kernel = program->kernels.at[i];
        const char *base = identifier(program->arena, base_name(program, kernel)), *name = base;
        for (int number = 2; is_taken(program, i, name); number++)
            name = arena_printf(program->arena, "%s_%d", base, number);
        kernel->name = name;
    }
}
