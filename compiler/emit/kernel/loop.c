/* Kernels of rows: stage after stage, each a loop over the row's extent. */
#include "emit/kernel/cases.h"
#include "emit/kernel/chains.h"
#include "emit/kernel/element.h"
#include "emit/kernel/function.h"
#include "emit/kernel/kernel_text.h"

/* ---- indices ---- */

/* The axes of a stage that it loops over, or the others. */
static Shape axes_where(const Shape *domain, unsigned inner, bool loops) {
    Shape shape = {.type = domain->type};
    shape.type.rank = 0;
    for (int axis = 0; axis < domain->type.rank; axis++)
        if ((inner >> axis & 1) == loops) {
            shape.type.dim[shape.type.rank] = domain->type.dim[axis];
            shape.size[shape.type.rank++] = domain->size[axis];
        }
    return shape;
}

/* Any node whose elements are those of the stage. */
static const Node *stage_element(const Stage *stage) {
    if (stage->contractions.count)
        return stage->contractions.at[0];
    if (stage->reduces.count)
        return stage->reduces.at[0]->in[0];
    return stage->vectors.count ? stage->vectors.at[0] : stage->stores.at[0];
}

static Shape stage_domain(Emitter *e, const Stage *stage) {
    return sizes_shape(e->sizes, stage_element(stage));
}

const char *stage_extent(Emitter *e, const Stage *stage) {
    Shape domain = stage_domain(e, stage), inner = axes_where(&domain, stage->inner, true);
    return shape_product(e->arena, &inner, 0, inner.type.rank);
}

Shape stage_inner(Emitter *e, const Stage *stage) {
    Shape domain = stage_domain(e, stage);
    return axes_where(&domain, stage->inner, true);
}

const Tree *row_counter(Arena *arena, const Kernel *kernel) {
    return index_counter(arena, "i", kernel->rows);
}

/* j, which counts what the stage loops over. */
static const Tree *element_counter(Emitter *e, const Stage *stage) {
    Shape inner = stage_inner(e, stage);
    return index_counter(e->arena, "j", type_elements(&inner.type));
}

Index index_in_stage(Emitter *e, const Stage *stage, const Index *row, const Index *element) {
    Shape domain = stage_domain(e, stage);
    Shape kept = axes_where(&domain, stage->inner, false), inner = axes_where(&domain, stage->inner, true);
    Index at = {0};
    for (int axis = 0, k = 0, l = 0; axis < domain.type.rank;) {
        bool loops = stage->inner >> axis & 1;
        int count = 1;
        while (axis + count < domain.type.rank && (stage->inner >> (axis + count) & 1) == loops)
            count++;
        Index part =
            loops ? index_slice(e->arena, element, &inner, l, count) : index_slice(e->arena, row, &kept, k, count);
        index_append(&at, &part);
        axis += count;
        *(loops ? &l : &k) += count;
    }
    return at;
}

Index stage_index(Body *body, const Stage *stage, const Tree *j) {
    Shape domain = stage_domain(body->e, stage), inner = stage_inner(body->e, stage);
    Shape kept = axes_where(&domain, stage->inner, false);
    Arena *arena = body->e->arena;
    const Tree *i = body->kernel->rows > 1 ? row_counter(arena, body->kernel) : tree_number(arena, 0);
    Index row = index_linear(&kept, i), element = index_linear(&inner, j);
    return index_in_stage(body->e, stage, &row, &element);
}

/* ---- outputs ---- */

static const char *vector_name(const Body *body, const Node *n) {
    for (const Body *b = body; b; b = b->outer)
        for (int k = 0; k < b->vectors.count; k++)
            if (b->vectors.at[k].node == n)
                return b->vectors.at[k].name;
    ICE("%%%d is no row vector of kernel %s", n->id, body->kernel->name);
}

Outputs stage_outputs(Body *body, const Stage *stage, const Index *at) {
    Outputs outputs = {0};
    Arena *arena = body->e->arena;
    for (int k = 0; k < stage->vectors.count; k++) {
        const Node *n = stage->vectors.at[k];
        const Tree *to = tree_element(arena, tree_name(arena, vector_name(body, n)), tree_name(arena, "j"));
        VEC_PUSH(arena, &outputs, ((Output){.node = n, .at = *at, .to = to}));
    }
    for (int k = 0; k < stage->stores.count; k++)
        output_store(body, stage->stores.at[k], at, &outputs);
    return outputs;
}

/* ---- what a row computes once ---- */

static void depend_on(Body *body, const char *variable) {
    int count = 0;
    while (body->variables[count])
        count++;
    body->variables[count] = variable;
}

static void depend_on_row(Body *body, const Body *row) {
    depend_on(body, "i");
    for (int k = 0; k < row->per_row->count; k++)
        depend_on(body, row->per_row->at[k].name);
}

/* Calls that no row is too far behind for, filler and rows that do not exist included: a kernel begins with them. */
static void claim_per_row(Body *row) {
    Arena *arena = row->e->arena;
    const Tree *i = row_counter(arena, row->kernel), *share = tree_form(arena, "share(batch, $0)", &i, 1);
    const Read calls[] = {{.name = "example", .value = example_of_row(arena, i)},
                          {.name = "row_share", .value = share}};
    for (int k = 0; k < 2; k++)
        VEC_PUSH(arena, row->per_row,
                 ((Read){.name = names_claim(&row->names, calls[k].name), .value = calls[k].value}));
}

/* "int64_t example = row(batch, i);" where a line of the row needs it. */
static void write_per_row(const Body *row, Writer *out) {
    for (int k = 0; k < row->per_row->count; k++) {
        const Read *call = &row->per_row->at[k];
        const char *type = call->value->wide ? "int64_t" : row->e->dialect->real;
        if (call->used)
            write_line(out, "%s %s = %s;", type, call->name, tree_text(row->e->arena, call->value));
    }
}

/* ---- stages ---- */

/* Code inside of a row, or of all rows that the thread computes at once. */
static Body body_of_rows(Body *row, Writer *out, const char *variable) {
    Body body = body_inside(row, out, variable, NULL);
    body.lanes = row->kernel->lanes;
    body.along = "i";
    return body;
}

/* The row's number of that name, or its element of a pack of the rows'. */
static const Tree *row_number(const Body *row, const char *name) {
    const Tree *number = tree_name(row->e->arena, name);
    return row->kernel->lanes > 1 ? lane_of_pack(row->e->arena, number) : number;
}

/* A thread that writes could be ahead of others, which are still to read what lay there. */
static bool overwrites_reads(const Body *row, const Stage *stage) {
    const Kernel *kernel = row->kernel;
    for (int k = 0; row->apart && k < stage->stores.count; k++) {
        const Buffer *written = plan_buffer(row->e->plan, stage->stores.at[k]);
        for (int i = 0; written && i < kernel->loads.count; i++) {
            const Buffer *read = plan_buffer(row->e->plan, kernel->loads.at[i]);
            if (read && buffers_meet(read, written))
                return true;
        }
    }
    return false;
}

static void meet(Body *row) {
    if (row->e->dialect->sync)
        row->e->dialect->sync(row);
    row->apart = false;
}

/* What the stage computes, above it; a lone stage's equations stand above the kernel. */
static void introduce(Body *row, const Stage *stage) {
    if (overwrites_reads(row, stage))
        meet(row);
    Writer equations = writer_like(row->out);
    if (row->kernel->stages.count > 1)
        write_stage_equations(row, stage, &equations);
    if (equations.lines.count) {
        bool begins_braces = row->kernel->held && !row->out->lines.count;
        if (!begins_braces)
            write_blank(row->out);
        write_all(row->out, &equations);
    }
}

const char *fold_name(Body *row, const Node *reduction) {
    Emitter *e = row->e;
    for (int k = 0; k < e->folds.count; k++)
        if (e->folds.at[k].node == reduction) {
            names_take(&row->names, e->folds.at[k].name); /* an equation may have given it */
            return e->folds.at[k].name;
        }
    const char *name = names_claim(&row->names, local_name(e->arena, reduction));
    VEC_PUSH(e->arena, &e->folds, ((FoldName){reduction, name}));
    return name;
}

static void declare_folds(Body *row, const Stage *stage, const char **names) {
    for (int k = 0; k < stage->reduces.count; k++) {
        const Node *n = stage->reduces.at[k];
        names[k] = fold_name(row, n);
        const char *type = c_type(row->e, n->type.dtype);
        if (row->kernel->lanes > 1)
            write_line(row->out, "auto %s = fill_pack<%d, %s>(%s);", names[k], row->kernel->lanes, type,
                       n->op->identity);
        else
            write_line(row->out, "%s %s = %s;", type, names[k], n->op->identity);
    }
}

static void finish_folds(Body *row, const Stage *stage, const char **names) {
    for (int k = 0; k < stage->reduces.count; k++) {
        if (row->e->dialect->fold)
            row->e->dialect->fold(row, stage->reduces.at[k], names[k]);
        body_know(row, stage->reduces.at[k], row_number(row, names[k]));
    }
}

/* The sum of a thin product at element j, as a loop of its own. */
static void write_sum(Body *element, const Node *product, const Index *at, const char *name) {
    Writer lines = writer_like(element->out);
    Body term = body_inside(element, &lines, "k", NULL);
    const char *factors = body_text(&term, product_term(&term, product, at));
    const char *depth = product_depth(element->e, product);
    write_line(&lines, "%s += %s;", name, factors);
    write_line(element->out, "%s %s = 0;", element->e->dialect->real, name);
    if (element->e->dialect->sum)
        element->e->dialect->sum(element, name);
    write_block(element->out, arena_printf(element->e->arena, "for (int k = 0; k < %s; k++)", depth), &lines);
    body_know(element, product, tree_name(element->e->arena, name));
}

/* Of each row that a thread asks for: then it may be read before that is known. */
bool every_row_exists(const Kernel *kernel) {
    if (kernel->team == TEAM_COLUMN)
        return kernel->rows == kernel->tiles * (THREADS / kernel->depth * kernel->lanes);
    if (kernel->at_once > 1)
        return true;
    bool whole_tiles = kernel->team == TEAM_WARP && kernel->rows > 1 && kernel->rows % WARPS == 0;
    return kernel->team == TEAM_BLOCK || kernel->team == TEAM_LANES || whole_tiles;
}

/* A loop that only adds up is a sum like a product's. */
static bool only_adds_up(const Stage *stage, const Writer *lines) {
    const Node *n = stage->reduces.count == 1 ? stage->reduces.at[0] : NULL;
    return n && op_adds(n->op) && n->type.dtype == DT_F32 && is_one_statement(lines);
}

static bool contains(Node *const *nodes, int count, const Node *n) {
    for (int k = 0; k < count; k++)
        if (nodes[k] == n)
            return true;
    return false;
}

/* Nobody but the reduction reads the value. */
static bool is_only_folded(const Kernel *kernel, const Node *value) {
    int readers = 0;
    for (int k = 0; k < kernel->nodes.count; k++)
        for (int i = 0; i < kernel->nodes.at[k]->inputs; i++)
            readers += kernel->nodes.at[k]->in[i] == value;
    return readers == 1 && !contains(kernel->stores.at, kernel->stores.count, value) && !kernel_reads(kernel, value);
}

/* The reduction begins with the number, and goes on from it as if there had been nothing. */
static bool is_neutral(const Node *reduction, const Node *n) {
    double value;
    return op_adds(reduction->op) && graph_constant_value(n, &value) && value == 0;
}

/* In vector code, "sum += c ? x : 0" is "if (c) sum += x": one instruction instead of two. */
static Output fold_output(const Body *element, const Node *reduction, const Index *at, const Tree *into) {
    const Node *value = reduction->in[0];
    bool chooses = value->op->prec == PREC_COND && is_neutral(reduction, value->in[2]);
    if (element->lanes > 1 && chooses && is_only_folded(element->kernel, value))
        return (Output){.node = value->in[1], .condition = value->in[0], .at = *at, .to = into, .fold = reduction};
    return (Output){.node = value, .at = *at, .to = into, .fold = reduction};
}

/* What is done at each j. */
static Writer element_lines(Body *row, const Stage *stage, const char *const *folds, const Tree *j) {
    Arena *arena = row->e->arena;
    Writer lines = writer_like(row->out);
    bool may_not_exist = row->kernel->team == TEAM_COLUMN &&
                         !every_row_exists(row->kernel); /* then nothing is read at i but in the loop */
    Body element = body_of_rows(row, &lines, "j");
    if (stage->lanes > 1) {
        element.lanes = stage->lanes;
        element.along = "j";
    }
    if (may_not_exist)
        depend_on_row(&element, row);
    Index at = stage_index(row, stage, j);
    for (int k = 0; k < stage->contractions.count; k++)
        write_sum(&element, stage->contractions.at[k], &at, k ? arena_printf(arena, "sum_%d", k + 1) : "sum");
    Outputs outputs = stage_outputs(&element, stage, &at);
    for (int k = 0; k < stage->reduces.count; k++) {
        const Tree *into = row_number(row, folds[k]);
        VEC_PUSH(arena, &outputs, fold_output(&element, stage->reduces.at[k], &at, into));
    }
    body_write(&element, &outputs);
    return lines;
}

static void write_elements(Body *row, const Stage *stage, const char *const *folds) {
    const Tree *j = element_counter(row->e, stage);
    const Writer lines = element_lines(row, stage, folds, j);
    if (row->e->dialect->sum && only_adds_up(stage, &lines))
        row->e->dialect->sum(row, folds[0]);
    write_block(row->out, row->e->dialect->loop(row, stage, j), &lines);
}

/* Of several rows at a time. */
static void write_sum_of_rows(Body *row, const Stage *stage) {
    const Node *sum = stage->reduces.at[0];
    const char *name = fold_name(row, sum);
    introduce(row, stage);
    const Writer lines = element_lines(row, stage, &name, element_counter(row->e, stage));
    row->e->dialect->sum_rows(row, stage, name, &lines);
    body_know(row, sum, row_number(row, name));
    row->apart = false;
}

/* The outputs, in a branch where that much is known; NULL: in none. */
static void write_known(Body *once, const Outputs *outputs, const Case *known) {
    if (!known) {
        body_write(once, outputs);
        return;
    }
    Body branch = body_of_rows(once, once->out, NULL);
    depend_on(&branch, "i");
    branch.once = true;
    branch.cases = known;
    body_write(&branch, outputs);
}

/* "if (column < 768) {", and the same for what becomes of the others. `before`: "} else ", or nothing. */
static void write_cases(Body *once, const Outputs *outputs, const Case *known, const char *before) {
    const Tree *asked = case_to_ask(once, known, outputs);
    Writer *out = once->out;
    if (!asked && !*before) {
        write_known(once, outputs, known);
        return;
    }
    if (!asked) {
        write_open(out, "%s{", before);
        write_known(once, outputs, known);
        write_close(out, "}");
        return;
    }
    Case holds = {known, asked, true}, fails = {known, asked, false};
    write_open(out, "%sif (%s) {", before, body_text(once, asked));
    write_cases(once, outputs, &holds, "");
    out->indent--;
    write_cases(once, outputs, &fails, "} else ");
}

/* Where one token is decoded, latency is all: what the stage reads of its row is on its way while the stages before fold. They store
 * nothing, so that it is there. */
static bool may_read_ahead(const Body *row, const Stage *stage) {
    const Kernel *kernel = row->kernel;
    const bool teams = kernel->team == TEAM_WARP || kernel->team == TEAM_BLOCK;
    if (!teams || !row->ahead || !is_of_token(row->e, kernel))
        return false;
    for (const Stage *before = kernel->stages.at; before < stage; before++)
        if (before->stores.count)
            return false;
    return stage > kernel->stages.at;
}

/* Where it lies is known at the start of the row. */
static bool is_of_row(const Body *row, const Tree *place) {
    for (int k = 0; k < row->declared.count; k++)
        if (tree_mentions(place, row->declared.at[k]))
            return false;
    for (int k = 0; k < row->named.count; k++)
        if (tree_mentions(place, row->named.at[k].name))
            return false;
    return true;
}

/* What no launch writes is read ahead of the gate, unless the token says where: the launch before may have drawn that. */
static Writer *where_it_is_known(const Body *row, const Read *read) {
    const Table table = read->node->op->table;
    const bool lasts = (table == TABLE_WEIGHT || table == TABLE_STATE) && !tree_mentions(read->value, "batch");
    if (!is_of_row(row, read->value))
        return row->out;
    return row->before_gate && lasts ? row->before_gate : row->ahead;
}

static void write_reads_of_row(Body *row, const Reads *reads) {
    for (int k = 0; k < reads->count; k++) {
        const Read *read = &reads->at[k];
        Writer *out = where_it_is_known(row, read);
        write_line(out, "%s %s = %s;", c_type(row->e, read->node->type.dtype), read->name,
                   body_text_for(row, out, read->value));
    }
}

/* What happens once in a row: stores of its scalars. */
static void write_once(Body *row, const Stage *stage) {
    Writer lines = writer_like(row->out);
    Body once = body_of_rows(row, &lines, NULL);
    Reads reads = {0};
    once.once = true;
    if (may_read_ahead(row, stage))
        once.reads = once.steady_reads = &reads;
    once.steady_from = "";
    Index at = stage_index(row, stage, tree_number(row->e->arena, 0));
    Outputs outputs = stage_outputs(&once, stage, &at);
    introduce(row, stage);
    write_cases(&once, &outputs, NULL, "");
    write_reads_of_row(row, &reads);
    const char *head = row->e->dialect->once ? row->e->dialect->once(row) : NULL;
    if (head) {
        write_block(row->out, head, &lines);
        return;
    }
    write_all(row->out, &lines);
    for (int k = 0; k < once.names.taken.count; k++) /* its locals are the row's, which declares others behind them */
        names_take(&row->names, once.names.taken.at[k]);
}

/* `n` is computed from a product of the stage that is not kept, or from one before it is. */
static bool reads_product(const Kernel *kernel, const Stage *stage, const Node *n, bool *seen) {
    if (seen[n->id] || contains(stage->vectors.at, stage->vectors.count, n))
        return false;
    seen[n->id] = true;
    if (contains(stage->contractions.at, stage->contractions.count, n))
        return true;
    bool computed = contains(kernel->nodes.at, kernel->nodes.count, n) && n->op->cls == OP_MAP;
    for (int k = 0; k < n->inputs; k++)
        if ((computed || n->op->cls == OP_VIEW) && reads_product(kernel, stage, n->in[k], seen))
            return true;
    return false;
}

/* Products whose results are kept can be done by all threads together, before the folds that read them. */
static bool folds_come_after(const Emitter *e, const Kernel *kernel, const Stage *stage) {
    bool *seen = NEW_ARRAY(e->arena, bool, program_of(e, kernel)->graph->nodes.count);
    for (int k = 0; k < stage->reduces.count; k++)
        if (reads_product(kernel, stage, stage->reduces.at[k]->in[0], seen))
            return false;
    return stage->contractions.count > 0 && stage->reduces.count > 0;
}

static void write_loop_stage(Body *row, const Stage *stage) {
    if (folds_come_after(row->e, row->kernel, stage)) {
        Stage products = *stage, folds = {.domain = stage->domain, .inner = stage->inner};
        products.reduces.count = 0;
        memcpy(&folds.reduces, &stage->reduces, sizeof folds.reduces);
        write_loop_stage(row, &products);
        write_loop_stage(row, &folds);
        return;
    }
    const Dialect *dialect = row->e->dialect;
    introduce(row, stage);
    const char **folds = NEW_ARRAY(row->e->arena, const char *, stage->reduces.count);
    bool lone_product = stage->contractions.count == 1 && stage->reduces.count == 0;
    declare_folds(row, stage, folds);
    if (!lone_product || !dialect->product(row, stage, stage_extent(row->e, stage)))
        write_elements(row, stage, folds);
    finish_folds(row, stage, folds);
    row->apart = stage->reduces.count == 0; /* who folds meets: lanes of a warp, too, read and write in their order */
    for (int k = 0; k < stage->vectors.count; k++)
        body_know_vector(row, stage->vectors.at[k], vector_name(row, stage->vectors.at[k]), stage->inner);
    if (stage->vectors.count)
        meet(row);
}

static void claim_vectors(Body *row) {
    const Kernel *kernel = row->kernel;
    Arena *arena = row->e->arena;
    for (int s = 0; s < kernel->stages.count; s++) {
        const Stage *stage = &kernel->stages.at[s];
        for (int k = 0; k < stage->vectors.count; k++) {
            const Node *n = stage->vectors.at[k];
            const char *name = names_claim(&row->names, local_name(arena, n));
            VEC_PUSH(arena, &row->vectors, ((RowVector){n, name, stage_extent(row->e, stage), stage->inner}));
        }
    }
}

Shape row_shape(Emitter *e, const Kernel *kernel) {
    const Stage *stage = &kernel->stages.at[0];
    Shape domain = stage_domain(e, stage);
    return axes_where(&domain, stage->inner, false);
}

const char *row_count(Emitter *e, const Kernel *kernel) {
    Shape kept = row_shape(e, kernel);
    return shape_product(e->arena, &kept, 0, kept.type.rank);
}

static void write_stages(Body *row) {
    Writer *out = row->out, stages = writer_like(out), ahead = writer_like(out);
    row->out = &stages;
    row->ahead = &ahead;
    for (int s = 0; s < row->kernel->stages.count; s++) {
        const Stage *stage = &row->kernel->stages.at[s];
        if (stage->inner && row->kernel->at_once > 1)
            write_sum_of_rows(row, stage);
        else if (stage->inner)
            write_loop_stage(row, stage);
        else
            write_once(row, stage);
    }
    row->out = out;
    write_all(out, &ahead);
    write_all(out, &stages);
    if (row->chains) {
        Shape shape = row_shape(row->e, row->kernel);
        chains_resolve(row, &shape, row->out);
    }
}

/* ---- a row in shared memory ---- */

const char *held_extent(Emitter *e, const Kernel *kernel) {
    Shape shape = sizes_shape(e->sizes, kernel->held);
    int rows = kernel_row_axes(kernel, &shape.type);
    return shape_product(e->arena, &shape, rows, shape.type.rank - rows);
}

static HeldRow claim_held(Body *row) {
    Emitter *e = row->e;
    const Kernel *kernel = row->kernel;
    Shape shape = sizes_shape(e->sizes, kernel->held);
    int axes = kernel_row_axes(kernel, &shape.type), inner = shape.type.rank - axes;
    Shape rows = shape_slice(&shape, 0, axes);
    Index first = index_linear(&rows, row_counter(e->arena, kernel));
    index_push(&first, inner, tree_number(e->arena, 0));
    const char *name = names_claim(&row->names, arena_printf(e->arena, "%s_row", local_name(e->arena, kernel->held)));
    const Tree *element = stored_element(e, kernel->held, &first);
    body_know_vector(row, kernel->held, name, ((1u << inner) - 1) << axes);
    return (HeldRow){.name = name,
                     .stages = names_claim(&row->names, "stages"),
                     .type = c_type(e, kernel->held->type.dtype),
                     .extent = held_extent(e, kernel),
                     .bytes = "wanted_bytes",
                     .address = body_text(row, element_address(e->arena, element))};
}

/* The stages as a function of where the row is held. */
static void write_held(Body *row) {
    HeldRow held = claim_held(row);
    Writer *out = row->out, stages = writer_like(out);
    row->out = &stages;
    write_stages(row);
    row->out = out;
    row->e->dialect->hold(&held, &stages, out);
}

/* ---- kernels ---- */

void write_rows(Body *kernel) {
    Arena *arena = kernel->e->arena;
    const Dialect *dialect = kernel->e->dialect;
    Writer lines = writer_like(kernel->out);
    Body row = body_inside(kernel, &lines, NULL, NULL);
    Writer before_gate = writer_like(kernel->out), first = writer_like(kernel->out);
    Reads per_row = {0};
    row.per_row = &per_row;
    if (kernel->kernel->lanes == 1)
        claim_per_row(&row);
    depend_on_row(&row, &row);
    if (dialect->schedules && every_row_exists(kernel->kernel))
        row.before_gate = &before_gate;
    Chains chains = {0};
    row.chains = &chains;
    row.written = NEW_ARRAY(arena, bool, program_of(kernel->e, kernel->kernel)->graph->nodes.count);
    claim_vectors(&row);
    if (row.vectors.count)
        dialect->row_vectors(&row, row.vectors.at, row.vectors.count);
    if (kernel->kernel->held)
        write_held(&row);
    else
        write_stages(&row);
    write_per_row(&row, &first);
    write_all(&first, dialect->schedules ? &before_gate : &lines);
    row.before_gate = &first;
    dialect->rows(&row, row_count(kernel->e, kernel->kernel), dialect->schedules ? &lines : &first, kernel->out);
}
