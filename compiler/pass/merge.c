/* Updates of the same elements. A node joins the last kernel that it reads from. What an optimizer keeps of a gradient that is a
 * buffer already, the sum of shards or what a call has made, reads none, so that each state begins a kernel of its own:
 *
 *      g, m ---> m = beta1 m + (1 - beta1) g  --.                                       ,--> m
 *                                               |--> w = w - ...     ==>     g, m, v, w --> v
 *      g, v ---> v = beta2 v + (1 - beta2) g g -'                                       `--> w
 *
 * The gradient would be read twice, and m once more, a launch later. Kernels that only overwrite leaves, element by element of one
 * shape, are merged where an element has less to load then: both read a buffer at it, or one reads what the other stores.
 *
 * Only updates: nobody waits for them but other updates. Another kernel's readers would have to wait for whatever the other half
 * reads. An element's arithmetic is what it was, so that all bits are the same. */
#include "pass/fuse.h"

static bool only_updates(const Fusion *f, const Kernel *kernel) {
    for (int i = 0; i < kernel->stores.count; i++)
        if (!f->program->assigned[kernel->stores.at[i]->id])
            return false;
    return kernel->cls == KERNEL_LOOP && rows_are_elements(kernel);
}

static bool is_behind(const Kernel *kernel, const Kernel *earlier) {
    bool behind = false;
    for (int i = 0; i < kernel->behind.count; i++)
        behind |= kernel->behind.at[i] == earlier;
    for (int i = 0; i < earlier->stores.count; i++)
        behind |= kernel_reads(kernel, earlier->stores.at[i]);
    return behind;
}

/* Others find what the kernel stores where it runs now, which may be before `later`. */
static bool serves_others(const Fusion *f, const Kernel *kernel, const Kernel *later) {
    for (int i = 0; i < f->program->kernels.count; i++) {
        const Kernel *other = f->program->kernels.at[i];
        if (other != kernel && other != later && is_behind(other, kernel))
            return true;
    }
    return false;
}

/* What one writes, old or new, the other reads at the same element. */
static bool meets_own_elements(Fusion *f, const Kernel *writer, const Kernel *reader) {
    for (int i = 0; i < writer->stores.count; i++) {
        const Node *value = writer->stores.at[i], *leaf = f->program->assigned[value->id];
        if (!fusion_reads_own_element(f, reader, value) || !fusion_reads_own_element(f, reader, leaf))
            return false;
    }
    return true;
}

static bool may_merge(Fusion *f, const Kernel *kernel, const Kernel *later) {
    return only_updates(f, kernel) && type_same_shape(&kernel->full, &later->full) &&
           !serves_others(f, kernel, later) && meets_own_elements(f, kernel, later) &&
           meets_own_elements(f, later, kernel) &&
           (!fusion_comes_between(f, kernel, later) || fusion_in_circle(f, kernel, later));
}

/* In the order of the graph. */
static void sort(Node **nodes, int count) {
    for (int i = 1; i < count; i++) {
        Node *n = nodes[i];
        int at = i;
        for (; at > 0 && nodes[at - 1]->id > n->id; at--)
            nodes[at] = nodes[at - 1];
        nodes[at] = n;
    }
}

static void take_nodes(Fusion *f, Kernel *kernel, const Kernel *from) {
    for (int i = 0; i < from->nodes.count; i++) {
        VEC_PUSH(f->arena, &kernel->nodes, from->nodes.at[i]);
        f->home[from->nodes.at[i]->id] = kernel;
    }
    for (int i = 0; i < from->stores.count; i++)
        VEC_PUSH(f->arena, &kernel->stores, from->stores.at[i]);
    for (int i = 0; i < from->roots.count; i++)
        VEC_PUSH(f->arena, &kernel->roots, from->roots.at[i]);
    sort(kernel->nodes.at, kernel->nodes.count);
    sort(kernel->stores.at, kernel->stores.count);
    sort(kernel->roots.at, kernel->roots.count);
}

/* What either loads and neither stores. */
static void take_loads(Fusion *f, Kernel *kernel, const Kernel *from) {
    int kept = 0;
    for (int i = 0; i < kernel->loads.count; i++)
        if (f->home[kernel->loads.at[i]->id] != kernel)
            kernel->loads.at[kept++] = kernel->loads.at[i];
    kernel->loads.count = kept;
    for (int i = 0; i < from->loads.count; i++)
        if (!kernel_reads(kernel, from->loads.at[i]))
            VEC_PUSH(f->arena, &kernel->loads, from->loads.at[i]);
}

/* What either comes behind; and why it begins, where that was because of the other. */
static void take_place(Fusion *f, Kernel *kernel, const Kernel *from) {
    int kept = 0;
    for (int i = 0; i < kernel->behind.count; i++)
        if (kernel->behind.at[i] != from)
            kernel->behind.at[kept++] = kernel->behind.at[i];
    kernel->behind.count = kept;
    for (int i = 0; i < from->behind.count; i++)
        VEC_PUSH(f->arena, &kernel->behind, from->behind.at[i]);
    if (kernel->apart_from == from) {
        kernel->apart = from->apart;
        kernel->apart_from = from->apart_from;
    }
}

static void drop_kernel(Program *program, const Kernel *gone) {
    int kept = 0;
    for (int i = 0; i < program->kernels.count; i++) {
        Kernel *kernel = program->kernels.at[i];
        if (kernel == gone)
            continue;
        kernel->id = kept;
        program->kernels.at[kept++] = kernel;
    }
    program->kernels.count = kept;
}

/* The one before `kernel` that reads the buffer too, or stores it, and may be merged with it; or NULL. */
static Kernel *find_beside(Fusion *f, const Kernel *kernel, const Node *buffer) {
    Kernel *producer = f->home[buffer->id];
    if (producer && may_merge(f, producer, kernel))
        return producer;
    const Sources readers = fusion_readers(f, NULL, buffer);
    for (int i = 0; i < readers.count; i++) {
        Kernel *reader = f->home[readers.at[i]->id];
        if (reader->id < kernel->id && may_merge(f, reader, kernel))
            return reader;
    }
    return NULL;
}

/* ... of what has an element for each of its rows: a number that is the same for all is loaded once whoever reads it. */
static Kernel *find_earlier(Fusion *f, const Kernel *kernel) {
    Kernel *earlier = NULL;
    for (int i = 0; i < kernel->loads.count && !earlier; i++)
        if (type_same_shape(&kernel->loads.at[i]->type, &kernel->full))
            earlier = find_beside(f, kernel, kernel->loads.at[i]);
    return earlier;
}

static void merge(Fusion *f, Kernel *kernel, const Kernel *earlier) {
    take_nodes(f, kernel, earlier);
    take_loads(f, kernel, earlier);
    take_place(f, kernel, earlier);
    drop_kernel(f->program, earlier);
}

void fusion_merge(Fusion *f) {
    for (int i = 0; i < f->program->kernels.count; i++) {
        Kernel *kernel = f->program->kernels.at[i];
        if (!only_updates(f, kernel))
            continue;
        for (const Kernel *earlier; (earlier = find_earlier(f, kernel));)
            merge(f, kernel, earlier);
        i = kernel->id;
    }
}
