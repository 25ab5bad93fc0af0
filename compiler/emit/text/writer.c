#include "emit/text/writer.h"

#include "emit/text/foreign.h"

/* Nothing that a compiler could take for the end of a line, or show in another order. */
static bool is_visible(const char *bytes, size_t length) {
    const unsigned char *at = (const unsigned char *)bytes, *end = at + length;
    for (int step; at < end; at += step)
        if ((step = visible_length(at, end)) == 0)
            return false;
    return true;
}

static void put_whole(Writer *w, int columns, const char *bytes, size_t length) {
    ENSURE(is_visible(bytes, length));
    while (columns-- > 0)
        text_putc(&w->text, ' ');
    text_append(&w->text, bytes, length);
    text_putc(&w->text, '\n');
    VEC_PUSH(w->text.arena, &w->lines, w->at);
}

static void put_line(Writer *w, const char *bytes, size_t length) {
    bool directive = length > 0 && bytes[0] == '#';
    int columns = length == 0 || directive ? 0 : 4 * w->indent;
    for (; length > 0 && *bytes == ' '; bytes++, length--)
        columns++;
    if (w->breaks && columns + length > LONGEST_LINE)
        break_line(w, columns, arena_strndup(w->text.arena, bytes, length), put_whole);
    else
        put_whole(w, columns, bytes, length);
}

static void put_lines(Writer *w, const char *format, va_list args) {
    const char *lines = arena_vprintf(w->text.arena, format, args);
    for (const char *end; (end = strchr(lines, '\n')); lines = end + 1)
        put_line(w, lines, (size_t)(end - lines));
    put_line(w, lines, strlen(lines));
}

Writer writer_like(const Writer *out) {
    Writer writer = WRITER(out->text.arena);
    writer.at = out->at;
    return writer;
}

void write_line(Writer *w, const char *format, ...) {
    va_list args;
    va_start(args, format);
    put_lines(w, format, args);
    va_end(args);
}

void write_remark(Writer *w, const char *format, ...) {
    va_list args;
    va_start(args, format);
    write_line(w, "// %s", harmless(w->text.arena, arena_vprintf(w->text.arena, format, args)));
    va_end(args);
}

void write_noted(Writer *w, int width, const char *code, const char *note) {
    write_line(w, "%-*s // %s", width, code, harmless(w->text.arena, note));
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

/* Bytes of a beginning of `text` that fits into `room` and ends before a space, one in as few parentheses as can be found
 * in the second half; all of the text if it fits. */
static size_t fitting(const char *text, size_t room) {
    size_t length = strlen(text), best = 0;
    if (length <= room)
        return length;
    int least = 0, depth = 0;
    for (size_t end = 0; end <= room; end++) {
        depth += strchr("([", text[end]) ? 1 : strchr(")]", text[end]) ? -1 : 0;
        if (text[end] == ' ' && (end < room / 2 || depth <= least)) {
            best = end;
            least = depth;
        }
    }
    const char *space = strchr(text, ' ');
    return best ? best : space ? (size_t)(space - text) : length;
}

void write_comment(Writer *w, int hang, const char *text) {
    int spaces = 0;
    do {
        size_t room = (size_t)(CODE_COLUMNS - 4 * w->indent - 3 - spaces);
        size_t length = fitting(text, room);
        write_remark(w, "%*s%.*s", spaces, "", (int)length, text);
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

void write_enumeration(Writer *w, const char *const *constants, int count) {
    Text line = TEXT(w->text.arena);
    for (int k = 0; k < count; k++)
        text_printf(&line, "%s%s", k ? ", " : "", constants[k]);
    if (4 * w->indent + strlen("enum {  };") + line.length <= LONGEST_LINE) {
        write_line(w, "enum { %s };", text_string(&line));
        return;
    }
    write_open(w, "enum {");
    for (int k = 0; k < count; k++)
        write_line(w, "%s%s", constants[k], k + 1 < count ? "," : "");
    write_close(w, "};");
}

/* A statement ends where nothing is open and the next line does not go on. */
bool is_one_statement(const Writer *lines) {
    int statements = 0;
    for (const char *line = text_string(&lines->text); *line; line = strchr(line, '\n') + 1)
        statements += *line != ' ' && *line != '}' && *line != '#';
    return statements <= 1;
}

void write_braced(Writer *out, const char *head, const Writer *lines) {
    write_open(out, "%s {", head);
    write_all(out, lines);
    write_close(out, "}");
}

void write_block(Writer *out, const char *head, const Writer *lines) {
    if (strstr(text_string(&lines->text), "#pragma") || !is_one_statement(lines)) {
        write_braced(out, head, lines);
        return;
    }
    write_open(out, "%s", head);
    write_all(out, lines);
    out->indent--;
}
