/* Lines of generated code, indented, each with the place in the model that it comes from. */
#ifndef MTC_WRITER_H
#define MTC_WRITER_H

#include "support/diag.h"
#include "support/text.h"

enum { CODE_COLUMNS = 112, LONGEST_LINE = 120 };

typedef struct Writer {
    Text text;
    int indent;
    Span at;     /* of the lines written from now on */
    bool breaks; /* lines longer than LONGEST_LINE, where clang-format would; for the writer that writes the file */
    VEC(Span) lines;
} Writer;

#define WRITER(arena_) ((Writer){.text = TEXT(arena_)})

/* Whole lines: `format` has no newline at its end, and may have some inside. */
void write_line(Writer *w, const char *format, ...) __attribute__((format(printf, 2, 3)));
void write_open(Writer *w, const char *format, ...) __attribute__((format(printf, 2, 3))); /* then indents */
void write_close(Writer *w, const char *line);                                             /* unindents first */
void write_blank(Writer *w);
/* "// text" on one line, whatever the text: comments are written by this and the functions below, which make foreign text in
 * them harmless. */
void write_remark(Writer *w, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* "code   // note", with `width` columns for the code. */
void write_noted(Writer *w, int width, const char *code, const char *note);
/* "// text", broken at spaces to stay within CODE_COLUMNS; further lines are indented by `hang`. */
void write_comment(Writer *w, int hang, const char *text);
/* "// ---- title ------": the start of a section. */
void write_rule(Writer *w, const char *title);
/* "enum { A = 1, B = 2 };", or a line for each. */
void write_enumeration(Writer *w, const char *const *constants, int count);
/* One for lines that will stand among those of `out`, of the same place. */
Writer writer_like(const Writer *out);
/* All lines of `from`, with their places, indented further by the indent of w. */
void write_all(Writer *w, const Writer *from);

/* The lines are one statement, or none. */
bool is_one_statement(const Writer *lines);
/* A loop or a condition: braces only around several statements, or a directive (else clang-format indents what follows). */
void write_block(Writer *out, const char *head, const Writer *lines);
/* The same with braces, however few statements there are. */
void write_braced(Writer *out, const char *head, const Writer *lines);

/* break.c: hands the parts of a line that is too long to `put`, each with its own indent in columns. */
typedef void (*PutLine)(Writer *w, int columns, const char *bytes, size_t length);
void break_line(Writer *w, int columns, const char *line, PutLine put);

#endif
