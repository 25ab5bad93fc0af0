/* The rows of a table and their fields: where lines and separators are, 64 bytes at a time; and cutting a text into chunks.
 *
 * A field that begins with a quote ends with one; inside, separators and line ends are text, and a quote is written twice.
 * A quote anywhere else is text. A quote that is never closed is wrong, and its row ends with its line. */
#include "data/table.h"

#include <stdlib.h>
#include <string.h>

/* ---- breaks: separators and line ends ---- */

/* Bit i: byte i of eight is this one. */
static inline uint64_t equal_bytes(uint64_t bytes, char wanted) {
    const uint64_t each = 0x0101010101010101u, low = 0x7F * each;
    uint64_t other = bytes ^ (unsigned char)wanted * each;
    uint64_t equal = ~(((other & low) + low) | other | low) >> 7;
    return equal * 0x0102040810204080u >> 56;
}

/* Bit i: at[i] is a break. */
static inline uint64_t break_mask(const char *at, char separator) {
    uint64_t mask = 0;
    for (int i = 0; i < 64; i += 8) {
        uint64_t bytes = mtc_load_eight(at + i);
        mask |= (equal_bytes(bytes, separator) | equal_bytes(bytes, '\n')) << i;
    }
    return mask;
}

/* Adds where the bits of a block's mask are: by eights, some of them for nothing, so that few branches depend on the text. */
static inline __attribute__((always_inline)) void add_breaks(MtcScan *scan, unsigned block, uint64_t mask) {
    const uint64_t last = (uint64_t)1 << 63; /* the zeros of 0 cannot be counted */
    uint16_t *to = scan->stop + scan->count;
    scan->count += __builtin_popcountll(mask);
    do {
        for (int i = 0; i < 8; i++, mask &= mask - 1)
            *to++ = (uint16_t)(block + (unsigned)__builtin_ctzll(mask | last));
    } while (mask);
}

#ifdef MTC_AVX2
MTC_AVX2 static inline uint64_t wide_mask(const char *at, char separator) {
    const __m256i separators = _mm256_set1_epi8(separator), lines = _mm256_set1_epi8('\n');
    uint64_t mask = 0;
    for (int i = 0; i < 64; i += 32) {
        __m256i bytes = _mm256_loadu_si256((const __m256i *)(const void *)(at + i));
        __m256i breaks = _mm256_or_si256(_mm256_cmpeq_epi8(bytes, separators), _mm256_cmpeq_epi8(bytes, lines));
        mask |= (uint64_t)(uint32_t)_mm256_movemask_epi8(breaks) << i;
    }
    return mask;
}

MTC_AVX2 static unsigned add_wide(MtcScan *scan, unsigned size) {
    unsigned at = 0;
    for (; at + 64 <= size; at += 64)
        add_breaks(scan, at, wide_mask(scan->base + at, scan->separator));
    return at;
}
#endif

/* Finds the breaks from `from` on, in so many bytes. */
static void find_breaks(MtcScan *scan, const char *from) {
    unsigned size = scan->end - from < MTC_SCAN_BYTES ? (unsigned)(scan->end - from) : MTC_SCAN_BYTES, at = 0;
    scan->base = from;
    scan->known = from + size;
    scan->next = scan->count = 0;
#ifdef MTC_AVX2
    if (mtc_has_avx2())
        at = add_wide(scan, size);
#endif
    for (; at + 64 <= size; at += 64)
        add_breaks(scan, at, break_mask(from + at, scan->separator));
    if (at < size) {
        char rest[64] = {0}; /* nothing beyond the end is read */
        memcpy(rest, from + at, size - at);
        add_breaks(scan, at, break_mask(rest, scan->separator));
    }
}

/* The next break, which is passed; or the end. */
static inline const char *next_break(MtcScan *scan) {
    while (scan->next == scan->count) {
        if (scan->known == scan->end)
            return scan->end;
        find_breaks(scan, scan->known);
    }
    return scan->base + scan->stop[scan->next++];
}

/* Passes the breaks before `at`. */
static void pass_breaks(MtcScan *scan, const char *at) {
    if (at > scan->known)
        find_breaks(scan, at);
    while (scan->next < scan->count && scan->base + scan->stop[scan->next] < at)
        scan->next++;
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
        pass_breaks(scan, line ? line : scan->end);
        return next_break(scan);
    }
    span->begin = at + 1;
    span->end = close;
    pass_breaks(scan, close + 1);
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
    find_breaks(scan, begin);
}

/* Where the row ends, without the carriage return of its line end. */
static const char *row_end(const MtcRow *row, const char *stop) {
    return stop - (stop > row->begin && stop[-1] == '\r');
}

/* A row of as many fields as there is room for, without quotes, whose breaks are all known: as most are. */
static inline bool plain_row(MtcScan *scan, MtcRow *row) {
    const int fields = row->capacity;
    if (scan->quote || fields == 0)
        return false;
    if (scan->count - scan->next < fields && scan->base < scan->at && scan->known < scan->end)
        find_breaks(scan, scan->at);
    if (scan->count - scan->next < fields)
        return false;
    const char *base = scan->base;
    const uint16_t *stop = scan->stop + scan->next;
    int line = 0;
    while (line < fields && base[stop[line]] != '\n')
        line++;
    if (line != fields - 1)
        return false;
    row->base = base;
    row->stop = stop;
    row->fields = fields;
    row->end = row_end(row, base + stop[line]);
    scan->at = base + stop[line] + 1;
    scan->next += fields;
    return true;
}

bool mtc_scan_row(MtcScan *scan, MtcRow *row) {
    const char *begin = scan->at, *stop;
    if (begin >= scan->end)
        return false;
    row->begin = begin;
    row->flaw.kind = MTC_FLAW_NONE;
    if (plain_row(scan, row))
        return true;
    row->stop = NULL;
    row->fields = 0;
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
    row->end = row_end(row, stop);
    if (row->fields <= row->capacity && row->field[row->fields - 1].end == stop)
        row->field[row->fields - 1].end = row->end;
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

static int cut_known(const MtcTableForm *form, const char *bytes, size_t length, size_t size, size_t begin,
                     size_t *cut) {
    const char *end = bytes + length, *at = bytes, *line = bytes;
    const char *quote = form->quote ? find_byte(bytes, end, form->quote) : NULL;
    int count = 0;
    while (line < end) {
        const char *target = (size_t)(end - line) > size ? line + size : end;
        at = pass(form, bytes, end, target, at, &quote);
        while ((line = find_byte(at, end, '\n')) != NULL && quote && quote < line)
            at = pass(form, bytes, end, quote + 1, at, &quote);
        line = line ? line + 1 : end;
        cut[++count] = begin + (size_t)(line - bytes);
    }
    return count;
}

int mtc_cut_chunks(const MtcTableForm *form, MtcTableText *text, size_t begin, size_t size, size_t **cut) {
    size_t length = text->size - begin;
    int count = 0;
    *cut = (size_t *)mtc_memory(NULL, (length / size + 2) * sizeof **cut);
    (*cut)[0] = begin;
    if (text->known == text->size)
        return cut_known(form, text->bytes + begin, length, size, begin, *cut);
    while ((*cut)[count] < text->size) {
        size_t line = (*cut)[count++];
        (*cut)[count] = text->size - line > size ? mtc_text_line(text, line + size) : text->size;
    }
    return count;
}
