#include "session/scales.h"

#include "base/parallel.h"
#include "shared.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- weights ---- */

static float nearest(float value, float scale) {
    const float q = rintf(value / scale);
    return q > I8_LARGEST ? I8_LARGEST : q < -I8_LARGEST ? -I8_LARGEST : q;
}

static double squared_error(const float *values, int64_t count, float scale) {
    double sum = 0;
    for (int64_t i = 0; i < count; i++) {
        const double off = (double)(values[i] - scale * nearest(values[i], scale));
        sum += off * off;
    }
    return sum;
}

/* Of scales that cut off at so many steps below the largest. */
enum { CUTS = 24, CUT_STEPS = 64 };

static float scale_of_row(const float *values, int64_t count) {
    float largest = 0, best = 1;
    double least = INFINITY;
    for (int64_t i = 0; i < count; i++)
        largest = fmaxf(largest, fabsf(values[i]));
    for (int cut = 0; cut < CUTS && largest > 0; cut++) {
        const float scale = (float)((double)largest * (CUT_STEPS - cut) / (CUT_STEPS * I8_LARGEST));
        const double error = scale > 0 ? squared_error(values, count, scale) : INFINITY;
        if (error < least) {
            least = error;
            best = scale;
        }
    }
    return best;
}

typedef struct Rows {
    const float *values;
    int64_t terms;
    signed char *integers;
    float *scale;
} Rows;

static void quantize_row(void *context, int64_t row) {
    const Rows *rows = (const Rows *)context;
    const float *values = rows->values + row * rows->terms, scale = scale_of_row(values, rows->terms);
    for (int64_t k = 0; k < rows->terms; k++)
        rows->integers[row * rows->terms + k] = (signed char)nearest(values[k], scale);
    rows->scale[row] = scale;
}

void mtc_quantize_rows(const float *values, int64_t outputs, int64_t terms, signed char *integers, float *scale) {
    Rows rows = {values, terms, integers, scale};
    mtc_parallel(outputs, quantize_row, &rows);
}

/* ---- what they are multiplied with ---- */

static void join_pairs(MtcSizes *sizes) {
    for (int bin = 0; bin < MTC_SIZES / 2; bin++)
        sizes->count[bin] = sizes->count[2 * bin] + sizes->count[2 * bin + 1];
    memset(sizes->count + MTC_SIZES / 2, 0, sizeof sizes->count / 2);
    sizes->top *= 2;
}

/* Numbers that one thread looks at. */
typedef struct SizesPart {
    const float *values;
    int64_t count;
    uint32_t largest;   /* the bits of it */
    double bins_of_one; /* how many bins a size of 1 is wide */
    int64_t of_size[MTC_SIZES];
} SizesPart;

/* Without the sign, the bits of floats are integers in the order of the sizes; infinity and what is no number come last. */
enum { INFINITE_BITS = 0x7f800000 };

static uint32_t size_bits(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits & INT32_MAX;
}

static double size_of_bits(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return (double)value;
}

enum { MOST_PARTS = 64, LEAST_PART = 1 << 16 };

static int sizes_parts(const float *values, int64_t count, SizesPart **parts) {
    const int64_t wanted = count / LEAST_PART + 1;
    const int number = wanted < MOST_PARTS ? (int)wanted : MOST_PARTS;
    *parts = (SizesPart *)mtc_zeroed((size_t)number * sizeof **parts);
    for (int k = 0; k < number; k++) {
        const int64_t begin = count * k / number;
        (*parts)[k].values = values + begin;
        (*parts)[k].count = count * (k + 1) / number - begin;
    }
    return number;
}

static void find_largest(void *context, int64_t task) {
    SizesPart *part = (SizesPart *)context + task;
    for (int64_t i = 0; i < part->count; i++) {
        const uint32_t bits = size_bits(part->values[i]);
        part->largest = bits > part->largest ? bits : part->largest;
    }
}

static void count_sizes(void *context, int64_t task) {
    SizesPart *part = (SizesPart *)context + task;
    for (int64_t i = 0; i < part->count; i++) {
        const int bin = (int)(fabs((double)part->values[i]) * part->bins_of_one);
        part->of_size[bin < MTC_SIZES ? bin : MTC_SIZES - 1]++;
    }
}

static void add_sizes_parts(MtcSizes *sizes, SizesPart *parts, int number, double largest) {
    sizes->largest = fmax(sizes->largest, largest);
    if (sizes->top == 0)
        sizes->top = largest;
    while (largest > sizes->top)
        join_pairs(sizes);
    for (int k = 0; k < number; k++)
        parts[k].bins_of_one =
            sizes->top > 0 ? MTC_SIZES / sizes->top : 0; /* of zeros alone: all are in the first bin */
    mtc_parallel(number, count_sizes, parts);
    for (int k = 0; k < number; k++)
        for (int bin = 0; bin < MTC_SIZES; bin++)
            sizes->count[bin] += parts[k].of_size[bin];
}

static int64_t first_not_finite(const float *values) {
    int64_t i = 0;
    while (size_bits(values[i]) < INFINITE_BITS)
        i++;
    return i;
}

int64_t mtc_add_sizes(MtcSizes *sizes, const float *values, int64_t count) {
    SizesPart *parts;
    uint32_t largest = 0;
    const int number = sizes_parts(values, count, &parts);
    mtc_parallel(number, find_largest, parts);
    for (int k = 0; k < number; k++)
        largest = parts[k].largest > largest ? parts[k].largest : largest;
    const bool finite = largest < INFINITE_BITS;
    if (finite)
        add_sizes_parts(sizes, parts, number, size_of_bits(largest));
    free(parts);
    return finite ? -1 : first_not_finite(values);
}

/* As if all numbers of a bin were its middle. */
static double error_of_sizes(const MtcSizes *sizes, double scale) {
    double sum = 0;
    for (int bin = 0; bin < MTC_SIZES; bin++) {
        const double size = (bin + 0.5) * sizes->top / MTC_SIZES,
                     off = size - scale * fmin(rint(size / scale), I8_LARGEST);
        sum += (double)sizes->count[bin] * off * off;
    }
    return sum;
}

float mtc_scale_of_sizes(const MtcSizes *sizes) {
    enum { CANDIDATES = 256 };
    double best = sizes->largest / I8_LARGEST, least = INFINITY;
    for (int i = CANDIDATES; i > 0 && sizes->largest > 0; i--) {
        const double scale = sizes->largest * i / (CANDIDATES * I8_LARGEST), error = error_of_sizes(sizes, scale);
        if (error < least) {
            least = error;
            best = scale;
        }
    }
    return (float)best > 0 ? (float)best : 1;
}
