/* Products: what happens to the sums. How the sums come about is the target's and its library's. */
#include "emit/kernel/kernel_text.h"

bool product_is_stacked(const Kernel *kernel) {
    return kernel->tile.turns && kernel->batches > 1;
}

/* Row i of the outputs of all products, which lie below each other. */
static Index stacked_index(Emitter *e, const Kernel *kernel) {
    Shape to = sizes_shape(e->sizes, kernel->contraction);
    Shape from = {{.rank = 2, .dim = {kernel->batches * kernel->m, kernel->n}},
                  {TREE_NAMED("ROWS"), TREE_NAMED("COLUMNS")}};
    Index at = {0};
    index_push(&at, 1, tree_name(e->arena, "i"));
    index_push(&at, 1, tree_name(e->arena, "j"));
    return index_reshape(e->arena, &at, &from, &to);
}

/* The variable that counts an axis of several elements. */
static const Tree *counter_of(Emitter *e, const char *variable, int64_t extent) {
    return extent > 1 ? tree_name(e->arena, variable) : tree_number(e->arena, 0);
}

Index product_index(Emitter *e, const Kernel *kernel) {
    if (product_is_stacked(kernel))
        return stacked_index(e, kernel);
    int batch_axes = kernel->contraction->type.rank - 2;
    Index at = {0};
    if (batch_axes > 0)
        index_push(&at, batch_axes, counter_of(e, "b", kernel->batches));
    index_push(&at, 1, counter_of(e, "i", kernel->m));
    index_push(&at, 1, counter_of(e, "j", kernel->n));
    return at;
}

Index operand_index(Emitter *e, const Node *product, int operand, const Index *at, const Index *k) {
    Shape out = sizes_shape(e->sizes, product);
    int rank = out.type.rank, extra = product->in[operand]->type.rank - 2;
    bool transposed = operand == 0 ? product->attr.ta : product->attr.tb;
    Index index = index_slice(e->arena, at, &out, 0, extra),
          own = index_slice(e->arena, at, &out, rank - 2 + operand, 1);
    bool own_first = (operand == 0) != transposed;
    if (own_first)
        index_append(&index, &own);
    index_append(&index, k);
    if (!own_first)
        index_append(&index, &own);
    return index;
}

const char *product_depth(Emitter *e, const Node *product) {
    Shape a = sizes_shape(e->sizes, product->in[0]);
    return shape_symbol(e->arena, &a, a.type.rank - (product->attr.ta ? 2 : 1));
}

const Tree *product_term(Body *body, const Node *product, const Index *at) {
    Index k = index_along(tree_name(body->e->arena, "k")), a = operand_index(body->e, product, 0, at, &k),
          b = operand_index(body->e, product, 1, at, &k);
    const Tree *left = body_expression(body, product->in[0], &a);
    return tree_infix(body->e->arena, "*", left, body_expression(body, product->in[1], &b));
}

int fold_of(const Kernel *kernel, const Node *n) {
    for (int f = 0; f < kernel->folds.count; f++)
        if (kernel->folds.at[f] == n)
            return f;
    return -1;
}

Outputs product_outputs(Body *body, const Kernel *kernel) {
    Emitter *e = body->e;
    Outputs outputs = {0};
    Index at = product_index(e, kernel);
    Shape from = sizes_shape(e->sizes, kernel->contraction);
    const Tree *sum = tree_name(e->arena, "sum");
    body_know(body, kernel->contraction, body->lanes > 1 ? lane_of_pack(e->arena, sum) : sum);
    for (int s = 0; s < kernel->stores.count; s++) {
        const Node *stored = kernel->stores.at[s];
        if (kernel_stores_side(kernel, stored) || fold_of(kernel, stored) >= 0)
            continue;
        Shape to = sizes_shape(e->sizes, stored);
        Index stored_at = index_reshape(e->arena, &at, &from, &to);
        output_store(body, stored, &stored_at, &outputs);
    }
    return outputs;
}

Outputs side_outputs(Body *body, const Kernel *kernel) {
    Outputs outputs = {0};
    Index at = {0};
    index_push(&at, 1, tree_name(body->e->arena, kernel->side_of_b ? "j" : "i"));
    body_know(body, kernel->side, tree_name(body->e->arena, "sum"));
    for (int s = 0; s < kernel->stores.count; s++)
        if (kernel_stores_side(kernel, kernel->stores.at[s]))
            output_store(body, kernel->stores.at[s], &at, &outputs);
    return outputs;
}
