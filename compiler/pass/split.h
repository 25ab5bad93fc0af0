/* Long sums with few results, made two: see split.c. */
#ifndef MTC_SPLIT_H
#define MTC_SPLIT_H

#include "pass/kernel.h"

/* After the precision of products is settled, before fusion; the results differ by rounding only. */
void split_sums(Graph *g, const Machine *machine);

#endif
