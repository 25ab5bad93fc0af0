/* Operands in tf32 that are rounded where they are made: see tf32.c. */
#ifndef MTC_TF32_H
#define MTC_TF32_H

#include "pass/machine.h"

#include "ir/graph.h"

/* Before fusion; changes no number that a product reads or anybody else, and nothing unless the module's precision is tf32 and the
 * machine has tensor cores for it. */
void round_where_made(Graph *g, const Machine *machine);

#endif
