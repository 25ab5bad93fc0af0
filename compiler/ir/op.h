/* The definition of an operator: everything that the compiler knows about it, in one block.
 *
 * Each is a `const OpDef op_NAME` in op/FAMILY.c and one row of op/op_table.def. Passes ask for the class and the
 * flags, never for a name. */
#ifndef MTC_OP_H
#define MTC_OP_H

#include "ir/graph.h"
#include "ir/tree.h"

typedef enum OpClass {
    OP_LEAF,     /* no inputs: a buffer (weight, state, field), a run-time scalar (knob, step), a constant */
    OP_INDEX,    /* no inputs: a value computed from the element's own index (iota, share, uniform) */
    OP_MAP,      /* element i of the result from element i of each operand */
    OP_VIEW,     /* element i of the result is one element of the operand (or a fill value): an index transformation */
    OP_REDUCE,   /* folds axes `attr.axes` with an associative combination, in a fixed order */
    OP_CONTRACT, /* batched matrix product */
    OP_CALL,     /* whole buffers from whole buffers, by a kernel of its own in kernels_lib (attention) */
    OP_ROOT,     /* an effect: assign, report, output, keep */
    OP_LIBRARY   /* a function of the language only: builds nodes of the other classes (linear, cross_entropy) */
} OpClass;

enum {
    OP_COMMUTES = 1 << 0,
    OP_CHEAP = 1 << 1,      /* map: recomputing it costs less than a load */
    OP_BUFFER = 1 << 2,     /* leaf that lives in memory */
    OP_SCALAR = 1 << 3,     /* leaf that is one run-time number */
    OP_NO_GRAD = 1 << 4,    /* gradient is zero by definition (comparisons, argmax, iota, stop_gradient) */
    OP_CONTIGUOUS = 1 << 5, /* view: element l of the result, in memory order, is element l of the operand (reshape) */
    OP_REPEATS = 1 << 6,    /* view: the operand again and again along attr.axes (expand) */
    OP_REAL = 1 << 7,       /* map, reduce: the constructors convert its operands to f32 */
    OP_LOGIC = 1 << 8,      /* map: the constructors convert no operand (conditions, casts) */
    OP_RISES = 1 << 9,      /* library: a metric that is better when it is higher */
    OP_WIDENS = 1 << 10,    /* map: the operand as a larger element type, exactly; memory holds the operand */
    OP_DRAWS = 1 << 11,     /* index, view: by random numbers of stream attr.index */
    OP_PART = 1 << 12,      /* call: one more result of the call in[0], stored by the same kernel */
    OP_LOOKUP = 1 << 13,    /* view of two operands: the elements of the second are indices of the first's axis 0 */
    OP_REORDERS =
        1 << 14, /* view: the operand's elements in another order along attr.axes, each axis by itself (flip) */
    OP_GATHERS_BATCH = 1 << 15, /* view: axis 0 of the result has the examples of the batch (batch) */
    OP_SHOWS = 1 << 16,         /* library: its value is its argument, and is reported under that one's name (print) */
    OP_SELECTS = 1 << 17, /* reduce: the result is one of the elements, and its gradient goes to those that equal it */
    OP_MIRRORS = 1 << 18, /* view with attr.offset: beyond an end is what a mirror there shows (reflect) */
    OP_WHOLE =
        1 << 19, /* contract: i8 gives sums of i32; operand 1 has the outputs along axis 0, or says otherwise in tb */
    OP_FEEDS_TENSOR_CORES = 1 << 20, /* map: its floats are rounded as those of tf32 are */
    OP_MULTIPLIES = 1 << 21,         /* map: the product of its two operands */
    OP_OWN_ON_GPU = 1 << 22          /* map: CUDA says `near` whatever the precision */
};

/* Which fields of Attr an operator reads; the others are zero. */
enum {
    ATTR_VALUE = 1 << 0,
    ATTR_INDEX = 1 << 1,
    ATTR_AXES = 1 << 2,
    ATTR_DIMS = 1 << 3,  /* dims, rank, batched: the result's shape */
    ATTR_ORDER = 1 << 4, /* dims, rank: the operand's axes in the result's order */
    ATTR_OFFSET = 1 << 5,
    ATTR_TRANSPOSED = 1 << 6, /* ta, tb */
    ATTR_DTYPE = 1 << 7,
    ATTR_SWEEP = 1 << 8,
    ATTR_HEADS = 1 << 9
};

/* What a function of the language is for. The Python package makes classes of activations, augmentations, mixtures, losses, optimizers and
 * schedules. Data are an `image` where the signature says so, else of any shape. */
typedef enum OpKind {
    KIND_FUNCTION,
    KIND_ACTIVATION,   /* of x and numbers; the result has x's shape */
    KIND_AUGMENTATION, /* of data and numbers; changes them while training */
    KIND_MIXTURE, /* of data, their target and numbers: the data mixed, the other's target, and the share of the example's own */
    KIND_LOSS,   /* of the prediction, the target and numbers */
    KIND_METRIC, /* the same, reported beside the loss; its title is scikit-learn's name */
    KIND_OPTIMIZER,
    KIND_SCHEDULE, /* of the learning rate */
    KIND_INITIALISER
} OpKind;

/* Which table of the module attr.index is a row of. */
typedef enum Table {
    TABLE_NONE,
    TABLE_WEIGHT,
    TABLE_STATE,
    TABLE_FIELD,
    TABLE_KNOB,
    TABLE_REPORT,
    TABLE_KEPT,
    TABLE_PRINTED,
    TABLE_LAST /* of no rows: what is made once for many runs */
} Table;

/* Index expressions of a view: from the index of an element of the result to that of the operand, an expression per axis. `guard`, when it is set, is a condition under which the operand is read at all (else the result
 * is attr.value: 0, or what the operator fills with). Of a lookup, the result's index has one entry more, behind its axes: the
 * value of operand 1 there. */
typedef struct IndexMap {
    const Tree *index[MAX_RANK];
    const Tree *guard;
} IndexMap;

/* How an OP_CALL is computed: functions of one header of kernels_lib for each target, cuda/HEADER.cuh and cpu/HEADER.h. In
 * CUDA C++ `name<Shape>(operands..., results..., tile, shared)`, Shape being a type named after the kernel, with
 * constexpr functions NAME_tiles<Shape>() and NAME_shared<Shape>() beside it; in C `name(&shape, operands..., results...)`,
 * called by all threads of the team. Behind the results stands attr.value, where the operator has ATTR_VALUE. */
typedef struct CallDef {
    const char *header, *about; /* "attention", and what its functions compute */
    unsigned narrow;            /* bit k: with bf16, operand k is stored so; the result as infer says */
    /* Bit k: operand k is read ahead of the gate. The function waits itself, for the others. NULL: it waits for nobody. */
    unsigned (*ahead)(const Node *n);
    bool over_shards; /* before its phase, the runtime adds up its operand over all shards of the batch */
    const char *part; /* operator of its further result; a null pointer where nobody reads that; NULL: none */
    /* Shape: a type of the name, "Attention", of arguments such as ".batch = $00, .length = $01, .size = 4": members of a struct
     * in C; in CUDA C++ template arguments without names, behind the element type of operand `number`, with their meaning in a
     * comment. $ka is the extent of axis a of operand k, $ra of the result. */
    const char *shape, *meaning;
    int number;
    const char *(*arguments)(Arena *arena, const Node *n);
    int64_t (*tiles)(const Node *n); /* about as many as NAME_tiles<Shape>() */
    int (*blocks)(const Node *n); /* that work on tiles together, where a cluster has so many; NULL: each by itself */
    double (*flops)(const Node *n);
    bool (*on_tensor_cores)(const Node *n); /* where its numbers are bf16, tensor cores do its products; NULL: never */
    int (*least_shared)(const Node *n);     /* bytes of shared memory that a block cannot do without; NULL: few */
    /* Lines of a comment: $k is the name of operand k, $r the result's, $v the value. */
    const char *(*equation)(Arena *arena, const Node *n);
} CallDef;

/* The network in ONNX's operators, and a value of it (onnx/onnx.h). */
typedef struct Onnx Onnx;
typedef struct OnnxValue OnnxValue;

/* A call in the language (op/call.h), and what it gives (op/value.h). */
typedef struct Call Call;
typedef struct Value Value;

struct OpDef {
    const char *name;
    OpClass cls;
    unsigned flags;
    int arity;       /* inputs of the graph node; 0 for leaves and libraries */
    unsigned attrs;  /* ATTR_... */
    Table table;     /* of attr.index */
    const char *doc; /* one or two sentences, with the equation; docs/operators.md is made of these */
    OpKind kind;
    const char *title;   /* what it is called as a class: "ReLU"; NULL: its words with capitals, "LeakyRelu" */
    const char *example; /* a line of .mt that uses it, compiled by the tests; NULL when not callable */

    /* Graph. */
    bool (*infer)(Graph *g, Node *n); /* sets n->type; reports a user error at n->src and returns false */
    /* What the elements of n can be, by the ranges of its operands, whatever its type; n->type may not be set. NULL: of a
     * view, what the operand's can be; of others, what the type holds. */
    Range (*range)(const Graph *g, const Node *n);
    /* Gradients of the inputs, given the gradient dy of n: din[k] = ... or left NULL. */
    void (*grad)(Graph *g, Node *n, Node *dy, Node **din);

    /* What may stand in place of n: an equal, simpler node, or NULL. Runs after differentiation, to a fixpoint. */
    Node *(*simplify)(Graph *g, Node *n);

    /* Emission, the same for C and CUDA C++ (type-generic names: exp, fmax ...). Templates:
     *   $0 $1 $2  operands         $i0 $i1 ..  the element's index    $l  its position in memory order
     *   $v        attr.value       $n          attr.index             $t  the result's element type
     * Beside the C library they call only what the math headers of kernels_lib define for both targets: relu, sigmoid,
     * softplus, sign; to_bf16(x), to_float(x); share(batch, row), uniform(batch, stream, position),
     * knob(batch, row), step(batch), every(batch, n), steps_per_epoch(batch), total_steps(batch). `near` and `rounds` are for
     * CUDA alone: near_exp, round_bf16.
     * An infix template groups to the left: operand 1 of equal strength is parenthesised, operand 0 is not. */
    const char *c;        /* MAP, INDEX, scalar LEAF: "$0 + $1", "exp($0)" */
    int prec;             /* binding strength of `c` */
    const char *reads_if; /* MAP of one operand: reads it if this holds, or is 0: "follows_a_shard(batch)"; or NULL */
    const char *near;     /* MAP: what CUDA says for it where products are rounded, in fewer instructions; NULL: `c` */
    const char *rounds;   /* MAP to a narrower type: that number in the operand's type, "round_bf16($0)"; else NULL */
    const char *combine;  /* REDUCE: combination of $0 and $1: "$0 + $1" */
    const char *identity; /* REDUCE: its neutral element, "0" or "-INFINITY" */
    void (*view)(Arena *arena, const Node *n, const Tree *const *index, IndexMap *map); /* VIEW */
    const CallDef *call;                                                                /* CALL */

    /* CALL, INDEX: element `at`, an i32 scalar, of n along the axis, in a graph of one example (pass/decode.c); `in` are
     * n's operands, narrowed like it. NULL, or NULL returned: it needs other elements too. */
    Node *(*narrow)(Graph *g, const Node *n, int axis, Node *at, Node *const *in);

    /* CALL: where `narrow` makes `step` of it, which looks at what earlier positions left, what all of them leave at once: `assign`s in a graph
     * of one example, of operands for all its positions. NULL: nothing. */
    void (*leave)(Graph *g, const Node *step, Node *const *in);

    /* Evaluation at compile time: the value of a map on constants (constant folding); NULL: never folded. */
    double (*fold)(const double *in);

    /* ONNX: what the node is in its operators. A template says it of a map, whose operands broadcast: "Sub(Exp($0), 1)", where words are
     * operators of ONNX and numbers of the last operand's type. Else a function does, for which `onnx` may hold an operator's name; a
     * value without a name is what it could not say (onnx_refuse). Leaves with a table, expansions and transposes need neither. */
    const char *onnx;
    OnnxValue (*to_onnx)(Onnx *o, const Node *n);

    /* Language. */
    const char *signature;      /* "x, out: size, bias: bool = true, init = none"; NULL: not callable */
    Value (*build)(Call *call); /* NULL with a signature: each parameter is a tensor, the result is the node */
};

bool op_adds(const OpDef *op); /* REDUCE: it is a sum */

/* The operators that a module is made with: ir/ knows of none but these. */
struct Operators {
    const OpDef *const *at;
    int count;
};
const OpDef *operators_find(const Operators *operators, const char *name); /* NULL when there is none */

#endif
