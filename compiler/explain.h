/* `mtc explain MODEL [NAME]`: in words, how the lines of a model became kernels, what these cost, and what the plan does with memory. */
#ifndef MTC_EXPLAIN_H
#define MTC_EXPLAIN_H

#include "plan/plan.h"

/* The training step, all of it; with a name, a value of the text, a weight, a kernel or a line whole. False after reporting that
 * the model has nothing of that name. */
bool explain_print(const Plan *plan, const char *target, const char *name, Text *out);

#endif
