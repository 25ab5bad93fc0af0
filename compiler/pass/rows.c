/* Rows of LOOP kernels: which elements of a node a row has, and whether a value can be computed from a row's own.
 *
 * A value that is read at another element than the one where its kernel computes it is computed again there, with all that lies
 * between it and memory; so are views, and maps of leaves. That is less than to store and load it, while it is little. It would
 * not stay little: where each step of a model reads the one before at two places, as concat([slice(h, 0, 1, 16), ...]) does, it
 * doubles with each. So there is a limit to what one value may compute again. One that is beyond it is stored, or begins another
 * kernel, and the text of a kernel is at most so many times the nodes that it computes. */
#include "pass/fuse.h"

enum {
    MOST_AGAIN = 96,     /* elements that one value may compute again */
    LONGEST_INDEX = 160, /* names, numbers and operators of an index that it may read them at */
    MANY_TIMES = 1 << 20 /* that a slow map is computed: more than to store and load it, and to launch a kernel */
};

#define SYMBOLS(letter)                                                                                                \
    {                                                                                                                  \
        TREE_NAMED(letter "0"), TREE_NAMED(letter "1"), TREE_NAMED(letter "2"), TREE_NAMED(letter "3"),                \
            TREE_NAMED(letter "4"), TREE_NAMED(letter "5"), TREE_NAMED(letter "6"), TREE_NAMED(letter "7")             \
    }

/* Indices: of a row, of the loop over it. */
static const Tree *const row_index[MAX_RANK] = SYMBOLS("r"), *const loop_index[MAX_RANK] = SYMBOLS("j");

void rows_set(Kernel *kernel, const Type *full, unsigned inner) {
    kernel->full = *full;
    kernel->inner = inner;
    kernel->kept = type_scalar(full->dtype);
    kernel->kept.batched = full->batched && !(inner & 1);
    for (int axis = 0; axis < full->rank; axis++)
        if (!(inner >> axis & 1))
            kernel->kept.dim[kernel->kept.rank++] = full->dim[axis];
    kernel->rows = type_elements(&kernel->kept);
}

bool rows_are_elements(const Kernel *kernel) {
    for (int i = 0; i < kernel->nodes.count; i++)
        if (!type_same_shape(&kernel->nodes.at[i]->type, &kernel->full))
            return false;
    return kernel->inner == 0;
}

bool rows_are_trailing(const Kernel *kernel) {
    return (kernel->inner & ((1u << kernel->kept.rank) - 1)) == 0;
}

static bool has_leading(const Type *shape, const Type *leading) {
    for (int axis = 0; axis < leading->rank; axis++)
        if (shape->rank <= axis || shape->dim[axis] != leading->dim[axis])
            return false;
    return true;
}

bool inner_axes(const Kernel *kernel, const Type *shape, unsigned *inner) {
    if (type_same_shape(shape, &kernel->kept))
        *inner = 0;
    else if (type_same_shape(shape, &kernel->full))
        *inner = kernel->inner;
    else if (rows_are_trailing(kernel) && has_leading(shape, &kernel->kept))
        *inner = ((1u << shape->rank) - 1) & ~((1u << kernel->kept.rank) - 1);
    else
        return false;
    return true;
}

bool rows_access(const Kernel *kernel, const Type *shape, Access *at) {
    unsigned inner;
    if (!inner_axes(kernel, shape, &inner))
        return false;
    for (int axis = 0, row = 0, loop = 0; axis < shape->rank; axis++)
        at->index[axis] = inner >> axis & 1 ? loop_index[loop++] : row_index[row++];
    return true;
}

Access rows_own(void) {
    Access at;
    memcpy(at.index, row_index, sizeof at.index);
    return at;
}

bool rows_at_own(const Access *at, int rank) {
    const Access own = rows_own();
    return access_equal(at, &own, rank);
}

static bool at_own_row(const Kernel *kernel, const Access *at, int rank) {
    if (rank < kernel->kept.rank)
        return false;
    for (int axis = 0; axis < kernel->kept.rank; axis++)
        if (!tree_same(at->index[axis], row_index[axis]))
            return false;
    return true;
}

/* ---- may a node's value be computed inside of a kernel? ---- */

typedef struct Reading {
    const Fusion *f;
    const Kernel *kernel; /* NULL: none; all that has no home is computed again */
    int again;            /* elements that are computed again, each of a node at an index */
} Reading;

static bool is_long(const Node *n, const Access *at) {
    int length = 0;
    for (int axis = 0; axis < n->type.rank; axis++)
        length += tree_nodes(at->index[axis]);
    return length > LONGEST_INDEX;
}

/* What is left of `most` values, after n's and those that it is made of, each as often as it is read: an index of a lookup is one
 * expression, which repeats what it reads twice. Negative: there are more. */
static int left_of(const Fusion *f, const Node *n, int most) {
    for (int k = 0; k < n->inputs && most >= 0; k++)
        if (n->in[k]->op->cls != OP_LEAF && !f->home[n->in[k]->id])
            most = left_of(f, n->in[k], most - 1);
    return most;
}

static bool takes_long_place(const Fusion *f, const Node *n) {
    return n->op->flags & OP_LOOKUP && left_of(f, n->in[1], MOST_AGAIN) < 0;
}

/* One element more; not too many. */
static Walk compute_again(Reading *reading, const Node *n, const Access *at) {
    bool much = ++reading->again > MOST_AGAIN || is_long(n, at) || takes_long_place(reading->f, n);
    return much ? WALK_FAIL : WALK_DEEPER;
}

static bool counts_a_loop(const Tree *index) {
    for (int k = 0; k < MAX_RANK; k++)
        if (index == loop_index[k])
            return true;
    return false;
}

/* Where n was read when it joined the kernel, so that everything under it is known to fit. Who folds it reads it there, too. */
static bool as_it_joined(const Kernel *kernel, const Node *n, const Access *at) {
    Access joined;
    if (kernel->cls != KERNEL_LOOP)
        return true;
    if (!rows_access(kernel, &n->type, &joined))
        return false;
    for (int axis = 0; axis < n->type.rank; axis++)
        if (!tree_same(at->index[axis], joined.index[axis]) &&
            !(at->index[axis] == ANY_INDEX && counts_a_loop(joined.index[axis])))
            return false;
    return true;
}

/* Inside a LOOP kernel: row scalars and row vectors are read from the reader's own row; maps are computed again. */
static Walk read_in_row(void *context, Node *n, const Access *at) {
    Reading *reading = context;
    const Kernel *home = reading->f->home[n->id];
    if (home != reading->kernel)
        return fusion_stored_before(reading->f, reading->kernel, n) ? WALK_STOP : compute_again(reading, n, at);
    if (n->op->cls != OP_REDUCE && n->op->cls != OP_CONTRACT)
        return as_it_joined(home, n, at) ? WALK_STOP : compute_again(reading, n, at);
    return at_own_row(home, at, n->type.rank) ? WALK_STOP : WALK_FAIL;
}

bool fusion_reads_fit_rows(Fusion *f, Kernel *kernel, Node *n, const Access *at) {
    Reading reading = {.f = f, .kernel = kernel};
    return access_walk(f->arena, n, at, read_in_row, &reading);
}

bool fusion_computes_little(Fusion *f, Node *n) {
    Reading reading = {.f = f, .kernel = f->home[n->id]};
    Access at = rows_own();
    if (reading.kernel->cls == KERNEL_LOOP && !rows_access(reading.kernel, &n->type, &at))
        ICE("%%%d has no rows of its kernel", n->id);
    return access_walk(f->arena, n, &at, read_in_row, &reading);
}

static Walk read_from_memory(void *context, Node *n, const Access *at) {
    Reading *reading = context;
    return n->op->cls == OP_LEAF || reading->f->home[n->id] ? WALK_STOP : compute_again(reading, n, at);
}

bool fusion_takes_much(Fusion *f, Node *n) {
    Reading reading = {.f = f};
    Access at = rows_own();
    return left_of(f, n, MOST_AGAIN) < 0 || !access_walk(f->arena, n, &at, read_from_memory, &reading);
}

/* Elements of the views that repeat n, whose readers would compute it for each. */
static int64_t repeated(const Fusion *f, const Node *n) {
    const Sources *readers = &f->readers[n->id];
    int64_t elements = 0;
    for (int i = 0; i < readers->count; i++)
        if (readers->at[i]->op->flags & OP_REPEATS)
            elements += type_elements(&readers->at[i]->type);
        else if (readers->at[i]->op->flags & OP_CONTIGUOUS)
            elements += repeated(f, readers->at[i]);
    return elements;
}

bool fusion_serves_many(const Fusion *f, const Node *n) {
    return n->op->cls == OP_MAP && !(n->op->flags & OP_CHEAP) && repeated(f, n) - type_elements(&n->type) >= MANY_TIMES;
}
