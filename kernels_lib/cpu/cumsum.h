/* Sums of all elements so far, along the middle axis of [outer, length, inner]:
 *
 *     out[o, i, c] = sum over k <= i of in[o, k, c]         `reversed`: over k >= i
 *
 * Each sum is the one before plus an element, whatever the number of threads. A thread has some neighbouring lines, which are one
 * vector where `inner` is not 1.
 *
 * All threads of a team call the function together, inside a parallel region. */
#ifndef MTC_CPU_CUMSUM_H
#define MTC_CPU_CUMSUM_H

#include "team.h"

typedef struct CumSum {
    int64_t outer, length, inner;
    bool reversed;
} CumSum;

enum { MTC_CUMSUM_LINES = 64 }; /* of a thread at a time */

static inline void mtc_cumsum_lines(const CumSum *shape, const real *in, real *out, int64_t lines) {
    const int64_t step = shape->reversed ? -shape->inner : shape->inner;
    const int64_t first = shape->reversed ? (shape->length - 1) * shape->inner : 0;
    real sum[MTC_CUMSUM_LINES] = {0};
    for (int64_t i = 0, at = first; i < shape->length; i++, at += step)
#pragma omp simd
        for (int64_t c = 0; c < lines; c++)
            out[at + c] = sum[c] += in[at + c];
}

static inline void cumsum(const CumSum *shape, const real *in, real *out) {
    const int64_t parts = (shape->inner + MTC_CUMSUM_LINES - 1) / MTC_CUMSUM_LINES;
#pragma omp for nowait
    for (int64_t task = 0; task < shape->outer * parts; task++) {
        const int64_t first = task % parts * MTC_CUMSUM_LINES, left = shape->inner - first;
        const int64_t begin = task / parts * shape->length * shape->inner + first;
        mtc_cumsum_lines(shape, in + begin, out + begin, left < MTC_CUMSUM_LINES ? left : MTC_CUMSUM_LINES);
    }
}

#endif
