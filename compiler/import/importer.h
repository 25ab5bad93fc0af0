/* What the files of this room share: the file's values, what is known of them, and the text that they become.
 *
 *   file -> read.c -> nodes and tensors -> graph.c: node by node, in an order in which operands come first
 *        -> fold.c where all operands are known, else the node's row of operators.def -> expressions (express.c) -> write.c
 *
 * ONNX computes with whole batches, our text speaks of one example. So each value knows which of its axes runs along the batch;
 * the text's axes are the others. What works along the batch is refused. */
#ifndef MTC_IMPORTER_H
#define MTC_IMPORTER_H

#include "import/import.h"
#include "onnx.pb-c.h"
#include "runtime/base/common.h"
#include "runtime/base/files.h"
#include "support/text.h"

#include <setjmp.h>

enum { MOST_RANK = 8, MOST_INPUTS = 1024, OLDEST_VERSION = 7, NEWEST_VERSION = 28 };

typedef Onnx__NodeProto NodeProto;
typedef Onnx__TensorProto TensorProto;
typedef Onnx__AttributeProto AttributeProto;
typedef Onnx__ModelProto ModelProto;

/* What an element is to the language: f32, a whole number, a condition. */
typedef enum Element { REAL, WHOLE, CONDITION } Element;

typedef struct Extents {
    int rank;
    int64_t size[MOST_RANK];
} Extents;

/* A shape as ONNX has it. `batch` is the axis along which the examples of a batch lie, -1: none; its size here is its part
 * within an example, 1 as a rule: heads and batch may be one axis, of which each example has its heads. */
typedef struct Shape {
    Extents all;
    int batch;
    int64_t ahead; /* of that part, what lies ahead of the examples in memory: [17, batch] as one axis; 0: nothing */
} Shape;

/* Numbers that are known. */
typedef struct Tensor {
    Element element;
    Extents extents;
    int64_t count;
    const float *real;      /* REAL */
    const int64_t *whole;   /* else */
    const int64_t *batches; /* beside `whole`: times so many examples, as in a shape with the batch; NULL: none */
    const char *name;       /* in the file; NULL: it was computed, or is a node's */
    bool trained;           /* it is an initializer with axes: a weight */
    int uses;               /* of an initializer, by nodes */
    const char *statement;  /* name of the value that it has in the text; NULL: none yet */
    Extents stated;         /* its shape there */
} Tensor;

typedef struct Weight {
    const char *name;
    const Tensor *tensor;
    bool frozen; /* the file has it as a constant */
} Weight;

/* A call that has weights: "linear(x, 10" and what follows when its name is known. */
typedef struct Layer {
    const char *call;
    const char *home;           /* the value that its node makes, in the file */
    bool may_bias, has_bias;    /* it takes an argument `bias` */
    int64_t outputs;            /* how many numbers its bias has */
    const Tensor *weight[4];    /* NULL behind the last */
    const char *weight_name[4]; /* "weight", "bias", "running_mean", "running_var" */
} Layer;

/* How strongly a text binds, as in the language's table of operators. */
typedef enum Strength { OR, AND, NOT, COMPARED, SUM, PRODUCT, SIGN, POWER, ATOM } Strength;

/* An expression: before, layer, after; most have no layer, and all is before. */
typedef struct Expression {
    const char *before;
    Layer *layer;
    const char *after;
    Strength strength;
    int depth;       /* of calls in it */
    Extents extents; /* of what it computes, in the axes of the text */
} Expression;

typedef struct Node Node;

/* What the language computes a whole number as: one in a range that it knows, one of 32 bits, or in f32. */
typedef enum Width { BOUNDED, ANY_WHOLE, UNKNOWN_WIDTH, IN_REAL } Width;

typedef struct Value {
    const char *name; /* in the file */
    Element element;
    Shape shape;
    const Tensor *constant; /* NULL: it is computed when the program runs */
    Expression expression;
    bool stated; /* its expression is a name */
    bool known;  /* shape and the rest are */
    bool output;
    int uses;
    Node *maker; /* NULL: an input or an initializer */
    Width width; /* of what a node makes */
    bool is_field;
    const char *field; /* its name in the text */
    int type;          /* of its elements in the file */
    int64_t classes;   /* of a field: rows of the tables that it looks up, -1: of different ones */
    int look_ups;      /* of its uses */
} Value;

typedef struct Importer Importer;
/* Writes what the node computes, by `give`. */
typedef void Rule(Importer *im, Node *node);
/* The first output of a node whose operands are all known; NULL: it is left to the rule. */
typedef const Tensor *Fold(Importer *im, Node *node);

/* One row of operators.def. */
typedef struct Operator {
    const char *name;
    int first, last;        /* versions of the set of operators in which it means what the rule writes */
    int least, most;        /* inputs */
    const char *attributes; /* names that are known, each between spaces */
    Rule *rule;
    const char *text; /* for the rule: how it is written */
    Fold *fold;       /* NULL: never */
} Operator;

struct Node {
    int number; /* in the file, from 0 */
    const NodeProto *proto;
    const Operator *operator;
    Value **input; /* NULL: not given */
    int inputs;
    Value **output;
    int outputs;
    bool needed; /* for an output of the graph */
};

/* A row of the model block, "h = relu(linear(x, 10, name = "fc"))": names, before, call, after. */
typedef struct Statement {
    const char *names;
    const char *before;        /* all of the expression, where it has no weights */
    const char *call, *after;  /* "linear(x, 10", of which name and ")" are missing; NULL: it has no weights */
    const char *path;          /* what its weights are called by */
    int first_weight, weights; /* of the importer's */
    int node;                  /* the number of that whose value it is; -1: of none */
    bool repeats;              /* `before` is the head of a repeat, "repeat i in 0..4 {", and `call` the row in it */
} Statement;

/* "block(x)", its rows, and what it returns. */
typedef struct Function {
    const char *head, *result;
    VEC(Statement) statements;
} Function;

struct Importer {
    Diag *diag;
    Arena *arena;
    const ImportRequest *request;
    ModelProto *model;
    int version; /* of the set of operators */
    VEC(Node *) nodes;
    struct NameTable *values, *taken, *weight_names;
    VEC(Value *) inputs;
    VEC(Value *) outputs;
    VEC(Function) functions;
    VEC(Statement) statements;
    VEC(Weight) weights;
    VEC(const char *) warnings;
    const char *index; /* of repeats; NULL: there was none */
    int keep;          /* the node whose value gets a name, though one other alone needs it; -1: none */
    bool batched;      /* the first axis of each input is the batch */
    int64_t examples;  /* that the file fixes; 0: any */
    size_t folded;     /* elements that folding has made: bounded */
    bool *sizes_used;  /* of the request's sizes */
    Node *at;          /* whose turn it is; NULL: none */
    jmp_buf refused;
    const char *why; /* of the refusal */
};

/* ---- faults (fault.c) ---- */

/* The node, or the file, is not taken: no return. */
_Noreturn void refuse(Importer *im, const char *format, ...) __attribute__((format(printf, 2, 3)));
void warn_later(Importer *im, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* ---- the file (read.c) ---- */

/* The checked message; NULL after a report. To be freed with onnx__model_proto__free_unpacked. */
ModelProto *read_model(Importer *im, const char *path);
Tensor *read_tensor(Importer *im, const TensorProto *proto, const char *name);
Element element_of(Importer *im, int type, const char *of);

/* ---- attributes (attribute.c) ---- */

const AttributeProto *attribute(Importer *im, const Node *node, const char *name); /* NULL: not given */
int64_t int_attribute(Importer *im, const Node *node, const char *name, int64_t otherwise);
double real_attribute(Importer *im, const Node *node, const char *name, double otherwise);
const char *word_attribute(Importer *im, const Node *node, const char *name, const char *otherwise);
/* How many there are; 0 where it is not given. At most MOST_RANK * 2. */
int ints_attribute(Importer *im, const Node *node, const char *name, int64_t *at);
/* The node says nothing else than `only`. */
void only_int(Importer *im, const Node *node, const char *name, int64_t only);
void only_word(Importer *im, const Node *node, const char *name, const char *only);
/* The shortest decimal that is this float. */
double decimal(double real);

/* ---- shapes (shape.c) ---- */

int64_t extents_count(Importer *im, const Extents *e); /* refuses what is too large */
bool extents_same(const Extents *a, const Extents *b);
/* The axes of the text: without that of the batch. */
Extents text_extents(const Shape *shape);
Shape plain_shape(int rank, const int64_t *size);
int axis_from(Importer *im, int64_t axis, int rank, const char *what); /* from 0, of one that may count from behind */
/* The axis in the text; refused where it is the batch's. */
int text_axis(Importer *im, const Shape *shape, int axis);
bool has_text_axis(const Shape *shape, int axis);
/* As NumPy stretches them. */
Shape broadcast(Importer *im, const Shape *a, const Shape *b);
Shape without_axis(const Shape *shape, int axis);
Shape with_axis(Importer *im, const Shape *shape, int axis, int64_t size);
const char *shape_text(Importer *im, const Shape *shape); /* "[N, 3, 4]", for messages */
const char *sizes_text(Importer *im, const Extents *e);   /* "[3, 4]" */
const char *list_text(Importer *im, const int64_t *at, int count);

/* ---- constants (tensor.c, fold.c) ---- */

Tensor *tensor_new(Importer *im, Element element, const Extents *extents); /* counted; its numbers are to be filled */
float *tensor_reals(Importer *im, Tensor *tensor);
int64_t *tensor_wholes(Importer *im, Tensor *tensor);
double tensor_number(const Tensor *tensor, int64_t i);
/* The same numbers in another shape, or as the weight of another name. */
Tensor *tensor_as(Importer *im, const Tensor *tensor, const Extents *extents);
Tensor *tensor_permuted(Importer *im, const Tensor *tensor, const int *order);
/* The whole numbers of an operand that must be known when importing. */
const Tensor *known_wholes(Importer *im, const Node *node, int input, const char *what);
int known_list(Importer *im, const Node *node, int input, const char *what, int64_t *at); /* at most 2 * MOST_RANK */
double known_number(Importer *im, const Node *node, int input, double otherwise, const char *what);
/* Does what can be computed now. */
bool fold(Importer *im, Node *node);

/* ---- expressions (express.c) ---- */

/* The value as a part of an expression that binds so strongly, in its own axes. */
const char *operand(Importer *im, Value *value, Strength strength);
const char *operand_as(Importer *im, Value *value, const Extents *extents, Strength strength);
/* As an operand beside others whose result has this shape. */
const char *operand_beside(Importer *im, Value *value, const Shape *result, Strength strength, Extents *extents);
/* A value's name, which it gets if it has none. */
const char *named(Importer *im, Value *value);
/* The expression in which the operand stands alone, "relu(", x, ")": a layer in it stays the layer of the whole. */
Expression around(Importer *im, Value *value, const char *before, const char *after);
/* The same of what works element by element, in whatever shape. */
Expression around_elements(Importer *im, Value *value, const char *before, const char *after);
Expression text_expression(Importer *im, Strength strength, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Output `at` of the node is computed so; of the text's axes unless the expression says. */
void give(Importer *im, Node *node, int at, Element element, const Shape *shape, Expression expression);
/* The same with the shape that the expression says that it has. */
void give_as(Importer *im, Node *node, int at, Element element, const Shape *shape, Expression expression);
void give_constant(Importer *im, Node *node, const Tensor *tensor);
/* The output is the input, in another shape. */
void give_view(Importer *im, Node *node, Value *value, const Shape *shape);
const char *number_text(Importer *im, double number);
void state(Importer *im, const char *names, const char *expression);
const char *statement_text(Importer *im, const Statement *statement); /* what stands behind the sign */
/* An output of the graph gets a name, in its own shape. */
void name_output(Importer *im, Value *value);
bool is_number(const Value *value, double *number); /* it is one known number */

/* ---- layers (layer.c) ---- */

/* The tensor of an input that is known; NULL: it is computed. */
const Tensor *weight_of(const Node *node, int input);
Layer *layer_new(Importer *im, const char *format, ...) __attribute__((format(printf, 2, 3)));
void layer_add(Layer *layer, const char *name, const Tensor *tensor);
Expression layer_expression(Importer *im, Layer *layer);
/* Its weights become those of the importer, and its call that of the statement. */
void layer_take(Importer *im, const Layer *layer, Statement *statement);
/* The name of the statement that a layer stands in. */
const char *layer_identifier(Importer *im, const Layer *layer);
/* A weight of its own, in a statement; its name there. */
const char *weight_statement(Importer *im, const Tensor *tensor, const Extents *extents, const char *otherwise);
const Tensor *filled(Importer *im, int64_t count, double number);

/* ---- names (names.c) ---- */

/* A name of the file, visible in whatever it is printed. */
const char *shown(Importer *im, const char *name);
struct NameTable *names_new(Importer *im);
void *names_find(const struct NameTable *table, const char *name);
void names_add(Importer *im, struct NameTable *table, const char *name, void *item);
/* A name for the text, not taken yet, of one in the file; `otherwise` where that has no letters. */
const char *identifier(Importer *im, const char *name, const char *otherwise);
const char *unique(Importer *im, struct NameTable *table, const char *name, int longest);
/* "conv1" of "conv1.weight"; NULL: it does not end so. */
const char *without_ending(Importer *im, const char *name, const char *ending);
/* "layer1.0.conv1" of "/layer1/layer1.0/conv1/Conv_output_0", as PyTorch names what a module computes; NULL: it is called otherwise. */
const char *module_path(Importer *im, const char *name);
/* A name as weights may have: letters, digits, _ and points between. */
const char *weight_path(Importer *im, const char *name);

/* ---- the nodes (graph.c, operators.c) ---- */

const Operator *operator_for(Importer *im, const NodeProto *node);
/* False: it is refused, im->why says why. */
bool import_graph(Importer *im);

/* ---- rows that are looked up (row.c) ---- */

void note_width(const Node *node, Value *value); /* that the node makes */
/* The index of a row, as a whole number of the language. */
const char *row_text(Importer *im, Value *index, int64_t rows);

/* ---- blocks that repeat (repeat.c) ---- */

/* Makes functions of them. How many rows there are less. */
int fold_repeats(Importer *im);
/* The node that is for a further block what the last row of the others is, and whose value has no name; -1: there is none. */
int missing_row(Importer *im);

/* ---- the result (write.c) ---- */

/* The operand of a last activation, where the loss is of that: scores of classes; NULL: there is none. */
const Value *scores_of(const Value *output);
int write_import(Importer *im);

#endif
