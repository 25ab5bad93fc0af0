/* Elements that are put together of several values, in a branch for each.
 *
 * In the graph a concatenation is a sum of paddings with 0, each of which reads under a condition:
 *
 *     (column < 768 ? q[column] : 0) + (column >= 768 ? k[column - 768] : 0)
 *
 * Where all threads of a warp are on one side of it, the kernel asks before it reads, and a branch computes what is there. */
#ifndef MTC_CASES_H
#define MTC_CASES_H

#include "emit/kernel/expr.h"

/* The condition holds: 1; it does not: 0; that is not known: -1. */
int case_decides(const Case *known, const Tree *condition);
/* The next comparison that is worth a branch of the kernel's elements; NULL: none is. */
const Tree *case_to_ask(Body *body, const Case *known, const Outputs *outputs);

#endif
