/* Cutting a row's work into stages: loops over the row's extent, with team-wide barriers between them.
 *
 * Reductions, products and row vectors are complete only after the stage that computes them; a value's level is the
 * first stage where all that it reads is complete. Maps cost less than a round trip through memory: a later stage
 * computes them again from their sources. What a product reads element by element, and a product's result that later
 * stages read, is kept in a row vector.
 *
 *   level 0   logits[j] = sum over k of h[k] * w[j, k]  + bias[j]        contraction, kept as a vector
 *   level 1   peak = max over j of logits[j]                             reduction
 *   level 2   total = sum over j of exp(logits[j] - peak)                reduction
 *   level 3   d_logits[j] = exp(logits[j] - peak) / total - y[j]         vector (read by the next product), stored
 *   level 4   d_h[k] = sum over j of d_logits[j] * w[j, k]               contraction, stored
 */
#include "pass/fuse.h"

typedef struct Staging {
    Fusion *f;
    Kernel *kernel;
    int *level;       /* by node id; of nodes of the kernel and of what they read that has no home */
    bool *of_product; /* by node id; of nodes of the kernel: computed in the stage of a product that it reads */
    VEC(const Node *) carried; /* nodes without a home that nodes of the kernel read: views, and maps computed again */
    VEC(Node *) vectors;
} Staging;

static bool is_own(const Staging *s, const Node *n) {
    return s->f->home[n->id] == s->kernel;
}

static bool is_vector(const Staging *s, const Node *n) {
    return nodes_contain(s->vectors.at, s->vectors.count, n);
}

static int level_of(Staging *s, const Node *n);

/* n is a product, or a map at its index and level: its epilogue. */
static bool is_of_product(const Staging *s, const Node *n) {
    if (n->op->cls == OP_CONTRACT)
        return true;
    for (int k = 0; n->op->cls == OP_MAP && k < n->inputs; k++) {
        const Node *in = n->in[k];
        bool computed = is_own(s, in) || !fusion_stored_before(s->f, s->kernel, in);
        if (computed && s->of_product[in->id] && s->level[in->id] == s->level[n->id])
            return true;
    }
    return false;
}

/* A product's own maps belong to its stage; everything else waits for the stage to be complete, so that a team can
 * share the work of each sum.
 *
 * The first level at which `reader` may read what node `in` of the kernel is, or is made of. */
static int level_read(Staging *s, const Node *reader, const Node *in) {
    if (!is_own(s, in)) {
        if (fusion_stored_before(s->f, s->kernel, in))
            return 0;
        if (fusion_first_visit(s->f, in)) {
            s->level[in->id] = level_of(s, in);
            s->of_product[in->id] = is_of_product(s, in);
            VEC_PUSH(s->f->arena, &s->carried, in);
        }
    }
    bool same_element = reader->op->cls == OP_MAP && type_same_shape(&reader->type, &in->type);
    bool complete_later = in->op->cls == OP_REDUCE || (s->of_product[in->id] && !same_element);
    return s->level[in->id] + complete_later;
}

static int level_of(Staging *s, const Node *n) {
    int level = 0;
    for (int k = 0; k < n->inputs; k++) {
        int read = level_read(s, n, n->in[k]);
        level = read > level ? read : level;
    }
    return level;
}

/* The left operand lies in memory as it is, so that a product reads it there. */
static bool lies_in_memory(const Staging *s, const Node *operand) {
    while (!fusion_stored_before(s->f, s->kernel, operand) && operand->op->flags & OP_CONTIGUOUS)
        operand = operand->in[0];
    bool is_buffer = operand->op->cls != OP_LEAF || operand->op->flags & OP_BUFFER;
    return fusion_stored_before(s->f, s->kernel, operand) && is_buffer && operand->type.dtype == DT_F32;
}

static void assign_levels(Staging *s) {
    fusion_walk(s->f);
    for (int i = 0; i < s->kernel->nodes.count; i++) {
        Node *n = s->kernel->nodes.at[i];
        s->level[n->id] = level_of(s, n);
        s->of_product[n->id] = is_of_product(s, n);
        if (n->op->cls != OP_CONTRACT || lies_in_memory(s, n->in[0]))
            continue;
        Node *operand = n->in[0];
        if (!is_vector(s, operand))
            VEC_PUSH(s->f->arena, &s->vectors, operand);
        int ready = s->level[operand->id] + 1; /* level_of(n) has set it if the operand is not the kernel's own */
        s->level[n->id] = ready > s->level[n->id] ? ready : s->level[n->id];
    }
}

static bool reads(const Node *reader, const Node *n) {
    return nodes_contain(reader->in, reader->inputs, n);
}

/* The one node of the kernel that reads n, if that is all. */
static Node *only_reader(const Staging *s, const Node *n) {
    Node *reader = NULL;
    for (int i = 0; i < s->carried.count; i++)
        if (reads(s->carried.at[i], n))
            return NULL;
    for (int i = 0; i < s->kernel->nodes.count; i++) {
        if (!reads(s->kernel->nodes.at[i], n))
            continue;
        if (reader)
            return NULL;
        reader = s->kernel->nodes.at[i];
    }
    return reader;
}

/* Of a product's result, what later stages read: after its bias and activation when nothing reads it before. Row vectors are
 * floats: what is rounded for several readers is kept as it was before, and rounded again by those that come later. */
static Node *kept_form(const Staging *s, Node *product) {
    Node *kept = product;
    for (Node *next = only_reader(s, product); next; next = only_reader(s, next)) {
        bool same_stage = next->op->cls == OP_MAP && type_same_shape(&next->type, &product->type) &&
                          s->level[next->id] == s->level[product->id];
        if (!same_stage)
            break;
        if (next->type.dtype == product->type.dtype)
            kept = next;
    }
    return kept;
}

typedef struct Later {
    const Staging *s;
    const Node *kept;
    const Type *written; /* kept is a leaf, overwritten in a loop over this shape: one over another may come later */
    const Type *domain;  /* of the loop that evaluates */
    int level;           /* of what is evaluated */
    bool read;
} Later;

static bool reads_later(const Later *later) {
    int level = later->s->level[later->kept->id];
    bool beside = later->written && later->level == level && !type_same_shape(later->written, later->domain);
    return later->level > level || beside;
}

static void walk_reads(Later *later, const Node *n) {
    for (int k = 0; k < n->inputs && !later->read; k++) {
        const Node *in = n->in[k];
        bool other = fusion_stored_before(later->s->f, later->s->kernel, in);
        if (in == later->kept)
            later->read = reads_later(later);
        else if (!other && in->op->cls != OP_REDUCE && in->op->cls != OP_CONTRACT && !is_vector(later->s, in) &&
                 fusion_first_visit(later->s->f, in))
            walk_reads(later, in);
    }
}

static void find_later_read(Later *later, const Node *evaluated) {
    later->level = later->s->level[evaluated->id];
    later->domain = evaluated->op->cls == OP_REDUCE ? &evaluated->in[0]->type : &evaluated->type;
    fusion_walk(later->s->f);
    if (evaluated != later->kept)
        walk_reads(later, evaluated);
}

static bool is_stored(const Kernel *kernel, const Node *n) {
    return nodes_contain(kernel->stores.at, kernel->stores.count, n);
}

static bool is_read_later(const Staging *s, const Node *kept, const Type *written) {
    Later later = {.s = s, .kept = kept, .written = written};
    for (int i = 0; i < s->kernel->nodes.count; i++) {
        const Node *n = s->kernel->nodes.at[i];
        if (n->op->cls == OP_REDUCE || n->op->cls == OP_CONTRACT || is_stored(s->kernel, n))
            find_later_read(&later, n);
    }
    for (int i = 0; i < s->vectors.count; i++)
        find_later_read(&later, s->vectors.at[i]);
    return later.read;
}

/* What is read later only through another that is kept, behind it. */
static void drop_unread(Staging *s, int first) {
    int kept = first;
    for (int i = first; i < s->vectors.count; i++) {
        Node *n = s->vectors.at[i];
        if (is_read_later(s, n, NULL))
            s->vectors.at[kept++] = n;
    }
    s->vectors.count = kept;
}

static void keep_products(Staging *s) {
    const int first = s->vectors.count;
    for (int i = 0; i < s->kernel->nodes.count; i++) {
        Node *n = s->kernel->nodes.at[i];
        if (n->op->cls != OP_CONTRACT)
            continue;
        Node *kept = kept_form(s, n);
        if (!is_vector(s, kept) && is_read_later(s, kept, NULL))
            VEC_PUSH(s->f->arena, &s->vectors, kept);
    }
    drop_unread(s, first);
}

typedef struct Levels {
    VEC(int) of; /* level of each stage of the kernel */
} Levels;

/* The stage at `level` that loops over this shape; made, in the order of levels, when there is none. */
static Stage *find_stage(Staging *s, Levels *levels, int level, const Type *domain) {
    Kernel *kernel = s->kernel;
    int place = 0;
    for (; place < kernel->stages.count && levels->of.at[place] <= level; place++)
        if (levels->of.at[place] == level && type_same_shape(&kernel->stages.at[place].domain, domain))
            return &kernel->stages.at[place];
    Stage stage = {.domain = *domain};
    ENSURE(inner_axes(kernel, domain, &stage.inner));
    VEC_PUSH(s->f->arena, &kernel->stages, stage);
    VEC_PUSH(s->f->arena, &levels->of, level);
    for (int i = kernel->stages.count - 1; i > place; i--) {
        kernel->stages.at[i] = kernel->stages.at[i - 1];
        levels->of.at[i] = levels->of.at[i - 1];
    }
    kernel->stages.at[place] = stage;
    levels->of.at[place] = level;
    return &kernel->stages.at[place];
}

static void stage_node(Staging *s, Levels *levels, Node *n) {
    Arena *arena = s->f->arena;
    int level = s->level[n->id];
    if (n->op->cls == OP_REDUCE) {
        Stage *stage = find_stage(s, levels, level, &n->in[0]->type);
        VEC_PUSH(arena, &stage->reduces, n);
    } else if (n->op->cls == OP_CONTRACT) {
        Stage *stage = find_stage(s, levels, level, &n->type);
        VEC_PUSH(arena, &stage->contractions, n);
    }
}

static int store_level(const Staging *s, const Node *n) {
    return s->level[n->id] + (n->op->cls == OP_REDUCE);
}

/* A leaf would be overwritten before the last stage that reads it. */
static bool overwrites_early(const Staging *s) {
    for (int i = 0; i < s->kernel->stores.count; i++) {
        const Node *n = s->kernel->stores.at[i], *leaf = s->f->program->assigned[n->id];
        if (!leaf)
            continue;
        s->level[leaf->id] = store_level(s, n);
        if (is_read_later(s, leaf, &n->type))
            return true;
    }
    return false;
}

static int last_level(const Staging *s) {
    int last = 0;
    for (int i = 0; i < s->kernel->stores.count; i++) {
        int level = store_level(s, s->kernel->stores.at[i]);
        last = level > last ? level : last;
    }
    return last;
}

/* A fold stays at hand once it is complete: it is stored beside what is made of it, in one stage. */
static int level_beside(const Staging *s, const Node *fold) {
    int level = store_level(s, fold);
    for (int i = 0; i < s->kernel->stores.count; i++) {
        const Node *other = s->kernel->stores.at[i];
        int beside = store_level(s, other);
        if (!s->f->program->assigned[other->id] && type_same_shape(&other->type, &fold->type) && beside > level)
            level = beside;
    }
    return level;
}

static int level_to_store(const Staging *s, const Node *n, bool late) {
    if (s->f->program->assigned[n->id])
        return late ? last_level(s) + 1 : store_level(s, n);
    return n->op->cls == OP_REDUCE ? level_beside(s, n) : store_level(s, n);
}

static void stage_stores(Staging *s, Levels *levels) {
    bool late = overwrites_early(s);
    for (int i = 0; i < s->kernel->stores.count; i++) {
        Node *n = s->kernel->stores.at[i];
        Stage *stage = find_stage(s, levels, level_to_store(s, n, late), &n->type);
        VEC_PUSH(s->f->arena, &stage->stores, n);
    }
}

static void make_stages(Staging *s) {
    Arena *arena = s->f->arena;
    Kernel *kernel = s->kernel;
    Levels levels = {0};
    assign_levels(s);
    keep_products(s);
    for (int i = 0; i < kernel->nodes.count; i++)
        stage_node(s, &levels, kernel->nodes.at[i]);
    for (int i = 0; i < s->vectors.count; i++) {
        Node *n = s->vectors.at[i];
        Stage *stage = find_stage(s, &levels, s->level[n->id], &n->type);
        VEC_PUSH(arena, &stage->vectors, n);
    }
    stage_stores(s, &levels);
}

void fusion_stages(Fusion *f) {
    int *level = NEW_ARRAY(f->arena, int, f->graph->nodes.count);
    bool *of_product = NEW_ARRAY(f->arena, bool, f->graph->nodes.count);
    for (int i = 0; i < f->program->kernels.count; i++) {
        Staging s = {.f = f, .kernel = f->program->kernels.at[i], .level = level, .of_product = of_product};
        if (s.kernel->cls == KERNEL_LOOP)
            make_stages(&s);
    }
}
