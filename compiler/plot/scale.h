/* From numbers to places on the paper, with ticks at round numbers. */
#ifndef MTC_SCALE_H
#define MTC_SCALE_H

#include "support/text.h"

#include <stdbool.h>

typedef struct Scale {
    double low, high; /* of the numbers; low < high */
    double from, to;  /* where these lie */
    bool logarithmic;
} Scale;

typedef struct Tick {
    double value;
    const char *label;
} Tick;
typedef VEC(Tick) Ticks;

double scale_at(const Scale *scale, double value);
/* The round numbers within the scale, some `wanted` of them. */
Ticks scale_ticks(Arena *arena, const Scale *scale, int wanted);
/* Moves both ends outward to round numbers; equal ends are moved apart. */
void scale_round(Scale *scale, int wanted);

#endif
