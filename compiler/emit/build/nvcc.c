/* nvcc: for which GPUs it compiles, and how it is asked. */
#include "emit/build/architecture.h"
#include "emit/build/toolchain.h"

#include "support/file.h"
#include "support/process.h"

#include <stdlib.h>

static const Span nowhere = {0};

/* ---- where it is ---- */

/* Of $PATH, else of $CUDA_HOME, which is /usr/local/cuda by default; NULL when there is none. */
static const char *path_of_nvcc(Arena *arena) {
    const char *found = process_find(arena, "nvcc"), *home = getenv("CUDA_HOME");
    return found ? found : process_find(arena, path_in(arena, home && *home ? home : "/usr/local/cuda", "bin/nvcc"));
}

static bool find_nvcc(Toolchain *tools, Diag *diag) {
    Arena *arena = diag_arena(diag);
    const char *nvcc = path_of_nvcc(arena);
    if (!nvcc) {
        diag_error(diag, nowhere,
                   "no nvcc in PATH or $CUDA_HOME/bin (default: /usr/local/cuda/bin); --target cpu needs none");
        return false;
    }
    VEC_PUSH(arena, &tools->compiler, nvcc);
    return true;
}

static const char *nvcc_lacks(Arena *arena) {
    if (!path_of_nvcc(arena))
        return "no nvcc in PATH or $CUDA_HOME/bin (default: /usr/local/cuda/bin): the program is for the CPU";
    return gpu_architectures(arena)
               ? NULL
               : "no GPU here: the program is for the CPU; --target cuda makes one for GPUs elsewhere";
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
        const char *lacks = gpu_lacks(arena, machine_of(generations[i]), needs);
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

/* ---- which it is planned for ---- */

/* False after an error: nobody has heard of it. */
static bool is_known(Diag *diag, const char *name) {
    Arena *arena = diag_arena(diag);
    const Needs none = {0};
    const char *offered = architectures_for(arena, &none, NULL);
    if (!is_architecture(name))
        diag_error(diag, nowhere, "--arch takes native or a list of %s, not '%s'", offered, name);
    else if (!machine_of(name))
        diag_error(diag, nowhere, "mtc cannot compile for %s; it can for %s", name, offered);
    return diag_errors(diag) == 0;
}

/* Of several GPUs, the one with the fastest memory: a plan for it fits itself to the others when it runs, while one for the
 * smallest would leave most of it idle. NULL after an error. */
static const Machine *most_of(Diag *diag, const char *list) {
    const Machine *most = NULL;
    for (char *rest = arena_strdup(diag_arena(diag), list), *name; (name = strtok_r(rest, ",;", &rest));) {
        if (!is_known(diag, name))
            return NULL;
        const Machine *gpu = machine_of(name);
        most = most && most->bandwidth >= gpu->bandwidth ? most : gpu;
    }
    if (!most)
        diag_error(diag, nowhere, "--arch names no GPU");
    return most;
}

static Aim aim_at_gpus(Diag *diag, const char *arch, bool runs) {
    bool native = arch && strcmp(arch, "native") == 0;
    const char *present = native || (!arch && runs) ? gpu_architectures(diag_arena(diag)) : NULL;
    const char *list = native || !arch ? present : arch;
    if (native && !present) {
        diag_error(diag, nowhere, "--arch native: this machine has no GPU that CUDA can use");
        return (Aim){0};
    }
    return (Aim){list, list ? most_of(diag, list) : machine_default()};
}

/* ---- what it needs of them ---- */

static bool suffices(Diag *diag, const char *name, const Needs *needs) {
    Arena *arena = diag_arena(diag);
    const Machine *gpu = machine_of(name);
    const char *lacks = gpu_lacks(arena, gpu, needs);
    if (lacks)
        diag_error(diag, nowhere, "sm_%d (%s) %s; --arch can be %s%s", gpu->number, gpu->cards, lacks,
                   architectures_for(arena, needs, NULL),
                   needs->multiplies
                       ? arena_printf(arena, ", and --precision %s needs none", precision_instead(gpu, needs))
                       : "");
    return !lacks;
}

static bool gpus_suffice(Diag *diag, const Aim *aim, const Programs *programs) {
    const Needs needs = programs_needs(programs);
    char *rest = arena_strdup(diag_arena(diag), aim->architectures ? aim->architectures : "");
    for (char *name; (name = strtok_r(rest, ",;", &rest));)
        if (!suffices(diag, name, &needs))
            return false;
    return true;
}

/* ---- what it is compiled for ---- */

/* All GPUs of sm_90 have the instructions that nvcc uses where it is told sm_90a, and no other GPU runs code of either: without them,
 * products of GPT-2 take twice the time. */
static const char *with_all_instructions(const char *name) {
    return strcmp(name, "sm_90") == 0 ? "sm_90a" : name;
}

static const char *listed_architectures(Diag *diag, const char *known, const char *wanted, const Needs *needs) {
    Arena *arena = diag_arena(diag);
    Text list = TEXT(arena);
    for (char *rest = arena_strdup(arena, wanted), *name; (name = strtok_r(rest, ",;", &rest));) {
        if (!architecture_is_known(arena, known, name)) {
            diag_error(diag, nowhere, "this nvcc cannot compile for %s; it can for %s", name,
                       architectures_for(arena, needs, known));
            return NULL;
        }
        text_printf(&list, "%s%s", list.length ? ";" : "", with_all_instructions(name));
    }
    return text_string(&list);
}

static const char *choose_architectures(const Toolchain *tools, Diag *diag, const char *list,
                                        const Programs *programs) {
    const char *known = known_architectures(tools, diag_arena(diag));
    const Needs needs = programs_needs(programs);
    if (list)
        return listed_architectures(diag, known, list, &needs);
    diag_note(diag, nowhere,
              "no GPU here: the program is for GPUs of any generation; --target cpu makes one for the CPU");
    return portable_list(diag, known, &needs);
}

/* ---- how it is asked ---- */

/* "sm_80;sm_90+ptx": machine code for each, and PTX of the last. */
static void add_architectures(const Toolchain *tools, Command *command) {
    char *list = arena_strdup(command->arena, tools->architectures), *plus = strchr(list, '+');
    if (plus)
        *plus = '\0';
    const char *last = "";
    for (char *rest = list, *name; (name = strtok_r(rest, ";", &rest)); last = name + 3)
        command_add(command, arena_printf(command->arena, "-gencode=arch=compute_%s,code=sm_%s", name + 3, name + 3));
    if (plus)
        command_add(command, arena_printf(command->arena, "-gencode=arch=compute_%s,code=compute_%s", last, last));
}

/* Quotients and roots within two units in the last place: the exact ones leave the fast path at zeros, and an optimizer
 * that meets as many as a gradient has, in each of its elements, took a third of a small step. Products and sums are fused
 * only where the kernels say so: nvcc would choose anew wherever a kernel is inlined, and schedules would differ in bits.
 * A library offers what mtc.h says alone: nvcc gives the unnamed namespace of a program's types a name, and templates of these would be
 * offered to other libraries. */
static void add_nvcc_flags(const Toolchain *tools, const Build *build, Command *command) {
    command_add(command, "-std=c++17");
    command_add(command, "-O3");
    command_add(command, "-prec-div=false");
    command_add(command, "-prec-sqrt=false");
    command_add(command, "-fmad=false");
    command_add(command, "-Xfatbin=-compress-all");
    command_add(command, "-Xlinker=-s");
    add_architectures(tools, command);
    command_add(command, arena_printf(command->arena, "--threads=%d", build->jobs));
    if (build->shared) {
        command_add(command, "-shared");
        command_add(command, "-Xcompiler=-fPIC");
        command_add(command, "-Xcompiler=-fvisibility=hidden");
    }
}

const Compiler compiler_nvcc = {.find = find_nvcc,
                                .lacks = nvcc_lacks,
                                .aim = aim_at_gpus,
                                .suffices = gpus_suffice,
                                .architectures = choose_architectures,
                                .add_flags = add_nvcc_flags,
                                .to_linker = "-Xlinker=",
                                .special = "\"$`\\\n",
                                .first_line =
                                    "#pragma nv_diag_suppress 177 // no model calls every function of the kernels"};
