/* The network in ONNX's operators: what an OpDef says of its node (`OpDef.onnx`, `OpDef.to_onnx`) is written with these.
 *
 * A value of ONNX has a name. It may lie otherwise than the node that it stands for: its axes in another order, as images of ONNX have
 * their channels first; or with extent 1, or not at all, along axes where it repeats, since ONNX broadcasts as NumPy does. So
 * neither a transpose nor an expansion is a node of the file until somebody needs the elements as they lie in the graph. */
#ifndef MTC_ONNX_H
#define MTC_ONNX_H

#include "ir/op.h"

enum { ONNX_OPSET = 17, ONNX_IR = 8 }; /* versions of the operators, and of the format, that files are written in */

struct OnnxValue {
    const char *name;    /* NULL: it could not be said, and why has been noted */
    int lacks;           /* so many leading axes of the node are not there */
    unsigned ones;       /* bit k: along axis k of the node it repeats, with extent 1 or lacking */
    int order[MAX_RANK]; /* axis k of the value is axis order[k] of the node; where it lacks axes, they are in order */
};

/* An attribute of a node. */
typedef struct OnnxAttr {
    const char *name;
    enum { ONNX_INT, ONNX_REAL, ONNX_TEXT, ONNX_INTS, ONNX_TEXTS } kind;
    int64_t number;
    double real;
    const char *text;
    const int64_t *numbers;
    const char *const *texts;
    int count; /* of numbers, texts */
} OnnxAttr;
#define ONNX_AXIS(axis_) ((OnnxAttr){.name = "axis", .kind = ONNX_INT, .number = (axis_)})
#define ONNX_NUMBER(name_, number_) ((OnnxAttr){.name = (name_), .kind = ONNX_INT, .number = (number_)})
#define ONNX_NUMBERS(name_, count_, numbers_)                                                                          \
    ((OnnxAttr){.name = (name_), .kind = ONNX_INTS, .count = (count_), .numbers = (numbers_)})

/* ---- nodes and constants: each returns the name of its value; equal ones are shared (build.c) ---- */

const char *onnx_node(Onnx *o, const char *op, int inputs, const char *const *in, int attrs, const OnnxAttr *attr);
const char *onnx1(Onnx *o, const char *op, const char *a);
const char *onnx2(Onnx *o, const char *op, const char *a, const char *b);
const char *onnx3(Onnx *o, const char *op, const char *a, const char *b, const char *c);
const char *onnx_cast(Onnx *o, const char *x, DType dtype);
const char *onnx_index(Onnx *o, const char *x);                                        /* as i64 */
const char *onnx_real(Onnx *o, double number);                                         /* f32, a single number */
const char *onnx_number(Onnx *o, DType dtype, double number);                          /* of that type */
const char *onnx_numbers(Onnx *o, int count, const int64_t *numbers);                  /* i64, of one axis */
const char *onnx_table(Onnx *o, int rank, const int64_t *dim, const int64_t *numbers); /* the same, of any shape */
const char *onnx_count(Onnx *o, int64_t count);                                        /* i32: 0, 1, ... count - 1 */

/* ---- shapes; the batch is as large as it is when the model runs ---- */

const char *onnx_shape(Onnx *o, const Type *type); /* i64, as operators take it that make a value of that shape */
const char *onnx_reshape(Onnx *o, const char *x, const Type *type);
const char *onnx_transpose(Onnx *o, const char *x, int rank, const int *order);
/* Elements [from, to) along an axis; to INT64_MAX: up to its end. */
const char *onnx_slice(Onnx *o, const char *x, int axis, int64_t from, int64_t to);
const char *onnx_concat(Onnx *o, int count, const char *const *parts, int axis);

/* ---- operands and results (order.c) ---- */

const char *onnx_operand(Onnx *o, const Node *n, int k);                      /* as it lies in the graph */
const char *onnx_operand_in(Onnx *o, const Node *n, int k, const int *order); /* its axes in that order */
OnnxValue onnx_operand_any(Onnx *o, const Node *n, int k);                    /* whole, its axes in some order */
OnnxValue onnx_operand_thin(Onnx *o, const Node *n, int k);                   /* however it is */
OnnxValue onnx_ordered(Onnx *o, OnnxValue value, const Type *type,
                       const int *order);        /* whole, its axes in that order */
int onnx_axis(const OnnxValue *value, int axis); /* where the node's axis is among those of a whole value */
OnnxValue onnx_value(const char *name);          /* as it lies in the graph */
OnnxValue onnx_value_in(const char *name, int rank, const int *order); /* its axes in that order */
OnnxValue onnx_like(OnnxValue value, const char *name);                /* of the axes of another */

/* A map by its template, of operands that broadcast: "Sub(Exp($0), 1)". */
OnnxValue onnx_map(Onnx *o, const Node *n, const char *template_);

/* A larger tensor that the operand lies in, from attr.offset on: "constant", zeros around it; "reflect" (stack.c). */
OnnxValue onnx_padded(Onnx *o, const Node *n, const char *mode);
/* A sum of paddings that lie one after the other, as one Concat; without a name: the sum is none of these (stack.c). */
OnnxValue onnx_stack(Onnx *o, const Node *sum);

/* What is not said, and why: "the prediction draws random numbers". The first one is kept. */
OnnxValue onnx_refuse(Onnx *o, const Node *n, const char *why);
Arena *onnx_arena(const Onnx *o);

#endif
