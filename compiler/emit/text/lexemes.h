/* A line of code in lexemes, with what decides where it may be broken: which brackets and operators they stand in, how strongly those
 * bind, and what a break before each of them costs. The numbers are clang-format's. */
#ifndef MTC_LEXEMES_H
#define MTC_LEXEMES_H

#include "support/text.h"

#include <stdbool.h>

typedef enum LexemeKind {
    LEXEME_WORD, /* a name, a number, a type */
    LEXEME_PREFIX,
    LEXEME_MEMBER, /* "." and "->" */
    LEXEME_INFIX,  /* assignments too */
    LEXEME_QUESTION,
    LEXEME_COLON,
    LEXEME_COMMA,
    LEXEME_SEMICOLON,
    LEXEME_OPEN,
    LEXEME_CLOSE,
    LEXEME_STRING, /* characters too */
    LEXEME_COMMENT
} LexemeKind;

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

typedef struct Lexeme {
    LexemeKind kind;
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
    bool is_cast;        /* it stands at the type that it is cast to: "(float)t" */
    bool may_begin;      /* a line */
    int charge;          /* for that */
} Lexeme;

typedef struct Lexemes {
    Lexeme *at;
    int count;
    const char *text;
} Lexemes;

Lexemes lexemes_of(Arena *arena, const char *line);

#endif
