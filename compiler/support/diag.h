/* Diagnostics: where in the user's text, what is wrong, what would be right.
 *
 *   mnist.mt:17:12: error: unknown name 'hiden'; did you mean 'hidden'?
 *      17 |   h = relu(linear(x, hiden))
 *         |                      ^~~~~
 *
 * A Span is a byte range; line and column are computed only when something is reported. */
#ifndef MTC_DIAG_H
#define MTC_DIAG_H

#include "support/arena.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct Source Source;

typedef struct Span {
    const Source *source; /* NULL: no place in the user's text */
    uint32_t begin, end;  /* byte offsets, end exclusive */
} Span;

struct Source {
    const char *path; /* as the user wrote it */
    const char *text; /* terminated; may also contain NUL bytes, hence size */
    size_t size;
    Span included_at;    /* the include statement that brought it in; .source is NULL for the main file */
    VEC(uint32_t) lines; /* byte offset of the beginning of each: source_index */
};

/* Finds the lines. A source must have it before anything is reported about it. */
void source_index(Arena *arena, Source *source);

typedef struct Diag Diag;

/* Reports go to stderr as they come, coloured when it is a terminal and NO_COLOR is unset or empty. The first errors and
 * warnings are shown, the others only counted. */
Diag *diag_new(Arena *arena);
/* Says how many warnings were not shown. */
void diag_finish(Diag *diag);
Arena *diag_arena(Diag *diag);
int diag_errors(const Diag *diag);
bool diag_full(const Diag *diag); /* true after 20 errors: callers may stop looking for more */

void diag_error(Diag *diag, Span at, const char *format, ...) __attribute__((format(printf, 3, 4)));
void diag_warning(Diag *diag, Span at, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* A further line to the report just made: where the other shape came from, what to do. */
void diag_note(Diag *diag, Span at, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* 1-based line and column (columns count characters, not bytes). */
void span_position(Span span, int *line, int *column);
const char *span_text(Arena *arena, Span span);
Span span_join(Span first, Span last);
bool span_same_place(Span a, Span b); /* they begin there */

/* The candidate nearest to `name`: the same in other capitals, else by edit distance; NULL when none is near enough to be a
 * misspelling. */
const char *nearest_name(const char *name, const char *const *candidates, int count);

/* A fault of mtc's own, never of its user: says so, asks for a report, exits with 70. */
_Noreturn void internal_error(const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
#define ICE(...) internal_error(__FILE__, __LINE__, __VA_ARGS__)
#define ENSURE(condition)                                                                                              \
    do {                                                                                                               \
        if (!(condition))                                                                                              \
            ICE("%s does not hold", #condition);                                                                       \
    } while (0)

/* Exit codes, after sysexits.h. */
enum {
    EXIT_USAGE = 64,
    EXIT_MODEL = 65,
    EXIT_NO_INPUT = 66,
    EXIT_INTERNAL = 70,
    EXIT_CANT_CREATE = 73,
    EXIT_TOOL = 69
};

#endif
