/* The graph: typed nodes of static shape, in topological order (a node's inputs precede it).
 *
 * Shapes are explicit: map operators take operands of one common shape; broadcasting is an `expand` node, written by
 * the constructors below. Batch is dim[0] of batched nodes. */
#ifndef MTC_GRAPH_H
#define MTC_GRAPH_H

#include <setjmp.h>

#include "ir/type.h"
#include "support/diag.h"
#include "support/text.h"

typedef struct OpDef OpDef;
typedef struct Operators Operators;
typedef struct Node Node;
typedef struct Graph Graph;
typedef struct Module Module;

enum { MAX_INPUTS = 6 };

/* How a window moves along an axis of an image: output o sees at tap k the position p = o * stride + k * dilation - pad of the
 * image spread out by `spread`: element p / spread where that is whole and inside, else a fill value. */
typedef struct Sweep {
    int64_t out, kernel; /* extents of the result: outputs, taps */
    int64_t stride, dilation, pad, spread;
} Sweep;

/* Attention: rows of `queries` heads, then `keys` heads of keys, then as many of values, each of `size` numbers. */
typedef struct Heads {
    int64_t queries, keys, size;
    bool causal;    /* a position sees itself and those before */
    int64_t window; /* of them the last so many; 0: all */
} Heads;

/* What an operator needs beside its inputs; OpDef.attrs says which fields it reads, the others are zero. */
typedef struct Attr {
    double value;             /* a constant's value */
    int index;                /* row of a Module table (weight, state, field, knob, report), random stream */
    unsigned axes;            /* bit k: graph axis k of the operand is reduced / of the result is expanded */
    int rank;                 /* dims in use */
    int64_t dims[MAX_RANK];   /* target shape; transpose: result axis k is operand axis dims[k] */
    bool batched;             /* dims[0] is the batch axis, or begins with it */
    int64_t offset[MAX_RANK]; /* slice, pad: where the smaller tensor begins in the larger */
    bool ta, tb;              /* matmul: operand is stored transposed */
    DType dtype;              /* cast: to this type; const: of this type */
    Sweep sweep[2];           /* window, unwindow, conv2d: along the rows and the columns of images [N, H, W, C] */
    Heads heads;              /* attend; `value` is the scale of its scores */
} Attr;

struct Node {
    const OpDef *op;
    int id; /* position in graph->nodes; renumbered by graph_compact */
    Type type;
    int inputs;
    Node *in[MAX_INPUTS];
    Attr attr;
    Range range;         /* of its elements */
    unsigned examples;   /* axes along which the examples of the batch lie; graphs that are `written` know it */
    const char *name;    /* the user's name of the value (`h`, `logits`), a hint (`logits_max`), or NULL */
    const char *hint;    /* what generated code calls it where it has no name: `predicted`; or NULL */
    const char *meaning; /* for equations, where rounding made the formula another one: `1 - 0.9^step`; or NULL */
    bool of_mean;        /* const: one by the number of elements of a mean, whoever reads it */
    Span src;            /* the statement or call that it comes from */
    Node *after;         /* computed no earlier than the value of this one is there; NULL: at any time */
    Node *replaced;      /* simplify: what stands in its place */
    Node *same_hash;     /* value numbering: next in its chain */
};

struct Graph {
    Module *module;
    Arena *arena;
    bool training;    /* dropout is active, gradients and updates exist */
    bool written;     /* its nodes are being made of the text: what they fold of the examples leaves filler out */
    int64_t examples; /* of a run; 0: those of the module's batch */
    Span at;          /* where the nodes being made come from */
    int copies;       /* nodes that rewriting may still make beside the ones that they are copies of */
    VEC(Node *) nodes;
    /* Roots. Everything that no root needs is removed by graph_compact. `assign`s are roots too, wherever they are. */
    VEC(Node *) roots;
    Node **shared; /* value numbering: chains of pure nodes, at least as many as there are nodes */
    int chains;
};

/* A tensor that outlives the step: trained, frozen, a buffer that something other than gradients fills (the statistics
 * of a field); or an optimizer's state for a weight. All graphs of a module share these tables. */
typedef enum WeightKind { WEIGHT_TRAINED, WEIGHT_FROZEN, WEIGHT_BUFFER } WeightKind;
typedef enum InitKind {
    INIT_ZEROS,
    INIT_CONSTANT,
    INIT_UNIFORM,
    INIT_NORMAL,
    INIT_COPY,
    INIT_WHITE,
    INIT_DIRAC
} InitKind;
typedef struct Init {
    InitKind kind;
    double a, b; /* constant: value a; uniform: [a, b); normal: mean a, standard deviation b; copy: of weight `of`;
                    white, dirac: as MTC_WHITE, MTC_DIRAC of runtime/mtc.h */
} Init;
typedef struct Weight {
    const char *name; /* `h.weight`: unique, decided by the text */
    WeightKind kind;
    Type type;
    Init init;
    const int *file_order; /* axis k of the tensor in files is axis file_order[k] in memory; NULL: the same */
    bool replaced;         /* by its integers: no graph reads it, and it has no place */
    bool shared;           /* a buffer that is the same wherever its name is asked for; else it belongs to one layer */
    Span src;
    int of;      /* state: the weight it belongs to; weight: -1 */
    bool summed; /* state: of a shard; before the update the sum over all shards of the step */
    bool flat;   /* several of the table, one behind the other, as one of a single axis: no file has it (pass/flat.h) */
    bool parted; /* state: of several processes, each has its part */
    int within;  /* the flat one's row, counted from 1, of one that lies in it from element `at` on; 0: it lies apart */
    int64_t at;
} Weight;

/* Filters that whiten patches of the images of a field, and what is added to their results: made of the training data. */
typedef struct Whitening {
    int field, filters, shift; /* rows of the module's tables */
    Sweep sweep[2];
} Whitening;

/* A field of one example. */
typedef enum FieldKind { FIELD_ARRAY, FIELD_CLASS } FieldKind;
typedef enum Part { PART_VALUE, PART_DAY_OF_YEAR, PART_MONTH, PART_WEEKDAY } Part;
typedef enum Missing { MISSING_ERROR, MISSING_SKIP, MISSING_MEAN, MISSING_VALUE } Missing;
/* The columns of a table that a field is made of: one, or one for each element. */
typedef struct Columns {
    VEC(const char *) names; /* empty: the examples are no rows of a table with named columns */
    Part part;
    const char *date_format;
    Missing missing;
    double missing_value;
    const char *missing_text; /* or NULL */
    bool unseen_other;
} Columns;
typedef struct Field {
    const char *name;
    FieldKind kind;
    Type type;    /* batched; dim[0] = batch. Class: i32[B, ...] in the graph, stored as `stored` */
    DType stored; /* element type in the device's copy of the data set: u8, u16, i32 or f32 */
    int classes;  /* FIELD_CLASS: number of classes */
    bool windows; /* examples overlap in the data set: where each begins is known at run time */
    int64_t steps,
        from; /* of windows of rows: how many rows of one it has, and which is its first; steps 0: none are */
    Columns columns;
    bool distribution; /* cross_entropy compares it as it is: numbers of the last axis sum to 1 */
    bool weighs;       /* it is the weight of its example, and none is below 0 */
    Span src;
} Field;

/* Where examples come from: idx("images", "labels"), one file per field in the order of the fields; tsv("sales.tsv"); rows
 * written in the text. As MtcOrigin of runtime/mtc.h. */
typedef struct Origin {
    const char *format;      /* "idx", "npy", "npz", "tsv", "csv", "rows", "cifar10", "images", "characters", "bytes",
                           "tokens", "pieces" */
    VEC(const char *) paths; /* as written */
    bool header;
    VEC(const char *) columns; /* where the text names them: of a file without header, or what its header must be */
    char separator, quote;     /* quote 0: none */
    int64_t row_count;
    VEC(double) rows;
    bool resize;    /* images: of other sizes than the field's are scaled */
    int64_t stride; /* windows of tokens or of rows: from the beginning of one to that of the next; 0: there are none */
    Span src;
} Origin;

/* A set of examples: the part [from, to) of the origin's, in an order that the seed decides; 0 to 1: all, in order. */
typedef struct Split {
    const char *name; /* "train", "test", "validation" */
    int origin;       /* row of module->origins */
    double from, to;
    bool in_order; /* as they stand in the origin, not at random */
    Span src;
} Split;

/* A `param` of the model file. */
typedef struct Knob {
    const char *name;
    double value; /* resolved: default or --set */
    bool integer; /* written without fraction or exponent */
    bool fixed;   /* decides a shape: set when compiling. Otherwise a flag of the program */
    bool has_range;
    double low, high;
    Span src;
    const char *help;   /* the comment at the end of its line, or NULL */
    const char *bound;  /* "goes to dropout: at least 0 and below 1"; NULL: any number */
    double least, most; /* where it is bound */
} Knob;

/* What is allowed, and seldom meant: a warning, and a note at what brings it about. */
typedef struct Doubt {
    Span at, cause;
    const char *text, *cure;
} Doubt;

/* How numbers of several classes become one: of the second class alone; their mean; that of all classes counted together; their
 * mean by how many examples each has. */
typedef enum Average { AVERAGE_BINARY, AVERAGE_MACRO, AVERAGE_MICRO, AVERAGE_WEIGHTED } Average;

/* A metric over a set of examples, which no mean of numbers of each example is: evaluation keeps values of each example, and
 * when all are there, a function of the runtime computes the metric of them. */
enum { MAX_KEPT = 2 };
typedef struct SetMetric {
    const char *function;  /* mtc_metric_FUNCTION */
    Node *value[MAX_KEPT]; /* f32 with a batch */
    int values;
    bool table;  /* the function gives no number: how many examples of each class are taken for each */
    int classes; /* that there are; 0: each element of an example is a number or condition of its own */
    Average average;
} SetMetric;

/* A number that is reported: the loss first, then the means, per step (training) and per pass (evaluation); behind these the
 * metrics over a set, per pass. */
typedef struct Report {
    const char *name; /* "loss", "accuracy" */
    bool rises;       /* higher is better */
    Span src;
    const SetMetric *over_set; /* NULL: the mean over the examples */
    int kept[MAX_KEPT];        /* of over_set: rows of Module.kept */
} Report;

/* A value of the evaluation that metrics over a set need of each example. */
typedef struct Kept {
    int64_t elements;
} Kept;

/* A value that print(x) shows while the training runs. */
typedef struct Printed {
    const char *text; /* of the argument */
    const char *type; /* as the text has it: "f32[128]" */
    Span src;
} Printed;

/* A value of the evaluation as the text has it: images with their channels first, whatever lies in memory. */
typedef struct NamedValue {
    const char *name;
    Span src;
    Type type;
} NamedValue;

/* An axis of a weight or of a named value whose extent is a param: `linear(x, width)`. */
typedef struct NamedSize {
    int weight;        /* row of module->weights; -1: of a value */
    const Node *value; /* as it was made; its name is the one to look for */
    int64_t extent;
    const char *param;
} NamedSize;

/* What products are computed in: strict fp32; fp32 numbers rounded to tf32 on their way in, or taken as two such numbers each;
 * numbers stored as bf16, or as IEEE's halves; as bf16 but for large forward products of a weight, in numbers of 8 bits (pass/float8.h).
 * Sums are fp32. */
typedef enum Precision {
    PRECISION_FP32,
    PRECISION_TF32,
    PRECISION_TF32X3,
    PRECISION_BF16,
    PRECISION_FP16,
    PRECISION_FP8,
    PRECISION_INT8, /* for programs that do not train (pass/quantize.h); no text has it */
    PRECISIONS
} Precision;
extern const char *const precision_names[PRECISIONS]; /* as text and flags have them */
DType precision_dtype(Precision precision);           /* what operands of products are stored as */

/* A weight of products that is stored as integers of 8 bits: scale[o] times that of output o. What it is multiplied with is rounded
 * to multiples of `input_scale`. All three are rows of Module.weights. */
typedef struct Quantized {
    int weight, scale, input_scale;
    int taken_scale;         /* of the input: of several such weights that have the same one, the first one's */
    int first_input, inputs; /* rows of Module.printed: the values that it is multiplied with */
} Quantized;

struct Module {
    Arena *arena;
    Diag *diag;
    const Operators *operators; /* that its graphs are made of */
    const char *name;           /* "mnist": the file's name without folder and ending */
    const Source *source;
    int64_t batch;        /* examples of a run of each graph: of a step or, where it has shards, of one of these */
    int shards;           /* of a step's batch; 0: it is computed whole */
    int64_t whole_batch;  /* of all shards together */
    bool parts_states;    /* of several processes, each updates a part of the weights, and has the states of that */
    bool batch_replaced;  /* by a flag: the text says another number */
    bool batch_too_large; /* for a value: reported */
    /* Where passes end that cannot make a value, which is reported; NULL: who asks for one looks at it. */
    jmp_buf *given_up;
    int epochs; /* defaults of the program's flags */
    uint64_t seed;
    Precision precision;
    bool recompute;       /* the backward pass computes values again rather than keep them */
    const char *training; /* the train block: a line "optimizer = adam(lr)" for each of its settings */
    VEC(Weight) weights;
    VEC(Weight) states;
    VEC(Whitening) whitenings;
    VEC(Field) fields;
    VEC(Origin) origins;
    VEC(Split) splits;
    VEC(Knob) knobs;
    VEC(Report) reports;
    int means;        /* so many of them are means, the first ones */
    Report confusion; /* its metric is a table; name NULL: none */
    Report
        weight; /* the sum of the examples' weights, in the column behind the means; name NULL: all weigh the same. Kept, too, where values are */
    VEC(Kept) kept;
    VEC(Printed) printed;     /* of `watch`: the root `show` with that index */
    VEC(Quantized) quantized; /* of PRECISION_INT8 */
    Span prints;              /* such a call of the text; its source NULL: there is none */
    VEC(Doubt) doubts;        /* one for each place and text */
    VEC(NamedValue) named;
    VEC(NamedSize) sizes;
    VEC(int) plateaus;    /* of learning rates: evaluations without a better one after which they fall; all different */
    int own_losses;       /* optimizers that have a loss of their own */
    int64_t first_update; /* the step with which every trained weight has been updated; 1: each step does */
    int monitor, patience; /* the report that decides what is best; evaluations without a better one, 0: any number */
    bool prediction_is_classes; /* prediction is a distribution over classes: predict prints the arg max */
    bool prediction_is_yes;     /* each of its numbers is the probability of yes */
    Graph *train;               /* forward, gradients, updates, one `report` per report */
    Graph *eval;                /* forward without dropout; `report`s, `keep`s; one `output`: the prediction */
    Graph *measure;             /* a batch of the training data goes into the buffers that describe them; NULL: none */
    Graph *decode;              /* eval at one position of a sequence of tokens; NULL: the model generates no text */
    const char *no_decode;      /* why not; NULL: the data are no tokens */
    Graph *texts;               /* decode of several texts at a time, all at one position; NULL: there is none */
    Graph *prefill;             /* eval of a prompt: what its positions leave for decode; NULL: nothing */
    Graph *watch;        /* the forward pass of a step, which stores what print(x) shows; NULL: nothing is printed */
    const Field *tokens; /* of decode: the field */
    Graph *update;       /* gradients of all shards become new weights; NULL: train does that */
    int64_t context;     /* of decode: how many positions there are */
};

Module *module_new(Arena *arena, Diag *diag, const Operators *operators);
void module_doubt(Module *module, Doubt doubt);
/* The graphs that the module has, in the order train, eval, measure, decode, texts, prefill, update, watch; returns how many. */
enum { MAX_GRAPHS = 8 };
int module_graphs(const Module *module, Graph **graphs);
Type weight_type_in_files(const Weight *weight);
int64_t module_examples(const Module *module); /* of a step */
/* Numbers of a row of reports, of a step or an evaluated batch; and that of the root `report` with this index. */
int module_report_columns(const Module *module);
const Report *module_report(const Module *module, int index);
int64_t module_parameters(const Module *module); /* elements of all weights, buffers left out */
/* A zero-initialised state tensor "<weight>.<name>" of the weight's type; returns its row of module->states. */
int module_state(Module *module, int weight, const char *name);
/* The same of another type, such as a row of the weight's columns. */
int module_state_like(Module *module, int weight, const char *name, const Type *type);
/* The same under a name of its own: of all weights together, of which this is one. */
int module_state_named(Module *module, int weight, const char *name, const Type *type);
Graph *graph_new(Module *module, bool training);
int64_t graph_examples(const Graph *g); /* of a run */

/* ---- constructing nodes; each checks shapes and reports user errors at g's current place (graph_at) ---- */

/* Nodes made until the next call carry this span. Returns the previous one. */
Span graph_at(Graph *g, Span src);

/* The general constructor: infers the type with op->infer; on a shape error reports and returns NULL. A NULL input
 * gives NULL silently, so that one mistake is reported once. Identical pure nodes are shared (value numbering). */
Node *graph_node(Graph *g, const char *op, Attr attr, int inputs, Node *const *in);
Node *graph_name(Node *n, const char *name); /* names n unless it has a name; returns n */
/* n once more, of other operands of the same types, behind `after`; nameless. */
Node *graph_again(Graph *g, const Node *n, Node *const *in, Node *after);

/* What the node of another graph computes, computed in g: what it is made of is made there too. */
Node *graph_import(Graph *g, Node *n);

Attr attr_shape(const Type *shape); /* dims, rank, batched */

Node *op0(Graph *g, const char *op, Attr attr);
Node *op1(Graph *g, const char *op, Node *a);
Node *op2(Graph *g, const char *op, Node *a, Node *b); /* broadcasts maps: NumPy's rule on the user's axes */
Node *op3(Graph *g, const char *op, Node *a, Node *b, Node *c);

Node *graph_constant(Graph *g, double value);             /* f32 scalar */
Node *graph_mean_factor(Graph *g, double count);          /* 1 / count, which a sum of so many is multiplied by */
Node *graph_whole(Graph *g, int32_t value);               /* i32 scalar */
bool graph_constant_value(const Node *n, double *value);  /* n is a constant, perhaps expanded */
Node *graph_expand(Graph *g, Node *a, const Type *shape); /* broadcast to the shape; identity when equal */
/* The shape that both are broadcast to: NumPy's rule on the user's axes, with a batch where one has it; false: they do not fit. */
bool graph_common_shape(const Type *a, const Type *b, Type *common);
/* A value without a batch as that of each example. Reports a user error and returns NULL where no axis is left. */
Node *graph_of_each_example(Graph *g, Node *a);
/* Operands of an operator that meet: beside one with a batch, those without are the same for each example. False after a user
 * error. Maps do so by themselves. */
bool graph_share_batch(Graph *g, int count, Node **operands);
/* What an expansion repeats, in its shape without `axes`, all of which are new in it. */
Node *graph_repeated(Graph *g, const Node *expansion, unsigned axes);
Node *graph_reshape(Graph *g, Node *a, const Type *shape);
/* Reduced axes are removed; `_keep`: the result is expanded to a's shape again. */
Node *graph_reduce(Graph *g, const char *op, Node *a, unsigned axes);
Node *graph_reduce_keep(Graph *g, const char *op, Node *a, unsigned axes);
Node *graph_matmul(Graph *g, Node *a, Node *b, bool ta, bool tb);
Node *graph_transpose(Graph *g, Node *a, const int *permutation);
Node *graph_cast(Graph *g, Node *a, DType dtype);        /* identity when equal */
Node *graph_iota(Graph *g, const Type *shape, int axis); /* i32: the index along the axis */
Node *graph_weight(Graph *g, int index);
Node *graph_state(Graph *g, int index);
Node *graph_field(Graph *g, int index);
Node *graph_knob(Graph *g, int index);
/* Root: after the step, the weight or state has this value, and no longer one that it was assigned before. */
Node *graph_assign(Graph *g, Node *leaf, Node *value);
Node *graph_latest(const Graph *g, Node *leaf);        /* what the leaf was assigned, else itself */
Node *graph_report(Graph *g, int index, Node *scalar); /* root */
Node *graph_output(Graph *g, Node *value);             /* root */
int graph_keep(Graph *g, Node *value); /* root: a row of Module.kept, which it returns; one for each value */
/* The mean over the axes, which the result lacks; a single number is its own. */
Node *graph_mean(Graph *g, Node *a, unsigned axes);

/* ---- values of which an axis has the examples of the batch (examples.c) ---- */

/* Node.examples, by those of n's operands. False after a user error: the operator would part or mix them. */
bool graph_find_examples(Graph *g, Node *n);
/* It is made of other examples of the batch too. */
bool graph_needs_batch(const Graph *g, const Node *n);
/* Of what is summed, multiplied or compared over the axes: `neutral` in place of examples that fill the batch up. */
Node *graph_without_filler(Graph *g, Node *a, unsigned axes, double neutral);

/* The mean over the examples of this batch: sum of value * share. An unbatched scalar is returned as it is. */
Node *graph_batch_mean(Graph *g, Node *per_example);

/* What takes the node's place; NULL: it stays. */
typedef Node *Rewriting(Graph *g, Node *n, const void *context);

/* Replaces each node by what `rule` offers in its place, again and again, in one pass from the leaves to the roots: when a
 * node's turn comes, its inputs had theirs. `context` goes to the rule. Returns the number of replacements. */
int graph_rewrite(Graph *g, Rewriting *rule, const void *context);

/* Drops what no root needs, follows `replaced`, renumbers. */
void graph_compact(Graph *g);
/* Every invariant above, or an internal error naming the pass that broke it. */
void graph_verify(const Graph *g, const char *after);
void module_verify(const Module *module, const char *after); /* each of its graphs */
void graph_print(const Graph *g, Text *out);
const char *graph_kind(const Graph *g); /* "train", "eval" ...: the module's name for it */

#endif
