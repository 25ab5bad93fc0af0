#include "common.h"

#include <limits.h>
#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

static void fault_add(MtcFault *fault, size_t at, const char *format, va_list args) {
    vsnprintf(fault->text + at, sizeof fault->text - at, format, args);
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
    static const size_t sizes[] = {4, 4, 1, 1, 8, 2, 2};
    return sizes[type];
}

const char *mtc_type_name(MtcType type) {
    static const char *const names[] = {"f32", "i32", "u8", "bool", "f64", "bf16", "u16"};
    return names[type];
}

int64_t mtc_elements(int rank, const int64_t *dim) {
    int64_t n = 1;
    for (int i = 0; i < rank; i++)
        n *= dim[i];
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
