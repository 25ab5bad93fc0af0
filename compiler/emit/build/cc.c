/* The C compiler: $CC, else cc. */
#include "emit/build/toolchain.h"

#include "support/process.h"

#include <stdlib.h>

static const Span nowhere = {0};

/* $CC may carry arguments: "ccache gcc". */
static bool find_cc(Toolchain *tools, Diag *diag) {
    Arena *arena = diag_arena(diag);
    const char *wanted = getenv("CC");
    char *words = arena_strdup(arena, wanted && *wanted ? wanted : "cc");
    for (char *rest = words, *word; (word = strtok_r(rest, " ", &rest));)
        VEC_PUSH(arena, &tools->compiler, word);
    const char *path = tools->compiler.count ? process_find(arena, tools->compiler.at[0]) : NULL;
    if (!path) {
        diag_error(diag, nowhere, "no C compiler: '%s' is not in PATH; $CC can name another", words);
        return false;
    }
    tools->compiler.at[0] = path;
    return true;
}

/* It is asked for only when a program is compiled: a machine without it says so then. */
static const char *cc_lacks(Arena *arena) {
    (void)arena;
    return NULL;
}

/* Multiply-adds are fused only where the kernels say so: a compiler would choose anew wherever an expression is computed again, and
 * the gradient of max looks for the largest element among numbers that must be the same bits. Nothing that would reorder sums or
 * assume that there are no NaNs: the same program gives the same bits on every run, and a diverged training is noticed.
 *
 * Compilers of some distributions have copies compare sizes that only the program knows: where a kernel stores a vector to an array of
 * its own, that would be a call.
 *
 * Of AVX-512's vectors, compilers take half for what is no product; whole ones, where there are some, take 0.88 to 0.95 of a step's time of
 * convolutional networks on two cores of a Xeon. */
static void add_cc_flags(const Toolchain *tools, const Build *build, Command *command) {
    static const char *const flags[] = {"-std=c11",
                                        "-D_XOPEN_SOURCE=700",
                                        "-O3",
                                        "-march=native",
#ifdef __x86_64__
                                        "-mprefer-vector-width=512",
#endif
                                        "-fopenmp",
                                        "-ffp-contract=off",
                                        "-fno-math-errno",
                                        "-fno-trapping-math",
                                        "-U_FORTIFY_SOURCE"};
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        command_add(command, flags[i]);
    for (int i = 0; i < tools->flags.count; i++)
        command_add(command, tools->flags.at[i]);
    if (!tools->flags.count) /* which ask for what a report says of lines */
        command_add(command, "-s");
    if (build->shared) {
        command_add(command, "-shared");
        command_add(command, "-fPIC");
    }
}

static Aim aim_at_processor(Diag *diag, const char *arch, bool runs) {
    (void)diag, (void)arch, (void)runs; /* --arch is refused, and all processors are planned for alike */
    return (Aim){NULL, &machine_cpu};
}

const Compiler compiler_cc = {.find = find_cc,
                              .lacks = cc_lacks,
                              .aim = aim_at_processor,
                              .add_flags = add_cc_flags,
                              .to_linker = "-Wl,",
                              .takes_flags = true,
                              .this_processor = true};
