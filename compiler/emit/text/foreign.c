/* text_visible is the one way of foreign text into a source. */
#include "emit/text/foreign.h"

#include "support/text.h"

#include <stdbool.h>

/* A backslash at the end would join the next line to this one, as would the trigraph of one; blanks behind it are no help. */
static bool joins_lines(const char *text, size_t length) {
    static const char trigraph[] = {'?', '?', '/'};
    while (length && text[length - 1] == ' ')
        length--;
    const char *end = text + length;
    return (length && end[-1] == '\\') ||
           (length >= sizeof trigraph && memcmp(end - sizeof trigraph, trigraph, sizeof trigraph) == 0);
}

const char *harmless(Arena *arena, const char *text) {
    Text out = TEXT(arena);
    text_visible(&out, text, "");
    if (joins_lines(text_string(&out), out.length))
        text_putc(&out, '.');
    return text_string(&out);
}

const char *quoted(Arena *arena, const char *text) {
    if (!text)
        return "NULL";
    Text out = TEXT(arena);
    text_putc(&out, '"');
    text_visible(&out, text, "\"\\?"); /* two question marks may begin a trigraph */
    text_putc(&out, '"');
    return text_string(&out);
}

const char *quoted_character(Arena *arena, char c) {
    Text out = TEXT(arena);
    text_putc(&out, '\'');
    text_visible(&out, (char[]){c, '\0'}, "'\\");
    text_putc(&out, '\'');
    return text_string(&out);
}

const char *file_name(Arena *arena, const char *name) {
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.+-";
    char *safe = arena_strdup(arena, name);
    for (char *c = safe; *c; c++)
        if ((unsigned char)*c < 0x80 && (!strchr(plain, *c) || (c == safe && *c == '-')))
            *c = '_';
    return safe;
}
