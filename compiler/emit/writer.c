#include "emit/writer.h"

static void put_line(Writer *w, const char *bytes, size_t length) {
    bool directive = length > 0 && bytes[0] == '#';
    if (length > 0 && !directive)
        for (int i = 0; i < w->indent; i++)
            text_puts(&w->text, "    ");
    text_append(&w->text, bytes, length);
    text_putc(&w->text, '\n');
    VEC_PUSH(w->text.arena, &w->lines, w->at);
}

static void put_lines(Writer *w, const char *format, va_list args) {
    const char *lines = arena_vprintf(w->text.arena, format, args);
    for (const char *end; (end = strchr(lines, '\n')); lines = end + 1)
        put_line(w, lines, (size_t)(end - lines));
    put_line(w, lines, strlen(lines));
}

void write_line(Writer *w, const char *format, ...) {
    va_list args;
    va_start(args, format);
    put_lines(w, format, args);
    va_end(args);
}

void write_open(Writer *w, const char *format, ...) {
    va_list args;
    va_start(args, format);
    put_lines(w, format, args);
    va_end(args);
    w->indent++;
}

void write_close(Writer *w, const char *line) {
    w->indent--;
    write_line(w, "%s", line);
}

void write_blank(Writer *w) {
    put_line(w, "", 0);
}

/* Bytes of the longest beginning of `text` that fits into `room` and ends before a space; all of it if it fits. */
static size_t fitting(const char *text, size_t room) {
    size_t length = strlen(text);
    if (length <= room)
        return length;
    for (size_t end = room; end > 0; end--)
        if (text[end] == ' ')
            return end;
    const char *space = strchr(text, ' ');
    return space ? (size_t)(space - text) : length;
}

void write_comment(Writer *w, int hang, const char *text) {
    int spaces = 0;
    do {
        size_t room = (size_t)(CODE_COLUMNS - 4 * w->indent - 3 - spaces);
        size_t length = fitting(text, room);
        write_line(w, "// %*s%.*s", spaces, "", (int)length, text);
        text += length;
        text += strspn(text, " ");
        spaces = hang;
    } while (*text);
}

void write_rule(Writer *w, const char *title) {
    static const char dashes[] = "----------------------------------------------------------------"
                                 "----------------------------------------------------------------";
    int rest = CODE_COLUMNS - 9 - (int)strlen(title);
    write_blank(w);
    write_line(w, "// ---- %s %.*s", title, rest > 4 ? rest : 4, dashes);
    write_blank(w);
}

void write_all(Writer *w, const Writer *from) {
    Span at = w->at;
    const char *line = text_string(&from->text);
    for (int k = 0; k < from->lines.count; k++) {
        const char *end = strchr(line, '\n');
        w->at = from->lines.at[k];
        put_line(w, line, (size_t)(end - line));
        line = end + 1;
    }
    w->at = at;
}
