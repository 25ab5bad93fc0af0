/* Nodes, constants and names of the file. What is asked for twice is made once. */
#include "onnx/inside.h"

/* ---- names ---- */

static unsigned hash_text(unsigned hash, const char *text) {
    for (const char *c = text; *c; c++)
        hash = (hash ^ (unsigned char)*c) * 16777619u;
    return (hash ^ 0xffu) * 16777619u;
}

static OnnxName **bucket_of(Onnx *o, const char *text) {
    return &o->names[hash_text(2166136261u, text) % ONNX_BUCKETS];
}

OnnxName *onnx_find_name(Onnx *o, const char *text) {
    OnnxName *name = *bucket_of(o, text);
    while (name && strcmp(name->text, text) != 0)
        name = name->next;
    return name;
}

const char *onnx_new_name(Onnx *o, const char *wanted, OnnxMade *made) {
    const char *text = wanted;
    for (int i = 2; onnx_find_name(o, text); i++)
        text = arena_printf(o->arena, "%s_%d", wanted, i);
    OnnxName *name = NEW(o->arena, OnnxName), **bucket = bucket_of(o, text);
    *name = (OnnxName){text, made, false, *bucket};
    *bucket = name;
    return text;
}

/* ---- nodes ---- */

static unsigned hash_node(const char *op, int inputs, const char *const *in) {
    unsigned hash = hash_text(2166136261u, op);
    for (int k = 0; k < inputs; k++)
        hash = hash_text(hash, in[k]);
    return hash % ONNX_BUCKETS;
}

static Onnx__AttributeProto *attribute(Onnx *o, const OnnxAttr *from) {
    static const Onnx__AttributeProto__AttributeType types[] = {
        [ONNX_INT] = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT,
        [ONNX_REAL] = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT,
        [ONNX_TEXT] = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING,
        [ONNX_INTS] = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS,
        [ONNX_TEXTS] = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRINGS,
    };
    Onnx__AttributeProto *to = NEW(o->arena, Onnx__AttributeProto);
    onnx__attribute_proto__init(to);
    to->name = arena_strdup(o->arena, from->name);
    to->has_type = true;
    to->type = types[from->kind];
    to->has_i = from->kind == ONNX_INT;
    to->i = from->number;
    to->has_f = from->kind == ONNX_REAL;
    to->f = (float)from->real;
    to->has_s = from->kind == ONNX_TEXT;
    if (from->text)
        to->s = (ProtobufCBinaryData){strlen(from->text), (uint8_t *)arena_strdup(o->arena, from->text)};
    to->n_ints = from->numbers ? (size_t)from->count : 0;
    to->ints = NEW_ARRAY(o->arena, int64_t, from->count);
    if (from->numbers)
        memcpy(to->ints, from->numbers, to->n_ints * sizeof *to->ints);
    to->n_strings = from->texts ? (size_t)from->count : 0;
    to->strings = NEW_ARRAY(o->arena, ProtobufCBinaryData, from->count);
    for (size_t i = 0; i < to->n_strings; i++)
        to->strings[i] =
            (ProtobufCBinaryData){strlen(from->texts[i]), (uint8_t *)arena_strdup(o->arena, from->texts[i])};
    return to;
}

static bool is_same_bytes(const ProtobufCBinaryData *a, const ProtobufCBinaryData *b) {
    return a->len == b->len && (!a->len || memcmp(a->data, b->data, a->len) == 0);
}

static bool is_same_attribute(const Onnx__AttributeProto *a, const Onnx__AttributeProto *b) {
    bool same = strcmp(a->name, b->name) == 0 && a->i == b->i && a->f == b->f && is_same_bytes(&a->s, &b->s) &&
                a->n_ints == b->n_ints && a->n_strings == b->n_strings;
    if (same && a->n_ints)
        same = memcmp(a->ints, b->ints, a->n_ints * sizeof *a->ints) == 0;
    for (size_t i = 0; same && i < a->n_strings; i++)
        same = is_same_bytes(&a->strings[i], &b->strings[i]);
    return same;
}

static bool is_same_node(const Onnx__NodeProto *a, const Onnx__NodeProto *b) {
    bool same = strcmp(a->op_type, b->op_type) == 0 && a->n_input == b->n_input && a->n_attribute == b->n_attribute;
    for (size_t k = 0; same && k < a->n_input; k++)
        same = strcmp(a->input[k], b->input[k]) == 0;
    for (size_t k = 0; same && k < a->n_attribute; k++)
        same = is_same_attribute(a->attribute[k], b->attribute[k]);
    return same;
}

static OnnxMade *new_node(Onnx *o, const char *op, int inputs, const char *const *in, int attrs, const OnnxAttr *attr) {
    OnnxMade *made = NEW(o->arena, OnnxMade);
    Onnx__NodeProto *node = &made->node;
    onnx__node_proto__init(node);
    node->op_type = arena_strdup(o->arena, op);
    node->n_input = (size_t)inputs;
    node->input = NEW_ARRAY(o->arena, char *, inputs);
    for (int k = 0; k < inputs; k++)
        node->input[k] = arena_strdup(o->arena, in[k]);
    node->n_attribute = (size_t)attrs;
    node->attribute = NEW_ARRAY(o->arena, Onnx__AttributeProto *, attrs);
    for (int k = 0; k < attrs; k++)
        node->attribute[k] = attribute(o, &attr[k]);
    return made;
}

const char *onnx_node(Onnx *o, const char *op, int inputs, const char *const *in, int attrs, const OnnxAttr *attr) {
    for (int k = 0; k < inputs; k++)
        if (!in[k])
            return NULL; /* noted */
    OnnxMade *made = new_node(o, op, inputs, in, attrs, attr), **bucket = &o->shared[hash_node(op, inputs, in)];
    for (OnnxMade *other = *bucket; other; other = other->next)
        if (is_same_node(&other->node, &made->node))
            return other->node.output[0];
    made->next = *bucket;
    *bucket = made;
    made->node.n_output = 1;
    made->node.output = NEW(o->arena, char *);
    made->node.output[0] = arena_strdup(o->arena, onnx_new_name(o, op, made));
    VEC_PUSH(o->arena, &o->nodes, made);
    return made->node.output[0];
}

const char *onnx1(Onnx *o, const char *op, const char *a) {
    return onnx_node(o, op, 1, &a, 0, NULL);
}

const char *onnx2(Onnx *o, const char *op, const char *a, const char *b) {
    return onnx_node(o, op, 2, (const char *[]){a, b}, 0, NULL);
}

const char *onnx3(Onnx *o, const char *op, const char *a, const char *b, const char *c) {
    return onnx_node(o, op, 3, (const char *[]){a, b, c}, 0, NULL);
}

/* ---- constants ---- */

int onnx_dtype(DType dtype) {
    static const int types[DTYPE_COUNT] = {
        [DT_F32] = ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT,   [DT_I32] = ONNX__TENSOR_PROTO__DATA_TYPE__INT32,
        [DT_U8] = ONNX__TENSOR_PROTO__DATA_TYPE__UINT8,    [DT_BOOL] = ONNX__TENSOR_PROTO__DATA_TYPE__BOOL,
        [DT_U16] = ONNX__TENSOR_PROTO__DATA_TYPE__UINT16,  [DT_BF16] = ONNX__TENSOR_PROTO__DATA_TYPE__BFLOAT16,
        [DT_F16] = ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT16,
    };
    return types[dtype];
}

static Onnx__TensorProto *tensor(Onnx *o, int type, int rank, const int64_t *dim, const void *bytes, size_t size) {
    Onnx__TensorProto *made = NEW(o->arena, Onnx__TensorProto);
    onnx__tensor_proto__init(made);
    made->n_dims = (size_t)rank;
    made->dims = NEW_ARRAY(o->arena, int64_t, rank);
    if (rank)
        memcpy(made->dims, dim, (size_t)rank * sizeof *dim);
    made->has_data_type = true;
    made->data_type = type;
    made->has_raw_data = bytes != NULL;
    made->raw_data.len = bytes ? size : 0;
    made->raw_data.data = arena_alloc(o->arena, made->raw_data.len);
    if (bytes)
        memcpy(made->raw_data.data, bytes, size);
    return made;
}

static const char *add_tensor(Onnx *o, Onnx__TensorProto *made, const char *name) {
    made->name = arena_strdup(o->arena, onnx_new_name(o, name, NULL));
    VEC_PUSH(o->arena, &o->initializers, made);
    return made->name;
}

const char *onnx_initializer(Onnx *o, const char *name, DType dtype, int rank, const int64_t *dim, const void *bytes,
                             size_t size) {
    return add_tensor(o, tensor(o, onnx_dtype(dtype), rank, dim, bytes, size), name);
}

static bool is_same_tensor(const Onnx__TensorProto *a, const Onnx__TensorProto *b) {
    return a->has_raw_data && a->data_type == b->data_type && a->n_dims == b->n_dims &&
           (!a->n_dims || memcmp(a->dims, b->dims, a->n_dims * sizeof *a->dims) == 0) &&
           is_same_bytes(&a->raw_data, &b->raw_data);
}

static const char *constant(Onnx *o, int type, int rank, const int64_t *dim, const void *bytes, size_t size) {
    Onnx__TensorProto *made = tensor(o, type, rank, dim, bytes, size);
    for (int i = 0; i < o->initializers.count; i++)
        if (is_same_tensor(o->initializers.at[i], made))
            return o->initializers.at[i]->name;
    return add_tensor(o, made, "constant");
}

const char *onnx_number(Onnx *o, DType dtype, double number) {
    const float real = (float)number;
    const int32_t whole = dtype == DT_I32 ? (int32_t)number : 0;
    const uint8_t byte = dtype == DT_BOOL ? number != 0 : dtype == DT_U8 ? (uint8_t)number : 0;
    ENSURE(dtype == DT_F32 || dtype == DT_I32 || dtype == DT_U8 || dtype == DT_BOOL);
    const void *bytes = dtype == DT_F32 ? (const void *)&real : dtype == DT_I32 ? (const void *)&whole : &byte;
    return constant(o, onnx_dtype(dtype), 0, NULL, bytes, (size_t)dtype_info[dtype].bytes);
}

const char *onnx_real(Onnx *o, double number) {
    return onnx_number(o, DT_F32, number);
}

const char *onnx_table(Onnx *o, int rank, const int64_t *dim, const int64_t *numbers) {
    size_t size = sizeof *numbers;
    for (int k = 0; k < rank; k++)
        size *= (size_t)dim[k];
    return constant(o, ONNX__TENSOR_PROTO__DATA_TYPE__INT64, rank, dim, numbers, size);
}

const char *onnx_numbers(Onnx *o, int count, const int64_t *numbers) {
    return onnx_table(o, 1, (int64_t[]){count}, numbers);
}

const char *onnx_count(Onnx *o, int64_t count) {
    return onnx3(o, "Range", onnx_number(o, DT_I32, 0), onnx_number(o, DT_I32, (double)count),
                 onnx_number(o, DT_I32, 1));
}

const char *onnx_cast(Onnx *o, const char *x, DType dtype) {
    return onnx_node(o, "Cast", 1, &x, 1, &ONNX_NUMBER("to", onnx_dtype(dtype)));
}

const char *onnx_index(Onnx *o, const char *x) {
    return onnx_node(o, "Cast", 1, &x, 1, &ONNX_NUMBER("to", ONNX__TENSOR_PROTO__DATA_TYPE__INT64));
}

/* ---- shapes ---- */

/* The extents of a type; that of the batch, which is known when the model runs, as `open`. Returns whether it has one. */
static bool extents(const Type *type, int64_t open, int64_t *dim) {
    memcpy(dim, type->dim, (size_t)type->rank * sizeof *dim);
    if (type->batched)
        dim[0] = open;
    return type->batched;
}

/* How many examples there are, times those of `type` that one of them is: i64 [1]. */
static const char *batch_extent(Onnx *o, const Type *type) {
    const OnnxAttr first[] = {ONNX_NUMBER("start", 0), ONNX_NUMBER("end", 1)};
    int64_t each = type->dim[0] / o->module->batch;
    const char *examples = onnx_node(o, "Shape", 1, &o->batch, 2, first);
    return each == 1 ? examples : onnx2(o, "Mul", examples, onnx_numbers(o, 1, &each));
}

const char *onnx_shape(Onnx *o, const Type *type) {
    int64_t dim[MAX_RANK];
    if (!extents(type, 0, dim))
        return onnx_numbers(o, type->rank, dim);
    const char *parts[] = {batch_extent(o, type), onnx_numbers(o, type->rank - 1, dim + 1)};
    return type->rank == 1 ? parts[0] : onnx_concat(o, 2, parts, 0);
}

/* What a node of that kind made `x` of; NULL: another kind did. */
static const OnnxMade *made_by(Onnx *o, const char *x, const char *op) {
    const OnnxName *name = onnx_find_name(o, x);
    return name && name->made && strcmp(name->made->node.op_type, op) == 0 ? name->made : NULL;
}

const char *onnx_reshape(Onnx *o, const char *x, const Type *type) {
    int64_t dim[MAX_RANK];
    if (!x)
        return NULL;
    const OnnxMade *before = made_by(o, x, "Reshape");
    extents(type, -1, dim);
    return onnx2(o, "Reshape", before ? before->node.input[0] : x, onnx_numbers(o, type->rank, dim));
}

const char *onnx_transpose(Onnx *o, const char *x, int rank, const int *order) {
    int64_t axes[MAX_RANK];
    bool moves = false;
    if (!x)
        return NULL;
    const OnnxMade *before = made_by(o, x, "Transpose");
    for (int k = 0; k < rank; k++) {
        axes[k] = before ? before->node.attribute[0]->ints[order[k]] : order[k];
        moves |= axes[k] != k;
    }
    x = before ? before->node.input[0] : x;
    return moves ? onnx_node(o, "Transpose", 1, &x, 1, &ONNX_NUMBERS("perm", rank, axes)) : x;
}

const char *onnx_slice(Onnx *o, const char *x, int axis, int64_t from, int64_t to) {
    const char *in[] = {x, onnx_numbers(o, 1, &from), onnx_numbers(o, 1, &to), onnx_numbers(o, 1, &(int64_t){axis})};
    return onnx_node(o, "Slice", 4, in, 0, NULL);
}

const char *onnx_concat(Onnx *o, int count, const char *const *parts, int axis) {
    return onnx_node(o, "Concat", count, parts, 1, &ONNX_AXIS(axis));
}
