#include "weights/rename.h"

#include "support/file.h"
#include "support/text.h"

static const Span nowhere = {0};

/* ---- the file ---- */

typedef struct RuleReader {
    Diag *diag;
    Source *source;
    Rules *rules;
} RuleReader;

static bool is_space(char c) {
    return c == ' ' || c == '\t' || c == '\r';
}

/* Without the white space around it. */
static Span trimmed(Span span) {
    const char *text = span.source->text;
    while (span.begin < span.end && is_space(text[span.begin]))
        span.begin++;
    while (span.begin < span.end && is_space(text[span.end - 1]))
        span.end--;
    return span;
}

static int stars(const char *pattern) {
    int count = 0;
    for (; *pattern; pattern++)
        count += *pattern == '*';
    return count;
}

/* Where `->` stands; the span's end: nowhere. */
static uint32_t find_arrow(Span line) {
    uint32_t at = line.begin;
    while (at < line.end && !(at + 1 < line.end && memcmp(line.source->text + at, "->", 2) == 0))
        at++;
    return at;
}

static bool read_rule(RuleReader *r, Span line) {
    const uint32_t arrow = find_arrow(line);
    if (arrow == line.end) {
        diag_error(r->diag, line, "expected a rule: pattern -> replacement");
        return false;
    }
    const Span left = trimmed((Span){line.source, line.begin, arrow}),
               right = trimmed((Span){line.source, arrow + 2, line.end});
    Rule rule = {span_text(diag_arena(r->diag), left), span_text(diag_arena(r->diag), right), line, 0};
    if (!*rule.pattern) {
        diag_error(r->diag, line, "the rule has no pattern before ->");
        return false;
    }
    if (stars(rule.replacement) > stars(rule.pattern)) {
        diag_error(r->diag, right,
                   "the replacement has %d '*', and the pattern %d: each stands for one of the pattern's",
                   stars(rule.replacement), stars(rule.pattern));
        return false;
    }
    VEC_PUSH(diag_arena(r->diag), r->rules, rule);
    return true;
}

static bool read_lines(RuleReader *r) {
    const Source *source = r->source;
    bool good = true;
    for (uint32_t at = 0; at < source->size;) {
        const char *stop = memchr(source->text + at, '\n', source->size - at);
        const uint32_t end = stop ? (uint32_t)(stop - source->text) : (uint32_t)source->size;
        const char *comment = memchr(source->text + at, '#', end - at);
        const Span line = trimmed((Span){source, at, comment ? (uint32_t)(comment - source->text) : end});
        if (line.begin < line.end)
            good &= read_rule(r, line);
        at = end + 1;
    }
    return good;
}

bool rules_read(Diag *diag, const char *path, Rules *rules) {
    enum { MOST_BYTES = 16 << 20 };
    const char *why;
    Arena *arena = diag_arena(diag);
    Source *source = NEW(arena, Source);
    source->path = path;
    source->text = file_read(arena, path, &source->size, &why);
    if (!source->text) {
        diag_error(diag, nowhere, "cannot read '%s': %s", path, why);
        return false;
    }
    if (source->size > MOST_BYTES || memchr(source->text, '\0', source->size)) {
        diag_error(diag, nowhere, "'%s' is no text of rules", path);
        return false;
    }
    source_index(arena, source);
    RuleReader reader = {diag, source, rules};
    return read_lines(&reader);
}

/* ---- names ---- */

/* What a star stands for. */
typedef struct Capture {
    const char *at;
    size_t length;
} Capture;

/* What the last star stands for grows until the rest fits. */
static bool match(const char *pattern, const char *name, Capture *captures) {
    const char *star = NULL;
    int count = 0;
    while (*name || *pattern == '*')
        if (*pattern == '*') {
            star = pattern++;
            captures[count++] = (Capture){name, 0};
        } else if (*name && *pattern == *name) {
            pattern++;
            name++;
        } else if (star && *name) {
            Capture *last = &captures[count - 1];
            pattern = star + 1;
            name = last->at + ++last->length;
        } else {
            return false;
        }
    return *pattern == '\0';
}

static const char *replaced(Arena *arena, const char *replacement, const Capture *captures) {
    Text name = TEXT(arena);
    for (; *replacement; replacement++)
        if (*replacement == '*') {
            text_append(&name, captures->at, captures->length);
            captures++;
        } else {
            text_putc(&name, *replacement);
        }
    return text_string(&name);
}

const char *rules_apply(Arena *arena, Rules *rules, const char *name) {
    int most = 0;
    for (int i = 0; i < rules->count; i++)
        most = stars(rules->at[i].pattern) > most ? stars(rules->at[i].pattern) : most;
    Capture *captures = NEW_ARRAY(arena, Capture, most + 1);
    for (int i = 0; i < rules->count; i++) {
        Rule *rule = &rules->at[i];
        if (!match(rule->pattern, name, captures))
            continue;
        rule->used++;
        return *rule->replacement ? replaced(arena, rule->replacement, captures) : NULL;
    }
    return name;
}

void rules_report(Diag *diag, const Rules *rules) {
    for (int i = 0; i < rules->count; i++)
        if (!rules->at[i].used)
            diag_warning(diag, rules->at[i].src, "the rule matches no tensor that rules before it left");
}
