/* A bias gradient is the sum over the batch of the same matrix that the weight gradient's product reads over the batch:
 *
 *     dW[m, n] = sum over k of a[k, m] * b[k, n]        db[m] = sum over k of a[k, m]
 *
 * The tiles of the first column (or row) of dW have all of a's (b's) panel in hand, so db rides along with dW: one
 * kernel, no second pass over memory, complete sums in a fixed order. In general: a kernel that only folds an operand
 * of a product over the contracted axis, with a map epilogue, moves into the product's kernel. */
#include "pass/fuse.h"

static Node *only_reduction(const Kernel *kernel) {
    Node *reduction = NULL;
    for (int i = 0; i < kernel->nodes.count; i++) {
        Node *n = kernel->nodes.at[i];
        if (n->op->cls == OP_REDUCE && !reduction)
            reduction = n;
        else if (n->op->cls != OP_MAP || !reduction || !type_same_shape(&n->type, &reduction->type))
            return NULL;
    }
    return reduction;
}

/* The reduction folds exactly the axis of the operand that the product contracts. */
static bool folds_operand(const Node *reduction, const Operand *operand, bool contracted_first) {
    unsigned contracted = contracted_first ? 1u << 0 : 1u << 1;
    return reduction->in[0] == operand->value && operand->value == operand->buffer && operand->value->type.rank == 2 &&
           reduction->attr.axes == contracted;
}

static bool overwrites_safely(Fusion *f, const Kernel *rider, const Kernel *product) {
    Sources leaves = {0};
    for (int i = 0; i < rider->roots.count; i++)
        if (rider->roots.at[i]->inputs == 2)
            VEC_PUSH(f->arena, &leaves, rider->roots.at[i]->in[0]);
    return fusion_may_overwrite(f, product, leaves.at, leaves.count);
}

/* Moving the rider to the product's place in the order: its sources must come before, its readers after. */
static bool order_allows(Fusion *f, const Kernel *rider, const Kernel *product) {
    for (int i = 0; i < rider->loads.count; i++) {
        const Kernel *producer = f->home[rider->loads.at[i]->id];
        if (producer && producer->id >= product->id)
            return false;
    }
    for (int i = 0; i < f->program->kernels.count; i++) {
        const Kernel *reader = f->program->kernels.at[i];
        for (int s = 0; s < rider->stores.count; s++)
            if (reader != rider && kernel_reads(reader, rider->stores.at[s]) && reader->id <= product->id)
                return false;
    }
    return overwrites_safely(f, rider, product);
}

/* Not what the rider loaded: it may have computed again what the product finds in memory as its operand. */
static void load_sources(Fusion *f, Kernel *product, const Node *n) {
    Sources sources = fusion_sources(f, product, n);
    for (int i = 0; i < sources.count; i++)
        if (!kernel_reads(product, sources.at[i]))
            VEC_PUSH(f->arena, &product->loads, sources.at[i]);
}

static void merge(Fusion *f, Kernel *rider, Kernel *product, Node *reduction) {
    product->side = reduction;
    for (int i = 0; i < rider->nodes.count; i++) {
        VEC_PUSH(f->arena, &product->nodes, rider->nodes.at[i]);
        f->home[rider->nodes.at[i]->id] = product;
    }
    for (int i = 0; i < rider->nodes.count; i++)
        load_sources(f, product, rider->nodes.at[i]);
    for (int i = 0; i < rider->stores.count; i++)
        VEC_PUSH(f->arena, &product->stores, rider->stores.at[i]);
    for (int i = 0; i < rider->roots.count; i++)
        VEC_PUSH(f->arena, &product->roots, rider->roots.at[i]);
}

static bool ride(Fusion *f, Kernel *rider) {
    Node *reduction = rider->cls == KERNEL_LOOP ? only_reduction(rider) : NULL;
    if (!reduction || !op_adds(reduction->op))
        return false;
    for (int i = 0; i < f->program->kernels.count; i++) {
        Kernel *product = f->program->kernels.at[i];
        if (product->cls != KERNEL_CONTRACT || product->math != MATH_FP32 || product->side || product->folds.count ||
            product->batches != 1)
            continue;
        bool of_a = folds_operand(reduction, &product->a, product->a.transposed);
        bool of_b = folds_operand(reduction, &product->b, !product->b.transposed);
        if ((of_a || of_b) && order_allows(f, rider, product)) {
            product->side_of_b = of_b;
            merge(f, rider, product, reduction);
            return true;
        }
    }
    return false;
}

void fusion_ride(Fusion *f) {
    Program *program = f->program;
    int kept = 0;
    for (int i = 0; i < program->kernels.count; i++) {
        Kernel *kernel = program->kernels.at[i];
        if (!ride(f, kernel))
            program->kernels.at[kept++] = kernel;
    }
    program->kernels.count = kept;
}
