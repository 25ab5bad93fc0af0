#include "emit/build/toolchain.h"

#include "support/file.h"
#include "support/process.h"

#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

static const Span nowhere = {0};

/* ---- where things are ---- */

static const char *own_folder(Arena *arena) {
    char path[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path);
    return length > 0 ? path_folder(arena, arena_strndup(arena, path, (size_t)length)) : ".";
}

static bool is_home(Arena *arena, const char *folder) {
    return file_exists(path_in(arena, folder, "runtime/mtc.h"));
}

const char *toolchain_home(Diag *diag) {
    Arena *arena = diag_arena(diag);
    const char *chosen = getenv("MTC_HOME");
    if (chosen && *chosen) {
        if (is_home(arena, chosen))
            return chosen;
        diag_error(diag, nowhere, "MTC_HOME is '%s', which holds no runtime/mtc.h", chosen);
        return NULL;
    }
    const char *own = own_folder(arena), *above = path_folder(arena, own);
    const char *places[] = {path_in(arena, above, "lib/mtc"), above, path_folder(arena, above)};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) /* installed, build/mtc, build/asan/mtc */
        if (is_home(arena, places[i]))
            return places[i];
    diag_error(diag, nowhere,
               "the runtime is not beside mtc, in %s; set MTC_HOME to the folder with runtime/ and kernels_lib/", own);
    return NULL;
}

/* A build of its own, as build/asan is, has mtc and its library in one folder; which $MTC_HOME does not ask for. */
static const char *find_library(Diag *diag, const char *home) {
    Arena *arena = diag_arena(diag);
    const char *chosen = getenv("MTC_HOME");
    const char *places[] = {path_in(arena, home, "libmtc_runtime.a"),
                            path_in(arena, chosen && *chosen ? home : own_folder(arena), "libmtc_runtime.a"),
                            path_in(arena, home, "build/libmtc_runtime.a")};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        if (file_exists(places[i]))
            return places[i];
    diag_error(diag, nowhere, "no libmtc_runtime.a in %s; 'make' builds it", home);
    return NULL;
}

/* Sanitizers are in the library or not, and a program that it is linked into has to be compiled alike. */
static bool find_flags(Toolchain *tools, Diag *diag) {
    Arena *arena = diag_arena(diag);
    const char *path = path_in(arena, path_folder(arena, tools->library), "libmtc_runtime.flags");
    size_t size;
    char *words = file_exists(path) ? file_read(arena, path, &size, NULL) : NULL;
    for (char *rest = words, *word; words && (word = strtok_r(rest, " \n", &rest));)
        VEC_PUSH(arena, &tools->flags, word);
    if (tools->cuda && tools->flags.count)
        diag_error(diag, nowhere, "%s is compiled with flags that nvcc does not take: --target cpu", tools->library);
    return !tools->cuda || !tools->flags.count;
}

const char *toolchain_nvcc(Arena *arena) {
    const char *found = process_find(arena, "nvcc"), *home = getenv("CUDA_HOME");
    return found ? found : process_find(arena, path_in(arena, home && *home ? home : "/usr/local/cuda", "bin/nvcc"));
}

static bool find_nvcc(Toolchain *tools, Diag *diag) {
    Arena *arena = diag_arena(diag);
    const char *nvcc = toolchain_nvcc(arena);
    if (!nvcc) {
        diag_error(diag, nowhere,
                   "no nvcc in PATH or $CUDA_HOME/bin (default: /usr/local/cuda/bin); --target cpu needs none");
        return false;
    }
    VEC_PUSH(arena, &tools->compiler, nvcc);
    return true;
}

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

/* ---- which GPUs ---- */

/* What `nvcc --list-gpu-arch` says: "compute_75\ncompute_80\n..." */
static const char *known_architectures(const Toolchain *tools, Arena *arena) {
    Text list = TEXT(arena);
    const char *command[] = {tools->compiler.at[0], "--list-gpu-arch", NULL};
    return process_run(command, &list) == 0 ? text_string(&list) : "";
}

/* "sm_90", "sm_90a" */
static bool is_architecture(const char *name) {
    size_t digits = strncmp(name, "sm_", 3) == 0 ? strspn(name + 3, "0123456789") : 0;
    const char *rest = name + 3 + digits;
    return digits >= 2 && (!*rest || strcmp(rest, "a") == 0 || strcmp(rest, "f") == 0);
}

/* One of each generation that this toolkit still compiles for and that has what the program needs, and PTX of the last for
 * those to come. */
static const char *portable_list(Diag *diag, const char *known, const Needs *needs) {
    static const char *const generations[] = {"sm_75", "sm_80", "sm_90a", "sm_100", "sm_120"};
    Arena *arena = diag_arena(diag);
    Text list = TEXT(arena);
    for (size_t i = 0; i < sizeof generations / sizeof *generations; i++) {
        const char *lacks = architecture_lacks(arena, architecture_find(generations[i]), needs);
        if (!architecture_is_known(arena, known, generations[i]))
            continue;
        if (lacks)
            diag_note(diag, nowhere, "%s is left out: it %s", generations[i], lacks);
        else
            text_printf(&list, "%s%s", list.length ? ";" : "", generations[i]);
    }
    text_puts(&list, "+ptx");
    return text_string(&list);
}

/* False after an error: nobody has heard of it, or it has not what the program needs. */
static bool may_have(Diag *diag, const char *known, const char *name, const Needs *needs) {
    Arena *arena = diag_arena(diag);
    const char *offered = architectures_for(arena, needs, known);
    if (!is_architecture(name)) {
        diag_error(diag, nowhere, "--arch takes native or a list of %s, not '%s'", offered, name);
        return false;
    }
    const Architecture *architecture = architecture_find(name);
    bool compiles = architecture_is_known(arena, known, name);
    if (!compiles || !architecture) {
        diag_error(diag, nowhere, "%s cannot compile for %s; it can for %s", compiles ? "mtc" : "this nvcc", name,
                   offered);
        return false;
    }
    const char *lacks = architecture_lacks(arena, architecture, needs);
    if (lacks) {
        diag_error(diag, nowhere, "sm_%d (%s) %s; --arch can be %s%s", architecture->number, architecture->cards, lacks,
                   offered, needs->multiplies ? ", and --precision fp32 needs none" : "");
        return false;
    }
    return true;
}

static const char *listed_architectures(Diag *diag, const char *known, const char *wanted, const Needs *needs) {
    Arena *arena = diag_arena(diag);
    Text list = TEXT(arena);
    for (char *rest = arena_strdup(arena, wanted), *name; (name = strtok_r(rest, ",;", &rest));) {
        if (!may_have(diag, known, name, needs))
            return NULL;
        text_printf(&list, "%s%s", list.length ? ";" : "", name);
    }
    return text_string(&list);
}

static const char *choose_architectures(const Toolchain *tools, Diag *diag, const char *arch, const Needs *needs) {
    Arena *arena = diag_arena(diag);
    const char *known = known_architectures(tools, arena);
    if (arch && strcmp(arch, "native") != 0)
        return listed_architectures(diag, known, arch, needs);
    const char *present = gpu_architectures(arena);
    if (present)
        return listed_architectures(diag, known, present, needs);
    if (arch) {
        diag_error(diag, nowhere, "--arch native: this machine has no GPU that CUDA can use");
        return NULL;
    }
    diag_note(diag, nowhere,
              "no GPU here: the program is for GPUs of any generation; --target cpu makes one for the CPU");
    return portable_list(diag, known, needs);
}

bool toolchain_find(Toolchain *tools, Diag *diag, bool cuda, const char *arch, const Needs *needs) {
    *tools = (Toolchain){.cuda = cuda, .architectures = ""};
    tools->home = toolchain_home(diag);
    tools->library = tools->home ? find_library(diag, tools->home) : NULL;
    if (!tools->library || !find_flags(tools, diag) || !(cuda ? find_nvcc(tools, diag) : find_cc(tools, diag)))
        return false;
    if (cuda)
        tools->architectures = choose_architectures(tools, diag, arch, needs);
    return tools->architectures != NULL;
}
