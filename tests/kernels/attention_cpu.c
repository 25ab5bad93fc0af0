/* kernels_lib/cpu/attention.h behind a C interface, for test_attention_cpu.py. */
typedef REAL real;

#include "cpu/attention.h"

typedef STORED stored; /* real, or bfloat16 */

/* `shape`: batch, length, queries, keys, size, causal, window. */
static Attention attention(const int64_t *shape) {
    return (Attention){shape[0], shape[1], shape[2], shape[3], shape[4], shape[5] != 0, shape[6]};
}

void forward(int threads, const int64_t *shape, double scale, const stored *qkv, stored *out, real *sums) {
    Attention a = attention(shape);
#pragma omp parallel num_threads(threads)
    attend(&a, qkv, out, sums, (real)scale);
}

void backward(int threads, const int64_t *shape, double scale, const stored *qkv, const real *sums, const real *dots,
              const stored *d_out, stored *d_qkv) {
    Attention a = attention(shape);
#pragma omp parallel num_threads(threads)
    attend_grad(&a, qkv, sums, dots, d_out, d_qkv, (real)scale);
}
