/* Comparisons, logic, choice, and changes of the element type. */
#include "kernels_lib/shared.h"
#include "op/compose.h"

INFER(compare) {
    bool fits = infer_number(g, n);
    n->type.dtype = DT_BOOL;
    return fits;
}

INFER(logic) {
    n->type = n->in[0]->type;
    for (int k = 0; k < n->inputs; k++)
        if (!is_condition(g, n, n->in[k]))
            return false;
    return true;
}

INFER(where) {
    n->type = n->in[1]->type;
    return is_condition(g, n, n->in[0]) && n->in[2]->type.dtype == n->type.dtype;
}

INFER(cast) {
    n->type = n->in[0]->type;
    n->type.dtype = n->attr.dtype;
    return true;
}

INFER(to_bf16) {
    n->type = n->in[0]->type;
    n->type.dtype = DT_BF16;
    return n->in[0]->type.dtype == DT_F32;
}

INFER(to_f16) {
    n->type = n->in[0]->type;
    n->type.dtype = DT_F16;
    return n->in[0]->type.dtype == DT_F32;
}

INFER(to_tf32) {
    n->type = n->in[0]->type;
    return n->in[0]->type.dtype == DT_F32;
}

INFER(to_i8) {
    n->type = n->in[0]->type;
    n->type.dtype = DT_I8;
    return n->in[0]->type.dtype == DT_F32;
}

INFER(to_e4m3) {
    n->type = n->in[0]->type;
    n->type.dtype = DT_E4M3;
    return n->in[0]->type.dtype == DT_F32;
}

static Range range_to_i8(UNUSED const Graph *g, UNUSED const Node *n) {
    return (Range){-I8_LARGEST, I8_LARGEST};
}

INFER(to_float) {
    n->type = n->in[0]->type;
    n->type.dtype = DT_F32;
    return dtype_is_narrow(n->in[0]->type.dtype) || n->in[0]->type.dtype == DT_I8;
}

GRAD(where) {
    Node *zero = graph_constant(g, 0);
    din[1] = select(g, n->in[0], dy, zero);
    din[2] = select(g, n->in[0], zero, dy);
}

RANGE(where, range_union(n->in[1]->range, n->in[2]->range))

/* Each graph knows which it is. */
static Value build_training(Call *call) {
    return value_bool(call->g->training);
}

/* low where x is below it, high where it is above; x elsewhere, also where it is no number. Choices leave whole numbers whole. */
static Value build_clamp(Call *call) {
    Graph *g = call->g;
    const Value *low = &call->args[1], *high = &call->args[2];
    Node *x = call_tensor(call, 0), *end;
    if (low->kind == VALUE_NONE && high->kind == VALUE_NONE) {
        call_error(call, 0, "clamp needs an end: clamp(x, low, high), or clamp(x, low = 0)");
        return value_tensor(NULL);
    }
    if (low->kind == VALUE_NUMBER && high->kind == VALUE_NUMBER && low->number > high->number) {
        call_error(call, 1, "the low end %g is above the high end %g", low->number, high->number);
        return value_tensor(NULL);
    }
    if (low->kind != VALUE_NONE)
        x = (end = call_tensor(call, 1)) ? select(g, op2(g, "lt", x, end), end, x) : NULL;
    if (high->kind != VALUE_NONE)
        x = (end = call_tensor(call, 2)) ? select(g, op2(g, "gt", x, end), end, x) : NULL;
    return value_tensor(x);
}

#define COMPARISON(name_, symbol, prec_, onnx_)                                                                        \
    .name = name_, .cls = OP_MAP, .arity = 2, .infer = infer_compare, .simplify = simplify_compare,                    \
    .doc = "a " symbol " b", .example = "y = where(x " symbol " 0.5, x, 0)", .c = "$0 " symbol " $1", .prec = prec_,   \
    .onnx = onnx_

TO_ONNX(as_dtype) {
    OnnxValue x = onnx_operand_thin(o, n, 0);
    return onnx_like(x, x.name ? onnx_cast(o, x.name, n->attr.dtype) : NULL);
}

/* ONNX Runtime chooses between numbers only. */
TO_ONNX(where) {
    const bool conditions = n->type.dtype == DT_BOOL;
    return onnx_map(o, n, conditions ? "Or(And($0, $1), And(Not($0), $2))" : "Where($0, $1, $2)");
}

const OpDef op_eq = {COMPARISON("eq", "==", PREC_EQUAL, "Equal($0, $1)"), .flags = OP_CHEAP | OP_NO_GRAD | OP_COMMUTES};
const OpDef op_ne = {COMPARISON("ne", "!=", PREC_EQUAL, "Not(Equal($0, $1))"),
                     .flags = OP_CHEAP | OP_NO_GRAD | OP_COMMUTES};
const OpDef op_lt = {COMPARISON("lt", "<", PREC_RELATION, "Less($0, $1)"), .flags = OP_CHEAP | OP_NO_GRAD};
const OpDef op_le = {COMPARISON("le", "<=", PREC_RELATION, "LessOrEqual($0, $1)"), .flags = OP_CHEAP | OP_NO_GRAD};
const OpDef op_gt = {COMPARISON("gt", ">", PREC_RELATION, "Greater($0, $1)"), .flags = OP_CHEAP | OP_NO_GRAD};
const OpDef op_ge = {COMPARISON("ge", ">=", PREC_RELATION, "GreaterOrEqual($0, $1)"), .flags = OP_CHEAP | OP_NO_GRAD};

const OpDef op_and = {
    .name = "and",
    .cls = OP_MAP,
    .flags = OP_LOGIC | OP_CHEAP | OP_NO_GRAD | OP_COMMUTES,
    .arity = 2,
    .doc = "Both conditions hold.",
    .example = "y = where(x > 0 and x < 1, x, 0)",
    .infer = infer_logic,
    .c = "$0 && $1",
    .prec = PREC_AND,
    .onnx = "And($0, $1)",
};

const OpDef op_or = {
    .name = "or",
    .cls = OP_MAP,
    .flags = OP_LOGIC | OP_CHEAP | OP_NO_GRAD | OP_COMMUTES,
    .arity = 2,
    .doc = "One of the conditions holds, or both.",
    .example = "y = where(x < 0 or x > 1, x, 0)",
    .infer = infer_logic,
    .c = "$0 || $1",
    .prec = PREC_OR,
    .onnx = "Or($0, $1)",
};

const OpDef op_not = {
    .name = "not",
    .cls = OP_MAP,
    .flags = OP_LOGIC | OP_CHEAP | OP_NO_GRAD,
    .arity = 1,
    .doc = "The condition does not hold.",
    .example = "y = where(not (x > 0), x, 0)",
    .infer = infer_logic,
    .c = "!$0",
    .prec = PREC_UNARY,
    .onnx = "Not($0)",
};

const OpDef op_where = {
    .name = "where",
    .cls = OP_MAP,
    .flags = OP_CHEAP,
    .arity = 3,
    .doc = "a where the condition holds, b elsewhere.",
    .example = "y = where(x > 0, x, 0.1 * x)",
    .infer = infer_where,
    .range = range_where,
    .grad = grad_where,
    .simplify = simplify_where,
    .c = "$0 ? $1 : $2",
    .prec = PREC_COND,
    .to_onnx = to_onnx_where,
    .signature = "condition, a, b",
};

const OpDef op_training = {
    .name = "training",
    .cls = OP_LIBRARY,
    .doc =
        "A condition that is known when compiling: true in training, false in evaluation and prediction. Both use the "
        "same weights.",
    .example = "y = where(training(), x, 2 * x)",
    .signature = "",
    .build = build_training,
};

const OpDef op_clamp = {
    .name = "clamp",
    .cls = OP_LIBRARY,
    .doc = "low where x is below it, high where x is above it, else x. One end may be left out. Whole numbers stay "
           "whole; the "
           "gradient goes to x, where it is one of the ends too, or to the end that stands in for it.",
    .example = "y = clamp(x, -1, 1)",
    .signature = "x, low = none, high = none",
    .build = build_clamp,
};

const OpDef op_cast = {
    .name = "cast",
    .cls = OP_MAP,
    .flags = OP_LOGIC | OP_CHEAP | OP_NO_GRAD,
    .arity = 1,
    .attrs = ATTR_DTYPE,
    .doc = "x as another element type: conditions become 0 and 1, numbers lose their fraction.",
    .infer = infer_cast,
    .range = range_as_input,
    .simplify = simplify_cast,
    .c = "($t)$0",
    .prec = PREC_UNARY,
    .to_onnx = to_onnx_as_dtype,
};

const OpDef op_to_bf16 = {
    .name = "to_bf16",
    .cls = OP_MAP,
    .flags = OP_LOGIC | OP_CHEAP | OP_NO_GRAD,
    .arity = 1,
    .doc = "x rounded to the nearest number of 8 significant bits, halves to even. The compiler writes it where "
           "`precision` is "
           "bf16.",
    .infer = infer_to_bf16,
    .c = "to_bf16($0)",
    .prec = PREC_PRIMARY,
    .rounds = "round_bf16($0)",
};

const OpDef op_to_f16 = {
    .name = "to_f16",
    .cls = OP_MAP,
    .flags = OP_LOGIC | OP_CHEAP | OP_NO_GRAD,
    .arity = 1,
    .doc = "x rounded to the nearest number of 11 significant bits and 5 of exponent, halves to even; infinity from "
           "65520 on. "
           "The compiler writes it where `precision` is fp16.",
    .infer = infer_to_f16,
    .c = "to_f16($0)",
    .prec = PREC_PRIMARY,
    .rounds = "round_f16($0)",
};

const OpDef op_to_tf32 = {
    .name = "to_tf32",
    .cls = OP_MAP,
    .flags = OP_LOGIC | OP_CHEAP | OP_NO_GRAD | OP_FEEDS_TENSOR_CORES,
    .arity = 1,
    .doc = "x rounded to the nearest number of 11 significant bits, halves away from 0. The compiler writes it for "
           "GPUs where "
           "`precision` is tf32 and a number is read by products more often than it is made.",
    .infer = infer_to_tf32,
    .c = "to_tf32($0)",
    .prec = PREC_PRIMARY,
};

const OpDef op_to_i8 = {
    .name = "to_i8",
    .cls = OP_MAP,
    .flags = OP_LOGIC | OP_CHEAP | OP_NO_GRAD,
    .arity = 1,
    .doc =
        "The integer nearest to x, halves to even, from -127 to 127, which stand for what is beyond them. The compiler "
        "writes it where `--precision` is int8.",
    .infer = infer_to_i8,
    .range = range_to_i8,
    .c = "to_i8($0)",
    .prec = PREC_PRIMARY,
};

const OpDef op_to_e4m3 = {
    .name = "to_e4m3",
    .cls = OP_MAP,
    .flags = OP_LOGIC | OP_CHEAP | OP_NO_GRAD,
    .arity = 1,
    .doc = "x rounded to the nearest number of 4 significant bits and 4 of exponent, halves to even, from 2^-9 to 448, "
           "which stands for what is beyond it. The compiler writes it where `precision` is fp8.",
    .infer = infer_to_e4m3,
    .c = "to_e4m3($0)",
    .prec = PREC_PRIMARY,
    .rounds = "to_float(to_e4m3($0))",
};

const OpDef op_to_float = {
    .name = "to_float",
    .cls = OP_MAP,
    .flags = OP_LOGIC | OP_CHEAP | OP_NO_GRAD | OP_WIDENS,
    .arity = 1,
    .doc = "The f32 number that a number of 16 bits, or an integer of 8, is.",
    .infer = infer_to_float,
    .c = "to_float($0)",
    .prec = PREC_PRIMARY,
};

/* A graph of its own stores the value: that of the training stays what it is without it. */
static void keep_printed(Call *call, Node *x) {
    Module *module = call->module;
    const Span src = call->args[0].src.source ? call->args[0].src : call->src;
    Text line = TEXT(module->arena);
    text_flat(&line, span_text(module->arena, src));
    const Printed printed = {text_string(&line), type_user_text(module->arena, &x->type), call->src};
    Node *numbers = graph_cast(call->g, x, DT_F32);
    VEC_PUSH(module->arena, &module->printed, printed);
    graph_node(call->g, "show", (Attr){.index = module->printed.count - 1}, 1, &numbers);
}

static Value build_print(Call *call) {
    Node *x = call_tensor(call, 0);
    if (!x)
        return value_error();
    if (call->module->shards || x->examples) {
        diag_error(call->module->diag, call->src, "%s",
                   x->examples ? "print(x) shows values of each example; this has those of the batch in an axis: print "
                                 "what batch(x) is made of"
                               : "print(x) is of a batch that is computed whole, not of --shards");
        return value_error();
    }
    call->module->prints = call->src;
    if (call->g == call->module->watch)
        keep_printed(call, x);
    return call->args[0];
}

const OpDef op_print = {
    .name = "print",
    .cls = OP_LIBRARY,
    .flags = OP_SHOWS,
    .doc = "x itself. While the program trains, each `--print-every` steps it shows the line, shape, mean, deviation, "
           "smallest and largest number of x, and how many are no numbers.",
    .example = "y = linear(print(relu(x)), 3)",
    .signature = "x",
    .build = build_print,
};

const OpDef op_stop_gradient = {
    .name = "stop_gradient",
    .cls = OP_MAP,
    .flags = OP_CHEAP | OP_NO_GRAD | OP_LOGIC,
    .arity = 1,
    .doc = "x, taken as a constant by differentiation.",
    .example = "y = x * stop_gradient(x)",
    .infer = infer_as_input,
    .range = range_as_input,
    .simplify = simplify_stop_gradient,
    .c = "($0)",
    .prec = PREC_PRIMARY,
    .onnx = "$0",
    .signature = "x",
};
