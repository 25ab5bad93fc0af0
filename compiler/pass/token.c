/* Where a weight is one of integers, to decode a token is to multiply it by a row of them. On a GPU a sum has a row of threads for each
 * output, which read the weight as it lies; a product's tiles would be filler but for one row:
 *
 *     sum over k of q[0, k] * weight[n, k]     ->     sum over k of to_float(q)[0, k] * to_float(weight)[n, k]
 *
 * What is added up is whole, and floats hold it exactly up to 2^24; of several rows at a time it is added up as integers.
 *
 * All rows of a token have the same axes then, so that kernels join: quantization has put maps between a product and the reshapes
 * around it, and these change places.
 *
 *     to_i8(reshape(x) * scale)     ->     reshape(to_i8(x * scale))              x [1, 1, K], the product's row [1, K]
 *     reshape(sum * scale)          ->     sum * scale                            with the axes of the result */
#include "pass/token.h"

#include "ir/op.h"
#include "pass/decode.h"

/* ---- axes of extent 1 in front ---- */

/* How many more of them `to` has, where it is the same otherwise; 0: it is not. */
static int more_axes(const Type *from, const Type *to) {
    const int more = to->rank - from->rank;
    for (int axis = 0; more > 0 && axis < to->rank; axis++)
        if (to->dim[axis] != (axis < more ? 1 : from->dim[axis - more]))
            return 0;
    return more > 0 ? more : 0;
}

static Type with_more(const Type *type, int more) {
    Type wide = *type;
    wide.rank += more;
    for (int axis = 0; axis < wide.rank; axis++)
        wide.dim[axis] = axis < more ? 1 : type->dim[axis - more];
    return wide;
}

static Node *expanded(Graph *g, const Node *n, const Type *type, int more) {
    Attr attr = attr_shape(type);
    Node *in = n->in[0];
    attr.axes = n->attr.axes << more | ((1u << more) - 1);
    return graph_node(g, n->op->name, attr, 1, &in);
}

/* The same value with so many more axes: of maps, the map of operands that have them; of sums, that of such terms. */
static Node *with_axes(Graph *g, Node *n, int more) {
    const Type type = with_more(&n->type, more);
    Node *in[MAX_INPUTS];
    if (n->op->flags & OP_CONTIGUOUS && type_same_shape(&n->in[0]->type, &type))
        return n->in[0];
    if (n->op->flags & OP_REPEATS)
        return expanded(g, n, &type, more);
    if (n->op->cls == OP_REDUCE) {
        const Type terms = with_more(&n->in[0]->type, more);
        return graph_reduce(g, n->op->name, graph_reshape(g, n->in[0], &terms), n->attr.axes << more);
    }
    if (n->op->cls != OP_MAP)
        return graph_reshape(g, n, &type);
    for (int k = 0; k < n->inputs; k++)
        in[k] = with_axes(g, n->in[k], more);
    return graph_node(g, n->op->name, n->attr, n->inputs, in);
}

/* A reshape between maps: behind those that follow it, where it takes axes away, and gone where it gives some. */
static Node *exchanged(Graph *g, Node *n, const void *context) {
    (void)context;
    const Node *first = n->inputs ? n->in[0] : NULL;
    if (n->op->flags & OP_CONTIGUOUS && first->op->cls == OP_MAP && more_axes(&first->type, &n->type))
        return with_axes(g, n->in[0], more_axes(&first->type, &n->type));
    for (int k = 0; n->op->cls == OP_MAP && k < n->inputs; k++) {
        const Node *in = n->in[k];
        const int more = in->op->flags & OP_CONTIGUOUS ? more_axes(&in->type, &in->in[0]->type) : 0;
        if (more)
            return graph_reshape(g, with_axes(g, n, more), &n->type);
    }
    return NULL;
}

/* ---- products ---- */

static Node *as_sums(Graph *g, Node *n, const void *context) {
    (void)context;
    bool product = n->op->cls == OP_CONTRACT && n->in[0]->type.dtype == DT_I8 && n->type.rank == 2;
    if (!product || n->type.dim[0] != 1 || n->attr.ta)
        return NULL;
    Node *row = op1(g, "to_float", n->in[0]), *matrix = op1(g, "to_float", n->in[1]);
    return graph_cast(g, row_times_matrix(g, row, matrix, n->attr.tb), DT_I32);
}

void multiply_rows(Graph *g, const Machine *machine) {
    if (!g || !machine->blocks || !graph_rewrite(g, as_sums, NULL))
        return;
    graph_compact(g);
    graph_rewrite(g, exchanged, NULL);
    graph_compact(g);
}
