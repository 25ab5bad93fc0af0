/* Rows that are read several times. A row of 50,000 scores is read for its maximum, for its sum and for its gradient; those that
 * are under way at a time are more than the cache holds, so that each stage would read them from memory again. Held in shared
 * memory, as they lie, they are read once. Shorter rows the cache holds anyway, with more threads at work. */
#include "pass/access.h"
#include "pass/tile.h"

enum { FOLD_BYTES = 256 }; /* a team's own shared memory, at most */

typedef struct Reads {
    const Kernel *kernel;
    const Node *operand;
    Access own; /* index of the row */
    bool found;
} Reads;

/* The operand, or a reshape of it. */
static bool is_operand(const Reads *reads, const Node *n) {
    while (n != reads->operand && !kernel_reads(reads->kernel, n) && n->op->flags & OP_CONTIGUOUS)
        n = n->in[0];
    return n == reads->operand;
}

/* Its first axes are those of the kernel's rows. */
static bool has_rows(const Kernel *kernel, const Type *type) {
    bool same = type->rank >= kernel->kept.rank;
    for (int axis = 0; same && axis < kernel->kept.rank; axis++)
        same = type->dim[axis] == kernel->kept.dim[axis];
    return same;
}

static Walk visit_read(void *context, Node *n, const Access *at) {
    Reads *reads = context;
    const Kernel *kernel = reads->kernel;
    if (is_operand(reads, n)) {
        bool own = has_rows(kernel, &n->type) && access_equal(at, &reads->own, kernel->kept.rank);
        reads->found = true;
        return own ? WALK_STOP : WALK_FAIL;
    }
    return n->op->cls == OP_REDUCE || kernel_reads(kernel, n) ? WALK_STOP : WALK_DEEPER;
}

/* Adds what the nodes read; false: of another row too. */
static bool read_own_rows(Arena *arena, Reads *reads, Node *const *nodes, int count) {
    for (int k = 0; k < count; k++) {
        Access at = access_own(arena, nodes[k]->type.rank);
        if (!access_walk(arena, nodes[k], &at, visit_read, reads))
            return false;
    }
    return true;
}

/* Stages that read rows of the operand, each its own row; 0: some read another row. */
static int stages_reading(Arena *arena, const Kernel *kernel, const Node *operand) {
    int count = 0;
    for (int s = 0; s < kernel->stages.count; s++) {
        const Stage *stage = &kernel->stages.at[s];
        Reads reads = {kernel, operand, access_own(arena, kernel->kept.rank), false};
        bool own = read_own_rows(arena, &reads, stage->reduces.at, stage->reduces.count) &&
                   read_own_rows(arena, &reads, stage->contractions.at, stage->contractions.count) &&
                   read_own_rows(arena, &reads, stage->vectors.at, stage->vectors.count) &&
                   read_own_rows(arena, &reads, stage->stores.at, stage->stores.count);
        if (!own)
            return 0;
        count += reads.found;
    }
    return count;
}

static int64_t row_bytes(const Kernel *kernel, const Node *operand) {
    return type_bytes(&operand->type) / kernel->rows;
}

static int64_t vector_bytes(const Kernel *kernel) {
    int64_t bytes = FOLD_BYTES;
    for (int s = 0; s < kernel->stages.count; s++) {
        const Stage *stage = &kernel->stages.at[s];
        bytes += stage->vectors.count * type_elements(&stage->domain) / kernel->rows * (int64_t)sizeof(float);
    }
    return bytes;
}

/* In shared memory, but not in the cache. */
static bool fits(const Kernel *kernel, const Node *operand, const Machine *machine) {
    int64_t bytes = row_bytes(kernel, operand), rows = (int64_t)machine->most_blocks * machine->multiprocessors;
    rows = kernel->rows < rows ? kernel->rows : rows;
    return bytes % PACK_BYTES == 0 && bytes + vector_bytes(kernel) <= machine->block_memory &&
           (double)(bytes * rows) > machine->cache;
}

/* What else is loaded is little: with long rows in shared memory, few threads are left to hide the time of other loads. */
static bool is_mostly_read(const Kernel *kernel, const Node *operand) {
    int64_t others = 0, own = type_bytes(&operand->type);
    for (int k = 0; k < kernel->loads.count; k++)
        others += kernel->loads.at[k] == operand ? 0 : type_bytes(&kernel->loads.at[k]->type);
    return 4 * others <= own;
}

void kernel_hold_row(Arena *arena, Kernel *kernel, const Machine *machine) {
    kernel->held = NULL;
    bool blocks = kernel->cls == KERNEL_LOOP && kernel->team == TEAM_BLOCK && machine->blocks;
    if (!blocks || machine->form != FORM_GRID || !kernel_folds_trailing_axes(kernel))
        return;
    for (int k = 0; k < kernel->loads.count; k++) {
        const Node *operand = kernel->loads.at[k];
        bool rows = operand->op->table != TABLE_FIELD && kernel_row_axes(kernel, &operand->type) >= 0;
        if (rows && fits(kernel, operand, machine) && is_mostly_read(kernel, operand) &&
            stages_reading(arena, kernel, operand) > 1)
            kernel->held = operand;
    }
}
