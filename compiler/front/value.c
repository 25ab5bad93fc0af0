/* Arithmetic on values at compile time: on numbers by the operators' own `fold`, on anything else by nodes. A number that
 * depends on params, or that only the running program knows, has a node for its run-time scalar too. */
#include "front/lower.h"
#include "op/table.h"

/* ---- numbers ---- */

/* What numbers have beside the operators' own `fold`. */
typedef struct NumberRule {
    const char *op;
    double (*apply)(double a, double b);
    bool condition; /* the result is true or false */
    bool logic;     /* and so are the operands */
} NumberRule;

#define NUMBER_RULE(name, result)                                                                                      \
    static double apply_##name(double a, double b) {                                                                   \
        (void)b;                                                                                                       \
        return result;                                                                                                 \
    }

NUMBER_RULE(eq, a == b)
NUMBER_RULE(ne, a != b)
NUMBER_RULE(lt, a < b)
NUMBER_RULE(le, a <= b)
NUMBER_RULE(gt, a > b)
NUMBER_RULE(ge, a >= b)
NUMBER_RULE(and, a != 0 && b != 0)
NUMBER_RULE(or, a != 0 || b != 0)
NUMBER_RULE(not, a == 0)
NUMBER_RULE(mod, a - b * floor(a / b))

static const NumberRule number_rules[] = {
    {"eq", apply_eq, true, false},    {"ne", apply_ne, true, false}, {"lt", apply_lt, true, false},
    {"le", apply_le, true, false},    {"gt", apply_gt, true, false}, {"ge", apply_ge, true, false},
    {"and", apply_and, true, true},   {"or", apply_or, true, true},  {"not", apply_not, true, true},
    {"mod", apply_mod, false, false},
};

static const NumberRule *find_rule(const char *op) {
    for (size_t i = 0; i < sizeof number_rules / sizeof *number_rules; i++)
        if (strcmp(number_rules[i].op, op) == 0)
            return &number_rules[i];
    return NULL;
}

static bool is_division_by_zero(const char *op, const Value *args, int count) {
    return count == 2 && args[1].number == 0 && (strcmp(op, "div") == 0 || strcmp(op, "mod") == 0);
}

static Value not_finite(Lowering *l, Span at, const char *op, const Value *args, int count) {
    if (is_division_by_zero(op, args, count))
        diag_error(l->diag, at, "division by zero");
    else
        diag_error(l->diag, at, "the result of this computation is not a finite number");
    return value_error();
}

/* The same computation at run time, for the params among the operands that are flags of the program. */
static Node *run_time_node(Graph *g, const char *op, const Value *args, int count) {
    Node *in[MAX_INPUTS] = {0};
    const OpDef *def = op_find(op);
    if (!def || def->cls != OP_MAP)
        return NULL;
    for (int i = 0; i < count; i++)
        in[i] = value_node(g, &args[i]);
    return count == 1 ? op1(g, op, in[0]) : count == 2 ? op2(g, op, in[0], in[1]) : op3(g, op, in[0], in[1], in[2]);
}

static Value apply_numbers(Lowering *l, Span at, const char *op, const Value *args, int count) {
    const NumberRule *rule = find_rule(op);
    const OpDef *def = op_find(op);
    double in[MAX_INPUTS] = {0};
    Value result = {.kind = rule && rule->condition ? VALUE_BOOL : VALUE_NUMBER};
    for (int i = 0; i < count; i++) {
        in[i] = args[i].number;
        result.knobs |= args[i].knobs;
        result.varies |= args[i].varies;
    }
    result.number = result.varies ? NAN : rule ? rule->apply(in[0], in[1]) : def->fold(in);
    if (result.varies ? is_division_by_zero(op, args, count) : !isfinite(result.number))
        return not_finite(l, at, op, args, count);
    if (result.knobs || result.varies)
        result.node = run_time_node(l->g, op, args, count);
    return result;
}

/* ---- operators ---- */

static Value wrong_operand(Lowering *l, Span at, Name op, const Value *args, int count) {
    Text kinds = TEXT(l->arena);
    for (int i = 0; i < count; i++)
        text_printf(&kinds, "%s%s", i ? " and " : "", value_kind_text(l->arena, &args[i]));
    diag_error(l->diag, at, "'%s' does not work on %s", span_text(l->arena, op.span), text_string(&kinds));
    return value_error();
}

Value value_apply(Lowering *l, Span at, Name op, const Value *args, int count) {
    const NumberRule *rule = find_rule(op.text);
    const OpDef *def = op_find(op.text);
    bool runs = def && def->cls == OP_MAP; /* the program can compute it */
    bool numbers = true, nodes = runs && count <= MAX_INPUTS;
    for (int i = 0; i < count; i++) {
        if (args[i].kind == VALUE_ERROR)
            return value_error();
        bool plain = args[i].kind == (rule && rule->logic ? VALUE_BOOL : VALUE_NUMBER);
        numbers = numbers && plain && (runs || !args[i].varies);
        nodes = nodes && (plain || args[i].node || args[i].kind == VALUE_LIST);
    }
    numbers = numbers && (rule || (def && def->fold));
    if (!numbers && !nodes)
        return wrong_operand(l, at, op, args, count);
    Span before = graph_at(l->g, at);
    Value result =
        numbers ? apply_numbers(l, at, op.text, args, count) : value_tensor(run_time_node(l->g, op.text, args, count));
    graph_at(l->g, before);
    return result;
}
