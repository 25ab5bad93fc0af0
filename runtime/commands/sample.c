/* The choice of the next token. */
#include "commands/generate.h"
#include "random.h"

#include <math.h>
#include <stdlib.h>

/* Uniform in [0, 1), a multiple of 2^-53: a vocabulary has tokens of probability 2^-24. */
static double draw_unit(const MtcSampling *sampling, uint64_t draw, uint64_t text) {
    MtcWords words = mtc_random_block(sampling->seed, MTC_SAMPLE_STREAM, draw, text);
    return (double)(((uint64_t)words.at[1] << 32 | words.at[0]) >> 11) * 0x1p-53;
}

/* ---- the highest ones ---- */

/* By score, then by number. */
static bool is_before(const double *scores, int64_t a, int64_t b) {
    return scores[a] != scores[b] ? scores[a] > scores[b] : a < b;
}

static void sift(const double *scores, int64_t *heap, int64_t count, int64_t at) {
    for (int64_t child; (child = 2 * at + 1) < count; at = child) {
        child += child + 1 < count && is_before(scores, heap[child + 1], heap[child]);
        if (is_before(scores, heap[at], heap[child]))
            return;
        int64_t token = heap[at];
        heap[at] = heap[child];
        heap[child] = token;
    }
}

static int64_t *heap_of(const double *scores, int64_t count) {
    int64_t *heap = (int64_t *)mtc_memory(NULL, (size_t)count * sizeof *heap);
    for (int64_t i = 0; i < count; i++)
        heap[i] = i;
    for (int64_t i = count / 2; i-- > 0;)
        sift(scores, heap, count, i);
    return heap;
}

/* The token of the highest score leaves the heap. */
static int64_t pop(const double *scores, int64_t *heap, int64_t *count) {
    int64_t token = heap[0];
    heap[0] = heap[--*count];
    sift(scores, heap, *count, 0);
    return token;
}

/* ---- drawing ---- */

static double weight_of(double score, double top, double temperature) {
    return exp((score - top) / temperature);
}

/* The first token with which the weights exceed the part of their sum; `token` NULL: tokens in their order. */
static int64_t at_part(const int64_t *token, const double *weights, int64_t count, double sum, double part) {
    double passed = 0;
    int64_t last = 0;
    for (int64_t i = 0; i < count; i++) {
        passed += weights[i];
        last = weights[i] > 0 ? i : last;
        if (passed > part * sum)
            break;
    }
    return token ? token[last] : last;
}

static int64_t sample_all(const MtcSampling *sampling, const double *scores, int64_t count, double top, double part) {
    double *weights = (double *)mtc_memory(NULL, (size_t)count * sizeof *weights), sum = 0;
    for (int64_t i = 0; i < count; i++)
        sum += weights[i] = weight_of(scores[i], top, sampling->temperature);
    int64_t token = at_part(NULL, weights, count, sum, part);
    free(weights);
    return token;
}

/* How many of the weights, which fall, have the part top_p of their sum. */
static int64_t nucleus(const double *weights, int64_t count, double top_p, double *sum) {
    double all = *sum, passed = 0;
    int64_t kept = 0;
    while (kept < count && (kept == 0 || passed < top_p * all))
        passed += weights[kept++];
    *sum = passed;
    return kept;
}

/* How many of the weights, which fall, are at least min_p times the first. */
static int64_t likely(const double *weights, int64_t count, double min_p, double *sum) {
    int64_t kept = 0;
    *sum = 0;
    while (kept < count && (kept == 0 || weights[kept] >= min_p * weights[0]))
        *sum += weights[kept++];
    return kept;
}

/* Of the k highest, those that top_p and min_p leave. */
static int64_t sample_highest(const MtcSampling *sampling, const double *scores, int64_t count, double top,
                              double part) {
    int64_t left = count, k = sampling->top_k && sampling->top_k < count ? sampling->top_k : count;
    int64_t *heap = heap_of(scores, count), *token = (int64_t *)mtc_memory(NULL, (size_t)k * sizeof *token);
    double *weights = (double *)mtc_memory(NULL, (size_t)k * sizeof *weights), sum = 0;
    for (int64_t i = 0; i < k; i++) {
        token[i] = pop(scores, heap, &left);
        sum += weights[i] = weight_of(scores[token[i]], top, sampling->temperature);
    }
    int64_t kept = sampling->top_p < 1 ? nucleus(weights, k, sampling->top_p, &sum) : k;
    if (sampling->min_p > 0)
        kept = likely(weights, kept, sampling->min_p, &sum);
    int64_t chosen = at_part(token, weights, kept, sum, part);
    free(heap);
    free(token);
    free(weights);
    return chosen;
}

void mtc_penalize(double penalty, const int32_t *token, size_t tokens, double *scores, int64_t count) {
    if (penalty == 1)
        return;
    bool *done = (bool *)mtc_zeroed((size_t)count * sizeof *done);
    for (size_t i = 0; i < tokens; i++)
        if (token[i] < count && !done[token[i]]) { /* a prompt may have what is never drawn */
            scores[token[i]] *= penalty;
            done[token[i]] = true;
        }
    free(done);
}

bool mtc_filters(const MtcSampling *sampling, int64_t count) {
    return sampling->temperature != 0 &&
           (sampling->top_p < 1 || sampling->min_p > 0 || (sampling->top_k && sampling->top_k < count));
}

int64_t mtc_sample(const MtcSampling *sampling, const double *scores, int64_t count, uint64_t draw, uint64_t text) {
    int64_t best = 0;
    for (int64_t i = 0; i < count; i++) {
        if (isnan(scores[i]))
            return -1;
        best = is_before(scores, i, best) ? i : best;
    }
    if (isinf(scores[best]))
        return -1;
    if (sampling->temperature == 0)
        return best;
    double part = draw_unit(sampling, draw, text);
    return mtc_filters(sampling, count) ? sample_highest(sampling, scores, count, scores[best], part)
                                        : sample_all(sampling, scores, count, scores[best], part);
}
