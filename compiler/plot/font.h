/* Letters as lines, for pictures of pixels: printable ASCII, "…", and a box for every other character. */
#ifndef MTC_FONT_H
#define MTC_FONT_H

#include "plot/picture.h"

/* Letters stand on a grid whose squares are this part of the font's size; capitals reach from 0 down to the baseline. */
#define FONT_UNIT 0.09
enum { FONT_BASELINE = 8 };

/* Of a text in UTF-8, in squares of the grid. */
int font_width(const char *text);
/* Calls `put` with each piece of a line; the text begins at `left`. */
void font_draw(const char *text, double left, void (*put)(void *to, Place a, Place b), void *to);

#endif
