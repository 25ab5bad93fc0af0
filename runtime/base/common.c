#include "base/common.h"

#include <limits.h>
#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

/* ---- what a terminal may have ---- */

/* The bytes of the character at `at` that a terminal would obey; 0: it shows it. C1 controls are two bytes of UTF-8, or
 * alone where no UTF-8 is expected. */
static int obeyed(const unsigned char *at, const unsigned char *end, const char *kept) {
    const size_t left = (size_t)(end - at);
    if (*at < 0x20 || *at == 0x7F)
        return !*at || !strchr(kept, *at);
    if (*at == 0xC2 && left > 1 && at[1] >= 0x80 && at[1] < 0xA0)
        return 2;
    if (*at != 0xE2 || left < 3)
        return 0;
    const int character = 0x2000 | (at[1] & 0x3F) << 6 | (at[2] & 0x3F);
    const bool turns = character == 0x200E || character == 0x200F || (character >= 0x2028 && character <= 0x202E) ||
                       (character >= 0x2066 && character <= 0x2069);
    return turns ? 3 : 0;
}

/* Of UTF-8: its bytes belong together. */
static int length_of(const unsigned char *at, const unsigned char *end) {
    int length = *at >= 0xF0 ? 4 : *at >= 0xE0 ? 3 : *at >= 0xC2 ? 2 : 1;
    for (int i = 1; i < length; i++)
        if (end - at <= i || (at[i] & 0xC0) != 0x80)
            return 1;
    return length;
}

int mtc_characters(const char *text) {
    int count = 0;
    for (; *text; text++)
        count += ((unsigned char)*text & 0xC0) != 0x80;
    return count;
}

static bool is_stray(const unsigned char *at, int length) {
    return length == 1 && *at >= 0x80 && *at < 0xA0;
}

static void add_escaped(MtcText *text, const unsigned char *at, int length) {
    if (length == 3)
        mtc_text_add(text, "\\u%04x", 0x2000u | (at[1] & 0x3Fu) << 6 | (at[2] & 0x3Fu));
    else if (length == 2)
        mtc_text_add(text, "\\u%04x", (unsigned)at[1]);
    else if (*at == '\n' || *at == '\t' || *at == '\r')
        mtc_text_add(text, "\\%c", *at == '\n' ? 'n' : *at == '\t' ? 't' : 'r');
    else
        mtc_text_add(text, "\\x%02x", *at);
}

void mtc_text_harmless(MtcText *text, const char *bytes, size_t size, const char *kept) {
    const unsigned char *at = (const unsigned char *)bytes, *end = at + size;
    mtc_text_add(text, "%s", "");
    for (int length; at < end; at += length) {
        const int control = obeyed(at, end, kept);
        length = control ? control : length_of(at, end);
        if (control || is_stray(at, length))
            add_escaped(text, at, length);
        else
            mtc_text_add(text, "%.*s", length, (const char *)at);
    }
}

static bool is_harmless(const char *string, const char *kept) {
    const unsigned char *at = (const unsigned char *)string, *end = at + strlen(string);
    for (int length; at < end; at += length) {
        length = length_of(at, end);
        if (obeyed(at, end, kept) || is_stray(at, length))
            return false;
    }
    return true;
}

static const char *harmless_but(const char *string, const char *kept) {
    static __thread MtcText buffers[8];
    static __thread unsigned next;
    if (is_harmless(string, kept))
        return string;
    MtcText *text = &buffers[next++ % 8];
    text->length = 0;
    mtc_text_harmless(text, string, strlen(string), kept);
    return text->at;
}

const char *mtc_harmless(const char *string) {
    return harmless_but(string, "");
}

const char *mtc_harmless_lines(const char *string) {
    return harmless_but(string, "\n\t");
}

/* ---- faults ---- */

/* Names and words of files are in it, and it is on its way to a terminal. */
static void fault_add(MtcFault *fault, size_t at, const char *format, va_list args) {
    char said[sizeof fault->text];
    vsnprintf(said, sizeof said - at, format, args);
    snprintf(fault->text + at, sizeof fault->text - at, "%s", mtc_harmless_lines(said));
}

int mtc_fail(MtcFault *fault, int code, const char *format, ...) {
    va_list args;
    va_start(args, format);
    fault->code = code;
    fault_add(fault, 0, format, args);
    va_end(args);
    return code;
}

void mtc_note(MtcFault *fault, const char *format, ...) {
    va_list args;
    size_t length = strlen(fault->text);
    if (length + 4 >= sizeof fault->text)
        return;
    memcpy(fault->text + length, "\n  ", 4);
    va_start(args, format);
    fault_add(fault, length + 3, format, args);
    va_end(args);
}

int mtc_no_memory(MtcFault *fault, size_t bytes, const char *what) {
    return mtc_fail(fault, MTC_UNAVAILABLE, "not enough memory: %s needs %s", what, mtc_bytes((double)bytes));
}

static __thread jmp_buf *way_out; /* of the thread's innermost guard */

void mtc_out_of_memory(void) {
    if (way_out)
        longjmp(*way_out, 1);
    fputs("out of memory\n", stderr);
    exit(MTC_UNAVAILABLE);
}

int mtc_guard(MtcFault *fault, int (*call)(void *context), void *context) {
    jmp_buf here, *const outer = way_out;
    const locale_t callers = uselocale(newlocale(LC_ALL_MASK, "C", (locale_t)0));
    int code;
    if (setjmp(here) != 0)
        code = fault ? mtc_fail(fault, MTC_UNAVAILABLE, "out of memory") : MTC_UNAVAILABLE;
    else {
        way_out = &here;
        code = call(context);
    }
    way_out = outer;
    uselocale(callers);
    return code;
}

void *mtc_memory(void *old, size_t bytes) {
    void *memory = realloc(old, bytes ? bytes : 1);
    if (!memory)
        mtc_out_of_memory();
    return memory;
}

void *mtc_zeroed(size_t bytes) {
    return memset(mtc_memory(NULL, bytes), 0, bytes);
}

void mtc_free_strings(char **string, int count) {
    for (int i = 0; i < count; i++)
        free(string[i]);
    free(string);
}

double mtc_seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* One of eight buffers in turn, per thread: enough for the arguments of one message. */
static char *scratch_text(size_t *size) {
    static __thread char buffers[8][160];
    static __thread unsigned next;
    *size = sizeof buffers[0];
    return buffers[next++ % 8];
}

const char *mtc_bytes(double bytes) {
    static const char *const unit[] = {"bytes", "KB", "MB", "GB", "TB", "PB"};
    int u = 0;
    size_t size;
    char *text = scratch_text(&size);
    while (bytes >= 1000 && u < 5) {
        bytes /= 1000;
        u++;
    }
    snprintf(text, size, u && bytes < 100 ? "%.1f %s" : "%.0f %s", bytes, unit[u]);
    return text;
}

const char *mtc_index(int64_t element, int rank, const int64_t *dim) {
    int64_t index[8];
    for (int i = rank - 1; i >= 0; i--) {
        index[i] = element % dim[i];
        element /= dim[i];
    }
    return mtc_shape(rank, index);
}

const char *mtc_shape(int rank, const int64_t *dim) {
    size_t size, length = 1;
    char *text = scratch_text(&size);
    strcpy(text, "[");
    for (int i = 0; i < rank && length < size - 24; i++)
        length += (size_t)snprintf(text + length, size - length, i ? ", %lld" : "%lld", (long long)dim[i]);
    strcpy(text + length, "]");
    return text;
}

const char *mtc_number(double value) {
    size_t size;
    char *text = scratch_text(&size);
    if (value != value)
        return "NaN";
    snprintf(text, size, "%.6g", value);
    return text;
}

double mtc_shortest(float value) {
    char digits[32];
    for (int precision = 6; precision < 9; precision++) {
        snprintf(digits, sizeof digits, "%.*g", precision, (double)value);
        if (strtof(digits, NULL) == value)
            return strtod(digits, NULL);
    }
    return (double)value;
}

size_t mtc_type_size(MtcType type) {
    static const size_t sizes[] = {4, 4, 1, 1, 8, 2, 2, 2, 1, 1};
    return sizes[type];
}

bool mtc_is_real(MtcType type) {
    return type == MTC_F32 || type == MTC_F64 || type == MTC_BF16 || type == MTC_F16 || type == MTC_E4M3;
}

const char *mtc_type_name(MtcType type) {
    static const char *const names[] = {"f32", "i32", "u8", "bool", "f64", "bf16", "u16", "f16", "i8", "e4m3"};
    return names[type];
}

int64_t mtc_elements(int rank, const int64_t *dim) {
    int64_t n = 1;
    for (int i = 0; i < rank; i++)
        if (__builtin_mul_overflow(n, dim[i], &n))
            n = INT64_MAX;
    return n;
}

void mtc_text_add(MtcText *text, const char *format, ...) {
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    size_t more = (size_t)vsnprintf(NULL, 0, format, args);
    if (text->length + more + 1 > text->capacity) {
        text->capacity = 2 * (text->length + more + 1);
        text->at = (char *)mtc_memory(text->at, text->capacity);
    }
    vsnprintf(text->at + text->length, more + 1, format, again);
    text->length += more;
    va_end(again);
    va_end(args);
}

void mtc_text_json(MtcText *text, const char *string) {
    mtc_text_add(text, "\"");
    for (const unsigned char *c = (const unsigned char *)string; *c; c++)
        if (*c == '"' || *c == '\\')
            mtc_text_add(text, "\\%c", *c);
        else
            mtc_text_add(text, *c < 0x20 ? "\\u%04x" : "%c", *c);
    mtc_text_add(text, "\"");
}

/* Levenshtein's distance, one row of the table at a time; names longer than the row are no candidates. */
static int edit_distance(const char *a, const char *b) {
    int row[64], n = (int)strlen(b);
    if (n >= 64)
        return INT_MAX;
    for (int j = 0; j <= n; j++)
        row[j] = j;
    for (int i = 1; a[i - 1]; i++) {
        int diagonal = row[0];
        row[0] = i;
        for (int j = 1; j <= n; j++) {
            int best = diagonal + (a[i - 1] != b[j - 1]);
            diagonal = row[j];
            best = best < row[j] + 1 ? best : row[j] + 1;
            row[j] = best < row[j - 1] + 1 ? best : row[j - 1] + 1;
        }
    }
    return row[n];
}

const char *mtc_nearest(const char *name, const char *const *candidates, int count) {
    const char *best = NULL;
    int best_distance = 2 + (int)strlen(name) / 4;
    for (int i = 0; i < count; i++) {
        int distance = edit_distance(name, candidates[i]);
        bool alike = distance < (int)strlen(candidates[i]) || strcasecmp(name, candidates[i]) == 0;
        if (alike && distance < best_distance) {
            best_distance = distance;
            best = candidates[i];
        }
    }
    return best;
}
