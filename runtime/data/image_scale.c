/* Scaling of images, along the rows and then along the columns.
 *
 * A pixel of the result covers `scale` pixels of the original along an axis. It takes from those around its centre, with
 * weights that fall to 0 at a distance of `scale`, or of 1 where the image grows:
 *
 *     weight(p) = 1 - |p + 0.5 - centre| / max(scale, 1)       centre = (o + 0.5) * scale */
#include "data/image.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The original's pixels [first, first + count) that a pixel of the result takes from, with weights whose sum is 1. */
typedef struct Taps {
    int64_t first, count;
    float *weight;
} Taps;

static void find_taps(int64_t size, int64_t out, int64_t o, Taps *taps) {
    const double scale = (double)size / (double)out, reach = scale > 1 ? scale : 1, centre = ((double)o + 0.5) * scale;
    const int64_t begin = (int64_t)fmax(0, floor(centre - reach)),
                  end = (int64_t)fmin((double)size, ceil(centre + reach));
    double sum = 0;
    taps->first = begin;
    taps->count = end - begin;
    for (int pass = 0; pass < 2; pass++)
        for (int64_t p = begin; p < end; p++) {
            double weight = fmax(0, 1 - fabs((double)p + 0.5 - centre) / reach);
            if (pass == 0)
                sum += weight;
            else
                taps->weight[p - begin] = (float)(weight / sum);
        }
}

/* For a row of each pixel of the result: out x channels numbers. */
static void scale_row(const uint8_t *row, int channels, int64_t out, const Taps *taps, float *result) {
    for (int64_t o = 0; o < out; o++)
        for (int c = 0; c < channels; c++) {
            float sum = 0;
            for (int64_t i = 0; i < taps[o].count; i++)
                sum += taps[o].weight[i] * row[(taps[o].first + i) * channels + c];
            result[o * channels + c] = sum;
        }
}

static void mix_rows(const float *scaled, int64_t length, const Taps *taps, uint8_t *row) {
    for (int64_t k = 0; k < length; k++) {
        float sum = 0;
        for (int64_t i = 0; i < taps->count; i++)
            sum += taps->weight[i] * scaled[(taps->first + i) * length + k];
        row[k] = (uint8_t)(sum + 0.5f);
    }
}

static Taps *all_taps(int64_t size, int64_t out, float **weights) {
    const int64_t most = 2 * (size / out + 2) + 2;
    Taps *taps = (Taps *)mtc_memory(NULL, (size_t)out * sizeof *taps);
    *weights = (float *)mtc_memory(NULL, (size_t)(out * most) * sizeof **weights);
    for (int64_t o = 0; o < out; o++) {
        taps[o].weight = *weights + o * most;
        find_taps(size, out, o, &taps[o]);
    }
    return taps;
}

void mtc_pixels_scale(const MtcPixels *pixels, int64_t width, int64_t height, uint8_t *rows) {
    const int64_t length = width * pixels->channels;
    float *across_weights, *down_weights;
    Taps *across = all_taps(pixels->width, width, &across_weights);
    Taps *down = all_taps(pixels->height, height, &down_weights);
    float *scaled = (float *)mtc_memory(NULL, (size_t)(pixels->height * length) * sizeof *scaled);
    for (int64_t y = 0; y < pixels->height; y++)
        scale_row(pixels->at + y * pixels->width * pixels->channels, pixels->channels, width, across,
                  scaled + y * length);
    for (int64_t y = 0; y < height; y++)
        mix_rows(scaled, length, &down[y], rows + y * length);
    free(scaled);
    free(across);
    free(down);
    free(across_weights);
    free(down_weights);
}
