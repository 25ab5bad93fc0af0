/* Breaking lines that are too long in the places where clang-format breaks them. */
#include "emit/text/infix.h"
#include "emit/text/writer.h"

typedef struct Breaker {
    Writer *w;
    PutLine put;
    int indent; /* of arguments that do not begin beside their "(" */
    bool apart; /* each argument on a line of its own, as clang-format has lists of more than five */
    int trials; /* that this one is in */
} Breaker;

/* 1, -1: byte k opens or closes parentheses, or the arguments of a template, inside of which no space stands beside "<" and ">". */
static int nesting_at(const char *text, size_t k) {
    char c = text[k];
    if (c == '<')
        return !strchr(" =<", text[k + 1]);
    if (c == '>')
        return k == 0 || strchr("- ", text[k - 1]) || (text[k - 1] == '>' && k > 1 && text[k - 2] == ' ') ? 0 : -1;
    return nesting(c);
}

/* Behind the last "= " outside of all parentheses; NULL: no assignment. */
static const char *assigned(const char *text) {
    const char *last = NULL;
    int depth = 0;
    for (const char *at = text; *at; at++) {
        depth += nesting_at(text, (size_t)(at - text));
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
        depth += nesting_at(text, (size_t)(at - text));
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
        depth += nesting_at(text, (size_t)(at - text));
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
        depth += nesting_at(text, (size_t)(at - text));
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
        depth += nesting_at(text, (size_t)(at - text));
        if (depth == 0 && strncmp(at, " ? ", 3) == 0)
            return (size_t)(at + 1 - text);
    }
    ICE("'%s' has no ?", text);
}

/* Bytes up to and with the last comma, or semicolon, within `room` that stands directly in the parentheses opened at `open`. */
static size_t up_to_comma(const char *text, size_t open, size_t room) {
    size_t end = 0;
    int depth = 0;
    for (size_t k = open; text[k] && k < room; k++) {
        depth += nesting_at(text, k);
        if (depth == 1 && (text[k] == ',' || text[k] == ';'))
            end = k + 1;
    }
    return end;
}

/* Where the arguments of the last call of the expression begin, or those of its template, if it has no others: behind "(". */
static size_t arguments(const char *text) {
    size_t length = strlen(text);
    int depth = 0, outside = 0; /* what is closed behind the call was opened before the text */
    for (size_t k = 0; k < length; k++)
        outside += nesting_at(text, k);
    for (size_t k = length; k > 0; k--) {
        depth += nesting_at(text, k - 1);
        bool empty = text[k - 1] == '(' && text[k] == ')';
        if (depth == outside && nesting_at(text, k - 1) > 0 && !empty)
            return k;
    }
    return 0;
}

static void put(const Breaker *b, int columns, const char *text) {
    b->put(b->w, columns, text, strlen(text));
}

/* ---- trying ---- */

enum { MAX_NESTING = 64, TOO_LONG = 1 << 30 };

/* Adds up what clang-format would be charged for the breaks, instead of writing lines. */
typedef struct Probe {
    Writer w; /* first: what is put is told by it */
    int cost;
    const char *end; /* the last word of the line before, with a space; NULL: there is none */
    int depth, strength[MAX_NESTING];
    unsigned broken[MAX_NESTING]; /* charges of the breaks there were, as bits */
} Probe;

/* Of a break between a word and the text that is to begin a line, as the two alone decide it; clang-format's own numbers. */
static int charge(const char *end, const char *next) {
    enum { OPENING = 19, CHOICE = 3, ASSIGNMENT = 2, COMMA = 1 };
    static const int of_operator[] = {[PREC_COND] = CHOICE, [PREC_OR] = 4,   [PREC_AND] = 5,     [PREC_EQUAL] = 9,
                                      [PREC_RELATION] = 10, [PREC_SUM] = 13, [PREC_PRODUCT] = 14};
    int prec = infix_at(end);
    size_t last = strlen(end) > 1 ? strlen(end) - 2 : 0;
    if (*next == '?' || *next == ':')
        return CHOICE;
    if (prec >= 0)
        return of_operator[prec];
    return strchr(",;", end[last]) ? COMMA : nesting_at(end, last) > 0 ? OPENING : ASSIGNMENT;
}

static void charge_break(Probe *probe, const char *next) {
    enum { LEVEL = 20, FIRST = 15 };
    int within = 0, own = charge(probe->end, next);
    unsigned *broken = &probe->broken[probe->depth];
    for (int k = 0; k < probe->depth; k++)
        within += probe->strength[k];
    probe->cost += LEVEL * within + own + (*broken >> own & 1 ? 0 : FIRST);
    *broken |= 1u << own;
}

static void count_line(Writer *w, int columns, const char *text, size_t length) {
    Probe *probe = (Probe *)w;
    if (probe->end)
        charge_break(probe, text);
    for (size_t k = 0; k < length; k++) {
        int change = nesting_at(text, k);
        if (change > 0 && probe->depth + 1 < MAX_NESTING) {
            probe->strength[probe->depth++] = strchr("[<", text[k]) ? 10 : 1;
            probe->broken[probe->depth] = 0;
        } else if (change < 0 && probe->depth > 0)
            probe->depth--;
    }
    const char *word = text + length;
    while (word > text && word[-1] != ' ')
        word--;
    probe->end = arena_printf(w->text.arena, "%.*s ", (int)(text + length - word), word);
    if (columns + length > LONGEST_LINE || probe->cost > TOO_LONG)
        probe->cost = TOO_LONG;
}

typedef void Layout(const Breaker *b, int columns, const char *line, const char *value);

/* What the layout's breaks cost; TOO_LONG or more: one of its lines is too long. */
static int try_layout(const Breaker *b, Layout *layout, int columns, const char *line, const char *value) {
    Probe probe = {.w = {.text = TEXT(b->w->text.arena)}};
    Breaker trial = {&probe.w, count_line, b->indent, b->apart, b->trials + 1};
    layout(&trial, columns, line, value);
    return probe.cost;
}

/* ---- expressions ---- */

static void break_expression(const Breaker *b, int columns, const char *before, const char *text);

/* Between the arguments that the text begins with. */
static int commas(const char *text) {
    int count = 0, depth = 0;
    for (size_t k = 0; text[k] && depth >= 0; k++) {
        count += depth == 0 && text[k] == ',';
        depth += nesting_at(text, k);
    }
    return count;
}

/* Bytes of the next arguments that fit on a line that starts at `columns`, with their comma; all of the rest if it fits; one,
 * if that is too long. */
static size_t next_arguments(const Breaker *b, const char *text, int columns) {
    size_t room = columns < LONGEST_LINE && !b->apart ? LONGEST_LINE - (size_t)columns : 0, all = strlen(text);
    if (all <= room)
        return all;
    const char *inside = arena_printf(b->w->text.arena, "(%s", text);
    size_t length = up_to_comma(inside, 0, room + 1);
    for (size_t k = room + 2; !length && k <= all; k++)
        length = up_to_comma(inside, 0, k);
    return length ? length - 1 : all;
}

static bool arguments_fit(const Breaker *b, const char *text, int columns) {
    size_t length;
    for (; text[length = next_arguments(b, text, columns)]; text += length + 1)
        if (columns + length > LONGEST_LINE)
            return false;
    return columns + length <= LONGEST_LINE;
}

static bool break_arguments(const Breaker *outer, int columns, int start, const char *before, const char *text);

/* `before` and some arguments; a single one that is too long goes on below, indented, so that it is told from the next. */
static void put_piece(const Breaker *b, int columns, const char *before, const char *piece) {
    int aligned = columns + (int)strlen(before);
    size_t room = aligned < LONGEST_LINE ? LONGEST_LINE - (size_t)aligned : 0;
    size_t length = strlen(piece) > room ? up_to_operator(piece, precedence(piece), room) : 0;
    if (length) {
        put(b, columns, arena_printf(b->w->text.arena, "%s%.*s", before, (int)length, piece));
        put_piece(b, aligned + 4, "", piece + length + 1);
    } else if (strlen(piece) <= room || !break_arguments(b, columns, aligned, before, piece))
        put(b, columns, arena_printf(b->w->text.arena, "%s%s", before, piece));
}

static void put_arguments(const Breaker *b, const char *before, const char *text, int columns) {
    for (size_t length; *text; text += length + (text[length] != 0), before = "") {
        length = next_arguments(b, text, columns + (int)strlen(before));
        put_piece(b, columns, before, arena_strndup(b->w->text.arena, text, length));
        columns += (int)strlen(before);
    }
}

/* "f<a,\n  b>(" where the template's arguments have no room on one line. */
static bool break_template(const Breaker *b, int columns, const char *head) {
    Arena *arena = b->w->text.arena;
    size_t open = columns + strlen(head) > LONGEST_LINE ? arguments(arena_printf(arena, "%s)", head)) : 0;
    if (!open || head[open - 1] != '<')
        return false;
    put_arguments(b, arena_strndup(arena, head, open), head + open, columns);
    return true;
}

static void lay_aligned(const Breaker *b, int columns, const char *head, const char *rest) {
    put_arguments(b, head, rest, columns);
}

static void lay_indented(const Breaker *b, int columns, const char *head, const char *rest) {
    if (!break_template(b, columns, head))
        put(b, columns, head);
    put_arguments(b, "", rest, b->indent);
}

static void lay_lone(const Breaker *b, int columns, const char *head, const char *rest) {
    break_expression(b, columns, head, rest);
}

/* The arguments of a call below its "(", aligned with the first; or on lines of their own, indented from `start`: what costs less. */
static bool break_arguments(const Breaker *outer, int columns, int start, const char *before, const char *text) {
    Breaker own = {outer->w, outer->put, start + 4, false, outer->trials}, *b = &own;
    Arena *arena = b->w->text.arena;
    size_t length = strlen(text), tail = length > 2 && strcmp(text + length - 2, " {") == 0 ? 2 : 0;
    size_t open = arguments(arena_strndup(arena, text, length - tail));
    if (!open)
        return false;
    const char *head = arena_printf(arena, "%s%.*s", before, (int)open, text), *rest = text + open;
    bool lone = columns + strlen(head) + strlen(rest) > LONGEST_LINE && !up_to_comma(text, open - 1, length);
    own.apart = text[open - 1] == '{' && commas(rest) >= 5;
    Layout *beside = lone || text[open - 1] == '[' ? lay_lone : lay_aligned;
    bool call = open > 1 && (text[open - 1] == '{' || (text[open - 1] == '(' && !strchr(" ([!-", text[open - 2])));
    bool indented =
        call && try_layout(b, lay_indented, columns, head, rest) < try_layout(b, beside, columns, head, rest);
    (indented ? lay_indented : beside)(b, columns, head, rest);
    return true;
}

/* ---- subscripts ---- */

/* The innermost subscript that ends, with an assignment behind it, behind `room` bytes and begins before: where it opens and
 * closes; 0: there is none. */
static size_t long_subscript(const char *text, size_t room, size_t *close) {
    size_t open[MAX_NESTING];
    int depth = 0;
    for (size_t k = 0; text[k]; k++) {
        int change = nesting_at(text, k);
        size_t end = k + (strncmp(text + k, "] =", 3) == 0 ? strlen(" =") : 0);
        if (change < 0 && depth > 0 && depth <= MAX_NESTING && text[k] == ']' && open[depth - 1] < room && end >= room)
            return *close = k, open[depth - 1];
        if (change > 0 && depth < MAX_NESTING)
            open[depth] = k;
        depth = depth + change > 0 ? depth + change : 0;
    }
    return 0;
}

/* Bytes of an index that fit into `room`: some of its terms, with the operator behind them; else, a part of the first. */
static size_t next_terms(Arena *arena, const char *index, int prec, bool in_term, size_t room) {
    size_t first = up_to_first_operator(index, prec), whole = first ? first : strlen(index);
    size_t length = in_term ? (whole <= room ? whole : 0) : up_to_operator(index, prec, room);
    if (length)
        return length;
    const char *term = arena_strndup(arena, index, first ? first - strlen(" +") : whole);
    return up_to_operator(term, precedence(term), room);
}

/* "] * c": an operator, before which a line cannot begin that a subscript was broken in. */
static bool operator_behind(const char *text) {
    for (; *text && strncmp(text, "= ", 2) != 0; text++)
        if (*text == ' ' && (infix_at(text + 1) == PREC_COND || infix_at(text + 1) >= PREC_SUM))
            return true;
    return false;
}

/* "x[a +\n  b] = c;": the terms of an index below one another, and behind its bracket what is left. */
static bool break_subscript(const Breaker *b, int columns, const char *text) {
    Arena *arena = b->w->text.arena;
    size_t close = 0, open = columns < LONGEST_LINE ? long_subscript(text, LONGEST_LINE - (size_t)columns, &close) : 0;
    if (!open || operator_behind(text + close))
        return false;
    size_t tail = strncmp(text + close, "] =", 3) == 0 ? 3 : 1;
    const char *index = arena_strndup(arena, text + open + 1, close - open - 1),
               *before = arena_strndup(arena, text, open + 1);
    int aligned = columns + (int)open + 1, prec = precedence(index);
    for (int at = aligned; *index; before = "") {
        size_t room = at < LONGEST_LINE ? LONGEST_LINE - (size_t)at : 0, all = strlen(index);
        bool fits = all + tail <= room;
        size_t length = fits ? all : next_terms(arena, index, prec, at != aligned, room);
        bool last = fits || !length;
        put(b, *before ? columns : at,
            arena_printf(arena, "%s%.*s%s", before, (int)(last ? all : length), index, last ? text + close : ""));
        at = !last && up_to_operator(index, prec, length) == length ? aligned : aligned + 4;
        index += last ? all : length + 1;
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

/* Trials within trials would take time that doubles with each line. */
static bool may_try(const Breaker *b) {
    enum { MOST_TRIALS = 3 };
    return b->trials < MOST_TRIALS;
}

static bool subscript_is_cheaper(const Breaker *b, int columns, const char *before, const char *text) {
    const char *line = arena_printf(b->w->text.arena, "%s%s", before, text);
    size_t close, room = columns < LONGEST_LINE ? LONGEST_LINE - (size_t)columns : 0;
    return may_try(b) && room && long_subscript(line, room, &close) &&
           try_layout(b, lay_subscript, columns, before, text) < try_layout(b, lay_expression, columns, before, text);
}

static void put_or_break(const Breaker *b, int columns, const char *before, const char *text) {
    if (columns + strlen(before) + strlen(text) <= LONGEST_LINE)
        put(b, columns, arena_printf(b->w->text.arena, "%s%s", before, text));
    else if (subscript_is_cheaper(b, columns, before, text))
        lay_subscript(b, columns, before, text);
    else
        lay_expression(b, columns, before, text);
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

/* "a ? b *" on a line, the rest of "b * c" below it, indented, and ": d" below the "?". */
static void lay_choice(const Breaker *b, int columns, const char *before, const char *text) {
    Arena *arena = b->w->text.arena;
    Choice choice = choice_of(arena, text);
    const char *head = arena_printf(arena, "%s%s ? ", before, choice.condition);
    int aligned = columns + (int)strlen(head), prec = precedence(choice.yes);
    bool apart = aligned < LONGEST_LINE && prec != PREC_COND;
    size_t length = apart ? up_to_operator(choice.yes, prec, LONGEST_LINE - (size_t)aligned) : 0;
    if (!length) {
        put(b, columns, arena_printf(arena, "%s%s", before, text));
        return;
    }
    put(b, columns, arena_printf(arena, "%s%.*s", head, (int)length, choice.yes));
    put_or_break(b, aligned + 4, "", choice.yes + length + 1);
    put_or_break(b, aligned - 2, ": ", choice.no);
}

/* The layout that costs least, of equal ones the first. */
static Layout *cheapest(const Breaker *b, Layout *const *layouts, int count, int columns, const char *line,
                        const char *value) {
    Layout *best = layouts[0];
    if (!may_try(b))
        return best;
    int least = try_layout(b, best, columns, line, value);
    for (int k = 1; k < count; k++) {
        int cost = try_layout(b, layouts[k], columns, line, value);
        best = cost < least ? layouts[k] : best;
        least = cost < least ? cost : least;
    }
    return best;
}

#define CHEAPEST(b, layouts, columns, line, value)                                                                     \
    cheapest(b, layouts, (int)(sizeof(layouts) / sizeof *(layouts)), columns, line, value)

static bool break_condition(const Breaker *b, int columns, const char *before, const char *text) {
    static Layout *const layouts[] = {lay_parts, lay_beside, lay_choice};
    if (precedence(text) != PREC_COND)
        return false;
    CHEAPEST(b, layouts, columns, before, text)(b, columns, before, text);
    return true;
}

/* `before` and an expression whose further lines are aligned with its start. */
static void break_expression(const Breaker *b, int columns, const char *before, const char *text) {
    if (break_condition(b, columns, before, text))
        return;
    int prec = precedence(text), aligned = columns + (int)strlen(before);
    size_t length = aligned < LONGEST_LINE ? up_to_operator(text, prec, LONGEST_LINE - (size_t)aligned) : 0;
    size_t first = up_to_first_operator(text, prec);
    if (!length && !first) {
        int start = columns + (*before == '?' || *before == ':' ? 2 : 0);
        if (!break_arguments(b, columns, start, before, text))
            put(b, columns, arena_printf(b->w->text.arena, "%s%s", before, text));
        return;
    }
    if (length)
        put(b, columns, arena_printf(b->w->text.arena, "%s%.*s", before, (int)length, text));
    else
        put_part(b, columns, before, arena_strndup(b->w->text.arena, text, length = first), 4);
    put_or_break(b, aligned, "", text + length + 1);
}

/* ---- statements ---- */

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

/* It stands beside what it is assigned to. */
static void lay_beside_it(const Breaker *b, int columns, const char *line, const char *value) {
    break_expression(b, columns, arena_strndup(b->w->text.arena, line, (size_t)(value - line)), value);
}

/* The cheapest way. */
static void break_assignment(const Breaker *b, int columns, const char *line, const char *value) {
    static Layout *const layouts[] = {lay_beside_it, lay_behind, lay_below};
    CHEAPEST(b, layouts, columns, line, value)(b, columns, line, value);
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

/* The first `mark` outside of strings and characters; NULL: there is none. */
static const char *outside_strings(const char *line, const char *mark) {
    char open = '\0';
    for (; *line; line++) {
        if (open && *line == '\\')
            line++;
        else if (open)
            open = *line == open ? '\0' : open;
        else if (strncmp(line, mark, strlen(mark)) == 0)
            return line;
        else if (*line == '"' || *line == '\'')
            open = *line;
    }
    return NULL;
}

/* Between two members of a row. */
static const char *between_members(const char *row) {
    return outside_strings(row, ", .");
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
    Breaker b = {w, put_line, columns + 4, false, 0};
    const char *value = assigned(line), *comment = outside_strings(line, "//");
    bool fits = columns + strlen(line) <= LONGEST_LINE, noted = comment && !(value && value < comment);
    bool members = *line == '{' && between_members(line), string = strchr(line, '"');
    if (fits || noted || (!members && (*line == '.' || *line == '{' || string)))
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
