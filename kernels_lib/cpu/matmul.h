/* Matrix product, one tile at a time.
 *
 *     sum[i, j] = sum over k of a[i, k] * b[k, j]        for rows i0 .. i0 + rows, columns j0 .. j0 + columns
 *
 * Every sum runs over k upwards, one fused multiply-add after the other, so the bits depend neither on the tile nor on
 * the number of threads nor on the width of the vectors. Nor do they where windows are multiplied two at a time
 * (matmul_pairs.h).
 *
 * The including program has `typedef float real` (or double). */
#ifndef MTC_CPU_MATMUL_H
#define MTC_CPU_MATMUL_H

#include "matmul_pairs.h"
#include "matmul_windows.h"

static const WindowWays window_ways = {copy_windows, see_rows, see_columns, pack_windows, matmul_add_pairs};

/* All columns of b run under `left`, a panel at a time. */
static inline void matmul_panels(real *sum, int stride, const MatmulLeft *left, Block b, int rows, int columns,
                                 int depth) {
    real panel[MATMUL_DEPTH * MATMUL_PANEL] __attribute__((aligned(64)));
    for (int j = 0; j < columns; j += MATMUL_PANEL, b.at += MATMUL_PANEL * b.column) {
        int width = least(columns - j, MATMUL_PANEL);
        matmul_pack_panel(panel, width, depth, b);
        matmul_panel(sum + j, stride, rows, matmul_vectors(width), depth, left, panel);
    }
}

static inline void matmul_windows(real *sum, int stride, const MatmulLeft *left, const Matrix *b, int k, int j0,
                                  int rows, int columns, int depth) {
    real panel[MATMUL_DEPTH * MATMUL_PANEL] __attribute__((aligned(64)));
    for (int j = 0; j < columns; j += MATMUL_PANEL) {
        int width = least(columns - j, MATMUL_PANEL);
        b->ways->pack(panel, b, k, j0 + j, depth, width);
        matmul_panel(sum + j, stride, rows, matmul_vectors(width), depth, left, panel);
    }
}

/* Columns that are copied, some at a time. The copy has a frame of its own, which a product does without that needs none: a frame's
 * pages may be touched at each call. */
MATMUL_ONCE void matmul_copied(real *sum, int stride, const MatmulLeft *left, const Matrix *b, int k, int j, int rows,
                               int columns, int depth) {
    real copied[MATMUL_DEPTH * MATMUL_WIDEST] __attribute__((aligned(64)));
    for (int first = 0; first < columns; first += MATMUL_WIDEST) {
        int width = least(columns - first, MATMUL_WIDEST);
        matmul_panels(sum + first, stride, left, block_of(b, k, j + first, depth, width, true, copied), rows, width,
                      depth);
    }
}

/* All columns of the tile, sums over k upwards. */
MATMUL_ONCE void matmul_add_upwards(real *sum, int stride, const Matrix *a, const Matrix *b, int i0, int j0, int rows,
                                    int columns, int depth) {
    real room[MATMUL_ROOM] __attribute__((aligned(64)));
    MatmulLeft left;
    bool seen = a->kind == MATRIX_WINDOW && !a->transposed && a->ways->see_rows(&left, a, i0, rows, room);
    for (int k = 0; k < depth; k += MATMUL_DEPTH) {
        int steps = least(depth - k, MATMUL_DEPTH);
        if (seen)
            a->ways->see_columns(&left, a, k, steps);
        else
            matmul_left(&left, a, i0, k, rows, columns, steps, room);
        if (b->kind == MATRIX_PLAIN && b->element == ELEMENT_REAL)
            matmul_panels(sum, stride, &left, block_of(b, k, j0, steps, columns, true, NULL), rows, columns, steps);
        else if (may_pack_windows(b))
            matmul_windows(sum, stride, &left, b, k, j0, rows, columns, steps);
        else
            matmul_copied(sum, stride, &left, b, k, j0, rows, columns, steps);
    }
}

/* Adds the tile to sum[(i - i0) * stride + j - j0], for the rows and columns from (i0, j0) on. `sum` has room for `rows`,
 * at most MATMUL_TALLEST, rounded up to 8 and `columns` rounded up to 16 (the sums there are of no use), and stride is a
 * multiple of 16. */
MATMUL_ONCE void matmul_add(real *sum, int stride, Matrix a, Matrix b, int i0, int j0, int rows, int columns,
                            int depth) {
    if (!matmul_in_pairs(&a, depth)) {
        matmul_add_upwards(sum, stride, &a, &b, i0, j0, rows, columns, depth);
        return;
    }
    for (int j = 0; j < columns; j += MATMUL_WIDEST)
        a.ways->add_pairs(sum + j, stride, &a, &b, i0, j0 + j, rows, least(columns - j, MATMUL_WIDEST));
}

/* The tile itself. */
static inline void matmul(real *sum, int stride, Matrix a, Matrix b, int i0, int j0, int rows, int columns, int depth) {
    zero_numbers(sum, stride * ((rows + 7) / 8 * 8));
    matmul_add(sum, stride, a, b, i0, j0, rows, columns, depth);
}

#endif
