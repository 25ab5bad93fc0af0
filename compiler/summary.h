/* `mtc --summary`: what the model is, statement by statement. */
#ifndef MTC_SUMMARY_H
#define MTC_SUMMARY_H

#include "plan/plan.h"

/* As the text has it: images with their channels first. */
Type type_in_text(const Module *module, const Node *n);

void summary_print(const Plan *plan, Text *out);

#endif
