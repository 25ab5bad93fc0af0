/* One token is decoded in rows: see token.c. */
#ifndef MTC_TOKEN_H
#define MTC_TOKEN_H

#include "ir/graph.h"
#include "pass/machine.h"

/* Of the graph that decodes a token, NULL if there is none; after simplify. Changes nothing but on GPUs, where weights are integers. */
void multiply_rows(Graph *g, const Machine *machine);

#endif
