/* Words for writing formulas as nodes, and what the families of operators share. */
#ifndef MTC_COMPOSE_H
#define MTC_COMPOSE_H

#include "onnx/onnx.h"
#include "op/call.h"

static inline Node *add(Graph *g, Node *a, Node *b) {
    return op2(g, "add", a, b);
}

static inline Node *sub(Graph *g, Node *a, Node *b) {
    return op2(g, "sub", a, b);
}

static inline Node *mul(Graph *g, Node *a, Node *b) {
    return op2(g, "mul", a, b);
}

static inline Node *divide(Graph *g, Node *a, Node *b) {
    return op2(g, "div", a, b);
}

static inline Node *scale(Graph *g, Node *a, double factor) {
    return mul(g, a, graph_constant(g, factor));
}

static inline Node *plus(Graph *g, Node *a, double term) {
    return add(g, a, graph_constant(g, term));
}

static inline Node *select(Graph *g, Node *condition, Node *yes, Node *no) {
    return op3(g, "where", condition, yes, no);
}

/* `value` where the condition holds, else 0. */
static inline Node *masked(Graph *g, Node *condition, Node *value) {
    return select(g, condition, value, graph_constant(g, 0));
}

static inline Node *compare(Graph *g, const char *op, Node *a, double b) {
    return op2(g, op, a, graph_constant(g, b));
}

/* Graph axes of all of the user's axes / of the last one. */
unsigned user_axes(const Node *n);
int last_axis(const Node *n);

/* Heads of the functions of an OpDef. Not each needs all of its parameters. */
#define UNUSED __attribute__((unused))
#define INFER(name) static bool infer_##name(UNUSED Graph *g, Node *n)
#define GRAD(name) static void grad_##name(UNUSED Graph *g, UNUSED Node *n, UNUSED Node *dy, UNUSED Node **din)
#define RANGE(name, result)                                                                                            \
    static Range range_##name(UNUSED const Graph *g, const Node *n) {                                                  \
        return result;                                                                                                 \
    }
#define FOLD(name, result)                                                                                             \
    static double fold_##name(const double *in) {                                                                      \
        return result;                                                                                                 \
    }

#define TO_ONNX(name) static OnnxValue to_onnx_##name(UNUSED Onnx *o, UNUSED const Node *n)

/* Defines the operator of a function of one number, in the language `name(x)`; fold_name must precede. */
#define FUNCTION(name_, kind_, title_, grad_, flags_, c_, near_, onnx_, doc_)                                          \
    const OpDef op_##name_ = {                                                                                         \
        .name = #name_,                                                                                                \
        .cls = OP_MAP,                                                                                                 \
        .flags = OP_REAL | (flags_),                                                                                   \
        .arity = 1,                                                                                                    \
        .kind = kind_,                                                                                                 \
        .title = title_,                                                                                               \
        .doc = doc_,                                                                                                   \
        .example = "y = " #name_ "(x)",                                                                                \
        .infer = infer_real,                                                                                           \
        .grad = grad_,                                                                                                 \
        .c = c_,                                                                                                       \
        .prec = PREC_PRIMARY,                                                                                          \
        .near = near_,                                                                                                 \
        .fold = fold_##name_,                                                                                          \
        .onnx = onnx_,                                                                                                 \
        .signature = "x",                                                                                              \
    }

/* types.c: types of results */
bool infer_shape_attr(Graph *g, Node *n);                   /* f32 of attr.dims */
bool infer_as_input(Graph *g, Node *n);                     /* the type of input 0 */
DType contracted_dtype(DType operands);                     /* of sums of products: i8 adds up exactly, in i32 */
bool infer_real(Graph *g, Node *n);                         /* f32 inputs give f32 */
bool infer_number(Graph *g, Node *n);                       /* numbers of one type give a number of that type */
Range range_as_input(const Graph *g, const Node *n);        /* that of input 0 */
bool is_condition(Graph *g, const Node *n, const Node *in); /* or a user error */

/* types.c: for CallDef.arguments, the extents of the axes [first, end) of operand `of`, which is of that type, 'r' for the result:
 * "$r1 * $r2", of 64 bits where an int does not hold it. */
const char *call_extents(Arena *arena, char of, const Type *type, int first, int end);

/* window.c: the sum over the taps of windows of images, as the means of a pooling; without a name: it is another sum. */
OnnxValue onnx_pooled(Onnx *o, const Node *sum);

/* shard.c: the sum over the shards of the batch. */
Node *over_shards(Graph *g, Node *x);

/* view.c: of a view's guard, that the index has the relation to the number, too. */
void view_requires(Arena *arena, const Tree **guard, const Tree *index, const char *relation, int64_t number);
Attr attr_placed(const Type *shape, const int64_t *offset); /* of slice and pad */

/* reflect.c: what stands beyond the ends of what is padded. */
typedef enum PaddingMode { PAD_ZEROS, PAD_REFLECT } PaddingMode;
#define PADDING_MODE "mode: \"zeros\" or \"reflect\" = \"zeros\"" /* of a signature */
/* Whether a mirror shows so much of an axis of that size; else a user error. */
bool call_reflects(Call *call, int arg, int64_t padding, int64_t size);

/* Parts of one family that another uses. */
Node *build_stack(Graph *g, Node *const *parts, int count, int axis); /* view.c: one after the other */
Node *insert_axis(Graph *g, Node *x, int at);                         /* view.c: of size 1, as graph axis `at` */
Node *build_product(Graph *g, Node *a, Node *b, bool ta, bool tb);    /* contract.c: as `matmul`, of vectors too */
Node *build_shifted(Graph *g, Node *x, unsigned axes);                /* activation.c: x - max(x) */
/* activation.c: of a quotient that is a softmax along one axis, and that alone, the x - max(x) in it; NULL: it is none. */
const Node *softmax_shift(const Node *quotient);
int next_stream(const Graph *g); /* random.c: one that nobody draws from yet */
/* batch.c: whether each graph sees all examples of a step; else a user error: `what` "of a batch". */
bool call_sees_batch(Call *call, const char *what);
Node *build_arg_max(Graph *g, Node *x, int axis, const char *hint); /* reduce.c: i32 */

/* loss.c: the first two arguments; false after a user error. Numbers and their targets, both as f32 of the numbers' shape. */
bool read_pair(Call *call, Node **prediction, Node **target);
bool is_learned(const Graph *g, const Node *root); /* of weights that are trained */
/* Scores of classes and what they are compared with: labels, or a distribution of the scores' shape. */
bool read_scores(Call *call, Node **scores, Node **target);
Node *build_plain_cross_entropy(Call *call); /* of these two, for each example; NULL after a user error */
bool is_of_layer(const Node *n);             /* what a layer gives, which may be any number */
Node *mean_over_example(Graph *g, Node *x);  /* of its elements */
Node *build_for_classes(Graph *g, Node *label, const Type *shape); /* the label for each class, the last axis */

/* attention_step.c: `attend` at one position. */
Node *narrow_attend(Graph *g, const Node *n, int axis, Node *at, Node *const *in);
void leave_attend(Graph *g, const Node *step, Node *const *in);

/* reduce.c: of a function of (x, axis, ...), x as f32 and the axes that it folds, perhaps none of a single number. */
typedef struct Folding {
    Node *x;
    unsigned axes;
} Folding;
#define AXES_SIGNATURE "x, axis: axes = none, keep: bool = false"
bool call_folding(Call *call, Folding *folding); /* false after a user error */
/* What is left of x; where the argument `keep` is true, the axes stay, with size 1. */
Node *folding_value(Call *call, const Folding *folding, Node *folded, int keep);

/* leaf.c: the sizes in a list of numbers; false after a user error. */
bool read_shape(Call *call, int arg, Type *shape);

/* init.c: the initialiser that the argument asks for in a layer with these fans; false after a user error. */
bool read_init(Call *call, int arg, int64_t fan_in, int64_t fan_out, Init *init);
/* The same of filters [out, taps ..., channels], which may pass channels on. */
bool read_filters_init(Call *call, int arg, int64_t fan_in, int64_t fan_out, Init *init);

/* rewrites.c: OpDef.simplify of the operators */
Node *simplify_add(Graph *g, Node *n);
Node *simplify_sub(Graph *g, Node *n);
Node *simplify_mul(Graph *g, Node *n);
Node *simplify_div(Graph *g, Node *n);
Node *simplify_neg(Graph *g, Node *n);
Node *simplify_pow(Graph *g, Node *n);
Node *simplify_cast(Graph *g, Node *n);
Node *simplify_compare(Graph *g, Node *n);
Node *simplify_where(Graph *g, Node *n);
Node *simplify_stop_gradient(Graph *g, Node *n);
Node *simplify_reshape(Graph *g, Node *n);
Node *simplify_expand(Graph *g, Node *n);
Node *simplify_transpose(Graph *g, Node *n);
Node *simplify_slice(Graph *g, Node *n);
Node *simplify_pad(Graph *g, Node *n);
Node *simplify_sum(Graph *g, Node *n);
Node *simplify_reduce(Graph *g, Node *n);
Node *simplify_matmul(Graph *g, Node *n);

#endif
