/* The rows of a table and their fields: where lines and separators are, 64 bytes at a time; and cutting a text into chunks.
 *
 * A field that begins with a quote ends with one; inside, separators and line ends are text, and a quote is written twice.
 * A quote anywhere else is text. A quote that is never closed is wrong, and its row ends with its line. */
#include "table.h"

#include <stdlib.h>
#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

/* ---- breaks: separators and line ends ---- */

/* Bit i: at[i] is a break. */
static uint64_t break_mask(const char *at, char separator) {
    uint64_t mask = 0;
#ifdef __SSE2__
    const __m128i separators = _mm_set1_epi8(separator), lines = _mm_set1_epi8('\n');
    for (int i = 0; i < 4; i++) {
        __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)(at + 16 * i));
        __m128i breaks = _mm_or_si128(_mm_cmpeq_epi8(bytes, separators), _mm_cmpeq_epi8(bytes, lines));
        mask |= (uint64_t)(uint32_t)_mm_movemask_epi8(breaks) << 16 * i;
    }
#else
    for (int i = 0; i < 64; i++)
        mask |= (uint64_t)(at[i] == separator || at[i] == '\n') << i;
#endif
    return mask;
}

static uint64_t block_mask(const MtcScan *scan, const char *block) {
    char rest[64] = {0};
    if (scan->end - block >= 64)
        return break_mask(block, scan->separator);
    size_t left = (size_t)(scan->end - block);
    memcpy(rest, block, left); /* nothing beyond the end is read */
    return break_mask(rest, scan->separator) & (((uint64_t)1 << left) - 1);
}

/* Breaks are looked for from `at` on. */
static void scan_from(MtcScan *scan, const char *at) {
    scan->block = at;
    scan->mask = block_mask(scan, at);
}

/* The next break, which is passed; or the end. */
static inline const char *next_break(MtcScan *scan) {
    while (!scan->mask) {
        if (scan->end - scan->block <= 64)
            return scan->end;
        scan->block += 64;
        scan->mask = block_mask(scan, scan->block);
    }
    const char *at = scan->block + __builtin_ctzll(scan->mask);
    scan->mask &= scan->mask - 1;
    return at;
}

/* ---- quotes ---- */

static const char *find_byte(const char *from, const char *end, char byte) {
    return from < end ? (const char *)memchr(from, byte, (size_t)(end - from)) : NULL;
}

/* The quote that closes the field whose text begins at `at`; NULL: none does. */
static const char *closing_quote(const char *at, const char *end, char quote, bool *doubled) {
    *doubled = false;
    while ((at = find_byte(at, end, quote)) != NULL && at + 1 < end && at[1] == quote) {
        at += 2;
        *doubled = true;
    }
    return at;
}

static void row_flaw(MtcRow *row, MtcFlawKind kind, const char *at) {
    if (row->flaw.kind == MTC_FLAW_NONE) {
        row->flaw.kind = kind;
        row->flaw.span.begin = row->flaw.span.end = at;
    }
}

/* A field that begins with a quote, at `at`: the break after it. */
static const char *quoted_field(MtcScan *scan, MtcRow *row, const char *at, MtcSpan *span) {
    const char *close = closing_quote(at + 1, scan->end, scan->quote, &span->doubled);
    if (!close) {
        const char *line = find_byte(at, scan->end, '\n');
        row_flaw(row, MTC_FLAW_QUOTE_OPEN, at);
        span->begin = span->end = at;
        span->doubled = false;
        scan_from(scan, line ? line : scan->end);
        return next_break(scan);
    }
    span->begin = at + 1;
    span->end = close;
    scan_from(scan, close + 1);
    const char *stop = next_break(scan), *rest = close + 1;
    bool line_ends = stop == scan->end || *stop == '\n';
    if (rest < stop && !(line_ends && stop - rest == 1 && *rest == '\r'))
        row_flaw(row, MTC_FLAW_QUOTE_CLOSED, rest);
    return stop;
}

/* ---- rows ---- */

void mtc_scan_begin(MtcScan *scan, const MtcTableForm *form, const char *begin, const char *end) {
    bool quotes = form->quote && find_byte(begin, end, form->quote);
    scan->at = begin;
    scan->end = end;
    scan->separator = form->separator;
    scan->quote = (char)(quotes ? form->quote : 0);
    scan_from(scan, begin);
}

/* Takes the carriage return of a line end away. */
static void end_row(MtcRow *row, const char *stop) {
    row->end = stop;
    if (stop == row->begin || stop[-1] != '\r')
        return;
    row->end--;
    if (row->fields <= row->capacity && row->field[row->fields - 1].end == stop)
        row->field[row->fields - 1].end--;
}

bool mtc_scan_row(MtcScan *scan, MtcRow *row) {
    const char *begin = scan->at, *stop;
    if (begin >= scan->end)
        return false;
    row->begin = begin;
    row->fields = 0;
    row->flaw.kind = MTC_FLAW_NONE;
    do {
        MtcSpan *span = &row->field[row->fields < row->capacity ? row->fields : row->capacity];
        if (scan->quote && begin < scan->end && *begin == scan->quote)
            stop = quoted_field(scan, row, begin, span);
        else {
            span->begin = begin;
            span->end = stop = next_break(scan);
            span->doubled = false;
        }
        row->fields++;
        begin = stop + 1;
    } while (stop < scan->end && *stop == scan->separator);
    scan->at = stop < scan->end ? stop + 1 : stop;
    end_row(row, stop);
    return true;
}

MtcSpan mtc_span_plain(const MtcSpan *span, char quote, char **buffer, size_t *capacity) {
    size_t length = (size_t)(span->end - span->begin), used = 0;
    if (!span->doubled)
        return *span;
    if (length > *capacity)
        *buffer = (char *)mtc_memory(*buffer, *capacity = 2 * length);
    for (const char *at = span->begin; at < span->end; at++) {
        (*buffer)[used++] = *at;
        if (*at == quote)
            at++;
    }
    MtcSpan plain = {*buffer, *buffer + used, false};
    return plain;
}

/* ---- chunks ---- */

/* Where text outside quotes goes on after the quote at `at`. */
static const char *past_quote(const MtcTableForm *form, const char *begin, const char *at, const char *end) {
    bool doubled, opens = at == begin || at[-1] == form->separator || at[-1] == '\n';
    const char *close = opens ? closing_quote(at + 1, end, form->quote, &doubled) : NULL;
    return close ? close + 1 : at + 1;
}

/* The text before `outside` is known to be outside quotes at its end; *quote is the first quote after it. Both move on
 * until `target` is passed. */
static const char *pass(const MtcTableForm *form, const char *begin, const char *end, const char *target,
                        const char *outside, const char **quote) {
    while (*quote && *quote < target) {
        outside = past_quote(form, begin, *quote, end);
        *quote = find_byte(outside, end, form->quote);
    }
    return outside < target ? target : outside;
}

int mtc_cut_chunks(const MtcTableForm *form, const char *bytes, size_t length, size_t size, size_t **cut) {
    const char *end = bytes + length, *at = bytes, *line = bytes;
    const char *quote = form->quote ? find_byte(bytes, end, form->quote) : NULL;
    int count = 0;
    *cut = (size_t *)mtc_memory(NULL, (length / size + 2) * sizeof **cut);
    (*cut)[0] = 0;
    while (line < end) {
        const char *target = (size_t)(end - line) > size ? line + size : end;
        at = pass(form, bytes, end, target, at, &quote);
        while ((line = find_byte(at, end, '\n')) != NULL && quote && quote < line)
            at = pass(form, bytes, end, quote + 1, at, &quote);
        line = line ? line + 1 : end;
        (*cut)[++count] = (size_t)(line - bytes);
    }
    return count;
}
