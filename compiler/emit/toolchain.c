#include "emit/toolchain.h"

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

static const char *find_library(Diag *diag, const char *home) {
    Arena *arena = diag_arena(diag);
    const char *places[] = {path_in(arena, home, "libmtc_runtime.a"), path_in(arena, home, "build/libmtc_runtime.a")};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        if (file_exists(places[i]))
            return places[i];
    diag_error(diag, nowhere, "no libmtc_runtime.a in %s; 'make' builds it", home);
    return NULL;
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

static bool is_known(Arena *arena, const char *known, const char *name) {
    size_t digits = strspn(name + 3, "0123456789");
    const char *line = arena_printf(arena, "compute_%.*s\n", (int)digits, name + 3);
    return strstr(known, line) != NULL;
}

/* "sm_90", "sm_90a" */
static bool is_architecture(const char *name) {
    size_t digits = strncmp(name, "sm_", 3) == 0 ? strspn(name + 3, "0123456789") : 0;
    const char *rest = name + 3 + digits;
    return digits >= 2 && (!*rest || strcmp(rest, "a") == 0 || strcmp(rest, "f") == 0);
}

/* One of each generation that this toolkit still compiles for, and PTX of the last for those to come. */
static const char *portable_list(Arena *arena, const char *known) {
    static const char *const generations[] = {"sm_75", "sm_80", "sm_90a", "sm_100", "sm_120"};
    Text list = TEXT(arena);
    for (size_t i = 0; i < sizeof generations / sizeof *generations; i++)
        if (is_known(arena, known, generations[i]))
            text_printf(&list, "%s%s", list.length ? ";" : "", generations[i]);
    text_puts(&list, "+ptx");
    return text_string(&list);
}

static const char *listed_architectures(Diag *diag, const char *known, const char *wanted) {
    Arena *arena = diag_arena(diag);
    Text list = TEXT(arena);
    for (char *rest = arena_strdup(arena, wanted), *name; (name = strtok_r(rest, ",;", &rest));) {
        if (!is_architecture(name)) {
            diag_error(diag, nowhere, "--arch takes native or a list such as sm_80,sm_90, not '%s'", name);
            return NULL;
        }
        if (!is_known(arena, known, name)) {
            diag_error(diag, nowhere, "this nvcc cannot compile for %s; 'nvcc --list-gpu-arch' lists what it knows",
                       name);
            return NULL;
        }
        text_printf(&list, "%s%s", list.length ? ";" : "", name);
    }
    return text_string(&list);
}

static const char *choose_architectures(const Toolchain *tools, Diag *diag, const char *arch) {
    Arena *arena = diag_arena(diag);
    const char *known = known_architectures(tools, arena);
    if (arch && strcmp(arch, "native") != 0)
        return listed_architectures(diag, known, arch);
    const char *present = gpu_architectures(arena);
    if (present)
        return listed_architectures(diag, known, present);
    if (arch) {
        diag_error(diag, nowhere, "--arch native: this machine has no GPU that CUDA can use");
        return NULL;
    }
    diag_note(diag, nowhere,
              "no GPU here: the program is for GPUs of any generation; --target cpu makes one for the CPU");
    return portable_list(arena, known);
}

bool toolchain_find(Toolchain *tools, Diag *diag, bool cuda, const char *arch) {
    *tools = (Toolchain){.cuda = cuda, .architectures = ""};
    tools->home = toolchain_home(diag);
    tools->library = tools->home ? find_library(diag, tools->home) : NULL;
    if (!tools->library || !(cuda ? find_nvcc(tools, diag) : find_cc(tools, diag)))
        return false;
    if (cuda)
        tools->architectures = choose_architectures(tools, diag, arch);
    return tools->architectures != NULL;
}
