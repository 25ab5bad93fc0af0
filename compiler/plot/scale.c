#include "plot/scale.h"

#include <math.h>

double scale_at(const Scale *scale, double value) {
    double part = scale->logarithmic ? log10(value / scale->low) / log10(scale->high / scale->low)
                                     : (value - scale->low) / (scale->high - scale->low);
    return scale->from + part * (scale->to - scale->from);
}

/* The least of 1, 2 and 5 times a power of ten that is at least `least`. */
static double round_step(double least) {
    double power = pow(10, floor(log10(least)));
    for (int i = 0; i < 3; i++) {
        static const double factor[] = {1, 2, 5};
        if (factor[i] * power >= least * (1 - 1e-9))
            return factor[i] * power;
    }
    return 10 * power;
}

static double step_of(const Scale *scale, int wanted) {
    return round_step((scale->high - scale->low) / wanted);
}

/* ---- linear ---- */

/* "0.25", with as many decimals as the step needs; "20k" for steps of thousands. */
static const char *linear_label(Arena *arena, double value, double step) {
    int decimals = step < 1 ? (int)ceil(-log10(step) - 1e-9) : 0;
    if (value == 0)
        return "0";
    if (decimals > 6 || fabs(value) >= 1e9)
        return arena_printf(arena, "%.6g", value);
    if (step >= 1e6)
        return arena_printf(arena, "%gM", value / 1e6);
    return step >= 1e3 ? arena_printf(arena, "%gk", value / 1e3) : arena_printf(arena, "%.*f", decimals, value);
}

static void linear_ticks(Arena *arena, const Scale *scale, int wanted, Ticks *ticks) {
    double step = step_of(scale, wanted), first = ceil(scale->low / step - 1e-9);
    int count = 1 + (int)(floor(scale->high / step + 1e-9) - first);
    for (int i = 0; i < count; i++) {
        double value = (first + i) * step;
        Tick tick = {value, linear_label(arena, value, step)};
        VEC_PUSH(arena, ticks, tick);
    }
}

/* ---- logarithmic ---- */

/* Powers of ten, every second or third of them where they are many; twice and five times them where they are few. */
static void logarithmic_ticks(Arena *arena, const Scale *scale, int wanted, Ticks *ticks) {
    static const double factor[] = {1, 2, 5};
    double decades = log10(scale->high / scale->low);
    int every = (int)ceil(decades / wanted), factors = decades * 3 <= wanted + 2 ? 3 : 1;
    int first = (int)floor(log10(scale->low) + 1e-9), last = (int)floor(log10(scale->high) + 1e-9);
    for (int power = every * (int)ceil((double)first / every); power <= last; power += every)
        for (int i = 0; i < factors; i++) {
            double value = factor[i] * pow(10, power);
            Tick tick = {value, arena_printf(arena, "%g", value)};
            if (value >= scale->low * (1 - 1e-9) && value <= scale->high * (1 + 1e-9))
                VEC_PUSH(arena, ticks, tick);
        }
}

Ticks scale_ticks(Arena *arena, const Scale *scale, int wanted) {
    Ticks ticks = {0};
    if (scale->logarithmic)
        logarithmic_ticks(arena, scale, wanted, &ticks);
    else
        linear_ticks(arena, scale, wanted, &ticks);
    return ticks;
}

void scale_round(Scale *scale, int wanted) {
    if (scale->logarithmic) {
        scale->high = round_step(scale->high);
        scale->low = 1 / round_step(1 / scale->low);
        return;
    }
    double half = fabs(scale->low) > 0 ? 0.1 * fabs(scale->low) : 0.5;
    if (scale->high - scale->low < 1e-9 * fabs(scale->high) || scale->high == scale->low) {
        scale->low -= half;
        scale->high += half;
    }
    double step = step_of(scale, wanted);
    scale->low = step * floor(scale->low / step + 1e-9);
    scale->high = step * ceil(scale->high / step - 1e-9);
}
