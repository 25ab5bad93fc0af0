/* Lists of numbers as tensors. */
#ifndef MTC_LIST_H
#define MTC_LIST_H

#include "op/value.h"

/* NULL after a user error. */
Node *list_tensor(Graph *g, const Value *list);

#endif
