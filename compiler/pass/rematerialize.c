/* Values of the forward pass that the backward pass computes again, rather than that they wait for it in memory.
 *
 *      phases    1 2 3 4 5 ...                ... 95 96 97              1 2 3 4 5 ...                ... 95 96 97
 *      y         |---------------------------------------|              |---------------------------------------|
 *      gelu(y)     |-------------------------------------|      ==>       |-|                               |---|
 *
 * A map that is stored is made again from what lies in memory in the backward pass anyway: products, results of calls, and
 * such maps as would cost more to make again than they take. It is made behind the gradient that its first reader reads
 * too, so not before it is needed. No product and no call is computed twice. The formulas are the same; only where a product
 * that is stored no more meets a sum, compilers may round once where they rounded twice. */
#include "pass/rematerialize.h"

enum { LEAST_SHARE = 1000 }; /* values that are a smaller part of what is kept are not worth a kernel */

typedef VEC(Node *) Nodes;

typedef struct Remat {
    Graph *g;
    const Program *kept;
    int count;      /* of the nodes that there were; arrays are by their id */
    bool *forward;  /* the loss or a metric depends on it */
    bool *waits;    /* in memory, from the forward pass for the backward pass */
    bool *made;     /* by a kernel that computes gradients, for itself: its copy could wait for what is made of it */
    Node **trigger; /* of a value that is computed again: what its copy comes behind */
    Node **image;   /* what backward nodes read in its place */
    Node **copy;    /* of the value that is being made again */
    int *visit;     /* the last walk that came to it */
    int visits;
    double least; /* bytes */
} Remat;

/* ---- forward, backward ---- */

static void mark_forward(Remat *r, const Node *n) {
    if (r->forward[n->id])
        return;
    r->forward[n->id] = true;
    for (int k = 0; k < n->inputs; k++)
        mark_forward(r, n->in[k]);
}

static bool is_stored(const Remat *r, const Node *n) {
    return n->op->flags & OP_BUFFER || program_producer(r->kept, n);
}

static bool computes(const Remat *r, const Kernel *kernel, bool forward) {
    for (int i = 0; i < kernel->nodes.count; i++)
        if (r->forward[kernel->nodes.at[i]->id] == forward)
            return true;
    return false;
}

/* The first kernel of the backward pass that reads the value; NULL: none does, or one of both passes, which needs the value
 * while the forward pass still has it. */
static const Kernel *first_backward_reader(const Remat *r, const Node *n) {
    const Kernel *first = NULL;
    for (int i = 0; i < r->kept->kernels.count; i++) {
        const Kernel *kernel = r->kept->kernels.at[i];
        if (!kernel_reads(kernel, n) || !computes(r, kernel, false))
            continue;
        if (computes(r, kernel, true))
            return NULL;
        if (!first || kernel->phase < first->phase)
            first = kernel;
    }
    return first;
}

/* Of what that kernel reads too, the gradient that is there last. */
static Node *trigger_of(const Remat *r, const Node *n) {
    const Kernel *reader = first_backward_reader(r, n);
    Node *last = NULL;
    for (int i = 0; reader && i < reader->loads.count; i++) {
        Node *load = reader->loads.at[i];
        const Kernel *producer = program_producer(r->kept, load);
        if (producer && !r->forward[load->id] && (!last || producer->phase > program_producer(r->kept, last)->phase))
            last = load;
    }
    return last;
}

static bool first_visit(Remat *r, const Node *n) {
    bool first = r->visit[n->id] != r->visits;
    r->visit[n->id] = r->visits;
    return first;
}

/* What the kernel computes n from and has not read, though it lies in memory, for others. */
static void mark_made(Remat *r, const Kernel *kernel, const Node *n) {
    for (int k = 0; k < n->inputs; k++) {
        const Node *in = n->in[k];
        if (!first_visit(r, in))
            continue;
        if (!is_stored(r, in))
            mark_made(r, kernel, in);
        else if (!kernel_reads(kernel, in))
            r->made[in->id] = true;
    }
}

static void find_made(Remat *r) {
    for (int i = 0; i < r->kept->kernels.count; i++) {
        const Kernel *kernel = r->kept->kernels.at[i];
        r->visits++;
        for (int k = 0; k < kernel->nodes.count; k++)
            if (!r->forward[kernel->nodes.at[k]->id])
                mark_made(r, kernel, kernel->nodes.at[k]);
    }
}

/* ---- what to compute again ---- */

/* A buffer that the forward pass itself changes, such as the running mean of a batch norm: whoever reads it comes before. */
static bool changes_before(const Remat *r, const Node *n) {
    return r->kept->next[n->id] && n->op->table == TABLE_WEIGHT &&
           r->g->module->weights.at[n->attr.index].kind == WEIGHT_BUFFER;
}

/* What the value is made of in memory. False: of something that is only complete inside of its own kernel, or of a leaf that
 * has another value by then. */
static bool add_sources(Remat *r, const Node *n, Nodes *sources) {
    for (int k = 0; k < n->inputs; k++) {
        Node *in = n->in[k];
        if (!first_visit(r, in))
            continue;
        if (changes_before(r, in))
            return false;
        if (is_stored(r, in) && !r->trigger[in->id])
            VEC_PUSH(r->g->arena, sources, in);
        else if (in->op->cls == OP_CONTRACT || in->op->cls == OP_CALL || !add_sources(r, in, sources))
            return false;
    }
    return true;
}

/* Bytes that would wait in its place. */
static double added_bytes(const Remat *r, const Nodes *sources) {
    double bytes = 0;
    for (int i = 0; i < sources->count; i++) {
        const Node *source = sources->at[i];
        if (!(source->op->flags & OP_BUFFER) && !r->waits[source->id])
            bytes += (double)type_bytes(&source->type);
    }
    return bytes;
}

static void consider(Remat *r, Node *n) {
    Nodes sources = {0};
    double bytes = (double)type_bytes(&n->type);
    if (n->op->cls != OP_MAP || !r->waits[n->id] || r->made[n->id] || bytes < r->least)
        return;
    Node *trigger = trigger_of(r, n);
    r->visits++;
    if (!trigger || !add_sources(r, n, &sources) || added_bytes(r, &sources) >= bytes)
        return;
    r->trigger[n->id] = trigger;
    r->waits[n->id] = false;
    for (int i = 0; i < sources.count; i++)
        r->waits[sources.at[i]->id] = true;
}

/* ---- the copies ---- */

/* The value made again behind `after`, from what lies in memory. */
static Node *again(Remat *r, Node *n, Node *after) {
    Node *in[MAX_INPUTS];
    if (!first_visit(r, n))
        return r->copy[n->id];
    for (int k = 0; k < n->inputs; k++) {
        bool read = is_stored(r, n->in[k]) && !r->trigger[n->in[k]->id];
        in[k] = read || !n->in[k]->inputs ? n->in[k] : again(r, n->in[k], after);
    }
    Node *copy = graph_again(r->g, n, in, after);
    const char *name = n->name ? n->name : n->hint;
    if (name && !copy->hint)
        copy->hint = arena_printf(r->g->arena, "%s_again", name);
    copy->meaning = n->meaning;
    return r->copy[n->id] = copy;
}

static Node *image_of(Remat *r, Node *n);

/* A view, or a map of leaves, that lies nowhere. */
static Node *with_images(Remat *r, Node *n) {
    Node *in[MAX_INPUTS];
    bool changed = false;
    for (int k = 0; k < n->inputs; k++) {
        in[k] = image_of(r, n->in[k]);
        changed |= in[k] != n->in[k];
    }
    return changed ? graph_again(r->g, n, in, n->after) : n;
}

static Node *image_of(Remat *r, Node *n) {
    if (!r->forward[n->id])
        return n;
    r->visits++;
    if (!r->image[n->id])
        r->image[n->id] = r->trigger[n->id] ? again(r, n, r->trigger[n->id]) : is_stored(r, n) ? n : with_images(r, n);
    return r->image[n->id];
}

static double waiting_bytes(const Remat *r) {
    double bytes = 0;
    for (int i = 0; i < r->count; i++)
        if (r->waits[i])
            bytes += (double)type_bytes(&r->g->nodes.at[i]->type);
    return bytes;
}

static Remat describe(Graph *g, const Program *kept) {
    int count = g->nodes.count;
    Remat r = {.g = g,
               .kept = kept,
               .count = count,
               .forward = NEW_ARRAY(g->arena, bool, count),
               .waits = NEW_ARRAY(g->arena, bool, count),
               .made = NEW_ARRAY(g->arena, bool, count),
               .trigger = NEW_ARRAY(g->arena, Node *, count),
               .image = NEW_ARRAY(g->arena, Node *, count),
               .copy = NEW_ARRAY(g->arena, Node *, count),
               .visit = NEW_ARRAY(g->arena, int, count)};
    for (int i = 0; i < g->roots.count; i++)
        if (g->roots.at[i]->op->table == TABLE_REPORT)
            mark_forward(&r, g->roots.at[i]);
    for (int i = 0; i < count; i++) {
        const Node *n = g->nodes.at[i];
        r.waits[i] = r.forward[i] && program_producer(kept, n) && first_backward_reader(&r, n);
    }
    find_made(&r);
    r.least = waiting_bytes(&r) / LEAST_SHARE;
    return r;
}

void rematerialize(Graph *g, const Program *kept) {
    Remat r = describe(g, kept);
    for (int i = 0; i < r.count; i++)
        consider(&r, g->nodes.at[i]);
    for (int i = 0; i < r.count; i++) {
        Node *n = g->nodes.at[i];
        for (int k = 0; k < n->inputs && !r.forward[n->id]; k++)
            n->in[k] = image_of(&r, n->in[k]);
    }
    graph_compact(g);
}
