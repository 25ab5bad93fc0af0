/* Questions about a Program, its invariants and its dumps. */
#include "pass/kernel.h"

const Kernel *program_producer(const Program *program, const Node *n) {
    return program->producer[n->id];
}

Node *program_assigned(const Program *program, const Node *stored) {
    return program->assigned[stored->id];
}

const Kernel *program_overwriter(const Program *program, const Node *leaf) {
    const Node *next = program->next[leaf->id];
    return next ? program->producer[next->id] : NULL;
}

bool kernel_reads(const Kernel *kernel, const Node *buffer) {
    for (int i = 0; i < kernel->loads.count; i++)
        if (kernel->loads.at[i] == buffer)
            return true;
    return false;
}

bool kernel_folds_trailing_axes(const Kernel *kernel) {
    return kernel->inner >> kernel->kept.rank && !(kernel->inner & ((1u << kernel->kept.rank) - 1));
}

int kernel_row_axes(const Kernel *kernel, const Type *type) {
    int64_t rows = 1;
    int axes = 0;
    while (axes < type->rank && rows < kernel->rows)
        rows *= type->dim[axes++];
    return rows == kernel->rows && axes < type->rank ? axes : -1;
}

bool kernel_stores_side(const Kernel *kernel, const Node *stored) {
    return kernel->side && type_same_shape(&stored->type, &kernel->side->type);
}

static bool comes_before(const Program *program, const Kernel *reader, const Node *buffer) {
    if (buffer->op->flags & OP_BUFFER)
        return true;
    const Kernel *producer = program_producer(program, buffer);
    return producer && producer->phase < reader->phase;
}

static void verify_kernel(const Program *program, const Kernel *kernel) {
    ENSURE(kernel->name && kernel->tiles > 0 && kernel->stores.count > 0);
    for (int i = 0; i < kernel->loads.count; i++)
        if (!comes_before(program, kernel, kernel->loads.at[i]))
            ICE("kernel %s reads %%%d before it is complete", kernel->name, kernel->loads.at[i]->id);
    for (int i = 0; i < kernel->stores.count; i++)
        if (program_producer(program, kernel->stores.at[i]) != kernel)
            ICE("%%%d is stored by two kernels", kernel->stores.at[i]->id);
}

static void verify_overwrites(const Program *program, const Kernel *kernel) {
    for (int i = 0; i < kernel->loads.count; i++) {
        const Kernel *overwriter = program_overwriter(program, kernel->loads.at[i]);
        if (overwriter && overwriter != kernel && overwriter->phase <= kernel->phase)
            ICE("kernel %s reads a leaf that %s has overwritten", kernel->name, overwriter->name);
    }
}

/* Every effect is carried out: a kernel of the program stores its value. */
static void verify_roots(const Program *program) {
    const Graph *g = program->graph;
    for (int i = 0; i < g->roots.count; i++) {
        const Node *root = g->roots.at[i], *value = root->in[root->inputs - 1];
        const Kernel *kernel = program_producer(program, value);
        bool carried = false;
        for (int r = 0; kernel && r < kernel->roots.count; r++)
            carried |= kernel->roots.at[r] == root;
        if (!carried || program->kernels.at[kernel->id] != kernel)
            ICE("no kernel carries out %%%d %s", root->id, root->op->name);
    }
}

void program_verify(const Program *program) {
    verify_roots(program);
    for (int i = 0; i < program->kernels.count; i++) {
        verify_kernel(program, program->kernels.at[i]);
        verify_overwrites(program, program->kernels.at[i]);
    }
}

static const Weight *largest_weight(const Module *module) {
    const Weight *largest = NULL;
    for (int i = 0; i < module->weights.count; i++)
        if (!largest || type_elements(&module->weights.at[i].type) > type_elements(&largest->type))
            largest = &module->weights.at[i];
    return largest;
}

static void report_large(const Module *module, Span at, const char *what, const Type *type, const char *cure) {
    diag_error(module->diag, at, "%s of %lld elements; on a GPU one has at most %d: %s", what,
               (long long)type_elements(type), INT32_MAX, cure);
}

/* What is computed with a weight is as large as the weight: its update, its gradient in slices. */
static void report_large_node(const Module *module, const Node *n) {
    const Weight *weight = n->type.batched ? NULL : largest_weight(module);
    const long long batch = n->type.batched ? module->batch : 1;
    if (weight && type_elements(&weight->type) > INT32_MAX)
        report_large(module, weight->src, arena_printf(module->arena, "a weight '%s'", weight->name), &weight->type,
                     "make it smaller, or several weights of it");
    else if (type_elements(&n->type) / batch > INT32_MAX)
        report_large(module, n->src, "a value", &n->type, "make it smaller, or compile with --target cpu");
    else
        report_large(module, n->src, arena_printf(module->arena, "in a batch of %lld, a value", batch), &n->type,
                     "make the batch smaller");
}

/* One message: others would tell of the same size. */
bool program_fits(const Program *program) {
    for (int i = 0; program->machine->blocks && i < program->kernels.count; i++)
        for (int k = 0; k < program->kernels.at[i]->nodes.count; k++) {
            const Node *n = program->kernels.at[i]->nodes.at[k];
            if (type_elements(&n->type) <= INT32_MAX)
                continue;
            report_large_node(program->graph->module, n);
            return false;
        }
    return true;
}

/* ---- dumps ---- */

static void print_node(Text *out, const char *before, const Node *n) {
    text_printf(out, "%s%%%d", before, n->id);
    if (n->name)
        text_printf(out, ":%s", n->name);
}

static void print_nodes(Text *out, const char *label, Node *const *nodes, int count) {
    if (!count)
        return;
    text_printf(out, "    %s", label);
    for (int i = 0; i < count; i++)
        print_node(out, " ", nodes[i]);
    text_putc(out, '\n');
}

static void print_operand(Text *out, const char *label, const Operand *operand) {
    static const char *const kinds[] = {[OPERAND_MATRIX] = "",
                                        [OPERAND_COMPUTED] = ", computed while loading",
                                        [OPERAND_WINDOW] = ", windows",
                                        [OPERAND_FILTER] = ", filters"};
    text_printf(out, "    %s", label);
    print_node(out, " ", operand->buffer);
    text_printf(out, " [%lld, %lld]%s%s\n", (long long)operand->rows, (long long)operand->cols,
                operand->transposed ? " transposed" : "", kinds[operand->kind]);
}

static void print_product(Text *out, const Kernel *kernel) {
    text_printf(out, "    product %lld x [%lld, %lld, %lld]\n", (long long)kernel->batches, (long long)kernel->m,
                (long long)kernel->n, (long long)kernel->k);
    print_operand(out, "a", &kernel->a);
    print_operand(out, "b", &kernel->b);
    if (kernel->side) {
        print_node(out, "    rides along ", kernel->side);
        text_printf(out, " = sum over k of %s\n", kernel->side_of_b ? "b" : "a");
    }
    if (kernel->folds.count)
        print_nodes(out, arena_printf(out->arena, "adds up each %lld rows:", (long long)kernel->fold_rows),
                    kernel->folds.at, kernel->folds.count);
}

static void print_call(Text *out, const Kernel *kernel) {
    text_printf(out, "    %s of", kernel->call->op->name);
    for (int k = 0; k < kernel->call->inputs; k++)
        print_node(out, " ", kernel->operands[k]);
    text_putc(out, '\n');
}

static void print_stage(Text *out, Arena *arena, int number, const Stage *stage) {
    text_printf(out, "    stage %d over %s, inner axes", number, type_graph_text(arena, &stage->domain));
    for (int axis = 0; axis < stage->domain.rank; axis++)
        if (stage->inner >> axis & 1)
            text_printf(out, " %d", axis);
    text_puts(out, stage->inner ? "\n" : " none\n");
    print_nodes(out, "  products", stage->contractions.at, stage->contractions.count);
    print_nodes(out, "  folds", stage->reduces.at, stage->reduces.count);
    print_nodes(out, "  keeps", stage->vectors.at, stage->vectors.count);
    print_nodes(out, "  stores", stage->stores.at, stage->stores.count);
}

static void print_kernel(Text *out, const Program *program, const Kernel *kernel) {
    static const char *const classes[] = {
        [KERNEL_CONTRACT] = "contract", [KERNEL_LOOP] = "loop", [KERNEL_CALL] = "call"};
    text_printf(out, "  %s %s\n", classes[kernel->cls], kernel->name);
    print_nodes(out, "computes", kernel->nodes.at, kernel->nodes.count);
    print_nodes(out, "loads", kernel->loads.at, kernel->loads.count);
    print_nodes(out, "stores", kernel->stores.at, kernel->stores.count);
    if (kernel->cls == KERNEL_CONTRACT)
        print_product(out, kernel);
    else if (kernel->cls == KERNEL_CALL)
        print_call(out, kernel);
    else
        text_printf(out, "    rows %lld\n", (long long)kernel->rows);
    for (int i = 0; i < kernel->stages.count; i++)
        print_stage(out, program->arena, i, &kernel->stages.at[i]);
}

void fused_print(const Program *program, Text *out) {
    text_printf(out, "%s: %d kernels\n", program->prefix, program->kernels.count);
    for (int i = 0; i < program->kernels.count; i++)
        print_kernel(out, program, program->kernels.at[i]);
}

static void print_tile(Text *out, const Kernel *kernel) {
    static const char *const maths[] = {[MATH_TF32] = "tf32", [MATH_BF16] = "bf16"};
    const Tile *tile = &kernel->tile;
    text_printf(out, "tile %dx%dx%d, ", tile->m, tile->n, tile->k);
    if (tile->warps_m)
        text_printf(out, "%s, %dx%d warps, %d panels", maths[kernel->math], tile->warps_m, tile->warps_n, tile->stages);
    else
        text_printf(out, "%dx%d a thread, %d slices of k", tile->tm, tile->tn, tile->slices);
}

static void print_cut(Text *out, const Kernel *kernel) {
    static const char *const teams[] = {[TEAM_THREAD] = "a thread",
                                        [TEAM_WARP] = "a warp",
                                        [TEAM_HALF] = "half a warp",
                                        [TEAM_BLOCK] = "a block",
                                        [TEAM_COLUMN] = "8 threads"};
    if (kernel->cls == KERNEL_CONTRACT)
        print_tile(out, kernel);
    else if (kernel->cls == KERNEL_CALL)
        text_puts(out, kernel->call->op->name);
    else
        text_printf(out, "%lld rows, %s each", (long long)kernel->rows, teams[kernel->team]);
}

void schedule_print(const Program *program, Text *out) {
    static const char *const names[] = {[SCHEDULE_GRAPH] = "graph", [SCHEDULE_PERSISTENT] = "persistent"};
    text_printf(out, "%s: %d phases, %s\n", program->prefix, program->phases.count, names[program->schedule]);
    static const char *const forms[] = {
        [FORM_GRID] = "", [FORM_CLUSTER] = ", a cluster", [FORM_SOLO] = ", the arena in shared memory"};
    const Machine *machine = program->machine;
    if (machine->number)
        text_printf(out, "  planned for: %s (sm_%d)\n", machine->name, machine->number);
    text_printf(out, "  estimated: graph %.2f us, persistent %.2f us on %lld blocks%s\n",
                program->estimate[SCHEDULE_GRAPH] * 1e6, program->estimate[SCHEDULE_PERSISTENT] * 1e6,
                (long long)program->grid, forms[program->machine->form]);
    for (int p = 0; p < program->phases.count; p++) {
        const Phase *phase = &program->phases.at[p];
        text_printf(out, "  phase %d: %lld tiles\n", p + 1, (long long)phase->tiles);
        for (int i = 0; i < phase->kernels.count; i++) {
            const Kernel *kernel = phase->kernels.at[i];
            text_printf(out, "    %-24s %5lld tiles  %10.0f FLOP  %10.0f bytes  ", kernel->name,
                        (long long)kernel->tiles, kernel->flops, kernel->bytes);
            print_cut(out, kernel);
            text_putc(out, '\n');
        }
    }
}
