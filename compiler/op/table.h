/* The table of operators, op_table.def. */
#ifndef MTC_TABLE_H
#define MTC_TABLE_H

#include "ir/op.h"

extern const Operators op_table;
const OpDef *op_find(const char *name); /* in it; NULL when there is none */

#endif
