/* Large forward products of a weight in numbers of 8 bits, where the precision is fp8: see float8.c. */
#ifndef MTC_FLOAT8_H
#define MTC_FLOAT8_H

#include "ir/graph.h"

/* After round_operands, of a module of PRECISION_FP8: the graphs that it is trained and evaluated by. Warns where no product is one. */
void multiply_in_8_bits(const Module *module);

#endif
