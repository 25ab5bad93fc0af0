/* Maps that are not worth their memory. A kernel that computes a map stores it when other kernels read it; often each reader
 * could as well compute it from what is stored anyway. A ReLU's mask is a comparison of the activation, which the backward pass
 * reads too; a batch norm's normalised value is a few operations on the 16-bit result of the convolution.
 *
 *      y ---> a kernel:  d = y - mean, d stored  ---> a reader of d            y --+--> a kernel
 *                                                                      ==>         `--> d = y - mean, a reader of d
 *
 * The map loses its home, and each reader computes it, when that takes no more traffic than storing and loading it, and when no
 * value has then too much to compute again (rows.c). */
#include "pass/fuse.h"

#include <limits.h>

enum {
    MAX_SOURCES = 16,
    SMALL_FOLD = 16, /* a fold is little beside a map of so many times its bytes */
    FOLD_GAIN =
        2 /* a reader waits for one more number of each row: worth it where the traffic is half (char_gpt.mt in bf16
                        takes 0.98 of its time then; in fp32, where two thirds are left, it would take 1.02) */
};

static void drop(Node **nodes, int *count, const Node *n) {
    int kept = 0;
    for (int i = 0; i < *count; i++)
        if (nodes[i] != n)
            nodes[kept++] = nodes[i];
    *count = kept;
}

static bool is_root_value(const Fusion *f, const Node *n) {
    return f->root_value[n->id];
}

static bool is_operand(const Kernel *kernel, const Node *n) {
    return kernel->cls == KERNEL_CALL ||
           (kernel->cls == KERNEL_CONTRACT && (kernel->a.buffer == n || kernel->b.buffer == n));
}

static bool is_stored(const Fusion *f, const Node *n) {
    const Kernel *home = f->home[n->id];
    return home && nodes_contain(home->stores.at, home->stores.count, n);
}

/* What a map is made of in memory, and the nodes between. */
typedef struct Cone {
    const Kernel *home; /* of the map */
    int64_t fold_bytes; /* what a row's fold that is to be stored for it may take */
    bool folds;         /* such a fold is among the sources */
    bool looks_up;      /* what lies between reads its source at a place that it computes */
    Sources sources;
    VEC(Node *) between;
    int overwritten; /* id of the first kernel that overwrites one of the sources */
} Cone;

static void note_overwriter(const Fusion *f, const Node *leaf, Cone *cone) {
    const Node *next = f->program->next[leaf->id];
    const Kernel *overwriter = next ? f->home[next->id] : NULL;
    if (overwriter && overwriter->id < cone->overwritten)
        cone->overwritten = overwriter->id;
}

/* The kernel that makes the node's value, if it comes no later than the map's. A view, or a map of leaves, that a later one puts
 * in memory is not there yet for kernels between the two: they compute it. */
static const Kernel *home_before(const Fusion *f, const Node *n, const Cone *cone) {
    const Kernel *home = f->home[n->id];
    return home && home->id <= cone->home->id ? home : NULL;
}

/* The fold of an example's row, such as the sum that a norm subtracts: complete where its kernel has folded the row, and so
 * little beside the map that storing it costs next to nothing. What is the same for all examples is rather stored whole: it is
 * read from a cache, and would be computed again for each example. */
static bool is_small_fold(const Node *n, const Cone *cone) {
    return n->op->cls == OP_REDUCE && n->type.batched && type_bytes(&n->type) <= cone->fold_bytes;
}

/* False: something below is complete only inside of its own kernel. */
static bool add_cone(Fusion *f, Node *n, Cone *cone) {
    for (int k = 0; k < n->inputs; k++) {
        Node *in = n->in[k];
        const Kernel *home = home_before(f, in, cone);
        bool leaf = in->op->flags & OP_BUFFER;
        if (!fusion_first_visit(f, in))
            continue;
        if (cone->sources.count > MAX_SOURCES)
            return false;
        if (leaf)
            note_overwriter(f, in, cone);
        cone->looks_up |= in->op->flags & OP_LOOKUP;
        bool narrow = n->op->flags & OP_WIDENS; /* may be stored in place of what is made of it */
        if (leaf || (home && (narrow || is_stored(f, in)))) {
            VEC_PUSH(f->arena, &cone->sources, in);
            continue;
        }
        if (home && in->op->cls != OP_MAP) {
            if (!is_small_fold(in, cone))
                return false;
            cone->folds = true;
            VEC_PUSH(f->arena, &cone->sources, in);
            continue;
        }
        if (home)
            VEC_PUSH(f->arena, &cone->between, in);
        if (!add_cone(f, in, cone))
            return false;
    }
    return true;
}

/* Bytes that the reader would load for it that it does not load anyway. */
static double added_bytes(const Kernel *reader, const Cone *cone) {
    double bytes = 0;
    for (int i = 0; i < cone->sources.count; i++)
        if (!kernel_reads(reader, cone->sources.at[i]))
            bytes += (double)type_bytes(&cone->sources.at[i]->type);
    return bytes;
}

/* The reader finds the sources as they were: it precedes what overwrites them, whatever the order of phases. */
static bool comes_in_time(const Kernel *reader, const Cone *cone) {
    bool overwrites = false;
    for (int i = 0; i < reader->roots.count; i++)
        overwrites |= reader->roots.at[i]->inputs == 2;
    return cone->overwritten == INT_MAX || (reader->id < cone->overwritten && !overwrites);
}

/* A reader that loads a fold does not look up the rest as well: those are two loads one after another, in the epilogue of a
 * product too. */
static bool may_wait(const Cone *cone) {
    return !cone->folds || !cone->looks_up;
}

static bool saves_traffic(const Fusion *f, const Node *n, const Cone *cone) {
    double bytes = (double)type_bytes(&n->type), saved = bytes, added = 0;
    for (int i = 0; i < cone->sources.count; i++)
        if (f->home[cone->sources.at[i]->id] && !is_stored(f, cone->sources.at[i]))
            added += (double)type_bytes(&cone->sources.at[i]->type);
    for (int i = 0; i < f->program->kernels.count; i++) {
        const Kernel *reader = f->program->kernels.at[i];
        if (!kernel_reads(reader, n))
            continue;
        if (is_operand(reader, n) || !comes_in_time(reader, cone))
            return false;
        saved += bytes;
        added += added_bytes(reader, cone);
    }
    return added * (cone->folds ? FOLD_GAIN : 1) <= saved;
}

/* Those that compute n, which has no home, among what they compute again, still compute little again. */
static bool readers_compute_little(Fusion *f, const Node *n) {
    Sources readers = fusion_readers(f, NULL, n);
    for (int i = 0; i < readers.count; i++)
        if (!fusion_computes_little(f, readers.at[i]))
            return false;
    return true;
}

/* The same, were n and what lies between it and its sources computed by each of its readers. */
static bool leaves_little(Fusion *f, const Node *n, const Cone *cone) {
    Kernel *home = f->home[n->id], **between = NEW_ARRAY(f->arena, Kernel *, cone->between.count);
    f->home[n->id] = NULL;
    for (int i = 0; i < cone->between.count; i++) {
        between[i] = f->home[cone->between.at[i]->id];
        f->home[cone->between.at[i]->id] = NULL;
    }
    bool little = readers_compute_little(f, n);
    for (int i = 0; i < cone->between.count && little; i++)
        little = readers_compute_little(f, cone->between.at[i]);
    f->home[n->id] = home;
    for (int i = 0; i < cone->between.count; i++)
        f->home[cone->between.at[i]->id] = between[i];
    return little;
}

static void lose_home(Fusion *f, Node *n) {
    Kernel *home = f->home[n->id];
    drop(home->nodes.at, &home->nodes.count, n);
    f->home[n->id] = NULL;
    f->program->again[n->id] = true;
}

/* Its readers read the sources; what lies between is computed wherever it is needed, in the old home too. */
static void forget(Fusion *f, Node *n, const Cone *cone) {
    Kernel *home = f->home[n->id];
    for (int i = 0; i < f->program->kernels.count; i++) {
        Kernel *reader = f->program->kernels.at[i];
        if (!kernel_reads(reader, n))
            continue;
        drop(reader->loads.at, &reader->loads.count, n);
        for (int s = 0; s < cone->sources.count; s++)
            if (!kernel_reads(reader, cone->sources.at[s]))
                VEC_PUSH(f->arena, &reader->loads, cone->sources.at[s]);
    }
    for (int s = 0; s < cone->sources.count; s++) {
        Node *source = cone->sources.at[s];
        if (f->home[source->id] && !is_stored(f, source))
            VEC_PUSH(f->arena, &f->home[source->id]->stores, source);
    }
    drop(home->stores.at, &home->stores.count, n);
    lose_home(f, n);
    for (int i = 0; i < cone->between.count; i++)
        if (f->home[cone->between.at[i]->id])
            lose_home(f, cone->between.at[i]);
}

/* Nothing that a kernel stores is among the sources. */
static bool is_of_leaves(const Fusion *f, const Cone *cone) {
    for (int i = 0; i < cone->sources.count; i++)
        if (f->home[cone->sources.at[i]->id])
            return false;
    return true;
}

static void inline_map(Fusion *f, Node *n, bool complete) {
    Cone cone = {
        .home = f->home[n->id], .fold_bytes = complete ? type_bytes(&n->type) / SMALL_FOLD : 0, .overwritten = INT_MAX};
    if (n->op->cls != OP_MAP || is_root_value(f, n) || f->lasts[n->id])
        return;
    fusion_walk(f);
    if (add_cone(f, n, &cone) && !(is_of_leaves(f, &cone) && fusion_serves_many(f, n)) && may_wait(&cone) &&
        saves_traffic(f, n, &cone) && leaves_little(f, n, &cone))
        forget(f, n, &cone);
}

/* A kernel that has nothing left to compute, or in the end to store, is gone. */
static void drop_empty(Fusion *f, bool complete) {
    Program *program = f->program;
    int kept = 0;
    for (int i = 0; i < program->kernels.count; i++) {
        Kernel *kernel = program->kernels.at[i];
        if (!kernel->nodes.count || (complete && !kernel->stores.count))
            continue;
        kernel->id = kept;
        program->kernels.at[kept++] = kernel;
    }
    program->kernels.count = kept;
}

void fusion_inline(Fusion *f, bool complete) {
    for (int i = f->program->kernels.count - 1; i >= 0; i--) {
        Kernel *kernel = f->program->kernels.at[i];
        for (int s = kernel->stores.count - 1; s >= 0; s--)
            inline_map(f, kernel->stores.at[s], complete);
    }
    drop_empty(f, complete);
}
