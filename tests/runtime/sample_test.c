/* runtime/commands/sample.c for ctypes. */
#include "commands/generate.h"

void samples(double temperature, int64_t top_k, double top_p, uint64_t seed, const double *scores, int64_t count,
             int64_t draws, int64_t *out) {
    MtcSampling sampling = {temperature, top_k, top_p, seed};
    for (int64_t i = 0; i < draws; i++)
        out[i] = mtc_sample(&sampling, scores, count, (uint64_t)i);
}
