/* Where lines that are too long are broken: where clang-format would, at the least charge of all ways that there are. */
#ifndef MTC_LAYOUT_H
#define MTC_LAYOUT_H

#include "emit/text/lexemes.h"

/* Whether a line begins with lexeme k, and in which column. */
typedef struct LineStart {
    bool begins;
    int column;
} LineStart;

/* For each lexeme, if the first of them begins in `column` and lines have at most `most` bytes. */
const LineStart *lay_out(Arena *arena, const Lexemes *line, int column, int most);

#endif
