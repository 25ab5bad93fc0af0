/* Sums of products with windows of images, by threads with patches of outputs. The factors, and what becomes of the sums, are
 * callbacks: at an image, a line and a column of it, and the thread's channels. */
#include "emit/cuda/patch.h"

#include "emit/cuda/product.h"
#include "emit/kernel/function.h"

enum { IMAGE_AXES = 4, TAP_AXES = 2 };

/* ---- indices ---- */

static const Tree *named(const Emitter *e, const char *name) {
    return tree_name(e->arena, name);
}

/* [image, line, column, channel] */
static Index pixel_index(const Emitter *e, const Tree *image) {
    Index at = index_along(image);
    index_push(&at, 1, named(e, "line"));
    index_push(&at, 1, named(e, "column"));
    index_push(&at, 1, named(e, "channel"));
    return at;
}

/* What a factor is the same along has no index: [image, line, column, 0, 0, channel], [0, 0, 0, tap, channel]. */
static Index factor_index(const Emitter *e, const Tree *image) {
    Index at = {0};
    if (image) {
        index_push(&at, 1, image);
        index_push(&at, 1, named(e, "line"));
        index_push(&at, 1, named(e, "column"));
    } else {
        index_push(&at, 3, tree_number(e->arena, 0));
    }
    index_push(&at, TAP_AXES, image ? tree_number(e->arena, 0) : named(e, "tap"));
    index_push(&at, 1, named(e, "channel"));
    return at;
}

/* ---- callbacks ---- */

static const char *pack_type(const Body *body) {
    return body_pack_type(body, DT_F32, body->kernel->lanes);
}

static Body body_of_pack(Body *row, Writer *lines, const char *variable, const char *variable_2) {
    Body body = body_inside(row, lines, variable, variable_2);
    body.lanes = row->kernel->lanes;
    body.along = "channel";
    return body;
}

/* "auto pixel = [&](int line, int column) { ... return x; };", whatever is the same for all its calls before it. */
static void write_factor(Body *row, const char *name, const char *head, Body *body, const Node *n, const Index *at) {
    Outputs outputs = {0};
    VEC_PUSH(row->e->arena, &outputs, ((Output){.node = n, .at = *at}));
    body_write(body, &outputs);
    write_lambda(row->out, arena_printf(row->e->arena, "auto %s = [&](%s)", name, head), body->out);
}

static void write_image(Body *row, const char *name, const char *head, const Node *seen, const Tree *image) {
    Writer lines = writer_like(row->out);
    Body body = body_of_pack(row, &lines, "line", "column");
    body.variables[2] = row->kernel->patch.packs ? "n" : NULL;
    const Index at = pixel_index(row->e, image);
    write_factor(row, name, head, &body, seen, &at);
}

/* What all outputs read is read once. */
static void write_steady(Body *row, const Reads *reads) {
    for (int k = 0; k < reads->count; k++) {
        const Read *read = &reads->at[k];
        const DType dtype = read->node->type.dtype;
        const char *type = read->lanes ? body_pack_type(row, dtype, read->lanes) : c_type(row->e, dtype);
        write_line(row->out, "%s %s = %s;", type, read->name, body_text(row, read->value));
        names_take(&row->names, read->name);
    }
}

/* What is stored of each output: the sum, and maps of it. */
static const char *write_results(Body *row) {
    Emitter *e = row->e;
    const Kernel *kernel = row->kernel;
    Writer lines = writer_like(row->out);
    Body body = body_of_pack(row, &lines, "line", "column");
    Reads reads = {0}, steady = {0};
    body.reads = &reads;
    body.read_from = "ahead.";
    body.steady_reads = &steady;
    body.steady_from = "";
    body.varying[0] = "line";
    body.varying[1] = "column";
    body_know(&body, kernel->patch.sum, lane_of_pack(e->arena, named(e, "sum")));
    Outputs outputs = {0};
    const Index at = pixel_index(e, named(e, "image"));
    for (int k = 0; k < kernel->stores.count; k++)
        output_store(&body, kernel->stores.at[k], &at, &outputs);
    body_write(&body, &outputs);
    write_steady(row, &steady);
    const char *head = arena_printf(e->arena, "auto out = [&](int line, int column, const %s &sum", pack_type(row));
    if (!reads.count) {
        write_lambda(row->out, arena_printf(e->arena, "%s)", head), &lines);
        return "out";
    }
    write_reads(e, "Ahead", "read", "int line, int column", &reads, row->out);
    write_lambda(row->out, arena_printf(e->arena, "%s, const Ahead &ahead)", head), &lines);
    return "preloaded(read, out)";
}

/* ---- kernels ---- */

/* "Patch<H_ROWS, H_COLUMNS, Rows, Columns, 2, 4>", the axes being said before. */
static void write_patch_type(Body *kernel) {
    Emitter *e = kernel->e;
    const Patch *patch = &kernel->kernel->patch;
    const Shape windows = sizes_shape(e->sizes, patch->windows), images = sizes_shape(e->sizes, patch->windows->in[0]);
    const Sweep *sweep = patch->windows->attr.sweep;
    write_line(kernel->out, "// outputs, taps, stride, dilation, pad, spread");
    const char *rows = write_axis(kernel, "Rows", &windows, &sweep[0], 1);
    const char *columns = write_axis(kernel, "Columns", &windows, &sweep[1], 2);
    write_line(kernel->out, "using Patches = Patch<%s, %s, %s, %s, %d, %d>;", shape_symbol(e->arena, &images, 1),
               shape_symbol(e->arena, &images, 2), rows, columns, patch->down, patch->across);
}

static const char *channels_of(Emitter *e, const Kernel *kernel) {
    const Shape windows = sizes_shape(e->sizes, kernel->patch.windows);
    return shape_symbol(e->arena, &windows, 5);
}

static void write_all_equations(Body *row) {
    row->written = NEW_ARRAY(row->e->arena, bool, program_of(row->e, row->kernel)->graph->nodes.count);
    for (int s = 0; s < row->kernel->stages.count; s++)
        write_stage_equations(row, &row->kernel->stages.at[s], row->out);
}

/* Returns the callbacks of both factors. */
static const char *write_products(Body *row) {
    const Patch *patch = &row->kernel->patch;
    write_image(row, "pixel", "int line, int column", patch->windows->in[0], named(row->e, "image"));
    Writer lines = writer_like(row->out);
    Body weight = body_of_pack(row, &lines, "tap", NULL);
    const Index at = factor_index(row->e, NULL);
    write_factor(row, "weight", "int tap", &weight, patch->factor, &at);
    return "pixel, weight";
}

/* "sum[v] += x;", of a choice between x and 0 "if (c) sum[v] += x;" */
static Output term_output(Body *body, const Node *sum) {
    const Node *value = sum->in[0];
    const bool chooses = value->op->prec == PREC_COND;
    return (Output){.node = chooses ? value->in[1] : value,
                    .condition = chooses ? value->in[0] : NULL,
                    .at = factor_index(body->e, NULL),
                    .to = lane_of_pack(body->e->arena, named(body->e, "sum")),
                    .fold = sum};
}

/* Returns the callbacks of what is seen, and of a term. */
static const char *write_terms(Body *row) {
    static const char *const names[MOST_SEEN] = {"seen", "seen_2"};
    const Patch *patch = &row->kernel->patch;
    Arena *arena = row->e->arena;
    Writer lines = writer_like(row->out);
    Body term = body_of_pack(row, &lines, "tap", NULL);
    Text head = TEXT(arena);
    text_puts(&head, "auto term = [&](int tap, ");
    int count = 0;
    for (; count < MOST_SEEN && patch->seen[count]; count++) {
        const Node *seen = patch->seen[count];
        write_image(row, names[count], "int line, int column", seen->in[0], named(row->e, "image"));
        body_know(&term, seen, lane_of_pack(arena, named(row->e, names[count])));
        text_printf(&head, "const %s &%s, ", body_pack_type(row, seen->type.dtype, patch->lanes), names[count]);
    }
    Outputs outputs = {0};
    VEC_PUSH(arena, &outputs, term_output(&term, patch->sum));
    body_write(&term, &outputs);
    text_printf(&head, "%s &sum)", pack_type(row));
    write_lambda(row->out, text_string(&head), &lines);
    return count > 1 ? "both_images(seen, seen_2), term" : "seen, term";
}

static void write_over_taps(Body *row) {
    Emitter *e = row->e;
    const Patch *patch = &row->kernel->patch;
    Writer *out = row->out;
    const char *packs = arena_printf(e->arena, "(%s / %d)", channels_of(e, row->kernel), patch->lanes);
    const Shape windows = sizes_shape(e->sizes, patch->windows);
    write_line(out, "int i = tile * THREADS + threadIdx.x, patch = i / %s %% Patches::count;", packs);
    write_line(out, "gate();");
    write_line(out, "if (i >= %s * Patches::count * %s)\n    return;", shape_symbol(e->arena, &windows, 0), packs);
    write_line(out, "int image = i / %s / Patches::count, channel = i %% %s * %d;", packs, packs, patch->lanes);
    write_line(out, "int top = patch / Patches::across * Patches::rows;");
    write_line(out, "int left = patch %% Patches::across * Patches::columns;");
    write_blank(out);
    write_all_equations(row);
    const char *factors = patch->factor ? write_products(row) : write_terms(row), *results = write_results(row);
    write_line(out, "sum_%s<Patches, %d>(top, left, %s, %s);", patch->factor ? "taps" : "terms", patch->lanes, factors,
               results);
}

/* "group * 4 + n", of images together in a group */
static const Tree *image_of_group(Body *row) {
    Arena *arena = row->e->arena;
    const Shape grouped = sizes_shape(row->e->sizes, row->kernel->patch.sum->in[0]);
    return tree_plus(arena, tree_times(arena, tree_name(arena, "group"), grouped.size[1]), tree_name(arena, "n"));
}

static void write_totals(Body *row) {
    Emitter *e = row->e;
    const Patch *patch = &row->kernel->patch;
    Writer lines = writer_like(row->out);
    Body body = body_inside(row, &lines, "tap", "c");
    body_know(&body, patch->sum, named(e, "sum"));
    Index at = index_along(named(e, "group"));
    index_push(&at, TAP_AXES, named(e, "tap"));
    index_push(&at, 1, tree_plus(e->arena, named(e, "first"), named(e, "c")));
    Outputs outputs = {0};
    for (int k = 0; k < row->kernel->stores.count; k++)
        output_store(&body, row->kernel->stores.at[k], &at, &outputs);
    body_write(&body, &outputs);
    write_lambda(row->out, "auto out = [&](int tap, int c, float sum)", &lines);
}

static void write_over_outputs(Body *row) {
    Emitter *e = row->e;
    const Patch *patch = &row->kernel->patch;
    Writer *out = row->out;
    const char *team = arena_printf(e->arena, "Walkers<%d, %d>", patch->lanes, patch->packs);
    const char *slabs = arena_printf(e->arena, "(%s / %s::channels)", channels_of(e, row->kernel), team);
    const Shape grouped = sizes_shape(e->sizes, patch->sum->in[0]);
    write_line(out, "int group = tile / %s, first = tile %% %s * %s::channels;", slabs, slabs, team);
    write_line(out, "int channel = first + %s::channel();", team);
    write_line(out, "gate();");
    write_blank(out);
    write_all_equations(row);
    const Tree *image = image_of_group(row);
    write_image(row, "pixel", "int n, int line, int column", patch->windows->in[0], image);
    Writer lines = writer_like(out);
    Body factor = body_of_pack(row, &lines, "line", "column");
    factor.variables[2] = "n";
    const Index at = factor_index(e, image);
    write_factor(row, "factor", "int n, int line, int column", &factor, patch->factor, &at);
    write_totals(row);
    write_line(out, "sum_outputs<Patches, %d, %s, %d>(shared, pixel, factor, out);", patch->lanes,
               shape_symbol(e->arena, &grouped, 1), patch->packs);
}

void write_patches(Body *kernel) {
    static const char *const variables[] = {"image", "channel", "top",    "left", "group",
                                            "first", "seen",    "seen_2", "sum"};
    Writer lines = writer_like(kernel->out);
    write_patch_type(kernel);
    Body row = body_inside(kernel, &lines, NULL, NULL);
    for (int k = 0; k < (int)(sizeof variables / sizeof *variables); k++) {
        row.variables[k] = variables[k];
        names_take(&row.names, variables[k]);
    }
    if (kernel->kernel->patch.packs)
        write_over_outputs(&row);
    else
        write_over_taps(&row);
    write_all(kernel->out, &lines);
}

void declare_patches(Emitter *e, const Kernel *kernel, Writer *out) {
    const Patch *patch = &kernel->patch;
    const char *channels = channels_of(e, kernel);
    const Shape rows = row_shape(e, kernel);
    if (patch->packs) {
        const char *team = arena_printf(e->arena, "Walkers<%d, %d>", patch->lanes, patch->packs);
        write_line(out, "static constexpr int tiles = %s * (%s / %s::channels);", shape_symbol(e->arena, &rows, 0),
                   channels, team);
        write_line(out, "static constexpr int shared_bytes = %s::shared_bytes;", team);
        return;
    }
    write_line(out, "static constexpr int tiles = divide_up(%s / %d, THREADS);",
               shape_product(e->arena, &rows, 0, rows.type.rank), patch->down * patch->across * patch->lanes);
}
