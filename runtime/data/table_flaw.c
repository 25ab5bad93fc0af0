/* What is wrong with a row, in words. */
#include "data/table.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

void mtc_place_text(const MtcTableText *text, const char *at, char *place, size_t size) {
    int64_t line = 1, character = 1;
    const char *begin = text->bytes, *end;
    while (begin < at && (end = (const char *)memchr(begin, '\n', (size_t)(at - begin))) != NULL) {
        line++;
        begin = end + 1;
    }
    for (const char *c = begin; c < at; c++)
        character += ((unsigned char)*c & 0xC0) != 0x80;
    snprintf(place, size, "%s:%lld:%lld: ", text->path, (long long)line, (long long)character);
}

/* The beginning of what was found, in one line, cut between characters; bytes that are no text are left out. What is printed has
 * no other control characters: there they become escapes. */
static void excerpt(MtcSpan span, char *text, size_t size) {
    const char *bad = mtc_text_bad(span.begin, span.end), *end = bad ? bad : span.end;
    size_t length = (size_t)(end - span.begin), used = 0;
    bool cut = length > size - 4;
    for (length = cut ? size - 4 : length; cut && length > 0 && ((unsigned char)span.begin[length] & 0xC0) == 0x80;)
        length--;
    for (size_t i = 0; i < length; i++)
        text[used++] = span.begin[i] && strchr("\t\n\v\f\r", span.begin[i]) ? ' ' : span.begin[i];
    strcpy(text + used, cut ? "..." : "");
}

const char *mtc_shown(const char *word) {
    static __thread char text[4][48];
    static __thread unsigned next;
    MtcSpan span = {word, word + strlen(word), false};
    char *shown = text[next++ % 4];
    excerpt(span, shown, sizeof text[0]);
    return shown;
}

static void row_flaw_text(const MtcFlaw *flaw, char *text, size_t size) {
    const unsigned char byte = (unsigned char)*flaw->span.begin;
    switch (flaw->kind) {
    case MTC_FLAW_COLUMNS:
        snprintf(text, size, "the row has %d column%s, expected %d", flaw->found, flaw->found == 1 ? "" : "s",
                 flaw->expected);
        break;
    case MTC_FLAW_BYTES: snprintf(text, size, "expected text in UTF-8, found the byte 0x%02x", byte); break;
    case MTC_FLAW_QUOTE_OPEN: snprintf(text, size, "the quote that begins here is never closed"); break;
    default: snprintf(text, size, "expected a separator or the end of the line after the closing quote"); break;
    }
}

/* Yes or no, in some words: what two classes are for. */
static bool is_answer(const char *word) {
    static const char *const answers[] = {"yes", "no", "y", "n", "true", "false", "t", "f"};
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++)
        if (strcasecmp(word, answers[i]) == 0)
            return true;
    return false;
}

static void cell_flaw_text(const MtcFlaw *flaw, char *text, size_t size) {
    const MtcTableColumn *column = flaw->column;
    char found[48];
    excerpt(flaw->span, found, sizeof found);
    switch (flaw->kind) {
    case MTC_FLAW_EMPTY:
        if (*found)
            snprintf(text, size, "column '%s' has '%s', no value; missing = ... in the model says what to do",
                     column->name, found);
        else
            snprintf(text, size, "column '%s' is empty; missing = ... in the model says what to do", column->name);
        break;
    case MTC_FLAW_NUMBER:
        snprintf(text, size, "expected a number in column '%s', found '%s'%s", column->name, found,
                 is_answer(found) ? "; words like that are of a field class[2]" : "");
        break;
    case MTC_FLAW_LARGE:
        snprintf(text, size, "the number in column '%s' is too large for f32: '%s'", column->name, found);
        break;
    case MTC_FLAW_INTEGER:
        snprintf(text, size, "expected a whole number in column '%s', found '%s'", column->name, found);
        break;
    case MTC_FLAW_RANGE:
        snprintf(text, size, "expected %d to %d in column '%s', found '%s'", column->low, column->high, column->name,
                 found);
        break;
    case MTC_FLAW_DATE:
        snprintf(text, size, "expected a date as %s in column '%s', found '%s'", column->date_format, column->name,
                 found);
        break;
    case MTC_FLAW_NO_DAY: snprintf(text, size, "no such day in column '%s': '%s'", column->name, found); break;
    default:
        snprintf(text, size, "the word in column '%s' is longer than 4096 bytes: '%s'", column->name, found);
        break;
    }
}

const char *mtc_flaw_cure(const MtcFlaw *flaw) {
    const size_t length = (size_t)(flaw->span.end - flaw->span.begin);
    bool digits = false;
    for (size_t i = 0; i < length; i++)
        digits |= flaw->span.begin[i] >= '0' && flaw->span.begin[i] <= '9';
    if (flaw->kind == MTC_FLAW_DATE)
        return "where all dates are written another way, the model says which: format = \"%d/%m/%Y\"";
    if (flaw->kind != MTC_FLAW_NUMBER)
        return NULL;
    return digits
               ? "a number is written 1234.5, without signs of thousands, currency or percent; where all are like this "
                 "one, rewrite the column"
               : "where the column has words, its field in the model is a class: class[n]";
}

void mtc_flaw_text(const MtcTableText *text, const MtcFlaw *flaw, char *message, size_t size) {
    mtc_place_text(text, flaw->span.begin, message, size);
    size_t used = strlen(message);
    if (flaw->column)
        cell_flaw_text(flaw, message + used, size - used);
    else
        row_flaw_text(flaw, message + used, size - used);
}
