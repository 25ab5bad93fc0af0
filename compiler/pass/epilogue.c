/* What joins a product's kernel, beside maps that read nothing of it: everything of its own is read at the output's own
 * element, seen through contiguous reshapes, so that [N OH OW, C] and [N, OH, OW, C] are the same elements.
 *
 * A sum over groups of neighbouring rows joins too: a tile adds up, column by column, the rows that it has in hand (`folds`).
 * It is the first half of a sum over all rows, such as a batch norm's statistics, which split.c cut in two for this; or a sum
 * over the pixels of each example, where an image has as many as a tile has rows. */
#include "pass/fuse.h"
#include "pass/tile.h"

enum { MAX_PRODUCT_FOLDS = 4 };

/* The walk comes to a node at most twice: at its own element, and elsewhere. */
static bool first_visit(Fusion *f, const Node *n, bool own) {
    int *visit = own ? &f->visit[n->id] : &f->elsewhere[n->id];
    bool first = *visit != f->visits && f->elsewhere[n->id] != f->visits;
    *visit = f->visits;
    return first;
}

/* `own`: what n is read for is element l of the output, where element l of n is meant. */
static bool reads_own(Fusion *f, const Kernel *kernel, const Node *n, bool own) {
    bool keeps_place = own && (n->op->cls == OP_MAP || n->op->flags & OP_CONTIGUOUS);
    for (int k = 0; k < n->inputs; k++) {
        const Node *in = n->in[k];
        const Kernel *home = f->home[in->id];
        if (home == kernel) {
            if (!keeps_place || in->op->cls == OP_REDUCE)
                return false;
        } else if (!fusion_stored_before(f, kernel, in) && first_visit(f, in, keeps_place) &&
                   !reads_own(f, kernel, in, keeps_place)) {
            return false;
        }
    }
    return true;
}

static bool fits_own_element(Fusion *f, const Kernel *kernel, const Node *n) {
    fusion_walk(f);
    return reads_own(f, kernel, n, true);
}

Apart epilogue_apart(Fusion *f, const Kernel *kernel, const Node *map) {
    if (type_elements(&map->type) != type_elements(&kernel->contraction->type))
        return APART_SHAPE;
    return fits_own_element(f, kernel, map) ? JOINS : APART_PLACE;
}

/* The rows of a sum's groups when the operand, as a matrix of `columns` columns, is summed over groups of neighbouring rows;
 * else 0. Its axes: groups.., summed.., columns.. */
static int64_t group_rows(const Node *sum, int64_t columns) {
    const Type *in = &sum->in[0]->type;
    int64_t rows = 1, trailing = 1;
    int axis = in->rank;
    while (axis > 0 && !(sum->attr.axes >> (axis - 1) & 1))
        trailing *= in->dim[--axis];
    while (axis > 0 && sum->attr.axes >> (axis - 1) & 1)
        rows *= in->dim[--axis];
    bool one_run = !(sum->attr.axes & ((1u << axis) - 1));
    return one_run && trailing == columns ? rows : 0;
}

/* Tensor cores take the outputs of windows of a spread image in another order (cuda/tensor_walk.cuh), and may take 256 of
 * others with the zeros between them (cuda/tensor_resident.cuh). Groups are then others, which a sum over all rows does not
 * mind, but one for each example does. */
static bool tiles_are_groups(const Kernel *kernel, const Node *sum, int64_t rows) {
    if (!sum->type.batched || kernel->math == MATH_FP32 || kernel->a.kind != OPERAND_WINDOW)
        return true;
    const Sweep *sweep = kernel->a.view->attr.sweep;
    return rows < 256 && sweep[0].spread == 1 && sweep[1].spread == 1;
}

/* Squares of outputs are no groups of so many rows, as in images of odd size, and the product is slower without them: by more than reading
 * the operand takes, and the launches of a kernel that does and of one that adds up what it stored. */
static bool costs_squares(const Fusion *f, const Kernel *kernel, const Node *operand, int64_t rows) {
    static const double launches = 4e-6;
    const Machine *machine = f->program->machine;
    Kernel alone = *kernel, together = *kernel;
    together.fold_rows = rows;
    kernel_cut(&alone, machine);
    kernel_cut(&together, machine);
    double lost = kernel_seconds(&together, machine) - kernel_seconds(&alone, machine);
    return alone.tile.squares && !together.tile.squares &&
           lost > launches + (double)type_bytes(&operand->type) / machine->bandwidth;
}

Apart fold_apart(Fusion *f, const Kernel *kernel, const Node *sum) {
    const Node *operand = sum->in[0];
    int64_t rows = group_rows(sum, kernel->n);
    bool tiled = f->program->machine->blocks && rows < kernel->m && (rows == 64 || rows == 128 || rows == 256) &&
                 tiles_are_groups(kernel, sum, rows);
    if (!tiled || !op_adds(sum->op) || kernel->batches != 1 || kernel->folds.count == MAX_PRODUCT_FOLDS ||
        (kernel->fold_rows && kernel->fold_rows != rows) ||
        type_elements(&operand->type) != type_elements(&kernel->contraction->type))
        return APART_TILES;
    const bool fits = f->home[operand->id] == kernel
                          ? operand->op->cls != OP_REDUCE
                          : !fusion_stored_before(f, kernel, operand) && fits_own_element(f, kernel, operand);
    return !fits ? APART_PLACE : costs_squares(f, kernel, operand, rows) ? APART_TILES : JOINS;
}
