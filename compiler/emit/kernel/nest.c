/* Rows that are neighbours in memory, on a processor: the loop over them is the innermost, where it becomes vector code.
 *
 *     for i: for j: y[i, j] = relu(x[i, j])
 *
 *     for i: for j0, by 64:
 *         float sum[64] = {0};
 *         for k: for j from j0: sum[j - j0] += x[i, k, j]
 *         for j from j0: y[i, j] = sum[j - j0]
 *
 * j counts the last axes of the rows, i the others, k what is folded; where that takes divisions to find an element, there
 * is a loop for each axis instead. */
#include "emit/kernel/kernel_text.h"

#include "emit/kernel/function.h"

enum { TOGETHER = 64 };

/* Rows are independent of each other. Said so, since a compiler unrolls short loops before it finds out. */
#define SIMD "#pragma omp simd\n"

typedef struct Nest {
    Body *row;
    Shape kept;
    int outer;          /* axes of `kept` that the outer loops count */
    bool apart;         /* each axis by a loop of its own */
    const char *loop;   /* "#pragma omp simd", "for (int j = 0; j < POOL; j++)" */
    const Tree *number; /* of a column: j, j - j0 */
    const char *room;   /* for the numbers of the columns */
} Nest;

bool kernel_nests(const Kernel *kernel) {
    unsigned last = kernel->full.rank ? 1u << (kernel->full.rank - 1) : 0;
    if (kernel_has_vectors(kernel))
        return false;
    if (kernel->inner)
        return !(kernel->inner & last);
    return kernel->kept.rank > 1 && kernel->kept.dim[0] > 1 && kernel->stages.count == 1 && !kernel->stages.at[0].inner;
}

/* ---- loops and indices ---- */

static const char *counter(Arena *arena, const char *name, int axis) {
    return axis ? arena_printf(arena, "%s%d", name, axis) : name;
}

/* What counts the axes of the shape from 0 to `count`. */
static const Tree *counter_of(Arena *arena, const char *name, const Shape *shape, int count) {
    return index_counter(arena, name, type_extent(&shape->type, 0, count));
}

static const Tree *column_counter(const Nest *nest) {
    const Type *kept = &nest->kept.type;
    return index_counter(nest->row->e->arena, "j", type_extent(kept, nest->outer, kept->rank));
}

/* Counts the axes of the shape from 0 to `count`: by one variable, or each by its own. */
static Index counted(const Nest *nest, const char *name, const Shape *shape, int count) {
    Arena *arena = nest->row->e->arena;
    Index index = {0};
    if (!nest->apart && count)
        index_push(&index, count, counter_of(arena, name, shape, count));
    for (int axis = 0; axis < count && nest->apart; axis++) {
        bool counts = shape->type.dim[axis] > 1;
        index_push(&index, 1, counts ? tree_name(arena, counter(arena, name, axis)) : tree_number(arena, 0));
    }
    return index;
}

/* "for (int i = 0; i < CONV_0; i++)" around `lines`, for each variable that counts the first axes of the shape. */
static void write_loops(const Nest *nest, const char *name, const Shape *shape, int count, const Writer *lines,
                        Writer *out) {
    Arena *arena = nest->row->e->arena;
    const char *type = nest->apart ? "int" : index_type(counter_of(arena, name, shape, count));
    const Writer *inside = lines;
    for (int axis = nest->apart ? count - 1 : 0; axis >= 0; axis--) {
        const char *variable = counter(arena, name, axis);
        const Tree *extent = nest->apart ? shape->size[axis] : shape_count(arena, shape, 0, count);
        if (tree_is_number(extent, 1))
            continue;
        Writer *around = NEW(arena, Writer);
        *around = writer_like(out);
        write_block(around,
                    arena_printf(arena, "for (%s %s = 0; %s < %s; %s++)", type, variable, variable,
                                 tree_text(arena, extent), variable),
                    inside);
        inside = around;
    }
    write_all(out, inside);
}

static int loops_over(const Nest *nest) {
    int loops = 0;
    for (int axis = 0; axis < nest->outer; axis++)
        loops += nest->kept.type.dim[axis] > 1;
    return nest->apart || loops < 2 ? loops : 1;
}

static Index element_index(const Nest *nest, const Stage *stage) {
    Shape inner = stage_inner(nest->row->e, stage);
    Index row = counted(nest, "i", &nest->kept, nest->outer), element = counted(nest, "k", &inner, inner.type.rank);
    index_push(&row, nest->kept.type.rank - nest->outer, column_counter(nest));
    return index_in_stage(nest->row->e, stage, &row, &element);
}

/* ---- stages ---- */

static void introduce(const Nest *nest, const Stage *stage) {
    Body *row = nest->row;
    Writer equations = writer_like(row->out);
    if (row->kernel->stages.count > 1)
        write_stage_equations(row, stage, &equations);
    if (!equations.lines.count)
        return;
    if (row->out->lines.count)
        write_blank(row->out);
    write_all(row->out, &equations);
}

/* A number of each column, from the identity on; returns that of column j: sum[j - j0]. */
static const Tree *declare_fold(const Nest *nest, const Node *n) {
    Body *row = nest->row;
    const char *name = fold_name(row, n), *identity = n->op->identity;
    const Tree *number = tree_element(row->e->arena, tree_name(row->e->arena, name), nest->number);
    bool zero = op_adds(n->op);
    write_line(row->out, "%s %s[%s]%s;", c_type(row->e, n->type.dtype), name, nest->room, zero ? " = {0}" : "");
    if (!zero) {
        Writer lines = writer_like(row->out);
        write_line(&lines, "%s = %s;", body_text(row, number), identity);
        write_block(row->out, nest->loop, &lines);
    }
    return number;
}

/* The loop over the columns. Before the comment of a next stage it has braces: clang-format takes a comment behind a directive's loop
 * without any for a part of it. */
static void write_loop(const Nest *nest, const Stage *stage, const Writer *lines, Writer *out) {
    const Kernel *kernel = nest->row->kernel;
    bool last = stage == &kernel->stages.at[kernel->stages.count - 1];
    (stage->inner || last ? write_block : write_braced)(out, nest->loop, lines);
}

/* What becomes of the values of each column; of those that are folded, into `numbers`. */
static Outputs column_outputs(const Nest *nest, Body *column, const Stage *stage, const Tree *const *numbers) {
    Index at = element_index(nest, stage);
    Outputs outputs = stage_outputs(column, stage, &at);
    for (int k = 0; k < stage->reduces.count; k++) {
        const Node *n = stage->reduces.at[k];
        VEC_PUSH(nest->row->e->arena, &outputs, ((Output){.node = n->in[0], .at = at, .to = numbers[k], .fold = n}));
    }
    return outputs;
}

/* The condition of a view that is the same for all columns; NULL: there is none. */
static const Tree *condition_of_columns(const Nest *nest, Body *around, const Stage *stage,
                                        const Tree *const *numbers) {
    Assumption assumption = {0};
    Writer lines = writer_like(around->out);
    Body column = body_inside(around, &lines, "j", NULL);
    column.assumption = &assumption;
    Outputs outputs = column_outputs(nest, &column, stage, numbers);
    body_find(&column, &outputs);
    return assumption.wanted;
}

/* What the stage computes for each column. */
static void write_column(const Nest *nest, Body *around, const Stage *stage, const Tree *const *numbers) {
    Writer lines = writer_like(around->out);
    Body column = body_inside(around, &lines, "j", NULL);
    Outputs outputs = column_outputs(nest, &column, stage, numbers);
    if (body_write(&column, &outputs))
        write_loop(nest, stage, &lines, around->out);
}

/* The loop over the columns; where a view reads under a condition that is the same for all of them, one for each case. */
static void write_columns(const Nest *nest, Body *around, const Stage *stage, const Tree *const *numbers) {
    const Tree *condition = condition_of_columns(nest, around, stage, numbers);
    Writer lines[2] = {writer_like(around->out), writer_like(around->out)};
    if (!condition) {
        write_column(nest, around, stage, numbers);
        return;
    }
    for (int holds = 1; holds >= 0; holds--) {
        Assumption assumption = {.condition = condition, .holds = holds};
        Body branch = body_inside(around, &lines[holds], NULL, NULL);
        branch.assumption = &assumption;
        write_column(nest, &branch, stage, numbers);
    }
    write_open(around->out, "if (%s) {", body_text(around, condition));
    write_all(around->out, &lines[true]);
    if (lines[false].lines.count) {
        around->out->indent--;
        write_open(around->out, "} else {");
        write_all(around->out, &lines[false]);
    }
    write_close(around->out, "}");
}

static void write_folds(const Nest *nest, const Stage *stage) {
    Body *row = nest->row;
    Writer lines = writer_like(row->out);
    Body fold = body_inside(row, &lines, NULL, NULL);
    Shape inner = stage_inner(row->e, stage);
    for (int axis = 0; axis < inner.type.rank; axis++)
        fold.variables[axis] = counter(row->e->arena, "k", axis);
    const Tree **numbers = NEW_ARRAY(row->e->arena, const Tree *, stage->reduces.count);
    for (int k = 0; k < stage->reduces.count; k++)
        numbers[k] = declare_fold(nest, stage->reduces.at[k]);
    write_columns(nest, &fold, stage, numbers);
    write_loops(nest, "k", &inner, inner.type.rank, &lines, row->out);
    for (int k = 0; k < stage->reduces.count; k++)
        body_know(row, stage->reduces.at[k], numbers[k]);
}

/* ---- kernels ---- */

/* The axes at the end of the rows that are neighbours in memory wherever the kernel goes: those behind all that is folded;
 * of single elements, all but the first, or the last alone. */
static int outer_axes(const Kernel *kernel, bool apart) {
    int axis = kernel->full.rank, rank = kernel->kept.rank;
    if (!kernel->inner) {
        int last = rank - 1;
        while (apart && last > 1 && kernel->kept.dim[last] == 1)
            last--;
        return apart ? last : 1;
    }
    while (!(kernel->inner >> (axis - 1) & 1))
        axis--;
    return rank - (kernel->full.rank - axis);
}

static bool cuts_columns(const Nest *nest) {
    int64_t columns = 1;
    for (int axis = nest->outer; axis < nest->kept.type.rank; axis++)
        columns *= nest->kept.type.dim[axis];
    return nest->row->kernel->inner && columns > TOGETHER;
}

static Nest nest_of(Body *row, bool apart) {
    Emitter *e = row->e;
    Nest nest = {
        .row = row, .kept = row_shape(e, row->kernel), .outer = outer_axes(row->kernel, apart), .apart = apart};
    const char *columns = shape_product(e->arena, &nest.kept, nest.outer, nest.kept.type.rank - nest.outer);
    bool cuts = cuts_columns(&nest);
    const char *type = index_type(column_counter(&nest));
    nest.loop = cuts ? arena_printf(e->arena, SIMD "for (%s j = j0; j < end; j++)", type)
                     : arena_printf(e->arena, SIMD "for (%s j = 0; j < %s; j++)", type, columns);
    nest.number = tree_read(e->arena, cuts ? "j - j0" : "j");
    nest.room = cuts ? "COLUMNS" : columns;
    if (cuts)
        write_line(row->out, "%s end = %s - j0 < COLUMNS ? %s : j0 + COLUMNS;", type, columns, columns);
    for (int axis = 0; axis < nest.outer; axis++)
        row->variables[axis] = counter(e->arena, "i", axis);
    return nest;
}

static void write_shared(const Nest *nest, const Writer *lines, Writer *out) {
    Arena *arena = nest->row->e->arena;
    bool cuts = cuts_columns(nest);
    int loops = loops_over(nest) + cuts;
    Writer chunk = writer_like(out);
    const char *columns = shape_product(arena, &nest->kept, nest->outer, nest->kept.type.rank - nest->outer);
    if (cuts) {
        write_line(out, "enum { COLUMNS = %d };", TOGETHER);
        const char *type = index_type(column_counter(nest));
        write_block(&chunk, arena_printf(arena, "for (%s j0 = 0; j0 < %s; j0 += COLUMNS)", type, columns), lines);
    }
    if (loops > 1)
        write_line(out, "#pragma omp for collapse(%d) nowait", loops);
    else
        write_line(out, loops ? "#pragma omp for nowait" : "#pragma omp single nowait\n{");
    out->indent += loops == 0;
    write_loops(nest, "i", &nest->kept, nest->outer, cuts ? &chunk : lines, out);
    if (loops == 0)
        write_close(out, "}");
}

/* Returns false, having written nothing but what is the same for all elements, where finding one takes a remainder. */
static bool write_nest_as(Body *kernel, bool apart) {
    Writer lines = writer_like(kernel->out);
    Body row = body_inside(kernel, &lines, NULL, NULL);
    row.above = NULL; /* its loops are over vectors, and may be written twice */
    row.written = NEW_ARRAY(kernel->e->arena, bool, program_of(kernel->e, kernel->kernel)->graph->nodes.count);
    Nest nest = nest_of(&row, apart);
    for (int s = 0; s < kernel->kernel->stages.count; s++) {
        const Stage *stage = &kernel->kernel->stages.at[s];
        introduce(&nest, stage);
        if (stage->inner)
            write_folds(&nest, stage);
        else
            write_columns(&nest, &row, stage, NULL);
    }
    if (!apart && row.divides)
        return false;
    write_shared(&nest, &lines, kernel->out);
    return true;
}

void write_nest(Body *kernel) {
    if (!write_nest_as(kernel, false))
        write_nest_as(kernel, true);
}
