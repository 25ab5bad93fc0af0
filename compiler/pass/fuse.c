/* Fusion: nodes, in topological order, join the last kernel that they read from, when its rows (LOOP) or its outputs
 * (CONTRACT) are theirs too; otherwise they start one. Since a node joins only the last of its producers, or a kernel behind
 * it (`sibling`), kernel ids stay a topological order and no cycle can arise. */
#include "pass/fuse.h"

#include "pass/flat.h"
#include "pass/split.h"

enum {
    THIN_WEIGHT = 16384, /* elements of a weight matrix that a row reads whole */
    THIN_WORK = 4 << 20, /* ... times rows: what re-reading it from cache may cost */
    THIN_TILE = 1 << 18, /* multiply-adds from which a processor's thread computes tiles, from registers */
    ROW_FLOATS = 4096,   /* that a row may keep for its products: 16 KB, of the 48 that a block has for sure */
    LONE_ROW = 4096,     /* elements that one block may handle alone */
    SHORT_ROW = 32,      /* elements: one for each lane of a warp */
    MANY_ROWS = 16384,
    HIGH_COLUMNS = 1 << 18, /* elements */
    MAX_LOOP_FOLDS = 32     /* in one kernel: each stage computes again what lies between it and memory */
};

/* ---- rows ---- */

/* One block may handle a few short rows alone. Rows that are columns of a matrix, few and high, would keep few blocks busy
 * with what is element-wise work: it is a kernel of its own then. */
static bool affordable_row(const Fusion *f, const Kernel *kernel, const Type *shape) {
    int64_t elements = type_elements(shape);
    bool high_columns = !rows_are_trailing(kernel) && kernel->rows < MANY_ROWS && elements > HIGH_COLUMNS;
    if (are_rows_of_texts(f->graph, kernel->rows, elements, f->program->machine))
        return false;
    return kernel->rows > 16 ? !high_columns : elements <= LONE_ROW;
}

/* As long as a flat weight, of which each process computes elements of its own (flat.h): what computes them is a loop over these. */
static bool is_of_flat(const Fusion *f, const Node *n) {
    const Module *module = f->program->graph->module;
    int row = module->weights.count - 1;
    while (row >= 0 && is_flat(module, row) && !type_same_shape(&n->type, &module->weights.at[row].type))
        row--;
    return row >= 0 && is_flat(module, row);
}

static Apart map_apart(Fusion *f, Kernel *kernel, Node *n) {
    if (is_of_flat(f, n) && !(type_same_shape(&n->type, &kernel->full) && rows_are_elements(kernel)))
        return APART_ROWS;
    if (kernel->cls == KERNEL_CONTRACT)
        return epilogue_apart(f, kernel, n);
    Access at;
    return !affordable_row(f, kernel, &n->type)        ? APART_LARGE_ROWS
           : !rows_access(kernel, &n->type, &at)       ? APART_ROWS
           : !fusion_reads_fit_rows(f, kernel, n, &at) ? APART_OTHERS
                                                       : JOINS;
}

static int count_folds(const Kernel *kernel) {
    int count = 0;
    for (int i = 0; i < kernel->nodes.count; i++)
        count += kernel->nodes.at[i]->op->cls == OP_REDUCE;
    return count;
}

/* A reduction turns an element-wise kernel over its operand into one with rows, or folds what the rows already loop
 * over. Along slow axes alone it does not: few rows would then also have to write the operand. */
static Apart reduce_apart(Fusion *f, Kernel *kernel, Node *n) {
    const Type *operand = &n->in[0]->type;
    if (kernel->cls == KERNEL_CONTRACT)
        return fold_apart(f, kernel, n);
    if (count_folds(kernel) == MAX_LOOP_FOLDS)
        return APART_FOLDS;
    Kernel trial = *kernel;
    if (rows_are_elements(kernel) && type_same_shape(operand, &kernel->full)) {
        rows_set(&trial, operand, n->attr.axes);
        bool along_fast = n->attr.axes >> (operand->rank - 1) & 1;
        if ((!along_fast && trial.rows < MANY_ROWS) || !affordable_row(f, &trial, operand))
            return APART_LARGE_ROWS;
    }
    unsigned inner;
    bool few_long = trial.rows <= 16 && type_elements(operand) > LONE_ROW;
    if (!inner_axes(&trial, operand, &inner) || inner != n->attr.axes || few_long)
        return few_long ? APART_LARGE_ROWS : APART_ROWS;
    Kernel saved = *kernel;
    *kernel = trial;
    Access at = rows_own();
    if (fusion_reads_fit_rows(f, kernel, n, &at))
        return JOINS;
    *kernel = saved;
    return APART_OTHERS;
}

/* Rows of windows overlap: a tile reads each of their numbers from memory only once. */
static bool is_swept(const Node *n) {
    while (n->op->cls == OP_VIEW && n->op->flags & OP_CONTIGUOUS)
        n = n->in[0];
    return n->op->cls == OP_VIEW && n->op->attrs & ATTR_SWEEP;
}

/* Rows [B T, width] of sequences [B, T, width]: no row of a kernel is theirs, for what is computed before and behind has the
 * other shape. */
static bool is_of_sequences(const Node *n) {
    const Node *whole = n->op->flags & OP_CONTIGUOUS ? n->in[0] : n;
    return whole->type.rank == 3 && whole->type.batched && whole->type.dim[0] != n->type.dim[0];
}

static int64_t thin_work(const Node *n) {
    return type_elements(&n->in[1]->type) * type_elements(&n->type) / n->type.dim[n->type.rank - 1];
}

bool product_is_thin(const Node *n) {
    const Type *a = &n->in[0]->type, *b = &n->in[1]->type;
    if (n->attr.ta || b->rank != 2 || b->batched || !a->batched || a->dtype != DT_F32 || is_swept(n->in[0]) ||
        is_of_sequences(n->in[0]))
        return false;
    return type_elements(b) <= THIN_WEIGHT && thin_work(n) <= THIN_WORK && b->dim[0] + b->dim[1] <= ROW_FLOATS;
}

/* A product with a kernel of its own, which computes it in tiles. */
static bool has_tiles(const Fusion *f, const Node *n) {
    if (n->op->cls != OP_CONTRACT || !product_is_thin(n))
        return n->op->cls == OP_CONTRACT;
    return !f->program->machine->blocks && thin_work(n) >= THIN_TILE;
}

/* Floats that the products of a row may keep in row-local memory. */
static int64_t row_floats(const Kernel *kernel) {
    int64_t floats = 0;
    for (int i = 0; i < kernel->nodes.count; i++) {
        const Node *n = kernel->nodes.at[i];
        if (n->op->cls == OP_CONTRACT)
            floats += n->in[1]->type.dim[0] + n->in[1]->type.dim[1];
    }
    return floats;
}

static Apart thin_apart(Fusion *f, Kernel *kernel, Node *n) {
    if (kernel->cls == KERNEL_CONTRACT || row_floats(kernel) > ROW_FLOATS)
        return kernel->cls == KERNEL_CONTRACT ? APART_WHOLE_ROWS : APART_ROOM;
    Kernel saved = *kernel;
    int rows = n->type.rank - 1;
    if (rows_are_elements(kernel) && kernel->full.rank > rows)
        rows_set(kernel, &kernel->full, ((1u << kernel->full.rank) - 1) & ~((1u << rows) - 1));
    Access at;
    const bool same = kernel->kept.rank == rows && rows_are_trailing(kernel) && rows_access(kernel, &n->type, &at);
    if (same && fusion_reads_fit_rows(f, kernel, n, &at))
        return JOINS;
    *kernel = saved;
    return same ? APART_OTHERS : APART_ROWS;
}

/* ---- updates in place ---- */

/* Its own reads of the leaf must be of the element that is written. */
static bool may_overwrite(Fusion *f, Kernel *kernel, Node *n, Node *leaf) {
    return type_same_shape(&n->type, &leaf->type) && fusion_may_overwrite(f, kernel, &leaf, 1) &&
           fusion_reads_own_element(f, kernel, leaf);
}

/* What the kernel overwrites, n reads at its own element too: at another one it may be new. */
static bool reads_no_other_element(Fusion *f, const Kernel *kernel, Node *n) {
    for (int i = 0; i < kernel->nodes.count; i++) {
        const Node *leaf = f->program->assigned[kernel->nodes.at[i]->id];
        if (leaf && fusion_moves(f, kernel, n, leaf))
            return false;
    }
    return true;
}

/* Either all that the kernel computes, and n, are maps, or nothing of it is overwritten. */
static bool keeps_updates_last(const Fusion *f, const Kernel *kernel, const Node *n) {
    bool maps = n->op->cls == OP_MAP, overwrites = f->program->assigned[n->id];
    for (int i = 0; i < kernel->nodes.count; i++) {
        maps &= kernel->nodes.at[i]->op->cls == OP_MAP;
        overwrites |= f->program->assigned[kernel->nodes.at[i]->id] != NULL;
    }
    return maps || !overwrites;
}

/* It puts a data field in memory, where kernels before it read the field too: they wait for it, so it waits for none. */
static bool copies_field(const Kernel *kernel) {
    return kernel->nodes.count && kernel->nodes.at[0]->op->cls == OP_LEAF;
}

/* Why n does not join the kernel; where it does, the kernel's rows are those that n needs. */
static Apart apart(Fusion *f, Kernel *kernel, Node *n) {
    Node *leaf = f->program->assigned[n->id];
    if (f->lasts[kernel->nodes.at[0]->id] || f->lasts[n->id])
        return APART_MEMORY;
    if (kernel->cls == KERNEL_CALL || copies_field(kernel))
        return kernel->cls == KERNEL_CALL ? APART_FROM_CALL : APART_FROM_COPY;
    if ((leaf && !may_overwrite(f, kernel, n, leaf)) || !reads_no_other_element(f, kernel, n))
        return APART_OVERWRITES;
    if (f->updates_last && !keeps_updates_last(f, kernel, n))
        return APART_OVERWRITES;
    switch (n->op->cls) {
    case OP_MAP: return map_apart(f, kernel, n);
    case OP_REDUCE: return reduce_apart(f, kernel, n);
    default: return thin_apart(f, kernel, n);
    }
}

/* ---- a kernel for a product, for a call ---- */

static void contract_kernel(Fusion *f, Node *n) {
    Kernel description = {0};
    product_describe(f, &description, n); /* before the kernel: operands may need kernels of their own */
    Kernel *kernel = fusion_new_kernel(f, KERNEL_CONTRACT);
    description.id = kernel->id;
    description.cls = kernel->cls;
    description.apart = APART_PRODUCT;
    *kernel = description;
    f->home[n->id] = kernel;
    VEC_PUSH(f->arena, &kernel->nodes, n);
    fusion_load(f, kernel, kernel->a.buffer);
    fusion_load(f, kernel, kernel->b.buffer);
}

/* A run-time number, which a function takes as such. */
static bool is_number(const Node *n) {
    return n->op->cls == OP_LEAF && n->op->flags & OP_SCALAR;
}

/* Its result is stored whether it is read or not: the function of the library writes it. */
static void call_kernel(Fusion *f, Node *n) {
    Kernel description = {.cls = KERNEL_CALL, .call = n, .apart = APART_CALL};
    for (int k = 0; k < n->inputs; k++) /* before the kernel: operands may need kernels of their own */
        description.operands[k] = is_number(n->in[k]) ? n->in[k] : fusion_stored_whole(f, n->in[k]);
    description.math = call_math(n);
    Kernel *kernel = fusion_new_kernel(f, KERNEL_CALL);
    description.id = kernel->id;
    *kernel = description;
    f->home[n->id] = kernel;
    VEC_PUSH(f->arena, &kernel->nodes, n);
    for (int k = 0; k < n->inputs; k++)
        if (!is_number(n->in[k]))
            fusion_load(f, kernel, kernel->operands[k]);
    fusion_store(f, n);
}

static void place_call(Fusion *f, Node *n) {
    if (!(n->op->flags & OP_PART)) {
        call_kernel(f, n);
        return;
    }
    f->home[n->id] = f->home[n->in[0]->id];
    VEC_PUSH(f->arena, &f->home[n->id]->nodes, n);
    fusion_store(f, n);
}

static Kernel *latest_producer(Fusion *f, const Node *n) {
    Sources sources = fusion_sources(f, NULL, n);
    Kernel *latest = fusion_awaited(f, n);
    for (int i = 0; i < sources.count; i++) {
        Kernel *producer = f->home[sources.at[i]->id];
        if (producer && (!latest || producer->id > latest->id))
            latest = producer;
    }
    return latest;
}

static unsigned last_axis(const Type *type) {
    return 1u << (type->rank - 1);
}

/* A lone row, as of the reports of a step, belongs to one warp, which would compute several sums one after another, where kernels
 * run side by side; but numbers that its lanes load at once are summed together in the time of one sum. */
static bool takes_siblings(const Kernel *kernel) {
    return kernel->cls == KERNEL_LOOP && (kernel->rows > 1 || type_elements(&kernel->full) <= SHORT_ROW);
}

/* Sums over the same axes of values of the same shape are stages of one kernel, when none waits for the other. */
static Kernel *sibling(Fusion *f, const Kernel *latest, Node *n) {
    enum { NEAR = 8 };
    const Program *program = f->program;
    int first = latest ? latest->id + 1 : 0, last = program->kernels.count - 1;
    for (int i = last; i >= first && i > last - NEAR; i--) {
        Kernel *kernel = program->kernels.at[i];
        if (takes_siblings(kernel) && kernel->inner == n->attr.axes &&
            type_same_shape(&kernel->full, &n->in[0]->type) && apart(f, kernel, n) == JOINS)
            return kernel;
    }
    return NULL;
}

/* n reads rows of a table: from all over memory. */
static bool reads_lookup(const Node *n) {
    for (int k = 0; k < n->inputs; k++) {
        const Node *in = n->in[k];
        while (in->op->cls == OP_VIEW && !(in->op->flags & OP_LOOKUP))
            in = in->in[0];
        if (in->op->flags & OP_LOOKUP)
            return true;
    }
    return false;
}

static void begin_rows(Fusion *f, Node *n, Apart why, const Kernel *from) {
    const bool folds = n->op->cls == OP_REDUCE;
    const unsigned inner = folds ? n->attr.axes : n->op->cls == OP_CONTRACT ? last_axis(&n->type) : 0;
    Kernel *kernel = fusion_loop_kernel(f, n, folds ? &n->in[0]->type : &n->type, inner);
    kernel->apart = why;
    kernel->apart_from = from;
}

/* A map of leaves alone: whoever reads it computes it; but what is looked up is looked up once, and what takes much or serves many
 * is computed once. */
static bool may_lack_home(Fusion *f, Node *n) {
    return n->op->cls == OP_MAP && !reads_lookup(n) && !fusion_takes_much(f, n) && !fusion_serves_many(f, n);
}

/* Whoever reads a narrow number as a wide one does so itself, and computes a map that is computed again (rematerialize.c) from what
 * lies in memory: neither has a home. */
static void place(Fusion *f, Node *n) {
    if (n->op->flags & OP_WIDENS || (n->after && n->op->cls == OP_MAP))
        return;
    bool wide = has_tiles(f, n);
    Kernel *latest = wide ? NULL : latest_producer(f, n);
    if (!latest && may_lack_home(f, n) && !f->lasts[n->id])
        return;
    const Apart why = latest ? apart(f, latest, n) : APART_FIRST;
    bool joins = why == JOINS;
    bool may_ride = n->op->cls == OP_REDUCE && f->factor[n->in[0]->id];
    Kernel *other = joins || may_ride || n->op->cls != OP_REDUCE ? NULL : sibling(f, latest, n);
    if (joins || other)
        fusion_absorb(f, joins ? latest : other, n);
    else if (wide)
        contract_kernel(f, n);
    else
        begin_rows(f, n, why, latest);
}

static void place_root(Fusion *f, Node *root) {
    Node *value = root->in[root->inputs - 1];
    ENSURE(value->op->cls != OP_LEAF && !(value->op->cls == OP_CALL && root->inputs == 2));
    fusion_in_memory(f, value);
    VEC_PUSH(f->arena, &f->home[value->id]->roots, root);
    f->home[value->id]->lasts |= root->op->table == TABLE_LAST;
    f->root_value[value->id] = true;
}

static void find_assigned(Program *program) {
    const Graph *g = program->graph;
    program->assigned = NEW_ARRAY(program->arena, Node *, g->nodes.count);
    program->next = NEW_ARRAY(program->arena, Node *, g->nodes.count);
    program->again = NEW_ARRAY(program->arena, bool, g->nodes.count);
    for (int i = 0; i < g->roots.count; i++) {
        Node *const *in = g->roots.at[i]->in;
        if (g->roots.at[i]->inputs != 2)
            continue;
        program->assigned[in[1]->id] = in[0];
        program->next[in[0]->id] = in[1];
    }
}

/* A kernel that had nothing left to compute has no name. */
static void forget_lost(Program *program) {
    for (int i = 0; i < program->kernels.count; i++) {
        const Kernel **from = &program->kernels.at[i]->apart_from;
        bool there = false;
        for (int k = 0; k < i && *from && !there; k++)
            there = program->kernels.at[k] == *from;
        *from = there ? *from : NULL;
    }
}

/* The kernels and their stores are final. */
static void number_kernels(Program *program) {
    forget_lost(program);
    program->producer = NEW_ARRAY(program->arena, const Kernel *, program->graph->nodes.count);
    for (int i = 0; i < program->kernels.count; i++) {
        Kernel *kernel = program->kernels.at[i];
        kernel->id = i;
        for (int s = 0; s < kernel->stores.count; s++)
            program->producer[kernel->stores.at[s]->id] = kernel;
    }
}

/* By node id: an operand of some product. */
static bool *factors(const Graph *g) {
    bool *factor = NEW_ARRAY(g->arena, bool, g->nodes.count);
    for (int i = 0; i < g->nodes.count; i++)
        for (int k = 0; g->nodes.at[i]->op->cls == OP_CONTRACT && k < g->nodes.at[i]->inputs; k++)
            factor[g->nodes.at[i]->in[k]->id] = true;
    return factor;
}

/* By node id: it is made once, by a kernel of its own, for many runs of the program. */
static bool *lasting(const Graph *g) {
    bool *lasts = NEW_ARRAY(g->arena, bool, g->nodes.count);
    for (int i = 0; i < g->roots.count; i++)
        if (g->roots.at[i]->op->table == TABLE_LAST)
            lasts[g->roots.at[i]->in[0]->id] = true;
    return lasts;
}

static Sources *readers_of_all(const Graph *g) {
    Sources *readers = NEW_ARRAY(g->arena, Sources, g->nodes.count);
    for (int i = 0; i < g->nodes.count; i++)
        for (int k = 0; k < g->nodes.at[i]->inputs; k++)
            VEC_PUSH(g->arena, &readers[g->nodes.at[i]->in[k]->id], g->nodes.at[i]);
    return readers;
}

static void place_node(Fusion *f, Node *n) {
    OpClass cls = n->op->cls;
    if (cls == OP_ROOT)
        place_root(f, n);
    else if (cls == OP_MAP || cls == OP_REDUCE || cls == OP_CONTRACT)
        place(f, n);
    else if (cls == OP_CALL)
        place_call(f, n);
    else if (cls == OP_VIEW && (f->crosses[n->id] || fusion_takes_much(f, n)))
        fusion_in_memory(f, n);
}

/* Behind the last sum there are only updates, which overwrite what the kernels before them read. */
static int first_update(const Graph *g) {
    int first = g->nodes.count;
    while (first > 0 && g->nodes.at[first - 1]->op->cls != OP_REDUCE &&
           g->nodes.at[first - 1]->op->cls != OP_CONTRACT && g->nodes.at[first - 1]->op->cls != OP_CALL)
        first--;
    return first;
}

static Program *fuse_once(Graph *graph, const Machine *machine, bool updates_last) {
    Arena *arena = graph->arena;
    Program *program = NEW(arena, Program);
    *program = (Program){.graph = graph, .arena = arena, .machine = machine, .prefix = graph_kind(graph)};
    Fusion f = {.arena = arena,
                .program = program,
                .graph = graph,
                .updates_last = updates_last,
                .home = NEW_ARRAY(arena, Kernel *, graph->nodes.count),
                .field = access_single_fields(graph),
                .root_value = NEW_ARRAY(arena, bool, graph->nodes.count),
                .readers = readers_of_all(graph),
                .factor = factors(graph),
                .lasts = lasting(graph),
                .visit = NEW_ARRAY(arena, int, graph->nodes.count),
                .elsewhere = NEW_ARRAY(arena, int, graph->nodes.count)};
    find_assigned(program);
    f.crosses = fusion_crossings(&f);
    int updates = first_update(graph);
    for (; f.placed < graph->nodes.count; f.placed++) {
        if (f.placed == updates)
            fusion_inline(&f, false);
        place_node(&f, graph->nodes.at[f.placed]);
    }
    fusion_inline(&f, true);
    fusion_merge(&f);
    fusion_ride(&f);
    number_kernels(program);
    fusion_stages(&f);
    kernel_names(program);
    return program;
}

/* Which of two kernels comes first, when each overwrites what the other reads, is seen when all are there: mostly none do, and updates are best
 * where their gradients are. */
Program *fuse(Graph *graph, const Machine *machine) {
    Program *program = fuse_once(graph, machine, false);
    return program_has_order(program) ? program : fuse_once(graph, machine, true);
}
