/* kernels_lib/cpu behind a C interface, for test_kernels_cpu.py. */
typedef REAL real;

#ifdef EMULATED_VNNI /* on processors with AVX2 alone: the one instruction that AVX-VNNI has more */
#include <immintrin.h>
static __m256i emulated_dpbusd(__m256i sum, __m256i a, __m256i b) {
    union {
        __m256i all;
        int sum[8];
        signed char signed_[32];
        unsigned char unsigned_[32];
    } total = {sum}, left = {a}, right = {b};
    for (int k = 0; k < 32; k++)
        total.sum[k / 4] += left.unsigned_[k] * right.signed_[k];
    return total.all;
}
#define __AVXVNNI__ 1
#define _mm256_dpbusd_avx_epi32 emulated_dpbusd
#endif

#include "cpu/math.h"
#include "cpu/matmul.h"
#include "cpu/matmul_i8.h"
#include "cpu/team.h"

#ifndef TILE_M
#define TILE_M 24
#define TILE_N 80
#endif

/* c[m, n] = left right, in tiles as in generated programs. */
static void tiles(int m, int n, int k, Matrix left, Matrix right, real *c) {
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

/* With a stored [k, m] when ta, b stored [n, k] when tb. */
void product(int m, int n, int k, int ta, int tb, const real *a, const real *b, real *c) {
    Matrix left = ta ? transposed(matrix(a, m)) : matrix(a, k), right = tb ? transposed(matrix(b, k)) : matrix(b, n);
    tiles(m, n, k, left, right, c);
}

/* The same of numbers of 16 bits. */
void narrow_product(int m, int n, int k, int ta, int tb, const Narrow *a, const Narrow *b, real *c) {
    Matrix left = ta ? transposed(matrix(a, m)) : matrix(a, k), right = tb ? transposed(matrix(b, k)) : matrix(b, n);
    tiles(m, n, k, left, right, c);
}

static Axis axis(const int *from) {
    return (Axis){from[0], from[1], from[2], from[3], from[4], from[5]};
}

/* Of integers: a[m, k], or windows as `shape` of seen_product says (NULL: a matrix); b[n, k]. */
void whole_product(const int *shape, int m, int n, int k, const Integer *a, const Integer *b, int *c) {
    Matrix left = shape ? window(a, shape[0], shape[1], shape[2], axis(shape + 3), axis(shape + 9)) : matrix(a, k);
    for (int i0 = 0; i0 < m; i0 += TILE_M)
        for (int j0 = 0; j0 < n; j0 += TILE_N) {
            int sum[TILE_M * TILE_N];
            int rows = m - i0 < TILE_M ? m - i0 : TILE_M, columns = n - j0 < TILE_N ? n - j0 : TILE_N;
            matmul_i8(sum, TILE_N, left, transposed(matrix(b, k)), i0, j0, rows, columns, k);
            for (int i = 0; i < rows; i++)
                memcpy(c + (ptrdiff_t)(i0 + i) * n + j0, sum + i * TILE_N, sizeof(int) * (size_t)columns);
        }
}

void round_to_i8(int n, const float *from, Integer *to) {
    for (int i = 0; i < n; i++)
        to[i] = to_i8((real)from[i]);
}

/* The product of windows or filters s, transposed if `turned`, and a matrix: s x[k, n] when s is on the `left`, x[m, k] s
 * else. `shape`: height, width, channels and two axes of the windows, or outputs, taps, channels of filters; then the first
 * row and column of s. */
void seen_product(int windows, int narrow, int turned, int left, const int *shape, int m, int n, int k,
                  const void *seen, const real *x, real *c) {
    const Narrow *small = seen;
    const real *wide = seen;
    Matrix s;
    if (windows && narrow)
        s = window(small, shape[0], shape[1], shape[2], axis(shape + 3), axis(shape + 9));
    else if (windows)
        s = window(wide, shape[0], shape[1], shape[2], axis(shape + 3), axis(shape + 9));
    else
        s = narrow ? filter(small, shape[0], shape[1], shape[2]) : filter(wide, shape[0], shape[1], shape[2]);
    s = columns_from(rows_from(s, shape[windows ? 15 : 3]), shape[windows ? 16 : 4]);
    s = turned ? transposed(s) : s;
    tiles(m, n, k, left ? s : matrix(x, k), left ? matrix(x, n) : s, c);
}

void round_to_narrow(int n, const float *from, Narrow *to, float *back) {
    for (int i = 0; i < n; i++)
        back[i] = to_float(to[i] = to_narrow(from[i]));
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
