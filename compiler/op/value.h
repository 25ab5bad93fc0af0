/* Values at compile time. A number that depends on params carries its value, the params, and the run-time scalar; one that
 * only the running program knows, the scalar. */
#ifndef MTC_VALUE_H
#define MTC_VALUE_H

#include "ir/op.h"

#include <math.h>

typedef enum ValueKind {
    VALUE_NONE,
    VALUE_NUMBER,
    VALUE_BOOL,
    VALUE_STRING,
    VALUE_TENSOR,
    VALUE_LAYER, /* what a call of it finds */
    VALUE_LIST,
    VALUE_SEVERAL, /* what a function returned: names take it apart */
    VALUE_INIT,
    VALUE_OPTIMIZER,
    VALUE_METRIC,
    VALUE_ERROR /* a fault that was reported: whatever is made of it is VALUE_ERROR too, silently */
} ValueKind;
struct Value {
    ValueKind kind;
    double number;     /* NUMBER, BOOL; of a knob expression: its value with the knobs as resolved */
    Node *node;        /* TENSOR; NUMBER that depends on a knob: its run-time scalar. Else NULL */
    uint64_t knobs;    /* bit k: the number depends on knob k */
    const char *param; /* NUMBER: the param that it is; NULL: it is computed, or written as a number */
    bool varies;       /* NUMBER, BOOL: only the running program knows it; `node` is all there is of it */
    bool rises;        /* TENSOR: a metric that is better when it is higher, under whatever name */
    const OpDef *made; /* TENSOR: by this function, in whatever shape; NULL: by none of the library */
    Span made_at;
    const char *string; /* STRING */
    const Value *items; /* LIST, SEVERAL */
    int count;
    Init init; /* INIT; a/b NaN: resolved by the layer (fan-in, fan-out); see op/init.c */
    const char *init_rule;
    struct Layer *layer;               /* LAYER: front/lower.h */
    const struct Optimizer *optimizer; /* OPTIMIZER: op/optimizer.h */
    const SetMetric *metric;           /* METRIC: over a set of examples */
    Span src;
};

Value value_error(void);
Value value_number(double number);
Value value_bool(bool condition);
/* NULL gives VALUE_ERROR. */
static inline Value value_tensor(Node *node) {
    return (Value){.kind = node ? VALUE_TENSOR : VALUE_ERROR, .node = node};
}
/* A number that only the running program knows. */
static inline Value value_varying(Node *scalar) {
    return (Value){.kind = scalar ? VALUE_NUMBER : VALUE_ERROR, .number = NAN, .node = scalar, .varies = true};
}
const char *value_kind_text(Arena *arena, const Value *v); /* "a number", "f32[10]" */
/* The numbers in it are needed when compiling: the params it depends on are fixed. */
void value_fix(Module *module, const Value *v);
bool value_whole(Module *module, const Value *v, int64_t low, int64_t high, int64_t *result);
Node *value_node(Graph *g, const Value *v); /* a tensor; a number, a condition or a list of numbers as one; else NULL */

/* Where a number lies: an end is its own, unless `above` and `below` say that it is not. */
typedef struct Bounds {
    double low, high;
    bool above, below;
} Bounds;
bool number_computable(double number); /* it is finite in f32 */
bool bounds_hold(const Bounds *bounds, double number);
/* "the rate is at least 0 and below 1, not 3" */
const char *bounds_refusal(Arena *arena, const char *what, const Bounds *bounds, double number);
const char *bounds_text(Arena *arena, const Bounds *bounds); /* "at least 0 and below 1" */
/* A number that is a param: its flag of the program is bound as what it is given to. */
void value_bind(Module *module, const Value *number, const char *to, const Bounds *bounds);

#endif
