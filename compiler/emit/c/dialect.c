/* C with OpenMP. Every thread of the team runs the whole step; loops over tiles and rows are shared among them. */
#include "emit/c/phases.h"
#include "emit/c/places.h"
#include "emit/kernel/exchanges.h"
#include "emit/kernel/function.h"
#include "emit/kernel/kernel_text.h"
#include "emit/kernel/library.h"
#include "emit/kernel/tensors.h"

const char *c_arguments(Emitter *e, const Function *f, const char *tensors, const char *batch, const char *none) {
    const bool *has = f->has;
    if (!has[PARAMETER_TENSORS] && !has[PARAMETER_BATCH])
        return none;
    return arena_printf(e->arena, "%s%s%s", has[PARAMETER_TENSORS] ? tensors : "",
                        has[PARAMETER_TENSORS] && has[PARAMETER_BATCH] ? ", " : "", has[PARAMETER_BATCH] ? batch : "");
}

static bool stores_bytes(const Module *module) {
    return module->quantized.count || module->precision == PRECISION_FP8;
}

/* To C, a byte that is stored can be a part of anything: every pointer and number would be read anew behind it, and no loop become
 * vector code, if it did not say that these are read and written by nobody else. */
const char *c_parameters(Emitter *e, const Function *f, const char *type, const char *none) {
    const char *sole = stores_bytes(e->module) ? e->dialect->sole : "";
    return c_arguments(e, f, arena_printf(e->arena, "const %s *%st", type, sole),
                       arena_printf(e->arena, "const Batch *%sbatch", sole), none);
}

/* ---- sections ---- */

static const char *execution(const Emitter *e) {
    (void)e;
    return "How it runs: every OpenMP thread runs the whole step and takes its share of each kernel's loop. Phases run "
           "one after the other, with a barrier between them; in a phase, a thread that is done with one kernel goes "
           "on "
           "to the next without waiting.";
}

static void includes(Emitter *e, Writer *out) {
    const Include files[] = {
        {"cpu/batch.h", "row: the example in a row of the batch; share: its part in a mean", true},
        {"cpu/math.h", "exp, relu, sigmoid ... of a real", true},
        {"cpu/float8.h", "e4m3: numbers of 8 bits; to_e4m3", e->module->precision == PRECISION_FP8},
        {"cpu/matmul.h", "matmul(sums, stride, left, right, i0, j0, rows, columns, depth)", true},
        {"cpu/matmul_i8.h", "matmul_i8: the same of integers of 8 bits; to_i8", e->module->quantized.count},
        {"cpu/team.h", "the barrier between phases, subnormal numbers", true},
        {"cpu/shard.h", "the shards of a batch, and their sums", e->module->shards},
        {"cpu/part.h", "the elements of this process, of those that several share", e->plan->flat.bytes > 0},
    };
    write_line(out, "#include \"mtc.h\" // the runtime: data, command line, checkpoints\n");
    write_line(out, "typedef %s real;\n", e->options->f64 ? "double" : "float");
    write_includes(e, files, sizeof files / sizeof *files, out);
}

/* A second thread halves a phase's work, and costs a barrier: about a microsecond, or 50 where it must wait for a processor.
 * Measured with two threads instead of one, on a quiet machine: a step of 1 kFLOP takes 8.4 us instead of 6.1, one of
 * 1.1 MFLOP 78 instead of 122. */
static const char *parallel(const Program *program) {
    const double small = 2e5; /* operations and bytes: some 20 us on one thread */
    return program_flops(program) + program_bytes(program) < small
               ? "#pragma omp parallel num_threads(1) // a second thread would save less than waiting for it costs"
               : "#pragma omp parallel";
}

static void write_train(const char *region, Writer *out) {
    write_line(out,
               "static const char *train(const MtcRun *run, int64_t steps) {\n"
               "    Tensors t = tensors(run);\n"
               "    Team team = TEAM_READY;\n"
               "%s\n"
               "    {\n"
               "        FloatMode before = flush_subnormals();\n"
               "        for (int64_t s = 0; s < steps; s++) {\n"
               "            Batch batch = batch_of_step(run, s, BATCH, REPORTS);\n"
               "            train_phases(&t, &batch, &team, TRAIN_PHASES);\n"
               "        }\n"
               "        set_float_mode(before);\n"
               "    }\n"
               "    for (int k = 0; k < 3; k++)\n"
               "        run->clock[k] += steps;\n"
               "    return NULL;\n"
               "}\n",
               region);
}

/* A function that runs something in a parallel region once `batch` is there. */
static void write_region(const char *head, const char *batch, const char *region, const char *body, Writer *out) {
    write_line(out,
               "%s {\n"
               "    Tensors t = tensors(run);\n"
               "    Batch batch = %s;\n"
               "    Team team = TEAM_READY;\n"
               "%s\n"
               "    {\n"
               "        FloatMode before = flush_subnormals();\n"
               "%s\n"
               "        set_float_mode(before);\n"
               "    }\n"
               "    return NULL;\n"
               "}",
               head, batch, region, body);
}

static const char *const batch_of_shard = "batch_of_shard(run, BATCH, WHOLE_BATCH, REPORTS)";

static void write_shard(const char *region, Writer *out) {
    write_line(out, "// the gradients of the shard that the clock shows");
    write_region("static const char *train_shard(const MtcRun *run)", batch_of_shard, region,
                 "        train_phases(&t, &batch, &team, TRAIN_PHASES);", out);
    write_blank(out);
}

/* Of a shard that stops for sums over all of them. */
static void write_between(Emitter *e, const char *region, Writer *out) {
    write_exchanges(e, out);
    write_line(out, "// phases from .. to - 1 of the shard that the clock shows");
    write_region("static const char *train_between(const MtcRun *run, int from, int to)", batch_of_shard, region,
                 "        train_phases(&t, &batch, &team, from, to);", out);
    write_blank(out);
}

static void step_section(Emitter *e, Writer *out) {
    const Program *train = e->programs[PROGRAM_TRAIN];
    const bool shards = e->module->shards;
    const char *region = parallel(train), *batch = shards ? batch_of_shard : "batch_of_step(run, 0, BATCH, REPORTS)";
    const bool stops = plan_exchanges(e->plan);
    if (stops)
        write_between(e, region, out);
    else if (shards)
        write_shard(region, out);
    else
        write_train(region, out);
    write_line(out, shards ? "// phases 0 .. phase of one shard" : "// phases 0 .. phase of one step");
    write_region("static const char *train_until(const MtcRun *run, int phase)", batch, region,
                 stops ? "        train_phases(&t, &batch, &team, 0, phase + 1);"
                       : "        train_phases(&t, &batch, &team, phase + 1);",
                 out);
    write_blank(out);
    write_region("static const char *run_kernel(const MtcRun *run, int kernel, int64_t times)", batch, region,
                 "        for (int64_t n = 0; n < times; n++) {\n"
                 "            train_kernel(&t, &batch, kernel);\n"
                 "            team_wait(&team);\n"
                 "        }",
                 out);
    write_line(out, "\n"
                    "static const char *prepare(const MtcRun *run) {\n"
                    "    (void)run;\n"
                    "    return NULL;\n"
                    "}\n"
                    "\n"
                    "static void release(void) {\n"
                    "}");
}

/* A function that runs a program for some examples, with these parameters; `examples`: which they are, and where their
 * reports go. */
static void write_run(const Program *program, const char *name, const char *parameters, const char *examples,
                      Writer *out) {
    Arena *arena = program->arena;
    const char *prefix = program->prefix, *phases = names_upper(arena, prefix);
    write_blank(out);
    write_region(arena_printf(arena, "static const char *%s(const MtcRun *run%s)", name, parameters),
                 arena_printf(arena, "batch_of_examples(run, %s, REPORTS)", examples), parallel(program),
                 arena_printf(arena, "        %s_phases(&t, &batch, &team, %s_PHASES);", prefix, phases), out);
}

static void evaluation(Emitter *e, Writer *out) {
    write_run(e->programs[PROGRAM_EVAL], "evaluate", ", int64_t first, int64_t rows, int64_t slot", "first, rows, slot",
              out);
}

static void measuring(Emitter *e, Writer *out) {
    write_run(plan_program(e->plan, e->module->measure), "measure", ", int64_t first, int64_t rows", "first, rows, 0",
              out);
}

static void decoding(Emitter *e, Writer *out) {
    write_run(plan_program(e->plan, e->module->decode), "decode", "", "0, 1, 0", out);
}

static void texts(Emitter *e, Writer *out) {
    write_run(plan_program(e->plan, e->module->texts), "decode_texts", "", "0, 1, 0", out);
}

static void prefilling(Emitter *e, Writer *out) {
    write_run(plan_program(e->plan, e->module->prefill), "prefill", "", "0, 1, 0", out);
}

static void watching(Emitter *e, Writer *out) {
    const Program *program = plan_program(e->plan, e->module->watch);
    write_blank(out);
    write_region("static const char *watch(const MtcRun *run)", "batch_of_step(run, 0, BATCH, REPORTS)",
                 parallel(program), "        watch_phases(&t, &batch, &team, WATCH_PHASES);", out);
}

static void updating(Emitter *e, Writer *out) {
    const Program *update = plan_program(e->plan, e->module->update);
    write_line(out,
               "\n// once the sums are those of all shards\n"
               "static const char *update(const MtcRun *run) {\n"
               "    Tensors t = tensors(run);\n"
               "    Batch batch = batch_of_step(run, 0, WHOLE_BATCH, REPORTS);\n"
               "    Team team = TEAM_READY;\n"
               "%s\n"
               "    {\n"
               "        FloatMode before = flush_subnormals();\n"
               "        update_phases(&t, &batch, &team, UPDATE_PHASES);\n"
               "        set_float_mode(before);\n"
               "    }\n"
               "    for (int k = 0; k < 3; k++)\n"
               "        run->clock[k]++;\n"
               "    return NULL;\n"
               "}\n"
               "\n"
               "static const char *add_sums(void *to, const void *from, int64_t count) {\n"
               "    add_reals(to, from, count);\n"
               "    return NULL;\n"
               "}",
               parallel(update));
}

/* ---- products ---- */

/* "(Axis){CONV1_0, 3, 1, 1, 0, 1}": outputs, taps, stride, dilation, pad, spread. */
static const char *axis_text(Emitter *e, const Shape *windows, const Attr *attr, int along) {
    const Sweep *sweep = &attr->sweep[along];
    return arena_printf(e->arena, "(Axis){%s, %s, %d, %d, %d, %d}", shape_symbol(e->arena, windows, 1 + along),
                        shape_symbol(e->arena, windows, 3 + along), (int)sweep->stride, (int)sweep->dilation,
                        (int)sweep->pad, (int)sweep->spread);
}

/* "window(t->x, X_0, X_1, X_2, (Axis){...}, (Axis){...})" */
static const char *window_text(Emitter *e, const Node *view, const char *at) {
    Shape windows = sizes_shape(e->sizes, view), images = sizes_shape(e->sizes, view->in[0]);
    return arena_printf(e->arena, "window(%s, %s, %s, %s, %s, %s)", at, shape_symbol(e->arena, &images, 1),
                        shape_symbol(e->arena, &images, 2), shape_symbol(e->arena, &images, 3),
                        axis_text(e, &windows, &view->attr, 0), axis_text(e, &windows, &view->attr, 1));
}

/* "filter(t->conv_weight, CONV, 3 * 3, X_2)" */
static const char *filter_text(Emitter *e, const Node *view, const char *at) {
    Shape filters = sizes_shape(e->sizes, view->in[0]);
    return arena_printf(e->arena, "filter(%s, %s, %s, %s)", at, shape_symbol(e->arena, &filters, 0),
                        shape_product(e->arena, &filters, 1, 2), shape_symbol(e->arena, &filters, 3));
}

/* "transposed(matrix(t->h_weight, IMAGE))" */
static const char *operand_text(Emitter *e, const Operand *operand) {
    Shape shape = sizes_shape(e->sizes, operand->value);
    int rank = shape.type.rank;
    const char *at = arena_printf(e->arena, "t->%s", tensor_name(e, plan_buffer(e->plan, operand->buffer)));
    const char *text;
    switch (operand->kind) {
    case OPERAND_WINDOW: text = window_text(e, operand->view, at); break;
    case OPERAND_FILTER: text = filter_text(e, operand->view, at); break;
    default: text = arena_printf(e->arena, "matrix(%s, %s)", at, shape_symbol(e->arena, &shape, rank - 1));
    }
    if (operand->batched)
        text = arena_printf(e->arena, "rows_from(%s, b * %s)", text,
                            tree_text_at(e->arena, shape.size[rank - 2], PREC_UNARY));
    return operand->transposed ? arena_printf(e->arena, "transposed(%s)", text) : text;
}

/* The sums over k of one operand, by the tiles of the first column (or row). */
static void write_side(Body *tile, Writer *out) {
    Emitter *e = tile->e;
    const Kernel *k = tile->kernel;
    const char *line = k->side_of_b ? "j" : "i", *name = k->side_of_b ? "column_sums" : "row_sums";
    const char *head = arena_printf(e->arena, "for (int %s = %s0; %s < %s0 + %s; %s++)", line, line, line, line,
                                    k->side_of_b ? "columns" : "rows", line);
    Writer all = writer_like(out), sums = writer_like(out), terms = writer_like(out), lines = writer_like(out);
    Body body = body_inside(tile, &lines, line, NULL), term = body_inside(tile, &terms, line, "k");
    Index at = product_index(e, k), depth = index_along(tree_name(e->arena, "k")),
          operand = operand_index(e, k->contraction, k->side_of_b, &at, &depth);
    const char *value = body_text(&term, body_expression(&term, k->contraction->in[k->side_of_b], &operand));
    write_line(&terms, "%s[%s - %s0] += %s;", name, line, line, value);
    write_block(&sums, head, &terms);
    write_line(&lines, "%s sum = %s[%s - %s0];", e->dialect->real, name, line, line);
    Outputs outputs = side_outputs(&body, k);
    body_write(&body, &outputs);
    write_line(&all, "%s %s[%s] = {0};", e->dialect->real, name, k->side_of_b ? "COLUMNS" : "ROWS");
    write_block(&all, arena_printf(e->arena, "for (int k = 0; k < %s; k++)", product_depth(e, k->contraction)), &sums);
    write_block(&all, head, &lines);
    write_block(out, arena_printf(e->arena, "if (%s0 == 0)", k->side_of_b ? "i" : "j"), &all);
}

static const char *sum_type(const Body *tile) {
    return c_type(tile->e, tile->kernel->contraction->type.dtype);
}

static void write_epilogue(Body *tile, Writer *out) {
    Writer lines = writer_like(out);
    Body body = body_inside(tile, &lines, "i", "j");
    body.above = NULL; /* a loop over the terms of a sum would keep that over j from being one over vectors */
    write_line(&lines, "%s sum = sums[(i - i0) * COLUMNS + j - j0];", sum_type(tile));
    Outputs outputs = product_outputs(&body, tile->kernel);
    body_write(&body, &outputs);
    write_open(out, "for (int i = i0; i < i0 + rows; i++)");
    write_block(out, "#pragma omp simd\nfor (int j = j0; j < j0 + columns; j++)", &lines);
    out->indent--;
}

/* "int rows = M - i0 < ROWS ? M - i0 : ROWS;", or what it is in all tiles: short loops over a number that is known are vector code. */
static void write_extent(Writer *out, const char *lines, const char *begin, const char *most, const char *size,
                         int64_t extent, int64_t tile) {
    if (extent > tile && extent % tile)
        write_line(out, "int %s = %s - %s < %s ? %s - %s : %s;", lines, size, begin, most, size, begin, most);
    else
        write_line(out, "int %s = %s;", lines, extent < tile ? size : most);
}

/* In the loops over tiles: what depends on `b` alone is read here, once for all of the tile. */
static void write_tile(Body *tile, const char *m, const char *n) {
    const Kernel *k = tile->kernel;
    Emitter *e = tile->e;
    Writer *out = tile->out;
    write_line(out, "%s sums[ROWS * COLUMNS];", sum_type(tile));
    write_extent(out, "rows", "i0", "ROWS", m, k->m, k->tile.m);
    write_extent(out, "columns", "j0", "COLUMNS", n, k->n, k->tile.n);
    if (k->a.kind == OPERAND_WINDOW || k->b.kind == OPERAND_WINDOW)
        write_line(out, "// Axis: outputs, taps, stride, dilation, pad, spread");
    write_line(out, "Matrix left = %s;", operand_text(e, &k->a));
    write_line(out, "Matrix right = %s;", operand_text(e, &k->b));
    write_line(out, "%s(sums, COLUMNS, left, right, i0, j0, rows, columns, %s);",
               k->a.value->type.dtype == DT_I8 ? "matmul_i8" : "matmul", product_depth(e, k->contraction));
    write_epilogue(tile, out);
    if (k->side)
        write_side(tile, out);
}

/* Threads ask for long tiles, one at a time: nobody waits for one that others keep from its core. For short ones, asking would take long. */
static const char *schedule_text(const Kernel *k) {
    static const double long_tile = 2e6; /* operations: some 20 us */
    return k->flops >= long_tile * (double)k->tiles ? "schedule(dynamic) " : "";
}

static void contract(Body *kernel) {
    const Kernel *k = kernel->kernel;
    Shape shape = sizes_shape(kernel->e->sizes, k->contraction);
    int rank = shape.type.rank;
    Writer lines = writer_like(kernel->out);
    lines.indent = 0;
    Body tile = body_inside(kernel, &lines, k->batches > 1 ? "b" : NULL, NULL);
    Arena *arena = kernel->e->arena;
    const char *m = shape_symbol(arena, &shape, rank - 2), *n = shape_symbol(arena, &shape, rank - 1);
    write_tile(&tile, m, n);
    Writer *out = kernel->out;
    write_line(out, "enum { ROWS = %d, COLUMNS = %d };", k->tile.m, k->tile.n);
    write_line(out, "#pragma omp for collapse(%d) %snowait", k->batches > 1 ? 3 : 2, schedule_text(k));
    if (k->batches > 1)
        write_open(out, "for (int b = 0; b < %s; b++)", shape_product(arena, &shape, 0, rank - 2));
    write_open(out, "for (int i0 = 0; i0 < %s; i0 += ROWS)", m);
    write_block(out, arena_printf(arena, "for (int j0 = 0; j0 < %s; j0 += COLUMNS)", n), &lines);
    out->indent -= k->batches > 1 ? 2 : 1;
}

/* ---- calls of the library ---- */

static void library(Body *kernel) {
    const OpDef *op = kernel->kernel->call->op;
    const char *head = arena_printf(kernel->e->arena, "const %s shape = {", op->call->shape);
    const char *members = library_shape(kernel->e, kernel->kernel, true);
    bool fits = strlen("    ") + strlen(head) + strlen(members) + strlen("};") <= LONGEST_LINE;
    write_line(kernel->out, "%s%s%s};", head, fits ? "" : "\n    ", members);
    write_line(kernel->out, "%s(&shape, %s);", op->name, library_arguments(kernel->e, kernel->kernel));
}

/* ---- rows ---- */

/* Of a flat weight, the elements that are the process's own. */
static void write_own_elements(Body *row, const Buffer *flat, const char *count, const Writer *lines, Writer *out) {
    const long long place = (flat->offset - row->e->plan->flat.weights) / row->e->plan->real_bytes;
    const char *first = names_claim(&row->names, "first"), *end = names_claim(&row->names, "end");
    write_line(out, "int %s = own_first(t->part_begin, %lld), %s = own_end(t->part_end, %lld, %s);", first, place, end,
               place, count);
    write_block(out,
                arena_printf(row->e->arena, "#pragma omp for simd nowait\nfor (int i = %s; i < %s; i++)", first, end),
                lines);
}

static void rows(Body *row, const char *rows, const Writer *lines, Writer *out) {
    const Buffer *flat = flat_of_kernel(row->e, row->kernel);
    if (flat) {
        write_own_elements(row, flat, rows, lines, out);
    } else if (row->kernel->rows == 1) {
        bool braces = !is_one_statement(lines);
        write_line(out, "#pragma omp single nowait%s", braces ? "\n{" : "");
        out->indent += braces;
        write_all(out, lines);
        if (braces)
            write_close(out, "}");
    } else {
        write_line(out, "#pragma omp for nowait");
        const char *type = index_type(row_counter(row->e->arena, row->kernel));
        write_block(out, arena_printf(row->e->arena, "for (%s i = 0; i < %s; i++)", type, rows), lines);
    }
}

static void row_vectors(Body *row, const RowVector *vectors, int count) {
    for (int k = 0; k < count; k++)
        write_line(row->out, "%s %s[%s];", c_type(row->e, vectors[k].node->type.dtype), vectors[k].name,
                   vectors[k].extent);
}

static const char *loop_over(Arena *arena, const Tree *variable, const char *extent) {
    const char *v = variable->text;
    return arena_printf(arena, "for (%s %s = 0; %s < %s; %s++)", index_type(variable), v, v, extent, v);
}

static const char *loop(const Body *row, const Stage *stage, const Tree *variable) {
    return loop_over(row->e->arena, variable, stage_extent(row->e, stage));
}

/* Partial sums in the lanes of a vector: as many for any number of threads. */
static void sum(Body *element, const char *name) {
    write_line(element->out, "#pragma omp simd reduction(+ : %s)", name);
}

/* When neighbouring outputs read neighbouring numbers, the loop over them comes inside, where it becomes vector code:
 *
 *     for k: for j: sums[j] += a[k] * b[k, j]                                                                        */
static bool product(Body *row, const Stage *stage, const char *extent) {
    const Node *n = stage->contractions.at[0];
    if (n->attr.tb)
        return false;
    Emitter *e = row->e;
    Writer terms = writer_like(row->out), outer = writer_like(row->out), lines = writer_like(row->out);
    const char *sums = names_claim(&row->names, "totals");
    Body term = body_inside(row, &terms, "j", "k"), element = body_inside(row, &lines, "j", NULL);
    const Tree *j = tree_name(e->arena, "j"), *k = tree_name(e->arena, "k");
    Index at = stage_index(row, stage, j);
    const char *factors = body_text(&term, product_term(&term, n, &at));
    write_line(&terms, "%s[j] += %s;", sums, factors);
    write_line(row->out, "%s %s[%s] = {0};", e->dialect->real, sums, extent);
    write_block(&outer, loop_over(e->arena, j, extent), &terms);
    write_block(row->out, loop_over(e->arena, k, product_depth(e, n)), &outer);
    body_know_vector(&element, n, sums, stage->inner);
    Outputs outputs = stage_outputs(&element, stage, &at);
    body_write(&element, &outputs);
    write_block(row->out, loop_over(e->arena, j, extent), &lines);
    return true;
}

const Dialect dialect_c = {
    .name = "cpu",
    .execution = execution,
    .includes = includes,
    .tensors = write_tensors,
    .function = write_c_function,
    .phases = write_c_phases,
    .long_sum = write_sum_of_array,
    .step = step_section,
    .evaluation = evaluation,
    .measuring = measuring,
    .decoding = decoding,
    .texts = texts,
    .prefilling = prefilling,
    .updating = updating,
    .watching = watching,
    .member = "t->",
    .report = "batch->reports",
    .real = "real",
    .named = "static const",
    .header = "cpu/%s.h",
    .null = "NULL",
    .sole = "restrict ",
    .defines = defined_in_c,
    .defines_kernel = defined_in_c,
    .stored_condition = "truth($0)",
    .contract = contract,
    .library = library,
    .nest = write_nest,
    .rows = rows,
    .row_vectors = row_vectors,
    .loop = loop,
    .sum = sum,
    .product = product,
};
