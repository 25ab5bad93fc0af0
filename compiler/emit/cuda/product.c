/* Products in CUDA C++: how they are cut, how their operands are read, the call of matmul.cuh. What becomes of the sums is
 * said in epilogue.c. */
#include "emit/cuda/product.h"

#include "emit/cuda/launches.h"
#include "emit/kernel/function.h"
#include "emit/kernel/row.h"

/* ---- how it is cut ---- */

static bool on_tensor_cores(const Kernel *kernel) {
    return kernel->tile.warps_m > 0;
}

/* A persistent kernel has blocks of another size. */
bool takes_turns(Emitter *e, const Kernel *kernel) {
    return kernel->cls == KERNEL_CONTRACT && kernel->tile.turns && epilogue_lanes(e, kernel) > 1 &&
           !program_is_persistent(e, program_of(e, kernel));
}

static bool reads_images(const Kernel *kernel) {
    return kernel->a.kind == OPERAND_WINDOW || kernel->b.kind == OPERAND_WINDOW;
}

/* "128 tiles of 16 x 4 outputs, 4 x 4 a thread, 64 slices of k; no panels ..." */
static void write_cut(Emitter *e, const Kernel *kernel, Writer *out) {
    static const char *const ways[] = {[FEED_STAGED] = "panels in shared memory (cuda/staged.cuh)",
                                       [FEED_PIPELINED] = "panels copied ahead to shared memory (cuda/pipelined.cuh)",
                                       [FEED_THIN] = "straight from memory (cuda/thin.cuh)",
                                       [FEED_DIRECT] = "no panels in shared memory (cuda/direct.cuh)",
                                       [FEED_DEEP] = "a thread has steps of k of its own (cuda/deep.cuh)",
                                       [FEED_SQUARES] =
                                           "windows and taps transformed on their way (cuda/winograd.cuh)"};
    const Tile *tile = &kernel->tile;
    const char *slices = tile->slices > 1 ? arena_printf(e->arena, ", %d slices of k", tile->slices) : "";
    const char *share = arena_printf(e->arena, "%d x %d a thread%s", tile->tm, tile->tn, slices);
    const char *way = ways[product_feed(kernel)];
    if (tile->squares)
        share =
            arena_printf(e->arena, "%d x %d squares and columns a thread, in two of 16 products", tile->tm, tile->tn);
    if (takes_turns(e, kernel)) {
        share = "one a group of four warps, in turns";
        way = arena_printf(e->arena, "%s on tensor cores, panels copied ahead by the hardware (cuda/tensor_turns.cuh)",
                           math_info[kernel->math].name);
    } else if (tile->few) {
        share = arena_printf(e->arena, "16 columns a warp%s", slices);
        way = arena_printf(e->arena, "%s on tensor cores, no panels in shared memory (cuda/tensor_few.cuh)",
                           math_info[kernel->math].name);
    } else if (tile->taps) {
        share = arena_printf(e->arena, "all taps of %d channels", TAP_CHANNELS);
        way = arena_printf(e->arena, "%s on tensor cores, taps in turn from the same panels (cuda/tensor_taps.cuh)",
                           math_info[kernel->math].name);
    } else if (on_tensor_cores(kernel)) {
        share = arena_printf(e->arena, "%d x %d a warp%s", tile->m / tile->warps_m, tile->n / tile->warps_n,
                             in_cluster(e, kernel) ? arena_printf(e->arena, ", %d parts of k", tile->splits) : "");
        way = arena_printf(e->arena, "%s on tensor cores, panels copied ahead to shared memory (cuda/tensor.cuh)",
                           math_info[kernel->math].name);
    }
    write_comment(
        out, 0,
        arena_printf(e->arena, "%s of %d x %d outputs, %s; %s%s", tile_text(e->arena, kernel->tiles), tile->m, tile->n,
                     share, way,
                     reads_images(kernel) ? "; windows are read straight from the image (cuda/window.cuh)" : ""));
}

/* Warps that the only tile of a product without panels keeps busy; 0: it has several tiles, or panels. */
static int busy_warps(const Kernel *kernel) {
    if (kernel->cls != KERNEL_CONTRACT || product_feed(kernel) != FEED_THIN || kernel->tiles > 1)
        return 0;
    int outputs = (int)((kernel->m - 1) * kernel->tile.n + kernel->n);
    return (outputs * kernel->tile.slices + LANES - 1) / LANES;
}

/* Where a single block runs a phase: behind the warps of the products before it, so that they run side by side. */
static int first_warp(Emitter *e, const Kernel *kernel) {
    const Program *program = program_of(e, kernel);
    const Phase *phase = &program->phases.at[kernel->phase];
    int warps = 0;
    if (program->machine->form != FORM_SOLO || !busy_warps(kernel))
        return 0;
    for (int k = 0; k < phase->kernels.count && phase->kernels.at[k] != kernel; k++)
        warps += busy_warps(phase->kernels.at[k]);
    return warps % WARPS;
}

/* No phase from that before the kernel's on writes it. */
static bool is_there_early(const Program *program, const Kernel *kernel, const Node *n) {
    return written_in(program, n) != phase_before(program, kernel);
}

/* "Tile<128, 64, 16, 8, 4>", "TensorTile<128, 128, 64, 2, 4, 4, bfloat16>", "TurnTile<128, 128, 64, 6, bfloat16>" */
static const char *tile_type(Emitter *e, const Kernel *kernel, int warp) {
    const Tile *tile = &kernel->tile;
    if (tile->turns) {
        const char *type = arena_printf(e->arena, "TurnTile<%d, %d, %d, %d, %s>", tile->m, tile->n, tile->k,
                                        tile->stages, math_info[kernel->math].element);
        return takes_turns(e, kernel) ? type : arena_printf(e->arena, "%s::Alone", type);
    }
    if (tile->few)
        return arena_printf(e->arena, "FewTile<%d, %d, %s>", tile->m, tile->n,
                            is_there_early(program_of(e, kernel), kernel, kernel->b.buffer) ? "true" : "false");
    if (on_tensor_cores(kernel))
        return arena_printf(e->arena, "TensorTile<%d, %d, %d, %d, %d, %d, %s%s>", tile->m, tile->n, tile->k,
                            tile->warps_m, tile->warps_n, tile->stages, math_info[kernel->math].element,
                            in_cluster(e, kernel) ? arena_printf(e->arena, ", %d", tile->splits) : "");
    if (tile->squares) {
        Shape windows = sizes_shape(e->sizes, kernel->a.view);
        return arena_printf(e->arena, "SquareTile<%s, %s>", shape_symbol(e->arena, &windows, 1),
                            shape_symbol(e->arena, &windows, 2));
    }
    const char *begins = warp ? arena_printf(e->arena, ", %d", warp) : "";
    return arena_printf(e->arena, "Tile<%d, %d, %d, %d, %d%s>", tile->m, tile->n, tile->k, tile->tm, tile->tn, begins);
}

void declare_product(Emitter *e, const Kernel *kernel, Writer *out) {
    Shape shape = sizes_shape(e->sizes, kernel->contraction);
    int rank = shape.type.rank, warp = first_warp(e, kernel);
    write_cut(e, kernel, out);
    const char *stack = shape_product(e->arena, &shape, 0, rank - 2); /* products */
    bool stacked = product_is_stacked(kernel), apart = kernel->batches > 1 && !stacked;
    write_line(out, "using Shape = Product<%s, %s, %s%s>;", shape_symbol(e->arena, &shape, rank - 2),
               shape_symbol(e->arena, &shape, rank - 1), product_depth(e, kernel->contraction),
               stacked ? arena_printf(e->arena, ", %s", stack) : "");
    write_line(out, "using Cut = %s;%s", tile_type(e, kernel, warp), warp ? " // the last: its first warp" : "");
    write_line(out, "static constexpr int %s = product_tiles<Shape, Cut>();", apart ? "each" : "tiles");
    if (apart)
        write_line(out, "static constexpr int tiles = %s * each;", stack);
    int folded = kernel->folds.count * epilogue_lanes(e, kernel);
    const char *totals = folded ? arena_printf(e->arena, ", %d", folded) : "";
    if (product_feed(kernel) != FEED_THIN)
        write_line(out, "static constexpr int shared_bytes = product_shared<Shape, Cut%s>();", totals);
}

/* ---- operands computed as they are loaded ---- */

/* n is the field, perhaps in another shape and as floats. */
static bool is_raw(const Node *n, const Node *field) {
    while (n != field && n->inputs == 1 && (n->op->flags & OP_CONTIGUOUS || n->in[0]->type.dtype != n->type.dtype))
        n = n->in[0];
    return n == field;
}

typedef VEC(const Node *) NodeList;

static bool is_in(const NodeList *list, const Node *n) {
    for (int i = 0; i < list->count; i++)
        if (list->at[i] == n)
            return true;
    return false;
}

/* Calls the operand's field, and the same as a float, v. */
static void know_raw(Body *body, const Node *n, const Node *field, NodeList *seen) {
    if (is_in(seen, n))
        return;
    VEC_PUSH(body->e->arena, seen, n);
    if (is_raw(n, field))
        body_know(body, n, tree_name(body->e->arena, "v"));
    for (int k = 0; k < n->inputs; k++)
        know_raw(body, n->in[k], field, seen);
}

/* Writes "auto from_stored = [](float v) { return v / 255.0f; };"; returns the name. */
static const char *write_conversion(Body *kernel, const Node *of, const Node *field) {
    Writer lines = writer_like(kernel->out);
    Body body = body_inside(kernel, &lines, "v", NULL);
    NodeList seen = {0};
    know_raw(&body, of, field, &seen);
    Index at = {0};
    for (int axis = 0; axis < of->type.rank; axis++)
        index_push(&at, 1, tree_number(kernel->e->arena, 0));
    const Tree *tree = body_expression(&body, of, &at);
    bool captures = lines.lines.count > 0 || tree_has_kind(tree, TREE_MEMBER) || kernel->known.count > 0;
    write_line(&lines, "return %s;", body_text(&body, tree));
    const char *name = names_claim(&kernel->names, "from_stored");
    write_lambda(kernel->out, arena_printf(kernel->e->arena, "auto %s = [%s](float v)", name, captures ? "&" : ""),
                 &lines);
    return name;
}

/* "gathered<IMAGE>(t.image, batch, from_stored)" */
static const char *gathered_text(Body *kernel, const Node *value, const Node *field, const char *columns) {
    return arena_printf(kernel->e->arena, "gathered<%s>(t.%s, batch, %s)", columns, kernel->e->field[field->attr.index],
                        write_conversion(kernel, value, field));
}

/* ---- operands ---- */

/* Writes "using Rows = Axis<CONV1_ROWS, 3, 1, 1, 1, 1>;"; returns the name. */
const char *write_axis(Body *kernel, const char *wanted, const Shape *windows, const Sweep *sweep, int axis) {
    const char *name = names_claim_type(&kernel->names, wanted);
    write_line(kernel->out, "using %s = Axis<%s, %s, %lld, %lld, %lld, %lld>;", name,
               shape_symbol(kernel->e->arena, windows, axis), shape_symbol(kernel->e->arena, windows, 2 + axis),
               (long long)sweep->stride, (long long)sweep->dilation, (long long)sweep->pad, (long long)sweep->spread);
    return name;
}

/* "window<X_ROWS, X_COLUMNS, X_CHANNELS, Rows, Columns>(t.x)", Rows and Columns being said before. */
static const char *window_text(Body *kernel, const Operand *operand, const char *at) {
    Emitter *e = kernel->e;
    const Node *view = operand->view;
    Shape windows = sizes_shape(e->sizes, view), images = sizes_shape(e->sizes, view->in[0]);
    write_line(kernel->out, "// outputs, taps, stride, dilation, pad, spread");
    const char *rows = write_axis(kernel, "Rows", &windows, &view->attr.sweep[0], 1);
    const char *columns = write_axis(kernel, "Columns", &windows, &view->attr.sweep[1], 2);
    if (operand->computed) {
        const char *image = shape_product(e->arena, &images, 1, 3);
        const char *of_field = gathered_text(kernel, view->in[0], operand->buffer, image);
        at = names_claim(&kernel->names, "images");
        write_line(kernel->out, "auto %s = %s;", at, of_field);
    }
    return arena_printf(e->arena, "window<%s, %s, %s, %s, %s>(%s)", shape_symbol(e->arena, &images, 1),
                        shape_symbol(e->arena, &images, 2), shape_symbol(e->arena, &images, 3), rows, columns, at);
}

/* "filter<CONV, KERNEL_ROWS * KERNEL_COLUMNS, X_CHANNELS>(t.conv_weight)" */
static const char *filter_text(Emitter *e, const Node *view, const char *at) {
    Shape filters = sizes_shape(e->sizes, view->in[0]);
    return arena_printf(e->arena, "filter<%s, %s, %s>(%s)", shape_symbol(e->arena, &filters, 0),
                        shape_product(e->arena, &filters, 1, 2), shape_symbol(e->arena, &filters, 3), at);
}

/* "matrix<IMAGE>(t.h_weight)", of part b of a batch "matrix<IMAGE>(t.h_weight + b * H * IMAGE)". */
static const char *matrix_text(Emitter *e, const Shape *shape, const char *at, const Tree *part) {
    const char *from = part ? arena_printf(e->arena, " + %s", tree_text(e->arena, part)) : "";
    return arena_printf(e->arena, "matrix<%s>(%s%s)", shape_symbol(e->arena, shape, 1), at, from);
}

/* Where part b of the operand begins: "b * H * IMAGE". */
static const Tree *part_offset(Emitter *e, const Operand *operand, const Shape *shape) {
    const Tree *offset = tree_times(e->arena, tree_name(e->arena, "b"), shape_extent(e->arena, shape, 0, 2));
    return int_holds(type_elements(&operand->value->type)) ? offset : tree_widened(e->arena, offset);
}

/* "transposed(matrix<IMAGE>(t.h_weight))" */
static const char *operand_text(Body *kernel, const Operand *operand) {
    Emitter *e = kernel->e;
    Shape value = sizes_shape(e->sizes, operand->value), shape = shape_slice(&value, value.type.rank - 2, 2);
    const Buffer *buffer = operand->computed ? NULL : plan_buffer(e->plan, operand->buffer);
    const char *of = operand->rounded ? "rounded(t.%s)" : "t.%s", *text;
    const char *at = buffer ? arena_printf(e->arena, of, tensor_name(e, buffer)) : NULL;
    bool part_b = operand->batched && !product_is_stacked(kernel->kernel);
    switch (operand->kind) {
    case OPERAND_COMPUTED:
        text = gathered_text(kernel, operand->value, operand->buffer, shape_symbol(e->arena, &shape, 1));
        break;
    case OPERAND_WINDOW: text = window_text(kernel, operand, at); break;
    case OPERAND_FILTER: text = filter_text(e, operand->view, at); break;
    default: text = matrix_text(e, &shape, at, part_b ? part_offset(e, operand, &shape) : NULL);
    }
    if (part_b && operand->kind != OPERAND_MATRIX)
        text = arena_printf(e->arena, "rows_from(%s, b * %s)", text, tree_text_at(e->arena, shape.size[0], PREC_UNARY));
    return operand->transposed ? arena_printf(e->arena, "transposed(%s)", text) : text;
}

void write_product(Body *kernel) {
    const Kernel *k = kernel->kernel;
    const char *tile = "tile", *left = operand_text(kernel, &k->a), *right = operand_text(kernel, &k->b);
    if (k->batches > 1 && !product_is_stacked(k)) {
        write_line(kernel->out, "int b = tile / each;");
        tile = "tile % each";
    }
    write_line(kernel->out, "auto left = %s;", left);
    write_line(kernel->out, "auto right = %s;", right);
    const char *epilogues = write_epilogues(kernel);
    bool turns = takes_turns(kernel->e, k);
    write_line(kernel->out, "%s<Shape, Cut>(%s, %sleft, right, shared, gate, %s);", turns ? "matmul_turns" : "matmul",
               tile, turns ? "batch.maps, " : "", epilogues);
}
