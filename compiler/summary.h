/* `mtc --summary`: what the model is, statement by statement. */
#ifndef MTC_SUMMARY_H
#define MTC_SUMMARY_H

#include "plan/plan.h"

void summary_print(const Plan *plan, Text *out);

#endif
