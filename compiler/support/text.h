/* A growable string in an arena, for dumps and generated code. */
#ifndef MTC_TEXT_H
#define MTC_TEXT_H

#include "support/arena.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct Text {
    Arena *arena;
    char *at; /* always terminated once anything was written; use text_string() to read */
    size_t length, capacity;
} Text;

#define TEXT(arena_) ((Text){.arena = (arena_)})

void text_printf(Text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
void text_vprintf(Text *text, const char *format, va_list args);
void text_append(Text *text, const char *bytes, size_t length);
void text_puts(Text *text, const char *string);
/* One line of what stands in a model: a comment or space of any kind is one space, strings stay. */
void text_flat(Text *out, const char *text);
void text_putc(Text *text, char c);
const char *text_string(const Text *text); /* "" when empty */

/* The shortest decimal that reads back as `value` ("0.1", "1e-05", "3"); "inf", "-inf", "nan" otherwise. */
void text_number(Text *text, double value);

/* What is visible stays; of the rest each byte becomes an escape of C: "\n", "\t", "\033". `special`: visible characters that
 * get a backslash. */
void text_visible(Text *text, const char *string, const char *special);

/* For XML, between tags or in quotes: escaped, and what XML cannot hold (controls, bytes that are no UTF-8) as U+FFFD. */
void text_xml(Text *text, const char *string);

/* Bytes of the UTF-8 sequence at `at`, or 0 when it is malformed: overlong, a surrogate, beyond U+10FFFF, cut short. */
int utf8_length(const unsigned char *at, const unsigned char *end);

/* The same, and 0 too for what is no character to be seen but a command: control characters, separators of lines, marks that
 * change the direction of writing. What is visible stands for itself in a terminal, in a comment, between quotes. */
int visible_length(const unsigned char *at, const unsigned char *end);

bool text_same(const char *a, const char *b); /* NULL is like NULL only */

/* Amounts for people: "1.3 MB" and "101,770". */
const char *text_bytes(Arena *arena, int64_t bytes);
const char *text_grouped(Arena *arena, int64_t number);

#endif
