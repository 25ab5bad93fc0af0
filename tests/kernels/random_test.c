/* kernels_lib/random.h for ctypes. */
#include "random.h"

void words(uint64_t key, const uint32_t *counter, uint32_t *out) {
    MtcWords c = {{counter[0], counter[1], counter[2], counter[3]}};
    c = mtc_philox(key, c);
    for (int i = 0; i < 4; i++)
        out[i] = c.at[i];
}

void uniforms(uint64_t seed, uint32_t stream, uint64_t step, int64_t count, float *out) {
    for (int64_t i = 0; i < count; i++)
        out[i] = mtc_uniform(seed, stream, step, (uint64_t)i);
}

void normals(uint64_t seed, uint32_t stream, uint64_t step, int64_t count, float *out) {
    for (int64_t i = 0; i < count; i++)
        out[i] = mtc_normal(seed, stream, step, (uint64_t)i);
}

void permutation(uint64_t seed, uint64_t epoch, uint32_t count, uint32_t *out) {
    for (uint32_t i = 0; i < count; i++)
        out[i] = mtc_permute(mtc_shuffle_key(seed, epoch), count, i);
}

void logarithms(int64_t count, const float *x, float *out) {
    for (int64_t i = 0; i < count; i++)
        out[i] = mtc_log(x[i]);
}

void cosines(int64_t count, const float *turns, int sine, float *out) {
    for (int64_t i = 0; i < count; i++)
        out[i] = mtc_cos_turn(turns[i], sine);
}
