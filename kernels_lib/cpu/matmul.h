/* Matrix product, one tile at a time.
 *
 *     sum[i, j] = sum over k of a[i, k] * b[k, j]        for rows i0 .. i0 + rows, columns j0 .. j0 + columns
 *
 * Every sum runs over k upwards, one fused multiply-add after the other, so the bits depend neither on the tile nor on
 * the number of threads nor on the width of the vectors.
 *
 *             b: PANEL columns, packed                 For each DEPTH of k and each panel of columns: copy the
 *             +-----------+                            panel of b next to each other (transposing it when it lies
 *             | v | v | v |  DEPTH rows                the other way), then let each ROWS rows of a run over it
 *             +-----------+                            with their ROWS x PANEL sums in vector registers.
 *     a       +-----------+
 *     o o o   |           |
 *     o o o   |   sums    |  ROWS rows
 *     DEPTH   +-----------+
 *
 * The including program has `typedef float real` (or double). */
#ifndef MTC_CPU_MATMUL_H
#define MTC_CPU_MATMUL_H

#include <stddef.h>
#include <string.h>

/* ROWS x VECTORS sums, VECTORS of b and one of a fill the 32 or 16 vector registers. */
#if defined __AVX512F__
#define MATMUL_VECTOR_BYTES 64
#define MATMUL_ROWS 8
#elif defined __AVX__
#define MATMUL_VECTOR_BYTES 32
#define MATMUL_ROWS 4
#else
#define MATMUL_VECTOR_BYTES 16
#define MATMUL_ROWS 4
#endif

typedef real MatmulVector __attribute__((vector_size(MATMUL_VECTOR_BYTES)));

enum {
    MATMUL_VECTORS = 3,
    MATMUL_LANES = MATMUL_VECTOR_BYTES / sizeof(real),
    MATMUL_PANEL = MATMUL_VECTORS * MATMUL_LANES,
    MATMUL_DEPTH = 256 /* a panel of this depth stays in the first-level cache */
};

/* Element (i, j) is at[i * row + j * column]; one of the two strides is 1. */
typedef struct Matrix {
    const real *at;
    ptrdiff_t row, column;
} Matrix;

static inline Matrix matrix(const real *at, ptrdiff_t columns) {
    return (Matrix){at, columns, 1};
}

static inline Matrix transposed(Matrix m) {
    return (Matrix){m.at, m.column, m.row};
}

static inline MatmulVector matmul_load(const real *at) {
    MatmulVector v;
    memcpy(&v, at, sizeof v);
    return v;
}

static inline void matmul_store(real *at, MatmulVector v) {
    memcpy(at, &v, sizeof v);
}

static inline int matmul_min(int a, int b) {
    return a < b ? a : b;
}

/* The sums of MATMUL_ROWS rows x `vectors` vectors; rows from `rows` on repeat the last one. */
static inline __attribute__((always_inline)) void matmul_registers(int vectors, real *sum, int stride, int rows,
                                                                   int depth, Matrix a, const real *panel) {
    MatmulVector acc[MATMUL_ROWS][MATMUL_VECTORS];
    const real *row[MATMUL_ROWS];
    for (int i = 0; i < MATMUL_ROWS; i++) {
        row[i] = a.at + matmul_min(i, rows - 1) * a.row;
        for (int v = 0; v < vectors; v++)
            acc[i][v] = matmul_load(sum + i * stride + v * MATMUL_LANES);
    }
    for (int k = 0; k < depth; k++, panel += vectors * MATMUL_LANES)
        for (int i = 0; i < MATMUL_ROWS; i++)
            for (int v = 0; v < vectors; v++)
                acc[i][v] += row[i][k * a.column] * matmul_load(panel + v * MATMUL_LANES);
    for (int i = 0; i < MATMUL_ROWS; i++)
        for (int v = 0; v < vectors; v++)
            matmul_store(sum + i * stride + v * MATMUL_LANES, acc[i][v]);
}

/* panel[k, j] = at[j * stride + k] for LANES x LANES elements. With 2^p lanes, p perfect shuffles (of a pack of cards)
 * of the flat array exchange its rows and columns. */
static inline void matmul_transpose(real *panel, int width, const real *at, ptrdiff_t stride) {
    enum { HALF = MATMUL_LANES * MATMUL_LANES / 2 };
    real cards[2 * HALF], shuffled[2 * HALF];
    for (int j = 0; j < MATMUL_LANES; j++)
        matmul_store(cards + j * MATMUL_LANES, matmul_load(at + j * stride));
    for (int round = 1; round < MATMUL_LANES; round *= 2) {
        for (int x = 0; x < HALF; x++) {
            shuffled[2 * x] = cards[x];
            shuffled[2 * x + 1] = cards[x + HALF];
        }
        memcpy(cards, shuffled, sizeof cards);
    }
    for (int k = 0; k < MATMUL_LANES; k++)
        matmul_store(panel + k * width, matmul_load(cards + k * MATMUL_LANES));
}

/* panel[k, j] = b(k, j) for a block of at most LANES columns and any depth; columns that are missing become zeros. */
static inline void matmul_pack(real *panel, int width, int columns, int depth, Matrix b) {
    int k = 0;
    if (b.row == 1 && columns == MATMUL_LANES)
        for (; k + MATMUL_LANES <= depth; k += MATMUL_LANES)
            matmul_transpose(panel + k * width, width, b.at + k, b.column);
    if (b.column == 1 && columns == MATMUL_LANES)
        for (; k < depth; k++)
            matmul_store(panel + k * width, matmul_load(b.at + k * b.row));
    for (; k < depth; k++)
        for (int j = 0; j < MATMUL_LANES; j++)
            panel[k * width + j] = j < columns ? b.at[k * b.row + j * b.column] : 0;
}

/* One panel of `vectors` vectors: all rows of the tile run over it. */
static inline __attribute__((always_inline)) void matmul_panel(int vectors, real *sum, int stride, int rows,
                                                               int columns, int depth, Matrix a, Matrix b) {
    real panel[MATMUL_DEPTH * MATMUL_PANEL] __attribute__((aligned(64)));
    for (int v = 0; v < vectors; v++)
        matmul_pack(panel + v * MATMUL_LANES, vectors * MATMUL_LANES,
                    matmul_min(columns - v * MATMUL_LANES, MATMUL_LANES), depth,
                    (Matrix){b.at + v * MATMUL_LANES * b.column, b.row, b.column});
    for (int i = 0; i < rows; i += MATMUL_ROWS)
        matmul_registers(vectors, sum + i * stride, stride, rows - i, depth,
                         (Matrix){a.at + i * a.row, a.row, a.column}, panel);
}

/* The tile: sum[(i - i0) * stride + j - j0] for the rows and columns from (i0, j0) on. `sum` has room for `rows`
 * rounded up to 8 and `columns` rounded up to 16 (the sums there are of no use), and stride is a multiple of 16. */
static inline void matmul(real *sum, int stride, Matrix a, Matrix b, int i0, int j0, int rows, int columns, int depth) {
    memset(sum, 0, sizeof(real) * (size_t)(stride * ((rows + 7) / 8 * 8)));
    for (int k = 0; k < depth; k += MATMUL_DEPTH) {
        int steps = matmul_min(depth - k, MATMUL_DEPTH);
        Matrix left = {a.at + i0 * a.row + k * a.column, a.row, a.column};
        for (int j = 0; j < columns;) {
            int vectors = matmul_min((columns - j + MATMUL_LANES - 1) / MATMUL_LANES, MATMUL_VECTORS);
            Matrix right = {b.at + k * b.row + (j0 + j) * b.column, b.row, b.column};
            switch (vectors) { /* a constant in each call: the sums are registers */
            case 1: matmul_panel(1, sum + j, stride, rows, columns - j, steps, left, right); break;
            case 2: matmul_panel(2, sum + j, stride, rows, columns - j, steps, left, right); break;
            default: matmul_panel(3, sum + j, stride, rows, columns - j, steps, left, right);
            }
            j += vectors * MATMUL_LANES;
        }
    }
}

#endif
