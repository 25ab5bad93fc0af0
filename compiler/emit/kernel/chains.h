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

/* A chain as digits of a variable: i / 64 % 56 is that with the unit 64, which ends at 64 * 56. Without a divisor, the variable itself. */
typedef struct Digits {
    const Tree *of;
    int64_t unit, end;
} Digits;

/* False: it is something else. */
bool chain_digits(const Tree *tree, Digits *digits);
/* They are not independent of each other: of one variable, and with digits in common. */
bool digits_overlap(const Digits *a, const Digits *b);

#endif
