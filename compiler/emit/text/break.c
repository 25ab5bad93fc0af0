/* Lines that are too long go on in further ones, as clang-format has them (layout.h). */
#include "emit/text/layout.h"
#include "emit/text/writer.h"

typedef struct Breaker {
    Writer *w;
    PutLine put;
    int columns; /* of the line */
} Breaker;

static bool is_bracket(const Piece *piece, PieceKind kind, char bracket) {
    return piece->kind == kind && *piece->text == bracket;
}

/* Pieces first .. last as they stand. */
static void put_pieces(const Breaker *b, int columns, const Piece *first, const Piece *last) {
    b->put(b->w, columns, first->text, (size_t)(last->text + last->length - first->text));
}

static const Piece *last_of(const Pieces *line) {
    return &line->at[line->count - 1];
}

static bool has_piece(const Pieces *line, PieceKind kind) {
    for (int k = 0; k < line->count; k++)
        if (line->at[k].kind == kind)
            return true;
    return false;
}

static bool assigns(const Pieces *line) {
    for (int k = 0; k < line->count; k++)
        if (line->at[k].kind == PIECE_INFIX && line->at[k].binds == BINDS_ASSIGNMENT && line->at[k].depth == 0)
            return true;
    return false;
}

/* "{.line = 3, .text = "..."}," */
static bool is_row_of_members(const Pieces *line) {
    return is_bracket(line->at, PIECE_OPEN, '{') && line->count > 1 && *line->at[1].text == '.';
}

/* A member a line. */
static void break_row(const Breaker *b, const Pieces *line) {
    const Piece *first = line->at;
    for (const Piece *piece = first + 1; piece < last_of(line); piece++)
        if (piece->kind == PIECE_COMMA && piece->depth == 1 && *piece[1].text == '.') {
            put_pieces(b, b->columns + (first > line->at), first, piece);
            first = piece + 1;
        }
    put_pieces(b, b->columns + (first > line->at), first, last_of(line));
}

/* "{ x; }" of "auto out = [&](int i) { x; };"; NULL: there is none. */
static const Piece *block_of(const Pieces *line) {
    for (const Piece *piece = line->at + 1; piece < last_of(line); piece++)
        if (is_bracket(piece, PIECE_OPEN, '{') && is_bracket(piece - 1, PIECE_CLOSE, ')') && piece[1].spaced)
            return piece;
    return NULL;
}

static void break_lambda(const Breaker *b, const Pieces *line, const Piece *block) {
    const Piece *end = last_of(line) - 1, *last = end - 1;
    put_pieces(b, b->columns, line->at, block);
    const char *statement =
        arena_strndup(b->w->text.arena, block[1].text, (size_t)(last->text + last->length - block[1].text));
    break_line(b->w, b->columns + 4, statement, b->put);
    put_pieces(b, b->columns, end, last_of(line));
}

static void break_statement(const Breaker *b, const Pieces *line) {
    const LineStart *starts = lay_out(b->w->text.arena, line, b->columns, LONGEST_LINE);
    for (int k = 0, end; k < line->count; k = end) {
        for (end = k + 1; end < line->count && !starts[end].begins;)
            end++;
        put_pieces(b, starts[k].column, &line->at[k], &line->at[end - 1]);
    }
}

/* Notes stand behind what they are of, strings in one piece, a member's value beside its name. */
static bool stays_whole(const Pieces *line) {
    return (has_piece(line, PIECE_COMMENT) && !assigns(line)) || has_piece(line, PIECE_STRING) ||
           is_bracket(line->at, PIECE_OPEN, '{') || *line->at->text == '.';
}

void break_line(Writer *w, int columns, const char *text, PutLine put_line) {
    Breaker b = {w, put_line, columns};
    const Pieces line = pieces_of(w->text.arena, text);
    const Piece *block = block_of(&line);
    if (columns + strlen(text) <= LONGEST_LINE)
        put_line(w, columns, text, strlen(text));
    else if (is_row_of_members(&line))
        break_row(&b, &line);
    else if (stays_whole(&line))
        put_line(w, columns, text, strlen(text));
    else if (block)
        break_lambda(&b, &line, block);
    else
        break_statement(&b, &line);
}
