/* Launches that do something ahead of their gates or in place of a launch before them. Where one token is decoded, weights come to shared
 * memory while the phase before is running; and a short row that all blocks read, a norm's, each computes for itself:
 *
 *     float *row = (float *)(shared + with_row<float>(kernel_bytes, 0)); // decode_h_0_ln_2
 *     auto compute_row = [&] { ... };
 *     decode_h_0_mlp_c_fc::Own own(t, batch.again);
 *     own.decode_h_0_ln_2 = row;
 *     own.h_0_mlp_c_fc_weight = bring_rows<Warp>(own.h_0_mlp_c_fc_weight, tile, C_FC, WIDTH, shared + weights_at);
 *     compute_row();
 *     await_rows();
 *     decode_h_0_mlp_c_fc::run(own, batch, tile, shared, gate); */
#include "emit/cuda/ahead.h"

#include "emit/cuda/called.h"
#include "emit/kernel/expr.h"
#include "emit/kernel/function.h"

/* ---- which weights ---- */

/* A matrix whose first rows are those of the operand, and whose others are not there. */
static bool adds_rows(const Node *n) {
    bool first = n->op->cls == OP_VIEW && n->op->attrs & ATTR_OFFSET && !(n->op->flags & (OP_DRAWS | OP_MIRRORS));
    for (int k = 0; first && k < n->type.rank; k++)
        first = n->attr.offset[k] == 0;
    return first && n->type.rank == 2 && n->in[0]->type.dim[1] == n->type.dim[1];
}

/* The matrix whose row i the factor has where the sum is that of row i, of `rows`; NULL: it is none. */
static const Node *matrix_of_factor(const Node *factor, int64_t rows) {
    while (factor->op->flags & (OP_REPEATS | OP_CONTIGUOUS | OP_WIDENS))
        factor = factor->in[0];
    if (factor->type.rank != 2 || factor->type.dim[0] != rows)
        return NULL;
    factor = adds_rows(factor) ? factor->in[0] : factor;
    return factor->op->flags & OP_WIDENS ? factor->in[0] : factor;
}

/* What is added up for each row, along the last axis; NULL: the sum is another one. */
static const Node *terms_of(const Kernel *kernel, const Node *sum) {
    const Type *type = sum->op->cls == OP_REDUCE ? &sum->in[0]->type : NULL;
    if (!type || type->rank < 2 || sum->attr.axes != 1u << (type->rank - 1) ||
        type->dim[type->rank - 2] != kernel->rows || type_extent(type, 0, type->rank - 1) != kernel->rows)
        return NULL;
    const Node *terms = sum->in[0];
    while (terms->op->flags & OP_CONTIGUOUS)
        terms = terms->in[0];
    return terms->op->cls == OP_MAP ? terms : NULL;
}

static bool is_looked_up(const Graph *g, const Node *n) {
    for (int i = 0; i < g->nodes.count; i++)
        if (g->nodes.at[i]->op->flags & OP_LOOKUP && g->nodes.at[i]->in[0] == n)
            return true;
    return false;
}

/* It is complete when the phase before the kernel's begins, and so ahead of the gate. */
static bool is_there_ahead(const Program *program, const Kernel *kernel, const Node *n) {
    const int written = written_in(program, n);
    const bool weight = n->op->table == TABLE_WEIGHT || n->op->table == TABLE_STATE;
    return written < 0 ? weight : written < program->once && kernel->phase > program->once;
}

static bool has_only_sums(const Kernel *kernel) {
    return kernel->cls == KERNEL_LOOP && !kernel->held && !kernel_has_vectors(kernel);
}

/* Of the sum: a factor that is there, and that is read so and not otherwise. */
static const Node *factor_of(const Program *program, const Kernel *kernel, const Node *sum) {
    const Node *terms = terms_of(kernel, sum);
    for (int k = 0; terms && k < terms->inputs; k++) {
        const Node *n = matrix_of_factor(terms->in[k], kernel->rows);
        if (n && kernel_reads(kernel, n) && is_there_ahead(program, kernel, n) &&
            n->type.dim[1] == sum->in[0]->type.dim[sum->in[0]->type.rank - 1] && !is_looked_up(program->graph, n))
            return n;
    }
    return NULL;
}

static int64_t rows_of_tile(const Kernel *kernel) {
    return kernel->at_once * (kernel->team == TEAM_WARP ? WARPS : 1);
}

static bool are_whole_packs(const Kernel *kernel, const Type *matrix, const Machine *machine) {
    const int64_t bytes = matrix->dim[1] * dtype_info[matrix->dtype].bytes;
    return bytes % PACK_BYTES == 0 && bytes * rows_of_tile(kernel) <= room_for_weights(machine);
}

/* Where one token is decoded, reading weights is what takes the time. NULL: there is none. */
static const Node *brought(const Emitter *e, const Kernel *kernel) {
    const bool teams =
        has_only_sums(kernel) && kernel->rows > 1 && (kernel->team == TEAM_WARP || kernel->team == TEAM_BLOCK);
    if (!teams || !is_of_token(e, kernel))
        return NULL;
    const Program *program = program_of(e, kernel);
    for (int k = 0; k < kernel->nodes.count; k++) {
        const Node *n = factor_of(program, kernel, kernel->nodes.at[k]);
        if (n && are_whole_packs(kernel, &n->type, program->machine))
            return n;
    }
    return NULL;
}

/* ---- what a block does ---- */

static const char *row_name(Emitter *e, const Launch *launch) {
    return tensor_name(e, plan_buffer(e->plan, launch->row->stores.at[0]));
}

/* The group's function of which the launch has a kernel: the first. */
static const Function *own_function(Emitter *e, const Launch *launch, const Group *group) {
    if (group == &launch->before.at[0])
        return function_of(e, launch->row);
    for (int k = 0; k < launch->kernels.kernels.count; k++)
        if (written_function(e, launch->kernels.kernels.at[k]) == group->function)
            return function_of(e, launch->kernels.kernels.at[k]);
    ICE("%s is not in its launch", group->function->name);
}

/* What the written function calls the value. */
static const char *name_within(Emitter *e, const Launch *launch, const Group *group, const Node *value) {
    const Function *own = own_function(e, launch, group);
    const Buffer *buffer = plan_buffer(e->plan, value);
    for (int b = 0; b < own->buffers.count; b++)
        if (&e->plan->buffers.at[own->buffers.at[b]] == buffer)
            return member_name(e, group->function, b);
    ICE("%s has no %s", own->name, tensor_name(e, buffer));
}

/* Launches behind this one read the row too: they find it in memory. */
static bool is_read_later(const Launch *launch) {
    const Program *program = launch->program;
    bool read = false;
    for (int k = 0; k < program->kernels.count; k++)
        read |= program->kernels.at[k]->phase > launch->phase &&
                kernel_reads(program->kernels.at[k], launch->row->stores.at[0]);
    return read;
}

/* "decode_h_0_ln_2::Own own(t, 1 + 2 * batch.again);", with the block's own row in it. */
static void write_tensors_with_row(Emitter *e, const Launch *launch, int group, Writer *out) {
    const Group *g = group_at(launch, group);
    if (has_own_tensors(g->function))
        write_line(out, "%s::Own own(t, %s);", g->function->name, place_of(e, launch, group));
    else
        write_line(out, "Tensors own = t;");
    if (group == launch->groups.count && is_read_later(launch))
        write_line(out, "%s *kept = own.%s;", c_type(e, launch->row->stores.at[0]->type.dtype),
                   name_within(e, launch, g, launch->row->stores.at[0]));
    if (launch->row)
        write_line(out, "own.%s = row;", name_within(e, launch, g, launch->row->stores.at[0]));
}

/* Of the group's first kernel. */
static const Node *brought_by(Emitter *e, const Launch *launch, const Group *group) {
    return brought(e, own_function(e, launch, group)->kernel);
}

bool brings_weights(const Emitter *e, const Launch *launch) {
    for (int k = 0; k < launch->kernels.kernels.count; k++)
        if (brought(e, launch->kernels.kernels.at[k]))
            return true;
    return false;
}

static void write_bringing(Emitter *e, const Launch *launch, const Group *group, Writer *out) {
    const Node *weight = brought_by(e, launch, group);
    if (!weight)
        return;
    const Shape shape = sizes_shape(e->sizes, weight);
    const char *member = name_within(e, launch, group, weight);
    write_line(out, "own.%s = bring_rows<%s>(own.%s, tile, %s, %s, shared + weights_at);", member,
               team_name(e, group->function->kernel), member, shape_symbol(e->arena, &shape, 0),
               shape_symbol(e->arena, &shape, 1));
}

static void write_group_with_row(Emitter *e, const Launch *launch, int group, Writer *out) {
    const Group *g = group_at(launch, group);
    const char *tiles = own_constant(e, g->function, "tiles");
    write_tensors_with_row(e, launch, group, out);
    if (g->count > 1)
        write_line(out, "tile %%= %s;", tiles);
    write_bringing(e, launch, g, out);
    if (launch->row)
        write_line(out, "compute_row();");
    if (brought_by(e, launch, g))
        write_line(out, "await_rows();");
    write_line(out, "%s;", call_of(e, g->function, "tile", "gate"));
}

/* All tiles of the row, behind the gate once: what they read is on its way at a time. */
static void write_row_call(Emitter *e, const Function *function, int64_t tiles, Writer *out) {
    if (tiles == 1) {
        write_line(out, "%s;", call_of(e, function, "0", "gate"));
        return;
    }
    Writer call = writer_like(out);
    write_line(&call, "%s;", call_of(e, function, "part", "passed"));
    write_line(out, "gate();\nGate passed;");
    write_block(out,
                arena_printf(e->arena, "for (int part = 0; part < %s; part++)", own_constant(e, function, "tiles")),
                &call);
}

/* What the groups need of shared memory is followed by the row. */
static void write_row_lambda(Emitter *e, const Launch *launch, Writer *out) {
    const int row = launch->groups.count;
    const char *type = c_type(e, launch->row->stores.at[0]->type.dtype);
    write_line(out, "%s *row = (%s *)(shared + with_row<%s>(kernel_bytes, 0)); // %s", type, type, type,
               row_name(e, launch));
    if (is_read_later(launch))
        write_line(out, "const bool keeps = tile == 0;");
    write_open(out, "auto compute_row = [&] {");
    write_tensors_with_row(e, launch, row, out);
    write_row_call(e, group_at(launch, row)->function, launch->row->tiles, out);
    write_line(out, "__syncthreads();");
    if (is_read_later(launch))
        write_line(out, "if (keeps)\n    keep_row(kept, row, %lld);",
                   (long long)type_elements(&launch->row->stores.at[0]->type));
    write_close(out, "};");
}

static void write_lines(Emitter *e, const Launch *launch, Writer *out) {
    if (launch->row)
        write_row_lambda(e, launch, out);
    for (int g = 0; g < launch->groups.count; g++) {
        const char *tiles = group_tiles(e, &launch->groups.at[g]);
        if (g + 1 == launch->groups.count) {
            write_group_with_row(e, launch, g, out);
            break;
        }
        write_open(out, "if (tile < %s) {", tiles);
        write_group_with_row(e, launch, g, out);
        write_line(out, "return;");
        write_close(out, "}");
        write_line(out, "tile -= %s;", tiles);
    }
}

/* " + rows_bytes<Warp, bfloat16>(WIDTH)" of the group that brings most. */
static const char *most_brought(Emitter *e, const Launch *launch) {
    const char *most = "";
    int64_t bytes = 0;
    for (int g = 0; g < launch->groups.count; g++) {
        const Group *group = &launch->groups.at[g];
        const Node *weight = brought_by(e, launch, group);
        const Kernel *kernel = group->function->kernel;
        int64_t own = weight ? weight->type.dim[1] * dtype_info[weight->type.dtype].bytes : 0;
        own *= rows_of_tile(kernel);
        if (own <= bytes)
            continue;
        const Shape shape = sizes_shape(e->sizes, weight);
        bytes = own;
        most = arena_printf(e->arena, " + rows_bytes<%s, %s>(%s)", team_name(e, kernel), c_type(e, weight->type.dtype),
                            shape_symbol(e->arena, &shape, 1));
    }
    return most;
}

/* What the kernels take of shared memory is followed by the row, and that by the weights. */
static void write_constants(Emitter *e, const Launch *launch, Writer *out) {
    Text tiles = TEXT(e->arena);
    for (int g = 0; g < launch->groups.count; g++)
        text_printf(&tiles, "%s%s", g ? " + " : "", group_tiles(e, &launch->groups.at[g]));
    write_line(out, "static constexpr int tiles = %s;", text_string(&tiles));
    write_line(out, "static constexpr int kernel_bytes = %s;", most_bytes(e, launch));
    const Type *row = launch->row ? &launch->row->stores.at[0]->type : NULL;
    const char *behind = row ? arena_printf(e->arena, "with_row<%s>(kernel_bytes, %lld)", c_type(e, row->dtype),
                                            (long long)type_elements(row))
                             : "kernel_bytes";
    write_line(out, "static constexpr int weights_at = with_row<char>(%s, 0);", behind);
    write_line(out, "static constexpr int shared_bytes = weights_at%s;", most_brought(e, launch));
}

void write_launch_ahead(Emitter *e, const Launch *launch, const char *places, Writer *out) {
    write_open(out, "struct %s {", launch->name);
    write_constants(e, launch, out);
    write_open(out, "static __device__ void run(const Tensors &t, const Batch &batch, int tile, char *shared, Gate "
                    "&gate) {");
    if (places)
        write_line(out, "const unsigned short *place = %s[batch.again];", places);
    write_lines(e, launch, out);
    write_close(out, "}");
    write_close(out, "};");
}
