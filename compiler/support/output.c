#include "support/output.h"

#include "runtime/base/file.h"
#include "runtime/base/safetensors.h"
#include "support/file.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

static const Span nowhere = {0};

/* ---- kinds of files ---- */

/* The beginning of a file. */
typedef struct Head {
    const char *at; /* a zero ends it */
    size_t size;
} Head;

static bool begins(const Head *head, const char *with) {
    return head->size >= strlen(with) && memcmp(head->at, with, strlen(with)) == 0;
}

static bool is_program(const Head *head) {
    return begins(head, "\x7f"
                        "ELF");
}

static bool is_text(const Head *head) {
    return !is_program(head) && !memchr(head->at, '\0', head->size);
}

static bool is_svg(const Head *head) {
    return begins(head, "<svg") || begins(head, "<?xml");
}

static bool is_png(const Head *head) {
    return begins(head, "\x89PNG");
}

/* With the header of 256 numbers, 20240520 or 20240801 the first. */
static bool is_tokens(const Head *head) {
    return begins(head, "\x88\xd8\x34\x01") || begins(head, "\xa1\xd9\x34\x01");
}

/* safetensors, a JSON object behind the 8 bytes of its length; but no checkpoint of a training, which may be the work of days. */
static bool is_weights(const Head *head) {
    return head->size > 8 && strncmp(head->at + 8, "{\"", 2) == 0 && !strstr(head->at + 8, "\"" MTC_CHECKSUM "\"");
}

/* The version of the format comes first. */
static bool is_network(const Head *head) {
    return head->size > 1 && head->at[0] == 8 && head->at[1] > 0;
}

static const struct {
    bool (*is)(const Head *head);
    const char *otherwise;
} kinds[] = {
    [OUTPUT_PROGRAM] = {is_program, "it would replace a file that is no program or shared library"},
    [OUTPUT_TEXT] = {is_text, "it would replace a file that is no text"},
    [OUTPUT_SVG] = {is_svg, "it would replace a file that is no SVG"},
    [OUTPUT_PNG] = {is_png, "it would replace a file that is no PNG"},
    [OUTPUT_TOKENS] = {is_tokens, "it would replace a file that has no header of tokens"},
    [OUTPUT_WEIGHTS] = {is_weights, "it would replace a checkpoint of a training, or a file that is no safetensors"},
    [OUTPUT_NETWORK] = {is_network, "it would replace a file that is no network (ONNX)"},
};

/* Long enough for a zero among the pixels or tokens of a file of data. NULL when it cannot be read, with errno. */
static const Head *read_head(Arena *arena, const char *path) {
    enum { LONGEST = 1 << 16 };
    const char *unused;
    const int descriptor = file_open(path, &unused);
    FILE *file = descriptor < 0 ? NULL : fdopen(descriptor, "rb");
    if (!file)
        return NULL;
    char *bytes = arena_alloc(arena, LONGEST + 1);
    Head *head = NEW(arena, Head);
    *head = (Head){bytes, fread(bytes, 1, LONGEST, file)};
    bool good = !ferror(file);
    int reason = errno;
    fclose(file);
    errno = reason;
    return good ? head : NULL;
}

/* ---- the output ---- */

static bool failed(Diag *diag, const char *path) {
    diag_error(diag, nowhere, "cannot write '%s': %s", path, file_why(path));
    return false;
}

static bool refused(Diag *diag, const char *path, const char *why) {
    diag_error(diag, nowhere, "cannot write '%s': %s; choose another name with -o", path, why);
    return false;
}

static bool may_replace(Diag *diag, const char *path, OutputKind kind) {
    const Head *head = read_head(diag_arena(diag), path);
    if (!head)
        return failed(diag, path);
    return head->size == 0 || kinds[kind].is(head) || refused(diag, path, kinds[kind].otherwise);
}

bool output_allowed(Diag *diag, const char *path, OutputKind kind, const InputFiles *inputs) {
    struct stat status;
    bool exists = stat(path, &status) == 0;
    if (exists && S_ISDIR(status.st_mode))
        return refused(diag, path, "it is a folder");
    for (int i = 0; exists && i < inputs->count; i++)
        if (path_same(path, inputs->at[i].path))
            return refused(diag, path, inputs->at[i].why);
    if (mtc_written_in_place(path))
        return kind != OUTPUT_PROGRAM || refused(diag, path, "it is no regular file");
    if (exists && mtc_is_read_only(path)) {
        diag_error(diag, nowhere, "cannot write '%s': it is read-only; chmod u+w makes it writable", path);
        return false;
    }
    if (exists && !may_replace(diag, path, kind))
        return false;
    MtcFault unused; /* it says no more than errno */
    return mtc_output_check(&unused, path) == 0 || failed(diag, path);
}
