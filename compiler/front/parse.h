/* What lexer.l, parser.y and their helpers share while one file is read. */
#ifndef MTC_PARSE_H
#define MTC_PARSE_H

#include "front/ast.h"

typedef struct Number {
    double value;
    bool integer;
} Number;

/* The files of one compilation; a file is read once however often it is included. */
typedef struct Loader Loader;

typedef struct Token {
    int kind; /* of bison; 0: end of file */
    Span span;
} Token;
typedef VEC(Token) TokenList;

typedef struct Parser {
    Diag *diag;
    Arena *arena;
    Ast *ast;
    Loader *loader; /* NULL: includes are not followed (the formatter) */
    const Source *source;
    void *scanner;
    uint32_t offset;   /* of the byte after the last token */
    Token before, now; /* the last two tokens that the parser was given */
    TokenList open;    /* brackets and braces not closed yet */
    bool blamed;       /* an error was explained by a brace that is not closed */
} Parser;

/* source.c: NULL when the file cannot be read or is no UTF-8 text. */
Source *source_read(Diag *diag, Arena *arena, const char *path, Span included_at);
Loader *loader_new(Arena *arena);
/* Parses the included file into parser->ast. */
void parser_include(Parser *parser, Name path, Span statement);
/* Parses `source` into `ast`. */
void parse_source(Diag *diag, Ast *ast, Loader *loader, const Source *source);

/* lexer.l */
/* Every token of the source; line ends are tokens, comments are not. */
TokenList lex_all(Diag *diag, Arena *arena, const Source *source);
void lexer_open(Parser *parser);
void lexer_close(Parser *parser);
/* Forgets the brackets that are open since the last brace: after a syntax error line ends count again. */
void parser_close_brackets(Parser *parser);

/* syntax.c: the report of a syntax error. `expected` are the display names of the tokens that could stand there. */
void syntax_error(Parser *parser, Span at, const char **expected, int count);
#endif
