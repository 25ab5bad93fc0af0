/* Storing a map of values that its readers load anyway only costs memory and traffic: a ReLU's mask is a comparison of
 * the activation, which the backward pass reads as well. Such maps lose their home, and each reader computes them. */
#include "pass/fuse.h"

bool nodes_contain(Node *const *nodes, int count, const Node *n) {
    for (int i = 0; i < count; i++)
        if (nodes[i] == n)
            return true;
    return false;
}

static void drop(Node **nodes, int *count, const Node *n) {
    int kept = 0;
    for (int i = 0; i < *count; i++)
        if (nodes[i] != n)
            nodes[kept++] = nodes[i];
    *count = kept;
}

static bool is_root_value(const Graph *g, const Node *n) {
    for (int i = 0; i < g->roots.count; i++)
        if (g->roots.at[i]->in[g->roots.at[i]->inputs - 1] == n)
            return true;
    return false;
}

static bool is_operand(const Kernel *kernel, const Node *n) {
    return kernel->cls == KERNEL_CONTRACT && (kernel->a.buffer == n || kernel->b.buffer == n);
}

/* The sources are there without it: leaves, or stored for another reason. */
static bool is_available(const Fusion *f, const Node *source) {
    const Kernel *home = f->home[source->id];
    return !home || nodes_contain(home->stores.at, home->stores.count, source);
}

static bool reader_has(const Kernel *reader, const Sources *sources) {
    for (int i = 0; i < sources->count; i++)
        if (!kernel_reads(reader, sources->at[i]))
            return false;
    return true;
}

static bool readers_have_sources(const Fusion *f, const Node *n, const Sources *sources) {
    for (int i = 0; i < f->program->kernels.count; i++) {
        const Kernel *reader = f->program->kernels.at[i];
        if (kernel_reads(reader, n) && (is_operand(reader, n) || !reader_has(reader, sources)))
            return false;
    }
    return true;
}

static bool should_recompute(Fusion *f, const Node *n) {
    if (n->op->cls != OP_MAP || is_root_value(f->graph, n))
        return false;
    Sources sources = fusion_sources(f, NULL, n);
    for (int i = 0; i < sources.count; i++)
        if (!is_available(f, sources.at[i]))
            return false;
    return readers_have_sources(f, n, &sources);
}

static void forget(Fusion *f, Kernel *home, const Node *n) {
    f->home[n->id] = NULL;
    drop(home->nodes.at, &home->nodes.count, n);
    drop(home->stores.at, &home->stores.count, n);
    for (int i = 0; i < f->program->kernels.count; i++) {
        Kernel *reader = f->program->kernels.at[i];
        drop(reader->loads.at, &reader->loads.count, n);
    }
}

void fusion_recompute(Fusion *f) {
    for (int i = f->program->kernels.count - 1; i >= 0; i--) {
        Kernel *kernel = f->program->kernels.at[i];
        for (int s = kernel->stores.count - 1; s >= 0 && kernel->nodes.count > 1; s--)
            if (should_recompute(f, kernel->stores.at[s]))
                forget(f, kernel, kernel->stores.at[s]);
    }
}
