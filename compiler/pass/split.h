/* Long sums with few results, made two: see split.c. */
#ifndef MTC_SPLIT_H
#define MTC_SPLIT_H

#include "pass/kernel.h"

/* After the precision of products is settled, before fusion; the results differ by rounding only. */
void split_sums(Graph *g, const Machine *machine);

/* Of a number for each text, or of a few, those that are long: a block each would be too few. */
bool are_rows_of_texts(const Graph *g, int64_t rows, int64_t elements, const Machine *machine);

#endif
