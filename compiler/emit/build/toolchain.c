#include "emit/build/toolchain.h"

#include "support/file.h"
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
    bool taken = tools->target->compiler->takes_flags || !tools->flags.count;
    if (!taken)
        diag_error(diag, nowhere, "%s is compiled with flags that nvcc does not take: --target cpu", tools->library);
    return taken;
}

bool toolchain_find(Toolchain *tools, Diag *diag, const Target *target, const char *list, const Programs *programs) {
    const Compiler *compiler = target->compiler;
    *tools = (Toolchain){.target = target, .architectures = ""};
    tools->home = toolchain_home(diag);
    tools->library = tools->home ? find_library(diag, tools->home) : NULL;
    if (!tools->library || !find_flags(tools, diag) || !compiler->find(tools, diag))
        return false;
    if (compiler->architectures)
        tools->architectures = compiler->architectures(tools, diag, list, programs);
    return tools->architectures != NULL;
}

void command_add(Command *command, const char *word) {
    VEC_PUSH(command->arena, &command->words, word);
}
