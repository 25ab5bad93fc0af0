#include "support/text.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

static void reserve(Text *text, size_t extra) {
    size_t needed = text->length + extra + 1;
    if (needed <= text->capacity)
        return;
    size_t capacity = text->capacity ? text->capacity : 256;
    while (capacity < needed)
        capacity *= 2;
    char *grown = arena_alloc(text->arena, capacity);
    if (text->length)
        memcpy(grown, text->at, text->length);
    text->at = grown;
    text->capacity = capacity;
}

void text_append(Text *text, const char *bytes, size_t length) {
    reserve(text, length);
    memcpy(text->at + text->length, bytes, length);
    text->length += length;
    text->at[text->length] = '\0';
}

void text_puts(Text *text, const char *string) {
    text_append(text, string, strlen(string));
}

void text_putc(Text *text, char c) {
    text_append(text, &c, 1);
}

void text_vprintf(Text *text, const char *format, va_list args) {
    va_list measure;
    va_copy(measure, args);
    int length = vsnprintf(NULL, 0, format, measure);
    va_end(measure);
    reserve(text, (size_t)length);
    vsnprintf(text->at + text->length, (size_t)length + 1, format, args);
    text->length += (size_t)length;
}

void text_printf(Text *text, const char *format, ...) {
    va_list args;
    va_start(args, format);
    text_vprintf(text, format, args);
    va_end(args);
}

const char *text_string(const Text *text) {
    return text->at ? text->at : "";
}

void text_number(Text *text, double value) {
    char digits[32];
    bool whole = value > -1e15 && value < 1e15 && value == (double)(long long)value;
    if (whole) {
        text_printf(text, "%.0f", value);
        return;
    }
    for (int precision = 1; precision <= 17; precision++) {
        snprintf(digits, sizeof digits, "%.*g", precision, value);
        if (strtod(digits, NULL) == value)
            break;
    }
    text_puts(text, digits);
}

int utf8_length(const unsigned char *at, const unsigned char *end) {
    int length = *at < 0x80 ? 1 : *at < 0xC2 ? 0 : *at < 0xE0 ? 2 : *at < 0xF0 ? 3 : *at < 0xF5 ? 4 : 0;
    if (length == 0 || end - at < length)
        return 0;
    for (int i = 1; i < length; i++)
        if ((at[i] & 0xC0) != 0x80)
            return 0;
    bool overlong = (*at == 0xE0 && at[1] < 0xA0) || (*at == 0xF0 && at[1] < 0x90);
    bool outside = (*at == 0xED && at[1] >= 0xA0) || (*at == 0xF4 && at[1] >= 0x90);
    return overlong || outside ? 0 : length;
}

static unsigned decoded(const unsigned char *at, int length) {
    unsigned point = length == 1 ? *at : *at & (0xFFu >> (length + 1));
    for (int i = 1; i < length; i++)
        point = point << 6 | (at[i] & 0x3Fu);
    return point;
}

int visible_length(const unsigned char *at, const unsigned char *end) {
    static const struct {
        unsigned first, last;
    } commands[] = {
        {0, 0x1F}, {0x7F, 0x9F}, {0x61C, 0x61C}, {0x200E, 0x200F}, {0x2028, 0x202E}, {0x2066, 0x2069}, {0xFEFF, 0xFEFF},
    };
    if (*at >= ' ' && *at < 0x7F)
        return 1; /* nearly all of them */
    int length = utf8_length(at, end);
    unsigned point = length ? decoded(at, length) : 0;
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        if (point >= commands[i].first && point <= commands[i].last)
            return 0;
    return length;
}

/* Octal, since it ends after three digits whatever follows. */
static void put_escape(Text *out, unsigned char byte) {
    if (byte == '\n' || byte == '\t')
        text_puts(out, byte == '\n' ? "\\n" : "\\t");
    else
        text_printf(out, "\\%03o", byte);
}

void text_visible(Text *text, const char *string, const char *special) {
    const unsigned char *at = (const unsigned char *)string, *end = at + strlen(string);
    while (at < end) {
        int length = visible_length(at, end);
        if (length == 0)
            put_escape(text, *at);
        else if (strchr(special, *at))
            text_printf(text, "\\%c", *at);
        else
            text_append(text, (const char *)at, (size_t)length);
        at += length ? length : 1;
    }
}

static const char *xml_entity(unsigned char c) {
    switch (c) {
    case '<': return "&lt;";
    case '>': return "&gt;";
    case '&': return "&amp;";
    case '"': return "&quot;";
    default: return NULL;
    }
}

void text_xml(Text *text, const char *string) {
    const unsigned char *at = (const unsigned char *)string, *end = at + strlen(string);
    while (at < end) {
        int length = utf8_length(at, end);
        const char *entity = xml_entity(*at);
        if (entity)
            text_puts(text, entity);
        else if (length && *at >= ' ' && *at != 0x7F)
            text_append(text, (const char *)at, (size_t)length);
        else
            text_puts(text, "\xEF\xBF\xBD");
        at += length ? length : 1;
    }
}

const char *text_bytes(Arena *arena, int64_t bytes) {
    static const char *const units[] = {"B", "KB", "MB", "GB", "TB"};
    double value = (double)bytes;
    int unit = 0;
    for (; value >= 1000 && unit < 4; unit++)
        value /= 1000;
    return arena_printf(arena, unit ? "%.1f %s" : "%.0f %s", value, units[unit]);
}

bool text_same(const char *a, const char *b) {
    return a && b ? strcmp(a, b) == 0 : a == b;
}

const char *text_grouped(Arena *arena, int64_t number) {
    const char *digits = arena_printf(arena, "%lld", (long long)number);
    size_t length = strlen(digits);
    Text text = TEXT(arena);
    for (size_t i = 0; i < length; i++)
        text_printf(&text, i && (length - i) % 3 == 0 ? ",%c" : "%c", digits[i]);
    return text_string(&text);
}

void text_flat(Text *out, const char *text) {
    bool in_string = false, pending = false;
    for (; *text; text++) {
        if (!in_string && *text == '#')
            text += strcspn(text, "\n");
        if (!*text)
            return;
        if (!in_string && strchr(" \t\r\n", *text)) {
            pending = true;
            continue;
        }
        in_string ^= *text == '"';
        text_puts(out, pending ? " " : "");
        text_putc(out, *text);
        pending = false;
    }
}
