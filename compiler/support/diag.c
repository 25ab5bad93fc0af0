#include "support/diag.h"

#include "runtime/base/common.h"
#include "support/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <unistd.h>

enum { MAX_ERRORS = 20, MAX_WARNINGS = 50, MAX_NAME = 64, LONGEST_LINE = 240, LONGEST_MESSAGE = 600 };

struct Diag {
    Arena *arena;
    int errors, warnings;
    bool colour, shown; /* the last report was */
};

Diag *diag_new(Arena *arena) {
    Diag *diag = NEW(arena, Diag);
    const char *no_color = getenv("NO_COLOR");
    diag->arena = arena;
    diag->shown = true;
    diag->colour = isatty(STDERR_FILENO) && !(no_color && *no_color);
    return diag;
}

Arena *diag_arena(Diag *diag) {
    return diag->arena;
}

int diag_errors(const Diag *diag) {
    return diag->errors;
}

bool diag_full(const Diag *diag) {
    return diag->errors >= MAX_ERRORS;
}

static bool starts_character(char byte) {
    return ((unsigned char)byte & 0xC0) != 0x80;
}

static int characters(const char *from, const char *to) {
    int count = 0;
    for (; from < to; from++)
        count += starts_character(*from);
    return count;
}

void source_index(Arena *arena, Source *source) {
    VEC_PUSH(arena, &source->lines, 0);
    for (size_t i = 0; i < source->size; i++)
        if (source->text[i] == '\n')
            VEC_PUSH(arena, &source->lines, (uint32_t)i + 1);
}

/* The row of source->lines. */
static int line_of(Span span) {
    int first = 0, after = span.source->lines.count;
    while (after - first > 1) {
        int middle = first + (after - first) / 2;
        if (span.source->lines.at[middle] <= span.begin)
            first = middle;
        else
            after = middle;
    }
    return first;
}

static const char *line_start(Span span) {
    return span.source->text + span.source->lines.at[line_of(span)];
}

static const char *line_end(Span span, const char *start) {
    const char *end = span.source->text + span.source->size;
    const char *newline = memchr(start, '\n', (size_t)(end - start));
    const char *stop = newline ? newline : end;
    return stop > start && stop[-1] == '\r' ? stop - 1 : stop;
}

void span_position(Span span, int *line, int *column) {
    *line = line_of(span) + 1;
    *column = characters(line_start(span), span.source->text + span.begin) + 1;
}

const char *span_text(Arena *arena, Span span) {
    return arena_strndup(arena, span.source->text + span.begin, span.end - span.begin);
}

bool span_same_place(Span a, Span b) {
    return a.source == b.source && a.begin == b.begin;
}

Span span_join(Span first, Span last) {
    return (Span){first.source, first.begin, last.end};
}

/* `bytes` on, or back, as far as the text goes, and to the beginning of a character. */
static const char *moved(const char *at, const char *limit, ptrdiff_t bytes) {
    const char *to = bytes > 0 ? limit - at > bytes ? at + bytes : limit : at - limit > -bytes ? at + bytes : limit;
    while (to != limit && !starts_character(*to))
        to += bytes > 0 ? 1 : -1;
    return to;
}

/* The source line, of a very long one the part around the place; under it a caret with tildes to the end of the span (or of the
 * line). */
static void show_line(Diag *diag, Span at, int line) {
    const char *start = line_start(at), *end = line_end(at, start);
    const char *from = at.source->text + at.begin, *to = at.source->text + at.end;
    if (end - start > LONGEST_LINE) {
        start = moved(from, start, -LONGEST_LINE / 2);
        end = moved(from, end, LONGEST_LINE / 2);
    }
    Text under = TEXT(diag->arena);
    for (const char *p = start; p < from; p++)
        if (starts_character(*p))
            text_putc(&under, *p == '\t' ? '\t' : ' ');
    text_putc(&under, '^');
    for (const char *p = from + 1; p < to && p < end; p++)
        if (starts_character(*p))
            text_putc(&under, '~');
    fprintf(stderr, "%5d | %s\n      | %s%s%s\n", line,
            mtc_harmless_lines(arena_strndup(diag->arena, start, (size_t)(end - start))),
            diag->colour ? "\033[32m" : "", text_string(&under), diag->colour ? "\033[0m" : "");
}

/* No more of a message than one reads. */
static const char *shortened(Arena *arena, const char *text) {
    const char *end = text + strlen(text);
    if (end - text <= LONGEST_MESSAGE)
        return text;
    const char *head = moved(text, end, LONGEST_MESSAGE / 2), *tail = moved(end, text, -LONGEST_MESSAGE / 2);
    return arena_printf(arena, "%.*s ... %s", (int)(head - text), text, tail);
}

static void show_includes(Span at) {
    for (Span in = at.source->included_at; in.source; in = in.source->included_at) {
        int line, column;
        span_position(in, &line, &column);
        fprintf(stderr, "%s:%d:%d: note: included here\n", mtc_harmless(in.source->path), line, column);
    }
}

static void report(Diag *diag, Span at, const char *kind, const char *colour, const char *format, va_list args) {
    const char *message = shortened(diag->arena, arena_vprintf(diag->arena, format, args));
    int line = 0, column = 0;
    if (at.source) {
        span_position(at, &line, &column);
        fprintf(stderr, "%s:%d:%d: ", mtc_harmless(at.source->path), line, column);
    } else {
        fputs("mtc: ", stderr);
    }
    fprintf(stderr, "%s%s:%s %s\n", diag->colour ? colour : "", kind, diag->colour ? "\033[0m" : "",
            mtc_harmless_lines(message));
    if (!at.source)
        return;
    show_line(diag, at, line);
    if (strcmp(kind, "note") != 0)
        show_includes(at);
}

void diag_error(Diag *diag, Span at, const char *format, ...) {
    va_list args;
    va_start(args, format);
    diag->shown = diag->errors++ < MAX_ERRORS;
    if (diag->shown)
        report(diag, at, "error", "\033[1;31m", format, args);
    va_end(args);
}

void diag_warning(Diag *diag, Span at, const char *format, ...) {
    va_list args;
    va_start(args, format);
    diag->shown = diag->warnings++ < MAX_WARNINGS;
    if (diag->shown)
        report(diag, at, "warning", "\033[1;35m", format, args);
    va_end(args);
}

void diag_note(Diag *diag, Span at, const char *format, ...) {
    va_list args;
    va_start(args, format);
    if (diag->shown || !at.source)
        report(diag, at, "note", "\033[1;36m", format, args);
    va_end(args);
}

void diag_finish(Diag *diag) {
    int hidden = diag->warnings - MAX_WARNINGS;
    if (hidden > 0)
        fprintf(stderr, "mtc: %d more warning%s\n", hidden, hidden == 1 ? "" : "s");
}

static int min3(int a, int b, int c) {
    int least = a < b ? a : b;
    return least < c ? least : c;
}

/* Insertions, deletions, substitutions and swaps of neighbours that turn a into b (optimal string alignment); three rows
 * of the table are enough. */
static int edit_distance(const char *a, const char *b) {
    int rows[3][MAX_NAME + 1];
    int width = (int)strlen(b), height = (int)strlen(a);
    for (int j = 0; j <= width; j++)
        rows[0][j] = j;
    for (int i = 1; i <= height; i++) {
        int *row = rows[i % 3], *above = rows[(i + 2) % 3], *two_above = rows[(i + 1) % 3];
        row[0] = i;
        for (int j = 1; j <= width; j++) {
            row[j] = min3(above[j] + 1, row[j - 1] + 1, above[j - 1] + (a[i - 1] != b[j - 1]));
            bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
            if (swapped && two_above[j - 2] + 1 < row[j])
                row[j] = two_above[j - 2] + 1;
        }
    }
    return rows[height % 3][width];
}

const char *nearest_name(const char *name, const char *const *candidates, int count) {
    const char *best = NULL;
    int length = (int)strlen(name);
    for (int i = 0; i < count; i++)
        if (strcasecmp(name, candidates[i]) == 0) // FP16 is no misspelling of bf16
            return candidates[i];
    int limit = length < 4 ? 1 : length < 8 ? 2 : 3;
    for (int i = 0; i < count; i++) {
        if (strlen(candidates[i]) > MAX_NAME || length > MAX_NAME)
            continue;
        int distance = edit_distance(name, candidates[i]);
        if (distance <= limit && distance < (int)strlen(candidates[i])) {
            best = candidates[i];
            limit = distance - 1;
        }
    }
    return best;
}

_Noreturn void internal_error(const char *file, int line, const char *format, ...) {
    va_list args;
    va_start(args, format);
    fputs("mtc: internal error: ", stderr);
    vfprintf(stderr, format, args);
    fprintf(stderr, " (%s:%d)\nThis is a fault of mtc, not of your model. Please report it with the model file.\n",
            file, line);
    va_end(args);
    exit(EXIT_INTERNAL);
}
