/* What kernels read while they grow, who reads what they store, and so which of them come before others. */
#include "pass/fuse.h"

bool nodes_contain(Node *const *nodes, int count, const Node *n) {
    for (int i = 0; i < count; i++)
        if (nodes[i] == n)
            return true;
    return false;
}

bool fusion_stored_before(const Fusion *f, const Kernel *kernel, const Node *n) {
    const Kernel *home = f->home[n->id];
    return n->op->cls == OP_LEAF || (home && home->id < kernel->id);
}

static void add_sources(Fusion *f, const Kernel *kernel, const Node *n, Sources *sources) {
    for (int k = 0; k < n->inputs; k++) {
        Node *in = n->in[k];
        const Kernel *home = f->home[in->id];
        if ((home && home == kernel) || !fusion_first_visit(f, in))
            continue;
        if (home || (in->op->flags & OP_BUFFER))
            VEC_PUSH(f->arena, sources, in);
        else
            add_sources(f, kernel, in, sources);
    }
}

Sources fusion_sources(Fusion *f, const Kernel *kernel, const Node *n) {
    Sources sources = {0};
    fusion_walk(f);
    add_sources(f, kernel, n, &sources);
    return sources;
}

Sources fusion_readers(Fusion *f, const Kernel *kernel, const Node *n) {
    Sources readers = {0}, open = {0};
    fusion_walk(f);
    for (const Node *next = n; next; next = open.count ? open.at[--open.count] : NULL) {
        const Sources *direct = &f->readers[next->id];
        for (int i = 0; i < direct->count; i++) {
            Node *reader = direct->at[i];
            const Kernel *home = f->home[reader->id];
            if (reader->id >= f->placed || !fusion_first_visit(f, reader))
                continue;
            bool passes_on = !home || (kernel && home->id > kernel->id);
            VEC_PUSH(f->arena, passes_on ? &open : &readers, reader);
        }
    }
    return readers;
}

typedef struct ElementReads {
    const Fusion *f;
    const Kernel *kernel;
    const Node *buffer;
    const Node *reader;
} ElementReads;

static Walk reads_elsewhere(void *context, Node *n, const Access *at) {
    ElementReads *reads = context;
    bool own = n->type.rank == reads->reader->type.rank && rows_at_own(at, n->type.rank);
    if (n == reads->buffer)
        return own ? WALK_STOP : WALK_FAIL;
    bool checked_apart = own && reads->f->home[n->id] == reads->kernel;
    return checked_apart || fusion_stored_before(reads->f, reads->kernel, n) ? WALK_STOP : WALK_DEEPER;
}

/* What is read with fewer or more axes is of the row: stages keep the order there (stage.c). */
static Walk reads_moved(void *context, Node *n, const Access *at) {
    const ElementReads *reads = context;
    if (n == reads->buffer && n->type.rank != reads->reader->type.rank)
        return WALK_STOP;
    return reads_elsewhere(context, n, at);
}

bool fusion_moves(Fusion *f, const Kernel *kernel, Node *n, const Node *buffer) {
    ElementReads reads = {f, kernel, buffer, n};
    const Access own = rows_own();
    return !access_walk(f->arena, n, &own, reads_moved, &reads);
}

bool fusion_reads_own_element(Fusion *f, const Kernel *kernel, const Node *buffer) {
    const Sources readers = fusion_readers(f, kernel, buffer);
    const Access own = rows_own();
    for (int i = 0; i < readers.count; i++) {
        Node *reader = readers.at[i];
        ElementReads reads = {f, kernel, buffer, reader};
        if (f->home[reader->id] == kernel && !access_walk(f->arena, reader, &own, reads_elsewhere, &reads))
            return false;
    }
    return true;
}

Kernel *fusion_awaited(const Fusion *f, const Node *n) {
    return n->after ? f->home[n->after->id] : NULL;
}

/* ---- order ---- */

/* What a search for the kernels that come before one has found. */
typedef struct Earlier {
    Fusion *f;
    bool *found; /* by kernel id */
    VEC(const Kernel *) open;
} Earlier;

static void add_earlier(Earlier *earlier, const Kernel *kernel) {
    if (!kernel || earlier->found[kernel->id])
        return;
    earlier->found[kernel->id] = true;
    VEC_PUSH(earlier->f->arena, &earlier->open, kernel);
}

/* A kernel comes behind those that make what it reads, those that it awaits, and those that read what it overwrites. */
static void add_directly_before(Earlier *earlier, const Kernel *kernel) {
    const Fusion *f = earlier->f;
    for (int i = 0; i < kernel->loads.count; i++)
        add_earlier(earlier, f->home[kernel->loads.at[i]->id]);
    for (int i = 0; i < kernel->behind.count; i++)
        add_earlier(earlier, kernel->behind.at[i]);
    for (int i = 0; i < kernel->nodes.count; i++) {
        const Node *leaf = f->program->assigned[kernel->nodes.at[i]->id];
        for (int k = 0; leaf && k < f->program->kernels.count; k++)
            if (kernel_reads(f->program->kernels.at[k], leaf))
                add_earlier(earlier, f->program->kernels.at[k]);
    }
}

static bool loads_visited(const Fusion *f, const Kernel *kernel) {
    for (int i = 0; i < kernel->loads.count; i++)
        if (f->visit[kernel->loads.at[i]->id] == f->visits)
            return true;
    return false;
}

/* One search, from the kernels that read any of the leaves to those that come before them. */
bool fusion_may_overwrite(Fusion *f, const Kernel *kernel, Node *const *leaves, int count) {
    Earlier earlier = {.f = f};
    fusion_walk(f);
    for (int i = 0; i < count; i++)
        fusion_first_visit(f, leaves[i]);
    for (int i = 0; i < f->program->kernels.count; i++) {
        const Kernel *reader = f->program->kernels.at[i];
        if (reader == kernel || !loads_visited(f, reader))
            continue;
        if (!earlier.found)
            earlier.found = NEW_ARRAY(f->arena, bool, f->program->kernels.count);
        add_earlier(&earlier, reader);
    }
    while (earlier.open.count) {
        const Kernel *next = earlier.open.at[--earlier.open.count];
        add_directly_before(&earlier, next);
    }
    return !earlier.found || !earlier.found[kernel->id];
}

/* `later` must run behind `earlier`; `by_third`: because of a kernel that must run between them. */
static bool comes_behind(Fusion *f, const Kernel *later, const Kernel *earlier, bool by_third) {
    Earlier search = {.f = f, .found = NEW_ARRAY(f->arena, bool, f->program->kernels.count)};
    search.found[later->id] = true;
    search.found[earlier->id] = by_third; /* what is between these two alone is not searched then */
    add_directly_before(&search, later);
    search.found[earlier->id] &= !by_third;
    while (search.open.count && !search.found[earlier->id]) {
        const Kernel *next = search.open.at[--search.open.count];
        add_directly_before(&search, next);
    }
    return search.found[earlier->id];
}

bool fusion_in_circle(Fusion *f, const Kernel *a, const Kernel *b) {
    return comes_behind(f, a, b, false) && comes_behind(f, b, a, false);
}

bool fusion_comes_between(Fusion *f, const Kernel *a, const Kernel *b) {
    return comes_behind(f, a, b, true) || comes_behind(f, b, a, true);
}
