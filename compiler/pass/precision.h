/* The precision of products, written into the graph as conversions: see precision.c. */
#ifndef MTC_PRECISION_H
#define MTC_PRECISION_H

#include "ir/graph.h"
#include "pass/machine.h"

/* After simplify; changes nothing unless `dtype`, that of the module's precision, is one of 16 bits. What is measured of the data
 * stays exact. */
void round_operands(Graph *g, DType dtype);

/* What is stored in 16 bits beside integers of 8: that of all other products, and of what is kept between products. F32: nothing. */
DType dtype_beside_integers(const Module *module, const Machine *machine);
void round_beside_integers(const Module *module, const Machine *machine);

/* Its operands are rounded, where the precision says so, and multiplied by tensor cores, which would not be mostly filled up. */
bool product_is_rounded(const Node *n);

/* A view whose elements are its operand's, or a number where there is none: what is rounded is the operand. */
bool is_looked_through(const Node *n);

/* The same view of another operand. */
Node *same_view(Graph *g, const Node *view, Node *operand);

#endif
