/* The operator reference, docs/operators.md, as the table of operators has it. */
#ifndef MTC_REFERENCE_H
#define MTC_REFERENCE_H

#include "ir/op.h"

void reference_print(Text *out);
void reference_json(Text *out);                      /* what can be called, for programs */
const char *op_title(Arena *arena, const OpDef *op); /* "LeakyReLU" */

#endif
