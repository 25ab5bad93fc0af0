/* By NVIDIA's white papers of each architecture and the data sheets of cards: what those give for a whole card, divided by its
 * multiprocessors and the clock that they name for it. */
#include "commands/rates.h"

#include <string.h>

typedef struct Architecture {
    int major, minor;
    double fp32, tf32, bf16, fp16, fp8, int8;
} Architecture;

static const Architecture architectures[] = {
    {7, 0, 128, 0, 0, 1024, 0, 0},                /* V100 */
    {7, 5, 128, 0, 0, 1024, 0, 2048},             /* T4, RTX 20: their tensor cores have no other types */
    {8, 0, 128, 1024, 2048, 2048, 0, 4096},       /* A100 */
    {8, 6, 256, 512, 1024, 1024, 0, 2048},        /* A10, A40, RTX A6000, RTX 30 */
    {8, 7, 256, 0, 0, 0, 0, 0},                   /* Orin */
    {8, 9, 256, 512, 1024, 1024, 2048, 2048},     /* L4, L40S, RTX 6000 Ada, RTX 40 */
    {9, 0, 256, 2048, 4096, 4096, 8192, 8192},    /* H100, H200 */
    {10, 0, 256, 4096, 8192, 8192, 16384, 16384}, /* B200 */
    {10, 3, 256, 0, 0, 0, 0, 0},                  /* B300 */
    {12, 0, 256, 512, 1024, 1024, 2048, 2048},    /* RTX PRO 6000, RTX 50 */
    {12, 1, 256, 0, 0, 0, 0, 0},                  /* GB10 */
};

/* Cards that are sold with a part of what their tensor cores could do. */
typedef struct Limited {
    const char *name; /* or what it begins with, up to a space */
    double part;      /* 0: the data sheet's number is no plain part of the others' */
} Limited;

static const Limited limited[] = {
    {"NVIDIA GeForce", 0.5}, {"NVIDIA A10G", 0.5}, {"NVIDIA L40", 0.5}, {"NVIDIA H20", 0}};

static double share_sold(const char *name) {
    for (size_t i = 0; i < sizeof limited / sizeof *limited; i++) {
        size_t length = strlen(limited[i].name);
        if (strncmp(name, limited[i].name, length) == 0 && (name[length] == '\0' || name[length] == ' '))
            return limited[i].part;
    }
    return 1;
}

/* Of tf32x3, products of three such of their parts. */
static double operations_of(const Architecture *architecture, MtcMath math) {
    switch (math) {
    case MTC_MATH_TF32: return architecture->tf32;
    case MTC_MATH_TF32X3: return architecture->tf32 / 3;
    case MTC_MATH_BF16: return architecture->bf16;
    case MTC_MATH_FP16: return architecture->fp16;
    case MTC_MATH_FP8: return architecture->fp8;
    case MTC_MATH_INT8: return architecture->int8;
    default: return architecture->fp32;
    }
}

double mtc_operations_per_cycle(int major, int minor, const char *name, MtcMath math) {
    for (size_t i = 0; i < sizeof architectures / sizeof *architectures; i++)
        if (architectures[i].major == major && architectures[i].minor == minor)
            return operations_of(&architectures[i], math) * (math == MTC_MATH_FP32 ? 1 : share_sold(name));
    return 0;
}

const char *mtc_math_name(MtcMath math) {
    static const char *const names[MTC_MATHS] = {"fp32", "tf32", "tf32x3", "bf16", "fp16", "fp8", "int8"};
    return names[math];
}
