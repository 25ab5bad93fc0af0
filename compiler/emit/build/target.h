/* What programs can be made for: the rows of targets.def. */
#ifndef MTC_TARGET_H
#define MTC_TARGET_H

#include "emit/emit.h"

typedef struct Compiler Compiler; /* toolchain.h */

typedef struct Target {
    const char *name;       /* "cuda" */
    const char *ending;     /* of its sources: "cu" */
    bool gpu;               /* its programs run on a GPU: they have a schedule, and architectures to be compiled for */
    bool doubles;           /* `real` can be double */
    const Dialect *dialect; /* how its sources say things */
    const Compiler *compiler;
} Target;

enum {
#define TARGET(name, ...) TARGET_##name,
#include "emit/build/targets.def"
#undef TARGET
    TARGETS
};

extern const Target targets[TARGETS];
extern const Compiler compiler_nvcc, compiler_cc;

#endif
