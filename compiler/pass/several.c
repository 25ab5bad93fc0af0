/* Several rows at a time. Where one token is decoded, a product of one row is a sum for each of its outputs, and a launch is done when memory
 * has answered a few times. Every block reads the one row, and may have to compute it first, a norm's: so there are no more blocks than
 * multiprocessors, of teams that have several sums at a time. */
#include "pass/tile.h"

int64_t room_for_weights(const Machine *machine) {
    enum { BLOCKS = 3, MOST = 48 * 1024 };
    const int64_t share = machine->block_memory / BLOCKS;
    return share < MOST ? share : MOST;
}

static bool adds_along_last_axis(const Node *sum) {
    return sum->attr.axes == 1u << (sum->in[0]->type.rank - 1);
}

/* Row i of a matrix, for the i-th sum: in bytes. 0: the factor is something else. */
static int64_t bytes_of_row(const Kernel *kernel, const Node *factor) {
    while (factor->op->flags & (OP_REPEATS | OP_CONTIGUOUS | OP_WIDENS))
        factor = factor->in[0];
    const Type *type = &factor->type;
    const bool matrix = type->rank == 2 && type->dim[0] == kernel->rows;
    return matrix ? type->dim[1] * dtype_info[type->dtype].bytes : 0;
}

/* Of the terms of a product of one row: one factor has a row for each sum, and all have the other in common. */
static int64_t bytes_of_terms(const Kernel *kernel, const Node *sum) {
    const Node *terms = sum->in[0];
    while (terms->op->flags & OP_CONTIGUOUS)
        terms = terms->in[0];
    if (terms->op->cls != OP_MAP || terms->inputs != 2 || terms->type.rank < 2)
        return 0;
    const unsigned rows = 1u << (terms->type.rank - 2);
    const bool first = is_repeated_along(terms->in[0], rows), second = is_repeated_along(terms->in[1], rows);
    return first == second ? 0 : bytes_of_row(kernel, terms->in[first]);
}

/* Blocks of teams that have so many sums each come out even, and what they read of the weights fits. */
static bool are_rows_at_once(const Kernel *kernel, int64_t count, int64_t bytes, const Machine *machine) {
    const int64_t rows = count * (kernel->team == TEAM_WARP ? WARPS : 1);
    return kernel->rows % rows == 0 && rows * bytes <= room_for_weights(machine);
}

/* So many that each multiprocessor has a block at most, or one more where they come out even so. Of more rows than that, as many as may be:
 * memory is busy all the time then, and what the blocks have in common is read seldom. */
static int rows_at_once(const Kernel *kernel, int64_t bytes, const Machine *machine) {
    enum { MOST = 16 };
    const int64_t least = (kernel->tiles + machine->multiprocessors - 1) / machine->multiprocessors;
    for (int64_t count = least; count > 1 && count <= least + 1 && count <= MOST; count++)
        if (are_rows_at_once(kernel, count, bytes, machine))
            return (int)count;
    for (int64_t count = least < MOST ? least : MOST; count > 1; count--)
        if (are_rows_at_once(kernel, count, bytes, machine))
            return (int)count;
    return 1;
}

void kernel_join_rows(Kernel *kernel, const Machine *machine) {
    const bool teams = kernel->cls == KERNEL_LOOP && !kernel->held && kernel->lanes == 1 &&
                       (kernel->team == TEAM_WARP || kernel->team == TEAM_BLOCK);
    const Node *sum = teams ? kernel_only_sum(kernel) : NULL;
    const int64_t bytes = sum && adds_along_last_axis(sum) ? bytes_of_terms(kernel, sum) : 0;
    kernel->at_once = bytes ? rows_at_once(kernel, bytes, machine) : 1;
    kernel->tiles /= kernel->at_once;
}
