/* The canonical layout. Works on tokens, so that nothing of the text is lost:
 *
 *   tokens -> lines (where the writer broke them; blocks of several lines are opened up)
 *          -> indentation, spaces between tokens
 *          -> columns: `=` and `:` of neighbouring assignments, comments of neighbouring lines */
#include "front/parse.h"
#include "parser.h"

enum { INDENT = 2, CONTINUATION = 4 };

typedef struct Line {
    int first, count; /* tokens */
    Span comment;     /* source NULL: none */
    int indent;
    bool blank, continued;
    int key; /* tokens before the `=` or `:` that is aligned; 0: none */
    const char *code;
    int column; /* of the comment */
} Line;

typedef struct Formatter {
    Arena *arena;
    const Source *source;
    TokenList tokens;
    int *partner;    /* of a brace whose block takes several lines: the other brace; else -1 */
    bool *bracketed; /* the token stands in brackets */
    VEC(Line) lines;
} Formatter;

static int kind_at(const Formatter *f, int token) {
    return token < f->tokens.count && token >= 0 ? f->tokens.at[token].kind : 0;
}

static const char *text_at(const Formatter *f, int token) {
    return span_text(f->arena, f->tokens.at[token].span);
}

/* ---- lines ---- */

static void match_braces(Formatter *f) {
    VEC(int) open = {0};
    int line = 0;
    int *line_of = NEW_ARRAY(f->arena, int, f->tokens.count);
    f->partner = NEW_ARRAY(f->arena, int, f->tokens.count);
    for (int i = 0; i < f->tokens.count; i++) {
        int kind = f->tokens.at[i].kind;
        f->partner[i] = -1;
        line_of[i] = line += kind == T_NEWLINE;
        if (kind == '{')
            VEC_PUSH(f->arena, &open, i);
        if (kind != '}' || open.count == 0)
            continue;
        int begin = open.at[--open.count];
        if (line_of[begin] == line)
            continue;
        f->partner[begin] = i;
        f->partner[i] = begin;
    }
}

static void mark_bracketed(Formatter *f) {
    int depth = 0;
    f->bracketed = NEW_ARRAY(f->arena, bool, f->tokens.count);
    for (int i = 0; i < f->tokens.count; i++) {
        int kind = f->tokens.at[i].kind;
        depth += (kind == '[') - (kind == ']');
        f->bracketed[i] = depth > 0;
    }
}

/* A comment can only stand before the end of its line. */
static Span comment_before(const Formatter *f, int token) {
    uint32_t from = token ? f->tokens.at[token - 1].span.end : 0;
    uint32_t to = kind_at(f, token) ? f->tokens.at[token].span.begin : (uint32_t)f->source->size;
    const char *text = f->source->text, *sign = memchr(text + from, '#', to - from);
    if (!sign)
        return (Span){0};
    while (to > from && strchr(" \t\r", text[to - 1]))
        to--;
    return (Span){f->source, (uint32_t)(sign - text), to};
}

static void end_line(Formatter *f, int *first, int end, Span comment) {
    Line line = {.first = *first, .count = end - *first, .comment = comment};
    line.blank = line.count == 0 && !comment.source;
    VEC_PUSH(f->arena, &f->lines, line);
    *first = end;
}

static void split_lines(Formatter *f) {
    int first = 0;
    for (int i = 0; i < f->tokens.count; i++) {
        int kind = f->tokens.at[i].kind;
        bool opens = i > first && kind_at(f, i - 1) == '{' && f->partner[i - 1] >= 0;
        bool closes = i > first && kind == '}' && f->partner[i] >= 0;
        if (kind == T_NEWLINE || kind == 0) {
            end_line(f, &first, i, comment_before(f, i));
            first = i + 1;
        } else if (opens || closes) {
            end_line(f, &first, i, (Span){0});
        }
    }
}

/* ---- indentation ---- */

static bool unfinished(const Formatter *f, const Line *line) {
    static const int infix[] = {'+',  '-',  '*',  '/',  '%',   '^',  '<',   '>',
                                T_LE, T_GE, T_EQ, T_NE, T_AND, T_OR, T_NOT, ','};
    int last = line->count ? kind_at(f, line->first + line->count - 1) : 0;
    for (size_t i = 0; i < sizeof infix / sizeof *infix; i++)
        if (last == infix[i])
            return true;
    return false;
}

static bool opens(int kind) {
    return kind == '(' || kind == '[';
}

static bool closes(int kind) {
    return kind == ')' || kind == ']';
}

static void indent_lines(Formatter *f) {
    int braces = 0, brackets = 0;
    bool open_end = false;
    for (int i = 0; i < f->lines.count; i++) {
        Line *line = &f->lines.at[i];
        int leading = kind_at(f, line->first);
        bool shut = line->count && (leading == '}' || closes(leading));
        line->continued = brackets > 0 || open_end;
        line->indent =
            INDENT * (braces - (line->count && leading == '}')) + (line->continued && !shut ? CONTINUATION : 0);
        for (int k = line->first; k < line->first + line->count; k++) {
            int kind = kind_at(f, k);
            braces += (kind == '{') - (kind == '}');
            brackets += opens(kind) - closes(kind);
        }
        if (line->count)
            open_end = unfinished(f, line);
    }
}

/* ---- spaces ---- */

static bool is_name(int kind) {
    return kind == T_NAME || kind == T_PARAM || kind == T_INCLUDE || kind == T_DATA || kind == T_MODEL ||
           kind == T_TRAIN || kind == T_LAYER;
}

static bool ends_operand(int kind) {
    return is_name(kind) || closes(kind) || kind == T_NUMBER || kind == T_STRING || kind == T_TRUE || kind == T_FALSE ||
           kind == T_NONE;
}

static bool is_sign(const Formatter *f, const Line *line, int token) {
    return kind_at(f, token) == '-' && (token == line->first || !ends_operand(kind_at(f, token - 1)));
}

static bool space_between(const Formatter *f, const Line *line, int token) {
    int before = kind_at(f, token - 1), kind = kind_at(f, token);
    if (opens(before) || closes(kind) || kind == ',')
        return false;
    if (opens(kind) && (is_name(before) || before == ']')) /* class[65][129] */
        return false;
    if (kind == '[' && before == ')') /* relu(x)[0] */
        return false;
    if (f->bracketed[token] && (before == ':' || (kind == ':' && before != ','))) /* x[:, 1:3] */
        return false;
    if (before == T_DOTDOT || kind == T_DOTDOT || before == '^' || kind == '^')
        return false;
    return !is_sign(f, line, token - 1);
}

/* ---- columns ---- */

static int width(const char *text) {
    int characters = 0;
    for (; *text; text++)
        characters += ((unsigned char)*text & 0xC0) != 0x80;
    return characters;
}

/* `name =`, `a, b =`, `name :`, `param name =`: how many tokens stand before the sign. */
static int key_length(const Formatter *f, const Line *line) {
    int key = kind_at(f, line->first) == T_PARAM && is_name(kind_at(f, line->first + 1)) ? 2 : 1;
    while (kind_at(f, line->first + key) == ',' && is_name(kind_at(f, line->first + key + 1)))
        key += 2;
    int sign = kind_at(f, line->first + key);
    if (line->continued || line->count <= key || !is_name(kind_at(f, line->first)))
        return 0;
    return sign == '=' || sign == ':' ? key : 0;
}

static void put_tokens(const Formatter *f, const Line *line, int from, int to, Text *out) {
    for (int i = from; i < to; i++) {
        if (i > line->first && space_between(f, line, i))
            text_putc(out, ' ');
        text_puts(out, text_at(f, i));
    }
}

static int key_width(const Formatter *f, const Line *line) {
    Text key = TEXT(f->arena);
    put_tokens(f, line, line->first, line->first + line->key, &key);
    return width(text_string(&key));
}

/* Lines that follow each other at one depth, each with a key. */
static int key_group(Formatter *f, int from, int *widest) {
    int end = from;
    *widest = 0;
    for (; end < f->lines.count; end++) {
        Line *line = &f->lines.at[end];
        line->key = key_length(f, line);
        if (!line->key || line->indent != f->lines.at[from].indent)
            break;
        int own = key_width(f, line);
        *widest = own > *widest ? own : *widest;
    }
    return end;
}

static void set_code(Formatter *f, Line *line, int widest) {
    Text out = TEXT(f->arena);
    int rest = line->first + line->key;
    put_tokens(f, line, line->first, rest, &out);
    for (int pad = line->key ? widest - width(text_string(&out)) : 0; pad > 0; pad--)
        text_putc(&out, ' ');
    put_tokens(f, line, rest, line->first + line->count, &out);
    line->code = text_string(&out);
}

static void align_keys(Formatter *f) {
    for (int i = 0; i < f->lines.count;) {
        int widest, end = key_group(f, i, &widest);
        if (end == i)
            set_code(f, &f->lines.at[end++], 0);
        for (; i < end; i++)
            if (f->lines.at[i].key)
                set_code(f, &f->lines.at[i], widest);
    }
}

static bool trails(const Line *line) {
    return line->comment.source && line->count > 0;
}

/* Lines that follow each other at one depth, each with a comment at its end. */
static int comment_group(const Formatter *f, int from, int *column) {
    int end = from;
    *column = 0;
    for (; end < f->lines.count; end++) {
        const Line *line = &f->lines.at[end];
        if (!trails(line) || line->indent != f->lines.at[from].indent)
            break;
        int own = line->indent + width(line->code);
        *column = own > *column ? own : *column;
    }
    return end;
}

static void align_comments(Formatter *f) {
    for (int i = 0; i < f->lines.count;) {
        int column, end = comment_group(f, i, &column);
        if (end == i)
            i++;
        for (; i < end; i++)
            f->lines.at[i].column = column + 2;
    }
}

/* ---- empty lines ---- */

/* One at most, none at the beginning or the end of the file or of a block. */
static bool keep_blank(const Formatter *f, int index) {
    int next = index;
    while (next < f->lines.count && f->lines.at[next].blank)
        next++;
    if (index == 0 || next == f->lines.count || f->lines.at[index - 1].blank)
        return false;
    const Line *before = &f->lines.at[index - 1], *after = &f->lines.at[next];
    bool begins = before->count && kind_at(f, before->first + before->count - 1) == '{';
    return !begins && !(after->count && kind_at(f, after->first) == '}');
}

static void drop_blanks(Formatter *f) {
    Line *kept = NEW_ARRAY(f->arena, Line, f->lines.count);
    int count = 0;
    for (int i = 0; i < f->lines.count; i++)
        if (!f->lines.at[i].blank || keep_blank(f, i))
            kept[count++] = f->lines.at[i];
    f->lines.at = kept;
    f->lines.count = count;
}

/* ---- output ---- */

static void pad(Text *out, int count) {
    while (count-- > 0)
        text_putc(out, ' ');
}

static void put_line(const Formatter *f, const Line *line, Text *out) {
    pad(out, line->blank ? 0 : line->indent);
    text_puts(out, line->code);
    if (trails(line))
        pad(out, line->column - line->indent - width(line->code));
    if (line->comment.source)
        text_puts(out, span_text(f->arena, line->comment));
    text_putc(out, '\n');
}

bool front_format(Diag *diag, Arena *arena, const char *path, Text *out) {
    int errors = diag_errors(diag);
    Source *source = source_read(diag, arena, path, (Span){0});
    if (!source)
        return false;
    Ast *ast = NEW(arena, Ast);
    ast->arena = arena;
    parse_source(diag, ast, NULL, source);
    if (diag_errors(diag) > errors)
        return false;
    Formatter f = {.arena = arena, .source = source, .tokens = lex_all(diag, arena, source)};
    match_braces(&f);
    mark_bracketed(&f);
    split_lines(&f);
    drop_blanks(&f);
    indent_lines(&f);
    align_keys(&f);
    align_comments(&f);
    for (int i = 0; i < f.lines.count; i++)
        put_line(&f, &f.lines.at[i], out);
    return true;
}
