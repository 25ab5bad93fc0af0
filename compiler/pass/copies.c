/* To decode a token is to read all weights once. Where products are in 16 bits, evaluation multiplies with weights of 16 bits, so
 * decoding does, by copies of half the bytes. They last from token to token:
 *
 *     sum over k of x[k] * w[n, k]      ->      last(to_bf16(w)),  sum over k of x[k] * to_float(to_bf16(w))[n, k]
 *
 * Products of several texts have operands of 16 bits, which are made of weights alone as well. What has the root `last` is computed for the
 * first token of a text, and stays in memory that nothing else of the program has. */
#include "pass/copies.h"

#include "ir/op.h"
#include "pass/precision.h"

enum { LEAST_COPIED = 1 << 16 }; /* numbers of a weight: fewer come from a cache */

typedef struct Copying {
    Graph *g;
    DType dtype;
    Node **copy; /* by node id: what a sum reads in place of the weight; of what a product reads, itself; or NULL */
} Copying;

static Node *copied(Copying *c, Node *weight) {
    const DTypeInfo *info = &dtype_info[c->dtype];
    if (c->copy[weight->id])
        return c->copy[weight->id];
    graph_at(c->g, weight->src);
    const char *name = weight->name ? arena_printf(c->g->arena, "%s.%s", weight->name, info->name) : NULL;
    Node *narrow = graph_name(op1(c->g, info->rounding, weight), name);
    graph_node(c->g, "last", (Attr){0}, 1, &narrow);
    return c->copy[weight->id] = op1(c->g, "to_float", narrow);
}

/* The matrix that a factor is a view of; NULL: it is none of that size. */
static Node *matrix_of(Node *factor) {
    while (is_looked_through(factor))
        factor = factor->in[0];
    bool matrix = factor->op->table == TABLE_WEIGHT && factor->type.rank == 2 && factor->type.dtype == DT_F32;
    return matrix && type_elements(&factor->type) >= LEAST_COPIED ? factor : NULL;
}

/* The same views of the copy. */
static Node *views_of_copy(Copying *c, Node *factor) {
    bool view = is_looked_through(factor);
    return view ? same_view(c->g, factor, views_of_copy(c, factor->in[0])) : copied(c, factor);
}

/* What a sum adds up, where that is products of two factors; NULL: it is something else. */
static Node *products_of(const Node *n) {
    if (n->op->cls != OP_REDUCE || !op_adds(n->op))
        return NULL;
    Node *terms = n->in[0];
    while (terms->op->flags & OP_CONTIGUOUS)
        terms = terms->in[0];
    return terms->op->flags & OP_MULTIPLIES ? terms : NULL;
}

/* What memory has of a product's operand. */
static Node *as_it_lies(Node *operand) {
    while (operand->op->flags & OP_CONTIGUOUS || operand->op->attrs & ATTR_ORDER)
        operand = operand->in[0];
    return operand;
}

/* The large weight in 16 bits that n is a view of; NULL: it is none. */
static const Node *copy_viewed(const Copying *c, const Node *n) {
    while (is_looked_through(n))
        n = n->in[0];
    const bool narrow = n->op->cls == OP_MAP && n->type.dtype == c->dtype;
    const bool weight = narrow && n->in[0]->op->table == TABLE_WEIGHT;
    return weight && type_elements(&n->type) >= LEAST_COPIED ? n : NULL;
}

static void keep_operands(Copying *c, const Node *product) {
    for (int k = 0; k < product->inputs; k++) {
        Node *operand = as_it_lies(product->in[k]);
        const Node *copy = copy_viewed(c, operand);
        if (!copy || c->copy[operand->id])
            continue;
        graph_at(c->g, operand->src);
        c->copy[operand->id] = operand;
        graph_name(graph_node(c->g, "last", (Attr){0}, 1, &operand), copy->name);
    }
}

/* What evaluation multiplies in. */
static DType stored_dtype(const Module *module, const Machine *machine) {
    const DType beside = dtype_beside_integers(module, machine), stored = precision_dtype(module->precision);
    return dtype_is_narrow(beside) ? beside : stored;
}

void copy_weights(Graph *g, const Machine *machine) {
    if (!g || !machine->blocks)
        return;
    const int count = g->nodes.count;
    Copying c = {g, stored_dtype(g->module, machine), NEW_ARRAY(g->arena, Node *, count)};
    for (int i = 0; i < count && dtype_is_narrow(c.dtype); i++) {
        Node *products = products_of(g->nodes.at[i]);
        for (int k = 0; products && k < products->inputs; k++)
            if (matrix_of(products->in[k]))
                products->in[k] = views_of_copy(&c, products->in[k]);
        if (g->nodes.at[i]->op->cls == OP_CONTRACT)
            keep_operands(&c, g->nodes.at[i]);
    }
    graph_compact(g);
}
