/* Products: what happens to the sums. How the sums come about is the target's and its library's. */
#include "emit/kernel/kernel_text.h"

bool product_is_stacked(const Kernel *kernel) {
    return kernel->tile.turns && kernel->batches > 1;
}

/* Row i of the outputs of all products, which lie below each other. */
static Index stacked_index(Emitter *e, const Kernel *kernel) {
    Shape to = sizes_shape(e->sizes, kernel->contraction);
    Shape from = {{.rank = 2, .dim = {kernel->batches * kernel->m, kernel->n}}, {"ROWS", "COLUMNS"}};
    Index at = {0};
    index_push(&at, 1, "i");
    index_push(&at, 1, "j");
    return index_reshape(e->arena, &at, &from, &to);
}

Index product_index(Emitter *e, const Kernel *kernel) {
    if (product_is_stacked(kernel))
        return stacked_index(e, kernel);
    int batch_axes = kernel->contraction->type.rank - 2;
    Index at = {0};
    if (batch_axes > 0)
        index_push(&at, batch_axes, kernel->batches > 1 ? "b" : "0");
    index_push(&at, 1, kernel->m > 1 ? "i" : "0");
    index_push(&at, 1, kernel->n > 1 ? "j" : "0");
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
    return a.symbol[a.type.rank - (product->attr.ta ? 2 : 1)];
}

const char *product_term(Body *body, const Node *product, const Index *at) {
    Index k = index_along("k"), a = operand_index(body->e, product, 0, at, &k),
          b = operand_index(body->e, product, 1, at, &k);
    const char *factors[] = {body_expression(body, product->in[0], &a), body_expression(body, product->in[1], &b)};
    return substitute(body->e->arena, "$0 * $1", factors, 2);
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
    body_know(body, kernel->contraction, body->lanes > 1 ? "sum[v]" : "sum");
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
    index_push(&at, 1, kernel->side_of_b ? "j" : "i");
    body_know(body, kernel->side, "sum");
    for (int s = 0; s < kernel->stores.count; s++)
        if (kernel_stores_side(kernel, kernel->stores.at[s]))
            output_store(body, kernel->stores.at[s], &at, &outputs);
    return outputs;
}
