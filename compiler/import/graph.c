/* The graph: values by their names, nodes in the file's order, each as its row of operators.def says. */
#include "import/fold.h"
#include "import/importer.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- names ---- */

static const char *checked_name(Importer *im, const char *name, const char *of) {
    if (!name || !*name)
        refuse(im, "%s has no name", of);
    for (const char *at = name, *end = name + strlen(name); at < end;) {
        const int length = utf8_length((const unsigned char *)at, (const unsigned char *)end);
        if (!length)
            refuse(im, "the name of %s is no UTF-8: '%s'", of, shown(im, name));
        at += length;
    }
    return name;
}

static Value *add_value(Importer *im, const char *name, const char *of) {
    Value *value = NEW(im->arena, Value);
    value->name = checked_name(im, name, of);
    value->shape.batch = -1;
    if (names_find(im->values, name))
        refuse(im, "'%s' is made twice: every name is that of one value", shown(im, name));
    names_add(im, im->values, name, value);
    return value;
}

/* ---- initializers and inputs ---- */

static void add_initializer(Importer *im, const TensorProto *proto) {
    Value *value = add_value(im, proto->name, "an initializer");
    Tensor *tensor = read_tensor(im, proto, value->name);
    tensor->trained = tensor->element == REAL && tensor->extents.rank > 0;
    value->constant = tensor;
    value->element = tensor->element;
    value->shape = plain_shape(tensor->extents.rank, tensor->extents.size);
    value->known = true;
}

/* What --set says of an axis by its name; 0: nothing. */
static int64_t size_given(Importer *im, const char *name) {
    for (int i = 0; i < im->request->size_count; i++) {
        const AxisSize *size = &im->request->sizes[i];
        char *end;
        if (strcmp(size->name, name) != 0)
            continue;
        const long long number = strtoll(size->value, &end, 10);
        if (*end || end == size->value || number < 1 || number > INT32_MAX)
            refuse(im, "--set %s=%s is no size of an axis", size->name, size->value);
        im->sizes_used[i] = true;
        return number;
    }
    return 0;
}

static const char *axis_name(Importer *im, const Onnx__TensorShapeProto__Dimension *dim, const char *input, int axis) {
    return dim->dim_param && *dim->dim_param ? dim->dim_param : arena_printf(im->arena, "%s.%d", input, axis);
}

/* 0: it has a name, and no size. */
static int64_t size_of_axis(Importer *im, const Onnx__TensorShapeProto__Dimension *dim, const char *input, int axis) {
    if (!dim->has_dim_value || (dim->dim_param && *dim->dim_param))
        return size_given(im, axis_name(im, dim, input, axis));
    if (dim->dim_value < 1)
        refuse(im, "input '%s': axis %d has the size %lld", shown(im, input), axis, (long long)dim->dim_value);
    return dim->dim_value;
}

static const Onnx__TensorShapeProto *input_shape(Importer *im, const Onnx__ValueInfoProto *info) {
    const Onnx__TypeProto *type = info->type;
    const char *name = shown(im, info->name);
    if (!type || !type->tensor_type)
        refuse(im, "input '%s' is no tensor", name);
    if (!type->tensor_type->shape)
        refuse(im, "input '%s': the file does not say its shape", name);
    if (type->tensor_type->shape->n_dim > MOST_RANK)
        refuse(im, "input '%s' has %zu axes; at most %d are known", name, type->tensor_type->shape->n_dim, MOST_RANK);
    return type->tensor_type->shape;
}

static Shape read_shape(Importer *im, const Onnx__ValueInfoProto *info, int64_t *first) {
    const Onnx__TensorShapeProto *proto = input_shape(im, info);
    Shape shape = {.all = {.rank = (int)proto->n_dim}, .batch = -1};
    for (int i = 0; i < shape.all.rank; i++) {
        const char *name = axis_name(im, proto->dim[i], info->name, i);
        shape.all.size[i] = size_of_axis(im, proto->dim[i], info->name, i);
        if (shape.all.size[i] == 0 && i > 0)
            refuse(im, "input '%s': axis %d is '%s', any size; --set %s=N says which", shown(im, info->name), i,
                   shown(im, name), shown(im, name));
    }
    *first = shape.all.rank ? shape.all.size[0] : -1;
    return shape;
}

/* An input that is no initializer too: a field of the data. */
static void add_input(Importer *im, const Onnx__ValueInfoProto *info) {
    int64_t first;
    checked_name(im, info->name, "an input");
    const Shape shape = read_shape(im, info, &first);
    Value *value = add_value(im, info->name, "an input");
    value->shape = shape;
    value->is_field = true;
    value->type = info->type->tensor_type->elem_type;
    value->element = element_of(im, value->type, arena_printf(im->arena, "input '%s'", shown(im, info->name)));
    value->known = true;
    VEC_PUSH(im->arena, &im->inputs, value);
}

/* The batch is the first axis of every input, if they have one, of one size. */
static void find_batch(Importer *im) {
    bool same = im->inputs.count > 0;
    for (int i = 0; i < im->inputs.count; i++) {
        const Shape *shape = &im->inputs.at[i]->shape, *first = &im->inputs.at[0]->shape;
        same = same && shape->all.rank > 0 && shape->all.size[0] == first->all.size[0];
    }
    im->examples = same ? im->inputs.at[0]->shape.all.size[0] : 0;
    for (int i = 0; i < im->inputs.count; i++) {
        Value *value = im->inputs.at[i];
        const bool open = value->shape.all.rank && value->shape.all.size[0] == 0;
        if (open && !(same && im->batched))
            refuse(im, "input '%s': axis 0 has any size, and so would be the batch; but the inputs differ in it",
                   shown(im, value->name));
        value->shape.batch = same && im->batched ? 0 : -1;
        if (value->shape.batch == 0)
            value->shape.all.size[0] = 1;
        extents_count(im, &value->shape.all);
    }
    im->batched = im->batched && same;
}

static void make_fields(Importer *im) {
    for (int i = 0; i < im->inputs.count; i++) {
        Value *value = im->inputs.at[i];
        const char *name = identifier(im, value->name, "x");
        value->field = name;
        value->stated = value->element != CONDITION;
        value->expression = (Expression){.before = value->stated ? name : arena_printf(im->arena, "%s != 0", name),
                                         .after = "",
                                         .strength = value->stated ? ATOM : COMPARED,
                                         .extents = text_extents(&value->shape)};
    }
}

static void read_values(Importer *im) {
    const Onnx__GraphProto *graph = im->model->graph;
    for (size_t i = 0; i < graph->n_initializer; i++)
        add_initializer(im, graph->initializer[i]);
    for (size_t i = 0; i < graph->n_input; i++)
        if (!graph->input[i]->name || !names_find(im->values, graph->input[i]->name))
            add_input(im, graph->input[i]);
    for (int i = 0; i < im->request->size_count; i++)
        if (!im->sizes_used[i])
            refuse(im, "--set %s: no axis of an input is called so", im->request->sizes[i].name);
    if (!im->inputs.count)
        refuse(im, "it has no inputs: what it computes is the same for every example. An input that is an initializer "
                   "too is taken "
                   "for a weight");
    find_batch(im);
    make_fields(im);
}

/* ---- nodes ---- */

static void read_version(Importer *im) {
    im->version = 0;
    for (size_t i = 0; i < im->model->n_opset_import; i++) {
        const Onnx__OperatorSetIdProto *set = im->model->opset_import[i];
        if (!set->domain || !*set->domain || strcmp(set->domain, "ai.onnx") == 0)
            im->version = set->version < 1 || set->version > INT32_MAX ? -1 : (int)set->version;
    }
    if (im->version < 1)
        refuse(im, "the file does not say which version of ONNX's operators it uses (opset_import)");
    if (im->version < OLDEST_VERSION || im->version > NEWEST_VERSION)
        refuse(im,
               "its operators are those of version %d; mtc knows %d to %d. onnx.version_converter makes another "
               "version of a file",
               im->version, OLDEST_VERSION, NEWEST_VERSION);
}

static void add_output(Importer *im, Node *node, int at) {
    const char *name = node->proto->output[at];
    if (!name || !*name)
        return;
    node->output[at] = add_value(im, name, "an output");
    node->output[at]->maker = node;
}

static void add_node(Importer *im, const NodeProto *proto, int number) {
    Node *node = NEW(im->arena, Node);
    node->number = number;
    node->proto = proto;
    im->at = node;
    if (!proto->op_type || !*proto->op_type)
        refuse(im, "a node that says no operator");
    if (proto->n_input > MOST_INPUTS || proto->n_output > MOST_INPUTS)
        refuse(im, "it has %zu inputs and %zu outputs; at most %d are known", proto->n_input, proto->n_output,
               MOST_INPUTS);
    node->inputs = (int)proto->n_input;
    node->outputs = (int)proto->n_output;
    node->input = NEW_ARRAY(im->arena, Value *, node->inputs + 1);
    node->output = NEW_ARRAY(im->arena, Value *, node->outputs + 1);
    for (int i = 0; i < node->outputs; i++)
        add_output(im, node, i);
    VEC_PUSH(im->arena, &im->nodes, node);
    im->at = NULL;
}

static void find_inputs(Importer *im, Node *node) {
    im->at = node;
    for (int i = 0; i < node->inputs; i++) {
        const char *name = node->proto->input[i];
        if (!name || !*name)
            continue;
        node->input[i] = names_find(im->values, name);
        if (!node->input[i])
            refuse(im, "its input %d, '%s', is made nowhere: it is no input, no initializer and no node's output", i,
                   shown(im, name));
    }
    while (node->inputs && !node->input[node->inputs - 1])
        node->inputs--;
    im->at = NULL;
}

/* ---- what the outputs need ---- */

static void find_outputs(Importer *im) {
    const Onnx__GraphProto *graph = im->model->graph;
    for (size_t i = 0; i < graph->n_output; i++) {
        const char *name = checked_name(im, graph->output[i]->name, "an output");
        Value *value = names_find(im->values, name);
        if (!value)
            refuse(im, "the output '%s' is made nowhere", shown(im, name));
        value->output = true;
        VEC_PUSH(im->arena, &im->outputs, value);
    }
    if (!im->outputs.count)
        refuse(im, "the graph has no output");
}

/* Nodes whose results nobody needs are left out. Where nodes stand behind those whose outputs they read, one pass from the last to
 * the first finds the others; an order that is another one is refused later. */
static void find_needed(Importer *im) {
    for (int i = im->nodes.count - 1; i >= 0; i--) {
        Node *node = im->nodes.at[i];
        for (int k = 0; k < node->outputs; k++)
            node->needed |= node->output[k] && (node->output[k]->uses || node->output[k]->output);
        for (int k = 0; node->needed && k < node->inputs; k++)
            if (node->input[k])
                node->input[k]->uses++;
    }
}

static void check_order(Importer *im, const Node *node) {
    for (int i = 0; i < node->inputs; i++)
        if (node->input[i] && !node->input[i]->known)
            refuse(im,
                   "its input %d, '%s', is made behind it: nodes stand behind those whose outputs they read, and not "
                   "in a circle",
                   i, shown(im, node->input[i]->name));
}

static void check_attributes(Importer *im, const Node *node) {
    for (size_t i = 0; i < node->proto->n_attribute; i++) {
        const char *name = node->proto->attribute[i]->name;
        const bool plain = name && *name && !strchr(name, ' ');
        if (!plain || !strstr(node->operator->attributes, arena_printf(im->arena, " %s ", name)))
            refuse(im, "it has an attribute '%s', which mtc does not know of this operator", shown(im, name));
    }
}

static void check_inputs(Importer *im, const Node *node) {
    const Operator *op = node->operator;
    const bool all = op->most == MOST_INPUTS;
    if (node->inputs < op->least || node->inputs > op->most)
        refuse(im, "it has %d inputs, where %d to %d are expected", node->inputs, op->least, op->most);
    for (int i = 0; i < node->inputs; i++)
        if (!node->input[i] && (all || i < op->least))
            refuse(im, "its input %d is not given", i);
    if (!node->outputs || !node->output[0])
        refuse(im, "it has no output");
}

static void check_outputs(Importer *im, const Node *node) {
    for (int i = 0; i < node->outputs; i++) {
        const Value *value = node->output[i];
        if (value && !value->known && (value->uses || value->output))
            refuse(im, "mtc has no way to its output %d, '%s'", i, shown(im, value->name));
    }
}

static void import_node(Importer *im, Node *node) {
    im->at = node;
    check_order(im, node);
    node->operator= operator_for(im, node->proto);
    check_attributes(im, node);
    check_inputs(im, node);
    if (!fold(im, node))
        node->operator->rule(im, node);
    check_outputs(im, node);
    for (int i = 0; i < node->outputs; i++)
        if (node->output[i])
            note_width(node, node->output[i]);
    im->at = NULL;
}

/* ---- the whole ---- */

static void count_uses(Importer *im) {
    for (int i = 0; i < im->nodes.count; i++)
        for (int k = 0; im->nodes.at[i]->needed && k < im->nodes.at[i]->inputs; k++) {
            const Value *value = im->nodes.at[i]->input[k];
            if (value && value->constant)
                ((Tensor *)(uintptr_t)value->constant)->uses++;
        }
}

/* The text's prediction is of one example after the other: where an output has them along another axis, it is another one. */
static void check_output(Importer *im, const Value *value) {
    const bool first = value->shape.batch == 0 && value->shape.all.size[0] == 1;
    if (!im->batched || first || im->examples == 1)
        return;
    if (im->examples)
        refuse(im, "the output '%s' is %s, and no result for each example", shown(im, value->name),
               shape_text(im, &value->shape));
    warn_later(im, "the output '%s' is %s in the file; the text predicts %s for each example", shown(im, value->name),
               shape_text(im, &value->shape), sizes_text(im, &value->expression.extents));
}

static void finish_output(Importer *im, Value *value) {
    if (!value->known)
        refuse(im, "the output '%s' is not computed by any node", shown(im, value->name));
    name_output(im, value);
    check_output(im, value);
}

static void run_import(Importer *im) {
    const Onnx__GraphProto *graph = im->model->graph;
    read_version(im);
    read_values(im);
    if (graph->n_node > INT32_MAX)
        refuse(im, "it has %zu nodes", graph->n_node);
    for (size_t i = 0; i < graph->n_node; i++)
        add_node(im, graph->node[i], (int)i);
    for (int i = 0; i < im->nodes.count; i++)
        find_inputs(im, im->nodes.at[i]);
    find_outputs(im);
    find_needed(im);
    count_uses(im);
    for (int i = 0; i < im->nodes.count; i++)
        if (im->nodes.at[i]->needed)
            import_node(im, im->nodes.at[i]);
    for (int i = 0; i < im->outputs.count; i++)
        finish_output(im, im->outputs.at[i]);
}

/* From the beginning, with or without a batch. False: im->why. */
static bool attempt(Importer *im, bool batched, int keep) {
    const Importer fresh = {
        .diag = im->diag, .arena = im->arena, .request = im->request, .model = im->model, .keep = keep};
    *im = fresh;
    im->batched = batched;
    im->values = names_new(im);
    im->taken = names_new(im);
    im->weight_names = names_new(im);
    im->sizes_used = NEW_ARRAY(im->arena, bool, im->request->size_count + 1);
    if (setjmp(im->refused))
        return false;
    run_import(im);
    return true;
}

static bool attempt_either(Importer *im) {
    if (attempt(im, true, -1))
        return true;
    /* A file that fixes how many examples there are may mean no batch at all: then all of it is one example. */
    const char *why = im->why;
    if (im->examples && attempt(im, false, -1))
        return true;
    im->why = why;
    return false;
}

bool import_graph(Importer *im) {
    if (!attempt_either(im))
        return false;
    if (im->request->flat)
        return true;
    /* The last of equal blocks may lack its last row, whose value only what follows needs, and so has in it. */
    const int keep = missing_row(im), saved = fold_repeats(im);
    const Importer first = *im;
    if (keep >= 0 && (!attempt(im, first.batched, keep) || fold_repeats(im) <= saved))
        *im = first;
    return true;
}
