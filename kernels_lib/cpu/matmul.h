/* Matrix product, one tile at a time.
 *
 *     sum[i, j] = sum over k of a[i, k] * b[k, j]        for rows i0 .. i0 + rows, columns j0 .. j0 + columns
 *
 * Every sum runs over k upwards, one fused multiply-add after the other, so the bits depend neither on the tile nor on
 * the number of threads nor on the width of the vectors.
 *
 * The including program has `typedef float real` (or double). */
#ifndef MTC_CPU_MATMUL_H
#define MTC_CPU_MATMUL_H

#include "matmul_panel.h"

/* Adds the tile to sum[(i - i0) * stride + j - j0], for the rows and columns from (i0, j0) on. `sum` has room for `rows`,
 * at most MATMUL_TALLEST, rounded up to 8 and `columns` rounded up to 16 (the sums there are of no use), and stride is a
 * multiple of 16. */
MATMUL_ONCE void matmul_add(real *sum, int stride, Matrix a, Matrix b, int i0, int j0, int rows, int columns,
                            int depth) {
    real left_room[MATMUL_TALLEST * MATMUL_DEPTH] __attribute__((aligned(64)));
    real right_room[MATMUL_DEPTH * MATMUL_PANEL] __attribute__((aligned(64)));
    bool may_stay = !a.transposed || a.columns <= MATMUL_TALLEST; /* else its lines meet in the cache */
    for (int k = 0; k < depth; k += MATMUL_DEPTH) {
        int steps = least(depth - k, MATMUL_DEPTH);
        Block left = block_of(&a, i0, k, rows, steps, may_stay, left_room);
        for (int j = 0; j < columns; j += MATMUL_PANEL) {
            int width = least(columns - j, MATMUL_PANEL);
            Block right = block_of(&b, k, j0 + j, steps, width, true, right_room);
            matmul_any_panel(sum + j, stride, rows, width, steps, left, right);
        }
    }
}

/* The tile itself. */
static inline void matmul(real *sum, int stride, Matrix a, Matrix b, int i0, int j0, int rows, int columns, int depth) {
    zero_numbers(sum, stride * ((rows + 7) / 8 * 8));
    matmul_add(sum, stride, a, b, i0, j0, rows, columns, depth);
}

#endif
