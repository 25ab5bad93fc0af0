/* kernels_lib/cpu behind a C interface, for test_kernels_cpu.py. */
typedef REAL real;

#include "cpu/math.h"
#include "cpu/matmul.h"
#include "cpu/team.h"

enum { TILE_M = 24, TILE_N = 80 };

/* c[m, n] = a b, with a stored [k, m] when ta, b stored [n, k] when tb, in tiles as in generated programs. */
void product(int m, int n, int k, int ta, int tb, const real *a, const real *b, real *c) {
    Matrix left = ta ? transposed(matrix(a, m)) : matrix(a, k), right = tb ? transposed(matrix(b, k)) : matrix(b, n);
    int tile_columns = (n + TILE_N - 1) / TILE_N, tiles = (m + TILE_M - 1) / TILE_M * tile_columns;
#pragma omp parallel for
    for (int tile = 0; tile < tiles; tile++) {
        real sum[TILE_M * TILE_N];
        int i0 = tile / tile_columns * TILE_M, j0 = tile % tile_columns * TILE_N;
        int rows = m - i0 < TILE_M ? m - i0 : TILE_M, columns = n - j0 < TILE_N ? n - j0 : TILE_N;
        matmul(sum, TILE_N, left, right, i0, j0, rows, columns, k);
        for (int i = 0; i < rows; i++)
            memcpy(c + (ptrdiff_t)(i0 + i) * n + j0, sum + i * TILE_N, sizeof(real) * (size_t)columns);
    }
}

/* a b as it comes out in a step, and after it. */
void tiny_product(volatile real *a, volatile real *b, real *inside, real *after) {
    FloatMode before = flush_subnormals();
    *inside = *a * *b;
    set_float_mode(before);
    *after = *a * *b;
}

#define MAP(name, expression)                                                                                          \
    void map_##name(int n, const real *from, real *to) {                                                               \
        for (int i = 0; i < n; i++) {                                                                                  \
            real x = from[i];                                                                                          \
            to[i] = expression;                                                                                        \
        }                                                                                                              \
    }

MAP(exp, exp(x))
MAP(log, log(x))
MAP(tanh, tanh(x))
MAP(fmax, fmax(x, 0))
MAP(fmin, fmin(x, 0))
MAP(relu, relu(x))
MAP(sigmoid, sigmoid(x))
MAP(softplus, softplus(x))
MAP(sign, sign(x))
