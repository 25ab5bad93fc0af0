#include "op/table.h"

#define OP(name) extern const OpDef op_##name;
#include "op/op_table.def"
#undef OP

static const OpDef *const rows[] = {
#define OP(name) &op_##name,
#include "op/op_table.def"
#undef OP
};

const Operators op_table = {rows, sizeof rows / sizeof *rows};

const OpDef *op_find(const char *name) {
    return operators_find(&op_table, name);
}
