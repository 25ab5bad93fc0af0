/* Random numbers that are the same bits on every target.
 *
 * Each number is a function of where it is used, never of what was drawn before:
 *
 *     (seed, stream, step, element)  ->  Philox4x32-10  ->  32 bits  ->  [0, 1)  ->  N(0, 1)
 *
 * One Philox block gives four words, so elements 4k .. 4k+3 share a block. Floating point here is made of operations
 * that IEEE 754 rounds in one way only: conversions of small integers, fmaf, roots, and products that feed no sum (a
 * compiler that is not told otherwise may contract a * b + c, and then CPU and GPU differ). Logarithm, sine and cosine are
 * polynomials of ours. */
#ifndef MTC_RANDOM_H
#define MTC_RANDOM_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#ifdef __CUDACC__
#define MTC_FN static __host__ __device__ __forceinline__
#else
#define MTC_FN static inline
#endif

typedef struct MtcWords {
    uint32_t at[4];
} MtcWords;

/* ---- Philox4x32-10 (Salmon et al., Parallel random numbers: as easy as 1, 2, 3; 2011) ---- */

MTC_FN MtcWords mtc_philox_round(MtcWords c, uint32_t key0, uint32_t key1) {
    uint64_t p = (uint64_t)0xD2511F53u * c.at[0], q = (uint64_t)0xCD9E8D57u * c.at[2];
    MtcWords out;
    out.at[0] = (uint32_t)(q >> 32) ^ c.at[1] ^ key0;
    out.at[1] = (uint32_t)q;
    out.at[2] = (uint32_t)(p >> 32) ^ c.at[3] ^ key1;
    out.at[3] = (uint32_t)p;
    return out;
}

MTC_FN MtcWords mtc_philox(uint64_t key, MtcWords counter) {
    uint32_t key0 = (uint32_t)key, key1 = (uint32_t)(key >> 32);
    for (int round = 0; round < 10; round++) {
        counter = mtc_philox_round(counter, key0, key1);
        key0 += 0x9E3779B9u;
        key1 += 0xBB67AE85u;
    }
    return counter;
}

/* The four words of elements 4 * block .. 4 * block + 3. Steps and blocks have 48 bits each. */
MTC_FN MtcWords mtc_random_block(uint64_t seed, uint32_t stream, uint64_t step, uint64_t block) {
    MtcWords counter;
    counter.at[0] = (uint32_t)block;
    counter.at[1] = (uint32_t)step;
    counter.at[2] = (uint32_t)(block >> 32 & 0xFFFF) | (uint32_t)(step >> 32) << 16;
    counter.at[3] = stream;
    return mtc_philox(seed, counter);
}

MTC_FN uint32_t mtc_random(uint64_t seed, uint32_t stream, uint64_t step, uint64_t element) {
    MtcWords words = mtc_random_block(seed, stream, step, element >> 2);
    uint32_t low = element & 1 ? words.at[1] : words.at[0], high = element & 1 ? words.at[3] : words.at[2];
    return element & 2 ? high : low;
}

/* Streams of evaluation. Those of training count from 0, those of weights from 2^30. */
enum { MTC_SET_STREAM = 1 << 29 };

/* Streams of other uses: weights count from 0, shuffles and splits have the last two. */
#define MTC_SAMPLE_STREAM 0xFFFFFFFDu /* of the tokens of texts */

/* ---- distributions ---- */

/* Uniform in [0, 1), a multiple of 2^-24. */
MTC_FN float mtc_unit(uint32_t word) {
    return (float)(word >> 8) * 0x1p-24f;
}

MTC_FN float mtc_uniform(uint64_t seed, uint32_t stream, uint64_t step, uint64_t element) {
    return mtc_unit(mtc_random(seed, stream, step, element));
}

/* log(x) for normal x > 0:  x = m * 2^e, m in [sqrt(1/2), sqrt(2)), f = m - 1,
 * log(x) = e log 2 + f - f^2 / 2 + f^3 P(f). */
MTC_FN float mtc_log(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    int e = (int)(bits - 0x3F3504F3u) >> 23;
    bits -= (uint32_t)e << 23;
    float m;
    memcpy(&m, &bits, sizeof m);
    float f = m - 1, p = 0.0950118847f;
    p = fmaf(p, f, -0.142018193f);
    p = fmaf(p, f, 0.146461206f);
    p = fmaf(p, f, -0.165834548f);
    p = fmaf(p, f, 0.199862373f);
    p = fmaf(p, f, -0.250011288f);
    p = fmaf(p, f, 0.333334032f);
    p = fmaf(p, f, -0.5f);
    p = fmaf(p * f, f, f);
    return fmaf((float)e, 0.693147181f, p);
}

/* sin and cos of r quarter turns, |r| <= 1/2: odd and even polynomials in r. */
MTC_FN float mtc_sin_quarter(float r) {
    float z = r * r, p = -0.00460217699f;
    p = fmaf(p, z, 0.0796802281f);
    p = fmaf(p, z, -0.645963479f);
    p = fmaf(p, z, 1.57079633f);
    return p * r;
}

MTC_FN float mtc_cos_quarter(float r) {
    float z = r * r, p = 0.00090674354f;
    p = fmaf(p, z, -0.0208615297f);
    p = fmaf(p, z, 0.25366941f);
    p = fmaf(p, z, -1.23370055f);
    return fmaf(p, z, 1.0f);
}

/* cos(2 pi t) for t in [0, 1), a multiple of 2^-24; sin(2 pi t) where `sine` is set. */
MTC_FN float mtc_cos_turn(float t, int sine) {
    int quarter = (int)fmaf(t, 4.0f, 0.5f);
    float r = fmaf(t, 4.0f, -(float)quarter);
    quarter = (quarter - sine) & 3; /* sin(a) = cos(a - a quarter turn) */
    float value = quarter & 1 ? mtc_sin_quarter(r) : mtc_cos_quarter(r);
    return quarter == 1 || quarter == 2 ? -value : value;
}

/* The root as IEEE 754 rounds it, whatever nvcc was told of roots. */
MTC_FN float mtc_root(float x) {
#ifdef __CUDA_ARCH__
    return __fsqrt_rn(x);
#else
    return sqrtf(x);
#endif
}

/* Standard normal, Box-Muller: elements 2k and 2k+1 are the cosine and the sine of one pair of uniforms. The last product is an
 * fmaf, so that a sum into which the number goes does not take it over unrounded. */
MTC_FN float mtc_normal(uint64_t seed, uint32_t stream, uint64_t step, uint64_t element) {
    MtcWords words = mtc_random_block(seed, stream, step, element >> 2);
    uint32_t u = element & 2 ? words.at[2] : words.at[0], v = element & 2 ? words.at[3] : words.at[1];
    float positive = (float)((u >> 8) + 1) * 0x1p-24f; /* in (0, 1] */
    return fmaf(mtc_root(-2.0f * mtc_log(positive)), mtc_cos_turn(mtc_unit(v), (int)(element & 1)), -0.0f);
}

/* ---- initial values ---- */

/* Streams of weights: that of the first. */
enum { MTC_WEIGHT_STREAM = 1 << 30 };

/* base + span * (a drawn number), rounded once. */
MTC_FN double mtc_initial(int normal, double base, double span, uint64_t seed, uint32_t stream, uint64_t element) {
    float drawn = normal ? mtc_normal(seed, stream, 0, element) : mtc_uniform(seed, stream, 0, element);
    return fma(span, (double)drawn, base);
}

/* Of filters [out, taps ..., channels], those that pass a channel on: filter i is 1 at the middle tap of channel i, else 0. `passed`: how
 * many elements they have, the first ones. */
typedef struct MtcPassing {
    uint64_t passed, filter, middle; /* elements: of all of them; of one; before the middle tap */
} MtcPassing;

static inline MtcPassing mtc_passing(int rank, const int64_t *dim) {
    const uint64_t channels = (uint64_t)dim[rank - 1], filters = (uint64_t)dim[0];
    MtcPassing passing = {0, channels, 0};
    for (int k = 1; k < rank - 1; k++) {
        passing.middle = passing.middle * (uint64_t)dim[k] + (uint64_t)dim[k] / 2;
        passing.filter *= (uint64_t)dim[k];
    }
    passing.middle *= channels;
    passing.passed = (filters < channels ? filters : channels) * passing.filter;
    return passing;
}

MTC_FN double mtc_passed(MtcPassing passing, uint64_t element) {
    return element % passing.filter == passing.middle + element / passing.filter;
}

/* ---- shuffling ---- */

/* The key of epoch's permutation. */
MTC_FN uint64_t mtc_shuffle_key(uint64_t seed, uint64_t epoch) {
    MtcWords words = mtc_random_block(seed, 0xFFFFFFFFu, epoch, 0);
    return (uint64_t)words.at[1] << 32 | words.at[0];
}

/* The key of the permutation that divides examples into parts. */
MTC_FN uint64_t mtc_split_key(uint64_t seed) {
    MtcWords words = mtc_random_block(seed, 0xFFFFFFFEu, 0, 0);
    return (uint64_t)words.at[1] << 32 | words.at[0];
}

MTC_FN uint32_t mtc_mix(uint64_t key, uint32_t round, uint32_t x) {
    uint64_t z = (key + (uint64_t)round * 0x9E3779B97F4A7C15u + x) * 0xD6E8FEB86659FD93u;
    z ^= z >> 32;
    z *= 0xD6E8FEB86659FD93u;
    return (uint32_t)(z >> 32);
}

/* The permutation of [0, 2^bits) that `key` selects: an unbalanced Feistel network. */
MTC_FN uint32_t mtc_permute_bits(uint64_t key, int bits, uint32_t i) {
    int low_bits = bits - bits / 2;
    uint32_t low_mask = (1u << low_bits) - 1, high_mask = (1u << bits / 2) - 1;
    uint32_t low = i & low_mask, high = i >> low_bits;
    for (uint32_t round = 0; round < 6; round += 2) {
        high ^= mtc_mix(key, round, low) & high_mask;
        low ^= mtc_mix(key, round + 1, high) & low_mask;
    }
    return high << low_bits | low;
}

/* Networks of fewer bits favour some permutations. */
enum { MTC_FEWEST_BITS = 8 };

/* Where index i lands in the permutation of [0, n) that `key` selects: that of a power of two that holds n, walked along
 * its cycle until it falls below n (at most twice on average; more for n below 128). */
MTC_FN uint32_t mtc_permute(uint64_t key, uint32_t n, uint32_t i) {
    int bits = MTC_FEWEST_BITS;
    while (bits < 32 && (n - 1) >> bits)
        bits++;
    do
        i = mtc_permute_bits(key, bits, i);
    while (i >= n);
    return i;
}

#endif
