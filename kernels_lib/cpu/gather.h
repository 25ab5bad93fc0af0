/* The gradient of a table whose rows were looked up:
 *
 *     out[v, c] = sum over k with index[k] = v of dy[k, c]         0 where no index is v
 *
 * index[count] lies within the rows; dy[count, width] is of type real or Narrow, out[rows, width] real.
 *
 * Each thread has rows of the table of its own: v, v + threads, v + 2 threads ... It looks through all indices and adds up what
 * comes to its rows, in the order of the indices: the sums do not depend on the number of threads.
 *
 * All threads of a team call the function together, inside a parallel region. */
#ifndef MTC_CPU_GATHER_H
#define MTC_CPU_GATHER_H

#include "operand.h"
#include "team.h"

typedef struct GatherGrad {
    int64_t count, rows, width;
} GatherGrad;

#define gather_grad(shape, index, dy, out) gather_grad_rows(shape, index, dy, is_narrow(dy), out)

static inline void gather_add(const void *dy, bool narrow, int64_t first, int64_t width, real *out) {
    if (narrow) {
        const Narrow *from = (const Narrow *)dy + first;
        for (int64_t c = 0; c < width; c++)
            out[c] += to_float(from[c]);
    } else {
        const real *from = (const real *)dy + first;
        for (int64_t c = 0; c < width; c++)
            out[c] += from[c];
    }
}

static inline void gather_grad_rows(const GatherGrad *shape, const int *index, const void *dy, bool narrow, real *out) {
    int threads = omp_get_num_threads();
#pragma omp for nowait
    for (int thread = 0; thread < threads; thread++) {
        for (int64_t v = thread; v < shape->rows; v += threads)
            memset(out + v * shape->width, 0, sizeof(real) * (size_t)shape->width);
        for (int64_t k = 0; k < shape->count; k++)
            if (index[k] % threads == thread)
                gather_add(dy, narrow, k * shape->width, shape->width, out + index[k] * shape->width);
    }
}

#endif
