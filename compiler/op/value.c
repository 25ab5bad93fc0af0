#include "op/value.h"

#include <math.h>

Value value_error(void) {
    return (Value){.kind = VALUE_ERROR};
}

Value value_number(double number) {
    return (Value){.kind = VALUE_NUMBER, .number = number};
}

Value value_bool(bool condition) {
    return (Value){.kind = VALUE_BOOL, .number = condition};
}

const char *value_kind_text(Arena *arena, const Value *v) {
    static const char *const kinds[] = {
        [VALUE_NONE] = "none",
        [VALUE_NUMBER] = "a number",
        [VALUE_BOOL] = "a condition",
        [VALUE_STRING] = "a string",
        [VALUE_LIST] = "a list",
        [VALUE_INIT] = "an initialiser",
        [VALUE_OPTIMIZER] = "an optimizer",
        [VALUE_ERROR] = "a fault",
    };
    if (v->kind == VALUE_TENSOR)
        return arena_printf(arena, "a tensor %s", type_user_text(arena, &v->node->type));
    return v->varies ? arena_printf(arena, "%s that only the running program knows", kinds[v->kind]) : kinds[v->kind];
}

void value_fix(Module *module, const Value *v) {
    for (int k = 0; k < module->knobs.count; k++)
        if (v->knobs >> k & 1)
            module->knobs.at[k].fixed = true;
}

bool value_whole(Module *module, const Value *v, int64_t low, int64_t high, int64_t *result) {
    value_fix(module, v);
    if (v->kind != VALUE_NUMBER || v->varies || v->number != floor(v->number) || v->number < (double)low ||
        v->number > (double)high)
        return false;
    *result = (int64_t)v->number;
    return true;
}

Node *value_node(Graph *g, const Value *v) {
    if (v->node)
        return v->node;
    if (v->kind == VALUE_BOOL)
        return graph_cast(g, graph_constant(g, v->number), DT_BOOL);
    return v->kind == VALUE_NUMBER ? graph_constant(g, v->number) : NULL;
}
