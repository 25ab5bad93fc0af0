#include "emit/text/lexemes.h"

#include "support/diag.h"

#include <ctype.h>

/* ---- reading ---- */

typedef struct Infix {
    const char *text;
    LexemeKind kind;
    int binds;
} Infix;

static const Infix infixes[] = {{"?", LEXEME_QUESTION, BINDS_CHOICE},   {":", LEXEME_COLON, BINDS_CHOICE},
                                {"||", LEXEME_INFIX, BINDS_OR},         {"&&", LEXEME_INFIX, BINDS_AND},
                                {"==", LEXEME_INFIX, BINDS_EQUAL},      {"!=", LEXEME_INFIX, BINDS_EQUAL},
                                {"<", LEXEME_INFIX, BINDS_RELATION},    {">", LEXEME_INFIX, BINDS_RELATION},
                                {"<=", LEXEME_INFIX, BINDS_RELATION},   {">=", LEXEME_INFIX, BINDS_RELATION},
                                {"+", LEXEME_INFIX, BINDS_SUM},         {"-", LEXEME_INFIX, BINDS_SUM},
                                {"*", LEXEME_INFIX, BINDS_PRODUCT},     {"/", LEXEME_INFIX, BINDS_PRODUCT},
                                {"%", LEXEME_INFIX, BINDS_PRODUCT},     {"=", LEXEME_INFIX, BINDS_ASSIGNMENT},
                                {"+=", LEXEME_INFIX, BINDS_ASSIGNMENT}, {"-=", LEXEME_INFIX, BINDS_ASSIGNMENT},
                                {"*=", LEXEME_INFIX, BINDS_ASSIGNMENT}};

/* The operator that stands here between spaces; NULL: none. */
static const Infix *infix_here(const char *at) {
    size_t length = strcspn(at, " ");
    for (size_t k = 0; k < sizeof infixes / sizeof *infixes; k++)
        if (at[length] == ' ' && strlen(infixes[k].text) == length && strncmp(infixes[k].text, at, length) == 0)
            return &infixes[k];
    return NULL;
}

static bool in_word(char c) {
    return isalnum((unsigned char)c) || c == '_';
}

static int word_length(const char *at) {
    bool digits = isdigit((unsigned char)*at);
    int length = 0;
    while (in_word(at[length]) || strncmp(at + length, "::", 2) == 0 ||
           (length && at[length - 1] == ':' && at[length] == ':') ||
           (digits && (at[length] == '.' || (length && at[length - 1] == 'e' && at[length] == '-'))))
        length++;
    return length ? length : 1;
}

static int string_length(const char *at) {
    int length = 1;
    while (at[length] && at[length] != *at)
        length += at[length] == '\\' ? 2 : 1;
    return length + 1;
}

/* What stands at `at`; `open` is the bracket it stands in, or 0. */
static Lexeme lexeme_here(const char *at, bool spaced, char open) {
    const Infix *infix = spaced ? infix_here(at) : NULL;
    Lexeme lexeme = {.kind = LEXEME_WORD, .text = at, .length = 1, .spaced = spaced, .last = true};
    if (strncmp(at, "//", 2) == 0) {
        lexeme.kind = LEXEME_COMMENT;
        lexeme.length = (int)strlen(at);
    } else if (infix) {
        lexeme.kind = infix->kind;
        lexeme.binds = infix->binds;
        lexeme.length = (int)strlen(infix->text);
    } else if (strncmp(at, "[&]", 3) == 0)
        lexeme.length = 3;
    else if (strchr("([{", *at) || (*at == '<' && !spaced))
        lexeme.kind = LEXEME_OPEN;
    else if (strchr(")]}", *at) || (*at == '>' && open == '<'))
        lexeme.kind = LEXEME_CLOSE;
    else if (*at == ',')
        lexeme.kind = LEXEME_COMMA, lexeme.binds = BINDS_COMMA;
    else if (*at == ';')
        lexeme.kind = LEXEME_SEMICOLON;
    else if (strncmp(at, "->", 2) == 0 || (*at == '.' && !spaced))
        lexeme.kind = LEXEME_MEMBER, lexeme.binds = BINDS_MEMBER, lexeme.length = *at == '.' ? 1 : 2;
    else if (strchr("-!*&", *at))
        lexeme.kind = LEXEME_PREFIX;
    else if (strchr("\"'", *at))
        lexeme.kind = LEXEME_STRING, lexeme.length = string_length(at);
    else
        lexeme.length = word_length(at);
    return lexeme;
}

enum { MOST_DEPTH = 64 };

static Lexemes read_lexemes(Arena *arena, const char *line) {
    VEC(Lexeme) read = {0};
    char open[MOST_DEPTH + 1] = {0};
    int depth = 0;
    for (const char *at = line; *at;) {
        bool spaced = *at == ' ';
        at += spaced;
        Lexeme lexeme = lexeme_here(at, spaced, open[depth]);
        lexeme.depth = depth;
        ENSURE(depth < MOST_DEPTH);
        if (lexeme.kind == LEXEME_OPEN)
            open[++depth] = *at;
        else if (lexeme.kind == LEXEME_CLOSE && depth > 0)
            depth--;
        VEC_PUSH(arena, &read, lexeme);
        at += lexeme.length;
    }
    return (Lexemes){read.at, read.count, line};
}

/* ---- groups ---- */

static bool is_text(const Lexeme *lexeme, const char *text) {
    return lexeme->length == (int)strlen(text) && strncmp(lexeme->text, text, strlen(text)) == 0;
}

typedef struct Grouping {
    Lexemes line;
    int at;
} Grouping;

static const Lexeme *here(const Grouping *g) {
    return g->at < g->line.count ? &g->line.at[g->at] : NULL;
}

static bool is_here(const Grouping *g, LexemeKind kind) {
    return here(g) && here(g)->kind == kind;
}

static void group(Grouping *g, int first, int binds) {
    Lexeme *begins = &g->line.at[first];
    if (first == g->at || begins->groups == MOST_GROUPS)
        return;
    begins->group[begins->groups++] = binds;
    g->line.at[g->at - 1].ends++;
    g->line.at[g->at - 1].ends_operators |= binds != BINDS_NOTHING;
}

static void group_from(Grouping *g, int binds);

static void group_choice(Grouping *g) {
    int first = g->at;
    group_from(g, BINDS_OR);
    if (!is_here(g, LEXEME_QUESTION))
        return;
    g->at++;
    group_from(g, BINDS_ASSIGNMENT);
    if (!is_here(g, LEXEME_COLON))
        return;
    g->at++;
    group_from(g, BINDS_ASSIGNMENT);
    group(g, first, BINDS_CHOICE);
}

static void group_prefixes(Grouping *g) {
    int first = g->at;
    while (is_here(g, LEXEME_PREFIX))
        g->at++;
    int behind = g->at;
    group_from(g, BINDS_MEMBER);
    for (int k = behind - 1; k >= first; k--)
        group(g, k, BINDS_NOTHING);
}

static void group_brackets(Grouping *g) {
    Lexeme *open = &g->line.at[g->at];
    while (here(g) && !is_here(g, LEXEME_CLOSE)) {
        g->at++;
        group_from(g, BINDS_NOTHING);
    }
    g->at += here(g) != NULL;
    const Lexeme *close = &g->line.at[g->at - 1];
    open->width = (int)(close->text + close->length - open->text);
    for (const Lexeme *inside = open; inside < close; inside++)
        open->items += inside->kind == LEXEME_COMMA && inside->depth == open->depth + 1;
}

/* It binds less strongly than `binds`, so that an operand of that ends before it. */
static bool ends_operand(const Grouping *g, int binds) {
    const Lexeme *p = here(g);
    if (!p || p->kind == LEXEME_CLOSE || (p->kind == LEXEME_COLON && binds == BINDS_ASSIGNMENT))
        return true;
    bool operates = p->binds || p->kind == LEXEME_SEMICOLON;
    return operates && p->binds < binds;
}

/* Operands that are bound so strongly, with what binds them. */
static void group_infixes(Grouping *g, int binds) {
    int first = g->at;
    Lexeme *latest = NULL;
    while (here(g)) {
        group_from(g, binds + 1);
        if (ends_operand(g, binds))
            break;
        Lexeme *p = &g->line.at[g->at];
        if (p->kind == LEXEME_OPEN) {
            group_brackets(g);
            continue;
        }
        if (p->binds == binds && (binds || p->kind == LEXEME_SEMICOLON)) {
            p->index = latest ? latest->index + 1 : 0;
            if (latest)
                latest->last = false;
            latest = p;
        }
        g->at++;
    }
    if (latest && (here(g) || binds))
        group(g, first, binds == BINDS_MEMBER ? BINDS_NOTHING : binds);
}

static void group_from(Grouping *g, int binds) {
    g->at += g->at == 0 && is_text(g->line.at, "return");
    if (!here(g) || binds > BINDS_MEMBER)
        return;
    if (binds == BINDS_CHOICE)
        group_choice(g);
    else if (binds == BINDS_PREFIX)
        group_prefixes(g);
    else
        group_infixes(g, binds);
}

/* ---- charges ---- */

typedef struct Pair {
    const Lexeme *left, *right;
    const Lexemes *line;
    bool declares_function, loops;
} Pair;

static bool is_name_of_declared(const Pair *p) {
    bool typed = p->left->kind == LEXEME_WORD || is_text(p->left, ">");
    return p->right->kind == LEXEME_WORD && p->right->spaced && typed && !is_text(p->left, "return");
}

static bool names_function(const Pair *p) {
    return p->declares_function && p->right->depth == 0 && p->right + 1 < p->line->at + p->line->count &&
           is_text(p->right + 1, "(");
}

/* "(float)t": what is cast stands at its type, as nothing else does behind a parenthesis. */
static bool is_cast(const Pair *p) {
    return p->left->kind == LEXEME_CLOSE && p->right->kind == LEXEME_WORD && !p->right->spaced;
}

static bool may_begin(const Pair *p) {
    const Lexeme *left = p->left, *right = p->right;
    if (right->kind == LEXEME_QUESTION || right->kind == LEXEME_COLON)
        return true;
    if (left->kind == LEXEME_QUESTION || left->kind == LEXEME_COLON || left->kind == LEXEME_PREFIX)
        return false;
    if (right->kind == LEXEME_CLOSE || right->kind == LEXEME_COMMENT)
        return false;
    if (left->kind == LEXEME_INFIX || left->kind == LEXEME_COMMA || (left->kind == LEXEME_SEMICOLON && right->spaced))
        return true;
    if (left->kind == LEXEME_OPEN)
        return *left->text != '[';
    bool typed = is_name_of_declared(p) && (!p->declares_function || right->depth > 0 || names_function(p));
    return right->kind == LEXEME_MEMBER || is_text(right, "[") || typed || right->is_cast;
}

static int charge(const Pair *p) {
    enum {
        LAMBDA = 35,
        NAME = 200,
        FUNCTION = 60,
        LIST = 160,
        MEMBER = 150,
        LOOP = 4,
        CAST = 100,
        PARAMETER = 100,
        SUBSCRIPT = 500,
        HEAD = 1000,
        TEMPLATE = 100,
        OPENING = 19,
        OTHER = 3
    };
    const Lexeme *left = p->left, *right = p->right;
    bool assigned = left->binds == BINDS_ASSIGNMENT;
    if (left->kind == LEXEME_SEMICOLON)
        return 0;
    if (assigned && is_text(right, "[&]"))
        return LAMBDA;
    if (names_function(p))
        return FUNCTION;
    if (is_name_of_declared(p))
        return NAME;
    if (assigned && is_text(right, "{"))
        return LIST;
    if (right->kind == LEXEME_MEMBER)
        return MEMBER;
    if (right->is_cast)
        return CAST;
    if (is_text(right, "["))
        return SUBSCRIPT;
    if (p->loops && assigned)
        return LOOP;
    if (left->kind == LEXEME_OPEN) {
        bool head = left > p->line->at && (is_text(left - 1, "for") || is_text(left - 1, "if"));
        return head                                         ? HEAD
               : *left->text == '<'                         ? TEMPLATE
               : *left->text == '(' && p->declares_function ? PARAMETER
                                                            : OPENING;
    }
    if (left->kind == LEXEME_QUESTION || left->kind == LEXEME_COLON || right->kind == LEXEME_QUESTION ||
        right->kind == LEXEME_COLON)
        return BINDS_CHOICE;
    return left->binds ? left->binds : right->binds ? right->binds : OTHER;
}

/* What a break within brackets costs, for each of those around it. */
static int strength_of(const Lexeme *open) {
    return strchr("[<", *open->text) ? 10 : 1;
}

static void charge_all(Lexemes *line) {
    enum { LEVEL = 20 };
    int strength[MOST_DEPTH + 1] = {0}, depth = 0;
    const Lexeme *first = line->at, *last = &line->at[line->count - 1];
    bool loops = is_text(first, "for"),
         declares = is_text(first, "static") && is_text(last, "{") && is_text(last - 1, ")");
    for (int k = 0; k < line->count; k++) {
        Lexeme *lexeme = &line->at[k];
        if (k) {
            const Pair pair = {lexeme - 1, lexeme, line, declares, loops};
            lexeme->names_function = names_function(&pair);
            lexeme->is_cast = is_cast(&pair);
            lexeme->may_begin = may_begin(&pair);
            lexeme->charge = LEVEL * (1 + strength[depth]) + charge(&pair);
        }
        if (lexeme->kind == LEXEME_OPEN) {
            strength[depth + 1] = strength[depth] + strength_of(lexeme);
            depth++;
        } else if (lexeme->kind == LEXEME_CLOSE && depth)
            depth--;
    }
}

Lexemes lexemes_of(Arena *arena, const char *line) {
    Lexemes lexemes = read_lexemes(arena, line);
    Grouping grouping = {lexemes, 0};
    while (here(&grouping)) {
        group_from(&grouping, BINDS_NOTHING);
        grouping.at += here(&grouping) != NULL;
    }
    charge_all(&lexemes);
    return lexemes;
}
