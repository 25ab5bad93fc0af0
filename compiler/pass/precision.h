/* The precision of products, written into the graph as conversions: see precision.c. */
#ifndef MTC_PRECISION_H
#define MTC_PRECISION_H

#include "ir/graph.h"

/* After simplify; changes nothing unless the module's precision stores operands in 16 bits. What is measured of the data stays
 * exact. */
void round_operands(Graph *g);

#endif
