/* Products of 8-bit integers in place of those of weights: see quantize.c. */
#ifndef MTC_QUANTIZE_H
#define MTC_QUANTIZE_H

#include "ir/graph.h"

/* Right after lowering, of a module of PRECISION_INT8: its evaluation multiplies integers, its training step does nothing, and what
 * is watched are the values that weights are multiplied with. False after a user error. */
bool quantize_products(Module *module);

#endif
