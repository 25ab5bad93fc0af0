/* Emission: one CUDA C++17 or C11 file that people read.
 *
 * Order: banner, sizes, tensors, kernels in the order of a step, phases, step, evaluation, measuring, tables,
 * main. */
#ifndef MTC_EMIT_H
#define MTC_EMIT_H

#include "plan/plan.h"

typedef struct EmitOptions {
    bool f64;                  /* C only: `real` is double, for gradient checks */
    bool stores_gradients;     /* steps add gradients to states and change no weight */
    bool shared;               /* a library: no main */
    bool predicts;             /* a library of the prediction alone: keep_prediction */
    const char *weights;       /* path of the file that it carries; NULL: none */
    const char *weights_hash;  /* of its content, hex */
    const char *architectures; /* CUDA: "sm_90" or "sm_75;sm_80+ptx"; C: "" */
    const char *model_hash;    /* hex */
    const char *command;       /* "mtc --recompute": with the flags that decide what is computed and how */
    int settings;
    const char *const *setting; /* "--recompute", "--set n=3": flags of mtc that make the same program again */
} EmitOptions;

typedef struct Emission {
    const char *text;
    size_t length;
    VEC(Span) lines; /* lines.at[k]: the place in the model that generated line k + 1 comes from; .source NULL: none */
} Emission;

/* How a language says things: where C and CUDA C++ differ. Everything else is the same text. */
typedef struct Dialect Dialect;
extern const Dialect dialect_cuda, dialect_c;

Emission *emit(const Module *module, const Plan *plan, const EmitOptions *options, const Dialect *dialect);

#endif
