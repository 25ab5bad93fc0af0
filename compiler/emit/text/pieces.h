/* A line of code in pieces, with what decides where it may be broken: which brackets and operators they stand in, how strongly those
 * bind, and what a break before each of them costs. The numbers are clang-format's. */
#ifndef MTC_PIECES_H
#define MTC_PIECES_H

#include "support/text.h"

#include <stdbool.h>

typedef enum PieceKind {
    PIECE_WORD, /* a name, a number, a type */
    PIECE_PREFIX,
    PIECE_MEMBER, /* "." and "->" */
    PIECE_INFIX,  /* assignments too */
    PIECE_QUESTION,
    PIECE_COLON,
    PIECE_COMMA,
    PIECE_SEMICOLON,
    PIECE_OPEN,
    PIECE_CLOSE,
    PIECE_STRING, /* characters too */
    PIECE_COMMENT
} PieceKind;

/* How strongly what is between operators binds, as far as breaking lines goes: also what a break behind one of them costs. */
enum {
    BINDS_NOTHING = 0,
    BINDS_COMMA = 1,
    BINDS_ASSIGNMENT = 2,
    BINDS_CHOICE = 3,
    BINDS_OR = 4,
    BINDS_AND = 5,
    BINDS_EQUAL = 9,
    BINDS_RELATION = 10,
    BINDS_SUM = 13,
    BINDS_PRODUCT = 14,
    BINDS_PREFIX = 15,
    BINDS_MEMBER = 16
};

enum { MOST_GROUPS = 14 };

typedef struct Piece {
    PieceKind kind;
    const char *text;
    int length;
    bool spaced; /* a space stands before it */
    int binds;   /* of an operator */
    int index;   /* of an operator among those of its group */
    bool last;   /* of them */
    int items;   /* of brackets: how many commas stand in them */
    int width;   /* of brackets: up to the end of what closes them */
    int depth;   /* brackets around it */
    /* Groups of operands that begin with it, the innermost first, by what binds them; how many end with it. */
    int group[MOST_GROUPS], groups, ends;
    bool ends_operators; /* one of these is of operators */
    bool names_function; /* that the line declares */
    bool may_begin;      /* a line */
    int charge;          /* for that */
} Piece;

typedef struct Pieces {
    Piece *at;
    int count;
    const char *text;
} Pieces;

Pieces pieces_of(Arena *arena, const char *line);

#endif
