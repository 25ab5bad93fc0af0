/* runtime/commands/sample.c for ctypes. */
#include "commands/generate.h"

void samples(const MtcSampling *sampling, const double *scores, int64_t count, uint64_t text, int64_t draws,
             int64_t *out) {
    for (int64_t i = 0; i < draws; i++)
        out[i] = mtc_sample(sampling, scores, count, (uint64_t)i, text);
}
