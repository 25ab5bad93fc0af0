#include "ir/op.h"

#define OP(name) extern const OpDef op_##name;
#include "op/op_table.def"
#undef OP

const OpDef *const op_table[] = {
#define OP(name) &op_##name,
#include "op/op_table.def"
#undef OP
};

const int op_count = sizeof op_table / sizeof *op_table;

const OpDef *op_find(const char *name) {
    for (int i = 0; i < op_count; i++)
        if (!strcmp(op_table[i]->name, name))
            return op_table[i];
    return NULL;
}
