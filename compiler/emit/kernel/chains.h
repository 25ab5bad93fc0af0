/* Names for the divisions by which a thread finds its place: "int channel = i % CHANNELS;" where a row says that often.
 *
 * How often is known when all lines of the row are written. Until then a chain stands in them as a mark, which the end replaces by
 * its name or by what it is. */
#ifndef MTC_CHAINS_H
#define MTC_CHAINS_H

#include "emit/kernel/expr.h"

/* i divided by sizes, again and again: i / CHANNELS % COLUMNS. */
typedef struct Chain {
    const Tree *tree;
    const char *name; /* NULL: it has none (yet) */
    int count;        /* how often the lines say it */
} Chain;

struct Chains {
    VEC(Chain) at;
};

/* The text of the tree with marks for its chains. */
const char *chains_marked(Arena *arena, Chains *chains, const Tree *tree);
/* Replaces the marks in the lines of a row, i counting rows of that shape, which begin with the names. */
void chains_resolve(Body *row, const Shape *rows, Writer *lines);

#endif
