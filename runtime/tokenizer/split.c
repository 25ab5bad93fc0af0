/* The patterns are regular expressions, scanned by hand: one table of classes, a few comparisons for a word. */
#include "tokenizer/split.h"

#include <string.h>

/* 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+ */
const MtcPattern mtc_gpt2_pattern = {
    "that of GPT-2", "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+", 0, false};
static const MtcPattern llama3_pattern = {"that of Llama 3",
                                          "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| "
                                          "?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|"
                                          "\\s+(?!\\S)|\\s+",
                                          3, true};

const MtcPattern *mtc_pattern_of(const char *regex) {
    return strcmp(regex, mtc_gpt2_pattern.regex) == 0 ? &mtc_gpt2_pattern
           : strcmp(regex, llama3_pattern.regex) == 0 ? &llama3_pattern
                                                      : NULL;
}

const char *mtc_pattern_names(void) {
    return "that of GPT-2 and that of Llama 3";
}

typedef struct Scanner {
    const MtcPattern *pattern;
    const uint8_t *classes, *end;
} Scanner;

static MtcCharacter scan_class(const Scanner *s, const uint8_t *at, int *length) {
    uint32_t code = *at;
    *length = code < 0x80 ? 1 : mtc_character(at, s->end, &code);
    return (MtcCharacter)s->classes[code];
}

/* The end of the characters of one kind, at most so many. */
static const uint8_t *scan_run(const Scanner *s, const uint8_t *at, MtcCharacter kind, int most) {
    int length;
    for (int count = 0; at < s->end && count != most && scan_class(s, at, &length) == kind; count++)
        at += length;
    return at;
}

static bool is_line_end(uint8_t byte) {
    return byte == '\r' || byte == '\n';
}

/* 's, 't, 're, 've, 'm, 'll, 'd; where case does not count, the long s is one too (U+017F, C5 BF). Bytes of it, or 0. */
static int contraction(const Scanner *s, const uint8_t *at) {
    const int fold = s->pattern->lines ? 0x20 : 0;
    const ptrdiff_t room = s->end - at;
    if (*at != '\'' || room < 2)
        return 0;
    const uint8_t first = at[1] >= 'A' && at[1] <= 'Z' ? at[1] | fold : at[1];
    if (first == 's' || first == 't' || first == 'm' || first == 'd')
        return 2;
    if (room < 3)
        return 0;
    const uint8_t second = at[2] >= 'A' && at[2] <= 'Z' ? at[2] | fold : at[2];
    const bool two = ((first == 'r' || first == 'v') && second == 'e') || (first == 'l' && second == 'l');
    return two || (fold && first == 0xC5 && second == 0xBF) ? 3 : 0;
}

/* Of white space, the last character is left for the word behind it: \s+(?!\S)|\s+. Where lines count, all up to the last
 * line end comes first: \s*[\r\n]+. */
static const uint8_t *spaces_end(const Scanner *s, const uint8_t *at) {
    const uint8_t *last = at, *line = NULL, *next = at;
    int length;
    while (next < s->end && scan_class(s, next, &length) == MTC_SPACE) {
        last = next;
        line = is_line_end(*next) ? next + 1 : line;
        next += length;
    }
    return s->pattern->lines && line ? line : next == s->end || last == at ? next : last;
}

/*  ?[^\s\p{L}\p{N}]+, with the line ends behind it where lines count. */
static const uint8_t *others_end(const Scanner *s, const uint8_t *at) {
    at = scan_run(s, at, MTC_OTHER, -1);
    while (s->pattern->lines && at < s->end && is_line_end(*at))
        at++;
    return at;
}

/* Where a word of letters may begin with another character. */
static bool may_lead(const Scanner *s, const uint8_t *at, MtcCharacter kind) {
    return s->pattern->lines ? kind != MTC_NUMBER && !is_line_end(*at) : *at == ' ';
}

const uint8_t *mtc_word_end(const MtcPattern *pattern, const uint8_t *classes, const uint8_t *text,
                            const uint8_t *end) {
    const Scanner s = {pattern, classes, end};
    const int most = pattern->most_digits ? pattern->most_digits : -1;
    int length, ignored;
    const int short_word = contraction(&s, text);
    if (short_word)
        return text + short_word;
    const MtcCharacter kind = scan_class(&s, text, &length);
    if (kind == MTC_LETTER)
        return scan_run(&s, text, MTC_LETTER, -1);
    const uint8_t *behind = text + length;
    const MtcCharacter following = behind < end ? scan_class(&s, behind, &ignored) : MTC_SPACE;
    if (following == MTC_LETTER && may_lead(&s, text, kind))
        return scan_run(&s, behind, MTC_LETTER, -1);
    if (kind == MTC_NUMBER)
        return scan_run(&s, text, MTC_NUMBER, most);
    if (kind == MTC_OTHER)
        return others_end(&s, text);
    if (*text == ' ' && following == MTC_OTHER)
        return others_end(&s, behind);
    if (*text == ' ' && following == MTC_NUMBER && !pattern->lines)
        return scan_run(&s, behind, MTC_NUMBER, most);
    return spaces_end(&s, text);
}

/* White space behind what is none begins a word, in either pattern, but line ends that may stay with the word before: they do
 * behind what is neither letter nor number. */
bool mtc_words_end(const MtcPattern *pattern, const uint8_t *classes, const uint8_t *begin, const uint8_t *text,
                   const uint8_t *end) {
    const Scanner s = {pattern, classes, end};
    uint32_t code;
    int length;
    if (scan_class(&s, text, &length) != MTC_SPACE)
        return false;
    mtc_character_before(text, begin, &code);
    const MtcCharacter before = (MtcCharacter)classes[code];
    return before != MTC_SPACE && !(pattern->lines && is_line_end(*text) && before == MTC_OTHER);
}
