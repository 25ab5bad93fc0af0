/* Lookups: rows of a table, by numbers that say which.
 *
 *     y[i.., c..] = table[index[i..], c..]
 *     d_table[v, c..] = sum over i.. with index[i..] = v of dy[i.., c..]
 *
 * The lookup is a view: whoever reads y reads the table. Its gradient is a kernel of its own, which adds up the rows of dy for
 * each row of the table in the order of the indices, and writes 0 where no index says the row.
 *
 * A table of each example has few rows: each of them is compared with each index, and sums choose. So it is with rows that are added
 * to where their indices say (scatter_add), which is the gradient of that. */
#include "op/compose.h"

#include "kernels_lib/shared.h"

/* ---- which rows an index can say ---- */

/* What the index is a view of. */
static const Node *source(const Node *index) {
    while (index->op->cls == OP_VIEW && !(index->op->flags & OP_LOOKUP))
        index = index->in[0];
    return index;
}

/* The field whose classes the index says; NULL: it says something else. */
static const Field *class_field(const Module *module, const Node *index) {
    const Node *from = source(index);
    const Field *field = from->op->table == TABLE_FIELD ? &module->fields.at[from->attr.index] : NULL;
    return field && field->kind == FIELD_CLASS ? field : NULL;
}

/* It says rows of the table only: classes of the data, which are checked when they are read, or 0, 1, 2 ... */
static bool is_within(const Module *module, const Node *index, int64_t rows) {
    const Node *from = source(index);
    const Field *field = class_field(module, index);
    bool counts = from->op->cls == OP_INDEX && from->type.dtype == DT_I32 && from->type.dim[0] <= rows;
    return counts || (field && field->classes <= rows);
}

INFER(clamped) {
    n->type = n->in[0]->type;
    return n->type.dtype == DT_I32 && n->attr.index > 0;
}

RANGE(clamped, ((Range){0, n->attr.index - 1}))

/* ---- the view ---- */

INFER(gather) {
    const Type *table = &n->in[0]->type, *index = &n->in[1]->type;
    n->type = *index;
    n->type.dtype = table->dtype;
    for (int k = 1; k < table->rank; k++)
        n->type.dim[n->type.rank++] = table->dim[k];
    return table->rank > 0 && !table->batched && index->dtype == DT_I32;
}

static void view_gather(UNUSED Arena *arena, const Node *n, const Tree *const *index, IndexMap *map) {
    int columns = n->in[1]->type.rank; /* the axis of the result where they begin */
    map->index[0] = index[n->type.rank];
    for (int k = 1; k < n->in[0]->type.rank; k++)
        map->index[k] = index[columns + k - 1];
}

GRAD(gather) {
    din[0] = graph_node(g, "gather_grad", attr_shape(&n->in[0]->type), 2, (Node *[]){n->in[1], dy});
}

/* ---- its gradient ---- */

INFER(gather_grad) {
    const Type *index = &n->in[0]->type, *dy = &n->in[1]->type;
    bool fits = index->dtype == DT_I32 && dy->rank == index->rank + n->attr.rank - 1;
    n->type = type_make(DT_F32, false, n->attr.rank, n->attr.dims);
    for (int k = 0; fits && k < dy->rank; k++)
        fits = dy->dim[k] == (k < index->rank ? index->dim[k] : n->attr.dims[k - index->rank + 1]);
    return fits && dtype_is_real(dy->dtype);
}

static const char *gather_grad_arguments(Arena *arena, const Node *n) {
    return arena_printf(arena, ".count = %s, .rows = $r0, .width = %s",
                        call_extents(arena, '0', &n->in[0]->type, 0, n->in[0]->type.rank),
                        call_extents(arena, 'r', &n->type, 1, n->type.rank));
}

static int64_t gather_grad_tiles(const Node *n) {
    int64_t rows = n->type.dim[0], width = type_extent(&n->type, 1, n->type.rank);
    int64_t packs = width % 4 ? width : width / 4, lanes = gather_lanes(rows, packs);
    int64_t across = (packs + lanes - 1) / lanes;
    return across * gather_slices(rows, across);
}

static double gather_grad_flops(const Node *n) {
    return (double)type_elements(&n->in[1]->type);
}

/* Its indices. The launch after begins when all have seen the gate: a short list is made while that comes up, ahead of the gate it is in its way. */
static unsigned gather_grad_ahead(const Node *n) {
    return type_elements(&n->in[0]->type) >= GATHER_BATCH ? 1u << 0 : 0;
}

static const char *gather_grad_equation(UNUSED Arena *arena, UNUSED const Node *n) {
    return "$r[i] = sum over k with $0[k] = i of $1[k]";
}

static const CallDef gather_grad_call = {
    .header = "gather",
    .about = "the gradient of a table that was looked up",
    .narrow = 1u << 1,
    .ahead = gather_grad_ahead,
    .shape = "GatherGrad",
    .meaning = "indices, rows of the table, numbers in a row",
    .number = 1,
    .arguments = gather_grad_arguments,
    .tiles = gather_grad_tiles,
    .flops = gather_grad_flops,
    .equation = gather_grad_equation,
};

/* ---- in the language ---- */

/* Every class of the field must be a row of a table with `rows`, the argument `arg` of the call. */
static bool has_all_classes(Call *call, int arg, int64_t rows, const Node *index) {
    const Field *field = class_field(call->module, index);
    if (!field || field->classes <= rows)
        return true;
    call_error(call, arg, "a table of %lld rows, but '%s' is one of %d classes", (long long)rows, field->name,
               field->classes);
    diag_note(call->module->diag, field->src, "'%s' is declared here", field->name);
    return false;
}

/* Of positions 0, 1, ... as iota(count) gives them, too. */
static bool has_all_positions(Call *call, int arg, int64_t rows, const Node *index) {
    while (index->op->flags & OP_CONTIGUOUS)
        index = index->in[0];
    if (index->op->cls != OP_INDEX || index->type.dim[0] <= rows)
        return true;
    call_error(call, arg, "positions up to %lld, but the table has %lld rows", (long long)index->type.dim[0] - 1,
               (long long)rows);
    return false;
}

/* Arithmetic on whole numbers that is f32 because it may pass the 32 bits of an i32. */
static bool passes_i32(const Node *n) {
    double constant;
    bool passes = n->op->cls == OP_MAP && n->op->range && n->type.dtype == DT_F32;
    for (int k = 0; passes && k < n->inputs; k++) {
        const Node *in = n->in[k];
        while (in->op->flags & OP_REPEATS)
            in = in->in[0];
        passes = graph_constant_value(in, &constant) ||
                 (in->inputs && in->op->attrs & ATTR_DTYPE && dtype_is_whole(in->in[0]->type.dtype));
    }
    return passes;
}

/* Whole numbers; NULL after a user error. */
static Node *read_index(Call *call, int arg) {
    Node *index = call_tensor(call, arg);
    if (!index || index->type.dtype == DT_I32)
        return index;
    if (index->type.dtype == DT_U8)
        return graph_cast(call->g, index, DT_I32);
    call_error(call, arg, "an index is a whole number: a class of the data, iota or argmax; found %s",
               type_user_text(call->g->arena, &index->type));
    if (passes_i32(index))
        diag_note(call->module->diag, index->src,
                  "this may pass 32 bits, so it is computed in f32; classes have a range, an i32 may be any number");
    return NULL;
}

/* An index that says rows only. */
static Node *within(Graph *g, Node *index, int64_t rows) {
    bool sure = is_within(g->module, index, rows);
    return sure ? index : graph_node(g, "clamped", (Attr){.index = (int)rows}, 1, &index);
}

static Node *gather(Graph *g, Node *table, Node *index) {
    return graph_node(g, "gather", (Attr){0}, 2, (Node *[]){table, within(g, index, table->type.dim[0])});
}

/* ---- by comparison ---- */

/* x with `count` axes of size 1 at `at`, in the shape of `type`. */
static Node *spread(Graph *g, Node *x, int at, int count, const Type *type) {
    for (int k = 0; k < count; k++)
        x = insert_axis(g, x, at);
    return graph_expand(g, x, type);
}

/* Whole numbers that f32 counts exactly are whole again. */
static Node *whole_again(Graph *g, Node *sum, const Node *of) {
    enum { EXACT = 1 << 24 };
    bool exact = dtype_is_whole(of->type.dtype) && range_within(of->range, (Range){-EXACT, EXACT});
    return exact ? graph_cast(g, sum, DT_I32) : sum;
}

/* y[i.., c..] = sum over v with index[i..] = v of table[v, c..], in each example. */
static Node *gather_of_each(Graph *g, Node *table, Node *index) {
    int64_t rows = table->type.dim[1];
    index = graph_of_each_example(g, within(g, index, rows));
    int at = index->type.rank,
        columns = table->type.rank - 1; /* of the rows in all pairs; and how many axes there are from there */
    Type pairs = {.dtype = DT_F32, .batched = true, .rank = at + columns};
    memcpy(pairs.dim, index->type.dim, (size_t)at * sizeof *pairs.dim);
    memcpy(pairs.dim + at, table->type.dim + 1, (size_t)columns * sizeof *pairs.dim);
    Node *here = op2(g, "eq", spread(g, index, at, columns, &pairs), graph_iota(g, &pairs, at));
    Node *numbers = spread(g, graph_cast(g, table, DT_F32), 1, at - 1, &pairs);
    return whole_again(g, graph_reduce(g, "sum", masked(g, here, numbers), 1u << at), table);
}

/* values[i.., c..] belong to index[i..]. */
static bool belong(const Type *values, const Type *index) {
    bool fit = values->rank >= index->rank;
    for (int k = 0; fit && k < index->rank; k++)
        fit = values->dim[k] == index->dim[k];
    return fit;
}

/* y[v, c..] = sum over i.. with index[i..] = v of values[i.., c..] */
static Node *scatter_add(Graph *g, Node *index, Node *values, int64_t rows) {
    int first = index->type.batched, indices = index->type.rank - first;
    Type pairs = values->type;
    memmove(pairs.dim + first + 1, pairs.dim + first, (size_t)(pairs.rank - first) * sizeof *pairs.dim);
    pairs.dim[first] = rows;
    pairs.rank++;
    Node *said = insert_axis(g, index, first);
    Node *here = op2(g, "eq", spread(g, said, said->type.rank, pairs.rank - said->type.rank, &pairs),
                     graph_iota(g, &pairs, first));
    unsigned axes = ((1u << indices) - 1) << (first + 1);
    return graph_reduce(g, "sum", masked(g, here, spread(g, values, first, 1, &pairs)), axes);
}

static Value build_scatter_add(Call *call) {
    Graph *g = call->g;
    Node *index = read_index(call, 0), *values = graph_cast(g, call_tensor(call, 1), DT_F32);
    int64_t rows = call_size(call, 2);
    if (!index || !values || rows < 0 || !has_all_classes(call, 2, rows, index) ||
        !has_all_positions(call, 0, rows, index))
        return value_tensor(NULL);
    Node *operands[] = {within(g, index, rows), values};
    if (!graph_share_batch(g, 2, operands))
        return value_tensor(NULL);
    if (!belong(&operands[1]->type, &operands[0]->type))
        call_error(call, 1, "the values are a number or a row for each index %s, not %s",
                   type_user_text(g->arena, &index->type), type_user_text(g->arena, &values->type));
    else if (operands[1]->type.rank == MAX_RANK)
        call_error(call, 1, "%s has no room for one more axis", type_user_text(g->arena, &values->type));
    else
        return value_tensor(scatter_add(g, operands[0], operands[1], rows));
    return value_tensor(NULL);
}

static Value build_gather(Call *call) {
    Arena *arena = call->g->arena;
    Node *table = call_tensor(call, 0), *index = read_index(call, 1);
    if (!table || !index)
        return value_tensor(NULL);
    int first = table->type.batched, pairs = index->type.rank + (first && !index->type.batched) + table->type.rank - 1;
    if (table->type.rank == first) {
        call_error(call, 0, "a table has rows: at least one axis; found one number");
    } else if (pairs > MAX_RANK) {
        call_error(call, 1, "%s rows of %s have more than %d axes", type_user_text(arena, &index->type),
                   type_user_text(arena, &table->type), MAX_RANK - 1);
    } else if (has_all_classes(call, 0, table->type.dim[first], index) &&
               has_all_positions(call, 1, table->type.dim[first], index)) {
        return value_tensor(first ? gather_of_each(call->g, table, index) : gather(call->g, table, index));
    }
    return value_tensor(NULL);
}

static Value build_embedding(Call *call) {
    Node *index = read_index(call, 0);
    int64_t count = call_size(call, 1), width = count < 0 ? -1 : call_size(call, 2);
    Init init = {INIT_NORMAL, 0, 0.02};
    if (!index || width < 0 || (call->args[3].kind != VALUE_NONE && !read_init(call, 3, width, count, &init)))
        return value_tensor(NULL);
    if (index->type.rank == MAX_RANK) {
        call_error(call, 0, "%s has no room for one more axis", type_user_text(call->g->arena, &index->type));
        return value_tensor(NULL);
    }
    if (!has_all_classes(call, 1, count, index) || !has_all_positions(call, 0, count, index))
        return value_tensor(NULL);
    Type table = type_make(DT_F32, false, 2, (int64_t[]){count, width});
    return value_tensor(gather(call->g, call_weight(call, "weight", &table, init, NULL), index));
}

/* ---- in ONNX ---- */

TO_ONNX(clamped) {
    OnnxValue x = onnx_operand_thin(o, n, 0);
    const char *low = onnx_number(o, DT_I32, 0), *high = onnx_number(o, DT_I32, n->attr.index - 1);
    return onnx_like(x, onnx3(o, "Clip", x.name, low, high));
}

TO_ONNX(gather) {
    return onnx_value(onnx2(o, "Gather", onnx_operand(o, n, 0), onnx_operand(o, n, 1)));
}

const OpDef op_clamped = {
    .name = "clamped",
    .cls = OP_MAP,
    .flags = OP_CHEAP | OP_NO_GRAD,
    .arity = 1,
    .attrs = ATTR_INDEX,
    .doc = "The whole number from 0 to attr.index - 1 that is nearest to a.",
    .infer = infer_clamped,
    .range = range_clamped,
    .c = "clamped($0, $n)",
    .prec = PREC_PRIMARY,
    .to_onnx = to_onnx_clamped,
};

const OpDef op_gather = {
    .name = "gather",
    .cls = OP_VIEW,
    .flags = OP_LOOKUP,
    .arity = 2,
    .doc =
        "Rows of a table: y[i.., c..] = table[index[i..], c..]. The table has at least one axis; the index is whole "
        "numbers of any shape. Classes of the data are checked when they are read; a computed index outside of the "
        "table is taken for the nearest row. Where each example has a table of its own, each of its rows is compared "
        "with each index: such a table should be small.",
    .example = "y = gather(weight([3, 2]), label)",
    .infer = infer_gather,
    .grad = grad_gather,
    .view = view_gather,
    .to_onnx = to_onnx_gather,
    .signature = "table, index",
    .build = build_gather,
};

const OpDef op_gather_grad = {
    .name = "gather_grad",
    .cls = OP_CALL,
    .flags = OP_NO_GRAD,
    .arity = 2,
    .attrs = ATTR_DIMS,
    .doc = "The gradient of a table that was looked up: row v is the sum of dy[i..] over the places where index[i..] "
           "is v, in "
           "their order; 0 where there is none.",
    .infer = infer_gather_grad,
    .call = &gather_grad_call,
};

const OpDef op_embedding = {
    .name = "embedding",
    .cls = OP_LIBRARY,
    .doc = "A learned vector for each class: gather(`weight`, index), with `weight` [count, width]. It starts normally "
           "distributed with deviation 0.02.",
    .example = "y = embedding(label, 3, 4)",
    .signature = "index, count: size, width: size, init: init = none",
    .build = build_embedding,
};

const OpDef op_scatter_add = {
    .name = "scatter_add",
    .cls = OP_LIBRARY,
    .doc = "Rows of values added up where their indices say: y[v, c..] = sum over i.. with index[i..] = v of "
           "values[i.., c..], in the order of i; 0 where no index says the row. Each of the rows is compared with each "
           "index. A computed index outside of the rows is taken for the nearest one.",
    .example = "y = scatter_add(argmax(reshape(x, [2, 3])), reshape(x, [2, 3]), rows = 4)",
    .signature = "index, values, rows: size",
    .build = build_scatter_add,
};
