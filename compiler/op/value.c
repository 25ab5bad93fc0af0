#include "op/value.h"
#include "op/list.h"

#include <float.h>
#include <math.h>

bool number_computable(double number) {
    return isfinite((float)number);
}

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
        [VALUE_LAYER] = "a layer",
        [VALUE_INIT] = "an initialiser",
        [VALUE_OPTIMIZER] = "an optimizer",
        [VALUE_METRIC] = "a metric over a set of examples",
        [VALUE_ERROR] = "a fault",
    };
    if (v->kind == VALUE_TENSOR)
        return arena_printf(arena, "a tensor %s", type_user_text(arena, &v->node->type));
    if (v->kind == VALUE_LIST && !v->count)
        return "an empty list";
    if (v->kind == VALUE_SEVERAL)
        return arena_printf(arena, "%d values", v->count);
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

/* A number that the program is to compute with; one that is infinite in f32 is reported. */
static Node *constant_node(Graph *g, const Value *v) {
    if (!number_computable(v->number))
        diag_error(g->module->diag, v->src.source ? v->src : g->at,
                   "%g is computed with in f32, whose numbers end at %.2g", v->number, (double)FLT_MAX);
    return graph_constant(g, v->number);
}

Node *value_node(Graph *g, const Value *v) {
    if (v->node)
        return v->node;
    if (v->kind == VALUE_BOOL)
        return graph_cast(g, graph_constant(g, v->number), DT_BOOL);
    if (v->kind == VALUE_LIST)
        return list_tensor(g, v);
    return v->kind == VALUE_NUMBER ? constant_node(g, v) : NULL;
}

/* ---- bounds ---- */

static bool lies_within(const Bounds *b, double number, double low, double high) {
    return (b->above ? number > low : number >= low) && (b->below ? number < high : number <= high);
}

/* Of the number as programs compute with it: 0.99999999999 is 1 there. */
bool bounds_hold(const Bounds *b, double number) {
    return number_computable(number) && lies_within(b, (float)number, (float)b->low, (float)b->high);
}

const char *bounds_text(Arena *arena, const Bounds *b) {
    const char *low = b->above ? "above" : "at least";
    if (b->high == INFINITY)
        return arena_printf(arena, "%s %g", low, b->low);
    if (!b->above && !b->below)
        return arena_printf(arena, "from %g to %g", b->low, b->high);
    return arena_printf(arena, "%s %g and %s %g", low, b->low, b->below ? "below" : "at most", b->high);
}

const char *bounds_refusal(Arena *arena, const char *what, const Bounds *b, double number) {
    Text out = TEXT(arena);
    text_printf(&out, "%s is %s, not ", what, bounds_text(arena, b));
    text_number(&out, number);
    if (lies_within(b, number, b->low, b->high))
        text_printf(&out, ", which is %g in f32", (double)(float)number);
    return text_string(&out);
}

/* Programs compute in f32, so that the last number below 1 is f32's. */
void value_bind(Module *module, const Value *number, const char *to, const Bounds *b) {
    for (int k = 0; k < module->knobs.count; k++) {
        Knob *knob = &module->knobs.at[k];
        if (number->kind != VALUE_NUMBER || !number->param || strcmp(knob->name, number->param) != 0)
            continue;
        const double least = b->above ? nextafterf((float)b->low, INFINITY) : b->low;
        const double most = b->below && isfinite(b->high) ? nextafterf((float)b->high, -INFINITY) : b->high;
        if (knob->bound && knob->least >= least && knob->most <= most)
            continue;
        knob->least = knob->bound ? fmax(knob->least, least) : least;
        knob->most = knob->bound ? fmin(knob->most, most) : most;
        knob->bound = arena_printf(module->arena, "goes to %s: %s", to, bounds_text(module->arena, b));
    }
}
