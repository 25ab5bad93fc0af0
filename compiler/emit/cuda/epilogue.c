/* What becomes of the sums of a product, in CUDA: what an epilogue reads from memory is read ahead of it, for many
 * outputs at once. Where numbers of 16 bits are read or written, a call takes so many neighbours in j as fill 16 bytes. */
#include "emit/cuda/product.h"

#include "emit/kernel/function.h"

typedef struct Epilogue {
    const char *name, *read, *ahead; /* "out", "read", "Ahead" */
    const char *index;               /* "int i, int j" */
    const char *about;               /* or NULL */
} Epilogue;

/* What the lines of a callback read from memory. */
typedef struct EpilogueReads {
    Reads all, columns; /* of the latter what is the same for all i, where it is apart */
} EpilogueReads;

static const Epilogue of_product = {"out", "read", "Ahead", "int i, int j", NULL};
static const Epilogue of_rows = {"row_out", "read_row", "RowAhead", "int i",
                                 "the same for the sums over k of left(i, k)"};
static const Epilogue of_columns = {"column_out", "read_column", "ColumnAhead", "int j",
                                    "the same for the sums over k of right(k, j)"};

/* ---- vectors ---- */

static bool has_half_numbers(const Kernel *kernel) {
    bool found = false;
    for (int k = 0; k < kernel->stores.count; k++)
        found |= dtype_is_narrow(kernel->stores.at[k]->type.dtype);
    for (int k = 0; k < kernel->loads.count; k++)
        found |= dtype_is_narrow(kernel->loads.at[k]->type.dtype);
    return found;
}

/* Neighbours in j of all that the product stores are neighbours in memory. */
static bool stores_vectors(Emitter *e, const Kernel *kernel, int lanes) {
    Body body = body_new(e, kernel, NULL, NULL);
    Lanes along = {"j", lanes};
    Outputs outputs = product_outputs(&body, kernel);
    for (int k = 0; k < outputs.count; k++) {
        Shape shape = sizes_shape(e->sizes, outputs.at[k].node);
        if (lane_step(&along, index_offset(e->arena, &outputs.at[k].at, &shape)) != LANES_NEIGHBOURS)
            return false;
    }
    return true;
}

/* Threads of large tiles write enough for vectors. */
static bool writes_much(const Kernel *kernel) {
    return kernel->tile.warps_m || kernel->tile.squares ||
           (product_feed(kernel) == FEED_PIPELINED && kernel->tile.tm * kernel->tile.tn >= LARGE_OUTPUTS);
}

int epilogue_lanes(Emitter *e, const Kernel *kernel) {
    int lanes = has_half_numbers(kernel) ? 8 : writes_much(kernel) ? 4 : 1;
    bool divides = kernel->n % lanes == 0 && kernel->tile.n % lanes == 0 && product_feed(kernel) != FEED_THIN;
    return lanes > 1 && divides && stores_vectors(e, kernel, lanes) ? lanes : 1;
}

/* "float", "Pack<float, 8>" */
static const char *lanes_type(Arena *arena, const char *type, int lanes) {
    return lanes > 1 ? arena_printf(arena, "Pack<%s, %d>", type, lanes) : type;
}

/* ---- what is read ahead ---- */

static void write_struct(Emitter *e, const char *name, const Reads *reads, Writer *out) {
    write_open(out, "struct %s {", name);
    for (int k = 0; k < reads->count; k++)
        write_line(out, "%s %s;", lanes_type(e->arena, c_type(e, reads->at[k].node->type.dtype), reads->at[k].lanes),
                   reads->at[k].name);
    write_close(out, "};");
}

void write_reads(Emitter *e, const char *type, const char *name, const char *index, const Reads *reads, Writer *out) {
    Text values = TEXT(e->arena);
    for (int k = 0; k < reads->count; k++)
        text_printf(&values, "%s%s", k ? ", " : "", tree_text(e->arena, reads->at[k].value));
    write_struct(e, type, reads, out);
    write_line(out, "auto %s = [&](%s) { return %s{%s}; };", name, index, type, text_string(&values));
}

/* A search for what the phase writes, among what says where lookups read. */
typedef struct Places {
    const Program *program;
    const Kernel *kernel;
    int phase;
    char *seen; /* by node: 1 as a value, 2 as what says where */
} Places;

/* NULL: there is none below n, which itself says where a lookup reads if `says`. */
static const Node *written_place(Places *places, const Node *n, bool says) {
    const Node *found = NULL;
    if (is_loaded(places->kernel, n))
        return says && written_in(places->program, n) == places->phase ? n : NULL;
    if (places->seen[n->id] > says)
        return NULL;
    places->seen[n->id] = (char)(says + 1);
    for (int k = 0; k < n->inputs && !found; k++)
        found = written_place(places, n->in[k], says || (k == 1 && n->op->flags & OP_LOOKUP));
    return found;
}

int phase_before(const Program *program, const Kernel *kernel) {
    return (kernel->phase + program->phases.count - 1) % program->phases.count;
}

/* The first of them that the phase before the kernel's writes; NULL: it writes none. */
static const char *written_before(const Program *program, const Kernel *kernel, const Reads *reads) {
    for (int k = 0; k < reads->count; k++)
        if (written_in(program, reads->at[k].node) == phase_before(program, kernel))
            return reads->at[k].name;
    return NULL;
}

/* What the phase before the kernel's writes of it; if nothing, NULL, all may be read while that one is still running. */
static const char *incomplete(const Emitter *e, const Kernel *kernel, const EpilogueReads *reads) {
    const Program *program = program_of(e, kernel);
    const int before = phase_before(program, kernel);
    const char *written = written_before(program, kernel, &reads->all);
    written = written ? written : written_before(program, kernel, &reads->columns);
    if (written)
        return written;
    Places places = {program, kernel, before, NEW_ARRAY(e->arena, char, program->graph->nodes.count)};
    for (int k = 0; k < kernel->nodes.count; k++) {
        const Node *place = written_place(&places, kernel->nodes.at[k], false);
        if (place)
            return tensor_name(e, plan_buffer(e->plan, place));
    }
    return NULL;
}

/* ---- the callbacks ---- */

/* "auto out = [&](int i, int j, float sum" */
static const char *head_of(Body *body, const Epilogue *epilogue) {
    Arena *arena = body->e->arena;
    const char *sum = "float ";
    if (body->lanes > 1)
        sum = arena_printf(arena, "const %s &", lanes_type(arena, "float", body->lanes));
    return arena_printf(arena, "auto %s = [&](%s, %ssum", epilogue->name, epilogue->index, sum);
}

/* Writes the callback whose lines are in `lines`; returns it with what it reads ahead: "preloaded(read, out)". */
static const char *write_callback(Body *kernel, const Epilogue *epilogue, const char *head, const char *terms,
                                  const EpilogueReads *reads, const Writer *lines) {
    Arena *arena = kernel->e->arena;
    const bool ahead = reads->all.count, columns = reads->columns.count;
    const char *out = epilogue->name;
    if (epilogue->about)
        write_remark(kernel->out, "%s", epilogue->about);
    const char *late = ahead || columns ? incomplete(kernel->e, kernel->kernel, reads) : NULL;
    if (late)
        write_remark(kernel->out, "read behind the gate, not early: the phase before writes %s", late);
    if (columns)
        write_reads(kernel->e, "OfColumn", "columns", "int j", &reads->columns, kernel->out);
    if (ahead)
        write_reads(kernel->e, epilogue->ahead, epilogue->read, epilogue->index, &reads->all, kernel->out);
    head = ahead ? arena_printf(arena, "%s, const %s &ahead", head, epilogue->ahead) : head;
    head = columns ? arena_printf(arena, "%s, const OfColumn &column", head) : head;
    write_lambda(kernel->out, arena_printf(arena, "%s%s)", head, terms), lines);
    if (ahead)
        out = arena_printf(arena, "preloaded%s(%s, %s)", late ? "" : "_early", epilogue->read, out);
    return columns ? arena_printf(arena, "of_columns(columns, %s)", out) : out;
}

static const char *write_side(Body *kernel) {
    bool of_b = kernel->kernel->side_of_b;
    const Epilogue *epilogue = of_b ? &of_columns : &of_rows;
    Writer lines = writer_like(kernel->out);
    Body body = body_inside(kernel, &lines, of_b ? "j" : "i", NULL);
    EpilogueReads reads = {0};
    body.reads = &reads.all;
    body.read_from = "ahead.";
    Outputs outputs = side_outputs(&body, kernel->kernel);
    body_write(&body, &outputs);
    const char *out = write_callback(kernel, epilogue, head_of(&body, epilogue), "", &reads, &lines);
    return arena_printf(kernel->e->arena, "sum_of_%s(%s)", of_b ? "b" : "a", out);
}

/* ---- sums over the rows of a tile ---- */

/* The terms of output (i, j): term[0] = ... */
static void push_terms(Body *body, const Kernel *kernel, Outputs *outputs) {
    Emitter *e = body->e;
    Index at = product_index(e, kernel);
    Shape from = sizes_shape(e->sizes, kernel->contraction);
    for (int f = 0; f < kernel->folds.count; f++) {
        const Node *term = kernel->folds.at[f]->in[0];
        Shape to = sizes_shape(e->sizes, term);
        Output output = {.node = term, .at = index_reshape(e->arena, &at, &from, &to)};
        output.to = tree_element(e->arena, tree_name(e->arena, "term"), tree_number(e->arena, f));
        output.to = body->lanes > 1 ? lane_of_pack(e->arena, output.to) : output.to;
        VEC_PUSH(e->arena, outputs, output);
    }
}

/* Writes what becomes of the sums of the terms over the rows of a tile; returns `out` with that. */
static const char *write_folds(Body *kernel, const char *out) {
    const Kernel *k = kernel->kernel;
    Arena *arena = kernel->e->arena;
    Writer lines = writer_like(kernel->out);
    Body body = body_inside(kernel, &lines, "group", "j");
    Outputs outputs = {0};
    for (int f = 0; f < k->folds.count; f++) {
        Index at = {0};
        Shape shape = sizes_shape(kernel->e->sizes, k->folds.at[f]);
        Shape groups = {{.rank = 2, .dim = {type_elements(&shape.type) / k->n, k->n}},
                        {TREE_NAMED("GROUPS"), TREE_NAMED("COLUMNS")}};
        index_push(&at, 1, tree_name(arena, "group"));
        index_push(&at, 1, tree_name(arena, "j"));
        at = index_reshape(arena, &at, &groups, &shape);
        body_know(&body, k->folds.at[f], tree_element(arena, tree_name(arena, "total"), tree_number(arena, f)));
        output_store(&body, k->folds.at[f], &at, &outputs);
    }
    body_write(&body, &outputs);
    write_line(kernel->out, "// the sums of the terms over the rows of a tile, which are group `group`");
    write_lambda(kernel->out,
                 arena_printf(arena, "auto store = [&](int group, int j, const float(&total)[%d])", k->folds.count),
                 &lines);
    return arena_printf(arena, "folded<%d>(%s, store)", k->folds.count, out);
}

static const char *write_out(Body *kernel) {
    const Kernel *k = kernel->kernel;
    Arena *arena = kernel->e->arena;
    Writer lines = writer_like(kernel->out);
    Body body = body_inside(kernel, &lines, "i", "j");
    EpilogueReads reads = {0};
    body.reads = &reads.all;
    body.read_from = "ahead.";
    body.steady_reads = k->tile.warps_m ? &reads.columns : NULL;
    body.steady_from = "column.";
    body.varying[0] = "i";
    body.lanes = epilogue_lanes(kernel->e, k);
    body.along = "j";
    Outputs outputs = product_outputs(&body, k);
    push_terms(&body, k, &outputs);
    body_write(&body, &outputs);
    const char *terms = "";
    if (k->folds.count)
        terms = arena_printf(arena, ", %s(&term)[%d]", lanes_type(arena, "float", body.lanes), k->folds.count);
    const char *out = write_callback(kernel, &of_product, head_of(&body, &of_product), terms, &reads, &lines);
    if (body.lanes > 1)
        out = arena_printf(arena, "vectorized<%d>(%s)", body.lanes, out);
    return k->folds.count ? write_folds(kernel, out) : out;
}

const char *write_epilogues(Body *kernel) {
    const char *out = write_out(kernel);
    if (kernel->kernel->folds.count || epilogue_lanes(kernel->e, kernel->kernel) > 1) {
        write_line(kernel->out, "auto results = %s;", out);
        out = "results";
    }
    return kernel->kernel->side ? arena_printf(kernel->e->arena, "%s, %s", out, write_side(kernel)) : out;
}
