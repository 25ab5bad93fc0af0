#include "emit/kernel/table.h"

#include <ctype.h>
#include <stdlib.h>

/* ---- rows ---- */

void table_row(RowTable *table, const char *about) {
    VEC_PUSH(table->arena, &table->rows, ((TableRow){.about = about}));
}

static void add_piece(RowTable *table, PieceKind kind, const char *text, int64_t number) {
    VEC_PUSH(table->arena, &table->rows.at[table->rows.count - 1].pieces, ((Piece){kind, text, number}));
}

static void begin_member(RowTable *table, const char *member) {
    if (table->rows.at[table->rows.count - 1].pieces.count)
        add_piece(table, PIECE_NEXT, NULL, 0);
    if (member)
        add_piece(table, PIECE_TEXT, arena_printf(table->arena, ".%s = ", member), 0);
}

void table_text(RowTable *table, const char *member, const char *text) {
    begin_member(table, member);
    add_piece(table, PIECE_TEXT, text, 0);
}

void table_number(RowTable *table, const char *member, int64_t value) {
    begin_member(table, member);
    add_piece(table, PIECE_NUMBER, NULL, value);
}

/* Digits that a macro's argument can stand for: of a number without leading zeros. */
static size_t count_digits(const char *at) {
    enum { MOST = 9 };
    size_t length = strspn(at, "0123456789");
    return length > MOST || (length > 1 && *at == '0') ? 0 : length;
}

void table_name(RowTable *table, const char *member, const char *name) {
    begin_member(table, member);
    while (*name) {
        size_t digits = count_digits(name), length = digits ? digits : strspn(name, "0123456789");
        if (digits)
            add_piece(table, PIECE_COUNT, NULL, strtoll(arena_strndup(table->arena, name, digits), NULL, 10));
        length = length ? length : strcspn(name, "0123456789");
        if (!digits)
            add_piece(table, PIECE_NAME, arena_strndup(table->arena, name, length), 0);
        name += length;
    }
    add_piece(table, PIECE_TEXT, "", 0); /* the string has ended */
}

/* ---- what repeats ---- */

enum { LEAST_TIMES = 3, LONGEST_PERIOD = 128, MOST_PARAMETERS = 4, WIDEST_MEMBER = 80 };

/* FNV-1a. */
static uint64_t shape_of(const TableRow *row) {
    uint64_t hash = 0xcbf29ce484222325u;
    for (int k = 0; k < row->pieces.count; k++) {
        hash = (hash ^ (uint64_t)row->pieces.at[k].kind) * 0x100000001b3u;
        for (const char *c = row->pieces.at[k].text; c && *c; c++)
            hash = (hash ^ (unsigned char)*c) * 0x100000001b3u;
    }
    return hash;
}

static bool same_shape(const TableRow *a, const TableRow *b) {
    bool same = a->shape == b->shape && a->pieces.count == b->pieces.count;
    for (int k = 0; k < a->pieces.count && same; k++) {
        const Piece *p = &a->pieces.at[k], *q = &b->pieces.at[k];
        same = p->kind == q->kind && text_same(p->text, q->text);
    }
    return same;
}

/* The row goes on evenly to those one and two periods behind it. */
static bool goes_on(const RowTable *table, int row, int period) {
    if (row + 2 * period >= table->rows.count)
        return false;
    const TableRow *a = &table->rows.at[row], *b = a + period, *c = b + period;
    bool even = a->narrow && a->shape == b->shape && b->shape == c->shape && same_shape(a, b) && same_shape(b, c);
    for (int k = 0; k < a->pieces.count && even; k++)
        even = c->pieces.at[k].number - b->pieces.at[k].number == b->pieces.at[k].number - a->pieces.at[k].number;
    return even;
}

/* ---- the parameters of a fold ---- */

typedef struct Parameter {
    int64_t first, step; /* arguments: first, first + step, ... */
} Parameter;

/* The first is what all numbers are computed from: it counts by 1, up or down. */
typedef struct Parameters {
    Parameter at[MOST_PARAMETERS];
    int count;
    bool fit; /* there are no more */
} Parameters;

static int find_parameter(const Parameters *p, Parameter wanted) {
    for (int k = 0; k < p->count; k++)
        if (p->at[k].first == wanted.first && p->at[k].step == wanted.step)
            return k;
    return -1;
}

static void add_parameter(Parameters *p, Parameter wanted) {
    if (find_parameter(p, wanted) >= 0)
        return;
    if (p->count < MOST_PARAMETERS)
        p->at[p->count++] = wanted;
    else
        p->fit = false;
}

/* Of piece `k` of row `row`. */
static Parameter growth(const RowTable *table, const Fold *fold, int row, int k) {
    int64_t first = table->rows.at[row].pieces.at[k].number,
            second = table->rows.at[row + fold->period].pieces.at[k].number;
    return (Parameter){first, second - first};
}

static Parameters parameters_of(const RowTable *table, const Fold *fold) {
    Parameters p = {.fit = true};
    bool evenly = false;
    for (int row = fold->first; row < fold->first + fold->period; row++)
        for (int k = 0; k < table->rows.at[row].pieces.count; k++) {
            const Parameter each = growth(table, fold, row, k);
            if (table->rows.at[row].pieces.at[k].kind == PIECE_COUNT && each.step)
                add_parameter(&p, each);
        }
    for (int k = 0; k < p.count && !evenly; k++) {
        const Parameter each = p.at[k];
        evenly = each.step == 1 || each.step == -1;
        p.at[k] = evenly ? p.at[0] : each;
        p.at[0] = evenly ? each : p.at[0];
    }
    if (!evenly) {
        const Parameters names = p;
        p = (Parameters){.at = {{0, 1}}, .count = 1, .fit = p.fit};
        for (int k = 0; k < names.count; k++)
            add_parameter(&p, names.at[k]);
    }
    return p;
}

/* "7", "i", "7 + 2 * i", "7 - i": in all times, which i counts from 0 on. */
static const char *growing(Arena *arena, Parameter each) {
    const int64_t size = each.step < 0 ? -each.step : each.step;
    const char *times = size == 1 ? "i" : arena_printf(arena, "%lld * i", (long long)size);
    if (!each.step)
        return integer(arena, each.first);
    return each.first || each.step < 0
               ? arena_printf(arena, "%lld %c %s", (long long)each.first, each.step < 0 ? '-' : '+', times)
               : times;
}

/* ---- which rows are folded: as few lines as can be ---- */

typedef struct Choice {
    int lines; /* of the table from here on */
    Fold fold; /* .times = 1: the row stands by itself */
} Choice;

/* Without its rows: "for" and "}"; "#define", "#undef", what it is about, the lines of the arguments. */
static int frame_lines(const RowTable *table, const Fold *fold) {
    enum { CALL = 9, LOOP = 2 };
    if (table->again != AGAIN_MACRO)
        return table->again == AGAIN_LOOP ? LOOP : 0;
    const TableRow *row = &table->rows.at[fold->first];
    bool one = fold->period == 1 && row->lines == 1;
    return (one ? 2 : 3) + (row->about != NULL) + fold->times * CALL / LONGEST_LINE;
}

/* run[period]: how many rows from `first` on go on evenly. */
static Choice choose(const RowTable *table, const Choice *choices, const int *run, int first) {
    Choice best = {table->rows.at[first].lines + choices[first + 1].lines, {first, 1, 1}};
    int rows = 0;
    for (int period = 1; period <= LONGEST_PERIOD && first + period < table->rows.count; period++) {
        const Fold fold = {first, period, 2 + run[period] / period};
        rows += table->rows.at[first + period - 1].lines;
        if (fold.times < LEAST_TIMES)
            continue;
        int lines = rows + frame_lines(table, &fold) + choices[first + fold.times * period].lines;
        if (lines >= best.lines)
            continue;
        const Parameters p = parameters_of(table, &fold);
        lines += 2 * (p.count - 1); /* fewer parameters read better */
        if (p.fit && lines < best.lines)
            best = (Choice){lines, fold};
    }
    return best;
}

static const Choice *choices_of(const RowTable *table) {
    Choice *choices = NEW_ARRAY(table->arena, Choice, table->rows.count + 1);
    int run[LONGEST_PERIOD + 1] = {0};
    for (int first = table->rows.count - 1; first >= 0; first--) {
        for (int period = 1; period <= LONGEST_PERIOD; period++)
            run[period] = goes_on(table, first, period) ? run[period] + 1 : 0;
        choices[first] = choose(table, choices, run, first);
    }
    return choices;
}

/* ---- loops ---- */

Folds table_loops(RowTable *table) {
    Folds folds = {0};
    table->again = AGAIN_LOOP;
    for (int row = 0; row < table->rows.count; row++) {
        table->rows.at[row].shape = shape_of(&table->rows.at[row]);
        table->rows.at[row].narrow = true;
    }
    const Choice *choices = choices_of(table);
    for (int row = 0; row < table->rows.count; row += choices[row].fold.period * choices[row].fold.times)
        VEC_PUSH(table->arena, &folds, choices[row].fold);
    return folds;
}

const char *fold_row(Arena *arena, const Fold *fold, int row) {
    return growing(arena, (Parameter){row, fold->times > 1 ? fold->period : 0});
}

const char *table_growth(const RowTable *table, const Fold *fold, int row, int number) {
    const TableRow *at = &table->rows.at[row];
    int k = 0;
    for (; at->pieces.at[k].kind != PIECE_NUMBER || number > 0; k++)
        number -= at->pieces.at[k].kind == PIECE_NUMBER;
    const Fold alone = {row, 0, 1}; /* its numbers go on to themselves */
    return growing(table->arena, growth(table, fold->times > 1 ? fold : &alone, row, k));
}

/* ---- rows as text ---- */

/* Of a row by itself, or with parameters, as in a macro. */
typedef struct Wording {
    const RowTable *table;
    const Fold *fold; /* NULL: by itself */
    Parameters parameters;
} Wording;

static const char parameter_names[] = "ijkl";

/* "256 + i * 4096" */
static void put_growing(const Wording *w, Parameter each, Text *out) {
    const Parameter i = w->parameters.at[0];
    int64_t step = each.step / i.step, base = each.first - step * i.first, size = step < 0 ? -step : step;
    int64_t last = i.first + (w->fold->times - 1) * i.step, most = (last > i.first ? last : i.first) * size;
    const char *wide = most > INT32_MAX || base > INT32_MAX || base + most > INT32_MAX ? "LL" : "";
    const char *times = size == 1 && !*wide ? "i" : arena_printf(out->arena, "i * %lld%s", (long long)size, wide);
    if (base > 0 || step < 0)
        text_printf(out, "%lld %c %s", (long long)base, step < 0 ? '-' : '+', times);
    else if (base < 0)
        text_printf(out, "%s - %lld", times, (long long)-base);
    else
        text_puts(out, times);
}

static Parameter growth_in(const Wording *w, int row, int k) {
    return w->fold ? growth(w->table, w->fold, row, k) : (Parameter){w->table->rows.at[row].pieces.at[k].number, 0};
}

/* A string with what its pieces say, from piece `k` on: `"h." #i ".weight"`. Returns the piece that ends it. */
static int put_string(const Wording *w, int row, int k, Text *out) {
    Arena *arena = w->table->arena;
    const TableRow *at = &w->table->rows.at[row];
    Text name = TEXT(arena);
    bool any = false;
    for (; at->pieces.at[k].kind != PIECE_TEXT; k++) {
        const Parameter each = growth_in(w, row, k);
        if (at->pieces.at[k].kind == PIECE_NAME)
            text_puts(&name, at->pieces.at[k].text);
        else if (!each.step)
            text_printf(&name, "%lld", (long long)each.first);
        else {
            if (name.length)
                text_printf(out, "%s%s", any ? " " : "", quoted(arena, text_string(&name)));
            text_printf(out, "%s#%c", any || name.length ? " " : "",
                        parameter_names[find_parameter(&w->parameters, each)]);
            name = TEXT(arena);
            any = true;
        }
    }
    if (name.length || !any)
        text_printf(out, "%s%s", any ? " " : "", quoted(arena, text_string(&name)));
    return k;
}

typedef VEC(const char *) Lines;

/* Ends a line of a row before the member `item` where that does not fit any more. `begin`: what stands before its first member. */
static void put_member(Arena *arena, Text *line, size_t *begin, const char *item, int columns, Lines *lines) {
    bool first = line->length == *begin;
    if (!first && (int)(line->length + strlen(", ") + strlen(item) + strlen(",")) > columns) {
        VEC_PUSH(arena, lines, arena_printf(arena, "%s,", text_string(line)));
        *line = TEXT(arena);
        text_putc(line, ' ');
        *begin = line->length;
        first = true;
    }
    text_printf(line, "%s%s", first ? "" : ", ", item);
}

static const char *member_text(const Wording *w, int row, int *k) {
    const TableRow *at = &w->table->rows.at[row];
    Text item = TEXT(w->table->arena);
    for (; *k < at->pieces.count && at->pieces.at[*k].kind != PIECE_NEXT; ++*k) {
        const Piece *piece = &at->pieces.at[*k];
        const Parameter each = growth_in(w, row, *k);
        if (piece->kind == PIECE_TEXT)
            text_puts(&item, piece->text);
        else if (piece->kind != PIECE_NUMBER)
            *k = put_string(w, row, *k, &item);
        else if (each.step)
            put_growing(w, each, &item);
        else
            text_printf(&item, "%lld", (long long)each.first);
    }
    ++*k;
    return text_string(&item);
}

/* "{a, b, c}" or "VALUE(a, b, c)" in lines of up to `columns`. */
static Lines lines_of(const Wording *w, int row, int columns) {
    Arena *arena = w->table->arena;
    const char *macro = w->table->rows.at[row].macro;
    Lines lines = {0};
    Text line = TEXT(arena);
    text_printf(&line, "%s%s", macro ? macro : "", macro ? "(" : "{");
    size_t begin = line.length;
    for (int k = 0; k < w->table->rows.at[row].pieces.count;)
        put_member(arena, &line, &begin, member_text(w, row, &k), columns, &lines);
    text_puts(&line, macro ? ")" : "}");
    VEC_PUSH(arena, &lines, text_string(&line));
    return lines;
}

/* ---- the table ---- */

static bool fits_beside(int width, const char *about, const Writer *out) {
    return 4 * out->indent + width + strlen(" // ") + strlen(about) <= LONGEST_LINE;
}

static void write_single(const RowTable *table, int row, int width, Writer *out) {
    const Wording w = {.table = table};
    const Lines lines = lines_of(&w, row, LONGEST_LINE - 4 * out->indent - 1);
    const char *about = table->rows.at[row].about, *last = lines.at[lines.count - 1];
    for (int k = 0; k + 1 < lines.count; k++)
        write_line(out, "%s", lines.at[k]);
    if (about && (width < LONGEST_LINE / 2 || fits_beside(width, about, out)))
        write_noted(out, width, arena_printf(table->arena, "%s,", last), about);
    else
        write_line(out, "%s,", last);
}

static void write_arguments(const RowTable *table, const Fold *fold, const Parameters *p, Writer *out) {
    const char **calls = NEW_ARRAY(table->arena, const char *, fold->times);
    for (int n = 0; n < fold->times; n++) {
        Text call = TEXT(table->arena);
        for (int k = 0; k < p->count; k++)
            text_printf(&call, "%s%lld", k ? ", " : "ROWS(", (long long)(p->at[k].first + n * p->at[k].step));
        text_putc(&call, ')');
        calls[n] = text_string(&call);
    }
    write_list(out, "", calls, fold->times, ",");
}

/* The number that two names differ in, each in digits; false: that is not all. */
static bool differ_in_a_number(const char *a, const char *b, int *same, int *from, int *to) {
    *same = 0;
    while (a[*same] && a[*same] == b[*same])
        ++*same;
    while (*same && isdigit((unsigned char)a[*same - 1]))
        --*same;
    *from = (int)strspn(a + *same, "0123456789");
    *to = (int)strspn(b + *same, "0123456789");
    return *from && *to && text_same(a + *same + *from, b + *same + *to);
}

/* Of `count` rows: "h_{0..11}_ln_1" of h_0_ln_1 to h_11_ln_1, a number apart each; "h_0 ... h_end" of others; "h_0" where all are of that one. */
static const char *about_rows(Arena *arena, const TableRow *first, const TableRow *last, int count) {
    const char *a = first->about, *b = last->about;
    int same, from, to;
    if (text_same(a, b))
        return a;
    if (!differ_in_a_number(a, b, &same, &from, &to) || abs(atoi(b + same) - atoi(a + same)) != count - 1)
        return arena_printf(arena, "%s ... %s", a, b);
    return arena_printf(arena, "%.*s{%.*s..%.*s}%s", same, a, from, a + same, to, b + same, a + same + from);
}

/* "#define ROWS(i, j)" */
static const char *macro_head(Arena *arena, const Parameters *p) {
    Text head = TEXT(arena);
    for (int k = 0; k < p->count; k++)
        text_printf(&head, "%s%c", k ? ", " : "#define ROWS(", parameter_names[k]);
    text_putc(&head, ')');
    return text_string(&head);
}

static void write_macro(const RowTable *table, const Wording *w, Writer *out) {
    const Fold *fold = w->fold;
    const char *head = macro_head(table->arena, &w->parameters);
    const Lines first = lines_of(w, fold->first, LONGEST_LINE - 4 * out->indent - 3);
    if (fold->period == 1 && first.count == 1 && strlen(head) + strlen(first.at[0]) < LONGEST_LINE) {
        write_line(out, "%s %s", head, first.at[0]);
        return;
    }
    write_line(out, "%s \\", head);
    for (int row = 0; row < fold->period; row++) {
        const Lines lines = lines_of(w, fold->first + row, LONGEST_LINE - 4 * out->indent - 3);
        bool last = row + 1 == fold->period;
        for (int k = 0; k + 1 < lines.count; k++)
            write_line(out, "%s \\", lines.at[k]);
        write_line(out, "%s%s", lines.at[lines.count - 1], last ? "" : ", \\");
    }
}

static void write_fold(const RowTable *table, const Fold *fold, Writer *out) {
    const Wording w = {table, fold, parameters_of(table, fold)};
    const TableRow *first = &table->rows.at[fold->first], *last = first + fold->period * fold->times - 1;
    if (first->about)
        write_remark(out, "%s", about_rows(table->arena, first, last, fold->period * fold->times));
    write_macro(table, &w, out);
    write_arguments(table, fold, &w.parameters, out);
    write_line(out, "#undef ROWS");
}

static int widest(const Lines *lines) {
    int width = 0;
    for (int k = 0; k < lines->count; k++)
        width = (int)strlen(lines->at[k]) > width ? (int)strlen(lines->at[k]) : width;
    return width;
}

/* Sets what the rows are by themselves; returns the widest, with its comma. */
static int measure(RowTable *table) {
    int width = 0;
    const Wording w = {.table = table};
    for (int row = 0; row < table->rows.count; row++) {
        const Lines lines = lines_of(&w, row, LONGEST_LINE - 5), narrow = lines_of(&w, row, WIDEST_MEMBER);
        int own = widest(&lines) + 1;
        table->rows.at[row].lines = lines.count;
        table->rows.at[row].shape = shape_of(&table->rows.at[row]);
        table->rows.at[row].narrow = widest(&narrow) <= WIDEST_MEMBER;
        width = own > width ? own : width;
    }
    return width;
}

/* Its members are known by their order, and nothing stands behind it. */
static bool is_plain(const TableRow *row) {
    const Piece *first = &row->pieces.at[0];
    return !row->macro && !row->about && !(first->kind == PIECE_TEXT && first->text[0] == '.');
}

/* clang-format would change it: it has its own way with macros, with rows that take several lines, and with plain ones, of which it puts
 * several into a line. */
static bool own_layout(const RowTable *table, const Choice *choices) {
    bool own = table->rows.count > 1 && is_plain(&table->rows.at[0]);
    for (int row = 0; row < table->rows.count && !own; row += choices[row].fold.period * choices[row].fold.times)
        own = choices[row].fold.times > 1 || table->rows.at[row].lines > 1;
    return own;
}

static void write_chosen(const RowTable *table, const Choice *choices, int width, Writer *out) {
    for (int row = 0; row < table->rows.count;) {
        const Fold *fold = &choices[row].fold;
        if (fold->times == 1)
            write_single(table, row, width, out);
        else
            write_fold(table, fold, out);
        row += fold->period * fold->times;
    }
}

void write_table(RowTable *table, const char *head, Writer *out) {
    const int width = measure(table);
    const Choice *choices = choices_of(table);
    bool own = own_layout(table, choices);
    if (own)
        write_line(out, "// clang-format off");
    write_open(out, "%s = {", head);
    write_chosen(table, choices, width, out);
    write_close(out, "};");
    if (own)
        write_line(out, "// clang-format on");
}

/* ---- runs ---- */

/* "{3, 7}" of a row's numbers, or of what they grow by. */
static const char *numbers_of(const RowTable *table, const Fold *fold, int row, bool steps) {
    Text text = TEXT(table->arena);
    for (int k = 0; k < table->rows.at[row].pieces.count; k++)
        if (table->rows.at[row].pieces.at[k].kind == PIECE_NUMBER) {
            const Parameter each = growth(table, fold, row, k);
            text_printf(&text, "%s%lld", text.length ? ", " : "{", (long long)(steps ? each.step : each.first));
        }
    text_putc(&text, '}');
    return text_string(&text);
}

typedef struct RunText {
    const char *items[5], *row, *about; /* row: all of them in a line */
    int count;
} RunText;
typedef VEC(RunText) RunTexts;

/* The run of row `row`, which is of the fold's first period. */
static RunText run_text(const RowTable *table, const Fold *fold, int row) {
    Arena *arena = table->arena;
    const bool alone = fold->times == 1;
    const TableRow *first = &table->rows.at[row], *last = first + (fold->times - 1) * fold->period;
    const Fold self = {row, 0, 1}; /* numbers that go on to themselves */
    RunText run = {.items = {integer(arena, row), integer(arena, fold->period), integer(arena, fold->times),
                             numbers_of(table, alone ? &self : fold, row, false)},
                   .about = about_rows(arena, first, last, fold->times),
                   .count = alone ? 4 : 5};
    if (!alone)
        run.items[4] = numbers_of(table, fold, row, true);
    Text line = TEXT(arena);
    for (int k = 0; k < run.count; k++)
        text_printf(&line, "%s%s", k ? ", " : "{", run.items[k]);
    text_puts(&line, "},");
    run.row = text_string(&line);
    return run;
}

static RunTexts texts_of_runs(const RowTable *table, const Choice *choices) {
    RunTexts runs = {0};
    for (int row = 0; row < table->rows.count;) {
        const Fold *fold = &choices[row].fold;
        for (int k = row; k < row + fold->period; k++)
            VEC_PUSH(table->arena, &runs, run_text(table, fold, k));
        row += fold->period * fold->times;
    }
    return runs;
}

/* What a run is of stands beside all of them, or above each. */
static void write_run_texts(const RunTexts *runs, Writer *out) {
    int width = 0, longest = 0;
    for (int k = 0; k < runs->count; k++) {
        int row = (int)strlen(runs->at[k].row), about = (int)strlen(runs->at[k].about);
        width = row > width ? row : width;
        longest = about > longest ? about : longest;
    }
    bool beside = 4 * out->indent + width + longest + (int)strlen(" // ") <= LONGEST_LINE;
    for (int k = 0; k < runs->count; k++) {
        if (beside) {
            write_noted(out, width, runs->at[k].row, runs->at[k].about);
            continue;
        }
        write_remark(out, "%s", runs->at[k].about);
        write_row(out, runs->at[k].items, runs->at[k].count);
    }
}

const char *write_runs(RowTable *table, const RunTable *as, Writer *out) {
    table->again = AGAIN_RUN;
    const int width = measure(table), rows = table->rows.count;
    const Choice *choices = choices_of(table);
    const RunTexts runs = texts_of_runs(table, choices);
    const bool own = own_layout(table, choices);
    if (runs.count == rows) {
        if (own)
            write_line(out, "// clang-format off");
        write_open(out, "static %s %s %s[%d][%d] = {", as->memory, as->type, as->name, rows, as->columns);
        write_chosen(table, choices, width, out);
        write_close(out, "};");
        if (own)
            write_line(out, "// clang-format on");
        return as->name;
    }
    write_open(out, "static %s Places<%s, %d, %d> %s({", as->memory, as->type, rows, as->columns, as->name);
    write_run_texts(&runs, out);
    write_close(out, "});");
    return arena_printf(table->arena, "%s.at", as->name);
}
