#include "emit/driver.h"

#include "emit/cache.h"
#include "emit/explain.h"
#include "emit/standalone.h"
#include "support/file.h"
#include "support/process.h"
#include "support/sha256.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static const Span nowhere = {0};

typedef VEC(const char *) Command;

typedef struct Driver {
    Arena *arena;
    Diag *diag;
    const Toolchain *tools;
    const Build *build;
} Driver;

static void add(Driver *d, Command *command, const char *word) {
    VEC_PUSH(d->arena, command, word);
}

/* ---- the output ---- */

static bool cannot_write(Diag *diag, const char *path, const char *why) {
    diag_error(diag, nowhere, "cannot write '%s': %s", path, why);
    return false;
}

/* ---- the command ---- */

/* "sm_80;sm_90+ptx": machine code for each, and PTX of the last. */
static void add_architectures(Driver *d, Command *command) {
    char *list = arena_strdup(d->arena, d->tools->architectures), *plus = strchr(list, '+');
    if (plus)
        *plus = '\0';
    const char *last = "";
    for (char *rest = list, *name; (name = strtok_r(rest, ";", &rest)); last = name + 3)
        add(d, command, arena_printf(d->arena, "-gencode=arch=compute_%s,code=sm_%s", name + 3, name + 3));
    if (plus)
        add(d, command, arena_printf(d->arena, "-gencode=arch=compute_%s,code=compute_%s", last, last));
}

/* Quotients and roots within two units in the last place: the exact ones leave the fast path at zeros, and an optimizer
 * that meets as many as a gradient has, in each of its elements, took a third of a small step. Products and sums are fused
 * only where the kernels say so: nvcc would choose anew wherever a kernel is inlined, and schedules would differ in bits. */
static void add_nvcc_flags(Driver *d, Command *command) {
    const Build *build = d->build;
    add(d, command, "-std=c++17");
    add(d, command, "-O3");
    add(d, command, "-prec-div=false");
    add(d, command, "-prec-sqrt=false");
    add(d, command, "-fmad=false");
    add(d, command, "-Xfatbin=-compress-all");
    add(d, command, "-Xlinker=-s");
    add_architectures(d, command);
    add(d, command, arena_printf(d->arena, "--threads=%d", build->jobs));
    if (build->shared) {
        add(d, command, "-shared");
        add(d, command, "-Xcompiler=-fPIC");
    }
}

/* Contraction to fused multiply-adds is what a GPU does too. Nothing that would reorder sums or assume that there are no
 * NaNs: the same program gives the same bits on every run, and a diverged training is noticed. */
static void add_cc_flags(Driver *d, Command *command) {
    static const char *const flags[] = {
        "-std=c11",        "-D_XOPEN_SOURCE=700", "-O3", "-march=native", "-fopenmp", "-ffp-contract=fast",
        "-fno-math-errno", "-fno-trapping-math",  "-s"};
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        add(d, command, flags[i]);
    if (d->build->shared) {
        add(d, command, "-shared");
        add(d, command, "-fPIC");
    }
}

/* The runtime, unless the source has it. All of it goes into a library: its caller decides what is used. */
static void add_runtime(Driver *d, Command *command) {
    const Toolchain *tools = d->tools;
    const char *whole = arena_printf(d->arena, "%s--whole-archive,%s,--no-whole-archive",
                                     tools->cuda ? "-Xlinker=" : "-Wl,", tools->library);
    add(d, command, arena_printf(d->arena, "-I%s/runtime", tools->home));
    add(d, command, arena_printf(d->arena, "-I%s/kernels_lib", tools->home));
    add(d, command, arena_printf(d->arena, "%s/runtime/device_%s.c", tools->home, tools->cuda ? "cuda" : "cpu"));
    add(d, command, d->build->shared ? whole : tools->library);
}

static Command build_command(Driver *d, const char *source, const char *output) {
    Command command = {0};
    for (int i = 0; i < d->tools->compiler.count; i++)
        add(d, &command, d->tools->compiler.at[i]);
    if (d->tools->cuda)
        add_nvcc_flags(d, &command);
    else
        add_cc_flags(d, &command);
    add(d, &command, source);
    if (!d->build->standalone)
        add_runtime(d, &command);
    static const char *const libraries[] = {"-lm", "-ldl", "-lpthread", "-o"};
    for (size_t i = 0; i < sizeof libraries / sizeof *libraries; i++)
        add(d, &command, libraries[i]);
    add(d, &command, output);
    add(d, &command, NULL);
    return command;
}

/* ---- the cache's key ---- */

/* Another version of a compiler is another file; and the runtime's library may be older than its sources. */
static void hash_file(Sha256 *hash, const char *path) {
    struct stat status = {0};
    stat(path, &status);
    sha256_add(hash, &status.st_size, sizeof status.st_size);
    sha256_add(hash, &status.st_mtim.tv_sec, sizeof status.st_mtim.tv_sec);
}

/* -march=native compiles for this very processor. */
static void hash_processor(Sha256 *hash, Arena *arena) {
    static const char *const keys[] = {"model name", "flags", "Features"};
    size_t size;
    const char *text = file_read(arena, "/proc/cpuinfo", &size);
    for (size_t i = 0; text && i < sizeof keys / sizeof *keys; i++) {
        const char *line = strstr(text, keys[i]);
        if (line)
            sha256_add(hash, line, strcspn(line, "\n"));
    }
}

/* Everything that goes into the program: all sources, the command but for the names of files, compiler, processor. */
static const char *program_key(Driver *d, const Emission *whole) {
    Sha256 hash;
    sha256_begin(&hash);
    sha256_add(&hash, whole->text, whole->length);
    Command command = build_command(d, "", "");
    for (int i = 0; command.at[i]; i++)
        sha256_add_string(&hash, command.at[i]);
    hash_file(&hash, command.at[0]);
    if (!d->build->standalone)
        hash_file(&hash, d->tools->library);
    if (!d->tools->cuda)
        hash_processor(&hash, d->arena);
    return sha256_hex(&hash, d->arena);
}

/* ---- building ---- */

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static const char *keep_source(Driver *d, const Emission *source) {
    const char *name = arena_printf(d->arena, "%s.%s", d->build->name, d->tools->cuda ? "cu" : "c");
    const char *path = path_in(d->arena, d->build->keep, name);
    if (folder_make(d->arena, d->build->keep) && file_write(d->arena, path, source->text, source->length))
        return path;
    cannot_write(d->diag, path, strerror(errno));
    return NULL;
}

static int compile(Driver *d, const Emission *source, const char *path, const char *program) {
    Command command = build_command(d, path, program);
    const char *const *argv = command.at;
    Text log = TEXT(d->arena);
    double start = seconds();
    int status = process_run(argv, &log);
    if (d->build->verbose)
        fprintf(stderr, "mtc: %s\nmtc: %.2f s\n%s", process_text(d->arena, argv), seconds() - start, text_string(&log));
    const char *log_path = arena_printf(d->arena, "%s.log", path);
    unlink(log_path);
    if (status == 0)
        return EXIT_SUCCESS;
    bool kept = file_write(d->arena, log_path, text_string(&log), log.length);
    explain_failure(d->diag, path_base(argv[0]), path, source, text_string(&log), kept ? log_path : NULL);
    return EXIT_TOOL;
}

/* The compiler writes beside the generated source: what is left there when it is interrupted bothers nobody. */
static int compile_to(Driver *d, const Emission *source, const char *path, const char *key) {
    const char *unfinished = file_temporary(d->arena, path), *output = d->build->output;
    if (!unfinished) {
        cannot_write(d->diag, path, strerror(errno));
        return EXIT_CANT_CREATE;
    }
    int status = compile(d, source, path, unfinished);
    if (status == EXIT_SUCCESS && d->build->cached)
        cache_put(d->arena, key, unfinished);
    if (status == EXIT_SUCCESS && rename(unfinished, output) != 0 && !file_copy(d->arena, unfinished, output, true)) {
        cannot_write(d->diag, output, strerror(errno));
        status = EXIT_CANT_CREATE;
    }
    unlink(unfinished);
    return status;
}

int driver_build(Diag *diag, const Toolchain *tools, const Build *build, const Emission *emission) {
    Driver d = {diag_arena(diag), diag, tools, build};
    const Emission *whole = standalone(diag, tools->home, tools->cuda, emission);
    if (!whole)
        return EXIT_NO_INPUT;
    const Emission *source = build->standalone ? whole : emission;
    const char *path = keep_source(&d, source);
    if (!path)
        return EXIT_CANT_CREATE;
    const char *key = program_key(&d, whole);
    if (build->cached && cache_get(d.arena, key, build->output)) {
        if (build->verbose)
            fprintf(stderr, "mtc: compiled before: cache entry %.12s\n", key);
        return EXIT_SUCCESS;
    }
    return compile_to(&d, source, path, key);
}
