/* Numbers as integers q of 8 bits and a scale: x is about q * scale, q from -127 to 127.
 *
 * The scale is the one of least squared error: between a small one, which the largest numbers are beyond and are cut off at 127 of, and a
 * large one, whose steps are wide for all others. A few numbers far out (outliers) do not decide it, as they do where the largest
 * is 127. */
#ifndef MTC_SCALES_H
#define MTC_SCALES_H

#include <stdint.h>

/* `outputs` rows of `terms` finite numbers; a row of zeros has the scale 1. */
void mtc_quantize_rows(const float *values, int64_t outputs, int64_t terms, signed char *integers, float *scale);

/* How many numbers there were of each size: 0 to top, in MTC_SIZES equal bins. When a larger one comes, bins are joined in pairs. */
enum { MTC_SIZES = 4096 };
typedef struct MtcSizes {
    double top, largest; /* 0: none but zeros so far */
    int64_t count[MTC_SIZES];
} MtcSizes;

/* The index of the first number that is none, or infinite; -1: there is none, and all were counted. */
int64_t mtc_add_sizes(MtcSizes *sizes, const float *values, int64_t count);
float mtc_scale_of_sizes(const MtcSizes *sizes); /* 1: all were zeros */

#endif
