#include "ir/op.h"

const OpDef *operators_find(const Operators *operators, const char *name) {
    for (int i = 0; i < operators->count; i++)
        if (!strcmp(operators->at[i]->name, name))
            return operators->at[i];
    return NULL;
}

bool op_adds(const OpDef *op) {
    return strcmp(op->combine, "$0 + $1") == 0;
}
