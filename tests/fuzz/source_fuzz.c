/* libFuzzer harness: from hostile bytes to a C compiler. An input is, by its first byte, the model itself or text for one of the
 * places of a good model: a comment, a string, a name of a layer, the file's name, a flag. What mtc accepts is C in which every line
 * can be seen, and which `cc -fsyntax-only` accepts; anything else is a find.
 *
 * A compiler takes a thousand times as long as mtc, so it is asked only about sources that are new, but for numbers and letters
 * of names. */
#define main compiler_main
#include "main.c"
#undef main

#include <ctype.h>
#include <errno.h>
#include <sys/wait.h>

extern int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char good[] = "param wide = 3 # %s\n"
                           "param rate = 0.5 # %s\n"
                           "data {\n  train = csv(\"%s\", columns = [\"%s\", \"d\", \"label\"])\n"
                           "  x : f32[2] = columns(\"%s\", \"d\")\n  label : class[3]\n}\n"
                           "model {\n  h = relu(linear(x * rate, wide)) # %s\n  y = linear(h, 3, name = \"a%s\")\n}\n"
                           "train {\n  loss = cross_entropy(y, label)\n  optimizer = sgd(0.1)\n}\n";
enum { PLACES = 7, KINDS = PLACES + 3, SEEN = 1 << 16 };

static char folder[] = "/tmp/mtc-source-XXXXXX";

static void write_bytes(const char *path, const void *bytes, size_t size) {
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(bytes, 1, size, file) != size || fclose(file) != 0)
        abort();
}

/* The good model with `text` in one of its places; -1: in none. */
static void write_good(const char *path, int place, const char *text) {
    char model[16384];
    const char *at[PLACES] = {"help", "help", "file", "c", "c", "help", ""};
    if (place >= 0)
        at[place] = text;
    if (place == 3 || place == 4)
        at[3] = at[4] = text;
    snprintf(model, sizeof model, good, at[0], at[1], at[2], at[3], at[4], at[5], at[6]);
    write_bytes(path, model, strlen(model));
}

/* Of the source but for what is between letters and digits. */
static uint32_t shape_of(const char *source, size_t size) {
    uint32_t hash = 2166136261u;
    for (size_t i = 0; i < size; i++)
        if (!isalnum((unsigned char)source[i]) || (i && !isalnum((unsigned char)source[i - 1])))
            hash = (hash ^ (isalnum((unsigned char)source[i]) ? 'a' : (unsigned char)source[i])) * 16777619u;
    return hash;
}

static bool is_new(const char *source, size_t size) {
    static uint32_t seen[SEEN];
    uint32_t hash = shape_of(source, size) | 1, *place = &seen[hash % SEEN];
    bool new = *place != hash;
    *place = hash;
    return new;
}

static void check_lines(const char *source, size_t size) {
    const unsigned char *at = (const unsigned char *)source, *end = at + size;
    for (int length; at < end; at += length) {
        length = *at == '\n' ? 1 : visible_length(at, end);
        if (length == 0)
            abort();
    }
}

/* Trigraphs are on, and whatever a comment may do to the lines around it is an error. */
static void compile_source(const char *path) {
    const char *command[] = {"cc",      "-std=c11",  "-D_XOPEN_SOURCE=700", "-fopenmp",      "-Wcomment", "-Wtrigraphs",
                             "-Werror", "-Iruntime", "-Ikernels_lib",       "-fsyntax-only", "-x",        "c",
                             path,      NULL};
    pid_t child = fork(), ended;
    int status;
    if (child == 0) {
        unsetenv("ASAN_OPTIONS");
        execvp(command[0], (char *const *)command);
        _exit(127);
    }
    do /* libFuzzer's alarm interrupts it */
        ended = child < 0 ? child : waitpid(child, &status, 0);
    while (ended < 0 && child > 0 && errno == EINTR);
    if (ended != child || !WIFEXITED(status) || WEXITSTATUS(status) != 0)
        abort();
}

static const char *in_folder(char *room, size_t size, const char *name) {
    snprintf(room, size, "%s/%s", folder, name);
    return room;
}

static void check_model(const char *model, const char *setting) {
    char path[64];
    in_folder(path, sizeof path, "out.c");
    char *arguments[] = {"mtc", "--emit=c", (char *)model, "-o", path, setting ? "--set" : NULL, (char *)setting, NULL};
    unlink(path);
    if (compiler_main(setting ? 7 : 5, arguments) != 0)
        return;
    Arena *arena = arena_new();
    size_t size;
    const char *why, *source = file_read(arena, path, &size, &why);
    if (!source)
        abort();
    check_lines(source, size);
    if (is_new(source, size))
        compile_source(path);
    arena_free(arena);
}

/* A file of a name; a slash would be a folder, and the system has names of 255 bytes. */
static void check_named(const char *text) {
    char name[220], path[320];
    snprintf(name, sizeof name, "%.200s.mt", text);
    for (char *c = name; *c; c++)
        *c = *c == '/' ? '_' : *c;
    write_good(in_folder(path, sizeof path, name), -1, NULL);
    check_model(path, NULL);
    unlink(path);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static bool ready = false;
    char path[64], text[4200], setting[4210];
    if (!ready && !mkdtemp(folder))
        abort();
    ready = true;
    if (size < 1 || size > 4096)
        return 0;
    int kind = data[0] % KINDS;
    memcpy(text, data + 1, size - 1);
    text[size - 1] = '\0';
    in_folder(path, sizeof path, "model.mt");
    if (kind == KINDS - 1) {
        check_named(text);
        return 0;
    }
    if (kind == KINDS - 2)
        write_bytes(path, data + 1, size - 1);
    else
        write_good(path, kind < PLACES ? kind : -1, text);
    snprintf(setting, sizeof setting, "wide=%s", text);
    check_model(path, kind == PLACES ? setting : NULL);
    return 0;
}
