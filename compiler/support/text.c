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

const char *text_bytes(Arena *arena, int64_t bytes) {
    static const char *const units[] = {"B", "KB", "MB", "GB", "TB"};
    double value = (double)bytes;
    int unit = 0;
    for (; value >= 1000 && unit < 4; unit++)
        value /= 1000;
    return arena_printf(arena, unit ? "%.1f %s" : "%.0f %s", value, units[unit]);
}

const char *text_grouped(Arena *arena, int64_t number) {
    const char *digits = arena_printf(arena, "%lld", (long long)number);
    size_t length = strlen(digits);
    Text text = TEXT(arena);
    for (size_t i = 0; i < length; i++)
        text_printf(&text, i && (length - i) % 3 == 0 ? ",%c" : "%c", digits[i]);
    return text_string(&text);
}
