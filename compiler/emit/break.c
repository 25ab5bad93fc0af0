/* Breaking lines that are too long in the places where clang-format breaks them. */
#include "emit/index.h"
#include "emit/writer.h"

typedef struct Breaker {
    Writer *w;
    PutLine put;
} Breaker;

static int nesting(char c) {
    return strchr("([{", c) ? 1 : strchr(")]}", c) ? -1 : 0;
}

/* Behind the last "= " outside of all parentheses; NULL: no assignment. */
static const char *assigned(const char *text) {
    const char *last = NULL;
    int depth = 0;
    for (const char *at = text; *at; at++) {
        depth += nesting(*at);
        if (depth == 0 && at > text && strncmp(at, "= ", 2) == 0 && !strchr("<>!=", at[-1]))
            last = at + 2;
    }
    return last;
}

/* Bytes up to and with the last operator of strength `prec` that ends within `room`; 0: there is none. */
static size_t up_to_operator(const char *text, int prec, size_t room) {
    size_t end = 0;
    int depth = 0;
    for (const char *at = text; *at; at++) {
        depth += nesting(*at);
        size_t length = (size_t)(at + 1 - text) + strcspn(at + 1, " ");
        if (depth == 0 && *at == ' ' && infix_at(at + 1) == prec && length <= room)
            end = length;
    }
    return end;
}

/* The same of the first operator of that strength that something stands behind. */
static size_t up_to_first_operator(const char *text, int prec) {
    int depth = 0;
    for (const char *at = text; *at; at++) {
        depth += nesting(*at);
        size_t length = (size_t)(at + 1 - text) + strcspn(at + 1, " ");
        if (depth == 0 && *at == ' ' && infix_at(at + 1) == prec && text[length])
            return length;
    }
    return 0;
}

/* Bytes before the ":" of the text's first "?". Between them may stand other conditions. */
static size_t up_to_colon(const char *text) {
    int depth = 0, open = 0;
    for (const char *at = text; *at; at++) {
        depth += nesting(*at);
        bool opens = depth == 0 && strncmp(at, " ? ", 3) == 0, closes = depth == 0 && strncmp(at, " : ", 3) == 0;
        open += opens - closes;
        if (closes && !open)
            return (size_t)(at + 1 - text);
    }
    ICE("'%s' has no :", text);
}

/* Bytes before the first "?". */
static size_t up_to_question(const char *text) {
    int depth = 0;
    for (const char *at = text; *at; at++) {
        depth += nesting(*at);
        if (depth == 0 && strncmp(at, " ? ", 3) == 0)
            return (size_t)(at + 1 - text);
    }
    ICE("'%s' has no ?", text);
}

/* Bytes up to and with the last comma within `room` that stands directly in the parentheses opened at `open`. */
static size_t up_to_comma(const char *text, size_t open, size_t room) {
    size_t end = 0;
    int depth = 0;
    for (size_t k = open; text[k] && k < room; k++) {
        depth += nesting(text[k]);
        if (depth == 1 && text[k] == ',')
            end = k + 1;
    }
    return end;
}

/* Where the arguments of the last call of the expression begin: behind its "(". */
static size_t arguments(const char *text) {
    size_t length = strlen(text);
    int depth = 0;
    for (size_t k = length; k > 0; k--) {
        depth += nesting(text[k - 1]);
        if (depth == 0 && strchr("([{", text[k - 1]))
            return k;
    }
    return 0;
}

static void put(const Breaker *b, int columns, const char *text) {
    b->put(b->w, columns, text, strlen(text));
}

static void break_expression(const Breaker *b, int columns, const char *before, const char *text);

/* Bytes of the next arguments that fit on a line that starts at `columns`, with their comma; all of the rest if it fits; one,
 * if that is too long. */
static size_t next_arguments(const Breaker *b, const char *text, int columns) {
    size_t room = columns < LONGEST_LINE ? LONGEST_LINE - (size_t)columns : 0, all = strlen(text);
    if (all <= room)
        return all;
    const char *inside = arena_printf(b->w->text.arena, "(%s", text);
    size_t length = up_to_comma(inside, 0, room + 1);
    for (size_t k = room + 2; !length && k <= all; k++)
        length = up_to_comma(inside, 0, k);
    return length ? length - 1 : all;
}

static int lines_of_arguments(const Breaker *b, const char *text, int columns) {
    int lines = 1;
    for (size_t length; text[length = next_arguments(b, text, columns)]; text += length + 1)
        lines++;
    return lines;
}

static bool arguments_fit(const Breaker *b, const char *text, int columns) {
    size_t length;
    for (; text[length = next_arguments(b, text, columns)]; text += length + 1)
        if (columns + length > LONGEST_LINE)
            return false;
    return columns + length <= LONGEST_LINE;
}

static bool break_arguments(const Breaker *b, int columns, const char *before, const char *text);

/* `before` and some arguments; a single one that is too long goes on below, indented, so that it is told from the next. */
static void put_piece(const Breaker *b, int columns, const char *before, const char *piece) {
    int aligned = columns + (int)strlen(before);
    size_t room = aligned < LONGEST_LINE ? LONGEST_LINE - (size_t)aligned : 0;
    size_t length = strlen(piece) > room ? up_to_operator(piece, precedence(piece), room) : 0;
    if (length) {
        put(b, columns, arena_printf(b->w->text.arena, "%s%.*s", before, (int)length, piece));
        put_piece(b, aligned + 4, "", piece + length + 1);
    } else if (strlen(piece) <= room || !break_arguments(b, columns, before, piece))
        put(b, columns, arena_printf(b->w->text.arena, "%s%s", before, piece));
}

static void put_arguments(const Breaker *b, const char *before, const char *text, int columns) {
    for (size_t length; *text; text += length + (text[length] != 0), before = "") {
        length = next_arguments(b, text, columns + (int)strlen(before));
        put_piece(b, columns, before, arena_strndup(b->w->text.arena, text, length));
        columns += (int)strlen(before);
    }
}

/* The arguments of a call below its "(", aligned with the first; or on lines of their own, if that saves one or if they
 * are too long for the other. */
static bool break_arguments(const Breaker *b, int columns, const char *before, const char *text) {
    Arena *arena = b->w->text.arena;
    size_t length = strlen(text), tail = length > 2 && strcmp(text + length - 2, " {") == 0 ? 2 : 0;
    size_t open = arguments(arena_strndup(arena, text, length - tail));
    if (!open)
        return false;
    const char *head = arena_printf(arena, "%s%.*s", before, (int)open, text), *rest = text + open;
    int aligned = columns + (int)strlen(head);
    bool lone = aligned + strlen(rest) > LONGEST_LINE && !up_to_comma(text, open - 1, length);
    if (text[open - 1] == '[' || lone) {
        break_expression(b, columns, head, rest);
        return true;
    }
    bool one_below = columns + 4 + strlen(rest) <= LONGEST_LINE && lines_of_arguments(b, rest, aligned) > 2;
    if (one_below || (!arguments_fit(b, rest, aligned) && arguments_fit(b, rest, columns + 4))) {
        put(b, columns, head);
        put_arguments(b, "", rest, columns + 4);
        return true;
    }
    put_arguments(b, head, rest, columns);
    return true;
}

/* ---- trying ---- */

enum { MAX_NESTING = 64 };

/* Counts lines instead of writing them. */
typedef struct Probe {
    Writer w; /* first: what is put is told by it */
    int lines;
    bool overflows;
} Probe;

static void count_line(Writer *w, int columns, const char *text, size_t length) {
    Probe *probe = (Probe *)w;
    (void)text;
    probe->lines++;
    probe->overflows |= columns + length > LONGEST_LINE;
}

typedef void Layout(const Breaker *b, int columns, const char *line, const char *value);

/* Lines that the layout takes; 0: one of them is too long. */
static int try_layout(const Breaker *b, Layout *layout, int columns, const char *line, const char *value) {
    Probe probe = {.w = {.text = TEXT(b->w->text.arena)}};
    Breaker trial = {&probe.w, count_line};
    layout(&trial, columns, line, value);
    return probe.overflows ? 0 : probe.lines;
}

/* ---- subscripts ---- */

/* The innermost subscript that ends behind `room` bytes and begins before: where it opens and closes; 0: there is none. */
static size_t long_subscript(const char *text, size_t room, size_t *close) {
    size_t open[MAX_NESTING], found = 0;
    int depth = 0;
    for (size_t k = 0; text[k] && !found; k++) {
        if (nesting(text[k]) > 0 && depth < MAX_NESTING)
            open[depth] = k;
        if (nesting(text[k]) < 0 && depth <= MAX_NESTING && text[k] == ']' && open[depth - 1] < room && k >= room) {
            *close = k;
            found = open[depth - 1];
        }
        depth += nesting(text[k]);
    }
    return found;
}

/* "x[a +\n  b] = c;": the terms of an index below one another, and behind its bracket what is left. */
static bool break_subscript(const Breaker *b, int columns, const char *text) {
    Arena *arena = b->w->text.arena;
    size_t close = 0, open = columns < LONGEST_LINE ? long_subscript(text, LONGEST_LINE - (size_t)columns, &close) : 0;
    if (!open)
        return false;
    const char *index = arena_strndup(arena, text + open + 1, close - open - 1);
    int aligned = columns + (int)open + 1, prec = precedence(index);
    for (const char *before = arena_strndup(arena, text, open + 1); *index; before = "") {
        size_t room = aligned < LONGEST_LINE ? LONGEST_LINE - (size_t)aligned : 0;
        bool last = strlen(index) + 1 <= room;
        size_t length = last ? strlen(index) : up_to_operator(index, prec, room);
        if (!length)
            return false;
        const char *end = last ? text + close : "";
        put(b, *before ? columns : aligned, arena_printf(arena, "%s%.*s%s", before, (int)length, index, end));
        index += length + !last;
    }
    return true;
}

static void lay_expression(const Breaker *b, int columns, const char *before, const char *text) {
    break_expression(b, columns, before, text);
}

static void lay_subscript(const Breaker *b, int columns, const char *before, const char *text) {
    if (!break_subscript(b, columns, arena_printf(b->w->text.arena, "%s%s", before, text)))
        lay_expression(b, columns, before, text);
}

static void put_or_break(const Breaker *b, int columns, const char *before, const char *text) {
    if (columns + strlen(before) + strlen(text) <= LONGEST_LINE)
        put(b, columns, arena_printf(b->w->text.arena, "%s%s", before, text));
    else if (try_layout(b, lay_expression, columns, before, text) ||
             !try_layout(b, lay_subscript, columns, before, text))
        lay_expression(b, columns, before, text);
    else
        lay_subscript(b, columns, before, text);
}

/* "a ? b * c : d" where "? b * c" needs two lines: they begin beside the condition, and ":" stands below the "?". */
static bool break_choice(const Breaker *b, int columns, const char *head, const char *yes, const char *no) {
    int aligned = columns + (int)strlen(head), prec = precedence(yes);
    size_t length = aligned < LONGEST_LINE ? up_to_operator(yes, prec, LONGEST_LINE - (size_t)aligned) : 0;
    if (!length || prec == PREC_COND)
        return false;
    put(b, columns, arena_printf(b->w->text.arena, "%s%.*s", head, (int)length, yes));
    put_or_break(b, aligned + 4, "", yes + length + 1);
    put_or_break(b, aligned - 2, ": ", no);
    return true;
}

/* A part of "a ? b : c", whose further lines are indented by `extra`. */
static void put_part(const Breaker *b, int columns, const char *before, const char *text, int extra) {
    int prec = precedence(text), aligned = columns + (int)strlen(before);
    bool fits = aligned + strlen(text) <= LONGEST_LINE || aligned >= LONGEST_LINE || prec == PREC_COND;
    size_t length = fits ? 0 : up_to_operator(text, prec, LONGEST_LINE - (size_t)aligned);
    if (!length) {
        put_or_break(b, columns, before, text);
        return;
    }
    put(b, columns, arena_printf(b->w->text.arena, "%s%.*s", before, (int)length, text));
    put_or_break(b, aligned + extra, "", text + length + 1);
}

/* "a ? b : c" as three parts. */
typedef struct Choice {
    const char *condition, *yes, *no;
} Choice;

static Choice choice_of(Arena *arena, const char *text) {
    size_t question = up_to_question(text), colon = up_to_colon(text);
    return (Choice){arena_strndup(arena, text, question - 1),
                    arena_strndup(arena, text + question + 2, colon - question - 3), text + colon + 2};
}

/* Its parts on lines of their own, below the condition and indented. */
static void lay_parts(const Breaker *b, int columns, const char *before, const char *text) {
    Choice choice = choice_of(b->w->text.arena, text);
    int inner = columns + (int)strlen(before) + 4;
    put_part(b, columns, before, choice.condition, 8);
    put_part(b, inner, "? ", choice.yes, 4);
    put_part(b, inner, ": ", choice.no, 4);
}

/* "a ? b" on a line, and ": c" below the "?". */
static void lay_beside(const Breaker *b, int columns, const char *before, const char *text) {
    Arena *arena = b->w->text.arena;
    Choice choice = choice_of(arena, text);
    const char *head = arena_printf(arena, "%s%s ? ", before, choice.condition);
    if (columns + strlen(head) + strlen(choice.yes) <= LONGEST_LINE ||
        !break_subscript(b, columns, arena_printf(arena, "%s%s", head, choice.yes)))
        put(b, columns, arena_printf(arena, "%s%s", head, choice.yes));
    put_part(b, columns + (int)strlen(head) - 2, ": ", choice.no, 4);
}

static bool break_condition(const Breaker *b, int columns, const char *before, const char *text) {
    if (precedence(text) != PREC_COND)
        return false;
    Arena *arena = b->w->text.arena;
    Choice choice = choice_of(arena, text);
    int inner = columns + (int)strlen(before) + 4;
    bool fits = inner + strlen("? ") + strlen(choice.yes) <= LONGEST_LINE;
    const char *head = arena_printf(arena, "%s%s ? ", before, choice.condition);
    if (!fits && break_choice(b, columns, head, choice.yes, choice.no))
        return true;
    int parts = try_layout(b, lay_parts, columns, before, text),
        beside = try_layout(b, lay_beside, columns, before, text);
    if (beside && (!parts || beside < parts))
        lay_beside(b, columns, before, text);
    else
        lay_parts(b, columns, before, text);
    return true;
}

/* `before` and an expression whose further lines are aligned with its start. */
static void break_expression(const Breaker *b, int columns, const char *before, const char *text) {
    if (break_condition(b, columns, before, text))
        return;
    int prec = precedence(text), aligned = columns + (int)strlen(before);
    size_t length = aligned < LONGEST_LINE ? up_to_operator(text, prec, LONGEST_LINE - (size_t)aligned) : 0;
    size_t first = *text == '(' ? up_to_first_operator(text, prec) : 0;
    if (!length && !first) {
        if (!break_arguments(b, columns, before, text))
            put(b, columns, arena_printf(b->w->text.arena, "%s%s", before, text));
        return;
    }
    if (length)
        put(b, columns, arena_printf(b->w->text.arena, "%s%.*s", before, (int)length, text));
    else
        put_or_break(b, columns, before, arena_strndup(b->w->text.arena, text, length = first));
    put_or_break(b, aligned, "", text + length + 1);
}

/* Lines of a sum, or of another chain of operators, that starts at `columns`; 0: a piece is too long. */
static int lines_of_pieces(const char *text, int columns) {
    int prec = precedence(text), lines = 1;
    for (size_t length; columns + strlen(text) > LONGEST_LINE; text += length + 1, lines++) {
        length = columns < LONGEST_LINE ? up_to_operator(text, prec, LONGEST_LINE - (size_t)columns) : 0;
        if (!length)
            return 0;
    }
    return lines;
}

/* What is assigned stands behind the last line of a subscript, here or on the left. */
static void lay_behind(const Breaker *b, int columns, const char *line, const char *value) {
    (void)value;
    if (!break_subscript(b, columns, line))
        put(b, columns, line);
}

/* It stands below. */
static void lay_below(const Breaker *b, int columns, const char *line, const char *value) {
    const char *before = arena_strndup(b->w->text.arena, line, (size_t)(value - line) - 1);
    if (columns + strlen(before) <= LONGEST_LINE || !break_subscript(b, columns, before))
        put(b, columns, before);
    put_or_break(b, columns + 4, "", value);
}

static void lay_out(const Breaker *b, int columns, const char *line, const char *value) {
    const char *before = arena_strndup(b->w->text.arena, line, (size_t)(value - line));
    int aligned = lines_of_pieces(value, columns + (int)strlen(before)), below = lines_of_pieces(value, columns + 4);
    if (below != 1 && ((aligned && aligned <= below + 1) || !below)) {
        break_expression(b, columns, before, value);
        return;
    }
    b->put(b->w, columns, before, strlen(before) - 1);
    put_or_break(b, columns + 4, "", value);
}

/* Where a subscript is too long for a line, the way that takes the fewest. */
static void break_assignment(const Breaker *b, int columns, const char *line, const char *value) {
    static Layout *const layouts[] = {lay_out, lay_behind, lay_below};
    Layout *best = lay_out;
    int fewest = try_layout(b, best, columns, line, value);
    for (size_t k = 1, fits = fewest > 0; !fits && k < sizeof layouts / sizeof *layouts; k++) {
        int lines = try_layout(b, layouts[k], columns, line, value);
        bool better = lines && (!fewest || lines < fewest);
        fewest = better ? lines : fewest;
        best = better ? layouts[k] : best;
    }
    best(b, columns, line, value);
}

/* "auto out = [&](int i) { x; };" */
static bool break_lambda(const Breaker *b, int columns, const char *line) {
    const char *body = strstr(line, ") { ");
    size_t length = strlen(line);
    if (!body || strncmp(line, "auto ", 5) != 0 || strcmp(line + length - 3, " };") != 0)
        return false;
    b->put(b->w, columns, line, (size_t)(body + 3 - line));
    const char *statement = arena_strndup(b->w->text.arena, body + 4, length - 3 - (size_t)(body + 4 - line));
    break_line(b->w, columns + 4, statement, b->put);
    put(b, columns, "};");
    return true;
}

/* The first ", ." outside of strings, between two members of a row; NULL: there is none. */
static const char *between_members(const char *row) {
    bool in_string = false;
    for (; *row; row++) {
        in_string ^= *row == '"';
        if (in_string && *row == '\\')
            row++;
        else if (!in_string && strncmp(row, ", .", 3) == 0)
            return row;
    }
    return NULL;
}

/* "{.line = 3, .text = "..."}," with a member a line */
static void break_row(const Breaker *b, int columns, const char *line) {
    const char *next;
    for (int inner = columns; (next = between_members(line)); line = next + 2, inner = columns + 1)
        b->put(b->w, inner, line, (size_t)(next + 1 - line));
    put(b, columns + 1, line);
}

/* "static __device__ void f(...) {" whose parameters have room only where the name begins the line. */
static bool break_declaration(const Breaker *b, const char *line) {
    static const char type[] = "static __device__ void ";
    enum { TYPE = sizeof type - 1 };
    const char *open = strchr(line, '(');
    if (strncmp(line, type, TYPE) != 0 || !open || arguments_fit(b, open + 1, (int)(open + 1 - line)) ||
        !arguments_fit(b, open + 1, (int)(open + 1 - line) - TYPE))
        return false;
    b->put(b->w, 0, type, TYPE - 1);
    break_expression(b, 0, "", line + TYPE);
    return true;
}

void break_line(Writer *w, int columns, const char *line, PutLine put_line) {
    Breaker b = {w, put_line};
    const char *value = assigned(line);
    bool fits = columns + strlen(line) <= LONGEST_LINE, comment = strncmp(line, "//", 2) == 0;
    bool members = *line == '{' && between_members(line), string = strchr(line, '"');
    if (fits || comment || (!members && (*line == '.' || *line == '{' || string)))
        put(&b, columns, line);
    else if (members)
        break_row(&b, columns, line);
    else if (break_lambda(&b, columns, line) || break_declaration(&b, line))
        return;
    else if (strncmp(line, "return ", 7) == 0)
        break_expression(&b, columns, "return ", line + 7);
    else if (value)
        break_assignment(&b, columns, line, value);
    else
        break_expression(&b, columns, "", line);
}
