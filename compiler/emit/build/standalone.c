#include "emit/build/standalone.h"

#include "emit/build/toolchain.h"

#include "support/file.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>

static const Span nowhere = {0};

typedef struct Expander {
    Arena *arena;
    Diag *diag;
    const char *home;
    const Target *target;
    Text out;
    Emission *result;
    VEC(const char *) seen; /* paths relative to home */
} Expander;

static bool expand(Expander *e, const char *folder, const char *text, size_t size, const Emission *origin);

static void put_line(Expander *e, const char *line, size_t length, Span from) {
    text_append(&e->out, line, length);
    text_putc(&e->out, '\n');
    VEC_PUSH(e->arena, &e->result->lines, from);
}

static bool first_time(Expander *e, const char *path) {
    for (int i = 0; i < e->seen.count; i++)
        if (strcmp(e->seen.at[i], path) == 0)
            return false;
    VEC_PUSH(e->arena, &e->seen, path);
    return true;
}

/* Rows, which mean something else wherever they are included: they have no guard. */
static bool is_list(const char *path) {
    const char *ending = strrchr(path, '.');
    return ending && strcmp(ending, ".def") == 0;
}

static bool expand_file(Expander *e, const char *path) {
    if (!is_list(path) && !first_time(e, path))
        return true;
    size_t size;
    const char *why, *full = path_in(e->arena, e->home, path), *text = file_read(e->arena, full, &size, &why);
    if (!text) {
        diag_error(e->diag, nowhere, "cannot read '%s': %s", full, why);
        return false;
    }
    const char *first = e->target->compiler->first_line;
    if (first && e->seen.count == 1)
        put_line(e, first, strlen(first), nowhere);
    const char *title = arena_printf(e->arena, "// ==== %s ====", path);
    put_line(e, "", 0, nowhere);
    put_line(e, title, strlen(title), nowhere);
    put_line(e, "", 0, nowhere);
    return expand(e, path_folder(e->arena, path), text, size, NULL);
}

/* The path relative to home of what an include names: beside the includer, or in one of the folders for includes. */
static const char *find_include(Expander *e, const char *folder, const char *name) {
    const char *folders[] = {folder, "runtime", "kernels_lib"};
    const char *path = NULL;
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        path = path_in(e->arena, folders[i], name);
        if (file_exists(path_in(e->arena, e->home, path)))
            break;
    }
    return path; /* none exists: the last, whose reading will fail */
}

/* The name in `#include "name"`, or NULL when the line is something else. */
static const char *included_name(Arena *arena, const char *line, size_t length) {
    static const char directive[] = "#include \"";
    size_t skip = sizeof directive - 1;
    if (length <= skip || strncmp(line, directive, skip) != 0)
        return NULL;
    return arena_strndup(arena, line + skip, strcspn(line + skip, "\"\n"));
}

static bool expand(Expander *e, const char *folder, const char *text, size_t size, const Emission *origin) {
    for (int number = 0; size; number++) {
        size_t length = strcspn(text, "\n"), step = length < size ? length + 1 : length;
        const char *name = included_name(e->arena, text, length);
        const char *path = name ? find_include(e, folder, name) : NULL;
        if (!name)
            put_line(e, text, length, origin && number < origin->lines.count ? origin->lines.at[number] : nowhere);
        else if (!expand_file(e, path))
            return false;
        text += step;
        size -= step;
    }
    return true;
}

static int by_name(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Of the runtime's layers for devices, the target's alone. */
static bool is_wanted_source(Expander *e, const char *name) {
    static const char layer[] = "device_";
    size_t length = strlen(name);
    bool source = length > 2 && strcmp(name + length - 2, ".c") == 0;
    return source && (strncmp(name, layer, strlen(layer)) != 0 ||
                      strcmp(name, arena_printf(e->arena, "%s%s.c", layer, e->target->name)) == 0);
}

typedef VEC(const char *) Paths;

/* Of libraries of the prediction alone, which are never one file. */
static const char other_libraries[] = "embed";

/* The sources in a folder of the runtime and in the rooms below it. */
static void find_sources(Expander *e, const char *folder, Paths *found) {
    DIR *listing = opendir(path_in(e->arena, e->home, folder));
    for (struct dirent *item; listing && (item = readdir(listing));) {
        const char *path = path_in(e->arena, folder, item->d_name);
        if (is_wanted_source(e, item->d_name))
            VEC_PUSH(e->arena, found, path);
        else if (!strchr(item->d_name, '.') && strcmp(item->d_name, other_libraries) != 0)
            find_sources(e, path, found);
    }
    if (listing)
        closedir(listing);
}

static bool expand_runtime(Expander *e) {
    Paths sources = {0};
    find_sources(e, "runtime", &sources);
    qsort(sources.at, (size_t)sources.count, sizeof *sources.at, by_name);
    for (int i = 0; i < sources.count; i++)
        if (!expand_file(e, sources.at[i]))
            return false;
    return true;
}

Emission *standalone(Diag *diag, const char *home, const Target *target, const Emission *emission) {
    Arena *arena = diag_arena(diag);
    Expander e = {arena, diag, home, target, TEXT(arena), NEW(arena, Emission), {0}};
    if (!expand(&e, "", emission->text, emission->length, emission) || !expand_runtime(&e))
        return NULL;
    e.result->text = text_string(&e.out);
    e.result->length = e.out.length;
    return e.result;
}
