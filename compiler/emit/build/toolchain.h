/* What turns a generated source into a program: nvcc or cc, for which GPUs, and the runtime and kernels it needs. */
#ifndef MTC_TOOLCHAIN_H
#define MTC_TOOLCHAIN_H

#include "emit/build/target.h"
#include "support/diag.h"

/* Which machines a program is for. */
typedef struct Aim {
    const char *architectures; /* "sm_80,sm_90a"; NULL: all that are common, or there is nothing to choose */
    const Machine *machine;    /* the one that it is planned for; NULL after an error */
} Aim;

typedef struct Toolchain {
    const Target *target;
    VEC(const char *) compiler; /* its path, and what $CC adds to it */
    const char *home;           /* folder with runtime/ and kernels_lib/ */
    const char *library;        /* libmtc_runtime.a */
    VEC(const char *)
    flags;                     /* what programs that it is linked into are compiled with too: the words of
                                   libmtc_runtime.flags beside it, if there is one */
    const char *architectures; /* MtcModel.architectures: "sm_90", "sm_80;sm_90+ptx"; cpu: "" */
} Toolchain;

/* What is to be made. */
typedef struct Build {
    const char *name;   /* of the generated source, without ending: "mnist" */
    const char *output; /* the program: output_allowed */
    const char *keep;   /* folder for the generated source */
    const char *place;  /* the folder of the model, absolute, where its path was; NULL: it counts from where the program
                           is started */
    const unsigned char
        *network; /* that the program exports, a file of ONNX without the weights' numbers; NULL: none */
    size_t network_size;
    const char *no_network; /* why there is none */
    int jobs;               /* 0: one per processor */
    bool shared, standalone, cached, verbose;
    bool predicts; /* a shared library of the prediction alone */
} Build;

typedef struct Command {
    Arena *arena;
    VEC(const char *) words;
} Command;
void command_add(Command *command, const char *word);

/* A compiler of generated sources, and how it is asked. */
struct Compiler {
    /* Sets tools->compiler; false after an error. */
    bool (*find)(Toolchain *tools, Diag *diag);
    /* Why its programs could not be made and run here, as a note says it; NULL: they can. */
    const char *(*lacks)(Arena *arena);
    /* `arch`: the value of --arch, or NULL; `runs`: the program is made to be run here, where nothing else is said. */
    Aim (*aim)(Diag *diag, const char *arch, bool runs);
    /* The machines have what the fused programs need; false after an error. No such function: all have. */
    bool (*suffices)(Diag *diag, const Aim *aim, const Programs *programs);
    /* Those to compile for; `list`: of the aim. NULL after an error. No such function: there is nothing to choose. */
    const char *(*architectures)(const Toolchain *tools, Diag *diag, const char *list, const Programs *programs);
    void (*add_flags)(const Toolchain *tools, const Build *build, Command *command);
    const char *to_linker;  /* before a word for the linker */
    const char *special;    /* characters that no path may have, for a shell reads it; NULL: none does */
    const char *first_line; /* of a source that stands alone; NULL: none */
    bool takes_flags;       /* those that the runtime's library is compiled with */
    bool this_processor;    /* compiles for the very processor */
};

/* Runtime and kernels: in $MTC_HOME, else beside the running mtc (build tree or installed). NULL after an error. */
const char *toolchain_home(Diag *diag);

/* Fills `tools` for the target and the architectures of its aim. False after an error. */
bool toolchain_find(Toolchain *tools, Diag *diag, const Target *target, const char *list, const Programs *programs);

/* The architectures of the GPUs of this machine, "sm_90", each once; NULL when there is no GPU, or no driver, or
 * $CUDA_VISIBLE_DEVICES hides them all. */
const char *gpu_architectures(Arena *arena);

#endif
