/* What turns a generated source into a program: nvcc or cc, for which GPUs, and the runtime and kernels it needs. */
#ifndef MTC_TOOLCHAIN_H
#define MTC_TOOLCHAIN_H

#include "emit/build/architecture.h"
#include "support/diag.h"

typedef struct Toolchain {
    bool cuda;
    VEC(const char *) compiler; /* path of nvcc, or of cc with what $CC adds to it */
    const char *home;           /* folder with runtime/ and kernels_lib/ */
    const char *library;        /* libmtc_runtime.a */
    VEC(const char *)
    flags;                     /* what programs that it is linked into are compiled with too: the words of
                                   libmtc_runtime.flags beside it, if there is one */
    const char *architectures; /* MtcModel.architectures: "sm_90", "sm_80;sm_90+ptx"; cpu: "" */
} Toolchain;

/* Runtime and kernels: in $MTC_HOME, else beside the running mtc (build tree or installed). NULL after an error. */
const char *toolchain_home(Diag *diag);

/* nvcc of $PATH, else of $CUDA_HOME, which is /usr/local/cuda by default; NULL when there is none. */
const char *toolchain_nvcc(Arena *arena);

/* Fills `tools` for the target. `arch`: the value of --arch, or NULL. False after an error, such as an architecture that lacks
 * what the program needs. */
bool toolchain_find(Toolchain *tools, Diag *diag, bool cuda, const char *arch, const Needs *needs);

/* The architectures of the GPUs of this machine, "sm_90", each once; NULL when there is no GPU, or no driver, or
 * $CUDA_VISIBLE_DEVICES hides them all. */
const char *gpu_architectures(Arena *arena);

#endif
