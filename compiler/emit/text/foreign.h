/* Text of the user on its way into a generated source: lines and names of the model, paths, columns, flags. It goes into a
 * comment, a string or a character, and nowhere else; what it says, a compiler cannot take for code, for the end of the
 * line, or for another order of what is written. Identifiers are made of letters and digits in names.c. */
#ifndef MTC_FOREIGN_H
#define MTC_FOREIGN_H

#include "support/arena.h"

/* One line of a comment: what is not visible is written as an escape, "\n", "\033". The writer's comments are made by it. */
const char *harmless(Arena *arena, const char *text);
const char *quoted(Arena *arena, const char *text); /* a C string, or NULL for NULL */
const char *quoted_character(Arena *arena, char c); /* '\t' */

/* A name of a file that no compiler takes for an option, and no shell that one hands it to for a command. */
const char *file_name(Arena *arena, const char *name);

#endif
