/* libFuzzer harness: logs for `mtc plot`. The first byte chooses the axis and whether the rest is one log or, cut in the middle,
 * two. A log is refused with a message or drawn, as XML in which nothing but letters of the text is from the log; anything else is a
 * find. */
#define main compiler_main
#include "main.c"
#undef main

#include <sys/mman.h>

extern int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void memory_file(int *file, char *path, size_t room, const uint8_t *data, size_t size) {
    if (*file < 0 && (*file = memfd_create("log", 0)) < 0)
        abort();
    snprintf(path, room, "/proc/self/fd/%d", *file);
    if (ftruncate(*file, 0) != 0 || pwrite(*file, data, size, 0) != (ssize_t)size)
        abort();
}

/* Tags close as often as they open, hold no number that is none, and each character is one of XML's. */
static void check_drawing(const char *svg, size_t size) {
    const unsigned char *at = (const unsigned char *)svg, *end = at + size;
    int depth = 0;
    bool in_tag = false;
    for (int length; at < end; at += length) {
        length = *at == '\n' ? 1 : utf8_length(at, end);
        if (length == 0 || (*at < ' ' && *at != '\n'))
            abort();
        if (*at == '<' && at[1] != '?' && at[1] != '!')
            depth += at[1] == '/' ? -1 : 1;
        if (*at == '/' && at[1] == '>')
            depth--;
        in_tag = (in_tag || *at == '<') && *at != '>';
        if (in_tag && strncmp((const char *)at, "nan", 3) == 0)
            abort();
    }
    if (depth != 0)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static int first = -1, second = -1;
    char a[64], b[64];
    if (size < 1)
        return 0;
    int kind = *data++;
    size_t cut = kind & 4 ? (size - 1) / 2 : size - 1;
    memory_file(&first, a, sizeof a, data, cut);
    memory_file(&second, b, sizeof b, data + cut, size - 1 - cut);
    Arena *arena = arena_new();
    Text out = TEXT(arena);
    const char *logs[] = {a, b};
    PlotRequest request = {.logs = kind & 4 ? 2 : 1, .log = logs, .axis = (PlotAxis)(kind % PLOT_AXES)};
    request.format = kind & 8 ? PLOT_PNG : PLOT_SVG;
    if (plot(diag_new(arena), &request, &out) == 0 && request.format == PLOT_SVG)
        check_drawing(text_string(&out), out.length);
    arena_free(arena);
    return 0;
}
