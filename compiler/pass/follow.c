/* Rows behind the tile that they are made of. Where a tile of a product has whole rows, its block goes on with what is computed of each of them
 * alone, a norm or its gradient, in place of a launch of its own:
 *
 *     phase 4   h = x W           phase 4   h = x W, ln = layer_norm(h)
 *     phase 5   ln = layer_norm(h)
 *
 * The kernel stays what it is, but for the threads that share a row: it has its function, and reads from memory what the block just wrote. Where
 * tiles come in several rounds, launches of rows are as fast as memory, with all threads that a multiprocessor has, and remain. */
#include "pass/kernel.h"
#include "pass/tile.h"

/* ---- what it reads ---- */

typedef struct Reading {
    const Kernel *kernel, *leader;
    char *seen; /* by node: 1 at its own element, 2 elsewhere too */
} Reading;

static bool is_stored_by(const Kernel *kernel, const Node *n) {
    for (int k = 0; k < kernel->stores.count; k++)
        if (kernel->stores.at[k] == n)
            return true;
    return false;
}

/* Of the kernel's elements: as many as it loops over, in the order in memory. */
static bool has_all_elements(const Kernel *kernel, const Node *n) {
    return type_elements(&n->type) == type_elements(&kernel->full);
}

/* What n is computed of reads the leader's values at n's own element, `own`: for which n itself is read at that of the kernel. A fold's terms are
 * looked at apart. */
static bool reads_own_element(const Reading *reading, const Node *n, bool own) {
    for (int k = 0; k < n->inputs; k++) {
        const Node *in = n->in[k];
        const bool keeps = own && (n->op->cls == OP_MAP || n->op->flags & OP_CONTIGUOUS);
        if (is_stored_by(reading->leader, in) && (!keeps || !has_all_elements(reading->kernel, in)))
            return false;
        if (kernel_reads(reading->kernel, in) || in->op->cls == OP_REDUCE || reading->seen[in->id] > !keeps)
            continue;
        reading->seen[in->id] = (char)(1 + !keeps);
        if (!reads_own_element(reading, in, keeps))
            return false;
    }
    return true;
}

/* Each row reads of what the leader writes what lies in its own place. */
static bool reads_own_rows(const Program *program, const Kernel *kernel, const Kernel *leader) {
    Reading reading = {kernel, leader, NEW_ARRAY(program->arena, char, program->graph->nodes.count)};
    for (int k = 0; k < kernel->nodes.count; k++) {
        const Node *n = kernel->nodes.at[k];
        const Node *terms = n->op->cls == OP_REDUCE ? n->in[0] : n;
        if (n->op->cls == OP_REDUCE && is_stored_by(leader, terms) && !has_all_elements(kernel, terms))
            return false;
        if (!kernel_reads(kernel, terms) && !reads_own_element(&reading, terms, has_all_elements(kernel, terms)))
            return false;
    }
    return true;
}

/* ---- which kernels ---- */

/* Tile i has rows i * tile.m and those behind it, all of them whole, and a block to itself; all tiles run at a time. */
static bool may_lead(const Kernel *kernel, const Machine *machine) {
    const Tile *tile = &kernel->tile;
    return kernel->cls == KERNEL_CONTRACT && kernel->batches == 1 && kernel->a.kind == OPERAND_MATRIX &&
           kernel->b.kind == OPERAND_MATRIX && tile->n >= kernel->n && kernel->m % tile->m == 0 && !tile->turns &&
           !tile->few && !tile->squares && tile->splits < 2 && product_feed(kernel) != FEED_THIN && !kernel->lasts &&
           kernel->tiles <= machine->multiprocessors;
}

static bool may_follow(const Kernel *kernel) {
    return kernel->cls == KERNEL_LOOP && (kernel->team == TEAM_WARP || kernel->team == TEAM_LANES) &&
           kernel_folds_trailing_axes(kernel) && !kernel_has_vectors(kernel) && !kernel->held && !kernel->patch.sum &&
           kernel->roots.count == 0 && !kernel->lasts;
}

/* That one of the level before whose end is all that the kernel waits for; NULL: there are others, or none. */
static Kernel *waits_for(const Program *program, const Kernel *kernel) {
    Kernel *leader = NULL;
    for (int k = 0; k < kernel->behind.count; k++)
        if (kernel->behind.at[k]->phase + 1 >= kernel->phase)
            return NULL;
    for (int k = 0; k < kernel->loads.count; k++) {
        const Kernel *producer = program_producer(program, kernel->loads.at[k]);
        if (!producer || producer->phase + 1 < kernel->phase)
            continue;
        if (leader && producer != leader)
            return NULL;
        leader = program->kernels.at[producer->id];
    }
    return leader;
}

/* So many of the kernel's rows lie in a tile; 0: its ends are not theirs, or each thread would have too much to do. */
static int64_t rows_behind(const Kernel *kernel, const Kernel *leader) {
    enum { MOST_ELEMENTS = 16 }; /* of a thread, which reads them one pack after the other */
    const int64_t elements = leader->tile.m * leader->n, extent = type_elements(&kernel->full) / kernel->rows;
    const int64_t rows = elements / extent;
    const bool whole = elements % extent == 0 && (rows < THREADS ? THREADS % rows : rows % THREADS) == 0;
    return whole && elements <= MOST_ELEMENTS * THREADS && rows >= THREADS / LANES ? rows : 0;
}

bool find_followers(Program *program) {
    const Machine *machine = program->machine;
    bool found = false;
    if (!machine->blocks || machine->resident == 1 || program->graph == program->graph->module->decode)
        return false;
    for (int k = 0; k < program->kernels.count; k++) {
        Kernel *kernel = program->kernels.at[k], *leader = may_follow(kernel) ? waits_for(program, kernel) : NULL;
        if (!leader || !may_lead(leader, machine) || type_elements(&kernel->full) != leader->m * leader->n)
            continue;
        const int64_t rows = rows_behind(kernel, leader);
        if (!rows || !reads_own_rows(program, kernel, leader))
            continue;
        kernel->leader = leader;
        kernel_cut_behind(kernel, leader, rows, machine);
        found = true;
    }
    return found;
}
