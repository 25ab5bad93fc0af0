#include "emit/build/driver.h"

#include "emit/build/cache.h"
#include "emit/build/explain.h"
#include "emit/build/standalone.h"
#include "emit/text/foreign.h"
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

typedef struct Driver {
    Arena *arena;
    Diag *diag;
    const Toolchain *tools;
    const Build *build;
} Driver;

/* ---- the output ---- */

static bool cannot_write(Diag *diag, const char *path) {
    diag_error(diag, nowhere, "cannot write '%s': %s", path, file_why(path));
    return false;
}

/* Who asked for a program may not know of the source. */
static bool cannot_keep(Diag *diag, const char *path, const char *why) {
    diag_error(diag, nowhere, "cannot write the generated source '%s': %s; --keep FOLDER says where it goes", path,
               why);
    return false;
}

/* Asked before anything is compiled; a pipe would be written to when somebody reads it, or never. */
static bool may_keep(Diag *diag, Arena *arena, const char *folder, const char *path) {
    struct stat status;
    if (!folder_make(arena, folder))
        return cannot_keep(diag, path, file_why(path));
    return stat(path, &status) != 0 || S_ISREG(status.st_mode) || cannot_keep(diag, path, "it is no regular file");
}

/* ---- the command ---- */

/* nvcc starts its tools by a shell, and puts the names of files between double quotes for it. */
static bool shell_takes(Driver *d, const char *path) {
    const char *special = d->tools->target->compiler->special, *found = special ? strpbrk(path, special) : NULL;
    if (found)
        diag_error(d->diag, nowhere, "nvcc hands the path '%s' to a shell, where %s means something else",
                   harmless(d->arena, path), quoted_character(d->arena, *found));
    return !found;
}

/* A word that is no option of the compiler, and no list of them. */
static const char *path_word(Driver *d, const char *path) {
    return *path && strchr("-@", *path) ? arena_printf(d->arena, "./%s", path) : path;
}

/* What a library of the prediction alone has beside its own source, and what that needs of the runtime. */
static const char *const net_sources[] = {"runtime/embed/net.c", "runtime/embed/weights.c"};
enum { NET_SOURCES = sizeof net_sources / sizeof *net_sources };

static void add_net(Driver *d, Command *command) {
    for (int i = 0; i < NET_SOURCES; i++)
        command_add(command, path_in(d->arena, d->tools->home, net_sources[i]));
    command_add(command, "-fvisibility=hidden");
    command_add(command, d->tools->library);
}

/* The runtime, unless the source has it. All of it goes into a library: its caller decides what is used. */
static void add_runtime(Driver *d, Command *command) {
    const Toolchain *tools = d->tools;
    const char *whole = arena_printf(d->arena, "%s--whole-archive,%s,--no-whole-archive",
                                     tools->target->compiler->to_linker, tools->library);
    command_add(command, arena_printf(d->arena, "-I%s/runtime", tools->home));
    command_add(command, arena_printf(d->arena, "-I%s/kernels_lib", tools->home));
    if (d->build->predicts) {
        add_net(d, command);
        return;
    }
    command_add(command, arena_printf(d->arena, "%s/runtime/base/device_%s.c", tools->home, tools->target->name));
    command_add(command, d->build->shared ? whole : tools->library);
}

/* The bytes as strings of C, each of a line. */
static void put_bytes(Text *text, const unsigned char *bytes, size_t size) {
    enum { LINE = 24 };
    for (size_t i = 0; i < size; i++) {
        text_puts(text, i % LINE == 0 ? "\n    \"" : "");
        text_printf(text, "\\%03o", (unsigned)bytes[i]);
        text_puts(text, i % LINE == LINE - 1 || i + 1 == size ? "\"" : "");
    }
}

/* What is no part of the generated source goes into a source of its own: where the model lies, since the other is the same wherever that
 * is; and the network, which nobody reads as numbers (mtc --emit=onnx writes it). */
static const char *beside_text(Driver *d) {
    Text text = TEXT(d->arena);
    text_puts(&text, "#include <stddef.h>\n");
    if (d->build->place)
        text_printf(&text, "const char *mtc_model_folder = %s;\n", quoted(d->arena, d->build->place));
    text_printf(&text, "const char *mtc_no_network = %s;\n", quoted(d->arena, d->build->no_network));
    text_printf(&text, "unsigned long mtc_network_size = %zu;\n", d->build->network_size);
    text_puts(&text, "const char *mtc_network =");
    put_bytes(&text, d->build->network, d->build->network_size);
    text_puts(&text, d->build->network ? ";\n" : " NULL;\n");
    return text_string(&text);
}

/* `beside`: the source of beside_text. */
static Command build_command(Driver *d, const char *source, const char *beside, const char *output) {
    Command command = {.arena = d->arena};
    for (int i = 0; i < d->tools->compiler.count; i++)
        command_add(&command, d->tools->compiler.at[i]);
    d->tools->target->compiler->add_flags(d->tools, d->build, &command);
    command_add(&command, path_word(d, source));
    command_add(&command, path_word(d, beside));
    if (!d->build->standalone)
        add_runtime(d, &command);
    static const char *const libraries[] = {"-lm", "-ldl", "-lpthread", "-o"};
    for (size_t i = 0; i < sizeof libraries / sizeof *libraries; i++)
        command_add(&command, libraries[i]);
    command_add(&command, output);
    command_add(&command, NULL);
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
    const char *text = file_read(arena, "/proc/cpuinfo", &size, NULL);
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
    sha256_add_string(&hash, beside_text(d));
    Command command = build_command(d, "", "", "");
    for (int i = 0; command.words.at[i]; i++)
        sha256_add_string(&hash, command.words.at[i]);
    hash_file(&hash, command.words.at[0]);
    if (!d->build->standalone)
        hash_file(&hash, d->tools->library);
    for (int i = 0; i < NET_SOURCES && d->build->predicts; i++)
        hash_file(&hash, path_in(d->arena, d->tools->home, net_sources[i]));
    if (d->tools->target->compiler->this_processor)
        hash_processor(&hash, d->arena);
    return sha256_hex(&hash, d->arena);
}

/* ---- building ---- */

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Where one compilation works: a folder that nobody else knows, beside the generated source, so that those that run at the
 * same time do not meet. What is finished moves whole to the names that all share; what an interrupted one leaves goes with
 * the next. */
typedef struct Files {
    const char *kept;   /* the generated source when it is finished, "build/mnist.c" */
    const char *folder; /* its own, "build/mnist.c.Xa81Jb" */
    const char *source, *beside, *program;
} Files;

static const char *kept_name(Driver *d) {
    const char *name = arena_printf(d->arena, "%s.%s", file_name(d->arena, d->build->name), d->tools->target->ending);
    return path_in(d->arena, d->build->keep, name);
}

static bool open_files(Driver *d, Files *files, const Emission *source) {
    const char *own = path_base(files->kept); /* whatever a model is called, the others are not */
    const char *const names[] = {own, "program", arena_printf(d->arena, "%s.beside.c", own)};
    files->folder = folder_to_work_in(d->arena, files->kept, names, 3);
    if (files->folder) {
        files->source = path_in(d->arena, files->folder, names[0]);
        files->program = path_in(d->arena, files->folder, names[1]);
        files->beside = path_in(d->arena, files->folder, names[2]);
        const char *beside = beside_text(d);
        if (file_write(files->source, source->text, source->length) &&
            file_write(files->beside, beside, strlen(beside)))
            return true;
    }
    return cannot_write(d->diag, files->kept);
}

/* What was said about the files of this compilation, said about those that stay. */
static const char *in_terms_of_kept(Driver *d, const Files *files, const char *said) {
    Text text = TEXT(d->arena);
    for (const char *found; (found = strstr(said, files->source)); said = found + strlen(files->source)) {
        text_append(&text, said, (size_t)(found - said));
        text_puts(&text, files->kept);
    }
    text_puts(&text, said);
    return text_string(&text);
}

static int failed(Driver *d, const Files *files, const Emission *source, const char *tool, const char *said) {
    const char *log = arena_printf(d->arena, "%s.log", files->kept);
    unlink(log); /* whatever it is, it is of another compilation */
    bool kept = file_write(files->kept, source->text, source->length) && file_write(log, said, strlen(said));
    explain_failure(d->diag, tool, files->kept, source, said, kept ? log : NULL);
    return EXIT_TOOL;
}

static int compile(Driver *d, const Files *files, const Emission *source) {
    Command command = build_command(d, files->source, files->beside, files->program);
    Text log = TEXT(d->arena);
    double start = seconds();
    int status = process_run(command.words.at, &log);
    if (d->build->verbose)
        fprintf(stderr, "mtc: %s\nmtc: %.2f s\n%s", process_text(d->arena, command.words.at), seconds() - start,
                text_string(&log));
    const char *said = in_terms_of_kept(d, files, text_string(&log));
    if (status == 0 && !file_exists(files->program)) {
        diag_error(d->diag, nowhere, "'%s' ended well, and made no program: is it a compiler?", command.words.at[0]);
        return EXIT_TOOL;
    }
    return status == 0 ? EXIT_SUCCESS : failed(d, files, source, path_base(command.words.at[0]), said);
}

/* The program by itself and the source beside it, at nearly the same moment: of two compilations with the same names, one
 * has the last word about both. */
static int install(Driver *d, const Files *files, const Emission *source, const char *key) {
    size_t size;
    const char *output = d->build->output, *program = file_read(d->arena, files->program, &size, NULL);
    unlink(arena_printf(d->arena, "%s.log", files->kept));
    if (!program || !file_write(files->kept, source->text, source->length))
        return cannot_write(d->diag, files->kept), EXIT_CANT_CREATE;
    if (!file_write_program(output, program, size))
        return cannot_write(d->diag, output), EXIT_CANT_CREATE;
    if (d->build->cached)
        cache_put(d->arena, key, program, size);
    return EXIT_SUCCESS;
}

static int build_anew(Driver *d, Files *files, const Emission *source, const char *key) {
    int status = open_files(d, files, source) ? compile(d, files, source) : EXIT_CANT_CREATE;
    if (status == EXIT_SUCCESS)
        status = install(d, files, source, key);
    if (files->folder)
        folder_remove(d->arena, files->folder);
    return status;
}

static int install_cached(Driver *d, const Files *files, const Emission *source, const char *program, size_t size) {
    const char *output = d->build->output;
    bool kept = file_write(files->kept, source->text, source->length);
    if (kept && file_write_program(output, program, size))
        return EXIT_SUCCESS;
    return cannot_write(d->diag, kept ? output : files->kept), EXIT_CANT_CREATE;
}

int driver_build(Diag *diag, const Toolchain *tools, const Build *build, const Emission *emission) {
    Driver d = {diag_arena(diag), diag, tools, build};
    const Emission *whole = standalone(diag, tools->home, tools->target, emission);
    if (!whole)
        return EXIT_NO_INPUT;
    const Emission *source = build->standalone ? whole : emission;
    if (!shell_takes(&d, tools->home) || !shell_takes(&d, build->keep))
        return EXIT_USAGE;
    Files files = {.kept = kept_name(&d)};
    if (!may_keep(diag, d.arena, build->keep, files.kept))
        return EXIT_CANT_CREATE;
    const char *key = program_key(&d, whole);
    size_t size;
    const char *program = build->cached ? cache_find(diag, key, &size) : NULL;
    if (!program)
        return build_anew(&d, &files, source, key);
    if (build->verbose)
        fprintf(stderr, "mtc: compiled before: cache entry %.12s\n", key);
    return install_cached(&d, &files, source, program, size);
}
