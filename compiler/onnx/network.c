#include "onnx/network.h"

#include "onnx/inside.h"
#include "onnx/order.h"

static const char batch_name[] = "batch";

Arena *onnx_arena(const Onnx *o) {
    return o->arena;
}

OnnxValue onnx_refuse(Onnx *o, const Node *n, const char *why) {
    if (!o->refusal) {
        o->refusal = why;
        o->refused = n->src;
    }
    return (OnnxValue){0};
}

/* ---- inputs ---- */

static Onnx__TensorShapeProto__Dimension *dimension(Onnx *o, int64_t extent, const char *name) {
    Onnx__TensorShapeProto__Dimension *made = NEW(o->arena, Onnx__TensorShapeProto__Dimension);
    onnx__tensor_shape_proto__dimension__init(made);
    made->has_dim_value = !name;
    made->dim_value = extent;
    made->dim_param = name ? arena_strdup(o->arena, name) : NULL;
    return made;
}

static Onnx__ValueInfoProto *value_info(Onnx *o, const char *name, const Type *type) {
    Onnx__ValueInfoProto *info = NEW(o->arena, Onnx__ValueInfoProto);
    onnx__value_info_proto__init(info);
    info->name = arena_strdup(o->arena, name);
    info->type = NEW(o->arena, Onnx__TypeProto);
    onnx__type_proto__init(info->type);
    Onnx__TypeProto__Tensor *tensor = info->type->tensor_type = NEW(o->arena, Onnx__TypeProto__Tensor);
    onnx__type_proto__tensor__init(tensor);
    tensor->has_elem_type = true;
    tensor->elem_type = onnx_dtype(type->dtype);
    tensor->shape = NEW(o->arena, Onnx__TensorShapeProto);
    onnx__tensor_shape_proto__init(tensor->shape);
    tensor->shape->n_dim = (size_t)type->rank;
    tensor->shape->dim = NEW_ARRAY(o->arena, Onnx__TensorShapeProto__Dimension *, type->rank);
    for (int k = 0; k < type->rank; k++)
        tensor->shape->dim[k] = dimension(o, type->dim[k], type->batched && k == 0 ? batch_name : NULL);
    return info;
}

static OnnxValue input(Onnx *o, const Node *n) {
    const char *name = onnx_new_name(o, o->module->fields.at[n->attr.index].name, NULL);
    VEC_PUSH(o->arena, &o->inputs, value_info(o, name, &n->type));
    o->batch = o->batch ? o->batch : name;
    return onnx_value(name);
}

/* ---- weights and params ---- */

static OnnxValue weight(Onnx *o, const Node *n) {
    const Weight *w = &o->module->weights.at[n->attr.index];
    Type type = weight_type_in_files(w);
    const char *name = onnx_initializer(o, w->name, type.dtype, type.rank, type.dim, NULL, 0);
    return w->file_order ? onnx_value_in(name, type.rank, w->file_order) : onnx_value(name);
}

/* Its text says whose number it gets, whatever it is called. */
static OnnxValue param(Onnx *o, const Node *n) {
    const char *name = o->module->knobs.at[n->attr.index].name;
    const char *made = onnx_initializer(o, name, DT_F32, 0, NULL, NULL, 0);
    o->initializers.at[o->initializers.count - 1]->doc_string = arena_printf(o->arena, "param %s", name);
    return onnx_value(made);
}

/* ---- nodes ---- */

/* Of the batch, or of places in it. */
static bool sees_batch(const Node *n) {
    return n->op->flags & OP_GATHERS_BATCH || (n->op->cls == OP_INDEX && n->type.batched);
}

static OnnxValue no_form(Onnx *o, const Node *n) {
    if (n->op->flags & OP_SCALAR)
        return onnx_refuse(
            o, n, arena_printf(o->arena, "the prediction depends on a number of the training, '%s'", n->op->name));
    return onnx_refuse(o, n, arena_printf(o->arena, "there is no form in ONNX's operators of '%s'", n->op->name));
}

static OnnxValue value_of(Onnx *o, const Node *n) {
    switch (n->op->table) {
    case TABLE_FIELD: return input(o, n);
    case TABLE_WEIGHT: return weight(o, n);
    case TABLE_KNOB: return param(o, n);
    default: break;
    }
    if (n->op->flags & OP_REPEATS)
        return onnx_expansion(o, n);
    if (n->op->attrs & ATTR_ORDER)
        return onnx_exchange(o, n);
    if (n->op->to_onnx)
        return n->op->to_onnx(o, n);
    return n->op->onnx ? onnx_map(o, n, n->op->onnx) : no_form(o, n);
}

/* Gives the value a name where the node that was made last makes it, which nobody has read yet; false: another one does. */
static bool rename_last(Onnx *o, OnnxValue *value, const char *name) {
    OnnxMade *last = o->nodes.count ? o->nodes.at[o->nodes.count - 1] : NULL;
    if (!last || strcmp(last->node.output[0], value->name) != 0)
        return false;
    if (strcmp(value->name, name) != 0)
        last->node.output[0] = arena_strdup(o->arena, onnx_new_name(o, name, last));
    value->name = last->node.output[0];
    return true;
}

/* ---- the graph ---- */

static void mark_needed(const Node *n, bool *needed) {
    if (needed[n->id])
        return;
    needed[n->id] = true;
    for (int k = 0; k < n->inputs; k++)
        mark_needed(n->in[k], needed);
}

static const Node *prediction_of(const Graph *g) {
    for (int i = 0; i < g->roots.count; i++)
        if (g->roots.at[i]->op->table == TABLE_NONE && g->roots.at[i]->op->arity == 1)
            return g->roots.at[i]->in[0];
    return NULL;
}

/* What says most of why a model has no network, wherever it stands. */
static void refuse_chance(Onnx *o, const Graph *g, const bool *needed) {
    for (int i = 0; i < g->nodes.count; i++) {
        const Node *n = g->nodes.at[i];
        if (needed[i] && n->op->flags & OP_DRAWS)
            onnx_refuse(o, n, "the prediction draws random numbers");
        else if (needed[i] && sees_batch(n))
            onnx_refuse(o, n, "the prediction of an example needs the other examples of its batch");
    }
}

/* Leaves of one table. Names of weights are those of checkpoints: theirs come first, and then those of fields. */
static void write_leaves(Onnx *o, const Graph *g, const bool *needed, Table table) {
    for (int i = 0; i < g->nodes.count; i++) {
        const Node *n = g->nodes.at[i];
        if (needed[i] && n->op->cls == OP_LEAF && n->op->table == table)
            o->values[i] = value_of(o, n);
    }
}

/* What the text calls a value is what the file calls it, where a node was made for it alone. The prediction's name is the output's. */
static void write_others(Onnx *o, const Graph *g, const bool *needed, const Node *prediction) {
    for (int i = 0; i < g->nodes.count && !o->refusal; i++) {
        const Node *n = g->nodes.at[i];
        int before = o->nodes.count;
        if (!needed[i] || n->op->cls == OP_LEAF)
            continue;
        o->values[i] = value_of(o, n);
        if (o->values[i].name && n->name && n != prediction && o->nodes.count > before)
            rename_last(o, &o->values[i], n->name);
    }
}

/* An output is what a node makes. */
static const char *output_name(Onnx *o, const Node *prediction) {
    OnnxValue value = onnx_ordered(o, o->values[prediction->id], &prediction->type, onnx_value("").order);
    const char *wanted = prediction->name ? prediction->name : "prediction";
    if (!rename_last(o, &value, wanted)) {
        value.name = onnx1(o, "Identity", value.name);
        rename_last(o, &value, wanted);
    }
    return value.name;
}

/* Nodes in their order, those that are read. */
static void put_nodes(Onnx *o, Onnx__GraphProto *graph) {
    graph->node = NEW_ARRAY(o->arena, Onnx__NodeProto *, o->nodes.count);
    for (int i = o->nodes.count - 1; i >= 0; i--) {
        Onnx__NodeProto *node = &o->nodes.at[i]->node;
        if (!onnx_find_name(o, node->output[0])->needed)
            continue;
        for (size_t k = 0; k < node->n_input; k++)
            if (*node->input[k])
                onnx_find_name(o, node->input[k])->needed = true;
        graph->n_node++;
    }
    for (int i = 0, count = 0; i < o->nodes.count; i++)
        if (onnx_find_name(o, o->nodes.at[i]->node.output[0])->needed)
            graph->node[count++] = &o->nodes.at[i]->node;
}

static void put_initializers(Onnx *o, Onnx__GraphProto *graph) {
    graph->initializer = NEW_ARRAY(o->arena, Onnx__TensorProto *, o->initializers.count);
    for (int i = 0; i < o->initializers.count; i++)
        if (onnx_find_name(o, o->initializers.at[i]->name)->needed)
            graph->initializer[graph->n_initializer++] = o->initializers.at[i];
}

static Network pack(Onnx *o, Onnx__GraphProto *graph) {
    Onnx__ModelProto model = ONNX__MODEL_PROTO__INIT;
    Onnx__OperatorSetIdProto operators = ONNX__OPERATOR_SET_ID_PROTO__INIT, *sets[] = {&operators};
    char producer[] = "mtc", none[] = "";
    operators.domain = none;
    operators.has_version = true;
    operators.version = ONNX_OPSET;
    model.has_ir_version = true;
    model.ir_version = ONNX_IR;
    model.producer_name = producer;
    model.graph = graph;
    model.n_opset_import = 1;
    model.opset_import = sets;
    Network network = {.size = protobuf_c_message_get_packed_size(&model.base)};
    uint8_t *bytes = arena_alloc(o->arena, network.size);
    protobuf_c_message_pack(&model.base, bytes);
    network.bytes = bytes;
    return network;
}

static Network finish(Onnx *o, const Node *prediction) {
    Onnx__GraphProto graph = ONNX__GRAPH_PROTO__INIT;
    const char *name = output_name(o, prediction);
    Onnx__ValueInfoProto *output = value_info(o, name, &prediction->type);
    onnx_find_name(o, name)->needed = true;
    graph.name = arena_strdup(o->arena, o->module->name);
    graph.n_input = (size_t)o->inputs.count;
    graph.input = o->inputs.at;
    graph.n_output = 1;
    graph.output = &output;
    put_nodes(o, &graph);
    put_initializers(o, &graph);
    return pack(o, &graph);
}

Network network_of(const Module *module) {
    const Graph *g = module->eval;
    const Node *prediction = prediction_of(g);
    Onnx o = {.arena = module->arena, .module = module};
    bool *needed = NEW_ARRAY(o.arena, bool, g->nodes.count);
    if (!prediction)
        return (Network){.refusal = "it predicts nothing"};
    if (module->precision == PRECISION_INT8)
        return (Network){.refusal = "its weights are integers; the program of the same model in floats exports"};
    o.values = NEW_ARRAY(o.arena, OnnxValue, g->nodes.count);
    mark_needed(prediction, needed);
    refuse_chance(&o, g, needed);
    write_leaves(&o, g, needed, TABLE_WEIGHT);
    write_leaves(&o, g, needed, TABLE_FIELD);
    write_leaves(&o, g, needed, TABLE_KNOB);
    write_leaves(&o, g, needed, TABLE_NONE);
    if (!o.batch && !o.refusal)
        onnx_refuse(&o, prediction, "the prediction depends on no field of the data");
    write_others(&o, g, needed, prediction);
    return o.refusal ? (Network){.refusal = o.refusal, .at = o.refused} : finish(&o, prediction);
}

const char *network_refusal(Arena *arena, const Network *network) {
    int line = 0, column;
    if (network->bytes || !network->at.source)
        return network->bytes ? NULL : network->refusal;
    span_position(network->at, &line, &column);
    return arena_printf(arena, "%s:%d: %s", network->at.source->path, line, network->refusal);
}
