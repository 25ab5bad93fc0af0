/* The mathematics of generated expressions: exp, fmax, ... of a `real`, under the names that CUDA C++ has.
 *
 * exp, log and tanh of a float are polynomials without branches, so that the loops around them become vector code;
 * their error stays below 3 units in the last place. Everything else, and all of double, is the C library's. They are always a
 * part of the expression that calls them: a call would keep a loop from being vector code. */
#ifndef MTC_CPU_MATH_H
#define MTC_CPU_MATH_H

#include <math.h>

#include "narrow.h"
#include "random.h"

static inline float float_bits(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* exp(x) = 2^n exp(r) with n the integer nearest to x / log 2. Adding 1.5 * 2^23 rounds to an integer. 2^n is
 * applied in two halves, so that results near 0 and near infinity come out right. */
__attribute__((always_inline)) static inline float float_exp(float x) {
    float clamped = x > 89 ? 89 : x < -104 ? -104 : x;
    float shifted = fmaf(clamped, 1.44269504f, 0x1.8p23f), n = shifted - 0x1.8p23f;
    float r = fmaf(n, -1.42860677e-6f, fmaf(n, -0.693145752f, clamped)), p = 0.00139269266f;
    p = fmaf(p, r, 0.00836377387f);
    p = fmaf(p, r, 0.0416665501f);
    p = fmaf(p, r, 0.166665734f);
    p = fmaf(p, r, 0.5f);
    p = fmaf(p * r, r, r) + 1;
    int exponent = (int)n, half = exponent >> 1;
    return p * float_bits((uint32_t)(half + 127) << 23) * float_bits((uint32_t)(exponent - half + 127) << 23);
}

__attribute__((always_inline)) static inline float float_log(float x) {
    float scaled = x < 0x1p-126f ? x * 0x1p24f : x;
    float value = mtc_log(scaled) - (x < 0x1p-126f ? 16.6355323f : 0);
    value = x > 0 ? value : x < 0 ? NAN : x == 0 ? -INFINITY : x;
    return x < INFINITY ? value : x;
}

/* An odd polynomial near 0, 1 - 2 / (exp(2|x|) + 1) elsewhere. */
__attribute__((always_inline)) static inline float float_tanh(float x) {
    float a = fabsf(x), z = x * x, p = 0.00229274482f;
    p = fmaf(p, z, -0.00834394552f);
    p = fmaf(p, z, 0.0217689187f);
    p = fmaf(p, z, -0.0539592596f);
    p = fmaf(p, z, 0.133333036f);
    p = fmaf(p, z, -0.333333332f);
    p = fmaf(p * z, x, x);
    float far = copysignf(1 - 2 / (float_exp(2 * a) + 1), x);
    return a < 0.625f ? p : far;
}

/* As in C, the other operand when one is not a number. Without a branch, for vector code. */
static inline float float_max(float a, float b) {
    return ((a <= b) | (a != a)) ? b : a;
}

static inline float float_min(float a, float b) {
    return ((a >= b) | (a != a)) ? b : a;
}

static inline double double_max(double a, double b) {
    return ((a <= b) | (a != a)) ? b : a;
}

static inline double double_min(double a, double b) {
    return ((a >= b) | (a != a)) ? b : a;
}

#define exp(x) _Generic((x), float : float_exp, default : exp)(x)
#define log(x) _Generic((x), float : float_log, default : log)(x)
#define tanh(x) _Generic((x), float : float_tanh, default : tanh)(x)
#define fmax(x, y) _Generic((x) + (y), float : float_max, default : double_max)(x, y)
#define fmin(x, y) _Generic((x) + (y), float : float_min, default : double_min)(x, y)

#define erf(x) _Generic((x), float : erff, default : erf)(x)
#define expm1(x) _Generic((x), float : expm1f, default : expm1)(x)
#define log1p(x) _Generic((x), float : log1pf, default : log1p)(x)
#define sqrt(x) _Generic((x), float : sqrtf, default : sqrt)(x)
#define fabs(x) _Generic((x), float : fabsf, default : fabs)(x)
#define floor(x) _Generic((x), float : floorf, default : floor)(x)
#define rint(x) _Generic((x), float : rintf, default : rint)(x)
#define sin(x) _Generic((x), float : sinf, default : sin)(x)
#define cos(x) _Generic((x), float : cosf, default : cos)(x)
#define pow(x, y) _Generic((x) + (y), float : powf, default : pow)(x, y)

/* A stored condition. GCC 12 makes no vector code of loads of type bool. */
#define truth(x) (*(const unsigned char *)&(x))

/* The whole number from 0 to size - 1 that is nearest to x. */
static inline int clamped(int x, int size) {
    return x < 0 ? 0 : x < size ? x : size - 1;
}

static inline real sign(real x) {
    return (real)((x > 0) - (x < 0));
}

/* Not a number stays not a number, so that a fault in a layer reaches the loss. Without a choice: where a condition of the result is
 * stored too, gcc asks for it in both branches, and makes no vector code of them. */
static inline float float_relu(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return float_bits(bits & -(uint32_t) !(x < 0));
}

static inline double double_relu(double x) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    bits &= -(uint64_t) !(x < 0);
    memcpy(&x, &bits, sizeof x);
    return x;
}

#define relu(x) _Generic((x), float : float_relu, default : double_relu)(x)

__attribute__((always_inline)) static inline real sigmoid(real x) {
    return 1 / (1 + exp(-x));
}

__attribute__((always_inline)) static inline real softplus(real x) {
    return relu(x) + log1p(exp(-fabs(x)));
}

#endif
