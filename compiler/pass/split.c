/* A sum over very many elements with few results would keep few blocks busy. It is made two, each in a fixed order:
 *
 *     sum over r of x[r, c]              ->  sum over s of (sum over g of x[s, g, c])             r = s GROUP + g
 *     sum over k of a[k, m] b[k, n]      ->  sum over s of (sum over k of a[s, k, m] b[s, k, n])  slices of k
 *
 * The first is a batch norm's statistics, or a bias gradient. Its groups have as many rows as a tile of a product may have, so
 * that the product that computes x can take the inner sums from its own tiles (epilogue.c). The second is the gradient of
 * a weight, where k runs over the examples of the batch and the pixels of their images: split-K, as a stack of products. */
#include "pass/split.h"

#include "pass/tile.h"

enum {
    LONG_SUM = 2048,   /* rows of a sum, or k of a product, that may be split */
    GROUP = 128,       /* rows of an inner sum where that divides them; the rows of a tile .. */
    TALL_COLUMNS = 64, /* .. and twice as many where 16-bit numbers have so many columns: cuda/tensor_resident.cuh */
    LEAST_TILE = 64,   /* where tiles are few they have fewer rows, no less than these */
    LEAST_GROUP = 32,  /* else: their largest divisor from here */
    MOST_GROUP = 512,  /* to here */
    LEAST_DEPTH = 256, /* of k for a slice */
    MOST_SLICES = 512
};

/* The largest divisor of n from `least` to `most`; 0: none. */
static int64_t divisor(int64_t n, int64_t least, int64_t most) {
    for (int64_t d = most < n ? most : n; d >= least; d--)
        if (n % d == 0)
            return d;
    return 0;
}

static int64_t smaller(int64_t a, int64_t b) {
    return a < b ? a : b;
}

/* ---- reductions over leading axes ---- */

/* How many leading axes the reduction folds, if it folds no others; else 0. */
static int leading_axes(const Node *n) {
    int count = 0;
    while (n->attr.axes >> count & 1)
        count++;
    return n->attr.axes == (1u << count) - 1 ? count : 0;
}

/* A tile's rows, halved while all tiles still find a multiprocessor that is free. */
static int64_t rows_of_few_tiles(int64_t tile, int64_t rows, int64_t columns, const Machine *machine) {
    int64_t across = (columns + GROUP - 1) / GROUP;
    while (machine->blocks && tile > LEAST_TILE && rows / (tile / 2) * across <= machine->multiprocessors)
        tile /= 2;
    return tile;
}

/* 0: none. */
static int64_t group_of(const Graph *g, int64_t rows, int64_t columns, const Machine *machine) {
    enum { LEAST_STAGES = 2 };
    bool fits =
        !machine->blocks || tensor_tile_shared(2 * GROUP, TALL_COLUMNS, LEAST_STAGES, 1) <= machine->block_memory;
    bool tall = fits && dtype_is_narrow(precision_dtype(g->module->precision)) && columns == TALL_COLUMNS;
    int64_t tile = rows_of_few_tiles(tall ? 2 * GROUP : GROUP, rows, columns, machine);
    return rows % tile == 0 ? tile : rows % GROUP == 0 ? GROUP : divisor(rows, LEAST_GROUP, MOST_GROUP);
}

/* The sum over the outputs of all images of products with what they see, for each channel by itself: images in groups, so that a block
 * has enough outputs (patch.c), and there are enough blocks. */
static int64_t images_together(const Type *windows, const Machine *machine) {
    enum { OUTPUTS = 256, CHANNELS = 128 };
    const int64_t images = windows->dim[0], outputs = windows->dim[1] * windows->dim[2], channels = windows->dim[5];
    int64_t together = 1;
    for (int64_t d = 1; d <= images && together * outputs < OUTPUTS; d++)
        if (images % d == 0 && images / d * channels >= CHANNELS * machine->multiprocessors)
            together = d;
    return together;
}

static Node *split_windows(Graph *g, Node *n, const Machine *machine) {
    enum { OVER_OUTPUTS = 1 << 0 | 1 << 1 | 1 << 2, OVER_GROUP = OVER_OUTPUTS << 1 };
    const Node *other, *windows = n->op->cls == OP_REDUCE ? window_factor(n->in[0], &other) : NULL;
    if (!windows || !machine->blocks || !op_adds(n->op) || n->attr.axes != OVER_OUTPUTS)
        return NULL;
    const int64_t *dim = windows->type.dim, together = images_together(&windows->type, machine);
    if (dim[0] == together)
        return NULL;
    int64_t dims[] = {dim[0] / together, together, dim[1], dim[2], dim[3], dim[4], dim[5]};
    Type grouped = type_make(n->in[0]->type.dtype, false, 7, dims);
    Node *inner = graph_reduce(g, n->op->name, graph_reshape(g, n->in[0], &grouped), OVER_GROUP);
    inner->hint = "partial";
    return graph_reshape(g, graph_reduce(g, n->op->name, inner, 1u << 0), &n->type);
}

static Node *split_reduction(Graph *g, Node *n, const Machine *machine) {
    int folded = n->op->cls == OP_REDUCE ? leading_axes(n) : 0;
    const Type *in = n->inputs ? &n->in[0]->type : NULL;
    int64_t rows = folded ? type_extent(in, 0, folded) : 0;
    if (rows < LONG_SUM || folded == in->rank)
        return NULL;
    int64_t columns = type_extent(in, folded, in->rank), group = group_of(g, rows, columns, machine);
    if (!group)
        return NULL;
    int64_t dims[] = {rows / group, group, columns};
    Type grouped = type_make(in->dtype, false, 3, dims);
    Node *inner = graph_reduce(g, n->op->name, graph_reshape(g, n->in[0], &grouped), 1u << 1);
    inner->hint = "partial";
    return graph_reshape(g, graph_reduce(g, n->op->name, inner, 1u << 0), &n->type);
}

/* ---- few rows ---- */

static Type rows_type(const Type *like, int64_t rows, int64_t length) {
    return type_make(like->dtype, like->batched, 2, (int64_t[]){rows, length});
}

/* Of rows [rows, length], so many columns. */
static Node *piece(Graph *g, Node *rows, int64_t from, int64_t length) {
    const Type type = rows_type(&rows->type, rows->type.dim[0], length);
    Attr attr = attr_shape(&type);
    attr.offset[1] = from;
    return graph_node(g, "slice", attr, 1, &rows);
}

/* What folds two results of the reduction into one; NULL: nothing that is known here. */
static const char *fold_of_two(const Node *n) {
    return op_adds(n->op) ? "add" : !strcmp(n->op->name, "max") ? "maximum" : NULL;
}

enum { LONG_ROW = 8192 };

bool are_rows_of_texts(const Graph *g, int64_t rows, int64_t elements, const Machine *machine) {
    return machine->blocks && g == g->module->texts && rows <= machine->multiprocessors && elements >= LONG_ROW * rows;
}

/* Rows whose reduction to one number each would keep few blocks busy: of one text, any that is alone. 0: it is none. */
static int64_t few_rows(const Graph *g, const Node *n, const Machine *machine) {
    const Type *in = n->op->cls == OP_REDUCE ? &n->in[0]->type : NULL;
    if (!in || !in->rank || n->attr.axes != 1u << (in->rank - 1))
        return 0;
    const int64_t elements = type_elements(in), rows = elements / in->dim[in->rank - 1];
    return are_rows_of_texts(g, rows, elements, machine) || (rows == 1 && elements >= LONG_ROW) ? rows : 0;
}

/* The scores of a token, or of one of each text: few blocks would read them alone. They are folded in pieces, and what is left over. */
static Node *split_few_rows(Graph *g, Node *n, const Machine *machine) {
    enum { PIECE = 256 };
    const int64_t rows = few_rows(g, n, machine);
    const char *fold = rows ? fold_of_two(n) : NULL;
    if (!fold)
        return NULL;
    const Type *in = &n->in[0]->type;
    const int64_t length = in->dim[in->rank - 1], pieces = length / PIECE;
    const Type flat = rows_type(in, rows, length);
    const Type parts = type_make(in->dtype, in->batched, 3, (int64_t[]){rows, pieces, PIECE});
    Node *all = graph_reshape(g, n->in[0], &flat), *whole = piece(g, all, 0, pieces * PIECE), *rest = NULL;
    if (length > pieces * PIECE)
        rest = graph_reduce(g, n->op->name, piece(g, all, pieces * PIECE, length - pieces * PIECE), 1u << 1);
    Node *inner = graph_reduce(g, n->op->name, graph_reshape(g, whole, &parts), 1u << 2);
    Node *result = graph_reduce(g, n->op->name, inner, 1u << 1);
    inner->hint = "partial";
    return graph_reshape(g, rest ? op2(g, fold, result, rest) : result, &n->type);
}

/* ---- products over the batch ---- */

static double larger(double a, double b) {
    return a > b ? a : b;
}

/* An operand as it will lie in memory: windows of images are read where they are. */
static Operand operand_over_rows(Node *value) {
    Node *view = value;
    while (view->op->cls == OP_VIEW && view->op->flags & OP_CONTIGUOUS)
        view = view->in[0];
    bool windows = view->op->cls == OP_VIEW && view->op->attrs & ATTR_SWEEP;
    return (Operand){.kind = windows ? OPERAND_WINDOW : OPERAND_MATRIX,
                     .value = value,
                     .view = windows ? view : NULL,
                     .buffer = value,
                     .cols = value->type.dim[1]};
}

/* Seconds of the product in slices, each stored, and of their sum. Other kernels of its phase fill about half of what its last
 * wave leaves free. */
static double seconds_in_slices(const Node *n, Precision precision, int64_t depth, int64_t slices,
                                const Machine *machine) {
    Kernel product = {.cls = KERNEL_CONTRACT,
                      .batches = slices,
                      .m = n->type.dim[0],
                      .n = n->type.dim[1],
                      .k = depth / slices,
                      .a = operand_over_rows(n->in[0]),
                      .b = operand_over_rows(n->in[1])};
    product.a.transposed = true;
    product.a.batched = product.b.batched = slices > 1;
    product.math = product_math(&product, precision);
    kernel_cut(&product, machine);
    double bytes = slices > 1 ? 2.0 * (double)slices * (double)type_bytes(&n->type) : 0;
    double tile = kernel_tile_seconds(&product, machine), whole_waves = kernel_seconds(&product, machine);
    double dealt = larger(tile, kernel_dealt_seconds(&product, machine));
    return (dealt + whole_waves) / 2 + bytes / machine->bandwidth + (slices > 1 ? machine->launch : 0);
}

/* Slices are memory too: twice as many must save something. 1: whole, it is as fast. */
static int64_t slices_of(const Node *n, Precision precision, int64_t depth, const Machine *machine) {
    int64_t best = 1, most = smaller(MOST_SLICES, depth / LEAST_DEPTH);
    double least = seconds_in_slices(n, precision, depth, 1, machine);
    for (int64_t slices = 2; slices <= most; slices++) {
        double seconds = depth % slices ? least : seconds_in_slices(n, precision, depth, slices, machine);
        if (seconds > 0.93 * least)
            continue;
        best = slices;
        least = seconds;
    }
    return best;
}

static Node *in_slices(Graph *g, Node *operand, int64_t slices) {
    const Type *t = &operand->type;
    int64_t dims[] = {slices, t->dim[0] / slices, t->dim[1]};
    Type stack = type_make(t->dtype, false, 3, dims);
    return graph_reshape(g, operand, &stack);
}

/* The product in slices, called after their sum. */
static Node *called_slices(Graph *g, Node *product, const Node *sum) {
    if (sum->name)
        product->hint = arena_printf(g->arena, "%s_slices", sum->name);
    return product;
}

/* Both operands are stored with k, the rows of the batch, first. */
static Node *split_product(Graph *g, Node *n, const Machine *machine) {
    bool over_rows = n->op->cls == OP_CONTRACT && n->type.rank == 2 && n->attr.ta && !n->attr.tb &&
                     n->in[0]->type.rank == 2 && n->in[1]->type.rank == 2;
    int64_t depth = over_rows ? n->in[0]->type.dim[0] : 0;
    int64_t slices = depth < LONG_SUM ? 1 : slices_of(n, g->module->precision, depth, machine);
    if (slices == 1)
        return NULL;
    Node *in[] = {in_slices(g, n->in[0], slices), in_slices(g, n->in[1], slices)};
    return graph_reduce(g, "sum", called_slices(g, graph_node(g, n->op->name, n->attr, 2, in), n), 1u << 0);
}

static Node *split_node(Graph *g, Node *n, const void *context) {
    const Machine *machine = context;
    const bool decodes = machine->blocks && (g == g->module->decode || g == g->module->texts);
    Node *split = decodes ? split_few_rows(g, n, machine) : split_windows(g, n, machine);
    split = split ? split : split_reduction(g, n, machine);
    return split ? split : split_product(g, n, machine);
}

/* ---- the shape of a sum of slices ----
 *
 * A sum that is read in another shape alone, [O, KH, KW, C] and not [O, KH KW C], is made in that one, so that it is one kernel
 * with the update of the weight. It is made once: who reads it in a second shape, as a clipped norm does, reads it from memory, and
 * not all slices again. */

typedef struct SlicesRead {
    const Node *sum;
    Node *made; /* in the shape that it is read in first; NULL: it is read as it is, or nobody was met yet */
    bool as_it_is;
} SlicesRead;

typedef VEC(SlicesRead) SlicesReads;

static bool sums_slices(const Node *n) {
    return n->op->cls == OP_REDUCE && n->attr.axes == 1u << 0 && n->in[0]->op->cls == OP_CONTRACT;
}

static SlicesRead *read_of(const SlicesReads *reads, const Node *sum) {
    for (int i = 0; i < reads->count; i++)
        if (reads->at[i].sum == sum)
            return &reads->at[i];
    return NULL;
}

static bool reshapes(const Node *n) {
    return n->op->flags & OP_CONTIGUOUS && n->type.rank < MAX_RANK;
}

static SlicesReads slices_reads(const Graph *g) {
    SlicesReads reads = {0};
    for (int i = 0; i < g->nodes.count; i++) {
        const Node *n = g->nodes.at[i];
        if (sums_slices(n))
            VEC_PUSH(g->arena, &reads, ((SlicesRead){.sum = n}));
        for (int k = 0; k < n->inputs && !reshapes(n); k++)
            if (read_of(&reads, n->in[k]))
                read_of(&reads, n->in[k])->as_it_is = true;
    }
    return reads;
}

static Node *sum_in_shape(Graph *g, const Node *sum, const Node *n) {
    int64_t dims[MAX_RANK] = {sum->in[0]->type.dim[0]};
    for (int axis = 0; axis < n->type.rank; axis++)
        dims[1 + axis] = n->type.dim[axis];
    Type stack = type_make(n->type.dtype, false, n->type.rank + 1, dims);
    return graph_reduce(g, sum->op->name, graph_reshape(g, called_slices(g, sum->in[0], n), &stack), 1u << 0);
}

static Node *sum_as_read(Graph *g, Node *n, const void *context) {
    SlicesRead *read = reshapes(n) ? read_of(context, n->in[0]) : NULL;
    if (!read || read->as_it_is)
        return NULL;
    if (read->made)
        return graph_reshape(g, read->made, &n->type);
    return read->made = sum_in_shape(g, read->sum, n);
}

void split_sums(Graph *g, const Machine *machine) {
    graph_rewrite(g, split_node, machine);
    graph_compact(g);
    const SlicesReads reads = slices_reads(g);
    graph_rewrite(g, sum_as_read, &reads);
    graph_compact(g);
}
