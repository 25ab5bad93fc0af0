/* How a kernel begins, and what becomes of it when a node joins: what it loads, what others store for it. */
#include "pass/fuse.h"

void fusion_store(Fusion *f, Node *n) {
    Kernel *kernel = f->home[n->id];
    if (!nodes_contain(kernel->stores.at, kernel->stores.count, n))
        VEC_PUSH(f->arena, &kernel->stores, n);
}

static void load(Fusion *f, Kernel *kernel, Node *n) {
    if (!kernel_reads(kernel, n))
        VEC_PUSH(f->arena, &kernel->loads, n);
}

void fusion_load(Fusion *f, Kernel *kernel, Node *source) {
    load(f, kernel, source);
    if (f->home[source->id])
        fusion_store(f, source);
}

Kernel *fusion_new_kernel(Fusion *f, KernelClass cls) {
    Kernel *kernel = NEW(f->arena, Kernel);
    kernel->id = f->program->kernels.count;
    kernel->cls = cls;
    VEC_PUSH(f->arena, &f->program->kernels, kernel);
    return kernel;
}

void fusion_absorb(Fusion *f, Kernel *kernel, Node *n) {
    f->home[n->id] = kernel;
    VEC_PUSH(f->arena, &kernel->nodes, n);
    Sources sources = fusion_sources(f, kernel, n);
    for (int i = 0; i < sources.count; i++)
        fusion_load(f, kernel, sources.at[i]);
    if (fusion_awaited(f, n) && fusion_awaited(f, n) != kernel)
        VEC_PUSH(f->arena, &kernel->behind, fusion_awaited(f, n));
    if (kernel->cls == KERNEL_CONTRACT && n->op->cls == OP_REDUCE) {
        VEC_PUSH(f->arena, &kernel->folds, n);
        kernel->fold_rows = kernel->m * kernel->n / type_elements(&n->type);
        fusion_store(f, n);
    }
}

Kernel *fusion_loop_kernel(Fusion *f, Node *n, const Type *full, unsigned inner) {
    Kernel *kernel = fusion_new_kernel(f, KERNEL_LOOP);
    rows_set(kernel, full, inner);
    fusion_absorb(f, kernel, n);
    return kernel;
}

Node *fusion_in_memory(Fusion *f, Node *n) {
    if (!f->home[n->id] && !(n->op->flags & OP_BUFFER && !n->type.batched))
        fusion_loop_kernel(f, n, &n->type, 0)->apart = APART_MEMORY;
    if (f->home[n->id])
        fusion_store(f, n);
    return n;
}
