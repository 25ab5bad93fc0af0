/* A panel of columns of a product: packed, and multiplied by rows that run over it.
 *
 *             b: PANEL columns, packed                 For each DEPTH of k and each panel of columns: copy the
 *             +-----------+                            panel of b next to each other (transposing it when it lies
 *             |  v  |  v  |  DEPTH rows                the other way), then let each ROWS rows of a run over it
 *             +-----------+                            with their ROWS x PANEL sums in vector registers. Rows of a
 *     a       +-----------+                            that lie across k are copied next to each other too.
 *     o o o   |           |
 *     o o o   |   sums    |  ROWS rows
 *     DEPTH   +-----------+
 */
#ifndef MTC_CPU_MATMUL_PANEL_H
#define MTC_CPU_MATMUL_PANEL_H

#include "operand.h"

/* ROWS x VECTORS sums, VECTORS of b and one of a fit the 32 or 16 vector registers. ROWS is two or three times STEP, which
 * divides 8. */
#if defined __AVX512F__
enum { MATMUL_VECTOR_BYTES = 64, MATMUL_ROWS = 8, MATMUL_STEP = 4, MATMUL_VECTORS = 3 };
#elif defined __AVX__
enum { MATMUL_VECTOR_BYTES = 32, MATMUL_ROWS = 6, MATMUL_STEP = 2, MATMUL_VECTORS = 2 };
#else
enum { MATMUL_VECTOR_BYTES = 16, MATMUL_ROWS = 6, MATMUL_STEP = 2, MATMUL_VECTORS = 2 };
#endif

/* A program is compiled with -ffp-contract=off: a b + c is two roundings wherever its text says so, the same in each kernel that
 * computes it. Sums of products are fused on purpose, and here alone. gcc is told so of whole functions, which are then no part of
 * others, clang of a block. Without such an instruction they are two roundings too.
 *
 * MATMUL_ONCE: one function for all products of a program, whose work is long beside a call. A copy for each would be no faster, and
 * takes most of the time that the program is compiled in. */
#ifdef __clang__
#define MATMUL_ONCE static __attribute__((noinline, unused))
#define MATMUL_FUSED static inline
#define MATMUL_FUSES _Pragma("STDC FP_CONTRACT ON")
#else
#define MATMUL_ONCE static __attribute__((noinline, noclone, unused))
#define MATMUL_FUSED static __attribute__((noinline, noclone, optimize("fp-contract=fast")))
#define MATMUL_FUSES
#endif

typedef real MatmulVector __attribute__((vector_size(MATMUL_VECTOR_BYTES)));

enum {
    MATMUL_LANES = MATMUL_VECTOR_BYTES / sizeof(real),
    MATMUL_PANEL = MATMUL_VECTORS * MATMUL_LANES,
    MATMUL_DEPTH = WIDEST_BLOCK, /* a panel of this depth stays in the first-level cache */
    MATMUL_TALLEST = 256,        /* rows of a tile */
    MATMUL_ROOM = 1 << 17,       /* numbers of them that are copied at a time, or that windows see */
    MATMUL_WIDEST = 96           /* columns that are copied at a time */
};

static inline MatmulVector matmul_load(const real *at) {
    MatmulVector v;
    memcpy(&v, at, sizeof v);
    return v;
}

static inline void matmul_store(real *at, MatmulVector v) {
    memcpy(at, &v, sizeof v);
}

/* The left operand as registers read it: element (i, k) is row[i][offset[k]]. Behind the last row it follows again and again. */
struct MatmulLeft {
    const real *row[MATMUL_TALLEST + MATMUL_ROWS];
    int offset[MATMUL_DEPTH];
    int line; /* windows: from a line of what they see to the next */
};

/* Adds up `height` rows x `vectors` vectors. What is loaded is named before it is used: a multiply-add that loads for itself loads
 * again in each row. */
static inline __attribute__((always_inline)) void matmul_registers(int height, int vectors, real *sum, int stride,
                                                                   int depth, const real *const *from,
                                                                   const int *offset, const real *panel) {
    MATMUL_FUSES
    MatmulVector acc[MATMUL_ROWS][MATMUL_VECTORS];
    const real *row[MATMUL_ROWS];
    for (int i = 0; i < height; i++) {
        row[i] = from[i];
        for (int v = 0; v < vectors; v++)
            acc[i][v] = matmul_load(sum + i * stride + v * MATMUL_LANES);
    }
    for (int k = 0; k < depth; k++, panel += vectors * MATMUL_LANES) {
        MatmulVector right[MATMUL_VECTORS];
        for (int v = 0; v < vectors; v++)
            right[v] = matmul_load(panel + v * MATMUL_LANES);
        for (int i = 0; i < height; i++) {
            real left = row[i][offset[k]];
            for (int v = 0; v < vectors; v++)
                acc[i][v] += left * right[v];
        }
    }
    for (int i = 0; i < height; i++)
        for (int v = 0; v < vectors; v++)
            matmul_store(sum + i * stride + v * MATMUL_LANES, acc[i][v]);
}

/* panel[k, j] = at[j * stride + k] for LANES x LANES elements. With 2^p lanes, p perfect shuffles (of a pack of cards)
 * of the flat array exchange its rows and columns. */
static inline void matmul_transpose(real *panel, int width, const real *at, ptrdiff_t stride) {
    enum { HALF = MATMUL_LANES * MATMUL_LANES / 2 };
    real cards[2][2 * HALF];
    int now = 0;
    for (int j = 0; j < MATMUL_LANES; j++)
        matmul_store(cards[0] + j * MATMUL_LANES, matmul_load(at + j * stride));
#pragma GCC unroll 4
    for (int round = 1; round < MATMUL_LANES; round *= 2, now = 1 - now)
        for (int x = 0; x < HALF; x++) {
            cards[1 - now][2 * x] = cards[now][x];
            cards[1 - now][2 * x + 1] = cards[now][x + HALF];
        }
    for (int k = 0; k < MATMUL_LANES; k++)
        matmul_store(panel + k * width, matmul_load(cards[now] + k * MATMUL_LANES));
}

/* Whole lines of a panel. Where each has pages of its own, no hardware fetches ahead, and an address is long looked up: what the next
 * panel takes of the line is asked for with it. */
static inline void matmul_pack_lines(real *panel, int width, int depth, Block b) {
    enum { PAGE = 4096 };
    bool far = b.row * sizeof(real) >= PAGE;
    for (int k = 0; k < depth; k++) {
        if (far)
            __builtin_prefetch(b.at + k * b.row + MATMUL_PANEL);
        matmul_store(panel + k * width, matmul_load(b.at + k * b.row));
    }
}

/* panel[k, j] = b(k, j) for a block of at most LANES columns and any depth; columns that are missing become zeros. */
static inline void matmul_pack(real *panel, int width, int columns, int depth, Block b) {
    int k = 0;
    if (b.row == 1 && columns == MATMUL_LANES)
        for (; k + MATMUL_LANES <= depth; k += MATMUL_LANES)
            matmul_transpose(panel + k * width, width, b.at + k, b.column);
    if (b.column == 1 && columns == MATMUL_LANES) {
        matmul_pack_lines(panel, width, depth, b);
        return;
    }
    for (; k < depth; k++)
        for (int j = 0; j < MATMUL_LANES; j++)
            panel[k * width + j] = j < columns ? b.at[k * b.row + j * b.column] : 0;
}

/* All rows of the tile run over a panel of `vectors` vectors. */
static inline __attribute__((always_inline)) void matmul_rows(int vectors, real *sum, int stride, int rows, int depth,
                                                              const MatmulLeft *a, const real *panel) {
    const real *const *row = a->row;
    for (; rows > MATMUL_ROWS - MATMUL_STEP; rows -= MATMUL_ROWS, sum += MATMUL_ROWS * stride, row += MATMUL_ROWS)
        matmul_registers(MATMUL_ROWS, vectors, sum, stride, depth, row, a->offset, panel);
    if (rows > MATMUL_STEP)
        matmul_registers(2 * MATMUL_STEP, vectors, sum, stride, depth, row, a->offset, panel);
    else if (rows > 0)
        matmul_registers(MATMUL_STEP, vectors, sum, stride, depth, row, a->offset, panel);
}

/* A constant number of vectors in each call: the sums are registers. */
MATMUL_FUSED void matmul_panel(real *sum, int stride, int rows, int vectors, int depth, const MatmulLeft *a,
                               const real *panel) {
    if (vectors == 1)
        matmul_rows(1, sum, stride, rows, depth, a, panel);
    else if (vectors < MATMUL_VECTORS)
        matmul_rows(2, sum, stride, rows, depth, a, panel);
    else
        matmul_rows(MATMUL_VECTORS, sum, stride, rows, depth, a, panel);
}

static inline int matmul_vectors(int columns) {
    return (columns + MATMUL_LANES - 1) / MATMUL_LANES;
}

/* At most MATMUL_PANEL columns next to each other. */
static inline void matmul_pack_panel(real *panel, int columns, int depth, Block b) {
    int vectors = matmul_vectors(columns);
    for (int v = 0; v < vectors; v++)
        matmul_pack(panel + v * MATMUL_LANES, vectors * MATMUL_LANES, least(columns - v * MATMUL_LANES, MATMUL_LANES),
                    depth, (Block){b.at + v * MATMUL_LANES * b.column, b.row, b.column});
}

/* Rows of a block of `depth` that lie across k: MATMUL_ROWS of them next to each other for each k, of `whole` in all. */
static inline void matmul_turn(real *to, int rows, int depth, int whole, Block a) {
    for (int i = 0; i < rows; i += MATMUL_ROWS, to += MATMUL_ROWS * whole)
        for (int k = 0; k < depth; k++) {
            const real *from = a.at + k * a.column + i;
            if (rows - i >= MATMUL_ROWS)
                memcpy(to + k * MATMUL_ROWS, from, MATMUL_ROWS * sizeof(real));
            else
                memcpy(to + k * MATMUL_ROWS, from, (size_t)(rows - i) * sizeof(real));
        }
}

static inline void matmul_repeat_last(MatmulLeft *left, int rows) {
    for (int i = rows; i < rows + MATMUL_ROWS; i++)
        left->row[i] = left->row[rows - 1];
}

/* Groups of MATMUL_ROWS rows, `group` apart; element (i, k) of one is at[i * row + k * column]. */
static inline void matmul_left_of(MatmulLeft *left, int rows, int depth, const real *at, ptrdiff_t group, ptrdiff_t row,
                                  ptrdiff_t column) {
    for (int i = 0; i < rows; i++)
        left->row[i] = at + i / MATMUL_ROWS * group + i % MATMUL_ROWS * row;
    matmul_repeat_last(left, rows);
    for (int k = 0; k < depth; k++)
        left->offset[k] = k * (int)column;
}

/* Lines across k would meet in the cache where they lie: they are turned, some at a time. Short ones that a single panel reads stay. */
static inline void matmul_left(MatmulLeft *left, const Matrix *a, int i, int k, int rows, int columns, int depth,
                               real *room) {
    enum { LINES = 8 };
    bool once = columns <= MATMUL_PANEL && a->columns <= MATMUL_TALLEST;
    if (!a->transposed || once) {
        Block block = block_of(a, i, k, rows, depth, true, room);
        matmul_left_of(left, rows, depth, block.at, MATMUL_ROWS * block.row, block.row, block.column);
        return;
    }
    real lines[MATMUL_TALLEST * LINES];
    for (int first = 0; first < depth; first += LINES) {
        int some = least(depth - first, LINES);
        matmul_turn(room + first * MATMUL_ROWS, rows, some, depth, block_of(a, i, k + first, rows, some, true, lines));
    }
    matmul_left_of(left, rows, depth, room, MATMUL_ROWS * depth, 1, MATMUL_ROWS);
}

#endif
