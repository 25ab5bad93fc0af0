#include "emit/text/pieces.h"

#include "support/diag.h"

#include <ctype.h>

/* ---- reading ---- */

typedef struct Infix {
    const char *text;
    PieceKind kind;
    int binds;
} Infix;

static const Infix infixes[] = {
    {"?", PIECE_QUESTION, BINDS_CHOICE},  {":", PIECE_COLON, BINDS_CHOICE},      {"||", PIECE_INFIX, BINDS_OR},
    {"&&", PIECE_INFIX, BINDS_AND},       {"==", PIECE_INFIX, BINDS_EQUAL},      {"!=", PIECE_INFIX, BINDS_EQUAL},
    {"<", PIECE_INFIX, BINDS_RELATION},   {">", PIECE_INFIX, BINDS_RELATION},    {"<=", PIECE_INFIX, BINDS_RELATION},
    {">=", PIECE_INFIX, BINDS_RELATION},  {"+", PIECE_INFIX, BINDS_SUM},         {"-", PIECE_INFIX, BINDS_SUM},
    {"*", PIECE_INFIX, BINDS_PRODUCT},    {"/", PIECE_INFIX, BINDS_PRODUCT},     {"%", PIECE_INFIX, BINDS_PRODUCT},
    {"=", PIECE_INFIX, BINDS_ASSIGNMENT}, {"+=", PIECE_INFIX, BINDS_ASSIGNMENT}, {"-=", PIECE_INFIX, BINDS_ASSIGNMENT},
    {"*=", PIECE_INFIX, BINDS_ASSIGNMENT}};

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
static Piece piece_here(const char *at, bool spaced, char open) {
    const Infix *infix = spaced ? infix_here(at) : NULL;
    Piece piece = {.kind = PIECE_WORD, .text = at, .length = 1, .spaced = spaced, .last = true};
    if (strncmp(at, "//", 2) == 0) {
        piece.kind = PIECE_COMMENT;
        piece.length = (int)strlen(at);
    } else if (infix) {
        piece.kind = infix->kind;
        piece.binds = infix->binds;
        piece.length = (int)strlen(infix->text);
    } else if (strncmp(at, "[&]", 3) == 0)
        piece.length = 3;
    else if (strchr("([{", *at) || (*at == '<' && !spaced))
        piece.kind = PIECE_OPEN;
    else if (strchr(")]}", *at) || (*at == '>' && open == '<'))
        piece.kind = PIECE_CLOSE;
    else if (*at == ',')
        piece.kind = PIECE_COMMA, piece.binds = BINDS_COMMA;
    else if (*at == ';')
        piece.kind = PIECE_SEMICOLON;
    else if (strncmp(at, "->", 2) == 0 || (*at == '.' && !spaced))
        piece.kind = PIECE_MEMBER, piece.binds = BINDS_MEMBER, piece.length = *at == '.' ? 1 : 2;
    else if (strchr("-!*&", *at))
        piece.kind = PIECE_PREFIX;
    else if (strchr("\"'", *at))
        piece.kind = PIECE_STRING, piece.length = string_length(at);
    else
        piece.length = word_length(at);
    return piece;
}

enum { MOST_DEPTH = 64 };

static Pieces read_pieces(Arena *arena, const char *line) {
    VEC(Piece) read = {0};
    char open[MOST_DEPTH + 1] = {0};
    int depth = 0;
    for (const char *at = line; *at;) {
        bool spaced = *at == ' ';
        at += spaced;
        Piece piece = piece_here(at, spaced, open[depth]);
        piece.depth = depth;
        ENSURE(depth < MOST_DEPTH);
        if (piece.kind == PIECE_OPEN)
            open[++depth] = *at;
        else if (piece.kind == PIECE_CLOSE && depth > 0)
            depth--;
        VEC_PUSH(arena, &read, piece);
        at += piece.length;
    }
    return (Pieces){read.at, read.count, line};
}

/* ---- groups ---- */

static bool is_text(const Piece *piece, const char *text) {
    return piece->length == (int)strlen(text) && strncmp(piece->text, text, strlen(text)) == 0;
}

typedef struct Grouping {
    Pieces line;
    int at;
} Grouping;

static const Piece *here(const Grouping *g) {
    return g->at < g->line.count ? &g->line.at[g->at] : NULL;
}

static bool is_here(const Grouping *g, PieceKind kind) {
    return here(g) && here(g)->kind == kind;
}

static void group(Grouping *g, int first, int binds) {
    Piece *begins = &g->line.at[first];
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
    if (!is_here(g, PIECE_QUESTION))
        return;
    g->at++;
    group_from(g, BINDS_ASSIGNMENT);
    if (!is_here(g, PIECE_COLON))
        return;
    g->at++;
    group_from(g, BINDS_ASSIGNMENT);
    group(g, first, BINDS_CHOICE);
}

static void group_prefixes(Grouping *g) {
    int first = g->at;
    while (is_here(g, PIECE_PREFIX))
        g->at++;
    int behind = g->at;
    group_from(g, BINDS_MEMBER);
    for (int k = behind - 1; k >= first; k--)
        group(g, k, BINDS_NOTHING);
}

static void group_brackets(Grouping *g) {
    Piece *open = &g->line.at[g->at];
    while (here(g) && !is_here(g, PIECE_CLOSE)) {
        g->at++;
        group_from(g, BINDS_NOTHING);
    }
    g->at += here(g) != NULL;
    const Piece *close = &g->line.at[g->at - 1];
    open->width = (int)(close->text + close->length - open->text);
    for (const Piece *inside = open; inside < close; inside++)
        open->items += inside->kind == PIECE_COMMA && inside->depth == open->depth + 1;
}

/* It binds less strongly than `binds`, so that an operand of that ends before it. */
static bool ends_operand(const Grouping *g, int binds) {
    const Piece *p = here(g);
    if (!p || p->kind == PIECE_CLOSE || (p->kind == PIECE_COLON && binds == BINDS_ASSIGNMENT))
        return true;
    bool operates = p->binds || p->kind == PIECE_SEMICOLON;
    return operates && p->binds < binds;
}

/* Operands that are bound so strongly, with what binds them. */
static void group_infixes(Grouping *g, int binds) {
    int first = g->at;
    Piece *latest = NULL;
    while (here(g)) {
        group_from(g, binds + 1);
        if (ends_operand(g, binds))
            break;
        Piece *p = &g->line.at[g->at];
        if (p->kind == PIECE_OPEN) {
            group_brackets(g);
            continue;
        }
        if (p->binds == binds && (binds || p->kind == PIECE_SEMICOLON)) {
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
    const Piece *left, *right;
    const Pieces *line;
    bool declares_function, loops;
} Pair;

static bool is_name_of_declared(const Pair *p) {
    bool typed = p->left->kind == PIECE_WORD || is_text(p->left, ">");
    return p->right->kind == PIECE_WORD && p->right->spaced && typed && !is_text(p->left, "return");
}

static bool names_function(const Pair *p) {
    return p->declares_function && p->right->depth == 0 && p->right + 1 < p->line->at + p->line->count &&
           is_text(p->right + 1, "(");
}

static bool may_begin(const Pair *p) {
    const Piece *left = p->left, *right = p->right;
    if (right->kind == PIECE_QUESTION || right->kind == PIECE_COLON)
        return true;
    if (left->kind == PIECE_QUESTION || left->kind == PIECE_COLON || left->kind == PIECE_PREFIX)
        return false;
    if (right->kind == PIECE_CLOSE || right->kind == PIECE_COMMENT)
        return false;
    if (left->kind == PIECE_INFIX || left->kind == PIECE_COMMA || (left->kind == PIECE_SEMICOLON && right->spaced))
        return true;
    if (left->kind == PIECE_OPEN)
        return *left->text != '[';
    bool typed = is_name_of_declared(p) && (!p->declares_function || right->depth > 0 || names_function(p));
    return right->kind == PIECE_MEMBER || is_text(right, "[") || typed;
}

static int charge(const Pair *p) {
    enum {
        LAMBDA = 35,
        NAME = 200,
        FUNCTION = 60,
        LIST = 160,
        MEMBER = 150,
        LOOP = 4,
        PARAMETER = 100,
        SUBSCRIPT = 500,
        HEAD = 1000,
        TEMPLATE = 100,
        OPENING = 19,
        OTHER = 3
    };
    const Piece *left = p->left, *right = p->right;
    bool assigned = left->binds == BINDS_ASSIGNMENT;
    if (left->kind == PIECE_SEMICOLON)
        return 0;
    if (assigned && is_text(right, "[&]"))
        return LAMBDA;
    if (names_function(p))
        return FUNCTION;
    if (is_name_of_declared(p))
        return NAME;
    if (assigned && is_text(right, "{"))
        return LIST;
    if (right->kind == PIECE_MEMBER)
        return MEMBER;
    if (is_text(right, "["))
        return SUBSCRIPT;
    if (p->loops && assigned)
        return LOOP;
    if (left->kind == PIECE_OPEN) {
        bool head = left > p->line->at && (is_text(left - 1, "for") || is_text(left - 1, "if"));
        return head                                         ? HEAD
               : *left->text == '<'                         ? TEMPLATE
               : *left->text == '(' && p->declares_function ? PARAMETER
                                                            : OPENING;
    }
    if (left->kind == PIECE_QUESTION || left->kind == PIECE_COLON || right->kind == PIECE_QUESTION ||
        right->kind == PIECE_COLON)
        return BINDS_CHOICE;
    return left->binds ? left->binds : right->binds ? right->binds : OTHER;
}

/* What a break within brackets costs, for each of those around it. */
static int strength_of(const Piece *open) {
    return strchr("[<", *open->text) ? 10 : 1;
}

static void charge_all(Pieces *line) {
    enum { LEVEL = 20 };
    int strength[MOST_DEPTH + 1] = {0}, depth = 0;
    const Piece *first = line->at, *last = &line->at[line->count - 1];
    bool loops = is_text(first, "for"),
         declares = is_text(first, "static") && is_text(last, "{") && is_text(last - 1, ")");
    for (int k = 0; k < line->count; k++) {
        Piece *piece = &line->at[k];
        if (k) {
            const Pair pair = {piece - 1, piece, line, declares, loops};
            piece->names_function = names_function(&pair);
            piece->may_begin = may_begin(&pair);
            piece->charge = LEVEL * (1 + strength[depth]) + charge(&pair);
        }
        if (piece->kind == PIECE_OPEN) {
            strength[depth + 1] = strength[depth] + strength_of(piece);
            depth++;
        } else if (piece->kind == PIECE_CLOSE && depth)
            depth--;
    }
}

Pieces pieces_of(Arena *arena, const char *line) {
    Pieces pieces = read_pieces(arena, line);
    Grouping grouping = {pieces, 0};
    while (here(&grouping)) {
        group_from(&grouping, BINDS_NOTHING);
        grouping.at += here(&grouping) != NULL;
    }
    charge_all(&pieces);
    return pieces;
}
