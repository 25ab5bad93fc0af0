/* Leaves: what a step reads, and what an element knows by its own index. Roots: what a step leaves behind. */
#include "op/compose.h"

INFER(weight) {
    n->type = g->module->weights.at[n->attr.index].type;
    return true;
}

INFER(state) {
    n->type = g->module->states.at[n->attr.index].type;
    return true;
}

INFER(field) {
    n->type = g->module->fields.at[n->attr.index].type;
    return true;
}

INFER(tokens) {
    n->type = type_make(DT_I32, n->attr.batched, n->attr.rank, n->attr.dims);
    return true;
}

INFER(const) {
    n->type = type_scalar(n->attr.dtype);
    return true;
}

INFER(every) {
    n->type = type_scalar(DT_BOOL);
    return true;
}

INFER(place) {
    n->type = type_scalar(DT_I32);
    return true;
}

INFER(iota) {
    infer_shape_attr(g, n);
    n->type.dtype = DT_I32;
    return true;
}

RANGE(const, range_of_number(n->attr.value))
RANGE(turn, ((Range){0, n->attr.index - 1}))
RANGE(iota, ((Range){0, n->attr.dims[0] - 1}))

static Range range_field(const Graph *g, const Node *n) {
    const Field *field = &g->module->fields.at[n->attr.index];
    return field->kind == FIELD_CLASS ? (Range){0, field->classes - 1} : range_unknown;
}

INFER(assign) {
    const Type *value = &n->in[1]->type;
    n->type = n->in[0]->type;
    return n->in[0]->op->flags & OP_BUFFER && type_same_shape(&n->type, value) && n->type.dtype == value->dtype;
}

static Node *narrow_iota(Graph *g, UNUSED const Node *n, UNUSED int axis, Node *at, UNUSED Node *const *in) {
    return graph_expand(g, at, &(Type){.dtype = DT_I32, .rank = 1, .dim = {1}});
}

static Value build_iota(Call *call) {
    int64_t size = call_size(call, 0);
    if (size < 0)
        return value_tensor(NULL);
    return value_tensor(graph_iota(call->g, &(Type){.dtype = DT_I32, .rank = 1, .dim = {size}}, 0));
}

bool read_shape(Call *call, int arg, Type *shape) {
    const Value *list = &call->args[arg];
    if (list->kind != VALUE_LIST || list->count > MAX_RANK) {
        call_error(call, arg, "expected a list of at most %d sizes", MAX_RANK);
        return false;
    }
    Call items = call_items(call, arg);
    shape->rank = items.count;
    for (int k = 0; k < items.count; k++)
        if ((shape->dim[k] = call_size(&items, k)) < 0)
            return false;
    return true;
}

static Value build_weight(Call *call) {
    Type type = {.dtype = DT_F32};
    Init init;
    if (!read_shape(call, 0, &type))
        return value_tensor(NULL);
    int64_t fan_in = type.rank ? type.dim[type.rank - 1] : 1;
    if (!read_init(call, 1, fan_in, type_elements(&type) / fan_in, &init))
        return value_tensor(NULL);
    return value_tensor(call_weight(call, "", &type, init, NULL));
}

TO_ONNX(const) {
    return onnx_value(onnx_number(o, n->attr.dtype, n->attr.value));
}

TO_ONNX(iota) {
    return onnx_value(onnx_count(o, n->type.dim[0]));
}

const OpDef op_const = {
    .name = "const",
    .cls = OP_LEAF,
    .flags = OP_SCALAR | OP_CHEAP,
    .attrs = ATTR_VALUE | ATTR_DTYPE,
    .doc = "A number known when compiling.",
    .infer = infer_const,
    .range = range_const,
    .to_onnx = to_onnx_const,
    .c = "$v",
    .prec = PREC_PRIMARY,
};

const OpDef op_knob = {
    .name = "knob",
    .cls = OP_LEAF,
    .flags = OP_SCALAR | OP_CHEAP,
    .attrs = ATTR_INDEX,
    .table = TABLE_KNOB,
    .doc = "A `param` that is a flag of the program.",
    .infer = infer_shape_attr,
    .c = "knob(batch, $n)",
    .prec = PREC_PRIMARY,
};

const OpDef op_step = {
    .name = "step",
    .cls = OP_LEAF,
    .flags = OP_SCALAR | OP_CHEAP,
    .doc = "The number of this step, from 1.",
    .infer = infer_shape_attr,
    .c = "step(batch)",
    .prec = PREC_PRIMARY,
};

const OpDef op_every = {
    .name = "every",
    .cls = OP_LEAF,
    .flags = OP_SCALAR | OP_CHEAP,
    .attrs = ATTR_INDEX,
    .doc = "Whether the number of this step is a multiple of n: each n-th step makes an update.",
    .infer = infer_every,
    .c = "every(batch, $n)",
    .prec = PREC_PRIMARY,
};

const OpDef op_turn = {
    .name = "turn",
    .cls = OP_LEAF,
    .flags = OP_SCALAR | OP_CHEAP,
    .attrs = ATTR_INDEX,
    .doc = "The number of this step modulo n: where in a turn of n steps it stands.",
    .infer = infer_place,
    .range = range_turn,
    .c = "turn(batch, $n)",
    .prec = PREC_PRIMARY,
};

const OpDef op_falls = {
    .name = "falls",
    .cls = OP_LEAF,
    .flags = OP_SCALAR | OP_CHEAP,
    .attrs = ATTR_INDEX,
    .doc =
        "How often training has waited for a better evaluation in vain, by the n-th patience of the model's schedules.",
    .infer = infer_shape_attr,
    .c = "falls(batch, $n)",
    .prec = PREC_PRIMARY,
};

const OpDef op_steps_per_epoch = {
    .name = "steps_per_epoch",
    .cls = OP_LEAF,
    .flags = OP_SCALAR | OP_CHEAP,
    .doc = "The number of steps in an epoch; a name in the train block.",
    .infer = infer_shape_attr,
    .c = "steps_per_epoch(batch)",
    .prec = PREC_PRIMARY,
};

const OpDef op_total_steps = {
    .name = "total_steps",
    .cls = OP_LEAF,
    .flags = OP_SCALAR | OP_CHEAP,
    .doc = "The number of steps of the whole training; a name in the train block.",
    .infer = infer_shape_attr,
    .c = "total_steps(batch)",
    .prec = PREC_PRIMARY,
};

const OpDef op_examples = {
    .name = "examples",
    .cls = OP_LEAF,
    .flags = OP_SCALAR | OP_CHEAP,
    .doc = "How many examples this batch has; without those that fill it up.",
    .infer = infer_shape_attr,
    .c = "examples(batch)",
    .prec = PREC_PRIMARY,
};

const OpDef op_examples_of_batch = {
    .name = "examples_of_batch",
    .cls = OP_LEAF,
    .flags = OP_SCALAR | OP_CHEAP,
    .doc = "How many examples the batch has that this is a shard of.",
    .infer = infer_shape_attr,
    .c = "examples_of_batch(batch)",
    .prec = PREC_PRIMARY,
};

const OpDef op_examples_before = {
    .name = "examples_before",
    .cls = OP_LEAF,
    .flags = OP_SCALAR | OP_CHEAP,
    .doc = "How many examples of the data set or the epoch came before this batch.",
    .infer = infer_shape_attr,
    .c = "examples_before(batch)",
    .prec = PREC_PRIMARY,
};

const OpDef op_position = {
    .name = "position",
    .cls = OP_LEAF,
    .flags = OP_SCALAR | OP_CHEAP,
    .doc = "The position of the token that is generated from, the first being 0.",
    .infer = infer_place,
    .c = "position(batch)",
    .prec = PREC_PRIMARY,
};

const OpDef op_token = {
    .name = "token",
    .cls = OP_LEAF,
    .flags = OP_SCALAR | OP_CHEAP,
    .doc = "The token at that position.",
    .infer = infer_place,
    .c = "token(batch)",
    .prec = PREC_PRIMARY,
};

const OpDef op_tokens = {
    .name = "tokens",
    .cls = OP_LEAF,
    .flags = OP_BUFFER,
    .attrs = ATTR_INDEX | ATTR_DIMS,
    .doc = "The tokens of several texts at a position, in place of the n-th field of examples.",
    .infer = infer_tokens,
    .range = range_field,
};

const OpDef op_prompt = {
    .name = "prompt",
    .cls = OP_LEAF,
    .flags = OP_BUFFER,
    .attrs = ATTR_INDEX | ATTR_DIMS,
    .doc = "The tokens that a text begins with, in place of the n-th field of an example.",
    .infer = infer_tokens,
    .range = range_field,
};

const OpDef op_weight = {
    .name = "weight",
    .cls = OP_LEAF,
    .flags = OP_BUFFER,
    .attrs = ATTR_INDEX,
    .table = TABLE_WEIGHT,
    .doc = "A trainable tensor of the given shape. Its default initialiser takes the last axis as the inputs.",
    .example = "scale = weight([10], init = constant(1))",
    .infer = infer_weight,
    .signature = "shape: list, init: init = none",
    .build = build_weight,
};

const OpDef op_state = {
    .name = "state",
    .cls = OP_LEAF,
    .flags = OP_BUFFER,
    .attrs = ATTR_INDEX,
    .table = TABLE_STATE,
    .doc = "What an optimizer remembers of a weight.",
    .infer = infer_state,
};

const OpDef op_field = {
    .name = "field",
    .cls = OP_LEAF,
    .flags = OP_BUFFER,
    .attrs = ATTR_INDEX,
    .table = TABLE_FIELD,
    .doc = "A field of the examples of this batch.",
    .infer = infer_field,
    .range = range_field,
};

const OpDef op_iota = {
    .name = "iota",
    .cls = OP_INDEX,
    .flags = OP_NO_GRAD | OP_CHEAP,
    .attrs = ATTR_DIMS,
    .doc = "0, 1, ..., n - 1.",
    .example = "y = sum(x * iota(6))",
    .infer = infer_iota,
    .range = range_iota,
    .narrow = narrow_iota,
    .to_onnx = to_onnx_iota,
    .c = "$i0",
    .prec = PREC_PRIMARY,
    .signature = "n: size",
    .build = build_iota,
};

const OpDef op_share = {
    .name = "share",
    .cls = OP_INDEX,
    .flags = OP_NO_GRAD | OP_CHEAP,
    .attrs = ATTR_DIMS,
    .doc = "An example's part in the batch's mean: 1 / rows for the rows of this batch, 0 for those that fill it up.",
    .infer = infer_shape_attr,
    .c = "share(batch, $i0)",
    .prec = PREC_PRIMARY,
};

const OpDef op_shard_share = {
    .name = "shard_share",
    .cls = OP_INDEX,
    .flags = OP_NO_GRAD | OP_CHEAP,
    .attrs = ATTR_DIMS,
    .doc = "An example's part in the mean over its shard of the batch, where a batch is computed in shards.",
    .infer = infer_shape_attr,
    .c = "shard_share(batch, $i0)",
    .prec = PREC_PRIMARY,
};

const OpDef op_shard_part = {
    .name = "shard_part",
    .cls = OP_MAP,
    .flags = OP_NO_GRAD,
    .arity = 1,
    .attrs = ATTR_INDEX,
    .doc = "What this shard of the batch adds to a sum over all of them.",
    .infer = infer_as_input,
    .c = "$0",
    .prec = PREC_COMMA,
};

const OpDef op_shards_before = {
    .name = "shards_before",
    .cls = OP_MAP,
    .flags = OP_NO_GRAD | OP_CHEAP,
    .arity = 1,
    .doc = "What the shard before has left of a sum that this one adds to; 0 where the next one does.",
    .infer = infer_as_input,
    .reads_if = "follows_a_shard(batch)",
    .c = "$0",
    .prec = PREC_PRIMARY,
};

const OpDef op_assign = {
    .name = "assign",
    .cls = OP_ROOT,
    .arity = 2,
    .doc = "After the step, the weight or state a has the value b.",
    .infer = infer_assign,
};

const OpDef op_report = {
    .name = "report",
    .cls = OP_ROOT,
    .arity = 1,
    .attrs = ATTR_INDEX,
    .table = TABLE_REPORT,
    .doc = "The step reports this number: the loss or a metric.",
    .infer = infer_as_input,
};

const OpDef op_keep = {
    .name = "keep",
    .cls = OP_ROOT,
    .arity = 1,
    .attrs = ATTR_INDEX,
    .table = TABLE_KEPT,
    .doc = "Evaluation keeps this of each example, for metrics over the whole set.",
    .infer = infer_as_input,
};

const OpDef op_last = {
    .name = "last",
    .cls = OP_ROOT,
    .arity = 1,
    .table = TABLE_LAST,
    .doc = "Decoding computes this for the first token of a text, and has it for those that follow.",
    .infer = infer_as_input,
};

const OpDef op_show = {
    .name = "show",
    .cls = OP_ROOT,
    .arity = 1,
    .attrs = ATTR_INDEX,
    .table = TABLE_PRINTED,
    .doc = "What print(x) shows while the training runs.",
    .infer = infer_as_input,
};

const OpDef op_output = {
    .name = "output",
    .cls = OP_ROOT,
    .arity = 1,
    .doc = "The prediction.",
    .infer = infer_as_input,
};
